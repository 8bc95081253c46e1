"""aclnnRmsNorm, aclnnRmsNormGrad: refusals in the order of CANN's checks, and results."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.cabi import TILING_ERROR, Dtype, Format, round_to
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
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
    summing,
    unit,
)
from tests.conformance.provenance import GENERATED_DTYPES, NO_LAUNCH, generated, ops_nn

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
WITH_EMPTY = frozenset({"Ascend950", "host"})
NOTHING: Changes = {"yOut.shape": (0, 64), "rstdOut.shape": (0,)}  # all outputs are empty

# ---- formulas (the documents of aclnnRmsNorm and aclnnRmsNormGrad)
#
# All arithmetic is in float, or double for double, and each result is rounded once, as in CANN's kernels; u is its
# unit, so that a product of n factors has an error of n - 1 units, and a sum that of `summing`. The references are in
# long double.


def wide(given: Given, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """An input in long double."""
    return given.inputs[name].astype(np.longdouble).reshape(shape)


def rows_and_columns(given: Given) -> tuple[int, int]:
    """x viewed as [R, D]."""
    x, gamma = given.inputs["x"].shape, given.inputs["gamma"].shape
    return prod(x[: len(x) - len(gamma)]), prod(gamma)


def expected(value: np.ndarray, tolerance: np.ndarray, given: Given, shape: tuple[int, ...]) -> Reference:
    """From long doubles and an output's shape."""
    value, tolerance = (np.asarray(v, np.float64).reshape(shape) for v in (value, tolerance))
    return Reference(value, tolerance + unit(given.dtype) * np.abs(value) + least(given.dtype))


def reciprocal_rms(given: Given) -> tuple[np.ndarray, float]:
    """1 / sqrt(mean over D of x^2 + epsilon) of each row, and its error in units. Square, sum, the product with the
    rounded 1/D and the addition of epsilon have an error of summing(D) + 5, which the root halves; root and quotient
    add 2."""
    rows, columns = rows_and_columns(given)
    epsilon = given.arguments["epsilon"]
    x = wide(given, "x", (rows, columns))
    mean = (x * x).sum(axis=1, keepdims=True) / columns
    epsilon = epsilon if given.dtype == F64 else float(round_to(F32, epsilon))
    return 1 / np.sqrt(mean + np.longdouble(epsilon)), (summing(columns) + 5) / 2 + 2


def forward_rstd(given: Given) -> Reference:
    """Always FLOAT (DOUBLE for DOUBLE)."""
    rstd, units = reciprocal_rms(given)
    return expected(rstd, np.abs(rstd) * units * unit(given.dtype), given, given.arguments["rstdOut"].shape)


def forward_y(given: Given) -> Reference:
    """x * rstd * gamma, two more products. On Ascend910, FLOAT16 is rounded between them (ops-nn,
    rms_norm_whole_reduce_sum.h, Compute), in rows of at most 21728 elements (rms_norm_tiling.cpp, Tiling4RmsNorm)."""
    rows, columns = rows_and_columns(given)
    rstd, units = reciprocal_rms(given)
    if given.product == "Ascend910" and given.dtype == F16 and columns <= 21728:
        xhat = (wide(given, "x", (rows, columns)) * rstd).astype(np.float64)
        miss = np.abs(xhat) * (units + 1) * unit(F16) + least(F16)
        low, high = (round_to(F16, xhat + sign * miss) * given.inputs["gamma"].reshape(1, -1) for sign in (-1, 1))
        y, miss = (v.reshape(given.inputs["x"].shape) for v in ((low + high) / 2, np.abs(high - low) / 2))
        return Reference(y, miss)
    y = wide(given, "x", (rows, columns)) * rstd * wide(given, "gamma", (1, columns))
    return expected(y, np.abs(y) * (units + 2) * unit(given.dtype), given, given.inputs["x"].shape)


