"""aclnnHardswish, its in-place form and its two gradients: refusals in the order of CANN's checkers, and results.

The order is that of ops-nn's aclnn_hardswish.cpp, aclnn_hardswish_backward.cpp and aclnn_hardswish_backward_v2.cpp; the
conditions are those of the documents aclnnHardswish&aclnnInplaceHardswish, aclnnHardswishBackward and
aclnnHardswishBackwardV2. The numbers are ours.
"""

from __future__ import annotations

import numpy as np

from tests.cabi import Dtype, Format
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
    NOWHERE,
    WITH_BF16,
    Deviation,
    DtypeRow,
    Given,
    Operator,
    Reference,
    Row,
    Table,
    Tensor,
    least,
    nulls,
    on_all,
    same_shape_calls,
    unit,
)
from tests.conformance.provenance import NULLS_OF_3, Sources, by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE

# ---- formulas


def roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """Four operations without cancellation; twice that for double, in which the reference itself is computed."""
    return np.abs(value) * (8 if dtype == F64 else 4) * unit(dtype) + least(dtype)


def hardswish(given: Given) -> Reference:
    """x from 3 on, 0 up to -3, else x * (x + 3) / 6: a sum, a rounded division by six, and two products."""
    dtype, x = given.dtype, given.inputs["self"]
    with np.errstate(invalid="ignore"):
        value = np.where(x <= -3, 0.0, np.where(x >= 3, x, x * ((x + 3) / 6)))
    tolerance = np.where(np.abs(x) < 3, roundings(dtype, value), 0.0)
    return Reference(value, tolerance, dtype)


def gradient(given: Given, zero: np.ndarray, one: np.ndarray) -> Reference:
    """g times 0, 1 or x / 3 + 0.5, i.e. (x + 1.5) / 3: a sum, a rounded division by three, and two products."""
    dtype, g, x = given.dtype, given.inputs["gradOutput"], given.inputs["self"]
    slope = np.where(zero, 0.0, np.where(one, 1.0, (x + 1.5) / 3))
    return Reference(g * slope, np.where(zero | one, 0.0, roundings(dtype, g * slope)), dtype)


def hardswish_backward(given: Given) -> Reference:
    """The curve includes -3 and 3. Comparisons with nan are false, so it has slope 1."""
    x = given.inputs["self"]
    return gradient(given, x < -3, ~(x <= 3))


def hardswish_backward_v2(given: Given) -> Reference:
    """The curve excludes -3 and 3."""
    x = given.inputs["self"]
    return gradient(given, x <= -3, ~(x < 3))


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 3.0, -7.25, 5.5, -3.0, -1.5, 0.0625),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs, zero and the curve's ends, exact in every floating dtype."""
    return VALUES.get(name, VALUES["self"])


EMPTY = (0, 3)
MISSING = frozenset({"Ascend310P"})
HARDSWISH = Operator(
    "aclnnHardswish",
    {"self": Tensor(), "out": Tensor()},
    {"out": hardswish},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
    any_rank=True,
    missing=MISSING,
)
INPLACE_HARDSWISH = Operator(
    "aclnnInplaceHardswish",
    {"self": Tensor()},
    {"self": hardswish},
    values,
    empty={"self.shape": EMPTY},
    any_rank=True,
    missing=MISSING,
)
BACKWARD_ARGUMENTS = {"gradOutput": Tensor(), "self": Tensor(), "out": Tensor()}
BACKWARD_EMPTY = {"gradOutput.shape": EMPTY, "self.shape": EMPTY, "out.shape": EMPTY}
HARDSWISH_BACKWARD = Operator(
    "aclnnHardswishBackward",
    BACKWARD_ARGUMENTS,
    {"out": hardswish_backward},
    values,
    empty=BACKWARD_EMPTY,
    missing=MISSING,
)
HARDSWISH_BACKWARD_V2 = Operator(
    "aclnnHardswishBackwardV2",
    BACKWARD_ARGUMENTS,
    {"out": hardswish_backward_v2},
    values,
    empty=BACKWARD_EMPTY,
    missing=MISSING,
)

# ---- dtypes: the products that accept each

DTYPES = {F32: ANYWHERE - MISSING, F16: ANYWHERE - MISSING, BF16: WITH_BF16, F64: HOST}


def forward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """Each is in the set; they may differ."""
    return all(product in DTYPES.get(dtype, NOWHERE) for dtype in dtypes.values())


# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I32 = Dtype.INT32
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)

HARDSWISH_CHECKS = [
    *nulls(HARDSWISH),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("3", "an unsupported out", {"out.dtype": I32}, words=("out", "INT32", "FLOAT16")),
    Row("4", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
]
INPLACE_HARDSWISH_CHECKS = [
    *nulls(INPLACE_HARDSWISH),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
]


def forward_rows(operator: Operator) -> list[Row]:
    """Refusals of both forwards, in addition to the ordered checks."""
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=("self", "DOUBLE", "host")),
        Row("3", "complex", on_all(operator, "dtype", Dtype.COMPLEX64), words=("self", "COMPLEX64")),
        Row("3", "integers, empty", {**on_all(operator, "dtype", I32), **operator.empty}, words=("self",)),
    ]


