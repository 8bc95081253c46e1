from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.losses import gradient, reduced, reductions
from tests.aten_ops.formulas import formula

LOGITS = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,3,0.125"
PROBABILITIES = "FLOAT[2,4]:0.25,0.75,0.5,0.125,0.875,0.375,0.625,0.0625"
TARGET = "FLOAT[2,4]:0.5,1,0.75,0,0.25,0.375,1,0.125"
SIGNS = "FLOAT[2,4]:1,-1,-1,1,-1,1,1,-1"
WEIGHT = "FLOAT[2,4]:1.5,0.5,2,0.75,1.25,0.25,3,1.75"
GRAD = "FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"
CLASSES = "FLOAT[4]:0.5,1.25,2,0.75"
REDUCTIONS = reductions(GRAD)
# Pixels of two images of two rows and one column, with three classes.
PIXELS = "FLOAT[2,3,2,1]:-2.5,0.75,-0.5,1.5,0.5,-4,3,0.125,-1.25,2.25,-3.5,1"


def calls_of(pattern):
    """The calls with each reduction: {r} is its number, {out} the result and {grad} the incoming gradient."""
    return [pattern.format(r=r, out=out, grad=grad) for r, out, grad in REDUCTIONS]


@formula(
    "aclnnBinaryCrossEntropy",
    calls=[
        *calls_of(
            f"aclnnBinaryCrossEntropy self={PROBABILITIES} target={TARGET} weight={WEIGHT} reduction={{r}} out={{out}}"
        ),
        f"aclnnBinaryCrossEntropy self={PROBABILITIES} target={TARGET} weight=null reduction=0 out=FLOAT[2,4]",
    ],
)
def binary_cross_entropy(self, target, weight, reduction):
    losses = -(target * np.log(self) + (1 - target) * np.log(1 - self))
    return reduced(losses if weight is None else losses * weight, reduction)


@formula(
    "aclnnBinaryCrossEntropyBackward",
    calls=[
        *calls_of(
            f"aclnnBinaryCrossEntropyBackward gradOutput={{grad}} self={PROBABILITIES} target={TARGET} "
            f"weight={WEIGHT} reduction={{r}} out=FLOAT[2,4]"
        ),
        f"aclnnBinaryCrossEntropyBackward gradOutput={GRAD} self={PROBABILITIES} target={TARGET} weight=null "
        "reduction=0 out=FLOAT[2,4]",
    ],
)
def binary_cross_entropy_backward(grad, self, target, weight, reduction):
    derivative = (1 - target) / (1 - self) - target / self
    return gradient(derivative if weight is None else derivative * weight, grad, reduction)


def or_ones(weight):
    return 1 if weight is None else weight


@formula(
    "aclnnBinaryCrossEntropyWithLogits",
    calls=[
        *calls_of(
            f"aclnnBinaryCrossEntropyWithLogits self={LOGITS} target={TARGET} weightOptional={WEIGHT} "
            f"posWeightOptional={CLASSES} reduction={{r}} out={{out}}"
        ),
        f"aclnnBinaryCrossEntropyWithLogits self={LOGITS} target={TARGET} weightOptional=null posWeightOptional=null "
        "reduction=0 out=FLOAT[2,4]",
    ],
)
def with_logits(self, target, weight, positive, reduction):
    s = 1 / (1 + np.exp(-self))
    losses = -(or_ones(positive) * target * np.log(s) + (1 - target) * np.log(1 - s))
    return reduced(or_ones(weight) * losses, reduction)


