"""aclnnCrossEntropyLoss(Grad): refusals in the order of CANN's checks, and results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.cabi import AICORE_EXCEPTION, TILING_ERROR, Dtype, Format, round_to
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
    in_text,
    layouts,
    least,
    nulls,
    summing,
    unit,
)
from tests.conformance.provenance import GENERATED_DTYPES, NO_LAUNCH, generated, ops_nn

F32, F16, BF16, F64, I32, I64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE, Dtype.INT32, Dtype.INT64
MISSING = frozenset({"Ascend310P", "Ascend910"})
PRESENT = ANYWHERE - MISSING
# The products with label smoothing, z-loss and INT32 targets.
NEWEST = frozenset({"Ascend950", "host"})

# ---- formulas (the documents of aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad)
#
# All arithmetic is in float, or double for double, and each result is rounded once, as in CANN's kernels; u is its
# unit. An operation has an error of half of it, a function 2, and a sum that of `summing`. The references are in long
# double.


class Terms(NamedTuple):
    """Values that forward and backward derive from their arguments."""

    target: np.ndarray  # [N], of ignored rows 0
    mask: np.ndarray  # [N], 0 for ignored rows
    weight: np.ndarray  # [C], none negative
    weight_of_target: np.ndarray  # [N], 0 for ignored rows
    reduction: str
    smoothing: float
    z_scale: float

    def mean_over(self, weights: np.ndarray) -> np.longdouble | float:
        """The divisor of a row's contribution."""
        return weights.sum() if self.reduction == "mean" else 1.0


def wide(values: np.ndarray) -> np.ndarray:
    """In long double."""
    return values.astype(np.longdouble)


def terms(given: Given, classes: int) -> Terms:
    """The terms of a call with this many classes."""
    target = given.inputs["target"]
    mask = wide(target != given.arguments["ignoreIndex"])
    target = np.where(mask == 0, 0, target).astype(np.int64)
    weight = given.inputs.get("weightOptional")
    weight = np.ones(classes, np.longdouble) if weight is None else wide(weight)
    narrow = F64 if given.dtype == F64 else F32  # CANN narrows its double attributes to float
    smoothing, z_scale = (
        float(round_to(narrow, given.arguments[name])) for name in ("labelSmoothing", "lseSquareScaleForZloss")
    )
    reduction = given.arguments["reductionOptional"] or "mean"
    return Terms(target, mask, weight, mask * weight[target], reduction, smoothing, z_scale)


def expected(value: np.ndarray, units: np.ndarray | float, given: Given) -> Reference:
    """From long doubles, and the error of the arithmetic in units; 2 more are for the last operation."""
    value, units = np.asarray(value, np.float64), np.asarray(units, np.float64)
    return Reference(value, (units + 2 * np.abs(value)) * unit(given.dtype) + least(given.dtype))


class Softmax(NamedTuple):
    """The softmax of each row."""

    lse: np.ndarray  # [N, 1]
    lse_units: np.ndarray  # its error
    log_prob: np.ndarray  # [N, C]
    log_prob_units: np.ndarray


def softmax(given: Given) -> Softmax:
    """lse = max + log(sum of exp(x - max)), logProb = x - lse, or (x - max) - log(sum).

    The sum has an error of 2 + summing(C) units, plus that of x - max averaged over the row, whose rounding each exp
    multiplies into its result. So has the logarithm, plus 2 units of its own. Each further sum or difference adds one
    unit of its result, x - max one of its own.
    """
    x = wide(given.inputs["input"])
    most = x.max(axis=1, keepdims=True)
    shifted = x - most
    power = np.exp(shifted)
    total = power.sum(axis=1, keepdims=True)
    slope = np.where(power > 0, power * np.abs(shifted), 0.0).sum(axis=1, keepdims=True) / total
    log = np.log(total)
    lse = most + log
    lse_units = summing(x.shape[1]) + 2 + slope + 2 * np.abs(log) + np.abs(lse)
    log_prob = shifted - log
    log_prob_units = lse_units + np.abs(shifted) + np.abs(log_prob)
    return Softmax(lse, lse_units, log_prob, np.where(np.isfinite(log_prob), log_prob_units, 0.0))


def forward_log_prob(given: Given) -> Reference:
    """[N, C], regardless of ignored rows."""
    rows = softmax(given)
    return expected(rows.log_prob, rows.log_prob_units, given)


