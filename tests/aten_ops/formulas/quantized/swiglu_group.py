from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def gradients(grad, x, weight, origin, group_index, limit, masks_weight):
    rows = np.prod(x.shape[:-1], dtype=int)
    dy, (a, b) = grad.reshape(rows, grad.shape[-1]), np.split(x.reshape(rows, x.shape[-1]), 2, 1)
    is_inside = np.arange(len(dy)) < (len(dy) if group_index is None else group_index.sum())
    gate, up = (np.minimum(a, limit), np.clip(b, -limit, limit)) if limit > 0 else (a, b)
    s = 1 / (1 + np.exp(-gate))
    weighted = dy if weight is None else dy * weight.reshape(-1, 1)
    of_gate, of_up = weighted * up * s * (1 + gate * (1 - s)), weighted * gate * s
    if limit > 0:
        of_gate, of_up = of_gate * (a < limit), of_up * (np.abs(b) < limit)
    result = (np.concatenate([of_gate, of_up], 1) * is_inside[:, None]).reshape(x.shape)
    if weight is None:
        return result
    of_weight = (dy * origin.reshape(dy.shape)).sum(1) * (is_inside if masks_weight else 1)
    return result, of_weight.reshape(weight.shape)


def calls_of(name, weight, no_limit):
    x = "gradY=FLOAT[3,2]:0.5,-1.25,2,-0.75,1.5,3 "
    x += "x=FLOAT[3,4]:-2.5,0.75,1.5,-0.25,3,-1.125,0.5,-0.625,0.875,1.75,-3.5,2"
    return [
        f"{name} {x} weightOptional={weight}:0.5,-1.75,2.25 "
        f"yOriginOptional=FLOAT[3,2]:1.25,-0.5,0.375,2.5,-0.125,0.875 "
        f"groupIndexOptional={groups} clampLimit={limit} gradXOut=FLOAT[3,4] "
        f"gradWeightOutOptional={weight}"
        for groups, limit in (("null", 1.5), ("null", no_limit), ("INT64[2]:0,2", 1.5))
    ] + [
        f"{name} {x} weightOptional=null yOriginOptional=null groupIndexOptional=null clampLimit=1.5 "
        "gradXOut=FLOAT[3,4] gradWeightOutOptional=null"
    ]


# The gradient of the weight is not masked by the groups here (ops-nn: aclnnSwigluGroupGrad.md).
@formula("aclnnSwigluGroupGrad", calls=calls_of("aclnnSwigluGroupGrad", "FLOAT[3,1]", 0))
def swiglu_group_grad(*arguments):
    return gradients(*arguments, masks_weight=False)


@formula("aclnnSwigluGroupQuantGrad", calls=calls_of("aclnnSwigluGroupQuantGrad", "FLOAT[3]", -1))
def swiglu_group_quant_grad(*arguments):
    return gradients(*arguments, masks_weight=True)
