"""aclnnSilu, aclnnSiluBackward: refusals in the order of CANN's checkers, and results.

The order is that of ops-nn's aclnn_silu.cpp and aclnn_silu_backward.cpp; the conditions are those of the documents
aclnnSilu and aclnnSiluBackward. The numbers are ours.
"""

from __future__ import annotations

import numpy as np

from tests.cabi import Dtype, Format
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
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
    sigmoid,
    sigmoid_roundings,
)
from tests.conformance.provenance import DTYPES_OF_2, SHAPES_OF_2, by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE

# ---- formulas


def silu(given: Given) -> Reference:
    """x * sigmoid(x): a sigmoid and a product."""
    dtype, x = given.dtype, given.inputs["self"]
    value = x * sigmoid(x)
    tolerance = np.abs(value) * sigmoid_roundings(dtype, x, 1) + (np.abs(x) + 1) * least(dtype)
    return Reference(value, tolerance, dtype)


def silu_backward(given: Given) -> Reference:
    """g * s * (1 + x * (1 - s)), s = sigmoid(x): two sigmoids, two products and a sum, whose terms may cancel."""
    dtype, g, x = given.dtype, given.inputs["gradOutput"], given.inputs["self"]
    s, rest = sigmoid(x), sigmoid(-x)
    value = g * s * (1 + x * rest)
    parts = np.abs(g) * s * (1 + np.abs(x) * rest)
    least_of = (np.abs(g) * (1 + np.abs(x)) + 1) * least(dtype)
    return Reference(value, parts * (2 * sigmoid_roundings(dtype, x, 2)) + least_of, dtype)


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625, -1.28125),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero, exact in every floating dtype."""
    return VALUES.get(name, VALUES["self"])


EMPTY = (0, 3)
SILU = Operator(
    "aclnnSilu",
    {"self": Tensor(), "out": Tensor()},
    {"out": silu},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
    any_rank=True,
)
SILU_BACKWARD = Operator(
    "aclnnSiluBackward",
    {"gradOutput": Tensor(), "self": Tensor(), "gradInput": Tensor()},
    {"gradInput": silu_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "self.shape": EMPTY, "gradInput.shape": EMPTY},
    missing=frozenset({"Ascend310P"}),
)

# ---- dtypes: the products that accept each

DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I32 = Dtype.INT32
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)

SILU_CHECKS = [
    *nulls(SILU),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("3", "an unsupported out", {"out.dtype": I32}, words=("out", "INT32", "FLOAT16")),
    Row("4", "out has another dtype", {"out.dtype": F16}, words=("out", "FLOAT16", "FLOAT")),
    Row("5", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
]
SILU_MORE = [
    Row("3", "bfloat16", on_all(SILU, "dtype", BF16), WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
    Row("3", "float64", on_all(SILU, "dtype", F64), HOST, words=("self", "DOUBLE", "host")),
    Row("3", "complex", on_all(SILU, "dtype", Dtype.COMPLEX64), words=("self", "COMPLEX64")),
    Row("3", "integers, empty", {**on_all(SILU, "dtype", I32), **on_all(SILU, "shape", (0,))}, words=("self",)),
    Row("5", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("5", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
]

SILU_BACKWARD_CHECKS = [
    *nulls(SILU_BACKWARD),
    Row("3", "an unsupported gradOutput", {"gradOutput.dtype": I32}, words=("gradOutput", "INT32", "FLOAT16")),
    Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    Row("3", "an unsupported gradInput", {"gradInput.dtype": I32}, words=("gradInput", "INT32", "FLOAT16")),
    Row("4", "gradOutput has another dtype", {"gradOutput.dtype": F16}, words=("gradOutput", "FLOAT16", "gradInput")),
    Row("4", "self has another dtype", {"self.dtype": F16}, words=("self", "FLOAT16", "gradInput")),
    Row("5", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
    Row("5", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("6", "gradOutput has other dims", {"gradOutput.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
    Row("6", "self has other dims", {"self.shape": (3, 2)}, words=("self", "3, 2", "2, 3")),
]
SILU_BACKWARD_MORE = [
    Row("3", "bfloat16", on_all(SILU_BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "BFLOAT16")),
    Row("3", "float64", on_all(SILU_BACKWARD, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
    Row("4", "gradInput has another dtype", {"gradInput.dtype": F16}, words=("gradOutput", "FLOAT", "FLOAT16")),
    Row("5", "all have 9 dims", on_all(SILU_BACKWARD, "shape", DIMS_9), words=("gradOutput", "9", "8")),
    Row("6", "self would broadcast", {"self.shape": (1, 3)}, words=("self", "1, 3", "2, 3")),
    Row("6", "gradOutput would broadcast", {"gradOutput.shape": (3,)}, words=("gradOutput", "3", "2, 3")),
    Row("6", "gradInput has other dims", {"gradInput.shape": (6,)}, words=("gradOutput", "2, 3", "6")),
]


def accepted(operator: Operator, most_dims: int) -> list[Row]:
    """Calls accepted on every product that has the operator."""
    shapes = [(), (3,), DIMS_8, DIMS_9, (*DIMS_9, 1, 3, 1)]
    return [
        *(Row("-", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE) for s in shapes if len(s) <= most_dims),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
    ]


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation("aclnnSiluBackward", "4|6", r"(gradOutput|self) (has another dtype|would broadcast)", "silu-and-gelu"),
    Deviation("aclnnSiluBackward", ".*", ".*", "silu-and-gelu", lacking=True),
)


# ---- The sources of the rows

SOURCES = {
    "aclnnSilu": by_hand(
        "activation/swish/op_api/aclnn_silu.cpp",
        {"3": DTYPES_OF_2, "4": DTYPES_OF_2, "5": SHAPES_OF_2},
        {r"\d+ dims": SHAPES_OF_2, "format .*": "CheckParams", "empty .*": "aclnnSiluGetWorkspaceSize"},
    ),
    "aclnnSiluBackward": by_hand(
        "activation/silu_grad/op_api/aclnn_silu_backward.cpp",
        {**dict.fromkeys("34", "CheckDtypeValid"), **dict.fromkeys("56", "CheckShapeValid")},
        {r"\d+ dims": "CheckShapeValid", "format .*": "CheckParams", "empty .*": "aclnnSiluBackwardGetWorkspaceSize"},
    ),
}


def table(
    operator: Operator, checks: list[Row], more: list[Row], most_dims: int, aliases: tuple[tuple[str, str], ...]
) -> Table:
    """The parts that the two tables share."""
    return Table(
        operator,
        checks,
        more,
        accepted(operator, most_dims),
        dtypes=[DtypeRow((t,) * len(operator.tensors), products - operator.missing) for t, products in DTYPES.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: same_shape_calls(draw, operator, tuple(DTYPES), most_dims),
        sources=SOURCES[operator.api],
        aliases=aliases,
    )


TABLES = (
    table(SILU, SILU_CHECKS, SILU_MORE, 12, (("out", "self"),)),
    table(
        SILU_BACKWARD,
        SILU_BACKWARD_CHECKS,
        SILU_BACKWARD_MORE,
        8,
        (("gradInput", "gradOutput"), ("gradInput", "self")),
    ),
)
