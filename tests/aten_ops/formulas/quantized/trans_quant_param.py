from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import quantised
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of


def packed(scale, offset, rounds):
    """Bits 13 to 31: the upper 19 bits of the scale in FLOAT; bits 37 to 45: the offset; bit 46: always 1."""
    bits = np.float32(scale).view(np.uint32).astype(np.int64)
    upper, lower = bits >> 13, bits & 0x1FFF
    if rounds:
        upper += (lower > 0x1000) | ((lower == 0x1000) & (upper % 2 == 1))
    result = upper << 13 | 1 << 46
    if offset is None:
        return result
    return result | (np.clip(np.rint(offset), -256, 255).astype(np.int64) & 0x1FF) << 37


SCALES = "1.2345678,0.001953125,-3.1415927,7e-5,1.0004883,1.0014648"


@formula(
    "aclnnTransQuantParamV2",
    calls=[
        f"aclnnTransQuantParamV2 scale=FLOAT[6]:{SCALES} offset=FLOAT[6]:-3.5,7.25,300,-256.75,-1,2.5 out=UINT64[6]",
        f"aclnnTransQuantParamV2 scale=FLOAT[6]:{SCALES} offset=null out=UINT64[6]",
        f"aclnnTransQuantParamV2 scale=FLOAT[6]:{SCALES} offset=FLOAT[1]:-4.75 out=INT64[6]",
        "aclnnTransQuantParamV2 scale=FLOAT[1]:1.00146484375 offset=null out=INT64[1]",
        "aclnnTransQuantParamV2 scale=FLOAT[3,1]:1.5,-0.3,0.007 offset=null out=INT64[3,1]",
        "aclnnTransQuantParamV2 scale=FLOAT[3]:1.5,-0.3,0.007 offset=FLOAT[3]:3,-300,2.5 out=UINT64[3]",
    ],
)
def trans_quant_param_v2(scale, offset):
    return packed(scale, offset, rounds=False)


@formula(
    "aclnnTransQuantParamV3",
    calls=[
        f"aclnnTransQuantParamV3 scale=FLOAT[6]:{SCALES} offset=FLOAT[6]:-3.5,7.25,300,-256.75,-1,2.5 roundMode={mode}"
        " out=UINT64[6]"
        for mode in (0, 1)
    ]
    + [
        "aclnnTransQuantParamV3 scale=FLOAT[1]:1.00146484375 offset=null roundMode=1 out=INT64[1]",
        "aclnnTransQuantParamV3 scale=FLOAT[3,1]:1.5,-0.3,0.007 offset=null roundMode=0 out=INT64[3,1]",
        "aclnnTransQuantParamV3 scale=FLOAT[3]:1.5,-0.3,0.007 offset=FLOAT[3]:3,-300,2.5 roundMode=0 out=UINT64[3]",
    ],
)
def trans_quant_param_v3(scale, offset, round_mode):
    return packed(scale, offset, rounds=round_mode == 1)


# ops-nn: aclnnConvertWeightToINT4Pack.md.
@formula(
    "aclnnConvertWeightToINT4Pack",
    calls=[
        "aclnnConvertWeightToINT4Pack weight=INT32[2,16]:2,0,1,-5,0,0,-8,-3,5,-5,2,3,1,1,2,-3,7,-1,4"
        " weightInt4Pack=INT32[2,2]",
        "aclnnConvertWeightToINT4Pack weight=FLOAT[2,6]:0.5,-1,1.5,2,-3,6,0,-4,1 weightInt4Pack=FLOAT4_E2M1[2,6]",
        "aclnnConvertWeightToINT4Pack weight=INT32[2,8]:2,0,1,-5,0,0,-8,-3,5,-5,2,3,1,1,2,-3 "
        "weightInt4Pack=INT4@NZ[2,8]",
    ],
)
def convert_weight_to_int4_pack(weight, outputs):
    return quantised(weight, dtype_of(outputs["weightInt4Pack"]))