def reduced(value: np.ndarray, units: np.ndarray, over: np.ndarray, t: Terms, given: Given) -> Reference:
    """Rows by the reduction: unchanged, or their sum, divided for the mean by that of `over`."""
    if t.reduction == "none":
        return expected(value, units, given)
    total = t.mean_over(over)
    units = units.sum() + 2 * summing(len(value)) * np.abs(value).sum()
    return expected(np.atleast_1d(value.sum() / total), units / total, given)


def forward_loss(given: Given) -> Reference:
    """A row's m * ((1 - s) * -w[t] * logProb[t] + s / C * sum over C of -w * logProb), from the unrounded logProb.
    Without smoothing the second part is left out, so that a class of probability 0 does not matter."""
    classes = given.inputs["input"].shape[1]
    t, rows = terms(given, classes), softmax(given)
    at = (np.arange(len(t.target)), t.target)
    log_prob, units = np.where(t.mask, rows.log_prob[at], 0.0), np.where(t.mask, rows.log_prob_units[at], 0.0)
    kept = (1 - t.smoothing) * t.weight_of_target
    value, units = -kept * log_prob, kept * (units + 3 * np.abs(log_prob))
    if t.smoothing:
        every, share = t.weight * rows.log_prob, t.mask * t.smoothing / classes
        value = value - share * every.sum(axis=1)
        magnitudes = np.abs(every).sum(axis=1) * (summing(classes) + 4)
        units = units + share * ((t.weight * rows.log_prob_units).sum(axis=1) + magnitudes)
    return reduced(np.where(t.mask, value, 0.0), np.where(t.mask, units, 0.0), t.weight_of_target, t, given)


def forward_z_loss(given: Given) -> Reference:
    """scale * m * lse^2 of a row; None unless requested."""
    if not given.arguments["returnZloss"]:
        return Reference(np.zeros(0), 0.0)
    rows = softmax(given)
    t = terms(given, given.inputs["input"].shape[1])
    lse, units = rows.lse[:, 0], rows.lse_units[:, 0]
    value = t.z_scale * lse * lse
    units = np.abs(t.z_scale) * (2 * np.abs(lse) * units + 2 * lse * lse)
    return reduced(np.where(t.mask, value, 0.0), np.where(t.mask, units, 0.0), t.mask, t, given)


def forward_lse(given: Given) -> Reference:
    """[N], regardless of ignored rows; None without a scale."""
    if given.arguments["lseSquareScaleForZloss"] == 0:
        return Reference(np.zeros(0), 0.0)
    rows = softmax(given)
    return expected(rows.lse[:, 0], rows.lse_units[:, 0], given)


def backward(given: Given) -> Reference:
    """exp(logProb) * (L * w[t] + S * sum of w + Z * 2 * scale * lse) - (L * w[t] where the class is t) - S * w, with
    L = m * g * (1 - s), S = m * g * s / C, Z = m * gz, for the mean L and S over the sum of m * w[t], Z over that of m.

    Each of L, S, Z is one or two products and a quotient, its divisor summing(N); the sum of w has an error of
    summing(C), exp 2 units. Ignored rows are 0 whatever they contain."""
    log_prob = wide(given.inputs["logProb"])
    rows, classes = log_prob.shape
    t = terms(given, classes)
    smoothing = np.float64(t.smoothing)

    def column(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values.reshape(-1), (rows,))[:, None]

    def where_kept(values: np.ndarray) -> np.ndarray:
        return np.where(column(t.mask) == 0, 0.0, values)

    factor_units = 6 + 2 * summing(rows)
    g = column(wide(given.inputs["gradLoss"]) / t.mean_over(t.weight_of_target))
    of_target = where_kept(g * (1 - smoothing) * column(t.weight_of_target))
    spread = where_kept(g * smoothing / classes)
    z = np.zeros((rows, 1), np.longdouble)
    if given.arguments["gradZlossOptional"] is not None:
        gz = column(wide(given.inputs["gradZlossOptional"]) / t.mean_over(t.mask))
        z = where_kept(gz * 2 * t.z_scale * column(wide(given.inputs["lseForZlossOptional"])))
    probability = np.exp(log_prob)
    hit = np.arange(classes)[None, :] == t.target[:, None]
    value = probability * (of_target + spread * t.weight.sum() + z) - hit * of_target - spread * t.weight
    all_weights = np.abs(spread) * np.abs(t.weight).sum()
    units = probability * ((factor_units + 5) * (np.abs(of_target) + all_weights + np.abs(z)))
    units = units + probability * summing(classes) * all_weights
    units = units + (factor_units + 2) * (hit * np.abs(of_target) + np.abs(spread * t.weight))
    reference = expected(where_kept(value), where_kept(units), given)
    subnormal = least(given.dtype) * np.float64(np.abs(of_target) + all_weights + np.abs(z))  # of exp
    return reference._replace(tolerance=reference.tolerance + subnormal)


