from __future__ import annotations

from bisect import bisect_left

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed, whole
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


# One step of AdamW with the number of this step. With amsgrad the largest squares so far take the place of those of
# this step (ops-nn: aclnnApplyAdamWV2.md, aclnnFusedAdamw.md).
def adam_w(var, mean, square, largest, grad, count, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize):
    g = -grad if maximize else grad
    new_mean = beta1 * mean + (1 - beta1) * g
    new_square = beta2 * square + (1 - beta2) * g**2
    new_largest = np.maximum(largest, new_square) if amsgrad else largest
    corrected = (new_largest if amsgrad else new_square) / (1 - beta2**count)
    new_var = var - lr * new_mean / (1 - beta1**count) / (np.sqrt(corrected) + eps) - lr * weight_decay * var
    return (new_var, new_mean, new_square, *([] if largest is None else [new_largest]))


# step is the number of steps before this one.
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
def adam_w_v2(var, mean, square, largest, grad, step, *settings):
    return adam_w(var, mean, square, largest, grad, step.item() + 1, *settings)


def pair(name, numbers, start):
    return f"{name}={{{numbers('2,2', start)} {numbers('3', start + 1)}}}"


# stateSteps has the numbers of steps before this one. grads are not changed.
@formula(
    "aclnnFusedAdamw",
    calls=[
        f"aclnnFusedAdamw {pair('paramsRef', signed, 1)} {pair('grads', signed, 3)} {pair('expAvgsRef', signed, 5)} "
        f"{pair('expAvgSqsRef', positive, 7)} {largest} stateSteps={{{steps}}} gradScaleOptional={scale} "
        f"foundInfOptional={found} {SETTINGS} {settings}"
        for largest, steps, scale, found, settings in (
            (
                *("maxExpAvgSqsRef=null", "INT64[1]:2 INT64[1]:3", "null", "FLOAT[1]:0"),
                "weightDecay=0 eps=0.0625 amsgrad=false maximize=true",
            ),
            (
                *(pair("maxExpAvgSqsRef", positive, 9), "FLOAT[]:2 FLOAT[]:3", "null", "FLOAT[1]:1"),
                "weightDecay=0.25 eps=0.0625 amsgrad=true maximize=false",
            ),
            (
                *(pair("maxExpAvgSqsRef", positive, 9), "INT64[1]:2 INT64[1]:3", "FLOAT[1]:2", "null"),
                "weightDecay=0.25 eps=0.0625 amsgrad=true maximize=false",
            ),
        )
    ],
)
def fused_adamw(params, grads, means, squares, largest, steps, grad_scale, found_inf, *settings):
    if found_inf is not None and found_inf.any():
        return [*params, *means, *squares, *(largest or [])]
    scale = 1 if grad_scale is None else grad_scale.item()
    results = [
        adam_w(p, mean, square, most, grad / scale, step.reshape(-1)[0] + 1, *settings)
        for p, grad, mean, square, most, step in zip(
            params, grads, means, squares, largest or [None] * len(params), steps, strict=True
        )
    ]
    return [tensor for each_list in zip(*results, strict=True) for tensor in each_list]


def settings_of(dtype, **numbers):
    return " ".join(f"{name}={dtype}[1]:{number}" for name, number in numbers.items())


OF_ADAM_W = {"lr": 0.125, "weightDecay": 0.25, "beta1": 0.5, "beta2": 0.75, "eps": 0.0625}


# beta1Power and beta2Power are the powers of the step before this one (ops-nn: aclnnApplyAdamW.md).
@formula(
    "aclnnApplyAdamW",
    calls=[
        f"aclnnApplyAdamW varRef={signed('2,3', 1, dtype)} mRef={signed('2,3', 2, dtype)} "
        f"vRef={positive('2,3', 3, dtype)} {settings_of(dtype, beta1Power=0.25, beta2Power=0.5, **OF_ADAM_W)} "
        f"grad={signed('2,3', 4, dtype)} maxGradNormOptional={most} amsgrad={amsgrad} maximize={maximize}"
        for dtype, most, amsgrad, maximize in (
            ("DOUBLE", positive("2,3", 8, "DOUBLE"), "true", "true"),
            ("DOUBLE", positive("2,3", 8, "DOUBLE"), "false", "true"),
            ("FLOAT", positive("2,3", 8), "true", "false"),
            ("FLOAT", "null", "false", "false"),
        )
    ],
)
def apply_adam_w(
    var, mean, square, power1, power2, lr, weight_decay, beta1, beta2, eps, grad, largest, amsgrad, maximize
):
    g = -grad if maximize else grad
    mean = beta1 * mean + (1 - beta1) * g
    square = beta2 * square + (1 - beta2) * g**2
    if amsgrad:
        square = np.maximum(largest, square)
    step = mean / (1 - power1 * beta1) / (np.sqrt(square / (1 - power2 * beta2)) + eps)
    return var - lr * step - lr * weight_decay * var, mean, square


# beta1Power and beta2Power are those of this step, and m and v are only read (ops-nn: aclnnApplyAdam.md).
OF_ADAM = settings_of("FLOAT", beta1Power=0.5, beta2Power=0.75, lr=0.25, beta1=0.625, beta2=0.875, epsilon=0.0009765625)


