from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,3]:-2.5,0.75,-0.5,1.5,-4,3"
GRAD = "FLOAT[2,3]:0.5,-1.25,2,0.75,-1.5,3"


@formula("aclnnFastGelu", calls=[f"aclnnFastGelu self={X} out=FLOAT[2,3]"])
def fast_gelu(self):
    return self / (1 + np.exp(-1.702 * np.abs(self))) * np.exp(0.851 * (self - np.abs(self)))


@formula("aclnnFastGeluBackward", calls=[f"aclnnFastGeluBackward gradOutput={GRAD} self={X} gradInput=FLOAT[2,3]"])
def fast_gelu_backward(grad, self):
    e = np.exp(-1.702 * self)
    return grad * (1 / (1 + e) + 1.702 * self * e / (1 + e) ** 2)


@formula(
    "aclnnCelu",
    "aclnnInplaceCelu",
    calls=[
        f"aclnnCelu self={X} alpha=DOUBLE(1.5) out=FLOAT[2,3]",
        f"aclnnInplaceCelu selfRef={X} alpha=DOUBLE(0.75)",
    ],
)
def celu(self, alpha):
    return np.maximum(self, 0) + np.minimum(alpha * np.expm1(self / alpha), 0)
