"""aclnnFusedLinearOnlineMaxSum, aclnnFusedCrossEntropyLossWithMaxSum, aclnnFusedLinearCrossEntropyLossGrad, and the
host's own aclnnHostLinearCrossEntropy: refusals in the order of their checkers, and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.cabi import AICORE_EXCEPTION, INNER, INNER_NULLPTR, PARAM_NULLPTR, RUNTIME_ERROR, Dtype, Format, round_to
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
    NOWHERE,
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
from tests.conformance.provenance import Sources, by_hand, ops_nn, own

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
I32, I64, U8, BOOL = Dtype.INT32, Dtype.INT64, Dtype.UINT8, Dtype.BOOL
# The products that have them, and `host`; the second also exists on Ascend950.
A2 = frozenset({"Ascend910B", "Ascend910_93", "host"})
A2_AND_950 = A2 | {"Ascend950"}
SECTION = "emulation/operators.md#linear-cross-entropy"

# ---- formulas
#
# Products and sums are computed in FLOAT, in DOUBLE for DOUBLE; u is its unit. A sum has the error that `summing`
# gives, plus one unit of its magnitudes because products are rounded, too. Intermediate values rounded to 16 bits, such
# as logits and their gradients on a product, may round to either side if the value before has an error: so they are
# intervals, and so are the results computed from them. The references are in DOUBLE, those of DOUBLE in long double.


class Interval(NamedTuple):
    """Numbers that lie between two bounds."""

    low: np.ndarray
    high: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """The expected value."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> np.ndarray:
        """The error bound of the expected value."""
        return (self.high - self.low) / 2

    def transposed(self) -> Interval:
        """The transposed matrix."""
        return Interval(self.low.T, self.high.T)

    def rounded(self, dtype: Dtype) -> Interval:
        """Both ends in another dtype: rounding is monotonic."""
        return Interval(*(round_to(dtype, end) for end in self))


def wide(values: np.ndarray, given: Given) -> np.ndarray:
    """The references' precision: long double for DOUBLE."""
    return values.astype(np.longdouble) if given.dtype == F64 else values


def around(value: np.ndarray, miss: np.ndarray | float) -> Interval:
    """Numbers within an error of a value."""
    return Interval(value - miss, value + miss)


def reference(value: np.ndarray, miss: np.ndarray | float = 0.0) -> Reference:
    """As a Reference of the machinery."""
    return Reference(np.asarray(value, np.float64), np.asarray(miss, np.float64))


def in_units_of_bfloat16(given: Given) -> bool:
    """True if the host multiplies with the CPU's BFLOAT16 instructions, which flush subnormal factors and sums to 0
    (Intel's manual, VDPBF16PS; docs/precision.md)."""
    # The module imports torch, which the processes of verify do without.
    from tests.operator_checks import MULTIPLIES_BFLOAT16

    return given.arguments["input"].dtype == BF16 and MULTIPLIES_BFLOAT16


NORMAL = 2.0**-126  # the smallest normal number of FLOAT and BFLOAT16


def product(left: np.ndarray, right: np.ndarray, given: Given, half: np.ndarray | float = 0.0) -> Interval:
    """left x right, with an error of `half` in left's elements."""
    units = summing(left.shape[1]) + 1
    miss = units * unit(given.dtype) * (np.abs(left) @ np.abs(right))
    miss = miss + left.shape[1] * (NORMAL if in_units_of_bfloat16(given) else least(given.dtype))
    if np.ndim(half):
        miss = miss + half @ np.abs(right)
    return around(left @ right, miss)


def stored(numbers: Interval, given: Given) -> Interval:
    """On a product, whose matrix units write 16 bits, rounded to input's dtype."""
    return numbers if given.product == "host" else numbers.rounded(given.arguments["input"].dtype)


def multiplied(g: Interval, given: Given) -> Interval:
    """A gradient with respect to logits as the host multiplies it: in BFLOAT16 if the CPU supports that."""
    if not in_units_of_bfloat16(given):
        return g
    low, high = g.rounded(BF16)
    return Interval(np.where((low > 0) & (low < NORMAL), 0, low), np.where((high < 0) & (high > -NORMAL), 0, high))


def given_rows(given: Given) -> tuple[np.ndarray, np.ndarray]:
    """input and weight."""
    return wide(given.inputs["input"], given), wide(given.inputs["weight"], given)


# ---- aclnnFusedLinearOnlineMaxSum


def raw_logits(given: Given) -> Interval:
    """input x weight^T, unrounded."""
    x, weight = given_rows(given)
    return product(x, weight.T, given)


def logits(given: Given) -> Interval:
    """The logits for max, sum and predicted: CANN's matrix unit rounds them to input's dtype (ops-nn,
    fused_linear_online_max_sum.h, MatmulImpl)."""
    return stored(raw_logits(given), given)


def largest(given: Given) -> Interval:
    """The max of each row."""
    x = logits(given)
    return Interval(x.low.max(axis=1), x.high.max(axis=1))


def online_max(given: Given) -> Reference:
    """max over C of logits"""
    most = largest(given)
    return reference(most.middle, most.half)


def exponentials(x: Interval, most: Interval, given: Given) -> Interval:
    """exp(x - max) for x <= max: exp has an error of 2 units, plus that of the difference, which it multiplies."""
    low = np.minimum(x.low - most.high[:, None], 0)
    high = np.minimum(x.high - most.low[:, None], 0)
    u = unit(given.dtype)
    with np.errstate(all="ignore"):
        return Interval(
            np.exp(low) * (1 - (3 + np.abs(low)) * u) - least(given.dtype),
            np.exp(high) * (1 + (3 + np.abs(high)) * u) + least(given.dtype),
        )


def online_sum(given: Given) -> Reference:
    """sum over C of exp(logits - max)"""
    power = exponentials(logits(given), largest(given), given)
    total = Interval(power.low.sum(axis=1), power.high.sum(axis=1))
    return reference(total.middle, total.half + (summing(power.low.shape[1]) + 2) * unit(given.dtype) * total.high)


def here(given: Given) -> np.ndarray:
    """The rows whose target is in the half-open range of the shard."""
    target = given.inputs["target"]
    return (given.arguments["vocabStartIndex"] <= target) & (target < given.arguments["vocabEndIndex"])


def places(given: Given) -> np.ndarray:
    """The targets' indices in the shard, 0 if masked."""
    return np.where(here(given), given.inputs["target"] - given.arguments["vocabStartIndex"], 0)


def online_predicted(given: Given) -> Reference:
    """logits[target] - max; -max for an unmasked target beyond the last class; 0 if masked."""
    x, most, at = logits(given), largest(given), places(given).astype(np.int64)
    classes = x.low.shape[1]
    inside = at < classes
    rows, at = np.arange(len(at)), np.where(inside, at, 0)
    low = np.where(inside, np.minimum(x.low[rows, at] - most.high, 0), -most.high)
    high = np.where(inside, np.minimum(x.high[rows, at] - most.low, 0), -most.low)
    found = Interval(low, high)
    half = found.half + unit(given.dtype) * np.abs(found.middle)
    return reference(np.where(here(given), found.middle, 0), np.where(here(given), half, 0))