@formula(
    "aclnnApplyAdam",
    calls=[
        f"aclnnApplyAdam varRef={signed('2,3', 1, dtype)} m={signed('2,3', 2, dtype)} v={positive('2,3', 3, dtype)} "
        f"{OF_ADAM} grad={signed('2,3', 4, dtype)} useLocking={locking} useNesterov={nesterov}"
        for dtype, locking, nesterov in (
            ("FLOAT", "false", "false"),
            ("FLOAT", "false", "true"),
            ("FLOAT16", "true", "false"),
        )
    ],
)
def apply_adam(var, m, v, power1, power2, lr, beta1, beta2, epsilon, grad, _use_locking, use_nesterov):
    rate = lr * np.sqrt(1 - power2) / (1 - power1)
    mean = beta1 * m + (1 - beta1) * grad
    square = beta2 * v + (1 - beta2) * grad**2
    direction = beta1 * mean + (1 - beta1) * grad if use_nesterov else mean
    return var - rate * direction / (np.sqrt(square) + epsilon)


# ops-nn: aclnnApplyFusedEmaAdam.md. Only the first step of several is read.
@formula(
    "aclnnApplyFusedEmaAdam",
    calls=[
        f"aclnnApplyFusedEmaAdam grad={signed('2,3', 4)} varRef={signed('2,3', 1)} mRef={signed('2,3', 2)} "
        f"vRef={positive('2,3', 3)} sRef={signed('2,3', 5)} step={step} lr=0.125 emaDecay=0.75 beta1=0.5 beta2=0.875 "
        f"eps=0.0009765625 mode={mode} biasCorrection={correction} weightDecay=0.25"
        for step, mode, correction in (
            ("INT64[1]:3", 1, "false"),
            ("INT64[1]:3", 0, "true"),
            ("INT64[2]:3,5", 1, "true"),
        )
    ],
)
def fused_ema_adam(grad, var, m, v, s, step, lr, ema_decay, beta1, beta2, eps, mode, bias_correction, weight_decay):
    correction1, correction2 = (1 - beta ** step.reshape(-1)[0] if bias_correction else 1 for beta in (beta1, beta2))
    if mode == 0:
        grad = grad + weight_decay * var
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    update = m / correction1 / (np.sqrt(v / correction2) + eps)
    if mode == 1:
        update = update + weight_decay * var
    var = var - lr * update
    return var, m, v, ema_decay * s + (1 - ema_decay) * var


BLOCK = 256
MAPS = (
    f"qmapM=FLOAT[256]:{','.join(str((i - 128) / 128) for i in range(256))} "
    f"qmapV=FLOAT[256]:{','.join(str(i * i / 65536) for i in range(256))}"
)


def of_blocks(numbers):
    """The elements in blocks, the last one of which may be shorter."""
    return [numbers.reshape(-1)[i : i + BLOCK] for i in range(0, numbers.size, BLOCK)]


def dequantised(indices, table, largest):
    blocks = [table[block] * most for block, most in zip(of_blocks(indices), largest, strict=True)]
    return np.concatenate([np.zeros(0), *blocks]).reshape(indices.shape)


def nearest(number, table):
    """The index of the nearest number of the table, found by bisection."""
    upper = min(max(bisect_left(table, number), 1), len(table) - 1)
    return upper - 1 if number - table[upper - 1] <= table[upper] - number else upper


# step is the number of steps before this one. A moment is a number of an ascending table, times the largest magnitude
# of its block of 256 elements (ops-nn: aclnnApplyAdamWQuant.md).
@formula(
    "aclnnApplyAdamWQuant",
    calls=[
        f"aclnnApplyAdamWQuant varRef={signed(size, 1)} grad={signed(size, 2)} mRef={whole(size, 3, 256, 'UINT8')} "
        f"vRef={whole(size, 4, 256, 'UINT8')} {MAPS} absmaxMRef={maxima} absmaxVRef={maxima} step=INT64[1]:{step} "
        f"lr=0.125 beta1=0.75 beta2=0.875 weightDecay={decay} eps=0.0625 gnormScale=0.5 quantModeOptional={mode} "
        "blockSize=256"
        for size, maxima, step, decay, mode in (
            ("2,140", "FLOAT[2]:1.5,0.75", 2, 0.25, "null"),
            ("5", "FLOAT[1]:2.5", 0, 0, '"BLOCKWISE"'),
        )
    ],
)
def adam_w_quant(
    var, grad, m, v, map_m, map_v, most_m, most_v, step, lr, beta1, beta2, weight_decay, eps, scale, _mode, _block
):
    g, count = grad * scale, step.item() + 1
    mean = beta1 * dequantised(m, map_m, most_m) + (1 - beta1) * g
    square = beta2 * dequantised(v, map_v, most_v) + (1 - beta2) * g**2
    update = mean / (1 - beta1**count) / (np.sqrt(square / (1 - beta2**count)) + eps)
    outputs = [var - lr * update - lr * weight_decay * var]
    maxima = [[np.abs(block).max() for block in of_blocks(moment)] for moment in (mean, square)]
    for moment, table, largest in zip((mean, square), (map_m.tolist(), map_v.tolist()), maxima, strict=True):
        shares = [block / (most or 1) for block, most in zip(of_blocks(moment), largest, strict=True)]
        outputs.append(np.array([nearest(share, table) for block in shares for share in block]).reshape(var.shape))
    return [*outputs, *map(np.array, maxima)]
