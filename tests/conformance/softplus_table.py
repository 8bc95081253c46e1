"""aclnnSoftplus, aclnnSoftplusBackward: refusals in the order of CANN's checkers, and results.

The order is that of ops-nn's aclnn_softplus.cpp and aclnn_softplus_backward.cpp; the conditions are those of the
documents aclnnSoftplus and aclnnSoftplusBackward. The numbers are ours.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.cabi import Dtype, Format, round_to
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
    Scalar,
    Table,
    Tensor,
    can_cast,
    layouts,
    least,
    nulls,
    on_all,
    same_shape_calls,
    sigmoid,
    sigmoid_roundings,
    unit,
    working,
)
from tests.conformance.provenance import by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
INTEGERS = (Dtype.INT8, Dtype.INT16, Dtype.INT32, Dtype.INT64, Dtype.UINT8, Dtype.BOOL)

# ---- formulas


def log1p_roundings(dtype: Dtype, v: np.ndarray) -> np.ndarray:
    """The relative error of log(1 + exp(-|v|)): exp 2 units (for 16 bits 4, and a 16th of a unit for every unit of v)
    and its polynomial 3, plus an approximation error of 2^-22 for FLOAT16 and 2^-16 for BFLOAT16."""
    if dtype == F64:
        return np.full_like(v, 4 * unit(dtype))
    exponential = 2 if dtype == F32 else 4 + np.minimum(np.abs(v), 105) / 16
    approximation = {F16: 2.0**-22, BF16: 2.0**-16}.get(dtype, 0.0)
    return (exponential + 3) * unit(dtype) * np.ones_like(v) + approximation


def exponent(given: Given, dtype: Dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """beta * x, its rounding error, where it exceeds the threshold (after rounding), and beta."""
    x, beta, threshold = given.inputs["self"], *(given.arguments[name].as_float for name in ("beta", "threshold"))
    with np.errstate(all="ignore"):
        v = x * beta
        exact = beta == 0 or abs(np.frexp(beta)[0]) == 0.5
        error = np.zeros_like(v) if exact else np.minimum(np.abs(v), 1000) * unit(dtype)
        return v, error, round_to(working(dtype), v) > threshold, beta


def softplus(given: Given) -> Reference:
    """(max(v, 0) + log(1 + exp(-|v|))) / beta with v = beta * x: the logarithm, the sum, the reciprocal of beta and a
    product; x where v exceeds the threshold."""
    dtype, x = given.dtype, given.inputs["self"]
    v, error, linear, beta = exponent(given, dtype)
    with np.errstate(all="ignore"):
        logarithm = np.log1p(np.exp(-np.abs(v)))
        value = (np.maximum(v, 0) + logarithm) / beta
        tolerance = logarithm * log1p_roundings(dtype, v) + sigmoid(v) * error + 2 * least(dtype)
        tolerance = tolerance / abs(beta) + 3 * np.abs(value) * unit(dtype) + least(dtype)
    tolerance = np.where(linear, 0, np.nan_to_num(tolerance))
    return Reference(np.where(linear, x, value), 2 * tolerance if dtype == F64 else tolerance, dtype)


def softplus_backward(given: Given) -> Reference:
    """g * sigmoid(v): a sigmoid and a product; g where v exceeds the threshold."""
    dtype, g = promoted(dtypes_of(given)), given.inputs["gradOutput"]
    v, error, linear, _ = exponent(given, dtype)
    s = sigmoid(v)
    tolerance = np.abs(g) * s * (sigmoid_roundings(dtype, v, 1) + sigmoid(-v) * 2 * error)
    tolerance = np.where(linear, 0, np.nan_to_num(tolerance) + (np.abs(g) + 1) * least(dtype))
    return Reference(np.where(linear, g, g * s), tolerance, dtype)


def dtypes_of(given: Given) -> dict[str, Dtype]:
    """The dtypes of the tensors, by name."""
    return {name: value.dtype for name, value in given.arguments.items() if isinstance(value, Tensor)}


def promoted(dtypes: dict[str, Dtype]) -> Dtype:
    """The gradient's compute dtype: that of both inputs, or FLOAT, or DOUBLE if one is DOUBLE."""
    g, x = dtypes["gradOutput"], dtypes["self"]
    return g if g == x else F64 if F64 in (g, x) else F32


