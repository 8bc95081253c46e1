"""aclnnLayerNorm, aclnnLayerNormBackward: refusals in the order of CANN's checkers, and results.

The order is that of ops-nn's aclnn_layer_norm.cpp and aclnn_layer_norm_backward.cpp; the conditions are those of the
documents aclnnLayerNorm and aclnnLayerNormBackward. The numbers are ours.
"""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.cabi import PARAM_NULLPTR, Dtype, Format, round_to
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
    NOWHERE,
    WITH_BF16,
    Bools,
    Changes,
    Deviation,
    DtypeRow,
    Given,
    Ints,
    Operator,
    Reference,
    Row,
    Table,
    Tensor,
    layouts,
    least,
    nulls,
    on_all,
    summing,
    unit,
)
from tests.conformance.provenance import by_hand

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE

# ---- formulas
#
# All arithmetic is in float, or double for double, and each result is rounded once; u is its unit. The references are
# computed in long double.


def rows_and_columns(given: Given) -> tuple[int, int]:
    """input viewed as [R, D]."""
    shape, inner = given.inputs["input"].shape, given.arguments["normalizedShape"].values
    return prod(shape[: len(shape) - len(inner)]), prod(inner)


def wide(given: Given, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """An input in long double."""
    return given.inputs[name].astype(np.longdouble).reshape(shape)


def weight_of(given: Given, name: str, absent: float) -> np.ndarray:
    """weight or bias, as a row."""
    columns = rows_and_columns(given)[1]
    return wide(given, name, (1, columns)) if name in given.inputs else np.full((1, columns), np.longdouble(absent))


def real(given: Given) -> Dtype:
    """The compute dtype, to which mean, rstd and the weights' gradients are rounded before the cast."""
    return F64 if given.dtype == F64 else F32


def expected(value: np.ndarray, tolerance: np.ndarray, given: Given, name: str, dtype: Dtype) -> Reference:
    """From long doubles, in the shape of an output, rounded to a dtype before the cast."""
    shape = given.arguments[name].shape
    value, tolerance = (np.broadcast_to(v, value.shape).astype(np.float64).reshape(shape) for v in (value, tolerance))
    return Reference(value, tolerance + unit(given.dtype) * np.abs(value) + least(given.dtype), dtype)


def statistics(given: Given) -> tuple[np.ndarray, ...]:
    """x, its mean with its error, rstd with its relative error. The sum of x has an error of summing(D) units of the
    magnitudes, and is rounded to give the mean. An error of the mean adds its square to the variance; differences,
    squares, sum, mean and epsilon have an error of summing(D) + 6, which the root halves; root and quotient add 2."""
    rows, columns = rows_and_columns(given)
    x, u = wide(given, "input", (rows, columns)), unit(given.dtype)
    mean = x.sum(axis=1, keepdims=True) / columns
    of_mean = ((summing(columns) + 1) * np.abs(x).sum(axis=1, keepdims=True) / columns + np.abs(mean)) * u
    eps = given.arguments["eps"]
    eps = np.longdouble(eps if given.dtype == F64 else float(round_to(F32, eps)))
    # Each difference also has the mean's error, in addition to its own rounding.
    centered = x - mean
    variance = (centered * centered).sum(axis=1, keepdims=True) / columns
    of_variance = variance * (summing(columns) + 6) * u + of_mean * of_mean
    of_variance += 2 * of_mean * np.abs(centered).sum(axis=1, keepdims=True) / columns * u
    rstd = 1 / np.sqrt(variance + eps)
    return x, mean, of_mean, rstd, of_variance / (variance + eps) / 2 + 2 * u


def forward_mean(given: Given) -> Reference:
    """The mean; 0 without columns."""
    if rows_and_columns(given)[1] == 0:
        return Reference(np.zeros(given.arguments["meanOutOptional"].shape), 0.0)
    _, mean, of_mean, _, _ = statistics(given)
    return expected(mean, of_mean, given, "meanOutOptional", real(given))


def forward_rstd(given: Given) -> Reference:
    """1 / sqrt(variance + eps); NaN without columns."""
    if rows_and_columns(given)[1] == 0:
        return Reference(np.full(given.arguments["rstdOutOptional"].shape, np.nan), 0.0)
    _, _, _, rstd, share = statistics(given)
    return expected(rstd, rstd * share, given, "rstdOutOptional", real(given))


def forward_out(given: Given) -> Reference:
    """(x - mean) * rstd * weight + bias: a difference, two products and a sum."""
    if 0 in given.inputs["input"].shape:
        return Reference(np.zeros(given.inputs["input"].shape), 0.0)
    x, mean, of_mean, rstd, share = statistics(given)
    weight, bias = weight_of(given, "weightOptional", 1), weight_of(given, "biasOptional", 0)
    scaled, u = (x - mean) * rstd * weight, unit(given.dtype)
    tolerance = np.abs(scaled) * (share + 4 * u) + of_mean * rstd * np.abs(weight) + np.abs(scaled + bias) * u
    return expected(scaled + bias, tolerance, given, "out", given.dtype)


def backward(given: Given) -> tuple[np.ndarray, ...]:
    """dy, weight, rstd and xhat = (x - mean) * rstd, as [R, D]; the last has an error of 2 units."""
    rows, columns = rows_and_columns(given)
    dy, x = wide(given, "gradOut", (rows, columns)), wide(given, "input", (rows, columns))
    mean, rstd = wide(given, "mean", (rows, 1)), wide(given, "rstd", (rows, 1))
    return dy, weight_of(given, "weightOptional", 1), rstd, (x - mean) * rstd


def wanted(given: Given, i: int) -> bool:
    """True if outputMask requests a gradient."""
    return bool(given.arguments["outputMask"].values[i])


def backward_input(given: Given) -> Reference | None:
    """rstd * (a - A - xhat * B): A has an error of summing(D) + 2 units of the mean of |a|, B one of summing(D) + 5 of
    that of |a * xhat|, with the two of xhat, the product's and the mean's; products and differences add 6 of each
    part."""
    if not wanted(given, 0):
        return None
    shape = given.inputs["input"].shape
    if 0 in shape:
        return Reference(np.zeros(shape), 0.0)
    dy, weight, rstd, xhat = backward(given)
    a, columns = dy * weight, dy.shape[1]
    means = [v.sum(axis=1, keepdims=True) / columns for v in (a, a * xhat, np.abs(a), np.abs(a * xhat))]
    value = rstd * (a - means[0] - xhat * means[1])
    units = 5 * np.abs(a) + (summing(columns) + 7) * means[2] + np.abs(xhat) * (summing(columns) + 12) * means[3]
    return expected(value, np.abs(rstd) * units * unit(given.dtype), given, "gradInputOut", given.dtype)


def sum_over_rows(given: Given, name: str, terms: np.ndarray, units: int) -> Reference:
    """A sum of terms with this error each; 0 without rows."""
    magnitudes = np.abs(terms).sum(axis=0)
    tolerance = magnitudes * (summing(max(terms.shape[0], 1)) + units) * unit(given.dtype)
    return expected(terms.sum(axis=0), tolerance, given, name, real(given))


def backward_weight(given: Given) -> Reference | None:
    """The sum of dy * xhat."""
    if not wanted(given, 1):
        return None
    dy, _, _, xhat = backward(given)
    return sum_over_rows(given, "gradWeightOut", dy * xhat, 3)


def backward_bias(given: Given) -> Reference | None:
    """The sum of dy."""
    return sum_over_rows(given, "gradBiasOut", backward(given)[0], 0) if wanted(given, 2) else None


# ---- prototypes

VALUES = {
    "input": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625),
    "gradOut": (1.0, -0.5, 2.0, 0.25, -3.0, 7.0, 0.375),
    "mean": (0.25, -0.5, 1.0),
    "rstd": (1.0, 0.375, 2.0, 0.75),
    "weightOptional": (1.0, -0.75, 0.5, 1.5, 2.0),
    "biasOptional": (0.5, 0.0, -1.0, 2.0),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values, exact in every dtype."""
    return VALUES[name]


def forward_shapes(outer: tuple[int, ...], inner: tuple[int, ...]) -> Changes:
    """input of shape outer + inner, normalised over inner."""
    row = outer + (1,) * len(inner)
    return {
        "input.shape": outer + inner,
        "normalizedShape": Ints(inner),
        "weightOptional.shape": inner,
        "biasOptional.shape": inner,
        "out.shape": outer + inner,
        "meanOutOptional.shape": row,
        "rstdOutOptional.shape": row,
    }


def backward_shapes(outer: tuple[int, ...], inner: tuple[int, ...]) -> Changes:
    """The same for the gradient."""
    changes: Changes = {f"{name}.shape": outer + inner for name in ("gradOut", "input", "gradInputOut")}
    changes |= {f"{name}.shape": outer + (1,) * len(inner) for name in ("mean", "rstd")}
    weights = ("weightOptional", "biasOptional", "gradWeightOut", "gradBiasOut")
    return {**changes, "normalizedShape": Ints(inner), **{f"{name}.shape": inner for name in weights}}


X, ROW, GAMMA = Tensor(shape=(2, 3)), Tensor(shape=(2, 1)), Tensor(shape=(3,))
LAYER_NORM = Operator(
    "aclnnLayerNorm",
    {
        "input": X,
        "normalizedShape": Ints((3,)),
        "weightOptional": GAMMA,
        "biasOptional": GAMMA,
        "eps": 1e-5,
        "out": X,
        "meanOutOptional": ROW,
        "rstdOutOptional": ROW,
    },
    {"out": forward_out, "meanOutOptional": forward_mean, "rstdOutOptional": forward_rstd},
    values,
    empty=forward_shapes((0,), (3,)),
    optional=frozenset({"weightOptional", "biasOptional", "meanOutOptional", "rstdOutOptional"}),
    sizes=lambda rows, columns: forward_shapes((rows,), (columns,)),
)
ALL = Bools((True, True, True))
GRADIENTS = ("gradInputOut", "gradWeightOut", "gradBiasOut")
LAYER_NORM_BACKWARD = Operator(
    "aclnnLayerNormBackward",
    {
        "gradOut": X,
        "input": X,
        "normalizedShape": Ints((3,)),
        "mean": ROW,
        "rstd": ROW,
        "weightOptional": GAMMA,
        "biasOptional": GAMMA,
        "outputMask": ALL,
        "gradInputOut": X,
        "gradWeightOut": GAMMA,
        "gradBiasOut": GAMMA,
    },
    {"gradInputOut": backward_input, "gradWeightOut": backward_weight, "gradBiasOut": backward_bias},
    values,
    empty={**backward_shapes((2,), (0,))},
    optional=frozenset({"weightOptional", "biasOptional", *GRADIENTS}),
    sizes=lambda rows, columns: backward_shapes((rows,), (columns,)),
)

# ---- dtypes

SETS = {F32: ANYWHERE, F16: ANYWHERE, BF16: WITH_BF16, F64: HOST}


# The gradient's checker uses one set for all products.
BACKWARD_SETS = {**SETS, BF16: ANYWHERE}


def taken(dtypes: dict[str, Dtype], product: str, sets: dict[Dtype, frozenset[str]]) -> bool:
    """Each is one of the product's; weights have FLOAT or input's dtype."""
    good = all(product in sets.get(dtype, NOWHERE) for dtype in dtypes.values())
    return good and dtypes["weightOptional"] in (F32, dtypes["input"])


def forward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """weight and bias of one dtype; out, mean and rstd of any."""
    return taken(dtypes, product, SETS) and dtypes["biasOptional"] == dtypes["weightOptional"]


def backward_accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """gradOut of input's dtype."""
    return taken(dtypes, product, BACKWARD_SETS) and dtypes["gradOut"] == dtypes["input"]


# ---- the checks, in order

OTHERS = ANYWHERE - {"Ascend950"}
I32 = Dtype.INT32
DIMS_9 = (1,) * 8 + (3,)

FORWARD_CHECKS = [
    *nulls(LAYER_NORM),
    Row("3", "an unsupported input", {"input.dtype": I32}, words=("input", "INT32", "FLOAT16")),
    Row("3", "an unsupported weight", {"weightOptional.dtype": I32}, words=("weight", "INT32", "FLOAT16")),
    Row("3", "weight has another dtype", {"weightOptional.dtype": F16}, words=("weight", "FLOAT16", "input")),
    Row("3", "an unsupported bias", {"biasOptional.dtype": I32}, words=("bias", "INT32", "FLOAT16")),
    Row("3", "bias has another dtype", {"biasOptional.dtype": F16}, words=("bias", "FLOAT16", "input")),
    Row("4", "an unsupported out", {"out.dtype": I32}, words=("out", "INT32", "FLOAT16")),
    Row("4", "an unsupported mean", {"meanOutOptional.dtype": I32}, words=("meanOut", "INT32", "FLOAT16")),
    Row("4", "an unsupported rstd", {"rstdOutOptional.dtype": I32}, words=("rstdOut", "INT32", "FLOAT16")),
    Row("5", "input has 9 dims", {"input.shape": DIMS_9}, words=("input", "9", "8")),
    Row("5", "out has 9 dims", {"out.shape": DIMS_9}, words=("out", "9", "8")),
    Row("5", "weight has 9 dims", {"weightOptional.shape": DIMS_9}, words=("weight", "9", "8")),
    Row("5", "bias has 9 dims", {"biasOptional.shape": DIMS_9}, words=("bias", "9", "8")),
    Row("5", "mean has 9 dims", {"meanOutOptional.shape": DIMS_9}, words=("meanOut", "9", "8")),
    Row("5", "rstd has 9 dims", {"rstdOutOptional.shape": DIMS_9}, words=("rstdOut", "9", "8")),
    Row("6", "nothing normalised", {"normalizedShape": Ints(())}, words=("normalizedShape", "0", "1")),
    Row("7", "input has other sizes", {"input.shape": (2, 4)}, words=("input", "2, 4", "3")),
    Row("7", "weight has other sizes", {"weightOptional.shape": (4,)}, words=("weight", "4", "3")),
    Row("7", "bias has other sizes", {"biasOptional.shape": (4,)}, words=("bias", "4", "3")),
    Row("8", "out has other sizes", {"out.shape": (3, 3)}, words=("out", "3, 3", "2, 3")),
    Row("9", "mean of other rows", {"meanOutOptional.shape": (3, 1)}, words=("meanOut", "3, 1", "2")),
    Row("9", "rstd of other rows", {"rstdOutOptional.shape": (3, 1)}, words=("rstdOut", "3, 1", "2")),
]
FORWARD_MORE = [
    Row("3", "bfloat16", on_all(LAYER_NORM, "dtype", BF16), WITH_BF16, words=("input", "BFLOAT16", "Ascend910B")),
    Row("3", "float64", on_all(LAYER_NORM, "dtype", F64), HOST, words=("input", "DOUBLE", "host")),
    Row(
        "3",
        "weight and bias differ",
        {"input.dtype": F16, "weightOptional.dtype": F16},
        words=("bias", "FLOAT", "weight"),
    ),
    Row("6", "more sizes than dims", {"normalizedShape": Ints((1, 2, 3))}, words=("input", "2, 3", "3")),
    Row("6", "9 sizes", {"normalizedShape": Ints(DIMS_9)}, words=("normalizedShape", "9", "8")),
    Row("7", "weight has another rank", {"weightOptional.shape": (1, 3)}, words=("weight", "1, 3", "3")),
    Row("7", "bias has another rank", {"biasOptional.shape": (1, 3)}, words=("bias", "1, 3", "3")),
    *(
        Row("9", f"{name} {how}", {f"{name}Optional.shape": shape}, OTHERS, words=(name, f"{list(shape)}", "[2, 1]"))
        for name in ("meanOut", "rstdOut")
        for how, shape in (("flat", (2,)), ("of a leading 1", (1, 2)), ("of three dims", (1, 2, 1)))
    ),
    Row(
        "9",
        "no rows, rstdOut without the last dim",
        {**forward_shapes((0,), (3,)), "rstdOutOptional.shape": (0,)},
        OTHERS,
        words=("rstdOut", "[0]", "[0, 1]"),
    ),
]

BACKWARD_CHECKS = [
    *nulls(LAYER_NORM_BACKWARD),
    Row("3", "outputMask of 2", {"outputMask": Bools((True, True))}, words=("outputMask", "2", "3")),
    *(Row("4", f"{name} null", {name: None}, code=PARAM_NULLPTR, words=(name,)) for name in GRADIENTS),
    Row("5", "an unsupported gradOut", {"gradOut.dtype": I32}, words=("gradOut", "INT32", "FLOAT16")),
    Row("5", "an unsupported input", {"input.dtype": I32}, words=("input", "INT32", "FLOAT16")),
    Row("5", "an unsupported mean", {"mean.dtype": I32}, words=("mean", "INT32", "FLOAT16")),
    Row("5", "an unsupported rstd", {"rstd.dtype": I32}, words=("rstd", "INT32", "FLOAT16")),
    Row("5", "gradOut has another dtype", {"gradOut.dtype": F16}, words=("gradOut", "FLOAT16", "input")),
    Row("5", "an unsupported weight", {"weightOptional.dtype": I32}, words=("weight", "INT32", "FLOAT16")),
    Row("5", "weight has another dtype", {"weightOptional.dtype": F16}, words=("weight", "FLOAT16", "input")),
    Row("5", "an unsupported bias", {"biasOptional.dtype": I32}, words=("bias", "INT32", "FLOAT16")),
    *(Row("5", f"an unsupported {name}", {f"{name}.dtype": I32}, words=(name, "INT32")) for name in GRADIENTS),
    *(Row("6", f"{n} has 9 dims", {f"{n}.shape": DIMS_9}, words=(n, "9", "8")) for n in ("gradOut", "input")),
    *(Row("6", f"{n} has 9 dims", {f"{n}.shape": DIMS_9}, words=(n, "9", "8")) for n in ("mean", "rstd", *GRADIENTS)),
    Row("7", "nothing normalised", {"normalizedShape": Ints(())}, words=("normalizedShape", "0", "1")),
    Row("8", "input has other sizes", {"input.shape": (2, 4)}, words=("input", "2, 4", "3")),
    Row("8", "weight has other sizes", {"weightOptional.shape": (4,)}, words=("weight", "4", "3")),
    Row("8", "bias has other sizes", {"biasOptional.shape": (4,)}, words=("bias", "4", "3")),
    Row("9", "gradOut has other sizes", {"gradOut.shape": (3, 3)}, words=("gradOut", "3, 3", "2, 3")),
    Row("10", "mean has another shape", {"mean.shape": (3, 1)}, words=("mean", "3, 1", "2, 1")),
    Row("10", "rstd has another shape", {"rstd.shape": (2,)}, words=("mean", "2, 1", "2")),
    Row("11", "gradInputOut of other sizes", {"gradInputOut.shape": (3, 2)}, words=("gradInputOut", "3, 2", "2, 3")),
    Row("11", "gradWeightOut of other sizes", {"gradWeightOut.shape": (4,)}, words=("gradWeightOut", "4", "3")),
    Row("11", "gradBiasOut of other sizes", {"gradBiasOut.shape": (4,)}, words=("gradBiasOut", "4", "3")),
]
BACKWARD_MORE = [
    Row("5", "float64", on_all(LAYER_NORM_BACKWARD, "dtype", F64), HOST, words=("gradOut", "DOUBLE", "host")),
    Row("7", "more sizes than dims", {"normalizedShape": Ints((1, 2, 3))}, words=("input", "2, 3", "3")),
    Row("8", "weight has another rank", {"weightOptional.shape": (1, 3)}, words=("weight", "1, 3", "3")),
    Row("10", "both of other rows", {"mean.shape": (3, 1), "rstd.shape": (3, 1)}, words=("mean", "3, 1", "2")),
    Row(
        "4",
        "masked off, of another dtype",
        {"outputMask": Bools((True, False, True)), "gradWeightOut.dtype": I32},
        words=("gradWeightOut", "INT32"),
    ),
]


def rows_of(condition: str, changes: dict[str, Changes]) -> list[Row]:
    """Calls accepted on every product."""
    return [Row(condition, name, change, ANYWHERE) for name, change in changes.items()]


FORWARD_ACCEPTED = rows_of(
    "-",
    {
        "no weight": {"weightOptional": None},
        "no bias": {"biasOptional": None},
        "neither": {"weightOptional": None, "biasOptional": None},
        "no mean": {"meanOutOptional": None},
        "no rstd": {"rstdOutOptional": None},
        "out alone": {"meanOutOptional": None, "rstdOutOptional": None},
        "all dims normalised": forward_shapes((), (2, 3)),
        "8 dims": forward_shapes((1, 2, 1, 2, 1), (2, 1, 2)),
        "float weights of float16": {"input.dtype": F16, "out.dtype": F16},
        "no rows": forward_shapes((0,), (3,)),
        "no columns": forward_shapes((2,), (0,)),
        "no columns, no statistics": {**forward_shapes((2,), (0,)), "meanOutOptional": None, "rstdOutOptional": None},
        "eps 0": {"eps": 0.0},
        **{f"format {f.name}": on_all(LAYER_NORM, "format", f) for f in Format},
    },
)
BACKWARD_ACCEPTED = rows_of(
    "-",
    {
        "no weight": {"weightOptional": None},
        "no bias": {"biasOptional": None},
        "nothing asked for": {"outputMask": Bools((False,) * 3), **dict.fromkeys(GRADIENTS)},
        **{
            f"only {name}": {
                "outputMask": Bools(tuple(other == name for other in GRADIENTS)),
                **{other: None for other in GRADIENTS if other != name},
            }
            for name in GRADIENTS
        },
        "masked off, not null": {"outputMask": Bools((False, True, False))},
        "masked off, of another shape": {"outputMask": Bools((True, True, False)), "gradBiasOut.shape": (5,)},
        "all dims normalised": backward_shapes((), (2, 3)),
        "8 dims": backward_shapes((1, 2, 1, 2, 1), (2, 1, 2)),
        "mean and rstd flat": {"mean.shape": (2,), "rstd.shape": (2,)},
        "gradients of the weights in another shape": {"gradWeightOut.shape": (1, 3), "gradBiasOut.shape": (3, 1)},
        "bias of another dtype": {"biasOptional.dtype": F16},
        "bfloat16": on_all(LAYER_NORM_BACKWARD, "dtype", BF16),
        "no rows": backward_shapes((0,), (3,)),
        "no rows, only gradInputOut": {
            **backward_shapes((0,), (3,)),
            "outputMask": Bools((True, False, False)),
            **dict.fromkeys(GRADIENTS[1:]),
        },
        "no columns": backward_shapes((2,), (0,)),
        **{f"format {f.name}": on_all(LAYER_NORM_BACKWARD, "format", f) for f in Format},
    },
)


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any shapes, layouts, dtypes and absent arguments."""
    sizes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    outer, inner = draw(sizes), (*draw(sizes), draw(st.integers(0, 20)))
    shapes = forward_shapes if operator is LAYER_NORM else backward_shapes
    changes = shapes(outer, inner)
    dtype, weights = draw(st.sampled_from([(F32, F32), (F16, F16), (BF16, F32), (F16, F32), (F64, F64)]))
    of_dtype = ("input", "gradOut", "out", "gradInputOut")
    for name in operator.tensors:
        shape = changes.pop(f"{name}.shape")
        written = name in operator.outputs
        own = dtype if name in of_dtype else weights
        changes[name] = Tensor(own, **draw(layouts(shape, zero_stride=not written)))
    if operator is LAYER_NORM_BACKWARD:
        mask = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
        changes["outputMask"] = Bools(mask)
        absent = {name for name, on in zip(GRADIENTS, mask, strict=True) if not on and draw(st.booleans())}
    else:
        absent = {name for name in ("meanOutOptional", "rstdOutOptional") if draw(st.booleans())}
    absent |= {name for name in ("weightOptional", "biasOptional") if draw(st.booleans())}
    return {**changes, **dict.fromkeys(absent)}


# ---- Deliberate deviations from CANN

DEVIATIONS = (Deviation("aclnnLayerNorm", "9", r"(mean|rstd) of other rows", "layernorm"),)


# ---- The sources of the rows

SOURCES = {
    "aclnnLayerNorm": by_hand(
        "norm/layer_norm_v4/op_host/op_api/aclnn_layer_norm.cpp",
        {
            "3": "CheckInputDtype",
            "4": "CheckOutputDtype",
            "5": "CheckLen",
            **dict.fromkeys("678", "CheckShape"),
            "9": "CheckMeanRstdOutputShape",
        },
        {
            "no (weight|bias|mean|rstd)|neither|out alone": "CheckNotNull",
            "float weights of float16": "CheckInputDtype",
            "8 dims": "CheckLen",
            "all dims normalised": "CheckShape",
            "format .*|eps 0": "CheckParamsWithImplMode",
            "no rows|no columns.*": "aclnnLayerNormWithImplModeGetWorkspaceSize",
        },
        rest="CheckParamsWithImplMode",
    ),
    "aclnnLayerNormBackward": by_hand(
        "norm/layer_norm_grad_v3/op_host/op_api/aclnn_layer_norm_backward.cpp",
        {
            "3": "aclnnLayerNormBackwardGetWorkspaceSize",
            "4": "aclnnLayerNormBackwardGetWorkspaceSize",
            "5": "CheckDtype",
            **dict.fromkeys(("6", "7", "8", "9", "10", "11"), "CheckShape"),
        },
        {
            "no (weight|bias)": "CheckNotNull",
            "bias of another dtype|bfloat16": "CheckDtype",
            ".* dims.*|mean and rstd flat|.* shape": "CheckShape",
            "format .*": "CheckParams",
            "nothing asked for|only .*|masked off, not null|no rows.*|no columns": (
                "aclnnLayerNormBackwardGetWorkspaceSize"
            ),
        },
    ),
}


def table(operator: Operator, rows: tuple[list[Row], list[Row], list[Row]]) -> Table:
    """The parts that the two tables share."""
    shapes = forward_shapes if operator is LAYER_NORM else backward_shapes
    names, sets = operator.tensors, SETS if operator is LAYER_NORM else BACKWARD_SETS
    narrow = {"weightOptional", "biasOptional", "meanOutOptional", "rstdOutOptional", "mean", "rstd", *GRADIENTS[1:]}
    return Table(
        operator,
        *rows,
        dtypes=[
            *(DtypeRow((dtype,) * len(names), products) for dtype, products in sets.items()),
            *(
                DtypeRow(tuple(F32 if name in narrow else dtype for name in names), sets[dtype])
                for dtype in (F16, BF16)
            ),
        ],
        shapes=[shapes((3,), (4,)), shapes((2, 3), (4,)), shapes((2,), (3, 4))],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=forward_accepts if operator is LAYER_NORM else backward_accepts,
    )


TABLES = (
    table(LAYER_NORM, (FORWARD_CHECKS, FORWARD_MORE, FORWARD_ACCEPTED)),
    table(LAYER_NORM_BACKWARD, (BACKWARD_CHECKS, BACKWARD_MORE, BACKWARD_ACCEPTED)),
)
