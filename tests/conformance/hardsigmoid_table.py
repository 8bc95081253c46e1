"""aclnnHardsigmoid, its in-place form and its gradient: what they refuse, in the order of CANN's checkers, and what
they compute.

The order is that of ops-nn's aclnn_hardsigmoid.cpp and aclnn_hardsigmoid_backward.cpp; the conditions are those of the
documents aclnnHardsigmoid&aclnnInplaceHardsigmoid and aclnnHardsigmoidBackward. The numbers are ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import Dtype, Format
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
    NOWHERE,
    WITH_BF16,
    Changes,
    Deviation,
    DtypeRow,
    Given,
    Operator,
    Reference,
    Row,
    Table,
    Tensor,
    layouts,
    least,
    nulls,
    on_all,
    same_shape_calls,
    unit,
    widest,
)
from tests.conformance.provenance import NULLS_OF_2, by_hand

F32, F16, BF16, F64, I32 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE, Dtype.INT32

# ---- formulas


def roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """A sum and a sixth of it, which is rounded; twice that for double, in which the reference itself is computed."""
    return np.abs(value) * (6 if dtype == F64 else 3) * unit(dtype) + least(dtype)


def hardsigmoid(given: Given) -> Reference:
    """1 from 3 on, 0 up to -3, else x / 6 + 1/2, which is (x + 3) / 6 and does not cancel; integers are truncated."""
    dtype, x = given.dtype, given.inputs["self"]
    if dtype == I32:
        return Reference(np.where(x >= 3, 1.0, 0.0), 0.0, dtype)
    value = np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (x + 3) / 6))
    return Reference(value, np.where(np.abs(x) < 3, roundings(dtype, value), 0.0), dtype)


def hardsigmoid_backward(given: Given) -> Reference:
    """A sixth of g between -3 and 3, else 0; of nan, which is not less than 3, too."""
    g, x = given.inputs["gradOutput"], given.inputs["self"]
    dtype = widest(given.arguments["gradOutput"].dtype, given.arguments["self"].dtype)
    inside = (x > -3) & (x < 3)
    value = np.where(inside, g / 6, 0.0)
    return Reference(value, np.where(inside, roundings(dtype, value), 0.0), dtype)


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 3.0, -7.25, 5.5, -3.0, -1.5, 0.0625),
}
INTEGERS = (-4.0, 2.0, 3.0, 0.0, 4.0, -3.0, 2.0**31 - 1, -(2.0**31))


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs, zero and the ends of the slope, exact in every dtype that is accepted."""
    return INTEGERS if dtype in cabi.INTEGER else VALUES.get(name, VALUES["self"])


EMPTY = (0, 3)
MISSING = frozenset({"Ascend310P"})
HARDSIGMOID = Operator(
    "aclnnHardsigmoid",
    {"self": Tensor(), "out": Tensor()},
    {"out": hardsigmoid},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
    missing=MISSING,
    one_format=True,
)
INPLACE_HARDSIGMOID = Operator(
    "aclnnInplaceHardsigmoid",
    {"self": Tensor()},
    {"self": hardsigmoid},
    values,
    empty={"self.shape": EMPTY},
    missing=MISSING,
)
HARDSIGMOID_BACKWARD = Operator(
    "aclnnHardsigmoidBackward",
    {"gradOutput": Tensor(), "self": Tensor(), "out": Tensor()},
    {"out": hardsigmoid_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "self.shape": EMPTY, "out.shape": EMPTY},
)

# ---- dtypes: the products that take each

FORWARD = {
    F32: ANYWHERE - MISSING,
    F16: ANYWHERE - MISSING,
    I32: ANYWHERE - MISSING,
    BF16: WITH_BF16,
    F64: HOST,
}
BACKWARD = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}
CASTS = (F32, F16, BF16, F64, *cabi.COMPLEX)  # that the host can cast a floating result to


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """The inputs' are of the set, and may differ; the result is cast to the output's."""
    inputs = (dtypes["gradOutput"], dtypes["self"])
    return all(product in BACKWARD.get(dtype, NOWHERE) for dtype in inputs) and dtypes["out"] in CASTS


# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I64 = Dtype.INT64
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)