# ---- prototypes (the functions' documents)

N, C = 3, 5
VALUES = {
    "input": (-2.5, 1.0, -0.125, 0.0, 0.5, -7.25, 3.0, -0.75, 0.0625, 11.0, 4.0),
    "logProb": (-1.75, -0.25, -3.0, -0.5, -2.5, -7.25, -0.125),
    "target": (4, 0, 2),
    "weightOptional": (1.0, 0.25, 2.0, 0.5, 3.0, 1.5),
    "gradLoss": (2.0, -0.5, 0.75, 1.5),
    "gradZlossOptional": (0.5, 3.0, -1.0),
    "lseForZlossOptional": (0.25, -2.0, 3.5, 8.0),
}


def values(dtype: Dtype, name: str) -> tuple[float, ...]:
    """Small values, exact in every dtype; labels of 5 classes."""
    return VALUES[name]


def labels(rows: int, classes: int) -> tuple[int, ...]:
    """A label for each row, covering the classes."""
    return tuple((7 * row + classes - 1) % max(classes, 1) for row in range(rows))


def forward_shapes(rows: int, classes: int, reduction: str = "mean") -> Changes:
    """This many rows and classes, without z-loss."""
    return {
        "input.shape": (rows, classes),
        "target.shape": (rows,),
        "target.values": labels(rows, classes) or None,
        "weightOptional.shape": (classes,),
        "reductionOptional": reduction,
        "lossOut.shape": (rows,) if reduction == "none" else (1,),
        "logProbOut.shape": (rows, classes),
    }


def backward_shapes(rows: int, classes: int, reduction: str = "mean") -> Changes:
    """The same for the gradient."""
    return {
        "gradLoss.shape": (rows,) if reduction == "none" else (1,),
        "logProb.shape": (rows, classes),
        "target.shape": (rows,),
        "target.values": labels(rows, classes) or None,
        "weightOptional.shape": (classes,),
        "reductionOptional": reduction,
        "out.shape": (rows, classes),
    }


LOGITS, TARGET, WEIGHT, ONE = (
    Tensor(shape=(N, C)),
    Tensor(I64, shape=(N,)),
    Tensor(shape=(C,)),
    Tensor(shape=(1,)),
)
NOTHING = Tensor(shape=(0,))

CROSS_ENTROPY_LOSS = Operator(
    "aclnnCrossEntropyLoss",
    {
        "input": LOGITS,
        "target": TARGET,
        "weightOptional": WEIGHT,
        "reductionOptional": "mean",
        "ignoreIndex": -100,
        "labelSmoothing": 0.0,
        "lseSquareScaleForZloss": 0.0,
        "returnZloss": False,
        "lossOut": ONE,
        "logProbOut": LOGITS,
        "zlossOut": NOTHING,
        "lseForZlossOut": NOTHING,
    },
    {
        "lossOut": forward_loss,
        "logProbOut": forward_log_prob,
        "zlossOut": forward_z_loss,
        "lseForZlossOut": forward_lse,
    },
    values,
    optional=frozenset({"weightOptional", "reductionOptional"}),
    generated=True,
    missing=MISSING,
    sizes=forward_shapes,
    empty=forward_shapes(0, C, "none"),
)
CROSS_ENTROPY_LOSS_GRAD = Operator(
    "aclnnCrossEntropyLossGrad",
    {
        "gradLoss": ONE,
        "logProb": LOGITS,
        "target": TARGET,
        "weightOptional": WEIGHT,
        "gradZlossOptional": None,
        "lseForZlossOptional": None,
        "reductionOptional": "mean",
        "ignoreIndex": -100,
        "labelSmoothing": 0.0,
        "lseSquareScaleForZloss": 0.0,
        "out": LOGITS,
    },
    {"out": backward},
    values,
    optional=frozenset({"weightOptional", "gradZlossOptional", "lseForZlossOptional", "reductionOptional"}),
    generated=True,
    missing=MISSING,
    sizes=backward_shapes,
    empty=backward_shapes(0, C, "none"),
)