def online_mask(given: Given) -> Reference:
    """A bit for each row, lowest bit first; after the last row the bits for target 0."""
    start, end = (given.arguments[name] for name in ("vocabStartIndex", "vocabEndIndex"))
    bits = ~here(given)
    padding = np.full(-len(bits) % 8, not start <= 0 < end)
    return reference(np.packbits(np.concatenate([bits, padding]), bitorder="little"))


def online_targets(given: Given) -> Reference:
    """target - vocabStartIndex, 0 if masked"""
    return reference(places(given))


def online_logits(given: Given) -> Reference:
    """In input's dtype."""
    x = raw_logits(given)
    return reference(x.middle, x.half)


# ---- aclnnFusedCrossEntropyLossWithMaxSum


def loss_of_sums(given: Given) -> Reference:
    """log(sum) - predicted"""
    log, predicted = np.log(wide(given.inputs["sumExpLogits"], given)), wide(given.inputs["predictedLogits"], given)
    value = log - predicted
    return reference(value, (2 * np.abs(log) + np.abs(value)) * unit(given.dtype))


def softmax_of_sums(given: Given) -> Reference | None:
    """exp(logits - max) * (1 / sum): exp has an error of 2 units plus that of the difference, reciprocal and product 2.
    Without logits nothing is written."""
    if given.arguments["vocabParallelLogitsOptional"] is None:
        return None
    most, total = (wide(given.inputs[name], given)[:, None] for name in ("logitsMax", "sumExpLogits"))
    shifted = wide(given.inputs["vocabParallelLogitsOptional"], given) - most
    value = np.exp(shifted) / total
    tiny = 2 * least(given.dtype) * np.maximum(1, 1 / np.abs(total))
    return reference(value, np.abs(value) * (np.abs(shifted) + 4) * unit(given.dtype) + tiny)


# ---- aclnnFusedLinearCrossEntropyLossGrad


def masked(given: Given, rows: int) -> np.ndarray:
    """The bits of targetMask, lowest first, or its BOOLs."""
    mask = given.inputs["targetMask"].astype(np.uint8)
    if given.arguments["targetMask"].dtype == BOOL:
        return mask != 0
    return np.unpackbits(mask, bitorder="little")[:rows] != 0


def of_logits(given: Given) -> Interval:
    """grad * (p - 1 at the label of rows that are not masked).

    p is given, and the difference and the product have an error of a unit each; or it is exp(logits - max) / sum, with
    2 units of exp, that of the difference, 2 of factor and product, and the error of the logit, which exp
    multiplies."""
    x, weight = given_rows(given)
    factor = wide(given.inputs["grad"], given)[:, None]
    u = unit(given.dtype)
    if given.arguments["softmaxOptional"] is not None:
        p = wide(given.inputs["softmaxOptional"], given)
        miss = np.zeros_like(p)
    else:
        z = raw_logits(given)
        shifted = z.middle - wide(given.inputs["logitsMaxOptional"], given)[:, None]
        p = np.exp(shifted) / wide(given.inputs["sumExpLogitsOptional"], given)[:, None]
        miss = np.abs(p) * (np.expm1(z.half) + (np.abs(shifted) + 4) * u)
    at = given.inputs["maskedTarget"]
    has_label = ~masked(given, len(x)) & (at >= 0) & (at < len(weight))
    g = (p - (has_label[:, None] & (np.arange(len(weight)) == at[:, None]))) * factor
    found = around(g, miss * np.abs(factor) + 2 * u * np.abs(g) + 4 * least(given.dtype))
    return multiplied(stored(found, given), given)


def product_with(g: Interval, right: np.ndarray, given: Given) -> Reference:
    """g x right"""
    found = product(g.middle, right, given, g.half)
    return reference(found.middle, found.half)


def rows_gradient(given: Given) -> Reference:
    """g x weight"""
    return product_with(of_logits(given), given_rows(given)[1], given)


def weight_gradient(given: Given) -> Reference:
    """g^T x input"""
    return product_with(of_logits(given).transposed(), given_rows(given)[0], given)


# ---- aclnnHostLinearCrossEntropy


class Terms(NamedTuple):
    """Values that loss and gradients derive from the arguments."""

    z: Interval  # logits, [N, C]
    label: np.ndarray  # [N], 0 for ignored rows and for other classes
    here: np.ndarray  # [N], true if it is one of these classes
    mask: np.ndarray  # [N], 0 for ignored rows
    weight: np.ndarray  # of each class, [C]
    kept: np.ndarray  # [N], the factor of the label's part
    share: float  # the factor of each class's part, smoothing / C


def terms(given: Given) -> Terms:
    """The terms of a call. The bias adds one rounding of the logits."""
    x, weight = given_rows(given)
    z = product(x, weight.T, given)
    if given.arguments["biasOptional"] is not None:
        value = z.middle + wide(given.inputs["biasOptional"], given)
        z = around(value, z.half + unit(given.dtype) * np.abs(value))
    target = given.inputs["target"]
    mask = wide(target != given.arguments["ignoreIndex"], given)
    first = given.arguments["firstClass"]
    here = (mask != 0) & (target >= first) & (target < first + len(weight))
    label = np.where(here, target - first, 0).astype(np.int64)
    classes = given.inputs.get("classWeightsOptional")
    classes = np.ones(len(weight)) if classes is None else wide(classes, given)
    smoothing = given.arguments["labelSmoothing"]
    return Terms(z, label, here, mask, classes, mask * (1 - smoothing) * classes[label], smoothing / len(weight))


def lse_of(t: Terms, given: Given) -> Interval:
    """log(sum over C of exp(z)) of each row, whose error is at most that of its logits; exp and the sum have the errors
    in aclnnCrossEntropyLoss, and the rest is in DOUBLE, rounded once."""
    if given.arguments["lseOptional"] is not None:
        return around(wide(given.inputs["lseOptional"], given), 0.0)
    x = t.z.middle
    most = x.max(axis=1, keepdims=True)
    power = np.exp(x - most)
    total = power.sum(axis=1)
    slope = (power * np.abs(x - most)).sum(axis=1) / total
    value = most[:, 0] + np.log(total)
    units = summing(x.shape[1]) + 4 + slope + 2 * np.abs(np.log(total)) + np.abs(value)
    return around(value, t.z.half.max(axis=1) + units * unit(given.dtype))


def host_lse(given: Given) -> Reference | None:
    """[N], regardless of ignored rows; not written if given."""
    if given.arguments["lseOptional"] is not None:
        return None
    lse = lse_of(terms(given), given)
    return reference(lse.middle, lse.half)