def backward(given: Given) -> tuple[np.ndarray, ...]:
    """dy and gamma of each element, rstd of each row, and xhat = x * rstd, as [R, D]."""
    rows, columns = rows_and_columns(given)
    dy, x = wide(given, "dy", (rows, columns)), wide(given, "x", (rows, columns))
    rstd, gamma = wide(given, "rstd", (rows, 1)), wide(given, "gamma", (1, columns))
    return dy, gamma, rstd, x * rstd


def backward_dx(given: Given) -> Reference:
    """rstd * (dy * gamma - xhat * mean over D of dy * gamma * xhat). The mean has an error of summing(D) and 5 units of
    the mean of the magnitudes (two factors with one each, their product, and the rounded 1/D); product, difference and
    product add 1 each."""
    dy, gamma, rstd, xhat = backward(given)
    a, columns = dy * gamma, dy.shape[1]
    share, share_of_magnitudes = (v.sum(axis=1, keepdims=True) / columns for v in (a * xhat, np.abs(a * xhat)))
    dx = rstd * (a - xhat * share)
    units = 3 * np.abs(a) + np.abs(xhat) * (summing(columns) + 9) * share_of_magnitudes
    return expected(dx, np.abs(rstd) * units * unit(given.dtype), given, given.inputs["x"].shape)


def backward_dgamma(given: Given) -> Reference:
    """The sum of dy * xhat over the rows, two products each. Without rows it is 0, on Ascend950 NaN."""
    dy, _, _, xhat = backward(given)
    shape = given.inputs["gamma"].shape
    if dy.shape[0] == 0:
        return Reference(np.full(shape, np.nan if given.product == "Ascend950" else 0.0), 0.0)
    dgamma, magnitudes = (dy * xhat).sum(axis=0), np.abs(dy * xhat).sum(axis=0)
    return expected(dgamma, magnitudes * (summing(dy.shape[0]) + 2) * unit(given.dtype), given, shape)


# ---- prototypes (the functions' documents)