# ---- dtypes (CANN's descriptions of the operators): of everything floating, weight and target, by product

DTYPES = {
    (F32, F32, I64): WITH_BF16,
    (F16, F32, I64): WITH_BF16,
    (BF16, F32, I64): WITH_BF16,
    (F64, F64, I64): HOST,
    (F32, F32, I32): NEWEST,
    (F16, F32, I32): NEWEST,
    (BF16, F32, I32): NEWEST,
    (F64, F64, I32): HOST,
}
FORWARD_DTYPES = [DtypeRow((x, target, weight, x, x, x, x), on) for (x, weight, target), on in DTYPES.items()]
BACKWARD_DTYPES = [DtypeRow((x, x, target, weight, x), on) for (x, weight, target), on in DTYPES.items()]

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text

GRAD_Z = {"gradZlossOptional": ONE, "lseForZlossOptional": Tensor(shape=(N,)), "lseSquareScaleForZloss": 0.5}
WITH_Z = {"lseSquareScaleForZloss": 0.5, "returnZloss": True, "zlossOut": ONE, "lseForZlossOut": Tensor(shape=(N,))}


def refused(number: str, condition: str, changes: Changes, *words: str, on: frozenset[str] = frozenset()) -> Row:
    """A failure of shapes or attributes: 561002 in this family."""
    return Row(number, condition, changes, on, TILING_ERROR, words)


def bad_label(label: int, where: int = 1) -> Row:
    """An error that only stage 2 detects: an invalid label that is not ignored."""
    target = tuple(label if row == where else 1 for row in range(N))
    words = ("target", str(label), str(C))
    return Row("4.2", f"label {label}", {"target.values": target}, code=AICORE_EXCEPTION, words=words)


BAD_LABELS = [bad_label(label) for label in (C, -1, -99, 2**31, -(2**31), 2**40)] + [bad_label(C + 1, 0)]


def bad_formats(operator: Operator) -> list[Row]:
    """Each tensor in a format that is not read as ND."""
    return [
        Row("6", f"format {f.name} of {name}", {f"{name}.format": f}, words=(in_text(name), "format"))
        for f in (Format.NDHWC, Format.FRACTAL_NZ, Format.UNDEFINED)
        for name in operator.tensors
    ]


def good_formats(operator: Operator) -> list[Row]:
    """All tensors in a format that is read as ND."""
    return [
        Row("6", f"format {f.name}", {f"{name}.format": f for name in operator.tensors}, PRESENT)
        for f in (Format.NCL, Format.NCHW, Format.NHWC, Format.NCDHW)
    ]