def host_loss(given: Given) -> Reference | None:
    """(1 - s) * w[t] * (lse - z[t]) + s / C * sum over C of w * (lse - z)"""
    if given.arguments["lseOptional"] is not None:
        return None
    t = terms(given)
    lse, u, rows = lse_of(t, given), unit(given.dtype), np.arange(len(t.label))
    value = t.kept * (lse.middle - np.where(t.here, t.z.middle[rows, t.label], 0))
    miss = np.abs(t.kept) * (lse.half + t.z.half[rows, t.label])
    if t.share:
        value = value + t.mask * t.share * (t.weight * (lse.middle[:, None] - t.z.middle)).sum(axis=1)
        magnitudes = (np.abs(t.weight) * np.abs(t.z.middle)).sum(axis=1)
        part = np.abs(t.weight).sum() * lse.half + (np.abs(t.weight) * t.z.half).sum(axis=1)
        miss = miss + np.abs(t.share) * (part + (summing(len(t.weight)) + 2) * u * magnitudes)
    return reference(np.where(t.mask, value, 0), np.where(t.mask, miss + u * np.abs(value), 0))


def host_gradient(given: Given) -> Interval:
    """factor * ((kept + share * sum of w) * p - kept at the label - share * w), with p = exp(z - lse): errors of exp 2
    units, of the difference one, of factor, product and the last difference 3."""
    t = terms(given)
    lse, u = lse_of(t, given), unit(given.dtype)
    factor = given.inputs.get("factorsOptional")
    factor = np.ones(len(t.label)) if factor is None else wide(factor, given)
    factor = (factor * t.mask)[:, None]
    at_label = t.here[:, None] & (t.label[:, None] == np.arange(len(t.weight)))
    shifted = t.z.middle - lse.middle[:, None]
    kept, others = t.kept[:, None], t.share * t.weight
    of_p = (kept + others.sum()) * np.exp(shifted)
    value = factor * (of_p - kept * at_label - others)
    relative = np.expm1(t.z.half + lse.half[:, None]) + (np.abs(shifted) + 6) * u
    miss = np.abs(factor) * (np.abs(of_p) * relative + 2 * u * np.abs(others)) + 2 * u * np.abs(value)
    counts = t.mask[:, None] != 0  # whatever the other rows contain
    found = around(np.where(counts, value, 0), np.where(counts, miss + 4 * least(given.dtype), 0))
    return multiplied(found, given)


def host_rows_gradient(given: Given) -> Reference:
    """g x weight"""
    return product_with(host_gradient(given), given_rows(given)[1], given)


def host_weight_gradient(given: Given) -> Reference:
    """g^T x input"""
    return product_with(host_gradient(given).transposed(), given_rows(given)[0], given)


def host_bias_gradient(given: Given) -> Reference:
    """The sum of g over the rows. Many small terms may all be lost next to a large one, so a unit for each."""
    g = host_gradient(given)
    units = len(g.middle) * unit(given.dtype)
    return reference(g.middle.sum(axis=0), g.half.sum(axis=0) + units * np.abs(g.middle).sum(axis=0))


# ---- prototypes

N, C, D, START = 5, 6, 4, 2
MATRIX = (-1.5, 1.0, -0.125, 0.0, 0.5, -0.75, 1.75, -2.0, 0.25, 0.875, -1.25)
VALUES: dict[str, Sequence[float]] = {
    "input": MATRIX,
    "weight": MATRIX[::-1],
    "grad": (1.0, -0.5, 0.25, 2.0, -1.5, 0.75),
    "logitsMax": (2.5, 4.0, 3.25, 1.75),
    "logitsMaxOptional": (2.5, 4.0, 3.25, 1.75),
    "sumExpLogits": (1.5, 3.0, 1.0, 2.25, 7.5),
    "sumExpLogitsOptional": (1.5, 3.0, 1.0, 2.25, 7.5),
    "predictedLogits": (-1.5, 0.0, -4.25, -0.5),
    "vocabParallelLogitsOptional": (-2.0, 1.5, 0.25, -7.0, 0.0, 1.0, -0.5),
    "softmaxOptional": (0.5, 0.0, 0.125, 1.0, 0.25),
    "biasOptional": (0.5, -0.25, 1.0),
    "classWeightsOptional": (0.25, 1.0, 2.0, 0.5, 1.25),
    "factorsOptional": (1.0, -0.5, 0.75, 2.0),
    "lseOptional": (1.5, 2.0, 0.75),
}


def values(dtype: Dtype, name: str) -> Sequence[float]:
    """Small values, exact in every dtype."""
    if name == "targetMask":
        return (0, 1, 0, 0, 1) if dtype == BOOL else (0b10010, 0b1001)
    return VALUES.get(name, (2, 0, 1, 3))  # for labels


def depth_of(classes: int) -> int:
    """A depth for a number of classes."""
    return 1 + classes % 7


def labels(rows: int, first: int, classes: int) -> tuple[int, ...] | None:
    """A label for each row, covering the classes and one outside on either side."""
    return tuple(first - 1 + (7 * row + classes - 1) % (classes + 2) for row in range(rows)) or None