# ---- prototypes

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "self": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625, 1.5),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero, exact in every floating dtype, and whole in the others."""
    own = VALUES.get(name, VALUES["self"])
    if dtype not in INTEGERS:
        return own
    return tuple(
        float(abs(int(value)) if dtype == Dtype.UINT8 else value > 0 if dtype == Dtype.BOOL else int(value))
        for value in own
    )


# Products are exact in float, so the same values can be used for double.
SCALARS = {"beta": Scalar(2.0), "threshold": Scalar(3.0)}

EMPTY = (0, 3)
SOFTPLUS = Operator(
    "aclnnSoftplus",
    {"self": Tensor(), **SCALARS, "out": Tensor()},
    {"out": softplus},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
)
SOFTPLUS_BACKWARD = Operator(
    "aclnnSoftplusBackward",
    {"gradOutput": Tensor(), "self": Tensor(), **SCALARS, "gradInput": Tensor()},
    {"gradInput": softplus_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "self.shape": EMPTY, "gradInput.shape": EMPTY},
    missing=frozenset({"Ascend310P"}),
)

# ---- dtypes: the products that accept each

FORWARD_DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}
GRADIENT_DTYPES = {F32: ANYWHERE, F16: ANYWHERE, F64: ANYWHERE, BF16: WITH_BF16}
BACKWARD_DTYPES = GRADIENT_DTYPES | dict.fromkeys(INTEGERS, ANYWHERE)


def forward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """The output has any dtype that self can be cast to."""
    x, out = dtypes.values()
    return product in FORWARD_DTYPES.get(x, NOWHERE) and can_cast(x, out)


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """Each is in its set; they may differ."""
    g, x, out = dtypes.values()
    sets = ((GRADIENT_DTYPES, g), (BACKWARD_DTYPES, x), (GRADIENT_DTYPES, out))
    missing = product in SOFTPLUS_BACKWARD.missing
    return not missing and all(product in accepted.get(dtype, NOWHERE) for accepted, dtype in sets)


# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

I32, C64 = Dtype.INT32, Dtype.COMPLEX64
DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)


def complex_scalars(first: str, second: str) -> list[Row]:
    """Scalars that cannot be converted to FLOAT."""
    return [
        Row(number, f"{name} complex", {f"{name}.dtype": dtype}, words=(name, dtype.name))
        for number, name in ((first, "beta"), (second, "threshold"))
        for dtype in (C64, Dtype.COMPLEX128)
    ]


SOFTPLUS_CHECKS = [
    *nulls(SOFTPLUS),
    Row("3", "integers", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    *complex_scalars("4", "5"),
    Row("6", "float to integer", {"out.dtype": I32}, words=("out", "INT32")),
    Row("7", "9 dims", on_all(SOFTPLUS, "shape", DIMS_9), words=("self", "9", "8")),
    Row("8", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
]
SOFTPLUS_MORE = [
    Row("3", "bfloat16", on_all(SOFTPLUS, "dtype", BF16), WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
    Row("3", "float64", on_all(SOFTPLUS, "dtype", F64), HOST, words=("self", "DOUBLE", "host")),
    Row("6", "float to bool", {"out.dtype": Dtype.BOOL}, words=("out", "BOOL")),
    Row("6", "float to 8-bit float", {"out.dtype": Dtype.FLOAT8_E5M2}, words=("out", "FLOAT8_E5M2")),
    Row("8", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("8", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
]
SOFTPLUS_ACCEPTED = [
    Row("6", "double output", {"out.dtype": F64}, ANYWHERE),
    Row("6", "complex output", {"out.dtype": C64}, ANYWHERE),
    Row("6", "narrower output", {"out.dtype": F16}, ANYWHERE),
]

SOFTPLUS_BACKWARD_CHECKS = [
    *nulls(SOFTPLUS_BACKWARD),
    Row("3", "an unsupported gradOutput", {"gradOutput.dtype": I32}, words=("gradOutput", "INT32", "FLOAT16")),
    Row("3", "an unsupported self", {"self.dtype": C64}, words=("self", "COMPLEX64", "FLOAT16")),
    Row("3", "an unsupported gradInput", {"gradInput.dtype": I32}, words=("gradInput", "INT32", "FLOAT16")),
    *complex_scalars("4", "4"),
    Row("5", "gradOutput has 9 dims", {"gradOutput.shape": DIMS_9}, words=("gradOutput", "9", "8")),
    Row("5", "self has 9 dims", {"self.shape": DIMS_9}, words=("self", "9", "8")),
    Row("5", "gradInput has 9 dims", {"gradInput.shape": DIMS_9}, words=("gradInput", "9", "8")),
    Row("6", "gradOutput has other dims", {"gradOutput.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
    Row("6", "gradInput has other dims", {"gradInput.shape": (3, 2)}, words=("gradInput", "3, 2", "2, 3")),
]
SOFTPLUS_BACKWARD_MORE = [
    Row("3", "bfloat16", on_all(SOFTPLUS_BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "BFLOAT16")),
    Row("3", "self bfloat16", {"self.dtype": BF16}, WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
    Row("3", "self uint16", {"self.dtype": Dtype.UINT16}, words=("self", "UINT16", "INT16")),
    Row("6", "self has other dims", {"self.shape": (3, 2)}, words=("gradOutput", "3, 2", "2, 3")),
    Row("6", "self would broadcast", {"self.shape": (1, 3)}, words=("gradOutput", "1, 3", "2, 3")),
]
SOFTPLUS_BACKWARD_ACCEPTED = [
    Row("3", "float64", on_all(SOFTPLUS_BACKWARD, "dtype", F64), ANYWHERE),
    *(Row("3", f"self {dtype.name}", {"self.dtype": dtype}, ANYWHERE) for dtype in INTEGERS),
    Row("3", "a narrower self and gradInput", {"self.dtype": F16, "gradInput.dtype": F16}, ANYWHERE),
    Row("3", "integers beside FLOAT16", {"gradOutput.dtype": F16, "self.dtype": Dtype.INT64}, ANYWHERE),
    Row("3", "a double gradInput", {"gradInput.dtype": F64}, ANYWHERE),
]


def accepted(operator: Operator) -> list[Row]:
    """Calls that either accepts on every product that has it."""
    return [
        Row(
            "-",
            "real scalars of any dtype",
            {"beta": Scalar(1, Dtype.BOOL), "threshold": Scalar(2, Dtype.INT8)},
            ANYWHERE,
        ),
        Row("-", "beta 0", {"beta.value": 0.0}, ANYWHERE),
        Row("-", "beta < 0", {"beta.value": -0.5}, ANYWHERE),
        Row("-", "threshold < 0", {"threshold.value": -1.0}, ANYWHERE),
        Row("-", "0 dims", on_all(operator, "shape", ()), ANYWHERE),
        Row("-", "8 dims", on_all(operator, "shape", DIMS_8), ANYWHERE),
        *(Row("-", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
        *(Row("-", f"empty {s}", on_all(operator, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
    ]


FINITE = st.sampled_from([1.0, 2.0, 0.5, -0.5, 1.6732632, 3.0, 0.0])


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any layout and scalars of any sign; for a gradient also inputs of two dtypes."""
    changes = same_shape_calls(draw, operator, (F32, F16, BF16), 8)
    changes.update({name: Scalar(draw(FINITE)) for name in SCALARS})
    if operator is SOFTPLUS_BACKWARD and draw(st.booleans()):
        shape = changes["self"].shape
        changes["self"] = Tensor(draw(st.sampled_from(list(BACKWARD_DTYPES))), **draw(layouts(shape, zero_stride=True)))
    return changes


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation("aclnnSoftplusBackward", ".*", r"(beta|threshold) (null|complex)", "softplus-and-hardswish"),
    Deviation("aclnnSoftplusBackward", ".*", ".*", "softplus-and-hardswish", lacking=True),
)


