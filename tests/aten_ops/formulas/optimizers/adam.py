from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

LISTS = (
    "paramsRef={FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,-4,3} "
    "gradsRef={FLOAT[2,2]:1.25,-0.375,-3,2 FLOAT[3]:0.625,1.75,-5} "
    "expAvgsRef={FLOAT[2,2]:0.5,-1.5,2.5,-0.25 FLOAT[3]:1.125,0.75,-2} "
    "expAvgSqsRef={FLOAT[2,2]:0.5,1.5,2.5,0.25 FLOAT[3]:1.125,0.75,2} "
    "maxExpAvgSqsRef={FLOAT[2,2]:4,0.125,3,0.0625 FLOAT[3]:2.125,0.25,1} stateSteps={FLOAT[]:2 FLOAT[]:5}"
)
SETTINGS = "lr=0.125 beta1=0.75 beta2=0.875"


@formula(
    "aclnnFusedAdam",
    calls=[
        f"aclnnFusedAdam {LISTS} gradScaleOptional=null foundInfOptional=null {SETTINGS} weightDecay=0 eps=0.25 "
        "amsgrad=false maximize=true",
        f"aclnnFusedAdam {LISTS} gradScaleOptional=FLOAT[1]:2.5 foundInfOptional=FLOAT[1]:0 {SETTINGS} "
        "weightDecay=0.5 eps=0.0625 amsgrad=true maximize=false",
        f"aclnnFusedAdam {LISTS} gradScaleOptional=null foundInfOptional=FLOAT[1]:1 {SETTINGS} "
        "weightDecay=0.5 eps=0.0625 amsgrad=true maximize=false",
        f"aclnnFusedAdam {LISTS.replace('FLOAT[]:2', 'FLOAT[2]:2,7')} gradScaleOptional=FLOAT[0] "
        f"foundInfOptional=FLOAT[0] {SETTINGS} weightDecay=0.5 eps=0.0625 amsgrad=true maximize=false",
    ],
)
def fused_adam(
    params,
    grads,
    means,
    squares,
    largest,
    steps,
    grad_scale,
    found_inf,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    amsgrad,
    maximize,
):
    if found_inf is not None and found_inf.any():
        return [*params, *grads, *means, *squares, *largest]
    results = []
    for p, grad, mean, square, most, step in zip(params, grads, means, squares, largest, steps, strict=True):
        unscaled = grad if grad_scale is None or grad_scale.size == 0 else grad / grad_scale.item()
        g = (-unscaled if maximize else unscaled) + weight_decay * p
        new_mean = beta1 * mean + (1 - beta1) * g
        new_square = beta2 * square + (1 - beta2) * g**2
        new_most = np.maximum(most, new_square) if amsgrad else most
        count = step.reshape(-1)[0] + 1  # the first of several
        corrected = (new_most if amsgrad else new_square) / (1 - beta2**count)
        new_p = p - lr * new_mean / (1 - beta1**count) / (np.sqrt(corrected) + eps)
        results.append((new_p, unscaled, new_mean, new_square, new_most))
    return [tensor for each_list in zip(*results, strict=True) for tensor in each_list]


# step is the number of steps before this one. With amsgrad the largest squares so far take the place of those of this
# step (ops-nn: aclnnApplyAdamWV2.md).
@formula(
    "aclnnApplyAdamWV2",
    calls=[
        "aclnnApplyAdamWV2 varRef=FLOAT[2,2]:-2.5,0.75,-0.5,1.5 mRef=FLOAT[2,2]:0.5,-1.5,2.5,-0.25 "
        f"vRef=FLOAT[2,2]:0.5,1.5,2.5,0.25 maxGradNormOptionalRef={largest} grad=FLOAT[2,2]:1.25,-0.375,-3,2 "
        f"step=FLOAT[]:2 {SETTINGS} weightDecay=0.5 eps=0.0625 amsgrad={amsgrad} maximize={maximize}"
        for largest, amsgrad, maximize in (
            ("null", "false", "false"),
            ("FLOAT[2,2]:4,0.125,3,0.0625", "true", "true"),
        )
    ],
)
def adam_w_v2(var, mean, square, largest, grad, step, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize):
    g, count = (-grad if maximize else grad), step.item() + 1
    new_mean = beta1 * mean + (1 - beta1) * g
    new_square = beta2 * square + (1 - beta2) * g**2
    new_largest = np.maximum(largest, new_square) if amsgrad else largest
    corrected = (new_largest if amsgrad else new_square) / (1 - beta2**count)
    new_var = var - lr * new_mean / (1 - beta1**count) / (np.sqrt(corrected) + eps) - lr * weight_decay * var
    return (new_var, new_mean, new_square, *([] if largest is None else [new_largest]))