def online_shapes(rows: int, classes: int, depth: int | None = None) -> Changes:
    """This many rows and classes."""
    depth = depth_of(classes) if depth is None else depth
    per_row = ("target", "logitsMaxLocalOut", "sumExpLogitsLocalOut", "predictedLogitsLocalOut", "maskedTargetOut")
    return {
        "input.shape": (rows, depth),
        "weight.shape": (classes, depth),
        **{f"{name}.shape": (rows,) for name in per_row},
        "target.values": labels(rows, START, classes),
        "vocabEndIndex": START + classes,
        "targetMaskOut.shape": ((rows + 7) // 8,),
        "vocabParallelLogitsOutOptional.shape": (rows, classes),
    }


def loss_shapes(rows: int, classes: int) -> Changes:
    """The same for the loss."""
    changes: Changes = {
        f"{name}.shape": (rows,) for name in ("logitsMax", "sumExpLogits", "predictedLogits", "lossOut")
    }
    return changes | {
        f"{name}.shape": (rows, classes) for name in ("vocabParallelLogitsOptional", "softMaxOutOptional")
    }


def gradient_shapes(rows: int, classes: int, depth: int | None = None) -> Changes:
    """The same for the gradient."""
    depth = depth_of(classes) if depth is None else depth
    per_row = ("grad", "maskedTarget", "logitsMaxOptional", "sumExpLogitsOptional")
    return {
        **{f"{name}.shape": (rows,) for name in per_row},
        **{f"{name}.shape": (rows, depth) for name in ("input", "inputGradOut")},
        **{f"{name}.shape": (classes, depth) for name in ("weight", "weightGradOut")},
        "targetMask.shape": ((rows + 7) // 8,),
        "maskedTarget.values": labels(rows, 0, classes),
    }


def host_shapes(rows: int, classes: int, depth: int | None = None) -> Changes:
    """The same for the host's own function."""
    depth = depth_of(classes) if depth is None else depth
    per_class = ("biasOptional", "classWeightsOptional", "biasGradOutOptional")
    return {
        **{f"{name}.shape": (rows,) for name in ("target", "factorsOptional", "lossOut", "lseOut")},
        **{f"{name}.shape": (rows, depth) for name in ("input", "inputGradOutOptional")},
        **{f"{name}.shape": (classes, depth) for name in ("weight", "weightGradOutOptional")},
        **{f"{name}.shape": (classes,) for name in per_class},
        "target.values": tuple((7 * row + classes - 1) % classes for row in range(rows)) or None,
    }


PER_ROW, PER_CLASS = Tensor(shape=(N,)), Tensor(shape=(C,))
ROWS, CLASSES = Tensor(F16, (N, D)), Tensor(F16, (C, D))

ONLINE = Operator(
    "aclnnFusedLinearOnlineMaxSum",
    {
        "input": ROWS,
        "weight": CLASSES,
        "target": Tensor(I64, (N,)),
        "vocabStartIndex": START,
        "vocabEndIndex": START + C,
        "logitsMaxLocalOut": PER_ROW,
        "sumExpLogitsLocalOut": PER_ROW,
        "predictedLogitsLocalOut": PER_ROW,
        "targetMaskOut": Tensor(U8, (1,)),
        "maskedTargetOut": Tensor(I64, (N,)),
        "vocabParallelLogitsOutOptional": Tensor(F16, (N, C)),
    },
    {
        "logitsMaxLocalOut": online_max,
        "sumExpLogitsLocalOut": online_sum,
        "predictedLogitsLocalOut": online_predicted,
        "targetMaskOut": online_mask,
        "maskedTargetOut": online_targets,
        "vocabParallelLogitsOutOptional": online_logits,
    },
    values,
    optional=frozenset({"vocabParallelLogitsOutOptional"}),
    lacks=dict.fromkeys(ANYWHERE - A2, INNER),
    sizes=online_shapes,
    empty=online_shapes(0, C),
)
LOSS = Operator(
    "aclnnFusedCrossEntropyLossWithMaxSum",
    {
        "logitsMax": PER_ROW,
        "sumExpLogits": PER_ROW,
        "predictedLogits": PER_ROW,
        "labelSmoothing": 0.0,
        "inputOptional": None,
        "weightOptional": None,
        "vocabParallelLogitsOptional": Tensor(F16, (N, C)),
        "lossOut": PER_ROW,
        "softMaxOutOptional": Tensor(shape=(N, C)),
    },
    {"lossOut": loss_of_sums, "softMaxOutOptional": softmax_of_sums},
    values,
    optional=frozenset({"inputOptional", "weightOptional", "vocabParallelLogitsOptional", "softMaxOutOptional"}),
    lacks=dict.fromkeys(ANYWHERE - A2_AND_950, INNER),
    sizes=loss_shapes,
    empty=loss_shapes(0, C),
)
GRADIENT = Operator(
    "aclnnFusedLinearCrossEntropyLossGrad",
    {
        "grad": PER_ROW,
        "input": ROWS,
        "weight": CLASSES,
        "targetMask": Tensor(U8, (1,)),
        "maskedTarget": Tensor(I64, (N,)),
        "labelSmoothing": 0.0,
        "logitsMaxOptional": PER_ROW,
        "sumExpLogitsOptional": PER_ROW,
        "softmaxOptional": None,
        "inputGradOut": ROWS,
        "weightGradOut": CLASSES,
    },
    {"inputGradOut": rows_gradient, "weightGradOut": weight_gradient},
    values,
    optional=frozenset({"logitsMaxOptional", "sumExpLogitsOptional", "softmaxOptional"}),
    lacks=dict.fromkeys(ANYWHERE - A2, RUNTIME_ERROR),
    sizes=gradient_shapes,
    empty=gradient_shapes(N, C, 0),
)
GRADIENTS = ("inputGradOutOptional", "weightGradOutOptional", "biasGradOutOptional")
RESULTS = ("lossOut", "lseOut")
MAY_BE_NULL = (*GRADIENTS, "biasOptional", "classWeightsOptional", "factorsOptional")
OURS = Operator(
    "aclnnHostLinearCrossEntropy",
    {
        "input": Tensor(shape=(N, D)),
        "weight": Tensor(shape=(C, D)),
        "biasOptional": PER_CLASS,
        "target": Tensor(I64, (N,)),
        "classWeightsOptional": PER_CLASS,
        "factorsOptional": PER_ROW,
        "lseOptional": None,
        "ignoreIndex": -100,
        "labelSmoothing": 0.0,
        "firstClass": 0,
        "vocabularySize": 0,
        "lossOut": PER_ROW,
        "lseOut": PER_ROW,
        "inputGradOutOptional": Tensor(shape=(N, D)),
        "weightGradOutOptional": Tensor(shape=(C, D)),
        "biasGradOutOptional": PER_CLASS,
    },
    {
        "lossOut": host_loss,
        "lseOut": host_lse,
        "inputGradOutOptional": host_rows_gradient,
        "weightGradOutOptional": host_weight_gradient,
        "biasGradOutOptional": host_bias_gradient,
    },
    values,
    optional=frozenset({*MAY_BE_NULL, "lseOptional", "lossOut", "lseOut"}),
    sizes=host_shapes,
    empty={**host_shapes(0, C, 0), "biasGradOutOptional": None},
)

# ---- dtypes: of the matrices, with the dtype of sums

MATRICES = {F16: F32, BF16: F32, F32: F32, F64: F64}
ON = {F16: ANYWHERE, BF16: ANYWHERE, F32: HOST, F64: HOST}
ONLINE_DTYPES = [
    DtypeRow((x, x, target, real, real, real, U8, target, x), ON[x])
    for x, real in MATRICES.items()
    for target in (I64, I32)
]
LOSS_DTYPES = [
    DtypeRow((real, real, real, x, real, real), HOST if x == F64 else ANYWHERE) for x, real in MATRICES.items()
]
GRADIENT_DTYPES = [
    DtypeRow((real, x, x, U8, target, real, real, x, x), ON[x]) for x, real in MATRICES.items() for target in (I64, I32)
]
OUR_DTYPES = [
    DtypeRow((x, x, x, target, real, real, real, real, x, x, x), ANYWHERE)
    for x, real in MATRICES.items()
    for target in (I64, I32)
]

# ---- the checks, in order: number, condition, change, where it is accepted, status elsewhere, words of the text


def good(number: str, condition: str, changes: Changes, operator: Operator) -> Row:
    """Calls accepted on every product that has the operator; other products refuse it."""
    status = next(iter(operator.lacks.values()))
    return Row(number, condition, changes, ANYWHERE - operator.lacks.keys(), status)


def wrong_dtypes(number: str, wrong: dict[str, tuple[Dtype, ...]]) -> list[Row]:
    """Tensors in dtypes that no product accepts."""
    return [
        Row(number, f"{name} {dtype.name}", {f"{name}.dtype": dtype}, words=(in_text(name), cabi_name(dtype)))
        for name, dtypes in wrong.items()
        for dtype in dtypes
    ]


def cabi_name(dtype: Dtype) -> str:
    """The name in texts."""
    return "BFLOAT16" if dtype == BF16 else dtype.name


def wrong_shapes(number: str, wrong: dict[str, Sequence[tuple[int, ...]]]) -> list[Row]:
    """Tensors with mismatched shapes."""
    return [
        Row(number, f"{name} {list(shape)}", {f"{name}.shape": shape}, words=(in_text(name), str(list(shape))))
        for name, shapes in wrong.items()
        for shape in shapes
    ]


def wrong_formats(number: str, operator: Operator) -> list[Row]:
    """Each tensor in a private format."""
    return [
        Row(number, f"format FRACTAL_NZ of {name}", {f"{name}.format": Format.FRACTAL_NZ}, words=(in_text(name),))
        for name in operator.tensors
    ]


def smoothings(number: str, *numbers: float) -> list[Row]:
    """Values of labelSmoothing that are refused."""
    return [
        Row(number, f"labelSmoothing {value}", {"labelSmoothing": value}, words=("labelSmoothing", str(value)))
        for value in numbers
    ]


def public_formats(operator: Operator) -> list[Changes]:
    """All tensors in a format that is read as ND."""
    return [{f"{name}.format": f for name in operator.tensors} for f in (Format.NCHW, Format.NHWC)]


ONLINE_CHECKS = [
    *nulls(ONLINE),
    *wrong_dtypes("3", {"input": (I32,), "weight": (I32,), "target": (F32,)}),
    Row("3", "weight of another dtype", {"weight.dtype": BF16}, words=("weight", "BFLOAT16", "FLOAT16")),
    *wrong_dtypes("3", {"logitsMaxLocalOut": (F16,), "sumExpLogitsLocalOut": (F16,)}),
    *wrong_dtypes("3", {"predictedLogitsLocalOut": (F16,), "targetMaskOut": (BOOL,), "maskedTargetOut": (I32,)}),
    *wrong_dtypes("3", {"vocabParallelLogitsOutOptional": (F32,)}),
    *wrong_shapes("4", {"input": [(N,)], "weight": [(C, D, 1)], "target": [(N, 1)]}),
    *wrong_shapes("4", {"logitsMaxLocalOut": [(N, 1)], "sumExpLogitsLocalOut": [(N, 1)]}),
    *wrong_shapes("4", {"predictedLogitsLocalOut": [()], "targetMaskOut": [(1, 1)], "maskedTargetOut": [(N, 1)]}),
    Row("4", "no classes", {"weight.shape": (0, D)}, words=("weight", "[0, 4]")),
    *wrong_shapes("4", {"weight": [(C, D + 1)], "target": [(N + 1,)]}),
    *wrong_shapes("4", {"logitsMaxLocalOut": [(N + 1,)], "sumExpLogitsLocalOut": [(N + 1,)]}),
    *wrong_shapes("4", {"predictedLogitsLocalOut": [(N - 1,)], "targetMaskOut": [(2,)], "maskedTargetOut": [(1,)]}),
    *wrong_shapes("4", {"vocabParallelLogitsOutOptional": [(N * C,), (N, C + 1)]}),
    Row("5", "vocabStartIndex < 0", {"vocabStartIndex": -1}, words=("vocabStartIndex", "-1")),
    Row("5", "vocabEndIndex < vocabStartIndex", {"vocabEndIndex": 1}, words=("vocabEndIndex", "1", "2")),
]
ONLINE_MORE = [
    *wrong_dtypes("3", {"target": (Dtype.INT16, U8), "targetMaskOut": (Dtype.INT8,)}),
    *(
        Row(
            "3",
            f"all {x.name}",
            {f"{name}.dtype": x for name in ("input", "weight", "vocabParallelLogitsOutOptional")},
            HOST,
            words=("input", x.name),
        )
        for x in (F32,)
    ),
    Row("4", "no classes and no rows", online_shapes(0, 0, D), words=("weight", "[0, 4]")),
    Row("4", "targetMaskOut of too few bits", online_shapes(9, C) | {"targetMaskOut.shape": (1,)}),
    Row("4", "rows of 65535", online_shapes(2, 3, 65535), HOST, words=("input", "65535", "65534")),
    Row("5", "vocabStartIndex -2^63", {"vocabStartIndex": -(2**63)}, words=("vocabStartIndex",)),
]
ONLINE_ACCEPTED = [
    good("2", "no logits", {"vocabParallelLogitsOutOptional": None}, ONLINE),
    good("4", "rows of 65534", online_shapes(2, 3, 65534), ONLINE),
    good("4", "rows of nothing", online_shapes(N, C, 0), ONLINE),
    good("5", "vocabEndIndex is vocabStartIndex", {"vocabEndIndex": START}, ONLINE),
    good("5", "vocabEndIndex within the classes", {"vocabEndIndex": START + 2}, ONLINE),
    good("5", "vocabEndIndex beyond the classes", {"vocabEndIndex": 2**40, "target.values": (2, 8, 2**20)}, ONLINE),
    Row("6", "no rows", online_shapes(0, C), ANYWHERE),
    good("7", "any other call", {}, ONLINE),
    *(good("8", "a format that is read as ND", formats, ONLINE) for formats in public_formats(ONLINE)),
    good("9", "the first shard", {"vocabStartIndex": 0, "vocabEndIndex": C, "target.values": (0, 5, 6, -1)}, ONLINE),
    good("9", "targets outside", {"target.values": (START - 1, START + C, -100, 2**40, -(2**63))}, ONLINE),
    good("9", "targets at the ends", {"target.values": (START, START + C - 1)}, ONLINE),
    good(
        "9",
        "targets beyond 2^24",
        {
            "vocabStartIndex": 2**24 + 1,
            "vocabEndIndex": 2**24 + 3,
            "target.values": (2**24, 2**24 + 1, 2**24 + 2, 2**24 + 3),
        },
        ONLINE,
    ),
]

WITHOUT_LOGITS: Changes = {"vocabParallelLogitsOptional": None, "softMaxOutOptional": None}
FOUR_ROWS: Changes = {f"{name}.shape": (N - 1, C) for name in WITHOUT_LOGITS}
LOSS_CHECKS = [
    *nulls(LOSS),
    Row("2", "logits without softMaxOut", {"softMaxOutOptional": None}, code=PARAM_NULLPTR, words=("softMaxOut",)),
    *wrong_dtypes("3", {name: (F16,) for name in ("logitsMax", "sumExpLogits", "predictedLogits", "lossOut")}),
    *wrong_dtypes("3", {"vocabParallelLogitsOptional": (I32,), "softMaxOutOptional": (F16,)}),
    *wrong_shapes("4", {"logitsMax": [(N, 1)], "sumExpLogits": [(N + 1,)], "predictedLogits": [(N, 1)]}),
    *wrong_shapes("4", {"lossOut": [(1,)], "vocabParallelLogitsOptional": [(N * C,)], "softMaxOutOptional": [(C, N)]}),
    *smoothings("5", 0.125, -0.125, np.inf, np.nan),
]
LOSS_MORE = [
    *wrong_dtypes("3", {"vocabParallelLogitsOptional": (F64,)}),
    Row("6", "logits of other rows", FOUR_ROWS, NOWHERE, INNER_NULLPTR, ("vocabParallelLogits", "[4, 6]", "5")),
    *(
        Row("7", condition, changes, A2, INNER_NULLPTR, words=("empty",))
        for condition, changes in (
            ("no rows", loss_shapes(0, C)),
            ("no rows and no logits", loss_shapes(0, C) | WITHOUT_LOGITS),
            ("no classes", loss_shapes(N, 0)),
        )
    ),
]
LOSS_ACCEPTED = [
    good("2", "no logits", WITHOUT_LOGITS, LOSS),
    good("2", "softMaxOut without logits", {"vocabParallelLogitsOptional": None}, LOSS),
    good(
        "2",
        "softMaxOut of any kind without logits",
        {"vocabParallelLogitsOptional": None, "softMaxOutOptional": Tensor(I32, (7,))},
        LOSS,
    ),
    good(
        "2",
        "input and weight of any kind",
        {"inputOptional": Tensor(I32, (7,)), "weightOptional": Tensor(BOOL, ())},
        LOSS,
    ),
    good("3", "logits FLOAT", {"vocabParallelLogitsOptional.dtype": F32}, LOSS),
    good("3", "logits BFLOAT16", {"vocabParallelLogitsOptional.dtype": BF16}, LOSS),
    good("5", "labelSmoothing -0", {"labelSmoothing": -0.0}, LOSS),
    *(good("8", "a format that is read as ND", formats, LOSS) for formats in public_formats(LOSS)),
    good("9", "any other call", {}, LOSS),
    good("10", "sums of 0 and less", WITHOUT_LOGITS | {"sumExpLogits.values": (0.0, -1.0, np.inf, np.nan, 1)}, LOSS),
]

SUMS = ("logitsMaxOptional", "sumExpLogitsOptional")
NO_SUMS: Changes = dict.fromkeys(SUMS)


def with_softmax(rows: int, classes: int, depth: int = D) -> Changes:
    """The gradient from given probabilities."""
    return gradient_shapes(rows, classes, depth) | NO_SUMS | {"softmaxOptional": Tensor(shape=(rows, classes))}


def long_rows(depth: int) -> Changes:
    """Long rows whose logits are small."""
    return gradient_shapes(1, 2, depth) | {"weight.values": (0.25, -0.25)}


BOOLS: Changes = {"targetMask.dtype": BOOL, "targetMask.shape": (N,)}
GRADIENT_CHECKS = [
    *(row for row in nulls(GRADIENT) if row.number == "1"),
    *(Row("2", f"{name} null without softmax", {name: None}, code=PARAM_NULLPTR, words=(name,)) for name in SUMS),
    *(row for row in nulls(GRADIENT) if row.number == "2"),
    *wrong_dtypes("3", {"input": (I32,), "grad": (F16,), "weight": (I32,), "targetMask": (I32,)}),
    *wrong_dtypes("3", {"maskedTarget": (F32,), "logitsMaxOptional": (F16,), "sumExpLogitsOptional": (F16,)}),
    *wrong_dtypes("3", {"weight": (BF16,), "inputGradOut": (F32,), "weightGradOut": (BF16,)}),
    *wrong_formats("4", GRADIENT),
    *smoothings("5", 0.125, -0.125, np.inf, np.nan),
    *wrong_shapes("6", {"grad": [(N, 1)], "targetMask": [(1, 1)], "maskedTarget": [()], "input": [(N,)]}),
    *wrong_shapes("6", {"weight": [(C, D, 1)], "inputGradOut": [(N * D,)], "weightGradOut": [(C * D,)]}),
    *wrong_shapes("6", {"logitsMaxOptional": [(N, 1)], "sumExpLogitsOptional": [(1, N)]}),
    *wrong_shapes("6", {"input": [(N + 1, D)], "weight": [(C, D + 1)]}),
    Row("6", "targetMask of no bits", {"targetMask.shape": (0,)}, words=("targetMask", "0", "1")),
    *wrong_shapes("6", {"maskedTarget": [(N + 1,)], "logitsMaxOptional": [(1,)], "sumExpLogitsOptional": [(N + 1,)]}),
    *wrong_shapes("6", {"inputGradOut": [(N, D + 1)], "weightGradOut": [(C, N)]}),
]
GRADIENT_MORE = [
    Row("2", "neither softmax nor sums", NO_SUMS, code=PARAM_NULLPTR, words=("softmaxOptional",)),
    Row("3", "softmax FLOAT16", with_softmax(N, 128) | {"softmaxOptional": Tensor(F16, (N, 128))}, words=("softmax",)),
    *(
        Row("4", f"format {f.name} of {name}", {f"{name}.format": f}, HOST, words=(in_text(name), "format"))
        for f in (Format.NCHW, Format.NHWC)
        for name in GRADIENT.tensors
    ),
    Row(
        "4",
        "format FRACTAL_NZ of softmax",
        with_softmax(N, 128) | {"softmaxOptional": Tensor(shape=(N, 128), format=Format.FRACTAL_NZ)},
        words=("softmax", "format"),
    ),
    Row("6", "softmax of 1 dim", with_softmax(N, 128) | {"softmaxOptional": Tensor(shape=(N,))}, words=("softmax",)),
    Row("6", "softmax of 127 classes", with_softmax(N, 127), HOST, words=("weight", "127", "128")),
    Row("6", "softmax of others", with_softmax(N, 128) | {"softmaxOptional": Tensor(shape=(N, 129))}, words=("129",)),
    Row("6", "targetMask of a byte too few", gradient_shapes(9, C) | {"targetMask.shape": (1,)}, words=("targetMask",)),
    *(
        Row("6", f"targetMask of {count} BOOLs", {**BOOLS, "targetMask.shape": (count,)}, words=("targetMask",))
        for count in (1, N + 1)
    ),
    *(
        Row("8", condition, changes, HOST, INNER_NULLPTR, words=words)
        for condition, changes, words in (
            ("rows of 65536", long_rows(65536), ("input", "65536", "65535")),
            ("softmax of 24561 classes", with_softmax(1, 24561, 1), ("softmax", "24561", "24560")),
            ("softmax of 65537 rows", with_softmax(65537, 128, 1), ("softmax", "65537", "65536")),
        )
    ),
]
GRADIENT_ACCEPTED = [
    good("2", "softmax", with_softmax(N, 128), GRADIENT),
    good("2", "softmax and sums of any kind", with_softmax(N, 128) | {n: Tensor(I32, (1, 7)) for n in SUMS}, GRADIENT),
    good("3", "targetMask BOOL", BOOLS, GRADIENT),
    good("5", "labelSmoothing -0", {"labelSmoothing": -0.0}, GRADIENT),
    good("6", "targetMask of more bytes", {"targetMask.shape": (3,)}, GRADIENT),
    Row("7", "no rows", gradient_shapes(0, C), ANYWHERE),
    Row("7", "no classes", gradient_shapes(N, 0), ANYWHERE),
    Row("7", "rows of nothing", gradient_shapes(N, C, 0), ANYWHERE),
    good("8", "rows of 65535", long_rows(65535), GRADIENT),
    good("8", "softmax of 24560 classes", with_softmax(1, 24560, 1), GRADIENT),
    good("9", "any other call", {}, GRADIENT),
    good(
        "10",
        "labels that are no class",
        {"maskedTarget.values": (-1, C, 2**40, -(2**63), 2), "targetMask.values": (0,)},
        GRADIENT,
    ),
]


def bad_label(label: int) -> Row:
    """An error that only stage 2 detects: an invalid label that is not ignored."""
    words = ("target", str(label), str(C))
    return Row("6", f"label {label}", {"target.values": (1, label, 1)}, code=AICORE_EXCEPTION, words=words)


OUR_CHECKS = [
    *nulls(OURS),
    *(Row("2", f"{name} null without lse", {name: None}, code=PARAM_NULLPTR, words=(name,)) for name in RESULTS),
    *wrong_dtypes("3", {"input": (I32,), "target": (F32,), "weight": (F16,), "biasOptional": (F16,)}),
    *wrong_dtypes("3", {name: (F64,) for name in GRADIENTS}),
    *wrong_dtypes(
        "3", {"classWeightsOptional": (F16,), "factorsOptional": (F64,), "lossOut": (F16,), "lseOut": (F64,)}
    ),
    *wrong_formats("4", OURS),
    *wrong_shapes("5", {"input": [(N,)], "weight": [(C, D, 1)]}),
    Row("5", "no classes", {"weight.shape": (0, D)}, words=("weight", "[0, 4]")),
    *wrong_shapes("5", {"weight": [(C, D + 1)], "biasOptional": [(C + 1,)], "classWeightsOptional": [(C, 1)]}),
    *smoothings("5", -0.125, 1.5, np.nan),
    *wrong_shapes("5", {"target": [(N + 1,)], "factorsOptional": [(1,)], "lossOut": [()], "lseOut": [(N, 1)]}),
    *wrong_shapes("5", {"inputGradOutOptional": [(N, D + 1)], "weightGradOutOptional": [(C, N)]}),
    *wrong_shapes("5", {"biasGradOutOptional": [(C + 1,)]}),
]
PART: Changes = {"classWeightsOptional": None, "firstClass": 2, "vocabularySize": C + 4}
LSE_GIVEN: Changes = {"lseOptional": PER_ROW, **dict.fromkeys(RESULTS)}
NO_GRADIENTS: Changes = dict.fromkeys(GRADIENTS)
OUR_MORE = [
    Row("3", "lse FLOAT16", {**LSE_GIVEN, "lseOptional": Tensor(F16, (N,))}, words=("lse", "FLOAT16")),
    Row("5", "lse of other rows", {**LSE_GIVEN, "lseOptional": Tensor(shape=(N + 1,))}, words=("lse", "[6]")),
    *(bad_label(label) for label in (C, -1, -99, 2**31, 2**40, -(2**63))),
    *(
        Row("5", f"firstClass {first} of {size}", {**PART, "firstClass": first, "vocabularySize": size}, words=words)
        for first, size, words in (
            (-1, 0, ("firstClass", "-1")),
            (1, 0, ("firstClass", "1")),
            (5, 10, ("firstClass", "5", "10")),
            (0, C - 1, ("vocabularySize", str(C - 1))),
            (0, -1, ("vocabularySize", "-1")),
            (0, -(2**63), ("vocabularySize",)),
            (2**63 - 1, 2**63 - 1, ("firstClass",)),
        )
    ),
    *(
        Row("5", f"{name} of a part", {**PART, **more}, words=(name,))
        for name, more in (
            ("labelSmoothing", {"labelSmoothing": 0.5}),
            ("classWeights", {"classWeightsOptional": PER_CLASS}),
        )
    ),
]
OUR_ACCEPTED = [
    Row("2", "loss alone", NO_GRADIENTS, ANYWHERE),
    *(Row("2", f"{name} null", {name: None}, ANYWHERE) for name in MAY_BE_NULL),
    Row("2", "lse given", LSE_GIVEN, ANYWHERE),
    Row("2", "lse given, with room for loss and lse", {"lseOptional": PER_ROW}, ANYWHERE),
    *(Row("4", "a format that is read as ND", formats, ANYWHERE) for formats in public_formats(OURS)),
    *(
        Row("5", f"labelSmoothing {value}{text}", {"labelSmoothing": value, **more}, ANYWHERE)
        for value in (0.125, 1.0)
        for text, more in (("", {}), (", no weights", {"classWeightsOptional": None}))
    ),
    Row("5", "classes of a vocabulary", {**PART, "target.values": (0, 2, 7, C + 3, -100)}, ANYWHERE),
    Row("5", "the same, lse given", {**PART, **LSE_GIVEN, "target.values": (0, 2, 7, C + 3, -100)}, ANYWHERE),
    Row("5", "all of a vocabulary", {"vocabularySize": C}, ANYWHERE),
    Row("6", "a label ignored", {"target.values": (1, -100, 2)}, ANYWHERE),
    Row("6", "a class ignored", {"ignoreIndex": 2}, ANYWHERE),
    Row("6", "all labels ignored", {"target.values": (-100,)}, ANYWHERE),
    Row("6", "no rows", host_shapes(0, C), ANYWHERE),
    Row("6", "rows of nothing", host_shapes(N, C, 0), ANYWHERE),
]

# ---- any call


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any sizes, dtypes, layouts and modes."""
    rows, classes = draw(st.sampled_from((1, 2, 3, 9, 17))), draw(st.sampled_from((1, 2, 3, 8, 17, 33)))
    depth = draw(st.sampled_from((1, 2, 3, 7, 16, 0)))
    table = next(table for table in TABLES if table.operator is operator)
    dtypes = dict(zip(operator.tensors, draw(st.sampled_from(table.dtypes)).dtypes, strict=True))
    shapes = loss_shapes(rows, classes) if operator is LOSS else operator_shapes(operator)(rows, classes, depth)
    if "targetMask" in dtypes and draw(st.booleans()):
        dtypes["targetMask"], shapes["targetMask.shape"] = BOOL, (rows,)
    label = st.integers(-1, classes) if operator is GRADIENT else st.integers(START - 1, START + classes)
    if operator is OURS:
        label = st.integers(0, classes - 1) | st.just(-100)
    changes: Changes = {"vocabEndIndex": START + classes} if operator is ONLINE else {}
    for name in operator.tensors:
        given = draw(st.lists(label, min_size=rows, max_size=rows)) if name in ("target", "maskedTarget") else None
        zero_stride = name not in operator.outputs and given is None
        layout = draw(layouts(shapes[f"{name}.shape"], zero_stride=zero_stride))
        changes[name] = Tensor(dtypes[name], **layout, values=given)
    return changes | draw(st.sampled_from(modes(operator, Tensor(MATRICES[dtypes.get("input", F32)], (rows, classes)))))


def operator_shapes(operator: Operator) -> Any:
    """The function that makes its shapes, with the depth as third argument."""
    return {ONLINE: online_shapes, GRADIENT: gradient_shapes, OURS: host_shapes}[operator]


def modes(operator: Operator, matrix: Tensor) -> list[Changes]:
    """Optional and alternative arguments; `matrix` has the dtype of sums, with one value per row and class."""
    if operator is ONLINE:
        return [{}, {"vocabParallelLogitsOutOptional": None}]
    if operator is LOSS:
        return [{}, WITHOUT_LOGITS]
    if operator is GRADIENT:
        return [{}, {**NO_SUMS, "softmaxOptional": matrix}]
    lse: Changes = {**LSE_GIVEN, "lseOptional": Tensor(matrix.dtype, matrix.shape[:1])}
    one_gradient: list[Changes] = [{other: None for other in GRADIENTS if other != name} for name in GRADIENTS]
    smoothing: Changes = {"labelSmoothing": 0.25}
    part: Changes = {"classWeightsOptional": None, "firstClass": 1, "vocabularySize": 64}
    return [
        {},
        NO_GRADIENTS,
        lse,
        *one_gradient,
        part,
        {**part, **lse},
        smoothing,
        {**smoothing, **lse, "classWeightsOptional": None},
    ]


# ---- Deliberate deviations from CANN

DEVIATIONS = (
    Deviation(f"{ONLINE.api}|{LOSS.api}", "7|9", "any other call", SECTION),
    Deviation(ONLINE.api, "4", "rows of nothing", SECTION),
    Deviation(ONLINE.api, "9", r"targets beyond 2\^24", SECTION),
    Deviation(LOSS.api, "6|7", "logits of other rows|no (rows|classes).*", SECTION),
    Deviation(GRADIENT.api, "2", "softmax( and sums of any kind)?", SECTION),
    Deviation(GRADIENT.api, "7", "no (rows|classes)", SECTION),
    Deviation(OURS.api, ".*", ".*", SECTION),
    Deviation(f"{ONLINE.api}|{LOSS.api}", ".*", ".*", SECTION, lacking=True),
)


# ---- The sources of the rows

_ONLINE, _GRADIENT = (
    f"matmul/{name}" for name in ("fused_linear_online_max_sum", "fused_linear_cross_entropy_loss_grad")
)
_LOSS = "loss/fused_cross_entropy_loss_with_max_sum"
_ONLINE_API = f"{_ONLINE}/op_api/aclnn_fused_linear_online_max_sum.cpp"
_LOSS_API = f"{_LOSS}/op_api/aclnn_fused_cross_entropy_loss_with_max_sum.cpp"
_GRADIENT_API = f"{_GRADIENT}/op_host/op_api/aclnn_fused_linear_cross_entropy_loss_grad.cpp"

ONLINE_SOURCES = by_hand(
    _ONLINE_API,
    {
        "3": "CheckDtypeValid",
        "4": "CheckShapeValid",
        "5": "CheckAttrValid",
        "6": "aclnnFusedLinearOnlineMaxSumGetWorkspaceSize",
        "8": ops_nn(f"{_ONLINE}/op_host/fused_linear_online_max_sum_def.cpp", "FusedLinearOnlineMaxSum"),
        "9": ops_nn(f"{_ONLINE}/op_kernel/fused_linear_online_max_sum.h", "TargetInnerProcess"),
    },
    {},
    rest="CheckParam",
)
LOSS_SOURCES = by_hand(
    _LOSS_API,
    {
        "3": "CheckDtypeValid",
        "4": "CheckShape",
        "5": "aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize",
        "8": ops_nn(
            f"{_LOSS}/op_host/fused_cross_entropy_loss_with_max_sum_def.cpp", "FusedCrossEntropyLossWithMaxSum"
        ),
        "10": ops_nn(f"{_LOSS}/op_kernel/fused_cross_entropy_loss_with_max_sum.h", "FusedCrossEntropyLossWithMaxSum"),
    },
    {},
)
GRADIENT_SOURCES = by_hand(
    _GRADIENT_API,
    {
        "3": "CheckDtypeValid",
        "4": "CheckFormatValid",
        "5": "aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize",
        "6": "CheckShapeValid",
        "9": "CheckPlatformSupported",
        "8": ops_nn(
            f"{_GRADIENT}/op_host/fused_linear_cross_entropy_loss_grad_tiling.cpp",
            "HighPerfTilingFunc",
            "MemFriendlyTilingFunc",
        ),
        "10": ops_nn(f"{_GRADIENT}/op_kernel/fused_linear_cross_entropy_loss_grad_mem_friendly.h", "ComputeV1"),
    },
    {},
    rest="CheckParam",
)

TABLES = (
    Table(
        ONLINE,
        ONLINE_CHECKS,
        ONLINE_MORE,
        ONLINE_ACCEPTED,
        dtypes=ONLINE_DTYPES,
        shapes=[online_shapes(3, 8), online_shapes(9, 5, 3)],
        calls=lambda draw: any_call(draw, ONLINE),
        sources=ONLINE_SOURCES,
    ),
    Table(
        LOSS,
        LOSS_CHECKS,
        LOSS_MORE,
        LOSS_ACCEPTED,
        dtypes=LOSS_DTYPES,
        shapes=[loss_shapes(3, 8), loss_shapes(9, 5)],
        calls=lambda draw: any_call(draw, LOSS),
        sources=LOSS_SOURCES,
    ),
    Table(
        GRADIENT,
        GRADIENT_CHECKS,
        GRADIENT_MORE,
        GRADIENT_ACCEPTED,
        dtypes=GRADIENT_DTYPES,
        shapes=[gradient_shapes(3, 8), gradient_shapes(9, 5, 3)],
        calls=lambda draw: any_call(draw, GRADIENT),
        sources=GRADIENT_SOURCES,
    ),
    Table(
        OURS,
        OUR_CHECKS,
        OUR_MORE,
        OUR_ACCEPTED,
        dtypes=OUR_DTYPES,
        shapes=[host_shapes(3, 8), host_shapes(9, 5, 3)],
        calls=lambda draw: any_call(draw, OURS),
        sources=Sources({}, own(SECTION)),
    ),
)
