from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.numbers import positive, signed
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


# ops-nn: aclnnGroupNormSiluV2.md. Without elements the means are 0 and the inverse deviations NaN.
@formula(
    "aclnnGroupNormSiluV2",
    calls=[
        f"aclnnGroupNormSiluV2 self={X} gamma={GAMMA} beta={signed('4', 1)} group=2 eps=0.1 activateSilu=false "
        "out=FLOAT[2,4,2] meanOut=FLOAT[2,2] rstdOut=FLOAT[2,2]",
        f"aclnnGroupNormSiluV2 self={X} gamma=null beta=null group=4 eps=0.1 activateSilu=true out=FLOAT[2,4,2] "
        "meanOut=FLOAT[2,4] rstdOut=FLOAT[2,4]",
        "aclnnGroupNormSiluV2 self=FLOAT[2,4,0] gamma=null beta=null group=2 eps=0.1 activateSilu=true "
        "out=FLOAT[2,4,0] meanOut=FLOAT[2,2] rstdOut=FLOAT[2,2]",
    ],
    error=3e-6,  # ATen computes x * scale + shift, in FLOAT: near 0 the two terms cancel
)
def group_norm_silu_v2(x, gamma, beta, group, eps, has_silu):
    samples, count = x.shape[:2]
    if x.size == 0:
        return x, np.zeros((samples, group)), np.full((samples, group), np.nan)
    gamma, beta = np.ones(count) if gamma is None else gamma, np.zeros(count) if beta is None else beta
    elements = x.reshape(samples, count, -1)
    out, *statistics = group_norm(elements, gamma, beta, samples, count, elements.shape[2], group, eps)
    return (out * sigmoid(out) if has_silu else out).reshape(x.shape), *statistics


@formula(
    "aclnnGroupNormSilu",
    calls=[
        f"aclnnGroupNormSilu self={X} gamma={GAMMA} beta={signed('4', 2)} group=2 eps=0.1 out=FLOAT[2,4,2] "
        "meanOut=FLOAT[2,2] rstdOut=FLOAT[2,2]",
    ],
    error=3e-6,  # as above
)
def group_norm_silu(*arguments):
    return group_norm_silu_v2(*arguments, True)


# ops-nn: aclnnGroupNormSwish.md. The channels are the second dimension in every format.
@formula(
    "aclnnGroupNormSwish",
    calls=[
        f"aclnnGroupNormSwish x={X} gamma={GAMMA} beta={signed('4', 3)} numGroups=2 dataFormatOptional=null eps=0.1 "
        f"activateSwish={swish} swishScale=2.5 yOut=FLOAT[2,4,2] meanOut=FLOAT[2,2] rstdOut=FLOAT[2,2]"
        for swish in ("false", "true")
    ],
    error=3e-6,  # as above
)
def group_norm_swish(x, gamma, beta, group, _data_format, eps, has_swish, scale):
    y, *statistics = group_norm_silu_v2(x, gamma, beta, group, eps, False)
    return y * sigmoid(scale * y) if has_swish else y, *statistics


# The sums over a group are divided by the number of its elements, though not in ops-nn: aclnnGroupNormSwishGrad.md.
@formula(
    "aclnnGroupNormSwishGrad",
    calls=[
        f"aclnnGroupNormSwishGrad dy={GRAD} mean=FLOAT[2,2]:-0.5,0.25,1,0.625 rstd=FLOAT[2,2]:0.75,1.5,0.375,1.25 "
        f"x={X} gamma={GAMMA} beta={signed('4', 4)} numGroups=2 dataFormatOptional=null swishScale=1.5 "
        "dgammaIsRequire=true dbetaIsRequire=true dxOut=FLOAT[2,4,2] dgammaOut=FLOAT[4,1] dbetaOut=FLOAT[4,1]",
    ],
)
def group_norm_swish_grad(dy, mean, rstd, x, gamma, beta, groups, _data_format, scale, _of_gamma, _of_beta):
    samples, count = x.shape[:2]
    shape = (samples, groups, count // groups, -1)
    per_group, per_channel = (samples, groups, 1, 1), (1, groups, count // groups, 1)
    rstd, gamma = rstd.reshape(per_group), gamma.reshape(per_channel)
    normal = (x.reshape(shape) - mean.reshape(per_group)) * rstd
    y = normal * gamma + beta.reshape(per_channel)
    swish = scale * y - scale * y * sigmoid(scale * y) + 1
    new_dy = swish * sigmoid(scale * y) * dy.reshape(shape)
    of_gamma, of_beta = (
        (gamma * of_channels.sum(3, keepdims=True)).sum(2, keepdims=True) / (normal.size // mean.size)
        for of_channels in (new_dy * normal, new_dy)
    )
    dx = rstd * (new_dy * gamma - normal * of_gamma - of_beta)
    return dx.reshape(x.shape), *(each.sum((0, 3)).reshape(count, 1) for each in (new_dy * normal, new_dy))


# ops-nn: aclnnGroupNormalizationGrad.md. gamma is a factor of the sums and, once more, of the result.
@formula(
    "aclnnGroupNormalizationGrad",
    calls=[
        f"aclnnGroupNormalizationGrad x={signed('2,2,3', 1)} dy={signed('2,2,3', 2)} gamma={signed('2,2,3', 3)} "
        f"mean={signed('2,2', 4)} rstd={positive('2,2', 5)} dx=FLOAT[2,2,3]",
        "aclnnGroupNormalizationGrad x=FLOAT[0,4,3] dy=FLOAT[0,4,3] gamma=FLOAT[0,4,3] mean=FLOAT[0,4] rstd=FLOAT[0,4] "
        "dx=FLOAT[0,4,3]",
    ],
    error=2e-6,  # the terms cancel
)
def group_normalization_grad(x, dy, gamma, mean, rstd):
    mean, rstd = (each.reshape(*each.shape, *[1] * (x.ndim - 2)) for each in (mean, rstd))
    normal, axes = (x - mean) * rstd, tuple(range(2, x.ndim))
    count = int(np.prod(x.shape[2:]))
    sum1 = (dy * gamma).sum(axes, keepdims=True)
    sum2 = (dy * gamma * normal).sum(axes, keepdims=True)
    return rstd / count * gamma * (count * dy - sum1 - normal * sum2)