VALUES = {
    "x": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625),
    "dy": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "rstd": (1.0, 0.375, 2.0, 0.75),
    "gamma": (1.0, -0.75, 0.5, 1.5, 2.0),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values, exact in every dtype."""
    return VALUES[name]


def forward_shapes(outer: tuple[int, ...], inner: tuple[int, ...]) -> Changes:
    """x of shape outer + inner, normalised over inner."""
    x, rstd = outer + inner, outer + (1,) * len(inner)
    return {"x.shape": x, "gamma.shape": inner, "yOut.shape": x, "rstdOut.shape": rstd}


def backward_shapes(outer: tuple[int, ...], inner: tuple[int, ...]) -> Changes:
    """The same for the gradient."""
    changes: Changes = {f"{name}.shape": outer + inner for name in ("dy", "x", "dxOut")}
    return {**changes, "rstd.shape": outer, "gamma.shape": inner, "dgammaOut.shape": inner}


# Defaults that every product accepts: 64 elements of gamma, the last axis longer than 32 bytes.
X, GAMMA = Tensor(shape=(3, 64)), Tensor(shape=(64,))

RMS_NORM = Operator(
    "aclnnRmsNorm",
    {"x": X, "gamma": GAMMA, "epsilon": 2.0**-10, "yOut": X, "rstdOut": Tensor(shape=(3, 1))},
    {"yOut": forward_y, "rstdOut": forward_rstd},
    values,
    generated=True,
    sizes=lambda rows, columns: forward_shapes((rows,), (columns,)),
    empty=forward_shapes((0,), (64,)),
)
RMS_NORM_GRAD = Operator(
    "aclnnRmsNormGrad",
    {"dy": X, "x": X, "rstd": Tensor(shape=(3,)), "gamma": GAMMA, "dxOut": X, "dgammaOut": GAMMA},
    {"dxOut": backward_dx, "dgammaOut": backward_dgamma},
    values,
    generated=True,
    sizes=lambda rows, columns: backward_shapes((rows,), (columns,)),
    empty=backward_shapes((2,), (0, 64)),
)

# ---- dtypes (CANN's descriptions of the operators): x and gamma, and the products that accept them; the others follow

DTYPES = {
    (F16, F16): ANYWHERE,
    (F32, F32): ANYWHERE,
    (BF16, BF16): WITH_BF16,
    (F16, F32): WITH_BF16,
    (BF16, F32): WITH_BF16,
    (F64, F64): HOST,
}


def wide_dtype(x: Dtype) -> Dtype:
    """The dtype of rstd and dgamma."""
    return F64 if x == F64 else F32


FORWARD_DTYPES = [DtypeRow((x, gamma, x, wide_dtype(x)), on) for (x, gamma), on in DTYPES.items()]
BACKWARD_DTYPES = [DtypeRow((x, x, wide_dtype(x), gamma, x, wide_dtype(x)), on) for (x, gamma), on in DTYPES.items()]

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

RANK_9 = (1, 1, 1, 1, 1, 1, 1, 3, 64)


def refused(number: str, condition: str, changes: Changes, *words: str, on: frozenset[str] = frozenset()) -> Row:
    """A failure of shapes or attributes: 561002 in this family."""
    return Row(number, condition, changes, on, TILING_ERROR, words)


BACKWARD_CHECKS = [
    *nulls(RMS_NORM_GRAD),
    Row("4", "integers", {"x.dtype": Dtype.INT32}, words=("x", "INT32", "FLOAT16")),
    Row("4", "a private format", {"dy.format": Format.FRACTAL_NZ}, words=("dy", "format")),
    refused("5", "x has 9 dims", {"x.shape": RANK_9}, "x", "9", "8"),
    refused("5", "gamma has 0 dims", {"gamma.shape": ()}, "gamma"),
    refused("5", "dy has another rank", {"dy.shape": (3, 64, 1)}, "dy", "3, 64, 1"),
    refused("5", "dxOut has another rank", {"dxOut.shape": (192,)}, "dxOut", "192"),
    refused("5", "dgammaOut has another rank", {"dgammaOut.shape": (1, 64)}, "dgammaOut", "1, 64"),
    refused("6", "dy has other dims", {"dy.shape": (64, 3)}, "dy", "64, 3"),
    refused("6", "dxOut has other dims", {"dxOut.shape": (4, 64)}, "dxOut", "4, 64"),
    refused("8", "rstd has other rows", {"rstd.shape": (4,)}, "rstd", "4"),
    refused("9", "gamma is not trailing", {"gamma.shape": (128,)}, "gamma", "128"),
    refused("9", "dgammaOut is not trailing", {"dgammaOut.shape": (128,)}, "dgammaOut", "128"),
]
BACKWARD_MORE = [
    *(
        Row("4", f"format {f.name}", {f"{name}.format": f}, words=(name, "format"))
        for f in (Format.NDHWC, Format.NC1HWC0, Format.UNDEFINED)
        for name in RMS_NORM_GRAD.tensors
    ),
    Row("4", "rstd as x", {"rstd.dtype": F16}, words=("rstd", "FLOAT16")),
    Row(
        "4",
        "dgammaOut as gamma",
        {"x.dtype": F16, "dy.dtype": F16, "gamma.dtype": F16, "dxOut.dtype": F16, "dgammaOut.dtype": F16},
        words=("dgammaOut", "FLOAT16"),
    ),
    Row("4", "16-bit gamma with FP32 x", {"gamma.dtype": F16}, words=("gamma", "FLOAT16")),
    refused("5", "gamma has more dims than x", {"gamma.shape": (1, 3, 64), "dgammaOut.shape": (1, 3, 64)}, "gamma"),
    refused("5", "9 dims", backward_shapes(RANK_9[:8], (64,)), "x"),
    refused("5", "0 dims", backward_shapes((), ()), "x"),
    refused("6", "x would broadcast", {"x.shape": (1, 64)}, "x"),
    refused("7", "the last axis is empty", {**backward_shapes((3,), (0,)), "dgammaOut.shape": (64,)}, "dy"),
    refused("8", "rstd has one row", {"rstd.shape": (1,)}, "rstd", "1"),
    refused("8", "rstd has no dims", {"rstd.shape": ()}, "rstd"),
    refused("8", "rstd has too many elements", {"rstd.shape": (3, 2)}, "rstd", "3, 2"),
    refused("8", "rstd has an element for each of x", {"rstd.shape": (3, 64)}, "rstd", "3, 64"),
    refused(
        "8",
        "rstd's product matches, its dims do not",
        {**backward_shapes((2, 3), (64,)), "rstd.shape": (3, 2)},
        "rstd",
        "3, 2",
    ),
    refused("8", "rstd lacks an axis that is not 1", {**backward_shapes((2, 3), (64,)), "rstd.shape": (2,)}, "rstd"),
    refused("9", "gamma is leading", {"gamma.shape": (3,), "dgammaOut.shape": (3,)}, "gamma"),
    refused("9", "gamma would broadcast", {"gamma.shape": (1,), "dgammaOut.shape": (1,)}, "gamma", "64"),
    refused(
        "10", "63 elements of gamma", backward_shapes((3,), (63,)), "gamma", "63", "64", on=ANYWHERE - {"Ascend910"}
    ),
    refused(
        "10",
        "96 elements of gamma",
        backward_shapes((3,), (3, 32)),
        "gamma",
        "3, 32",
        "64",
        on=ANYWHERE - {"Ascend910"},
    ),
    refused("11", "no rows", backward_shapes((0,), (64,)), on=WITH_EMPTY),
    refused("11", "no rows of several dims", backward_shapes((2, 0, 3), (2, 32)), on=WITH_EMPTY),
    Row("12", "all outputs empty, of another dtype", {**backward_shapes((2,), (0, 64)), "rstd.dtype": F16}),
]
BACKWARD_ACCEPTED = [
    *(
        Row("4", f"format {f.name}", {f"{name}.format": f for name in RMS_NORM_GRAD.tensors}, ANYWHERE)
        for f in (Format.NCL, Format.NCHW, Format.NHWC, Format.NCDHW)
    ),
    Row("5", "1 dim", backward_shapes((), (64,)), ANYWHERE),
    Row("5", "8 dims", backward_shapes((1, 2, 1, 2, 1, 2, 1), (64,)), ANYWHERE),
    Row("5", "8 dims, all of gamma", backward_shapes((), (1, 2, 1, 2, 1, 2, 1, 64)), ANYWHERE),
    Row("8", "rstd has trailing ones", {"rstd.shape": (3, 1)}, ANYWHERE),
    Row("8", "rstd has more trailing ones than x has dims", {"rstd.shape": (3, 1, 1)}, ANYWHERE),
    Row("8", "rstd lacks an axis of 1", {**backward_shapes((3, 1), (64,)), "rstd.shape": (3,)}, ANYWHERE),
    Row("8", "rstd of one row", {**backward_shapes((1,), (64,)), "rstd.shape": (1,)}, ANYWHERE),
    Row("9", "gamma of two dims", backward_shapes((3, 2), (2, 64)), ANYWHERE),
    Row("9", "gamma of all dims", backward_shapes((), (3, 64)), ANYWHERE),
    # 448 elements of gamma: a multiple of 64.
    Row("9", "the last axis has 28 bytes", backward_shapes((3,), (64, 7)), ANYWHERE),
    Row("12", "all outputs empty", backward_shapes((2,), (0, 64)), ANYWHERE),
    Row("12", "all outputs empty, by the last axis", backward_shapes((3,), (0,)), ANYWHERE),
    Row(
        "12",
        "all outputs empty, other shapes wrong",
        {"dxOut.shape": (0, 64), "dgammaOut.shape": (0,), "rstd.shape": (7,), "gamma.shape": (5,)},
        ANYWHERE,
    ),
]

# Checks of aclnnRmsNorm: the numbers are ours.
FORWARD_CHECKS = [
    *nulls(RMS_NORM),
    Row("4", "integers", {"x.dtype": Dtype.INT32}, words=("x", "INT32", "FLOAT16")),
    Row("4", "a private format", {"x.format": Format.FRACTAL_NZ}, words=("x", "format")),
    refused("6", "yOut has other dims", {"yOut.shape": (64, 3)}, "yOut", "64, 3"),
    refused("8", "rstdOut has other rows", {"rstdOut.shape": (2, 1)}, "rstdOut", "2, 1"),
    refused("9", "gamma is not trailing", {"gamma.shape": (128,)}, "gamma", "128"),
    refused("10", "epsilon < 0", {"epsilon": -1.0}, "epsilon", "-1"),
]
FORWARD_MORE = [
    *(
        Row("4", f"format {f.name}", {f"{name}.format": f}, words=(name, "format"))
        for f in (Format.NDHWC, Format.NC1HWC0, Format.UNDEFINED)
        for name in RMS_NORM.tensors
    ),
    Row(
        "4",
        "rstdOut as x",
        {"x.dtype": F16, "gamma.dtype": F16, "yOut.dtype": F16, "rstdOut.dtype": F16},
        words=("rstdOut", "FLOAT16"),
    ),
    Row("4", "16-bit gamma with FP32 x", {"gamma.dtype": F16}, words=("gamma", "FLOAT16")),
    refused("5", "9 dims", forward_shapes(RANK_9[:8], (64,)), "x"),
    refused("5", "0 dims", forward_shapes((), ()), "x"),
    refused("5", "gamma has 0 dims", {"gamma.shape": ()}, "gamma"),
    refused("5", "gamma has more dims than x", {"gamma.shape": (1, 3, 64)}, "gamma"),
    refused("6", "yOut has another rank", {"yOut.shape": (192,)}, "yOut", "192"),
    refused("8", "rstdOut has an element for each of x", {"rstdOut.shape": (3, 64)}, "rstdOut", "3, 64"),
    refused("8", "rstdOut has one row", {"rstdOut.shape": (1, 1)}, "rstdOut", "1, 1"),
    refused("9", "gamma is leading", {"gamma.shape": (3,)}, "gamma"),
    refused("9", "gamma would broadcast", {"gamma.shape": (1,)}, "gamma", "64"),
    refused("10", "epsilon < 0, slightly", {"epsilon": -1e-30}, "epsilon"),
    refused("10", "epsilon < 0, the least of FLOAT", {"epsilon": -1.5e-45}, "epsilon"),
    refused("11", "no columns", forward_shapes((3,), (0,)), "x", "3, 0", on=HOST),
    Row("12", "all outputs empty, of another dtype", {**NOTHING, "x.dtype": F16}),
]
FORWARD_ACCEPTED = [
    *(
        Row("4", f"format {f.name}", {f"{name}.format": f for name in RMS_NORM.tensors}, ANYWHERE)
        for f in (Format.NCL, Format.NCHW, Format.NHWC, Format.NCDHW)
    ),
    Row("5", "1 dim", forward_shapes((), (64,)), ANYWHERE),
    Row("5", "8 dims", forward_shapes((1, 2, 1, 2, 1, 2, 1), (64,)), ANYWHERE),
    Row("5", "8 dims, all of gamma", forward_shapes((), (1, 2, 1, 2, 1, 2, 1, 64)), ANYWHERE),
    Row("9", "gamma of two dims", forward_shapes((3, 2), (2, 64)), ANYWHERE),
    Row("10", "epsilon = 0", {"epsilon": 0.0}, ANYWHERE),
    Row("10", "epsilon = -0.0", {"epsilon": -0.0}, ANYWHERE),
    Row("10", "a large epsilon", {"epsilon": 1e30}, ANYWHERE),
    Row("10", "epsilon < 0, but not as FLOAT", {"epsilon": -1e-50}, ANYWHERE),
    Row("9", "the last axis has 28 bytes", forward_shapes((3,), (64, 7)), ANYWHERE),
    Row("12", "no rows", forward_shapes((0,), (64,)), ANYWHERE),
    Row("12", "no rows of several dims", forward_shapes((2, 0, 3), (2, 32)), ANYWHERE),
    Row("12", "all outputs empty, all else wrong", {**NOTHING, "gamma.shape": (5,), "epsilon": -1.0}, ANYWHERE),
]


# ---- any call

OUTER = st.lists(st.sampled_from((1, 2, 3, 1, 5, 0)), max_size=4).map(tuple)
INNER = st.lists(st.sampled_from((1, 2, 3, 7, 16)), min_size=1, max_size=3).map(tuple)


@st.composite
def layout(draw: st.DrawFn, operator: Operator, name: str, shape: tuple[int, ...], dtype: Dtype) -> Tensor:
    """A tensor anywhere in memory."""
    return Tensor(dtype, **draw(layouts(shape, zero_stride=name not in operator.outputs)))


def any_forward(draw: st.DrawFn) -> Changes:
    """Any shapes, dtypes, layouts and epsilon; possibly no rows."""
    shapes = forward_shapes(draw(OUTER), draw(INNER))
    row = draw(st.sampled_from(FORWARD_DTYPES))
    tensors = zip(RMS_NORM.tensors, row.dtypes, strict=True)
    changes = {name: draw(layout(RMS_NORM, name, shapes[f"{name}.shape"], dtype)) for name, dtype in tensors}
    return {**changes, "epsilon": draw(st.sampled_from((2.0**-20, 0.5, 3.0)))}


def any_backward(draw: st.DrawFn) -> Changes:
    """Any shapes, dtypes, layouts, and each way to write rstd's shape."""
    outer = draw(OUTER)
    shapes = backward_shapes(outer, draw(INNER))
    lacking = len(outer) - max((i + 1 for i, size in enumerate(outer) if size != 1), default=0)
    ones = draw(st.integers(-lacking, 3))
    shapes["rstd.shape"] = outer + (1,) * ones if ones >= 0 else outer[:ones]
    row = draw(st.sampled_from(BACKWARD_DTYPES))
    tensors = zip(RMS_NORM_GRAD.tensors, row.dtypes, strict=True)
    return {name: draw(layout(RMS_NORM_GRAD, name, shapes[f"{name}.shape"], dtype)) for name, dtype in tensors}