BACKWARD_CHECKS = [
    *nulls(CROSS_ENTROPY_LOSS_GRAD),
    Row("5", "integers", {"logProb.dtype": I32}, words=("logProb", "INT32", "FLOAT16")),
    Row("6", "a private format", {"weightOptional.format": Format.FRACTAL_NZ}, words=("weight", "format")),
    refused("7", "logProb has 3 dims", {"logProb.shape": (N, C, 1)}, "logProb", "3, 5, 1"),
    refused("7", "gradLoss has other rows", {"gradLoss.shape": (2,)}, "gradLoss", "2"),
    refused("7", "target has other rows", {"target.shape": (4,)}, "target", "4"),
    refused("7", "weight has other classes", {"weightOptional.shape": (4,)}, "weight", "4"),
    refused(
        "7", "an unknown reduction", {"reductionOptional": "average"}, "reduction", "average", "mean", "sum", "none"
    ),
    refused("7", "labelSmoothing > 1", {"labelSmoothing": 1.5}, "labelSmoothing", "1.5"),
]
BACKWARD_MORE = [
    *bad_formats(CROSS_ENTROPY_LOSS_GRAD),
    Row(
        "5",
        "16-bit weight",
        {f"{name}.dtype": F16 for name in ("gradLoss", "logProb", "weightOptional", "out")},
        words=("weight", "FLOAT16"),
    ),
    Row("5", "floating target", {"target.dtype": F32}, words=("target", "FLOAT")),
    Row("5", "32-bit target", {"target.dtype": I32}, NEWEST, words=("target", "INT32", "INT64")),
    Row("5", "64-bit weight", {"weightOptional.dtype": F64}, words=("weight", "DOUBLE")),
    Row(
        "5",
        "z-loss gradient of another dtype",
        {**GRAD_Z, "gradZlossOptional": Tensor(F16, (1,))},
        words=("gradZloss", "FLOAT16"),
    ),
    Row(
        "5",
        "lse of another dtype",
        {**GRAD_Z, "lseForZlossOptional": Tensor(F16, (N,))},
        words=("lseForZloss", "FLOAT16"),
    ),
    Row(
        "6",
        "z-loss gradient in a bad format",
        {**GRAD_Z, "gradZlossOptional": Tensor(shape=(1,), format=Format.NDHWC)},
        words=("gradZloss", "format"),
    ),
    refused("7", "logProb has 1 dim", {"logProb.shape": (N * C,)}, "logProb", "15"),
    refused("7", "target has 2 dims", {"target.shape": (N, 1)}, "target", "3, 1"),
    refused("7", "target has no dims", {"target.shape": ()}, "target"),
    refused("7", "weight has 2 dims", {"weightOptional.shape": (1, C)}, "weight", "1, 5"),
    refused("7", "gradLoss [N] for mean", {"gradLoss.shape": (N,)}, "gradLoss", "3"),
    refused("7", "gradLoss [N] for sum", {"gradLoss.shape": (N,), "reductionOptional": "sum"}, "gradLoss", "3"),
    refused("7", "gradLoss [1] for none", {"reductionOptional": "none"}, "gradLoss", "3"),
    refused("7", "gradLoss 0-D for none", {"reductionOptional": "none", "gradLoss.shape": ()}, "gradLoss", "3"),
    refused("7", "gradLoss [1, 1] for mean", {"gradLoss.shape": (1, 1)}, "gradLoss", "1, 1"),
    refused("7", "gradLoss empty", {"gradLoss.shape": (0,)}, "gradLoss", "0"),
    refused("7", "out has other dims", {"out.shape": (C, N)}, "out", "5, 3"),
    refused("7", "out has another rank", {"out.shape": (N * C,)}, "out", "15"),
    *(
        refused("7", f"reduction {text!r}", {"reductionOptional": text}, "reduction", "mean", "sum", "none")
        for text in ("", "Mean", "mean ", "means", "non", "batchmean")
    ),
    refused("7", "labelSmoothing < 0", {"labelSmoothing": -0.25}, "labelSmoothing", "-0.25"),
    refused("7", "labelSmoothing NaN", {"labelSmoothing": np.nan}, "labelSmoothing", "nan"),
    refused("7", "label smoothing", {"labelSmoothing": 0.125}, "labelSmoothing", "Ascend950", "host", on=NEWEST),
    refused("7", "all of it smoothing", {"labelSmoothing": 1.0}, "labelSmoothing", "Ascend950", "host", on=NEWEST),
    refused("7", "z-loss", GRAD_Z, "Ascend950", "host", on=NEWEST),
    refused("7", "a z-loss scale", {"lseSquareScaleForZloss": 0.5}, "lseSquareScaleForZloss", "Ascend950", on=NEWEST),
    refused("7", "z-loss gradient of other rows", {**GRAD_Z, "gradZlossOptional": Tensor(shape=(2,))}),
    refused("7", "lse of other rows", {**GRAD_Z, "lseForZlossOptional": Tensor(shape=(N + 1,))}),
    refused("7", "z-loss gradient without lse", {**GRAD_Z, "lseForZlossOptional": None}),
    refused("7", "z-loss gradient with lse of no rows", {**GRAD_Z, "lseForZlossOptional": NOTHING}),
    *BAD_LABELS,
]
BACKWARD_ACCEPTED = [
    *good_formats(CROSS_ENTROPY_LOSS_GRAD),
    Row("6", "lse as the forward returns it without a scale", {"lseForZlossOptional": NOTHING}, PRESENT),
    *(Row("4.1", f"reduction {text}", backward_shapes(N, C, text), PRESENT) for text in ("mean", "sum", "none")),
    Row("4.1", "reduction null is mean", {"reductionOptional": None}, PRESENT),
    Row("4.1", "no weight", {"weightOptional": None}, PRESENT),
    Row("7", "gradLoss 0-D for mean", {"gradLoss.shape": ()}, PRESENT),
    Row("7", "gradLoss 0-D for sum", {"gradLoss.shape": (), "reductionOptional": "sum"}, PRESENT),
    *(Row("8", f"no rows, {text}", backward_shapes(0, C, text), PRESENT) for text in ("mean", "sum", "none")),
    Row("8", "no classes", backward_shapes(N, 0, "none"), PRESENT),
    Row("8", "out empty, all else wrong", {"out.shape": (0,), "logProb.shape": (7,), "labelSmoothing": 2.0}, PRESENT),
    Row("4.3", "a negative ignoreIndex", {"target.values": (1, -100, 2)}, PRESENT),
    Row("4.3", "another negative one", {"target.values": (1, -7, 2), "ignoreIndex": -7}, PRESENT),
    Row("4.3", "a class ignored", {"ignoreIndex": 2}, PRESENT),
    Row("4.3", "ignoreIndex beyond the classes", {"target.values": (1, 1000, 2), "ignoreIndex": 1000}, PRESENT),
    Row("4.3", "ignoreIndex beyond 2^24", {"target.values": (1, 2**24 + 1, 2), "ignoreIndex": 2**24 + 1}, PRESENT),
    *(
        Row("4.3", f"all rows ignored, {text}", {**backward_shapes(N, C, text), "target.values": (-100,)}, PRESENT)
        for text in ("mean", "sum", "none")
    ),
]

