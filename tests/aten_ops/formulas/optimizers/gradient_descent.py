from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

LISTS = (
    "paramsRef={FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,-4,3} "
    "gradsRef={FLOAT[2,2]:1.25,-0.375,-3,2 FLOAT[3]:0.625,1.75,-5} "
    "momentumBufferListOptionalRef={FLOAT[2,2]:0.5,-1.5,2.5,-0.25 FLOAT[3]:1.125,0.75,-2}"
)


@formula(
    "aclnnFusedSgd",
    calls=[
        f"aclnnFusedSgd {LISTS} gradScaleOptional={scale} weightDecay=0.5 momentum={momentum} lr=0.125 dampening=0.25 "
        f"nesterov={nesterov} maximize={maximize} isFirstStep={first}"
        for scale, momentum, nesterov, maximize, first in (
            ("null", 0.75, "false", "false", "false"),
            ("FLOAT[0]", 0.75, "false", "false", "false"),
            ("FLOAT[1]:2.5", 0.75, "false", "true", "false"),
            ("FLOAT[1]:2.5", 0.75, "false", "false", "true"),
        )
    ]
    + [
        f"aclnnFusedSgd {LISTS} gradScaleOptional=null weightDecay=0 momentum=0.75 lr=0.125 dampening=0 nesterov=true "
        "maximize=false isFirstStep=false",
        "aclnnFusedSgd paramsRef={FLOAT[3]:0.25,-4,3} gradsRef={FLOAT[3]:0.625,1.75,-5} "
        "momentumBufferListOptionalRef={} gradScaleOptional=null weightDecay=0.5 momentum=0 lr=0.125 dampening=0 "
        "nesterov=false maximize=false isFirstStep=false",
    ],
)
def fused_sgd(
    params, grads, momenta, grad_scale, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step
):
    results = []
    for p, grad, buffer in zip(params, grads, momenta or [None] * len(params), strict=True):
        # A scale without elements counts as absent.
        unscaled = grad if grad_scale is None or grad_scale.size == 0 else grad / grad_scale.item()
        direction = (-unscaled if maximize else unscaled) + weight_decay * p
        new_buffer = None
        if buffer is not None:
            new_buffer = direction if is_first_step else momentum * buffer + (1 - dampening) * direction
            direction = direction + momentum * new_buffer if nesterov else new_buffer
        results.append((p - lr * direction, unscaled, new_buffer))
    return [tensor for each_list in zip(*results, strict=True) for tensor in each_list if tensor is not None]


VAR = "var=FLOAT[2,2]:-2.5,0.75,-0.5,1.5"
MOMENTS = "m=FLOAT[2,2]:0.5,-1.5,2.5,-0.25 v=FLOAT[2,2]:0.5,1.5,2.5,0.25"
GRAD = "grad=FLOAT[2,2]:1.25,-0.375,-3,2"


@formula(
    "aclnnApplyAdadelta",
    calls=[
        "aclnnApplyAdadelta var=FLOAT[1]:1 accum=FLOAT[1]:0.25 accumUpdate=FLOAT[1]:0.0625 "
        "lr=DOUBLE(0.1) rho=FLOAT(0.5) epsilon=FLOAT(0.25) grad=FLOAT[1]:2 varOut=FLOAT[1] "
        "accumOut=FLOAT[1] accumUpdateOut=FLOAT[1]",
        f"aclnnApplyAdadelta {VAR} accum=FLOAT[2,2]:0.5,1.5,2.5,0.25 accumUpdate=FLOAT[2,2]:1.25,0.375,3,2 "
        f"lr=FLOAT(0.5) rho=FLOAT(0.75) epsilon=FLOAT(0.0625) {GRAD} varOut=FLOAT[2,2] accumOut=FLOAT[2,2] "
        "accumUpdateOut=FLOAT[2,2]",
    ],
)
def adadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    new_accum = rho * accum + (1 - rho) * grad**2
    update = np.sqrt(accum_update + epsilon) / np.sqrt(new_accum + epsilon) * grad
    return var - lr * update, new_accum, rho * accum_update + (1 - rho) * update**2


