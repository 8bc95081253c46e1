from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.mx import halves, numbers
from tests.aten_ops.formula_helpers.quantized import rows_of
from tests.aten_ops.formula_helpers.types import TYPES, cast, single, unwritten
from tests.aten_ops.formulas import formula


def gradients(grad, x, weight, origin, group_index, limit, masks_weight):
    rows = np.prod(x.shape[:-1], dtype=int)
    dy, (a, b) = grad.reshape(rows, grad.shape[-1]), np.split(x.reshape(rows, x.shape[-1]), 2, 1)
    is_inside = np.arange(len(dy)) < (len(dy) if group_index is None else group_index.sum())
    gate, up = (np.minimum(a, limit), np.clip(b, -limit, limit)) if limit > 0 else (a, b)
    s = sigmoid(gate)
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
@formula(
    "aclnnSwigluGroupGrad",
    calls=[
        *calls_of("aclnnSwigluGroupGrad", "FLOAT[3,1]", 0),
        "aclnnSwigluGroupGrad gradY=FLOAT[3,2] x=FLOAT[3,4] weightOptional=FLOAT[3,1] yOriginOptional=FLOAT[3,2] "
        "groupIndexOptional=INT64[2]:1,1 clampLimit=0.0 gradXOut=FLOAT[3,4] gradWeightOutOptional=FLOAT[3,1]",
    ],
)
def swiglu_group_grad(*arguments):
    return gradients(*arguments, masks_weight=False)


@formula(
    "aclnnSwigluGroupQuantGrad",
    calls=[
        *calls_of("aclnnSwigluGroupQuantGrad", "FLOAT[3]", -1),
        "aclnnSwigluGroupQuantGrad gradY=FLOAT[3,2] x=FLOAT[3,4] weightOptional=FLOAT[3] "
        "yOriginOptional=FLOAT[3,2] groupIndexOptional=INT64[2]:1,1 clampLimit=0.6 gradXOut=FLOAT[3,4] "
        "gradWeightOutOptional=FLOAT[3]",
    ],
)
def swiglu_group_quant_grad(*arguments):
    return gradients(*arguments, masks_weight=True)


def weighted_swiglu(x, weight, limit):
    gate, up = halves(x, gate_is_left=True)
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    result = gate * sigmoid(gate) * up
    return result if weight is None else result * weight.reshape(*x.shape[:-1], 1)


# ops-nn: aclnnSwigluGroup.md. Only as many rows are processed as the groups have.
@formula(
    "aclnnSwigluGroup",
    calls=[
        f"aclnnSwigluGroup x=FLOAT[{shape},6]:{numbers(37)} weightOptional={weight} groupIndexOptional={groups}"
        f" clampLimit={limit} out=FLOAT[{shape},3]"
        for shape, weight, groups, limit in (
            ("2,2", "null", "null", -1.0),
            ("2,2", "FLOAT[2,2]:0.75,-1.25,2,3", "INT64[2]:1,3", 0.6),
            ("3", "FLOAT[3]:0.75,-1.25,2", "INT64[2]:1,1", 20.5),
            ("3", "FLOAT[3,1]:0.75,-1.25,2", "INT64[1]:5", 1.5),
        )
    ]
    + ["aclnnSwigluGroup x=FLOAT16[2,4] weightOptional=null groupIndexOptional=null clampLimit=-1.0 out=FLOAT16[2,2]"],
)
def swiglu_group(x, weight, groups, limit, outputs):
    result = weighted_swiglu(x, weight, limit)
    if groups is not None:
        rest = np.s_[int(groups.sum()) :]
        rows_of(result)[rest] = rows_of(unwritten(outputs["out"]))[rest]
    return result


# ops-nn: aclnnSwigluGroupQuant.md. The document leaves the rows after those of the groups open; here they are computed
# like the others. yOriginOut is not written in the modes 0 and 1. The document has no formula for FLOAT4.
@formula(
    "aclnnSwigluGroupQuant",
    calls=[
        f"aclnnSwigluGroupQuant x=FLOAT16[3,512]:{x} weightOptional={weight} groupIndexOptional=null scaleOptional=null"
        f" dstType={dtype} quantMode={mode} blockSize={block} roundScale={rounds} clampLimit={limit} dstTypeMax=448.0"
        f" outputOrigin=false yOut={out}[3,256] yScaleOut={scale} yOriginOut=FLOAT16[3,256]"
        for x, weight, dtype, mode, block, rounds, limit, out, scale in (
            (numbers(311), "null", 36, 0, 0, "false", 30.5, "FLOAT8_E4M3FN", "FLOAT[3,2]"),
            (numbers(311), "FLOAT[3]:0.75,-1.25,100", 36, 0, 128, "true", -1.0, "FLOAT8_E4M3FN", "FLOAT[3,2]"),
            (numbers(311), "FLOAT[3]:0.75,-1.25,2", 35, 0, 0, "false", 2.5, "FLOAT8_E5M2", "FLOAT[3,2]"),
            (numbers(311), "FLOAT[3,1]:0.75,-1.25,2", 36, 1, 0, "true", 60.5, "FLOAT8_E4M3FN", "FLOAT8_E8M0[3,4,2]"),
            (numbers(311), "FLOAT[3]:1e-6,1e-5,1e-4", 35, 1, 32, "true", -1.0, "FLOAT8_E5M2", "FLOAT8_E8M0[3,4,2]"),
            ("0.001,-0.0015,0.0005", "null", 36, 0, 0, "false", -1.0, "FLOAT8_E4M3FN", "FLOAT[3,2]"),
        )
    ],
)
def swiglu_group_quant(
    x, weight, groups, scale, dtype, mode, block_size, rounds_scale, limit, largest, *others, outputs
):
    result = weighted_swiglu(x, weight, limit)
    *outer, columns = result.shape
    size = 128 if mode == 0 else 32
    blocks = result.reshape(*outer, columns // size, size)
    # inf and nan do not count in mode 0.
    magnitude = np.abs(blocks) if mode == 1 else np.where(np.isfinite(blocks), np.abs(blocks), 0)
    exact = single(np.maximum(magnitude.max(-1), 1e-4) / TYPES[dtype][-1])
    scale = 2.0 ** np.ceil(np.log2(exact)) if rounds_scale else exact
    y = cast(blocks / scale[..., None], dtype).reshape(result.shape)
    of_blocks = scale if mode == 0 else scale.reshape(*outer, columns // size // 2, 2)
    return y, of_blocks, unwritten(outputs["yOriginOut"])
