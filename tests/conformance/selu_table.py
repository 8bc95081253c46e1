"""aclnnSelu, aclnnInplaceSelu, aclnnSeluBackward: refusals in the order of CANN's checks, and results."""

from __future__ import annotations

import numpy as np

from tests import cabi
from tests.cabi import INNER_NULLPTR, Dtype, Format, round_to
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
    Until,
    exp_roundings,
    nulls,
    on_all,
    one_rounding,
    same_shape_calls,
    some_roundings,
    working,
)
from tests.conformance.provenance import Kind, Source, by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
I32, I8 = Dtype.INT32, Dtype.INT8

# ---- formulas (the documents of aclnnSelu and aclnnSeluBackward), integers (Ascend950's kernels)

SCALE = 1.0507009873554804934193349852946
ALPHA = 1.6732632423543772848170429916717
SCALE_ALPHA = 1.7580993408473768599402175208123


def in_float(value: np.ndarray) -> np.ndarray:
    """One operation in float."""
    return round_to(F32, value)


def selu_backward(given: Given) -> Reference:
    """y > 0, or NaN: g * scale; y <= 0: g * (y + scale * alpha). Integers go through FLOAT16 both ways."""
    dtype, g, y = given.dtype, given.inputs["gradOutput"], given.inputs["result"]
    scale, scale_alpha = (float(round_to(working(dtype), value)) for value in (SCALE, SCALE_ALPHA))
    if dtype in (I32, I8):
        g, y = round_to(F16, g), round_to(F16, y)
        floating = in_float(np.where(y <= 0, g * in_float(y + scale_alpha), g * scale))
        limits = np.iinfo(cabi.storage_type(dtype))
        exact = np.clip(np.rint(round_to(F16, floating)), limits.min, limits.max)
        return Reference(exact, 0.0, dtype)
    positive, negative = g * scale, g * (y + scale_alpha)
    tolerance = some_roundings(dtype, negative)
    if dtype == F64:  # an extension of the host; the constant may be the rounded product of the two rounded constants
        tolerance += np.abs(g) * cabi.ulp(F64, SCALE_ALPHA)
    branch = y <= 0
    tolerance = np.where(branch, tolerance, one_rounding(dtype, positive))
    return Reference(np.where(branch, negative, positive), tolerance, dtype)


def selu(given: Given) -> Reference:
    """scale * (max(x, 0) + min(alpha * (exp(min(x, 0)) - 1), 0)); exp - 1 has an error of an ulp of 1; integers are
    truncated, and INT8 wraps around."""
    dtype, x = given.dtype, next(iter(given.inputs.values()))
    scale = float(round_to(working(dtype), SCALE))
    positive, negative = x * scale, SCALE_ALPHA * np.expm1(np.minimum(x, 0))
    value = np.where(x <= 0, negative, positive)
    if dtype == I8:
        return Reference((np.trunc(value) + 128) % 256 - 128, 0.0, dtype)
    if dtype == I32:
        return Reference(np.trunc(value), 0.0, dtype)
    tolerance = exp_roundings(dtype, negative) + SCALE_ALPHA * cabi.ulp(working(dtype), 1.0)
    return Reference(value, np.where(x <= 0, tolerance, one_rounding(dtype, positive)), dtype)


# ---- prototypes (the functions' documents)

