from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,3]:-2.5,0.75,-0.5,1.5,0.25,3"
GRAD = "FLOAT[2,3]:0.5,-1.25,2,0.75,-1.5,3"
PROBABILITIES = "FLOAT[2,3]:0.5,0.125,0.375,0.25,0.625,0.125"
LOGARITHMS = "FLOAT[2,3]:-0.5,-1.75,-2.25,-3,-0.25,-1.5"


@formula("aclnnSoftmax", calls=[f"aclnnSoftmax self={X} dim={dim} out=FLOAT[2,3]" for dim in (0, -1)])
def softmax(self, dim):
    powers = np.exp(self)
    return powers / powers.sum(dim if self.ndim else None, keepdims=True)


@formula("aclnnLogSoftmax", calls=[f"aclnnLogSoftmax self={X} dim={dim} out=FLOAT[2,3]" for dim in (0, -1)])
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


@formula(
    "aclnnLogSoftmaxBackward",
    calls=[
        f"aclnnLogSoftmaxBackward gradOutput={GRAD} output={LOGARITHMS} dim={dim} out=FLOAT[2,3]" for dim in (0, -1)
    ],
)
def log_softmax_backward(grad, output, dim):
    return grad - np.exp(output) * grad.sum(dim, keepdims=True)
