"""aclnnElu, aclnnInplaceElu, aclnnEluBackward: refusals in the order of CANN's checks, and results."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests import cabi
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
    exp_roundings,
    nulls,
    on_all,
    one_rounding,
    same_shape_calls,
    some_roundings,
    working,
)
from tests.conformance.provenance import by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
I32, I8 = Dtype.INT32, Dtype.INT8

# ---- formulas (the documents of aclnnElu and aclnnEluBackward)


def in_range(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """An exponential with the working dtype's overflow and underflow, otherwise unrounded."""
    rounded = round_to(working(dtype), value)
    return np.where(np.isinf(rounded) | (rounded == 0), rounded, value)


def exp_error(dtype: Dtype, factor: np.ndarray, exponent: np.ndarray, exact: bool) -> np.ndarray:
    """The error of factor * exp if the exponent is a rounded product, or if exp is subnormal."""
    bits, least = (53, 2.0**-1074) if dtype == F64 else (24, 2.0**-149)
    growth = 0.0 if exact else np.nan_to_num(np.exp(exponent) * np.abs(exponent) * 2.0**-bits)
    return np.abs(factor) * (growth + least)


def power_of_two(value: float) -> bool:
    """True if a product with the value is exact."""
    return bool(abs(np.frexp(value)[0]) == 0.5)


def elu_backward(given: Given) -> Reference:
    """v <= 0: g * inputScale * (v + alpha * scale) from a result, g * inputScale * alpha * scale * exp(v * inputScale)
    from an input; else, and for NaN, g * scale. alpha * scale is rounded once, as in the kernel."""
    dtype, g, v = given.dtype, given.inputs["gradOutput"], given.inputs["selfOrResult"]
    alpha, scale, input_scale = (given.arguments[name].as_float for name in ("alpha", "scale", "inputScale"))
    coefficient = round_to(working(dtype), alpha * scale)
    if given.arguments["isResult"]:
        negative = g * input_scale * (v + coefficient)
        tolerance = some_roundings(dtype, negative)
    else:
        factor = g * input_scale * coefficient
        exponent = v * input_scale
        negative = factor * in_range(dtype, np.exp(exponent))
        tolerance = exp_roundings(dtype, negative) + exp_error(dtype, factor, exponent, power_of_two(input_scale))
    positive = g * scale
    branch = v <= 0
    tolerance = np.where(branch, tolerance, one_rounding(dtype, positive))
    return Reference(np.where(branch, negative, positive), tolerance, dtype)


def elu(given: Given) -> Reference:
    """x > 0: scale * x; else alpha * scale * (exp(inputScale * x) - 1). When alpha or inputScale is inf or NaN:
    threshold(x, 0, -alpha) * scale, through float."""
    dtype, x = given.dtype, next(iter(given.inputs.values()))
    alpha, scale, input_scale = (given.arguments[name].as_float for name in ("alpha", "scale", "inputScale"))
    positive = x * scale
    if np.isfinite(alpha) and np.isfinite(input_scale):
        coefficient = np.full_like(x, alpha * scale)
        negative = coefficient * in_range(dtype, np.expm1(x * input_scale))
        tolerance = exp_roundings(dtype, negative)
        tolerance += exp_error(dtype, coefficient, x * input_scale, power_of_two(input_scale))
        tolerance = np.where(x > 0, one_rounding(dtype, positive), tolerance)
        return Reference(np.where(x > 0, positive, negative), tolerance, dtype)
    value = np.where(x > 0, positive, -alpha * scale)
    return Reference(value, cabi.ulp(F32, value) / 2, dtype)  # a double may pass through float or stay double


# ---- prototypes (the functions' documents)

