"""aclnnGelu, aclnnGeluBackward and their V2: refusals in the order of CANN's checkers, and results.

The order is that of ops-nn's aclnn_gelu.cpp, aclnn_gelu_backward.cpp, aclnn_gelu_v2.cpp and aclnn_gelu_backward_v2.cpp;
the conditions are those of the documents of these names. The numbers are ours.
"""

from __future__ import annotations

import math
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
    sigmoid,
    sigmoid_roundings,
    unit,
    widest,
)
from tests.conformance.provenance import Source, by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE

# ---- formulas

LINEAR = math.sqrt(8 / math.pi)
CUBIC = 0.044715 * LINEAR
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def exponential(x: np.ndarray) -> np.ndarray:
    """The exponent of the normal distribution, clamped to the range of float or double."""
    return np.minimum(x * x / 2, 1000.0)


def tail_roundings(dtype: Dtype, x: np.ndarray) -> np.ndarray:
    """The relative error of the normal distribution's tail: the exponential and its exponent, the polynomial (5 units
    in float, 21 in 16 bits; 3 of double's erfc, and its rounded argument), and a product."""
    if dtype == F64:
        return 2 * (4 + 2 * exponential(x)) * unit(dtype)
    exponent = np.minimum(exponential(x), 105)
    return (8 + exponent if dtype == F32 else 26 + exponent * 17 / 16) * unit(dtype)


def gelu(dtype: Dtype, x: np.ndarray) -> Reference:
    """x * Phi(x): the tail, its distance from 1 where x > 0, and a product."""
    tail, below = erfc(np.abs(x) * math.sqrt(0.5)) / 2, erfc(x * -math.sqrt(0.5)) / 2
    value = x * below
    tolerance = np.abs(x) * (tail * tail_roundings(dtype, x) + 2 * below * unit(dtype) + least(dtype)) + least(dtype)
    return Reference(value, 2 * tolerance if dtype == F64 else tolerance, dtype)


def gelu_backward(dtype: Dtype, g: np.ndarray, x: np.ndarray) -> Reference:
    """g * (Phi(x) + x * phi(x)): the parts, their products and sum."""
    tail, below = erfc(np.abs(x) * math.sqrt(0.5)) / 2, erfc(x * -math.sqrt(0.5)) / 2
    density = x * np.exp(-exponential(x)) * math.sqrt(0.5 / math.pi)
    roundings = tail * tail_roundings(dtype, x) + np.abs(density) * (tail_roundings(dtype, x) + 2 * unit(dtype))
    roundings += 3 * (below + np.abs(density)) * unit(dtype) + (1 + np.abs(x)) * least(dtype)
    tolerance = np.abs(g) * roundings + least(dtype)
    return Reference(g * (below + density), 2 * tolerance if dtype == F64 else tolerance, dtype)


def exponent_of(x: np.ndarray) -> np.ndarray:
    """Twice the hyperbolic tangent's argument; its sigmoid is used."""
    return x * (LINEAR + CUBIC * np.minimum(x * x, 1e300))


def tanh_roundings(dtype: Dtype, x: np.ndarray) -> np.ndarray:
    """The error of the sigmoid, whose exponent has a coefficient's rounding and three more."""
    v = np.minimum(np.abs(exponent_of(x)), 105 if dtype != F64 else 745)
    return sigmoid_roundings(dtype, v, 1) + 4 * v * sigmoid(-v) * unit(dtype) * (2 if dtype == F64 else 1)


def gelu_by_tanh(dtype: Dtype, x: np.ndarray) -> Reference:
    """x * sigmoid(2 u)."""
    s = sigmoid(exponent_of(x))
    falling = 1 + 4 * np.minimum(np.abs(exponent_of(x)), 745) * (x < 0)
    tolerance = np.abs(x) * s * (tanh_roundings(dtype, x) + falling * unit(dtype)) + (np.abs(x) + 1) * least(dtype)
    return Reference(x * s, 2 * tolerance if dtype == F64 else tolerance, dtype)


