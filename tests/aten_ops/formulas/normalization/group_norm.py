from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,4,2]:-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125,0.625,5,-3.25,1.375,-0.875"
GRAD = "FLOAT[2,4,2]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375,1.125,4,-0.625,-2.25,1.5"
SIZES = "N=2 C=4 HxW=2 group=2"
GAMMA = "FLOAT[4]:1.5,-0.75,2,0.5"


def channels(values, like):
    """The parameters of the channels, broadcastable to (samples, groups, channels of the group, elements)."""
    return values.reshape(1, *like.shape[1:3], 1)


@formula(
    "aclnnGroupNorm",
    calls=[
        f"aclnnGroupNorm self={X} gamma={GAMMA} beta=FLOAT[4]:0.25,-1.5,0.75,1 {SIZES} eps=0.125 out=FLOAT[2,4,2] "
        "meanOut=FLOAT[2,2] rstdOut=FLOAT[2,2]",
    ],
    # ATen computes x * scale + shift, in FLOAT: near 0 the two terms cancel.
    error=3e-6,
)
def group_norm(x, gamma, beta, n, c, hxw, group, eps):
    groups = x.reshape(n, group, c // group, hxw)
    mean = groups.mean((2, 3), keepdims=True)
    rstd = 1 / np.sqrt(((groups - mean) ** 2).mean((2, 3), keepdims=True) + eps)
    result = (groups - mean) * rstd * channels(gamma, groups) + channels(beta, groups)
    return result.reshape(x.shape), mean.reshape(n, group), rstd.reshape(n, group)


@formula(
    "aclnnGroupNormBackward",
    calls=[
        f"aclnnGroupNormBackward gradOut={GRAD} input={X} mean=FLOAT[2,2]:-0.5,0.25,1,0.625 "
        f"rstd=FLOAT[2,2]:0.75,1.5,0.375,1.25 gamma={GAMMA} {SIZES} outputMask=[true,true,true] "
        "gradInput=FLOAT[2,4,2] gradGammaOut=FLOAT[4] gradBetaOut=FLOAT[4]",
    ],
)
def group_norm_backward(grad, x, mean, rstd, gamma, n, c, hxw, group, _output_mask):
    shape = (n, group, c // group, hxw)
    rstd = rstd.reshape(n, group, 1, 1)
    normal = (x.reshape(shape) - mean.reshape(n, group, 1, 1)) * rstd
    gradient = grad.reshape(shape)
    weighted = gradient * channels(gamma, gradient)
    averages = weighted.mean((2, 3), keepdims=True)
    averages_of_normal = (weighted * normal).mean((2, 3), keepdims=True)
    of_input = rstd * (weighted - averages - normal * averages_of_normal)
    return of_input.reshape(x.shape), (gradient * normal).sum((0, 3)).ravel(), gradient.sum((0, 3)).ravel()