VALUES = {
    "gradOutput": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "selfOrResult": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero, exact in every floating dtype."""
    return VALUES["gradOutput" if name == "gradOutput" else "selfOrResult"]


# Products are exact in float, so the same values can be used for double.
SCALARS = {"alpha": Scalar(1.5), "scale": Scalar(0.75), "inputScale": Scalar(0.5)}

EMPTY = (0, 3)
ELU = Operator(
    "aclnnElu",
    {"self": Tensor(), **SCALARS, "out": Tensor()},
    {"out": elu},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
)
INPLACE_ELU = Operator(
    "aclnnInplaceElu", {"selfRef": Tensor(), **SCALARS}, {"selfRef": elu}, values, empty={"selfRef.shape": EMPTY}
)
ELU_BACKWARD = Operator(
    "aclnnEluBackward",
    {"gradOutput": Tensor(), **SCALARS, "isResult": False, "selfOrResult": Tensor(), "gradInput": Tensor()},
    {"gradInput": elu_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "selfOrResult.shape": EMPTY, "gradInput.shape": EMPTY},
)

# ---- dtypes: the products that accept each (CheckDtypeValid of CANN's checkers)

BACKWARD_DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}
FORWARD_DTYPES = {F32: ANYWHERE, F16: ANYWHERE, BF16: ANYWHERE, F64: ANYWHERE}

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

DIMS_8 = (2, 1, 2, 1, 2, 1, 2, 1)
DIMS_9 = (*DIMS_8, 2)


def complex_scalars(number: str, order: tuple[str, ...]) -> list[Row]:
    """Scalars that cannot be converted to FLOAT."""
    return [
        Row(number, f"{name} complex", {f"{name}.dtype": dtype}, words=(name, dtype.name))
        for name in order
        for dtype in (Dtype.COMPLEX64, Dtype.COMPLEX128)
    ]


ELU_BACKWARD_CHECKS = [
    *nulls(ELU_BACKWARD),
    Row("3", "selfOrResult has another dtype", {"selfOrResult.dtype": F16}, words=("selfOrResult", "FLOAT16")),
    Row("4", "integers", on_all(ELU_BACKWARD, "dtype", I32), words=("gradOutput", "INT32", "FLOAT16")),
    *complex_scalars("5", ("alpha", "scale", "inputScale")),
    Row("6", "float to integer", {"gradInput.dtype": I32}, words=("gradInput", "INT32")),
    Row("6", "float to bool", {"gradInput.dtype": Dtype.BOOL}, words=("gradInput", "BOOL")),
    Row("7", "selfOrResult has other dims", {"selfOrResult.shape": (3, 2)}, words=("selfOrResult", "3, 2", "2, 3")),
    Row("7", "selfOrResult has another rank", {"selfOrResult.shape": (6,)}, words=("selfOrResult", "6", "2, 3")),
    Row("7", "selfOrResult would broadcast", {"selfOrResult.shape": (1, 3)}, words=("selfOrResult", "1, 3", "2, 3")),
    Row("8", "gradInput has other dims", {"gradInput.shape": (2, 4)}, words=("gradInput", "2, 3")),
    Row("8", "gradInput has another rank", {"gradInput.shape": (2, 3, 1)}, words=("gradInput", "2, 3")),
    Row("8", "gradInput empty", {"gradInput.shape": (0, 3)}, words=("gradInput", "0, 3")),
    Row("9", "9 dims", on_all(ELU_BACKWARD, "shape", DIMS_9), words=("gradOutput", "9", "8")),
    Row("10", "a result, alpha < 0", {"isResult": True, "alpha.value": -1.0}, words=("alpha", "-1")),
    Row("10", "a result, alpha = -inf", {"isResult": True, "alpha.value": -np.inf}, words=("alpha", "-inf")),
]

# Failures whose words or status depend on the product, or that share an argument with another check.
# CANN's rule of casts allows these outputs of FLOAT (opbase, CanCast); the host does not compute with them.
UNEMULATED = (Dtype.INT4, Dtype.UINT1, Dtype.STRING, Dtype.HIFLOAT8, Dtype.FLOAT8_E5M2)


def unemulated(number: str, out: str) -> list[Row]:
    """Outputs that are refused for that reason."""
    return [
        Row(number, f"{out} of {d.name}", {f"{out}.dtype": d}, words=(out, d.name, "does not emulate"))
        for d in UNEMULATED
    ]


ELU_BACKWARD_MORE = [
    *unemulated("6", "gradInput"),
    Row("3", "unsupported too", {"gradOutput.dtype": I32, "selfOrResult.dtype": I8}, words=("selfOrResult", "INT8")),
    Row("4", "float64", on_all(ELU_BACKWARD, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
    Row("4", "bfloat16", on_all(ELU_BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "Ascend910B")),
    Row("4", "float64, empty", {**on_all(ELU_BACKWARD, "dtype", F64), **on_all(ELU_BACKWARD, "shape", (0,))}, HOST),
    Row("9", "9 dims, empty", on_all(ELU_BACKWARD, "shape", (0, *DIMS_8)), words=("gradOutput",)),
]

ELU_BACKWARD_ACCEPTED = [
    Row("5", "real scalars of any dtype", {"alpha": Scalar(1, Dtype.BOOL), "scale": Scalar(2, I8)}, ANYWHERE),
    Row("6", "double output", {"gradInput.dtype": F64}, ANYWHERE),
    Row("6", "complex output", {"gradInput.dtype": Dtype.COMPLEX64}, ANYWHERE),
    Row("6", "narrower output", {"gradInput.dtype": F16}, ANYWHERE),
    Row("9", "0 dims", on_all(ELU_BACKWARD, "shape", ()), ANYWHERE),
    Row("9", "8 dims", on_all(ELU_BACKWARD, "shape", DIMS_8), ANYWHERE),
    Row("10", "an input, alpha < 0", {"alpha.value": -1.0}, ANYWHERE),
    Row("10", "a result, alpha = 0", {"isResult": True, "alpha.value": 0.0}, ANYWHERE),
    Row("10", "a result, alpha = -0.0", {"isResult": True, "alpha.value": -0.0}, ANYWHERE),
    Row("10", "a result, alpha NaN", {"isResult": True, "alpha.value": np.nan}, ANYWHERE),
    Row("10", "a result, alpha < 0 only as double", {"isResult": True, "alpha": Scalar(-1e-60, F64)}, ANYWHERE),
    Row("10", "a result, scale < 0", {"isResult": True, "scale.value": -0.75}, ANYWHERE),
    Row("1.2", "inputScale = 0", {"inputScale.value": 0.0}, ANYWHERE),
    Row("1.2", "inputScale < 0", {"inputScale.value": -0.5}, ANYWHERE),
    Row("1.2", "scale < 0", {"scale.value": -0.75}, ANYWHERE),
    *(Row("11", f"format {f.name}", on_all(ELU_BACKWARD, "format", f), ANYWHERE) for f in Format),
    *(Row("12", f"empty {s}", on_all(ELU_BACKWARD, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
]

# Checks of aclnnElu: the numbers are ours, the order is that of CANN's checker.
ELU_CHECKS = [
    *nulls(ELU),
    Row("3", "integers", {"self.dtype": I32}, words=("self", "INT32", "FLOAT16")),
    *complex_scalars("4", ("scale", "alpha", "inputScale")),
    Row("5", "float to integer", {"out.dtype": I32}, words=("out", "INT32")),
    Row("6", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
    Row("6", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("7", "9 dims", on_all(ELU, "shape", DIMS_9), words=("self", "9", "8")),
]
ELU_MORE = [
    Row("3", "integers, empty", {**on_all(ELU, "dtype", I32), **on_all(ELU, "shape", (0,))}, words=("self",)),
    Row("6", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
    *unemulated("5", "out"),
]
ELU_ACCEPTED = [
    Row("3", "bfloat16", on_all(ELU, "dtype", BF16), ANYWHERE),
    Row("3", "float64", on_all(ELU, "dtype", F64), ANYWHERE),
    Row("4", "real scalars of any dtype", {"alpha": Scalar(1, Dtype.BOOL), "scale": Scalar(2, I8)}, ANYWHERE),
    Row("5", "complex output", {"out.dtype": Dtype.COMPLEX128}, ANYWHERE),
    Row("5", "narrower output", {"out.dtype": BF16}, ANYWHERE),
    Row("7", "0 dims", on_all(ELU, "shape", ()), ANYWHERE),
    Row("7", "8 dims", on_all(ELU, "shape", DIMS_8), ANYWHERE),
    Row("-", "alpha < 0", {"alpha.value": -1.5}, ANYWHERE),
    *(Row("-", f"format {f.name}", on_all(ELU, "format", f), ANYWHERE) for f in Format),
    *(Row("-", f"empty {s}", on_all(ELU, "shape", s), ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
]

INPLACE_ELU_CHECKS = [
    *nulls(INPLACE_ELU),
    Row("3", "integers", {"selfRef.dtype": I32}, words=("selfRef", "INT32", "FLOAT16")),
    *complex_scalars("4", ("scale", "alpha", "inputScale")),
    Row("7", "9 dims", {"selfRef.shape": DIMS_9}, words=("selfRef", "9", "8")),
]
INPLACE_ELU_ACCEPTED = [
    Row("3", "bfloat16", {"selfRef.dtype": BF16}, ANYWHERE),
    Row("3", "float64", {"selfRef.dtype": F64}, ANYWHERE),
    Row("7", "0 dims", {"selfRef.shape": ()}, ANYWHERE),
    Row("7", "8 dims", {"selfRef.shape": DIMS_8}, ANYWHERE),
    Row("-", "alpha < 0", {"alpha.value": -1.5}, ANYWHERE),
    *(Row("-", f"format {f.name}", {"selfRef.format": f}, ANYWHERE) for f in Format),
    *(Row("-", f"empty {s}", {"selfRef.shape": s}, ANYWHERE) for s in ((0,), (2, 0, 3), (0,) * 8)),
]


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """One dtype for the inputs, and any dtype it can be cast to for the output."""
    g = dtypes["gradOutput"]
    supported = product in BACKWARD_DTYPES.get(g, NOWHERE)
    return supported and g == dtypes["selfOrResult"] and can_cast(g, dtypes["gradInput"])


def forward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """The same for the forward; in place there is no cast."""
    x, *out = dtypes.values()
    return product in FORWARD_DTYPES.get(x, NOWHERE) and all(can_cast(x, dtype) for dtype in out)


FINITE = st.sampled_from([1.0, 0.0, -0.0, 0.5, -0.5, 1.6732632, 3.0, -2.0])


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any layout, and coefficients of any sign."""
    changes = same_shape_calls(draw, operator, (F32, F16, BF16), 8)
    changes.update({name: Scalar(draw(FINITE)) for name in SCALARS})
    if operator is ELU_BACKWARD:
        changes["isResult"] = draw(st.booleans()) and not changes["alpha"].value < 0
    return changes


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation(
        "aclnn(Inplace)?Elu|aclnnEluBackward",
        ".*",
        r"format (NC1HWC0|FRACTAL_\w+|NC1HWC0_C04|NDC1HWC0)",
        "elu-and-selu",
    ),
    Deviation("aclnnElu(Backward)?", "5|6", r"(out|gradInput) of \w+", "elu-and-selu"),
)