EMPTY_OUTPUTS = {f"{name}.shape": (0,) for name in CROSS_ENTROPY_LOSS.outputs}

# Checks of aclnnCrossEntropyLoss, with the gradient's numbers.
FORWARD_CHECKS = [
    *nulls(CROSS_ENTROPY_LOSS),
    Row("5", "integers", {"input.dtype": I32}, words=("input", "INT32", "FLOAT16")),
    Row("6", "a private format", {"weightOptional.format": Format.FRACTAL_NZ}, words=("weight", "format")),
    refused("7", "input has 3 dims", {"input.shape": (N, C, 1)}, "input", "3, 5, 1"),
    refused("7", "target has other rows", {"target.shape": (4,)}, "target", "4"),
    refused("7", "weight has other classes", {"weightOptional.shape": (4,)}, "weight", "4"),
    refused(
        "7", "an unknown reduction", {"reductionOptional": "average"}, "reduction", "average", "mean", "sum", "none"
    ),
    refused("7", "labelSmoothing > 1", {"labelSmoothing": 1.5}, "labelSmoothing", "1.5"),
]
FORWARD_MORE = [
    *bad_formats(CROSS_ENTROPY_LOSS),
    Row(
        "5",
        "16-bit weight",
        {f"{name}.dtype": F16 for name in CROSS_ENTROPY_LOSS.tensors if name != "target"},
        words=("weight", "FLOAT16"),
    ),
    Row("5", "floating target", {"target.dtype": F32}, words=("target", "FLOAT")),
    Row("5", "32-bit target", {"target.dtype": I32}, NEWEST, words=("target", "INT32", "INT64")),
    Row(
        "5",
        "wider loss",
        {**{f"{name}.dtype": F16 for name in ("input", "logProbOut", "zlossOut", "lseForZlossOut")}},
        words=("lossOut", "FLOAT"),
    ),
    refused("7", "no classes", forward_shapes(N, 0, "none"), "input", "3, 0"),
    refused("7", "input has 1 dim", {"input.shape": (N * C,)}, "input", "15"),
    refused("7", "target has 2 dims", {"target.shape": (N, 1)}, "target", "3, 1"),
    refused("7", "target has no dims", {"target.shape": ()}, "target"),
    refused("7", "weight has 2 dims", {"weightOptional.shape": (1, C)}, "weight", "1, 5"),
    refused("7", "lossOut [N] for mean", {"lossOut.shape": (N,)}, "lossOut", "3"),
    refused("7", "lossOut [1] for none", {"reductionOptional": "none"}, "lossOut", "3"),
    refused("7", "logProbOut has other dims", {"logProbOut.shape": (C, N)}, "logProbOut", "5, 3"),
    *(
        refused("7", f"reduction {text!r}", {"reductionOptional": text}, "reduction", "mean", "sum", "none")
        for text in ("", "Mean", "mean ", "means", "non", "batchmean")
    ),
    refused("7", "labelSmoothing < 0", {"labelSmoothing": -0.25}, "labelSmoothing", "-0.25"),
    refused("7", "labelSmoothing NaN", {"labelSmoothing": np.nan}, "labelSmoothing", "nan"),
    refused("7", "label smoothing", {"labelSmoothing": 0.125}, "labelSmoothing", "Ascend950", "host", on=NEWEST),
    refused("7", "all of it smoothing", {"labelSmoothing": 1.0}, "labelSmoothing", "Ascend950", "host", on=NEWEST),
    refused("7", "z-loss", WITH_Z, "Ascend950", "host", on=NEWEST),
    refused("7", "lse alone", {**WITH_Z, "returnZloss": False, "zlossOut": NOTHING}, "Ascend950", "host", on=NEWEST),
    refused("7", "z-loss [N] for mean", {**WITH_Z, "zlossOut": Tensor(shape=(N,))}),
    refused("7", "z-loss without room", {**WITH_Z, "zlossOut": NOTHING}),
    refused("7", "lse without room", {**WITH_Z, "lseForZlossOut": NOTHING}),
    refused("7", "lse of other rows", {**WITH_Z, "lseForZlossOut": Tensor(shape=(N + 1,))}),
    *BAD_LABELS,
]
FORWARD_ACCEPTED = [
    *good_formats(CROSS_ENTROPY_LOSS),
    *(Row("4.1", f"reduction {text}", forward_shapes(N, C, text), PRESENT) for text in ("mean", "sum", "none")),
    Row("4.1", "reduction null is mean", {"reductionOptional": None}, PRESENT),
    Row("4.1", "no weight", {"weightOptional": None}, PRESENT),
    Row("8", "no rows, none", forward_shapes(0, C, "none"), PRESENT),
    Row("8", "all outputs empty", {**EMPTY_OUTPUTS, "input.shape": (7,), "reductionOptional": "average"}, PRESENT),
    Row("4.3", "a negative ignoreIndex", {"target.values": (1, -100, 2)}, PRESENT),
    Row("4.3", "another negative one", {"target.values": (1, -7, 2), "ignoreIndex": -7}, PRESENT),
    Row("4.3", "a class ignored", {"ignoreIndex": 2}, PRESENT),
    Row("4.3", "ignoreIndex beyond the classes", {"target.values": (1, 1000, 2), "ignoreIndex": 1000}, PRESENT),
    Row("4.3", "ignoreIndex beyond 2^24", {"target.values": (1, 2**24 + 1, 2), "ignoreIndex": 2**24 + 1}, PRESENT),
    *(
        Row("4.3", f"all rows ignored, {text}", {**forward_shapes(N, C, text), "target.values": (-100,)}, PRESENT)
        for text in ("mean", "sum", "none")
    ),
]

