"""aclnnMish, its in-place form and its gradient: what they refuse, in the order of CANN's checkers, and what they
compute.

The order is that of ops-nn's aclnn_mish.cpp and aclnn_mish_backward.cpp; the conditions are those of the documents
aclnnMish&aclnnInplaceMish and aclnnMishBackward. The numbers are ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

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
    sigmoid,
    sigmoid_roundings,
    unit,
    widest,
)
from tests.conformance.provenance import NULLS_OF_2, by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE

# ---- formulas


def tanh_of_softplus(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """t = tanh(log(1 + exp(x))) and 1 - t, fractions of e = exp(-|x|) without overflow or cancellation."""
    e = np.exp(-np.abs(x))
    lower, upper = e * (e + 2), 1 + 2 * e
    d = np.where(x > 0, upper + 2 * e * e, lower + 2)
    return np.where(x > 0, upper, lower) / d, np.where(x > 0, 2 * e * e, 2.0) / d


def roundings(dtype: Dtype, x: np.ndarray) -> np.ndarray:
    """By how much t may miss, relative to itself: its exponential at most once, as a sigmoid's, and five operations of
    the numerator, the denominator and the quotient, of which sigmoid_roundings counts three."""
    return sigmoid_roundings(dtype, x, 3)


def mish(given: Given) -> Reference:
    """x * t."""
    dtype, x = given.dtype, next(iter(given.inputs.values()))
    value = x * tanh_of_softplus(x)[0]
    return Reference(value, np.abs(value) * (roundings(dtype, x) + unit(dtype)) + (np.abs(x) + 1) * least(dtype), dtype)


def mish_backward(given: Given) -> Reference:
    """g * (t + x * (1 - t^2) * sigmoid(x)), whose parts may cancel; the second has the exponential twice."""
    g, x = np.broadcast_arrays(given.inputs["gradOutput"], given.inputs["self"])
    dtype = widest(given.arguments["gradOutput"].dtype, given.arguments["self"].dtype)
    t, rest = tanh_of_softplus(x)
    second = x * (rest * (1 + t) * sigmoid(x))
    parts = np.abs(g) * (t + np.abs(second))
    least_of = (np.abs(g) * (1 + np.abs(x)) + 1) * 4 * least(dtype)
    return Reference(g * (t + second), parts * (2 * roundings(dtype, x) + 4 * unit(dtype)) + least_of, dtype)


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625, -1.1875),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero, exact in every floating dtype."""
    return VALUES.get(name, VALUES["self"])


EMPTY = (0, 3)
MISSING = frozenset({"Ascend310P"})
MISH = Operator(
    "aclnnMish",
    {"self": Tensor(), "out": Tensor()},
    {"out": mish},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
    missing=MISSING,
)
INPLACE_MISH = Operator(
    "aclnnInplaceMish",
    {"selfRef": Tensor()},
    {"selfRef": mish},
    values,
    empty={"selfRef.shape": EMPTY},
    missing=MISSING,
)
MISH_BACKWARD = Operator(
    "aclnnMishBackward",
    {"gradOutput": Tensor(), "self": Tensor(), "gradInput": Tensor()},
    {"gradInput": mish_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "self.shape": EMPTY, "gradInput.shape": EMPTY},
    broadcasts=True,
)

# ---- dtypes: the products that take each

DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """Each is one of the set; they may differ."""
    return all(product in DTYPES.get(dtype, NOWHERE) for dtype in dtypes.values())


# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I32 = Dtype.INT32
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)

MISH_CHECKS = [
    *nulls(MISH),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("3", "an unsupported out", {"out.dtype": I32}, words=("out", "INT32", "FLOAT16")),
    Row("4", "out has another dtype", {"out.dtype": F16}, words=("out", "FLOAT16", "FLOAT")),
    Row("5", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("5", "out has 9 dims", {"out.shape": DIMS_9}, words=("out", "9", "8")),
    Row("6", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
]
INPLACE_MISH_CHECKS = [
    *nulls(INPLACE_MISH),
    Row("3", "an unsupported selfRef", {"selfRef.dtype": I32}, words=("selfRef", "INT32", "FLOAT16")),
    Row("5", "selfRef has 9 dims", {"selfRef.shape": DIMS_9}, words=("selfRef", "9", "8")),
]


def of_dtypes(operator: Operator) -> list[Row]:
    """What all refuse beside what their order says something of."""
    first = operator.source
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=(first, "BFLOAT16", "Ascend910B")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=(first, "DOUBLE", "host")),
        Row("3", "complex", on_all(operator, "dtype", Dtype.COMPLEX64), words=(first, "COMPLEX64")),
        Row("3", "integers, empty", {**on_all(operator, "dtype", I32), **operator.empty}, words=(first,)),
    ]