# ---- The sources of the rows

_ELU = by_hand(
    "activation/elu/op_api/aclnn_elu.cpp",
    {**dict.fromkeys("345", "CheckDtypeValid"), **dict.fromkeys("67", "CheckShape")},
    {"alpha < 0|format .*": "CheckParams", "empty .*": "GetWorkspaceSizeCommon"},
)
SOURCES = {
    "aclnnElu": _ELU,
    "aclnnInplaceElu": _ELU,
    "aclnnEluBackward": by_hand(
        "activation/elu_grad_v2/op_api/aclnn_elu_backward.cpp",
        {
            **dict.fromkeys("3456", "CheckDtypeValid"),
            **dict.fromkeys("789", "CheckShape"),
            "10": "CheckAttributeValue",
            "11": "CheckFormat",
        },
        {},
    ),
}


def table(
    operator: Operator,
    rows: tuple[list[Row], list[Row], list[Row]],
    dtypes: dict[Dtype, frozenset[str]],
    aliases: tuple[tuple[str, str], ...] = (),
) -> Table:
    """The parts that the three tables share."""
    return Table(
        operator,
        *rows,
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), accepted) for dtype, accepted in dtypes.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4))],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=backward_accepts if operator is ELU_BACKWARD else forward_accepts,
        aliases=aliases,
    )


TABLES = (
    table(ELU, (ELU_CHECKS, ELU_MORE, ELU_ACCEPTED), FORWARD_DTYPES, aliases=(("out", "self"),)),
    table(INPLACE_ELU, (INPLACE_ELU_CHECKS, [], INPLACE_ELU_ACCEPTED), FORWARD_DTYPES),
    table(
        ELU_BACKWARD,
        (ELU_BACKWARD_CHECKS, ELU_BACKWARD_MORE, ELU_BACKWARD_ACCEPTED),
        BACKWARD_DTYPES,
        aliases=(("gradInput", "gradOutput"), ("gradInput", "selfOrResult")),
    ),
)