@formula(
    "aclnnBinaryCrossEntropyWithLogitsBackward",
    calls=[
        *calls_of(
            f"aclnnBinaryCrossEntropyWithLogitsBackward gradOutput={{grad}} self={LOGITS} target={TARGET} "
            f"weightOptional={WEIGHT} posWeightOptional={CLASSES} reduction={{r}} out=FLOAT[2,4]"
        ),
        f"aclnnBinaryCrossEntropyWithLogitsBackward gradOutput={GRAD} self={LOGITS} target={TARGET} "
        "weightOptional=null posWeightOptional=null reduction=0 out=FLOAT[2,4]",
    ],
)
def with_logits_backward(grad, self, target, weight, positive, reduction):
    s = 1 / (1 + np.exp(-self))
    derivative = (1 - target) * s - or_ones(positive) * target * (1 - s)
    return gradient(or_ones(weight) * derivative, grad, reduction)


@formula(
    "aclnnSoftMarginLoss",
    calls=calls_of(f"aclnnSoftMarginLoss self={LOGITS} target={SIGNS} reduction={{r}} out={{out}}"),
)
def soft_margin_loss(self, target, reduction):
    return reduced(np.log(1 + np.exp(-target * self)), reduction)


@formula(
    "aclnnSoftMarginLossBackward",
    calls=calls_of(
        f"aclnnSoftMarginLossBackward gradOutput={{grad}} self={LOGITS} target={SIGNS} reduction={{r}} out=FLOAT[2,4]"
    ),
)
def soft_margin_loss_backward(grad, self, target, reduction):
    return gradient(-target / (1 + np.exp(target * self)), grad, reduction)


@formula(
    "aclnnMultilabelMarginLoss",
    calls=[
        f"aclnnMultilabelMarginLoss self={LOGITS} target=INT64[2,4]:3,0,-1,1,2,-1,-1,-1 reduction={r} {outputs}"
        for r, outputs in (
            (0, "out=FLOAT[2] isTarget=FLOAT[2,4]"),
            (1, "out=FLOAT[] isTarget=FLOAT[2,4]"),
            (2, "out=FLOAT[] isTarget=FLOAT[2,4]"),
        )
    ],
)
def multilabel_margin_loss(self, target, reduction):
    is_target = np.zeros(self.shape)
    losses = np.zeros(len(self))
    for row, (scores, classes) in enumerate(zip(self, target, strict=True)):
        # The classes before the first -1.
        chosen = classes[: int(np.argmax(classes < 0))] if (classes < 0).any() else classes
        is_target[row, chosen] = 1
        for j in chosen:
            for i in np.flatnonzero(is_target[row] == 0):
                losses[row] += max(0, 1 - (scores[j] - scores[i])) / len(scores)
    return reduced(losses, reduction), is_target


def weights_of(target, weight, ignored):
    """The weight of each target's class: 0 if the target is ignored."""
    return np.where(target == ignored, 0, weight[np.where(target == ignored, 0, target)])


@formula(
    "aclnnNLLLoss",
    "aclnnNLLLoss2d",
    calls=[
        *(
            f"aclnnNLLLoss self={LOGITS} target=INT64[2]:3,1 weight={CLASSES} reduction={r} ignoreIndex={ignored} "
            "out=FLOAT[] totalWeightOut=FLOAT[]"
            for r in (1, 2)
            for ignored in (-100, 3)
        ),
        *(
            f"aclnnNLLLoss2d self={PIXELS} target=INT64[2,2,1]:2,0,0,1 weight=FLOAT[3]:0.5,1.25,2 reduction={r} "
            f"ignoreIndex={ignored} out=FLOAT[] totalWeightOut=FLOAT[]"
            for r in (1, 2)
            for ignored in (-100, 2)
        ),
    ],
)
def nll_loss(self, target, weight, reduction, ignored):
    assert reduction != 0  # by the document, the total weight has no meaning then
    weights = weights_of(target, weight, ignored)
    index = np.where(target == ignored, 0, target)
    total = (-weights * np.take_along_axis(self, np.expand_dims(index, 1), 1)[:, 0]).sum()
    return total / weights.sum() if reduction == 1 else total, weights.sum()


