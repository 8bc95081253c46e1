from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import group_of_rows, rows_of
from tests.aten_ops.formula_helpers.types import E5M2, INT8, INT32, LARGEST, TYPES, quantised, unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

VALUES = "1.5,-2,0.25,3.7,-0.55,0.8,4.1,-1.25,2,0.5,-3.3,7.9"


def rounded(values, dtype):
    return quantised(values if dtype in TYPES else np.nan_to_num(values), dtype)


def dynamic_quant(x, smooth, group_ends, dtype, is_symmetrical, mode, outputs):
    """Scales and offsets from the extremes of rows ("pertoken"), of columns ("perchannel"), or of all elements."""
    values, most = x, LARGEST[dtype]
    if smooth is not None:
        each = smooth if group_ends is None else smooth[group_of_rows(group_ends, len(rows_of(x)))].reshape(x.shape)
        values = values * (each[:, None] if mode == "perchannel" else each)
    dims = {"pertoken": -1, "perchannel": -2, "pertensor": None}[mode]
    if x.size == 0:  # scales of rows without elements are not written
        scales = (unwritten(output) for name, output in outputs.items() if name != "yOut" and output is not None)
        return (rounded(x, dtype), *scales)
    high, low = values.max(dims, keepdims=True), values.min(dims, keepdims=True)

    def of_groups(numbers):
        return numbers.reshape(-1) if dims is None else numbers.squeeze(dims)

    if is_symmetrical:
        scale = np.maximum(high, -low) / most
        return rounded(values / np.where(scale == 0, 1, scale), dtype), of_groups(scale)
    scale = (high - low) / (2 * most + (dtype not in TYPES))
    offset = most - high / scale
    return rounded(values / scale + offset, dtype), of_groups(scale), of_groups(offset)


# ops-nn: aclnnDynamicQuant.md.
@formula(
    "aclnnDynamicQuant",
    calls=[
        f"aclnnDynamicQuant x=FLOAT16[4,6]:{VALUES},6 smoothScalesOptional=FLOAT16[6]:0.5,2,1 yOut=INT8[4,6] "
        "scaleOut=FLOAT[4]",
        "aclnnDynamicQuant x=FLOAT[2,3]:2540,-3,10,31.25,-63.5,0 smoothScalesOptional=null yOut=INT8[2,3] "
        "scaleOut=FLOAT[2]",
        "aclnnDynamicQuant x=FLOAT[1,2]:0,0 smoothScalesOptional=null yOut=INT8[1,2] scaleOut=FLOAT[1]",
        "aclnnDynamicQuant x=FLOAT[0,2] smoothScalesOptional=null yOut=INT8[0,2] scaleOut=FLOAT[0]",
        "aclnnDynamicQuant x=FLOAT16[1,2]:14,-3 smoothScalesOptional=null yOut=INT4[1,2] scaleOut=FLOAT[1]",
        "aclnnDynamicQuant x=FLOAT16[1,8]:1,2,3,4,5,6,7,-7 smoothScalesOptional=null yOut=INT32[1,1] scaleOut=FLOAT[1]",
    ],
)
def dynamic_quant_v1(x, smooth, outputs):
    return dynamic_quant(x, smooth, None, dtype_of(outputs["yOut"]), True, "pertoken", outputs)