HARDSWISH_MORE = [
    *forward_rows(HARDSWISH),
    Row("3", "a double out", {"out.dtype": F64}, HOST, words=("out", "DOUBLE", "host")),
    Row("4", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("4", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
]


def backward_checks(operator: Operator) -> list[Row]:
    """The checks of both gradients, which test the dtypes of gradOutput and self in either order."""
    unsupported = [
        Row("3", f"an unsupported {name}", {f"{name}.dtype": I32}, words=(name, "INT32", "FLOAT16"))
        for name in ("gradOutput", "self")
    ]
    return [
        *nulls(operator),
        *(unsupported if operator is HARDSWISH_BACKWARD_V2 else reversed(unsupported)),
        Row("4", "gradOutput has another dtype", {"gradOutput.dtype": F16}, words=("gradOutput", "FLOAT16", "self")),
        Row("5", "out has another dtype", {"out.dtype": F16}, words=("out", "FLOAT16", "self")),
        Row("6", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
        Row("6", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
        Row("7", "gradOutput has other dims", {"gradOutput.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
        Row("8", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
    ]


def backward_more(operator: Operator) -> list[Row]:
    """Failures of both gradients without a defined order."""
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=("BFLOAT16", "Ascend910B")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=("DOUBLE", "host")),
        Row("4", "self has another dtype", {"self.dtype": F16}, words=("gradOutput", "FLOAT", "FLOAT16")),
        Row("7", "self has other dims", {"self.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
        Row("7", "self would broadcast", {"self.shape": (1, 3)}, words=("gradOutput", "1, 3", "2, 3")),
        Row("8", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    ]


def accepted(operator: Operator) -> list[Row]:
    """Calls accepted on every product that has the operator."""
    shapes = [(), (3,), DIMS_8, *([DIMS_9] if operator.any_rank else [])]
    other = [Row("3", "a narrower out", {"out.dtype": F16}, ANYWHERE)] if operator is HARDSWISH else []
    return [
        *other,
        *(Row("-", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE) for s in shapes),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
    ]


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation(
        "aclnn(Inplace)?Hardswish|aclnnHardswishBackward(V2)?", ".*", ".*", "softplus-and-hardswish", lacking=True
    ),
)


# ---- The sources of the rows

_HARDSWISH = by_hand(
    "activation/hard_swish/op_host/op_api/aclnn_hardswish.cpp",
    {"3": "CheckDtypeValid", "4": "CheckShape"},
    {r"\d+ dims": "CheckShape", "format .*": "CheckParams", "empty .*": "aclnnHardswishGetWorkspaceSize"},
)


def _gradient(file: str, stage_1: str) -> Sources:
    """The table of either gradient."""
    return by_hand(
        file,
        {**dict.fromkeys("345", "CheckDtypeValid"), **dict.fromkeys("678", "CheckShapeValid")},
        {r"\d+ dims": "CheckShapeValid", "format .*": "CheckParams", "empty .*": stage_1},
        nulls=NULLS_OF_3,
    )


SOURCES = {
    "aclnnHardswish": _HARDSWISH,
    "aclnnInplaceHardswish": _HARDSWISH,
    "aclnnHardswishBackward": _gradient(
        "activation/hard_swish_grad/op_host/op_api/aclnn_hardswish_backward.cpp",
        "aclnnHardswishBackwardGetWorkspaceSize",
    ),
    "aclnnHardswishBackwardV2": _gradient(
        "activation/hard_swish_grad_v2/op_host/op_api/aclnn_hardswish_backward_v2.cpp",
        "aclnnHardswishBackwardV2GetWorkspaceSize",
    ),
}


def table(operator: Operator, checks: list[Row], more: list[Row], aliases: tuple[tuple[str, str], ...] = ()) -> Table:
    """The parts that all tables share."""
    most_dims = 12 if operator.any_rank else 8
    return Table(
        operator,
        checks,
        more,
        accepted(operator),
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), products) for dtype, products in DTYPES.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: same_shape_calls(draw, operator, tuple(DTYPES), most_dims),
        sources=SOURCES[operator.api],
        accepts=forward_accepts if operator is HARDSWISH else None,
        aliases=aliases,
    )


TABLES = (
    table(HARDSWISH, HARDSWISH_CHECKS, HARDSWISH_MORE, (("out", "self"),)),
    table(INPLACE_HARDSWISH, INPLACE_HARDSWISH_CHECKS, forward_rows(INPLACE_HARDSWISH)),
    *(
        table(operator, backward_checks(operator), backward_more(operator), (("out", "gradOutput"), ("out", "self")))
        for operator in (HARDSWISH_BACKWARD, HARDSWISH_BACKWARD_V2)
    ),
)