@formula(
    "aclnnNLLLossBackward",
    "aclnnNLLLoss2dBackward",
    calls=[
        *(
            f"aclnnNLLLossBackward gradOutput=FLOAT{grad} self={LOGITS} target=INT64[2]:3,1 weight={CLASSES} "
            f"reduction={r} ignoreIndex={ignored} totalWeight=FLOAT[]:2.5 out=FLOAT[2,4]"
            for r, grad in ((0, "[2]:0.75,-1.5"), (1, "[]:-3.5"), (2, "[]:-3.5"))
            for ignored in (-100, 3)
        ),
        *(
            f"aclnnNLLLoss2dBackward gradOutput=FLOAT{grad} self={PIXELS} target=INT64[2,2,1]:2,0,0,1 "
            f"weight=FLOAT[3]:0.5,1.25,2 reduction={r} ignoreIndex={ignored} totalWeight=FLOAT[]:2.5 "
            "out=FLOAT[2,3,2,1]"
            for r, grad in ((0, "[2,2,1]:0.75,-1.5,2,0.25"), (1, "[]:-3.5"), (2, "[]:-3.5"))
            for ignored in (-100, 2)
        ),
    ],
)
def nll_loss_backward(grad, self, target, weight, reduction, ignored, total):
    of_targets = -weights_of(target, weight, ignored) * grad / (total if reduction == 1 else 1)
    classes = np.arange(self.shape[1]).reshape([-1 if i == 1 else 1 for i in range(self.ndim)])
    return np.where(classes == np.expand_dims(target, 1), np.expand_dims(of_targets, 1), 0)


# The gradient is softmax - labels, whatever the sum of the labels (ops-nn: aclnnSoftmaxCrossEntropyWithLogits.md).
@formula(
    "aclnnSoftmaxCrossEntropyWithLogits",
    calls=[
        "aclnnSoftmaxCrossEntropyWithLogits features=FLOAT[1,3]:1,2,-1 labels=FLOAT[1,3]:0.5,0.25,0.25 "
        "loss=FLOAT[1] backprop=FLOAT[1,3]",
        *(
            f"aclnnSoftmaxCrossEntropyWithLogits features={LOGITS} labels={labels} loss=FLOAT[2] backprop=FLOAT[2,4]"
            for labels in ("FLOAT[2,4]:0.5,0.25,0.125,0.125,0,0.75,0.25,0", TARGET)
        ),
    ],
)
def softmax_cross_entropy(features, labels):
    shifted = features - features.max(1, keepdims=True, initial=-np.inf)
    logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -(labels * logarithms).sum(1), np.exp(logarithms) - labels


@formula(
    "aclnnHingeLossGrad",
    calls=[
        "aclnnHingeLossGrad predict=FLOAT[4]:0.5,2,0.5,1 target=FLOAT[4]:1,1,-1,1 "
        "gradOutput=FLOAT[4]:3,3,3,3 gradInput=FLOAT[4]",
        "aclnnHingeLossGrad predict=FLOAT[2,4]:-2.5,0.75,-0.5,1,0.5,-4,3,-0.125 target=FLOAT[2,4]:1,1,-1,1,-1,1,-1,1 "
        f"gradOutput={GRAD} gradInput=FLOAT[2,4]",
    ],
)
def hinge_loss_grad(predict, target, grad):
    return np.where(1 - target * predict > 0, -target * grad, 0)


# The derivative by target of the loss -weight (p target log(s) + (1 - target) log(1 - s)), where s = sigmoid(self), and
# p weighs the positive class (ops-nn: aclnnBinaryCrossEntropyWithLogitsTargetBackward.md).
@formula(
    "aclnnBinaryCrossEntropyWithLogitsTargetBackward",
    calls=[
        f"aclnnBinaryCrossEntropyWithLogitsTargetBackward gradOutput={grad} self={LOGITS} target={TARGET} "
        f"weightOptional={weight} posWeightOptional={positive} reduction={r} gradTarget=FLOAT[2,4]"
        for r, grad, weight, positive in (
            (0, GRAD, "null", "null"),
            (1, "FLOAT[1]:3", WEIGHT, "FLOAT[1]:4"),
            (2, GRAD, CLASSES, CLASSES),
        )
    ],
)
def cross_entropy_with_logits_of_target(grad, self, target, weight, positive, reduction):
    of_one, of_zero = -np.log1p(np.exp(-self)), -np.log1p(np.exp(self))
    derivative = (1 if weight is None else weight) * (of_zero - (1 if positive is None else positive) * of_one)
    return gradient(derivative, grad, reduction)


