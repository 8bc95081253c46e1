from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula

X = "FLOAT[2,3]:-2.5,0.75,-0.5,1.5,0.25,3"
GRAD = "FLOAT[2,3]:0.5,-1.25,2,0.75,-1.5,3"
PROBABILITIES = "FLOAT[2,3]:0.5,0.125,0.375,0.25,0.625,0.125"
LOGARITHMS = "FLOAT[2,3]:-0.5,-1.75,-2.25,-3,-0.25,-1.5"


@formula("aclnnSoftmax", calls=[f"aclnnSoftmax self={X} dim={dim} out=FLOAT[2,3]" for dim in (0, -1)])
def softmax(self, dim):
    powers = np.exp(self)
    return powers / powers.sum(dim if self.ndim else None, keepdims=True)


# ops-nn: aclnnLogSoftmaxV2.md
@formula(
    "aclnnLogSoftmax",
    "aclnnLogSoftmaxV2",
    calls=[f"aclnnLogSoftmax{form} self={X} dim={dim} out=FLOAT[2,3]" for form in ("", "V2") for dim in (0, -1)],
)
def log_softmax(self, dim):
    return np.log(softmax(self, dim))


@formula(
    "aclnnSoftmaxBackward",
    calls=[
        f"aclnnSoftmaxBackward gradOutput={GRAD} output={PROBABILITIES} dim={dim} gradInput=FLOAT[2,3]"
        for dim in (0, -1)
    ],
)
def softmax_backward(grad, output, dim):
    return output * (grad - (grad * output).sum(dim, keepdims=True))


# ops-nn: aclnnSoftmaxGrad.md
@formula(
    "aclnnSoftmaxGrad",
    calls=[
        f"aclnnSoftmaxGrad y={PROBABILITIES} dy={GRAD} dx=FLOAT[2,3]",
        "aclnnSoftmaxGrad y=FLOAT[2,0] dy=FLOAT[2,0] dx=FLOAT[2,0]",
    ],
)
def softmax_grad(y, dy):
    return softmax_backward(dy, y, -1)


# ops-nn: aclnnScaledMaskedSoftmax.md. A score that is masked counts as -10000 (the row's note).
MASK = "BOOL[1,2,2,3]:0,1,0,1,1,1,0,0,0,1,0,0"


@formula(
    "aclnnScaledMaskedSoftmax",
    calls=[
        f"aclnnScaledMaskedSoftmax x={signed('2,2,2,3', 1)} mask={MASK} scale=-1.75 fixedTriuMask=false "
        "y=FLOAT[2,2,2,3]"
    ],
)
def scaled_masked_softmax(x, mask, scale, _fixed):
    scores = np.where(mask != 0, -10000, scale * x)
    return softmax(scores - scores.max(-1, keepdims=True, initial=-np.inf), -1)


# ops-nn: aclnnScaledMaskedSoftmaxBackward.md
@formula(
    "aclnnScaledMaskedSoftmaxBackward",
    calls=[
        f"aclnnScaledMaskedSoftmaxBackward gradOutput={signed('2,2,2,3', 1)} y={positive('2,2,2,3', 2)} mask={MASK} "
        "scale=-1.75 fixTriuMask=false out=FLOAT[2,2,2,3]"
    ],
)
def scaled_masked_softmax_backward(grad, y, mask, scale, _fixed):
    return np.where(mask != 0, 0, softmax_backward(grad, y, -1) * scale)


@formula(
    "aclnnLogSoftmaxBackward",
    calls=[
        f"aclnnLogSoftmaxBackward gradOutput={GRAD} output={LOGARITHMS} dim={dim} out=FLOAT[2,3]" for dim in (0, -1)
    ],
)
def log_softmax_backward(grad, output, dim):
    return grad - np.exp(output) * grad.sum(dim, keepdims=True)
