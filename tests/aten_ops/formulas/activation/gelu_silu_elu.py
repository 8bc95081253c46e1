from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
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


# ops-nn: aclnnSwish.md, aclnnSwishBackward.md. Without beta it is 1.
BETAS = ("FLOAT(2.5)", "INT64(0)", "FLOAT(-0.75)", "null")


@formula("aclnnSwish", calls=[f"aclnnSwish self={X} betaOptional={beta} out=FLOAT[2,3]" for beta in BETAS])
def swish(x, beta):
    return x * sigmoid((1 if beta is None else beta) * x)


@formula(
    "aclnnSwishBackward",
    calls=[f"aclnnSwishBackward gradOutput={GRAD} self={X} betaOptional={beta} gradInput=FLOAT[2,3]" for beta in BETAS],
)
def swish_backward(grad, x, beta):
    steepness = 1 if beta is None else beta
    share = sigmoid(steepness * x)
    return grad * share * (1 + steepness * x * (1 - share))


# ops-nn: aclnnEluV2.md, whose formula is that of aclnnElu.md
@formula(
    "aclnnEluV2",
    calls=[f"aclnnEluV2 self={X} alpha=FLOAT(1.5) scale=FLOAT(2) inputScale=FLOAT(0.5) out=FLOAT[2,3]"],
)
def elu_v2(x, alpha, scale, input_scale):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale))


# ops-nn: aclnnFastGeluV2.md
@formula("aclnnFastGeluV2", calls=["aclnnFastGeluV2 x=FLOAT[2,4]:-4,-1,0,0.5,1,4,-0.25,1.75 out=FLOAT[2,4]"])
def fast_gelu_v2(x):
    sign = np.where(x + 1e-12 < 0, -1, 1)
    return x * (sign * (-0.1444 * (np.minimum(np.abs(0.7071 * x), 1.769) - 1.769) ** 2 + 0.5) + 0.5)