# ---- any call


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any shapes, dtypes, layouts and modes, with or without weight, smoothing and z-loss."""
    forward = operator is CROSS_ENTROPY_LOSS
    rows, classes = draw(st.sampled_from((1, 2, 3, 5, 17))), draw(st.sampled_from((1, 2, 3, 8, 17, 33)))
    reduction = draw(st.sampled_from(("mean", "sum", "none")))
    x, weight, target = draw(st.sampled_from(list(DTYPES)))
    ignore = draw(st.sampled_from((-100, -1, 0, classes - 1, classes)))
    label = st.integers(0, classes - 1) | st.just(ignore)
    per_row = (rows,) if reduction == "none" else (1,)

    def tensor(shape: tuple[int, ...], dtype: Dtype = x, written: bool = False) -> Tensor:
        return Tensor(dtype, **draw(st.composite(lambda draw: draw(layouts(shape, zero_stride=not written)))()))

    labels = Tensor(
        target,
        (rows,),
        (draw(st.integers(1, 3)),),
        draw(st.integers(0, 5)),
        values=draw(st.lists(label, min_size=rows, max_size=rows)),
    )
    changes: Changes = {
        "target": labels,
        "weightOptional": draw(st.sampled_from((None, tensor((classes,), weight)))),
        "reductionOptional": None if reduction == "mean" and draw(st.booleans()) else reduction,
        "ignoreIndex": ignore,
        "labelSmoothing": draw(st.sampled_from((0.0, 0.0, 0.125, 1.0))),
    }
    scale = draw(st.sampled_from((0.0, 0.0, 0.5)))
    if forward:
        want = scale != 0 and draw(st.booleans())
        return {
            **changes,
            "input": tensor((rows, classes)),
            "lseSquareScaleForZloss": scale,
            "returnZloss": want,
            "lossOut": tensor(per_row, written=True),
            "logProbOut": tensor((rows, classes), written=True),
            "zlossOut": tensor(per_row if want else (0,), written=True),
            "lseForZlossOut": tensor((rows,) if scale else (0,), written=True),
        }
    scalar = per_row if reduction == "none" or draw(st.booleans()) else ()
    changes |= {"gradLoss": tensor(scalar), "logProb": tensor((rows, classes)), "out": tensor((rows, classes), x, True)}
    if scale:
        z = {"gradZlossOptional": tensor(scalar), "lseForZlossOptional": tensor((rows,))}
        changes |= {**z, "lseSquareScaleForZloss": scale}
    return changes


# ---- Deliberate deviations from CANN

# Ascend910B looks at two of the shapes, and neither at the reduction nor at the range of the smoothing.
UNCHECKED = (
    r"(?!gradLoss 0-D for (mean|sum))gradLoss .*|out has .*|logProb has . dims?|target has (2|no) dims|"
    r"weight has 2 dims|an unknown reduction|reduction '.*'|labelSmoothing .*"
)
FORWARD_UNCHECKED = (
    r"lossOut .*|logProbOut .*|input has . dims?|target has (2|no) dims|weight has 2 dims|no classes|labelSmoothing NaN"
)
BOTH = "aclnnCrossEntropyLoss(Grad)?"
DEVIATIONS = (
    Deviation("aclnnCrossEntropyLossGrad", "7", UNCHECKED, "crossentropyloss"),
    Deviation("aclnnCrossEntropyLoss", "7", FORWARD_UNCHECKED, "crossentropyloss"),
    Deviation(BOTH, "7", r"label smoothing|all of it smoothing|z-loss.*|lse .*", "crossentropyloss"),
    Deviation("aclnnCrossEntropyLossGrad", "7", "a z-loss scale", "crossentropyloss"),
    Deviation(BOTH, "4.2", r"label -?\d+", "crossentropyloss"),
    Deviation(BOTH, "4.3", r"(a|another) negative (one|ignoreIndex)|all rows ignored, mean", "crossentropyloss"),
)


# ---- The sources of the rows

_SHARED = {"5": GENERATED_DTYPES, "6": GENERATED_DTYPES, "8": NO_LAUNCH}
_LOSS, _GRAD = (f"loss/{name}" for name in ("cross_entropy_loss", "cross_entropy_loss_grad"))
FORWARD_SOURCES = generated(
    f"{_LOSS}/op_host/cross_entropy_loss_tiling.cpp",
    {
        **_SHARED,
        "4.1": ops_nn(f"{_LOSS}/op_host/cross_entropy_loss_tiling.cpp", "GetTilingAttr"),
        "4.3": ops_nn(f"{_LOSS}/op_kernel/cross_entropy_loss.h", "Process"),
    },
    "CheckInputShape",
    "GetTilingAttr",
)
BACKWARD_SOURCES = generated(
    f"{_GRAD}/op_host/cross_entropy_loss_grad_tiling.cpp",
    {
        **_SHARED,
        "4.1": ops_nn(f"{_GRAD}/op_host/cross_entropy_loss_grad_tiling.cpp", "GetTilingAttr"),
        "4.3": ops_nn(f"{_GRAD}/op_kernel/cross_entropy_loss_grad_base.h", "ComputeIgnoreMask"),
    },
    "GetTilingInput",
    "GetTilingAttr",
)

TABLES = (
    Table(
        CROSS_ENTROPY_LOSS,
        FORWARD_CHECKS,
        FORWARD_MORE,
        FORWARD_ACCEPTED,
        dtypes=FORWARD_DTYPES,
        shapes=[forward_shapes(3, 8), forward_shapes(4, 5, "none")],
        calls=lambda draw: any_call(draw, CROSS_ENTROPY_LOSS),
        sources=FORWARD_SOURCES,
    ),
    Table(
        CROSS_ENTROPY_LOSS_GRAD,
        BACKWARD_CHECKS,
        BACKWARD_MORE,
        BACKWARD_ACCEPTED,
        dtypes=BACKWARD_DTYPES,
        shapes=[backward_shapes(3, 8), backward_shapes(4, 5, "none")],
        calls=lambda draw: any_call(draw, CROSS_ENTROPY_LOSS_GRAD),
        sources=BACKWARD_SOURCES,
    ),
)