def gelu_by_tanh_backward(dtype: Dtype, g: np.ndarray, x: np.ndarray) -> Reference:
    """g * (s + x * s * (1 - s) * d 2u/dx), s = sigmoid(2 u)."""
    v = exponent_of(x)
    s, rest = sigmoid(v), sigmoid(-v)
    slope = LINEAR + 3 * CUBIC * np.minimum(x * x, 1e6)
    second = x * s * rest * slope
    roundings = (10 + 8 * np.minimum(np.abs(v), 745)) * unit(dtype) + 2 * tanh_roundings(dtype, x)
    tolerance = np.abs(g) * (s + np.abs(second)) * roundings + (1 + np.abs(g) * (1 + np.abs(x) * slope)) * least(dtype)
    return Reference(g * (s + second), 2 * tolerance if dtype == F64 else tolerance, dtype)


def computed(given: Given) -> Dtype:
    """The promoted dtype of the inputs."""
    return promoted({name: value.dtype for name, value in given.arguments.items() if isinstance(value, Tensor)})


# Integers that are promoted to the floating dtype of the other input.
INTEGERS = (Dtype.BOOL, Dtype.UINT8, Dtype.INT8, Dtype.INT16, Dtype.INT32, Dtype.INT64)


def promoted(dtypes: dict[str, Dtype]) -> Dtype:
    """The promoted dtype of gradOutput and self (opbase, PromoteType); UNDEFINED if it is not supported."""
    g, x = dtypes["gradOutput"], dtypes["self"]
    if g == x:
        return g
    floating = {g, x} - set(INTEGERS)
    if not floating or not floating <= {F16, BF16, F32, F64}:
        return Dtype.DT_UNDEFINED
    return widest(*floating)


def backward(given: Given) -> Reference:
    """aclnnGeluBackward, and aclnnGeluBackwardV2 with either formula."""
    formula = gelu_backward if given.arguments.get("approximate", "tanh") == "none" else gelu_by_tanh_backward
    g, x = np.broadcast_arrays(given.inputs["gradOutput"], given.inputs["self"])
    return formula(computed(given), g, x)


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 0.5, -4.25, 3.0, -0.75, 0.0625),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero, exact in every floating dtype."""
    return VALUES.get(name, VALUES["self"])


EMPTY = (0, 3)
GELU = Operator(
    "aclnnGelu",
    {"self": Tensor(), "out": Tensor()},
    {"out": lambda given: gelu_by_tanh(given.dtype, given.inputs["self"])},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
)
GELU_V2 = Operator(
    "aclnnGeluV2",
    {"x": Tensor(), "approximate": 0, "y": Tensor()},
    {"y": lambda given: (gelu_by_tanh if given.arguments["approximate"] else gelu)(given.dtype, given.inputs["x"])},
    values,
    empty={"x.shape": EMPTY, "y.shape": EMPTY},
    any_rank=True,
)
EMPTY_BACKWARD = {"gradOutput.shape": EMPTY, "self.shape": EMPTY, "gradInput.shape": EMPTY}
GELU_BACKWARD = Operator(
    "aclnnGeluBackward",
    {"gradOutput": Tensor(), "self": Tensor(), "gradInput": Tensor()},
    {"gradInput": backward},
    values,
    empty=EMPTY_BACKWARD,
    broadcasts=True,
)
GELU_BACKWARD_V2 = Operator(
    "aclnnGeluBackwardV2",
    {"gradOutput": Tensor(), "self": Tensor(), "approximate": "none", "gradInput": Tensor()},
    {"gradInput": backward},
    values,
    empty=EMPTY_BACKWARD,
    any_rank=True,
    broadcasts=True,
)

# ---- dtypes: the products that accept each

DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}


def takes(product: str, *dtypes: Dtype) -> bool:
    """True if a product accepts all of them."""
    return all(product in DTYPES.get(dtype, NOWHERE) for dtype in dtypes)


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """The promoted dtype of the inputs is in the set; the output has any dtype that the host casts to."""
    casts = (F32, F16, BF16, F64, Dtype.INT8, Dtype.INT32, *cabi.COMPLEX)
    return takes(product, promoted(dtypes)) and dtypes["gradInput"] in casts


def backward_v2_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """The output has the inputs' promoted dtype, which is in the set."""
    return takes(product, promoted(dtypes)) and dtypes["gradInput"] == promoted(dtypes)


# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I32, U16, C64, HIF8 = Dtype.INT32, Dtype.UINT16, Dtype.COMPLEX64, Dtype.HIFLOAT8
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)
PRIVATE = (
    *(Format.NC1HWC0, Format.FRACTAL_Z, Format.NC1HWC0_C04, Format.FRACTAL_NZ, Format.NDC1HWC0, Format.FRACTAL_Z_3D),
    *(Format.FRACTAL_NZ_C0_16, Format.FRACTAL_NZ_C0_32, Format.FRACTAL_NZ_C0_2, Format.FRACTAL_NZ_C0_4),
    Format.FRACTAL_NZ_C0_8,
)


def forward_rows(operator: Operator, into: str, out: str) -> list[Row]:
    """Refusals of both forwards, in addition to the ordered checks."""
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=(into, "BFLOAT16", "Ascend910B")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=(into, "DOUBLE", "host")),
        Row("-", "out has another rank", {f"{out}.shape": (6,)}, words=(out, "6", "2, 3")),
        Row("-", "out is wider", {f"{out}.dtype": F64}, words=(out, "DOUBLE", "FLOAT")),
    ]


def backward_rows(operator: Operator) -> list[Row]:
    """The same for both backwards."""
    return [
        Row("3", "bfloat16", on_all(operator, "dtype", BF16), WITH_BF16, words=("gradOutput", "BFLOAT16")),
        Row("3", "float64", on_all(operator, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
        Row("3", "an unsupported self", {"self.dtype": C64}, words=("self", "COMPLEX64", "FLOAT16")),
        Row("3", "both of integers", {"gradOutput.dtype": I32, "self.dtype": I32}, words=("gradOutput", "INT32")),
        Row("3", "two integers", {"gradOutput.dtype": I32, "self.dtype": Dtype.INT8}, words=("self", "INT8", "INT32")),
        Row(
            "3",
            "bfloat16 beside an integer",
            {**on_all(operator, "dtype", BF16), "self.dtype": I32},
            WITH_BF16,
            words=("gradOutput", "BFLOAT16"),
        ),
        *(
            Row("3", f"{dtype.name} beside FLOAT", {"self.dtype": dtype}, words=("self", "FLOAT8"))
            for dtype in (HIF8, Dtype.FLOAT8_E5M2, Dtype.FLOAT8_E4M3FN)
        ),
        Row("5", "sizes 2 and 3", {"self.shape": (3, 3)}, words=("self", "3, 3", "2, 3", "broadcast")),
    ]


CHECKS = {
    GELU: [
        *nulls(GELU),
        Row("3", "an unsupported self", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
        Row("3", "out has another dtype", {"out.dtype": F16}, words=("out", "FLOAT16", "FLOAT")),
        Row("4", "a private format of self", {"self.format": Format.FRACTAL_NZ}, words=("self", "29", "ND")),
        Row("4", "a private format of out", {"out.format": Format.NC1HWC0}, words=("out", "3", "ND")),
        Row("5", "9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
        Row("6", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
    ],
    GELU_V2: [
        *nulls(GELU_V2),
        Row("3", "y has another dtype", {"y.dtype": F16}, words=("y", "FLOAT16", "FLOAT")),
        Row("3", "unsupported dtypes", on_all(GELU_V2, "dtype", I32), words=("x", "INT32", "FLOAT16")),
        Row("4", "y has other dims", {"y.shape": (3, 2)}, words=("y", "3, 2", "2, 3")),
        Row("5", "approximate 2", {"approximate": 2}, words=("approximate", "2", "0")),
    ],
    GELU_BACKWARD: [
        *nulls(GELU_BACKWARD),
        Row("3", "an unsupported gradOutput", {"gradOutput.dtype": U16}, words=("gradOutput", "UINT16", "FLOAT16")),
        Row("3", "gradInput of HIFLOAT8", {"gradInput.dtype": HIF8}, words=("gradInput", "HIFLOAT8", "does not cast")),
        Row("4", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
        Row("4", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
        Row("5", "self has other dims", {"self.shape": (4, 3)}, words=("self", "4, 3", "2, 3", "broadcast")),
        Row("5", "gradInput has other dims", {"gradInput.shape": (3, 2)}, words=("gradInput", "3, 2", "2, 3")),
    ],
    GELU_BACKWARD_V2: [
        *nulls(GELU_BACKWARD_V2),
        Row("3", "an unsupported gradOutput", {"gradOutput.dtype": U16}, words=("gradOutput", "UINT16", "FLOAT16")),
        Row("3", "gradInput has another dtype", {"gradInput.dtype": F16}, words=("gradInput", "FLOAT16", "FLOAT")),
        Row("5", "self has other dims", {"self.shape": (4, 3)}, words=("self", "4, 3", "2, 3", "broadcast")),
        Row("5", "gradInput has other dims", {"gradInput.shape": (3, 2)}, words=("gradInput", "3, 2", "2, 3")),
        Row("6", "an unknown formula", {"approximate": "erf"}, words=("approximate", "erf", "tanh")),
    ],
}

MORE = {
    GELU: [
        *forward_rows(GELU, "self", "out"),
        *(Row("4", f"format {f.name}", on_all(GELU, "format", f), words=("self", str(int(f)))) for f in PRIVATE),
        Row("5", "both have 9 dims", on_all(GELU, "shape", DIMS_9), words=("self", "9", "8")),
    ],
    GELU_V2: [
        *forward_rows(GELU_V2, "x", "y"),
        Row("5", "approximate -1", {"approximate": -1}, words=("approximate", "-1", "0")),
    ],
    GELU_BACKWARD: [
        *backward_rows(GELU_BACKWARD),
        Row("4", "all have 9 dims", on_all(GELU_BACKWARD, "shape", DIMS_9), words=("gradOutput", "9", "8")),
    ],
    GELU_BACKWARD_V2: [
        *backward_rows(GELU_BACKWARD_V2),
        Row("3", "gradInput narrower than promoted", {"self.dtype": F16, "gradInput.dtype": F16}, words=("gradInput",)),
        Row("6", "no formula", {"approximate": ""}, words=("approximate", "none")),
    ],
}

BROADCAST = [
    Row("5", "self is a row", {"self.shape": (3,)}, ANYWHERE),
    Row("5", "gradOutput is a number", {"gradOutput.shape": ()}, ANYWHERE),
    Row("5", "self has a size of 1", {"self.shape": (2, 1)}, ANYWHERE),
    Row("5", "either has a size of 1", {"self.shape": (2, 1), "gradOutput.shape": (1, 3)}, ANYWHERE),
    Row(
        "5",
        "either lacks a dimension",
        {"gradOutput.shape": (4, 1, 3), "self.shape": (2, 1), "gradInput.shape": (4, 2, 3)},
        ANYWHERE,
    ),
    Row(
        "5",
        "no rows of one row",
        {"gradOutput.shape": (0, 3), "self.shape": (1, 3), "gradInput.shape": EMPTY},
        ANYWHERE,
    ),
    Row("3", "a wider gradOutput", {"self.dtype": F16}, ANYWHERE),
    Row("3", "a wider self", {"gradOutput.dtype": F16}, ANYWHERE),
    Row("3", "two 16-bit types", {"gradOutput.dtype": F16, "self.dtype": BF16}, ANYWHERE),
    Row("3", "bfloat16 beside float", {"self.dtype": BF16}, ANYWHERE),
    *(Row("3", f"{dtype.name} beside FLOAT", {"self.dtype": dtype}, ANYWHERE) for dtype in INTEGERS),
    Row(
        "3",
        "an integer beside FLOAT16",
        {"gradOutput.dtype": I32, "self.dtype": F16, "gradInput.dtype": F16},
        ANYWHERE,
    ),
]

ACCEPTED: dict[Operator, list[Row]] = {
    GELU: [],
    GELU_V2: [Row("5", "approximate 1", {"approximate": 1}, ANYWHERE)],
    GELU_BACKWARD: [
        *BROADCAST,
        *(
            Row("3", f"gradInput of {dtype.name}", {"gradInput.dtype": dtype}, ANYWHERE)
            for dtype in (F16, BF16, F64, I32, C64)
        ),
    ],
    GELU_BACKWARD_V2: [*BROADCAST, Row("6", "tanh", {"approximate": "tanh"}, ANYWHERE)],
}


def accepted(operator: Operator) -> list[Row]:
    """Calls accepted on every product."""
    shapes = [(), (3,), DIMS_8, *([DIMS_9] if operator.any_rank else [])]
    formats = [f for f in Format if operator is not GELU or f not in PRIVATE]
    return [
        *ACCEPTED[operator],
        *(Row("-", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE) for s in shapes),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in formats),
    ]


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any layout and formula; for a backward also inputs with missing dimensions and two dtypes."""
    changes: dict[str, Any] = same_shape_calls(draw, operator, tuple(DTYPES), 8)
    if operator is GELU_V2:
        changes["approximate"] = draw(st.integers(0, 1))
    if operator is GELU_BACKWARD_V2:
        changes["approximate"] = draw(st.sampled_from(["none", "tanh"]))
    if operator in (GELU_BACKWARD, GELU_BACKWARD_V2) and draw(st.booleans()):
        shape, dtype = changes["self"].shape, draw(st.sampled_from(tuple(DTYPES)))
        kept = shape[draw(st.integers(0, len(shape))) :]
        kept = tuple(1 if draw(st.booleans()) else size for size in kept)
        changes["self"] = Tensor(dtype, **draw(layouts(kept, zero_stride=True)))
        dtypes = {"gradOutput": changes["gradOutput"].dtype, "self": dtype}
        out = promoted(dtypes) if operator is GELU_BACKWARD_V2 else draw(st.sampled_from(tuple(DTYPES)))
        changes["gradInput"] = Tensor(out, **draw(layouts(shape, zero_stride=False)))
    return changes


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation("aclnnGeluBackward(V2)?", "3", r"(HIF|F)LOAT8\w* beside FLOAT|gradInput of HIFLOAT8", "silu-and-gelu"),
    Deviation("aclnnGeluV2", "5", r"approximate (2|-1)", "silu-and-gelu"),
)


# ---- The sources of the rows

_FORWARD: dict[str, str | Source] = {
    "out is wider": "CheckDtypeValid",
    r"out has another rank|\d+ dims": "CheckShape",
}
_GRADIENT: dict[str, str | Source] = {r"\d+ dims": "CheckShape", "format .*": "CheckParams"}
SOURCES = {
    "aclnnGelu": by_hand(
        "activation/gelu/op_api/aclnn_gelu.cpp",
        {"3": "CheckDtypeValid", "4": "CheckFormat", "5": "CheckShape", "6": "CheckShape"},
        {**_FORWARD, "format .*": "CheckFormat", "empty .*": "aclnnGeluGetWorkspaceSize"},
    ),
    "aclnnGeluV2": by_hand(
        "activation/gelu_v2/op_api/aclnn_gelu_v2.cpp",
        {"3": "CheckDtypeValid", "4": "CheckShape"},
        {**_FORWARD, "format .*": "CheckParams", "empty .*": "aclnnGeluV2GetWorkspaceSize"},
    ),
    "aclnnGeluBackward": by_hand(
        "activation/gelu_grad/op_api/aclnn_gelu_backward.cpp",
        {"3": "CheckPromoteType", "4": "CheckShape", "5": "CheckShape"},
        {**_GRADIENT, "empty .*": "aclnnGeluBackwardGetWorkspaceSize"},
    ),
    "aclnnGeluBackwardV2": by_hand(
        "activation/gelu_grad_v2/op_api/aclnn_gelu_backward_v2.cpp",
        {"3": "CheckPromoteType", "5": "CheckShape", "6": "CheckAttrValue"},
        {**_GRADIENT, "empty .*": "aclnnGeluBackwardV2GetWorkspaceSize"},
    ),
}


def table(operator: Operator) -> Table:
    """The parts that the four tables share."""
    accepts = {GELU_BACKWARD: backward_accepts, GELU_BACKWARD_V2: backward_v2_accepts}.get(operator)
    out = next(iter(operator.outputs))
    return Table(
        operator,
        CHECKS[operator],
        MORE[operator],
        accepted(operator),
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), products) for dtype, products in DTYPES.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=accepts,
        aliases=[(out, name) for name in operator.inputs],
    )


TABLES = tuple(table(operator) for operator in (GELU, GELU_BACKWARD, GELU_V2, GELU_BACKWARD_V2))