@formula("aclnnHingeLoss", calls=[f"aclnnHingeLoss predict={LOGITS} target={SIGNS} loss=FLOAT[2,4]"])
def hinge_loss(predict, target):
    """ops-nn: aclnnHingeLoss.md."""
    return np.maximum(0, 1 - target * predict)


# ops-nn: aclnnHingeEmbeddingLoss.md.
@formula(
    "aclnnHingeEmbeddingLoss",
    calls=[
        f"aclnnHingeEmbeddingLoss input={LOGITS} target={SIGNS} margin=1.5 reduction={reduction} loss={out}"
        for reduction, out in (
            ('"none"', "FLOAT[2,4]"),
            ('"sum"', "FLOAT[1]"),
            ('"mean"', "FLOAT[1]"),
            ("null", "FLOAT[1]"),
        )
    ],
)
def hinge_embedding_loss(x, target, margin, reduction):
    losses = np.where(target == 1, x, np.maximum(0, margin - x))
    if reduction == "none":
        return losses
    return np.reshape(losses.sum() if reduction == "sum" else losses.mean(), 1)


# ops-nn: aclnnKlDiv.md, aclnnKlDivBackward.md and aclnnKlDivTargetBackward.md. Reductions are none, mean, sum, and the
# sum divided by the first dimension.
DIVERGENCE = "self=FLOAT[2,3]:-0.5,-1.25,-2,-0.75,-3,-1.5"
GOALS = (("false", "FLOAT[2,3]:0.5,0,1.25,2,0.125,0.75"), ("true", "FLOAT[2,3]:-0.25,-1,-2.5,0.5,-0.75,-1.75"))


@formula(
    "aclnnKlDiv",
    calls=[
        f"aclnnKlDiv {DIVERGENCE} target={target} reduction={reduction} logTarget={log} "
        f"out=FLOAT[{'2,3' if reduction == 0 else ''}]"
        for log, target in GOALS
        for reduction in range(4)
    ],
)
def kl_div(self, target, reduction, log_target):
    if log_target:
        return reduced(np.exp(target) * (target - self), reduction)
    entropy = np.where(target == 0, 0, target * np.log(np.where(target == 0, 1, target)))
    return reduced(entropy - target * self, reduction)


def of_divergence(function, out):
    return [
        f"{function} gradOutput=FLOAT[{'2,3' if reduction == 0 else ''}]:1.5,-2,0.5,3,-1,0.75 {DIVERGENCE} "
        f"target={target} reduction={reduction} logTarget={log} {out}=FLOAT[2,3]"
        for log, target in GOALS
        for reduction in range(4)
    ]


@formula("aclnnKlDivBackward", calls=of_divergence("aclnnKlDivBackward", "out"))
def kl_div_backward(grad, self, target, reduction, log_target):
    return gradient(-np.exp(target) if log_target else -target, grad, reduction)


@formula("aclnnKlDivTargetBackward", calls=of_divergence("aclnnKlDivTargetBackward", "gradTarget"))
def kl_div_target_backward(grad, self, target, reduction, log_target):
    if log_target:
        return gradient(np.exp(target) * (target + 1 - self), grad, reduction)
    logarithm = np.log(np.where(target == 0, 1, target))
    return gradient(np.where(target == 0, 0, logarithm + 1 - self), grad, reduction)