MISH_MORE = [
    *of_dtypes(MISH),
    Row("6", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("6", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
]
BACKWARD_CHECKS = [
    *nulls(MISH_BACKWARD),
    Row("3", "an unsupported gradOutput", {"gradOutput.dtype": I32}, words=("gradOutput", "INT32", "FLOAT16")),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("3", "an unsupported gradInput", {"gradInput.dtype": I32}, words=("gradInput", "INT32", "FLOAT16")),
    Row("5", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
    Row("5", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("5", "gradInput has 9 dims", {"gradInput.shape": DIMS_9}, words=("gradInput", "9", "8")),
    Row("6", "self has other dims", {"self.shape": (4, 3)}, words=("self", "4, 3", "2, 3", "broadcast")),
    Row("6", "gradInput has other dims", {"gradInput.shape": (3, 2)}, words=("gradInput", "3, 2", "2, 3")),
]
BACKWARD_ACCEPTED = [
    Row("6", "self is a row", {"self.shape": (3,)}, ANYWHERE),
    Row("6", "gradOutput is a number", {"gradOutput.shape": ()}, ANYWHERE),
    Row("6", "either has a size of 1", {"self.shape": (2, 1), "gradOutput.shape": (1, 3)}, ANYWHERE),
    Row(
        "6",
        "no rows of one row",
        {"gradOutput.shape": EMPTY, "self.shape": (1, 3), "gradInput.shape": EMPTY},
        ANYWHERE,
    ),
    Row("3", "a wider gradOutput", {"self.dtype": F16}, ANYWHERE),
    Row("3", "a wider self", {"gradOutput.dtype": F16}, ANYWHERE),
    Row("3", "a narrower gradInput", {"gradInput.dtype": F16}, ANYWHERE),
]


def accepted(operator: Operator) -> list[Row]:
    """What is taken on every product that has the operator."""
    return [
        *(Row("-", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE) for s in ((), (3,), DIMS_8)),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
        *(BACKWARD_ACCEPTED if operator is MISH_BACKWARD else ()),
    ]


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any layout; of the gradient also a self that lacks dimensions, and three dtypes."""
    changes: dict[str, Any] = same_shape_calls(draw, operator, tuple(DTYPES), 8)
    if operator is MISH_BACKWARD and draw(st.booleans()):
        shape = changes["self"].shape
        kept = tuple(1 if draw(st.booleans()) else size for size in shape[draw(st.integers(0, len(shape))) :])
        for name, of in (("gradOutput", shape), ("self", kept), ("gradInput", shape)):
            layout = draw(layouts(of, zero_stride=name != "gradInput"))
            changes[name] = Tensor(draw(st.sampled_from(tuple(DTYPES))), **layout)
    return changes


# ---- where the host differs from CANN on purpose

DEVIATIONS = (
    Deviation("aclnn(Inplace)?Mish", ".*", ".*", "operators/mish.md#where-the-host-differs-from-cann", lacking=True),
)

# ---- where the rows come from

_FORWARD = by_hand(
    "activation/mish/op_api/aclnn_mish.cpp",
    {**dict.fromkeys("34", "CheckDtypeValid"), **dict.fromkeys("56", "CheckShape")},
    {r"\d+ dims": "CheckShape", "format .*": "CheckParams", "empty .*": "aclnnMishGetWorkspaceSize"},
    nulls=NULLS_OF_2,
)
SOURCES = {
    "aclnnMish": _FORWARD,
    "aclnnInplaceMish": _FORWARD,
    "aclnnMishBackward": by_hand(
        "activation/mish_grad/op_api/aclnn_mish_backward.cpp",
        {"3": "CheckDtypeValid", **dict.fromkeys("56", "CheckShape")},
        {r"\d+ dims": "CheckShape", "format .*": "CheckParams", "empty .*": "aclnnMishBackwardGetWorkspaceSize"},
    ),
}


def table(operator: Operator, checks: list[Row], more: list[Row], aliases: tuple[tuple[str, str], ...] = ()) -> Table:
    """What all have in common."""
    return Table(
        operator,
        checks,
        more,
        accepted(operator),
        dtypes=[DtypeRow((t,) * len(operator.tensors), products - operator.missing) for t, products in DTYPES.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=backward_accepts if operator is MISH_BACKWARD else None,
        aliases=aliases,
    )


TABLES = (
    table(MISH, MISH_CHECKS, MISH_MORE, (("out", "self"),)),
    table(INPLACE_MISH, INPLACE_MISH_CHECKS, of_dtypes(INPLACE_MISH)),
    table(
        MISH_BACKWARD,
        BACKWARD_CHECKS,
        of_dtypes(MISH_BACKWARD),
        (("gradInput", "gradOutput"), ("gradInput", "self")),
    ),
)
