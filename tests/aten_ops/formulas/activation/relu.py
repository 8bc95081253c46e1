from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,3,0"
INTEGERS = "INT32[6]:-3,2,5,-1,3,0"
GRAD = "FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"


@formula(
    "aclnnRelu",
    "aclnnInplaceRelu",
    calls=[
        f"aclnnRelu self={X} out=FLOAT[2,4]",
        f"aclnnRelu self={INTEGERS} out=INT32[6]",
        f"aclnnInplaceRelu selfRef={X}",
        f"aclnnInplaceRelu selfRef={INTEGERS}",
    ],
)
def relu(self):
    return np.maximum(self, 0)


# ops-nn: activation/threshold_v2/README.md for aclnnThresholdV2
@formula(
    "aclnnThreshold",
    "aclnnInplaceThreshold",
    "aclnnThresholdV2",
    calls=[
        f"aclnnThresholdV2 self={X} threshold=FLOAT(0.5) value=FLOAT(-7.25) out=FLOAT[2,4]",
        f"aclnnThreshold self={X} threshold=DOUBLE(0.5) value=DOUBLE(-7.25) out=FLOAT[2,4]",
        f"aclnnThreshold self={INTEGERS} threshold=INT64(2) value=INT64(-8) out=INT32[6]",
        f"aclnnInplaceThreshold selfRef={X} threshold=DOUBLE(0.5) value=DOUBLE(-7.25)",
        f"aclnnInplaceThreshold selfRef={INTEGERS} threshold=INT64(2) value=INT64(-8)",
    ],
)
def threshold(self, threshold, value):
    return np.where(self > threshold, self, value)


@formula(
    "aclnnThresholdBackward",
    calls=[f"aclnnThresholdBackward gradOutput={GRAD} self={X} threshold=DOUBLE(0.5) out=FLOAT[2,4]"],
)
def threshold_backward(grad, self, threshold):
    return np.where(self > threshold, grad, 0)


@formula(
    "aclnnLeakyRelu",
    "aclnnInplaceLeakyRelu",
    calls=[
        f"aclnnLeakyRelu self={X} negativeSlope=DOUBLE(0.375) out=FLOAT[2,4]",
        f"aclnnInplaceLeakyRelu selfRef={X} negativeSlope=DOUBLE(0.375)",
    ],
)
def leaky_relu(self, slope):
    return np.where(self > 0, self, slope * self)


@formula(
    "aclnnLeakyReluBackward",
    calls=[
        f"aclnnLeakyReluBackward gradOutput={GRAD} self={X} negativeSlope=DOUBLE(0.375) selfIsResult={flag} "
        "out=FLOAT[2,4]"
        for flag in ("false", "true")
    ],
)
def leaky_relu_backward(grad, self, slope, _self_is_result):
    # The result has the sign of the input.
    return np.where(self > 0, grad, slope * grad)


def along_channels(self, weight):
    return weight.reshape([-1 if i == 1 else 1 for i in range(self.ndim)])


@formula(
    "aclnnPrelu",
    calls=[f"aclnnPrelu self={X} weight=FLOAT[4]:0.25,-0.5,1.25,0.375 out=FLOAT[2,4]"],
)
def prelu(self, weight):
    return np.where(self > 0, self, along_channels(self, weight) * self)


@formula(
    "aclnnPreluBackward",
    calls=[
        f"aclnnPreluBackward gradOutput={GRAD} self=FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,-3,-1.25 "
        f"weight=FLOAT[{weight}]:0.25,-0.5,1.25,0.375 gradInput=FLOAT[2,4] gradWeight=FLOAT[{weight}]"
        for weight in (1, 4)
    ],
)
def prelu_backward(grad, self, weight):
    by_weight = np.where(self > 0, 0, grad * self)
    channels = by_weight.sum(tuple(d for d in range(self.ndim) if d != 1))
    sums = channels.sum() if weight.size == 1 else channels
    return np.where(self > 0, grad, along_channels(self, weight) * grad), sums.reshape(weight.shape)


@formula(
    "aclnnReluGradV4",
    calls=[
        f"aclnnReluGradV4 gradOutput={GRAD} self=UINT8[2,4]:1,0,1,1,1,0,1,1 threshold=INT32(0) out=FLOAT[2,4]",
        "aclnnReluGradV4 gradOutput=INT32[3]:7,8,9 self=UINT8[3]:1,0,1 threshold=INT32(0) out=INT32[3]",
    ],
)
def relu_grad_v4(grad, is_positive, threshold):
    return np.where(is_positive != 0, grad, 0)


# ops-nn: aclnnSquaredRelu.md
@formula("aclnnSquaredRelu", calls=[f"aclnnSquaredRelu input={X} out=FLOAT[2,4]"])
def squared_relu(x):
    return np.maximum(x, 0) ** 2


# ops-nn: aclnnFusedBiasLeakyRelu.md
@formula(
    "aclnnFusedBiasLeakyRelu",
    calls=[f"aclnnFusedBiasLeakyRelu x={X} bias={GRAD} negativeSlope=0.375 scale=-1.75 out=FLOAT[2,4]"],
)
def fused_bias_leaky_relu(x, bias, slope, scale):
    return leaky_relu(x + bias, slope) * scale


# ops-nn: aclnnReluGradV3.md
@formula(
    "aclnnReluGradV3",
    calls=[
        f"aclnnReluGradV3 x={X} y=FLOAT[4]:-1.5,2.25,3,-4 z=FLOAT[2,4]",
        "aclnnReluGradV3 x=INT8[3,1]:1,-1,0 y=INT8[2]:3,4 z=INT8[3,2]",
    ],
)
def relu_grad_v3(x, gradient):
    return np.where(x > 0, gradient, 0)


# ops-nn: aclnnReluV3.md. The mask has the shape of x, or as in the document's example a byte for eight bits, the first
# the lowest.
@formula(
    "aclnnReluV3",
    calls=[
        f"aclnnReluV3 x={signed('1,1,1,2,16', 1)} yOut=FLOAT[1,1,1,2,16] maskOut=UINT8[1,1,1,2,2]",
        "aclnnReluV3 x=INT8[1,1,1,2,16]:8,-10,0,9,-7,12,1,-16,11,3,-2,5,-1 yOut=INT8[1,1,1,2,16] "
        "maskOut=UINT8[1,1,1,2,16]",
    ],
)
def relu_v3(x, outputs):
    mask = (x > 0).astype(np.uint8)
    is_whole = outputs["maskOut"].shape == x.shape
    return np.maximum(x, 0), mask if is_whole else np.packbits(mask, -1, "little")


# ops-nn: aclnnRReluWithNoise&aclnnInplaceRReluWithNoise.md. In training there is chance unless the bounds are equal;
# otherwise the slope is their mean, and the noise is not written.
@formula(
    "aclnnInplaceRReluWithNoise",
    calls=[
        f"aclnnInplaceRReluWithNoise self={X} noise={GRAD} lower=FLOAT({lower}) upper=FLOAT(0.75) "
        f"training={training} seed=0 offset=0"
        for lower, training in ((0.75, "true"), (0.125, "false"))
    ],
)
def randomized_relu(x, noise, lower, upper, training, *_):
    slope = (lower + upper) / 2
    return leaky_relu(x, slope), np.where(x > 0, 1, slope) if training else noise