SHAPES = (((3,), (8,)), ((2, 3), (4, 5)), ((), (2, 3, 4)))


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation("aclnnRmsNorm", "8|11", r"rstdOut has (an element for each of x|one row)|no columns", "rmsnorm"),
)


# ---- The sources of the rows

_TILING, _GRAD_TILING = (f"norm/{name}/op_host/{name}_tiling.cpp" for name in ("rms_norm", "rms_norm_grad"))
FORWARD_SOURCES = generated(
    _TILING,
    {"4": GENERATED_DTYPES, "10": ops_nn(_TILING, "Tiling4RmsNorm"), "12": NO_LAUNCH},
    "CheckInputShape4RmsNorm",
)
BACKWARD_SOURCES = generated(
    _GRAD_TILING,
    {
        "4": GENERATED_DTYPES,
        "10": ops_nn(_GRAD_TILING, "Tiling4RmsNormGrad"),
        "11": ops_nn(_GRAD_TILING, "Tiling4RmsNormGrad"),
        "12": NO_LAUNCH,
    },
    "CheckInputShape4RmsNormGrad",
)

TABLES = (
    Table(
        RMS_NORM,
        FORWARD_CHECKS,
        FORWARD_MORE,
        FORWARD_ACCEPTED,
        dtypes=FORWARD_DTYPES,
        shapes=[forward_shapes(*shape) for shape in SHAPES],
        calls=any_forward,
        sources=FORWARD_SOURCES,
    ),
    Table(
        RMS_NORM_GRAD,
        BACKWARD_CHECKS,
        BACKWARD_MORE,
        BACKWARD_ACCEPTED,
        dtypes=BACKWARD_DTYPES,
        shapes=[backward_shapes(*shape) for shape in SHAPES],
        calls=any_backward,
        sources=BACKWARD_SOURCES,
    ),
)