# ops-nn: aclnnDynamicQuantV2.md. With offsetOut the quantisation is not symmetrical.
@formula(
    "aclnnDynamicQuantV2",
    calls=[
        "aclnnDynamicQuantV2 x=FLOAT16[2,4]:-4,11,3,0,7,-2,1.25,9 smoothScalesOptional=null groupIndexOptional=null "
        "dstType=29 yOut=INT4[2,4] scaleOut=FLOAT[2] offsetOut=FLOAT[2]",
        "aclnnDynamicQuantV2 x=FLOAT[3,4]:32.5,30,26.25,28.75,-35,25,36.25,-20,-26.25,-33.75,23.75 "
        "smoothScalesOptional=FLOAT[2,4]:0.5,1,2,1.5,1,1,0.5 groupIndexOptional=INT32[2]:1,3 dstType=2 yOut=INT8[3,4] "
        "scaleOut=FLOAT[3] offsetOut=FLOAT[3]",
        "aclnnDynamicQuantV2 x=FLOAT[1,2]:254,-3 smoothScalesOptional=null groupIndexOptional=null dstType=2 "
        "yOut=INT8[1,2] scaleOut=FLOAT[1] offsetOut=null",
        "aclnnDynamicQuantV2 x=FLOAT[3,1]:127,127,127 smoothScalesOptional=FLOAT[2,1]:1,2 "
        "groupIndexOptional=INT32[2]:1,3 dstType=2 yOut=INT8[3,1] scaleOut=FLOAT[3] offsetOut=null",
    ],
)
def dynamic_quant_v2(x, smooth, group_ends, dtype, outputs):
    return dynamic_quant(x, smooth, group_ends, dtype, outputs["offsetOut"] is None, "pertoken", outputs)


def calls_of_v3():
    name, x = "aclnnDynamicQuantV3", f"x=FLOAT16[3,2,8]:{VALUES},6"
    smooth, none = "smoothScalesOptional=FLOAT16[2]:0.5,2", "groupIndexOptional=null"
    for dtype, out in ((INT8, "INT8[3,2,8]"), (INT32, "INT32[3,2,1]"), (E5M2, "FLOAT8_E5M2[3,2,8]")):
        mode = f'dstType={int(dtype)} isSymmetrical=true quantMode="perchannel"'
        yield f"{name} {x} {smooth} {none} {mode} yOut={out} scaleOut=FLOAT[3,8] offsetOut=null"
    x, groups = "x=FLOAT16[4,2]:0,11,20,3,4,-50,6,7", "groupIndexOptional=INT32[2]:1,4"
    smooth, mode = "smoothScalesOptional=FLOAT16[2,2]:1,0.5,2,1", 'isSymmetrical=false quantMode="pertoken"'
    yield f"{name} {x} {smooth} {groups} dstType=2 {mode} yOut=INT8[4,2] scaleOut=FLOAT[4] offsetOut=FLOAT[4]"


# ops-nn: aclnnDynamicQuantV3.md.
formula("aclnnDynamicQuantV3", calls=[*calls_of_v3()])(dynamic_quant)


@formula(
    "aclnnDynamicQuantV4",
    calls=[
        f"aclnnDynamicQuantV4 x=FLOAT16[4,6]:{VALUES},6 smoothScalesOptional=FLOAT16[6]:1,0.5,2 groupIndexOptional=null"
        f' dstType=2 isSymmetrical={"false" if offset else "true"} quantMode="{mode}" dstTypeMax=0.0 yOut=INT8[4,6]'
        f" scaleOut=FLOAT[{size}] offsetOut={f'FLOAT[{size}]' if offset else 'null'}"
        for mode, size in (("pertoken", 4), ("pertensor", 1))
        for offset in (True, False)
    ]
    + [
        "aclnnDynamicQuantV4 x=FLOAT16[2,4]:1,-2,0.5,4,3,-1,0.125,-8 smoothScalesOptional=null "
        'groupIndexOptional=null dstType=36 isSymmetrical=false quantMode="pertensor" dstTypeMax=0.0 '
        "yOut=FLOAT8_E4M3FN[2,4] scaleOut=FLOAT[1] offsetOut=FLOAT[1]",
        "aclnnDynamicQuantV4 x=FLOAT16[2,8]:1,-2,0.5,5,3,-1,0.25,-8 smoothScalesOptional=null "
        'groupIndexOptional=null dstType=29 isSymmetrical=true quantMode="pertoken" dstTypeMax=0.0 '
        "yOut=INT4[2,8] scaleOut=FLOAT[2] offsetOut=null",
    ],
)
def dynamic_quant_v4(x, smooth, group_ends, dtype, is_symmetrical, mode, _largest, outputs):
    return dynamic_quant(x, smooth, group_ends, dtype, is_symmetrical, mode, outputs)
