from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.mx import mx
from tests.aten_ops.formula_helpers.quantized import call
from tests.aten_ops.formula_helpers.types import E2M1, INT8, away_from_zero, bfloat16, half, quantised
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

VALUES = "1.5,-2,0.25,3.75,-0.5,0.875,4.25,-1.25,2,0.5,-3.5,7,0.125"
BLOCK = 32


@formula(
    "aclnnFlatQuant",
    calls=[
        f"aclnnFlatQuant x=FLOAT16[3,4,16]:{VALUES} kroneckerP1=FLOAT16[4,4]:1,0.5,-2,0.25,3"
        " kroneckerP2=FLOAT16[16,16]:1,-0.5,2,0.25,-1.5,0.75,0.125 clipRatio=0.75 out=INT32[3,4,2] quantScale=FLOAT[3]",
        "aclnnFlatQuant x=FLOAT16[2,3,8] kroneckerP1=FLOAT16[3,3] kroneckerP2=FLOAT16[8,8] clipRatio=0.5 "
        "out=INT4[2,3,8] quantScale=FLOAT[2]",
    ],
)
def flat_quant(x, left, right, clip_ratio, outputs):
    product = half(left @ (half(x @ right) if right.size else x))
    scale = np.abs(product).max((1, 2)) / (7 / clip_ratio)
    return quantised(product / scale[:, None, None], dtype_of(outputs["out"])), scale


@formula(
    "aclnnFlatQuantV3",
    calls=[
        "aclnnFlatQuantV3 x=FLOAT16[1,4,16] kroneckerP1=FLOAT16[4,4] kroneckerP2=FLOAT16[0,0] "
        "groupListOptional=null clipRatio=1.0 dstTypeMax=0.0 groupListType=0 out=FLOAT4_E2M1[1,64] "
        "quantScale=FLOAT8_E8M0[1,1,2]",
    ],
)
def flat_quant_v3(x, left, right, groups, clip_ratio, largest, list_type, outputs):
    if groups is not None:
        return flat_quant(x, left, right, clip_ratio, outputs)
    return mx(half(left @ x).reshape(len(x), -1), -1, E2M1)


# ops-nn: aclnnFlatQuantV2.md.
@formula(
    "aclnnFlatQuantV2",
    calls=[
        f"aclnnFlatQuantV2 x=FLOAT16[2,4,16]:{VALUES},{VALUES},90 kroneckerP1=FLOAT16[4,4]:1,0.5,-2,0.25,3,1,0,0,8"
        f" kroneckerP2=FLOAT16[16,16]:1,-0.5,2,0.25,-1.5,0.75,0.125 clipRatio=1.0 dstTypeMax={largest}"
        " out=FLOAT4_E2M1[2,64] quantScale=FLOAT8_E8M0[2,1,2]"
        for largest in (6.5, 7.5, 12)
    ],
)
def flat_quant_v2(x, left, right, _clip_ratio, largest):
    product = half(left @ half(x @ right)).reshape(len(x), -1)
    return mx(product, -1, E2M1, algorithm=2, largest=largest)


ROUNDINGS = {
    "": np.rint,
    "rint": np.rint,
    "floor": np.floor,
    "round": away_from_zero,
}
ROTATE = "x rotation alpha axis=-1 roundMode scaleAlg=0 dstTypeMax=0.0 trans=false yOut scaleOut"
ROTATION = ":1,-0.5,2,0.25,-1.5,0.75,0.125,-2,0.375"


def calls_of_rotate():
    name, x = "aclnnRotateQuant", f"BFLOAT16[2,128]:{VALUES}"
    float4 = {"yOut": "FLOAT4_E2M1[2,128]", "scaleOut": "FLOAT8_E8M0[2,2,2]", "scaleAlg": 2, "dstTypeMax": 6.5}
    for rotation, alpha in (("BFLOAT16[4,32,32]", "BFLOAT16[1]:0.75"), ("BFLOAT16[64,64]", "BFLOAT16[1]:1")):
        yield call(name, ROTATE, x=x, rotation=f"{rotation}{ROTATION}", alpha=alpha, roundMode='"rint"', **float4)
    rotation = f"BFLOAT16[32,32]{ROTATION}"
    for mode in ("rint", "round", "floor"):
        integers = {"yOut": "INT8[2,128]", "scaleOut": "FLOAT[2]", "roundMode": f'"{mode}"'}
        yield call(name, ROTATE, x=x, rotation=rotation, **integers)
    # The products of these FLOAT16 are exact in BFLOAT16, too.
    float8 = {"yOut": "FLOAT8_E4M3FN[2,32]", "scaleOut": "FLOAT8_E8M0[2,1,2]", "scaleAlg": 1}
    operands = {"x": f"FLOAT16[2,32]:{VALUES}", "rotation": f"FLOAT16[32,32]:2,-1{31 * ',0'}", "axis": 1}
    yield call(name, ROTATE, **operands, roundMode='"rint"', **float8)


# ops-nn: aclnnRotateQuant.md. The matrix units round products to the type of x, which is BFLOAT16 in these calls.
@formula("aclnnRotateQuant", calls=[*calls_of_rotate()])
def rotate_quant(x, rotation, alpha, _axis, mode, algorithm, largest, _transposes, outputs):
    k = rotation.shape[-1]
    product = bfloat16(x.reshape(-1, x.shape[-1] // k, 1, k) @ rotation).reshape(x.shape)
    dtype = dtype_of(outputs["yOut"])
    if dtype == INT8:
        scale = np.abs(product).max(-1) / 127
        return ROUNDINGS[mode or ""](product / scale[:, None]), scale
    if alpha is not None and 0 < alpha[0] < 1:
        blocks = product.reshape(*x.shape[:-1], -1, BLOCK)
        limit = alpha[0] * np.abs(blocks).max(-1, keepdims=True)
        product = bfloat16(np.clip(blocks, -limit, limit)).reshape(x.shape)
    return mx(product, -1, dtype, algorithm=algorithm, largest=largest)
