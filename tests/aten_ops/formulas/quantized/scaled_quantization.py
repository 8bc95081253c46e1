from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import group_of_rows
from tests.aten_ops.formula_helpers.types import quantised
from tests.aten_ops.formulas import formula


# An INT32 bias is added before the scales (ops-nn: aclnnDequantBias.md).
@formula(
    "aclnnDequantBias",
    calls=[
        "aclnnDequantBias x=INT32[2,3]:1,-2,3,4,500,6 weightScale=BFLOAT16[3]:0.5,0.125,2 activateScaleOptional=null "
        "biasOptional=FLOAT[3]:7,8,9 outputDtype=27 out=BFLOAT16[2,3]",
        "aclnnDequantBias x=INT32[2,3]:1,-2,3,4,500,6 weightScale=FLOAT[3]:0.5,0.1,2 "
        "activateScaleOptional=FLOAT[2]:0.5,3 biasOptional=INT32[3]:7,8,9 outputDtype=1 out=FLOAT16[2,3]",
    ],
)
def dequant_bias(x, weight_scale, activate_scale, bias, _dtype):
    is_first = bias is not None and bias.dtype == np.int64
    result = (x + (bias if is_first else 0)) * weight_scale
    result = result * (1 if activate_scale is None else activate_scale[:, None])
    return result + (0 if is_first or bias is None else bias)


# ops-nn: aclnnGroupQuant.md.
@formula(
    "aclnnGroupQuant",
    calls=[
        "aclnnGroupQuant x=FLOAT[4,2]:0,1,2,3,4,500,6,-7 scale=FLOAT[3,2]:1,2,-1,2,1.25,0.75 groupIndex=INT32[3]:1,2,4 "
        "offsetOptional=FLOAT[1]:2 dstType=2 y=INT8[4,2]",
        "aclnnGroupQuant x=FLOAT[2,8]:0,1,2,3,4,5,6,7,-9 scale=FLOAT[1,8]:1 groupIndex=INT64[1]:2 offsetOptional=null "
        "dstType=3 y=INT32[2,1]",
    ],
)
def group_quant(x, scale, groups, offset, dtype):
    values = x * scale[group_of_rows(groups, len(x))] + (0 if offset is None else offset.reshape(()))
    return quantised(values, dtype)


# ops-nn: aclnnQuantMax.md.
@formula(
    "aclnnQuantMax",
    calls=[
        f'aclnnQuantMax x=FLOAT[2,3]:1,-2,3.3,-4,500,0.07 scale=FLOAT[1]:1.5 roundMode="rint" dstType={dtype} '
        f"y={name}[2,3] amax=FLOAT[1]"
        for dtype, name in ((36, "FLOAT8_E4M3FN"), (35, "FLOAT8_E5M2"))
    ],
)
def quant_max(x, scale, _mode, dtype):
    return quantised(x * scale, dtype), np.abs(x).max(keepdims=True, initial=0).reshape(1)


# ops-nn: aclnnGroupedQuantMax.md.
@formula(
    "aclnnGroupedQuantMax",
    calls=[
        f"aclnnGroupedQuantMax x=FLOAT[4,2]:1,-2,3.3,-4,500,0.07,6,7 scale=FLOAT[2]:1.5,0.5 groupList=INT64[2]:1,4 "
        f'roundMode="rint" dstType={dtype} y={name}[4,2] amax=FLOAT[2]'
        for dtype, name in ((36, "FLOAT8_E4M3FN"), (35, "FLOAT8_E5M2"))
    ],
)
def grouped_quant_max(x, scale, groups, _mode, dtype):
    of_rows = scale[group_of_rows(groups, len(x))].reshape(-1, *[1] * (x.ndim - 1))
    maxima = [np.abs(x[start:end]).max(initial=0) for start, end in zip([0, *groups], groups, strict=False)]
    return quantised(x * of_rows, dtype), np.array(maxima)