@formula(
    "aclnnApplyAdamD",
    calls=[
        f"aclnnApplyAdamD {VAR} {MOMENTS} beta1Power=FLOAT[1]:0.5625 beta2Power=FLOAT[1]:0.765625 lr=FLOAT[1]:0.125 "
        f"beta1=FLOAT[1]:0.75 beta2=FLOAT[1]:0.875 epsilon=FLOAT[1]:0.0625 {GRAD} useLocking=false "
        f"useNesterov={nesterov} varOut=FLOAT[2,2] mOut=FLOAT[2,2] vOut=FLOAT[2,2]"
        for nesterov in ("false", "true")
    ],
)
def adam_d(var, mean, square, power1, power2, lr, beta1, beta2, epsilon, grad, _use_locking, use_nesterov):
    rate = lr * np.sqrt(1 - power2) / (1 - power1)
    new_mean = beta1 * mean + (1 - beta1) * grad
    new_square = beta2 * square + (1 - beta2) * grad**2
    direction = new_mean * beta1 + (1 - beta1) * grad if use_nesterov else new_mean
    return var - rate * direction / (epsilon + np.sqrt(new_square)), new_mean, new_square


@formula(
    "aclnnApplyAdamax",
    calls=[
        "aclnnApplyAdamax var=FLOAT[1]:3 m=FLOAT[1]:1 v=FLOAT[1]:8 beta1Power=FLOAT(0.5) lr=FLOAT(0.25) "
        "beta1=FLOAT(0.5) beta2=FLOAT(0.75) epsilon=FLOAT(1) grad=FLOAT[1]:-4 varOut=FLOAT[1] "
        "mOut=FLOAT[1] vOut=FLOAT[1]",
        f"aclnnApplyAdamax {VAR} {MOMENTS} beta1Power=FLOAT(0.5625) lr=FLOAT(0.125) beta1=FLOAT(0.75) "
        f"beta2=FLOAT(0.875) epsilon=FLOAT(0.0625) {GRAD} varOut=FLOAT[2,2] mOut=FLOAT[2,2] vOut=FLOAT[2,2]",
    ],
)
def adamax(var, mean, largest, power1, lr, beta1, beta2, epsilon, grad):
    new_mean = beta1 * mean + (1 - beta1) * grad
    new_largest = np.maximum(beta2 * largest, np.abs(grad))
    return var - lr / (1 - power1) * new_mean / (new_largest + epsilon), new_mean, new_largest


# ops-nn: aclnnApplyFtrl.md. var is 0 where the new linear is not above l1.
@formula(
    "aclnnApplyFtrl",
    calls=[
        "aclnnApplyFtrl varRef=FLOAT[2,2]:-2.5,0.75,-0.5,1.5 accumRef=FLOAT[2,2]:9,0.25,4,2.5 "
        f"linearRef=FLOAT[2,2]:1,-2,0.5,-1.5 {GRAD} lr=FLOAT[1]:0.5 l1=FLOAT[]:{l1} l2=FLOAT[1]:0.25 "
        f"lrPower=FLOAT[1]:{power} useLocking=false"
        for l1, power in ((1, -0.5), (2, -0.75), (0, 0))
    ],
)
def ftrl(var, accum, linear, grad, lr, l1, l2, power, _use_locking):
    new_accum = accum + grad**2
    new_linear = linear + grad - (new_accum**-power - accum**-power) / lr * var
    new_var = (l1 * np.sign(new_linear) - new_linear) / (new_accum**-power / lr + 2 * l2)
    return np.where(np.abs(new_linear) > l1, new_var, 0), new_accum, new_linear


@formula(
    "aclnnApplyGradientDescent",
    calls=[f"aclnnApplyGradientDescent {VAR} alpha=FLOAT[1]:0.75 delta=FLOAT[2,2]:1.25,-0.375,-3,2"],
)
def gradient_descent(var, alpha, delta):
    """ops-nn: aclnnApplyGradientDescent.md."""
    return var - alpha * delta