HARDSIGMOID_CHECKS = [
    *nulls(HARDSIGMOID),
    Row("3", "an unsupported self", {"self.dtype": I64}, words=("self", "INT64", "FLOAT16")),
    Row("4", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("5", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
    Row("6", "out has another dtype", {"out.dtype": F16}, words=("out", "FLOAT16", "FLOAT")),
    Row("7", "out has another format", {"out.format": Format.NCHW}, words=("out", "format 0", "self")),
]
INPLACE_HARDSIGMOID_CHECKS = [
    *nulls(INPLACE_HARDSIGMOID),
    Row("3", "an unsupported self", {"self.dtype": I64}, words=("self", "INT64", "FLOAT16")),
    Row("4", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
]


def forward_rows(operator: Operator) -> list[Row]:
    """What both forwards refuse beside what their order says something of."""
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=("self", "DOUBLE", "host")),
        Row("3", "complex", on_all(operator, "dtype", Dtype.COMPLEX64), words=("self", "COMPLEX64")),
        Row("3", "integers, empty", {**on_all(operator, "dtype", I64), **operator.empty}, words=("self",)),
    ]


HARDSIGMOID_MORE = [
    *forward_rows(HARDSIGMOID),
    Row("5", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("5", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
    Row("6", "out of integers", {"out.dtype": I32}, words=("out", "INT32", "FLOAT")),
    Row("7", "self has another format", {"self.format": Format.FRACTAL_NZ}, words=("out", "format 2", "29", "self")),
]

BACKWARD_CHECKS = [
    *nulls(HARDSIGMOID_BACKWARD),
    Row("3", "an unsupported gradOutput", {"gradOutput.dtype": I32}, words=("gradOutput", "INT32", "FLOAT16")),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("4", "out of integers", {"out.dtype": I32}, words=("out", "INT32", "FLOAT", "cast")),
    Row("5", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
    Row("5", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("5", "out has 9 dims", {"out.shape": DIMS_9}, words=("out", "9", "8")),
    Row("6", "gradOutput has other dims", {"gradOutput.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
    Row("7", "out has other dims", {"out.shape": (4, 2)}, words=("out", "4, 2", "2, 3")),
]
BACKWARD_MORE = [
    Row("3", "bfloat16", on_all(HARDSIGMOID_BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "BFLOAT16")),
    Row("3", "float64", on_all(HARDSIGMOID_BACKWARD, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
    Row("4", "out of HIFLOAT8", {"out.dtype": Dtype.HIFLOAT8}, words=("out", "HIFLOAT8", "does not emulate")),
    Row("6", "self would broadcast", {"self.shape": (1, 3)}, words=("gradOutput", "1, 3", "2, 3")),
    Row("7", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
]
BACKWARD_ACCEPTED = [
    Row("3", "a wider gradOutput", {"self.dtype": F16}, ANYWHERE),
    Row("3", "a wider self", {"gradOutput.dtype": F16}, ANYWHERE),
    Row("3", "two 16-bit types", {"gradOutput.dtype": F16, "self.dtype": BF16}, WITH_BF16, words=("self", "BFLOAT16")),
    *(Row("4", f"out of {dtype.name}", {"out.dtype": dtype}, ANYWHERE) for dtype in (F16, BF16, F64, Dtype.COMPLEX64)),
]


def accepted(operator: Operator) -> list[Row]:
    """What is taken on every product that has the operator."""
    return [
        *(Row("-", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE) for s in ((), (3,), DIMS_8)),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
        *(BACKWARD_ACCEPTED if operator is HARDSIGMOID_BACKWARD else ()),
    ]


def any_call(draw: st.DrawFn, operator: Operator, dtypes: tuple[Dtype, ...]) -> Changes:
    """Any layout; of the gradient also three dtypes."""
    changes: dict[str, Any] = same_shape_calls(draw, operator, dtypes, 8)
    if operator is HARDSIGMOID_BACKWARD and draw(st.booleans()):
        for name, tensor in changes.items():
            layout = draw(layouts(tensor.shape, zero_stride=name != "out"))
            changes[name] = Tensor(draw(st.sampled_from(dtypes)), **layout)
    return changes


# ---- where the host differs from CANN on purpose

PAGE = "operators/hardsigmoid.md#where-the-host-differs-from-cann"
DEVIATIONS = (
    Deviation("aclnnHardsigmoidBackward", "4", "out of HIFLOAT8", PAGE),
    Deviation("aclnn(Inplace)?Hardsigmoid", ".*", ".*", PAGE, lacking=True),
)

# ---- where the rows come from

_FORWARD = by_hand(
    "activation/hard_sigmoid/op_api/aclnn_hardsigmoid.cpp",
    {"3": "CheckDtypeValid", "4": "CheckShape", "5": "CheckShape", "6": "CheckParams", "7": "CheckParams"},
    {r"\d+ dims": "CheckShape", "format .*": "CheckParams", "empty .*": "aclnnHardsigmoidGetWorkspaceSize"},
    nulls=NULLS_OF_2,
)
SOURCES = {
    "aclnnHardsigmoid": _FORWARD,
    "aclnnInplaceHardsigmoid": _FORWARD,
    "aclnnHardsigmoidBackward": by_hand(
        "activation/hard_sigmoid_grad/op_api/aclnn_hardsigmoid_backward.cpp",
        {**dict.fromkeys("34", "CheckDtypeValid"), **dict.fromkeys("567", "CheckShape")},
        {r"\d+ dims": "CheckShape", "format .*": "CheckParams", "empty .*": "aclnnHardsigmoidBackwardGetWorkspaceSize"},
    ),
}


def table(
    operator: Operator, checks: list[Row], more: list[Row], dtypes: dict[Dtype, frozenset[str]], *inputs: str
) -> Table:
    """What all have in common; the output may be the memory of these inputs."""
    return Table(
        operator,
        checks,
        more,
        accepted(operator),
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), products) for dtype, products in dtypes.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: any_call(draw, operator, tuple(dtypes)),
        sources=SOURCES[operator.api],
        accepts=backward_accepts if operator is HARDSIGMOID_BACKWARD else None,
        aliases=[("out", name) for name in inputs],
    )


TABLES = (
    table(HARDSIGMOID, HARDSIGMOID_CHECKS, HARDSIGMOID_MORE, FORWARD, "self"),
    table(INPLACE_HARDSIGMOID, INPLACE_HARDSIGMOID_CHECKS, forward_rows(INPLACE_HARDSIGMOID), FORWARD),
    table(HARDSIGMOID_BACKWARD, BACKWARD_CHECKS, BACKWARD_MORE, BACKWARD, "gradOutput", "self"),
)