# ---- The sources of the rows

SOURCES = {
    "aclnnSoftplus": by_hand(
        "activation/softplus_v2/op_api/aclnn_softplus.cpp",
        {**dict.fromkeys("3456", "CheckDtype"), **dict.fromkeys("78", "CheckShape")},
        {
            "real scalars of any dtype": "CheckDtype",
            "(beta|threshold) .*|format .*": "CheckParams",
            r"\d+ dims": "CheckShape",
            "empty .*": "aclnnSoftplusGetWorkspaceSize",
        },
    ),
    "aclnnSoftplusBackward": by_hand(
        "activation/softplus_v2_grad/op_api/aclnn_softplus_backward.cpp",
        {"3": "CheckDtypeValid", **dict.fromkeys("56", "CheckShape")},
        {
            "(beta|threshold) .*|format .*": "CheckParams",
            r"\d+ dims": "CheckShape",
            "real scalars of any dtype|empty .*": "aclnnSoftplusBackwardGetWorkspaceSize",
        },
    ),
}


def table(
    operator: Operator,
    rows: tuple[list[Row], list[Row], list[Row]],
    dtypes: dict[Dtype, frozenset[str]],
    aliases: tuple[tuple[str, str], ...],
) -> Table:
    """The parts that the two tables share."""
    checks, more, own = rows
    return Table(
        operator,
        checks,
        more,
        [*own, *accepted(operator)],
        dtypes=[DtypeRow((t,) * len(operator.tensors), products - operator.missing) for t, products in dtypes.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=backward_accepts if operator is SOFTPLUS_BACKWARD else forward_accepts,
        aliases=aliases,
    )


TABLES = (
    table(SOFTPLUS, (SOFTPLUS_CHECKS, SOFTPLUS_MORE, SOFTPLUS_ACCEPTED), FORWARD_DTYPES, (("out", "self"),)),
    table(
        SOFTPLUS_BACKWARD,
        (SOFTPLUS_BACKWARD_CHECKS, SOFTPLUS_BACKWARD_MORE, SOFTPLUS_BACKWARD_ACCEPTED),
        GRADIENT_DTYPES,
        (("gradInput", "gradOutput"), ("gradInput", "self")),
    ),
)
