from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,3,2]:-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125,0.625"
GRAD = "FLOAT[2,3,2]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375,1.125"


@formula(
    "aclnnBatchNormBackward",
    calls=[
        f"aclnnBatchNormBackward gradOut={GRAD} input={X} weight=FLOAT[3]:1.5,-0.75,2 "
        "runningMean=FLOAT[3]:0.25,-1.5,0.75 runningVar=FLOAT[3]:2.5,0.5,1.25 saveMean=FLOAT[3]:-0.5,0.625,1 "
        f"saveInvstd=FLOAT[3]:0.75,1.5,0.375 training={training} eps=0.125 outputMask=[true,true,true] "
        "gradInput=FLOAT[2,3,2] gradWeight=FLOAT[3] gradBias=FLOAT[3]"
        for training in ("true", "false")
    ],
)
def batch_norm_backward(
    grad, x, weight, running_mean, running_var, save_mean, save_invstd, training, eps, _output_mask
):
    axes = tuple(i for i in range(x.ndim) if i != 1)
    shape = [-1 if i == 1 else 1 for i in range(x.ndim)]
    mean, invstd = (save_mean, save_invstd) if training else (running_mean, 1 / np.sqrt(running_var + eps))
    normal = (x - mean.reshape(shape)) * invstd.reshape(shape)
    of_weight, of_bias = (grad * normal).sum(axes), grad.sum(axes)
    inner = grad
    if training:
        # The statistics depend on the input, too.
        count = x.size / x.shape[1]
        inner = grad - of_bias.reshape(shape) / count - normal * of_weight.reshape(shape) / count
    return inner * (weight * invstd).reshape(shape), of_weight, of_bias
