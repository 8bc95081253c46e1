from __future__ import annotations

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
        unscaled = grad if grad_scale is None else grad / grad_scale.item()
        direction = (-unscaled if maximize else unscaled) + weight_decay * p
        new_buffer = None
        if buffer is not None:
            new_buffer = direction if is_first_step else momentum * buffer + (1 - dampening) * direction
            direction = direction + momentum * new_buffer if nesterov else new_buffer
        results.append((p - lr * direction, unscaled, new_buffer))
    return [tensor for each_list in zip(*results, strict=True) for tensor in each_list if tensor is not None]