# Small integers whose results are the same with every rounding; floats for which that holds after SELU.
INTEGERS = (-1.0, 0.0, 1.0, 2.0, 5.0, 9.0, 3.0)
FLOATS = (-1.25, -0.25, 0.0, 0.25, 1.0, 5.0, 9.0, -1.0, -1.125)
GRADIENTS = (1.0, -2.0, 3.0, 0.0, 7.0, -1.0, 4.0, 2.0)


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values of both signs and zero."""
    if name == "gradOutput":
        return GRADIENTS
    return INTEGERS if dtype in (I32, I8) else FLOATS


EMPTY = (0, 3)
SELU = Operator(
    "aclnnSelu",
    {"self": Tensor(), "out": Tensor()},
    {"out": selu},
    values,
    empty={"self.shape": EMPTY, "out.shape": EMPTY},
    any_rank=True,
)
INPLACE_SELU = Operator(
    "aclnnInplaceSelu", {"selfRef": Tensor()}, {"selfRef": selu}, values, empty={"selfRef.shape": EMPTY}, any_rank=True
)
SELU_BACKWARD = Operator(
    "aclnnSeluBackward",
    {"gradOutput": Tensor(), "result": Tensor(), "gradInput": Tensor()},
    {"gradInput": selu_backward},
    values,
    empty={"gradOutput.shape": EMPTY, "result.shape": EMPTY, "gradInput.shape": EMPTY},
    any_rank=True,
)

# ---- dtypes: the products that accept each, forward and backward (CheckDtypeValid of CANN's checkers)

DTYPES = {F32: ANYWHERE, F16: ANYWHERE, I32: ANYWHERE, I8: ANYWHERE, BF16: WITH_BF16, F64: HOST}

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

U8 = Dtype.UINT8
DIMS_9 = (2, 1, 2, 1, 2, 1, 2, 1, 2)

SELU_BACKWARD_CHECKS = [
    *nulls(SELU_BACKWARD),
    Row(
        "3",
        "result has another dtype",
        {"result.dtype": F16},
        words=("result", "FLOAT16"),
        until=Until("9.1", code=INNER_NULLPTR, source=Source(Kind.INFERENCE, "SeluGrad has kernels of one dtype")),
    ),
    Row(
        "3",
        "gradInput has another dtype",
        {"gradInput.dtype": F16},
        words=("gradInput", "FLOAT16"),
        until=Until("9.1", ANYWHERE),
    ),
    Row("4", "an unsupported dtype", on_all(SELU_BACKWARD, "dtype", U8), words=("gradOutput", "UINT8", "INT8")),
    Row("5", "result has other dims", {"result.shape": (3, 2)}, words=("result", "3, 2", "2, 3")),
    Row("5", "gradInput has other dims", {"gradInput.shape": (2, 4)}, words=("gradInput", "2, 4", "2, 3")),
]
SELU_BACKWARD_MORE = [
    Row("3", "wider gradInput", {"gradInput.dtype": F64}, words=("gradInput", "DOUBLE"), until=Until("9.1", HOST)),
    Row(
        "3",
        "gradInput of integers",
        {"gradInput.dtype": I8},
        words=("gradInput", "INT8"),
        until=Until("9.1", ANYWHERE),
    ),
    Row(
        "3",
        "result has another dtype, empty",
        {**on_all(SELU_BACKWARD, "shape", EMPTY), "result.dtype": F16},
        words=("result", "FLOAT16"),
        until=Until("9.1", ANYWHERE),
    ),
    Row("3", "unsupported, and different", {"gradOutput.dtype": U8, "result.dtype": I8}, words=("result", "UINT8")),
    Row("4", "float64", on_all(SELU_BACKWARD, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
    Row("4", "bfloat16", on_all(SELU_BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "Ascend910B")),
    Row("4", "uint8, empty", {**on_all(SELU_BACKWARD, "dtype", U8), **on_all(SELU_BACKWARD, "shape", (0,))}),
    Row("5", "result has another rank", {"result.shape": (6,)}, words=("result", "6", "2, 3")),
    Row("5", "result would broadcast", {"result.shape": (1, 3)}, words=("result", "1, 3", "2, 3")),
    Row("5", "gradInput empty", {"gradInput.shape": (0, 3)}, words=("gradInput", "0, 3")),
]

# Checks of aclnnSelu: the numbers are ours, the order is that of CANN's checker.
SELU_CHECKS = [
    *nulls(SELU),
    Row("3", "an unsupported self", {"self.dtype": U8}, words=("self", "UINT8", "INT8")),
    Row("4", "an unsupported out", {"out.dtype": Dtype.INT64}, words=("out", "INT64", "INT32")),
    Row("5", "out has other dims", {"out.shape": (3, 2)}, words=("out", "3, 2", "2, 3")),
]
SELU_MORE = [
    Row("3", "float64 self", {"self.dtype": F64}, HOST, words=("self", "DOUBLE", "host")),
    Row("3", "bfloat16 self", {"self.dtype": BF16}, WITH_BF16, words=("self", "BFLOAT16", "Ascend910B")),
    Row("4", "float64 out", {"out.dtype": F64}, HOST, words=("out", "DOUBLE", "host")),
    Row("4", "bfloat16 out", {"out.dtype": BF16}, WITH_BF16, words=("out", "BFLOAT16", "Ascend910B")),
    Row("4", "complex out", {"out.dtype": Dtype.COMPLEX64}, NOWHERE, words=("out", "COMPLEX64")),
    Row("5", "out has another rank", {"out.shape": (6,)}, words=("out", "6", "2, 3")),
    Row("5", "self would broadcast", {"self.shape": (1, 3)}, words=("out", "1, 3", "2, 3")),
]

INPLACE_SELU_CHECKS = [
    *nulls(INPLACE_SELU),
    Row("3", "an unsupported dtype", {"selfRef.dtype": U8}, words=("selfRef", "UINT8", "INT8")),
]
INPLACE_SELU_MORE = [
    Row("3", "float64", {"selfRef.dtype": F64}, HOST, words=("selfRef", "DOUBLE", "host")),
    Row("3", "bfloat16", {"selfRef.dtype": BF16}, WITH_BF16, words=("selfRef", "BFLOAT16", "Ascend910B")),
]


def accepted(operator: Operator) -> list[Row]:
    """Calls that all three accept everywhere: checks 6, 7 and 8."""
    return [
        *(
            Row("6", f"{len(s)} dims", on_all(operator, "shape", s), ANYWHERE)
            for s in ((), (3,), DIMS_9[:8], DIMS_9, (*DIMS_9, 1, 3, 1))
        ),
        *(
            Row("7", f"empty {s}", on_all(operator, "shape", s), ANYWHERE)
            for s in ((0,), (2, 0, 3), (0,) * 8, (0, *DIMS_9))
        ),
        *(Row("8", f"format {f.name}", on_all(operator, "format", f), ANYWHERE) for f in Format),
    ]


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation(
        "aclnn(Inplace)?Selu|aclnnSeluBackward",
        ".*",
        r"format (NC1HWC0|FRACTAL_\w+|NC1HWC0_C04|NDC1HWC0)",
        "elu-and-selu",
    ),
)


# ---- The sources of the rows

_SELU = by_hand(
    "activation/selu/op_api/aclnn_selu.cpp",
    {"3": "CheckDtypeValid", "4": "CheckDtypeValid", "5": "CheckShape"},
    {},
    rest="ExecSeluGetWorkspaceSize",
)
SOURCES = {
    "aclnnSelu": _SELU,
    "aclnnInplaceSelu": _SELU,
    "aclnnSeluBackward": by_hand(
        "activation/selu_grad/op_api/aclnn_selu_backward.cpp",
        {"3": "CheckDtypeValid", "4": "CheckDtypeValid", "5": "CheckShape"},
        {},
        rest="aclnnSeluBackwardGetWorkspaceSize",
    ),
}


def table(operator: Operator, checks: list[Row], more: list[Row], aliases: tuple[tuple[str, str], ...] = ()) -> Table:
    """The parts that the three tables share."""
    return Table(
        operator,
        checks,
        more,
        accepted(operator),
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), products) for dtype, products in DTYPES.items()],
        shapes=[on_all(operator, "shape", shape) for shape in ((3, 4), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2, 3))],
        calls=lambda draw: same_shape_calls(draw, operator, tuple(DTYPES), 11),
        sources=SOURCES[operator.api],
        accepts=forward_accepts if operator is SELU else None,
        aliases=aliases,
    )


def forward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """Each is in the set; they may differ."""
    return all(product in DTYPES.get(dtype, NOWHERE) for dtype in dtypes.values())


TABLES = (
    table(SELU, SELU_CHECKS, SELU_MORE, aliases=(("out", "self"),)),
    table(INPLACE_SELU, INPLACE_SELU_CHECKS, INPLACE_SELU_MORE),
    table(
        SELU_BACKWARD,
        SELU_BACKWARD_CHECKS,
        SELU_BACKWARD_MORE,
        aliases=(("gradInput", "gradOutput"), ("gradInput", "result")),
    ),
)
