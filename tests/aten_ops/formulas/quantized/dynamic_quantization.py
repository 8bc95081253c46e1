from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas_helpers_quantized import group_of_rows, packed_int4, rows_of, to_minifloat, unwritten

VALUES = "1.5,-2,0.25,3.7,-0.55,0.8,4.1,-1.25,2,0.5,-3.3,7.9"
# The largest values of types, whose codes are those of aclDataType. An INT32 holds eight INT4.
INT8, INT32, INT4, FLOAT8_E5M2, FLOAT8_E4M3FN = 2, 3, 29, 35, 36
LARGEST = {INT8: 127, INT32: 7, INT4: 7, FLOAT8_E5M2: 57344, FLOAT8_E4M3FN: 448}


def rounded(values, dtype):
    if dtype in (FLOAT8_E5M2, FLOAT8_E4M3FN):
        return to_minifloat(values, "FLOAT8_E5M2" if dtype == FLOAT8_E5M2 else "FLOAT8_E4M3FN")
    integers = np.rint(np.where(np.isnan(values), 0, values))
    return packed_int4(integers) if dtype == INT32 else integers


def dynamic_quant(x, smooth, group_ends, dtype, is_symmetrical, mode):
    """Scales and offsets from the extremes of rows ("pertoken"), of columns ("perchannel"), or of all elements."""
    values, most = x, LARGEST[dtype]
    if smooth is not None:
        each = smooth if group_ends is None else smooth[group_of_rows(group_ends, len(rows_of(x)))].reshape(x.shape)
        values = values * (each[:, None] if mode == "perchannel" else each)
    dims = {"pertoken": -1, "perchannel": -2, "pertensor": None}[mode]
    if x.size == 0:  # scales of rows without elements are not written
        results = unwritten(np.atleast_1d(x.sum(dims)).shape, np.float32)
        return (rounded(x, dtype), results) if is_symmetrical else (rounded(x, dtype), results, results)
    high, low = values.max(dims, keepdims=True), values.min(dims, keepdims=True)

    def of_groups(numbers):
        return numbers.reshape(-1) if dims is None else numbers.squeeze(dims)

    if is_symmetrical:
        scale = np.maximum(high, -low) / most
        return rounded(values / np.where(scale == 0, 1, scale), dtype), of_groups(scale)
    scale = (high - low) / (2 * most + (dtype not in (FLOAT8_E5M2, FLOAT8_E4M3FN)))
    offset = most - high / scale
    return rounded(values / scale + offset, dtype), of_groups(scale), of_groups(offset)


# ops-nn: aclnnDynamicQuant.md. The type of yOut, which is no argument, is INT8 in these calls.
@formula(
    "aclnnDynamicQuant",
    calls=[
        f"aclnnDynamicQuant x=FLOAT16[4,6]:{VALUES},6 smoothScalesOptional=FLOAT16[6]:0.5,2,1 yOut=INT8[4,6] "
        "scaleOut=FLOAT[4]",
        "aclnnDynamicQuant x=FLOAT[2,3]:2540,-3,10,31.25,-63.5,0 smoothScalesOptional=null yOut=INT8[2,3] "
        "scaleOut=FLOAT[2]",
        "aclnnDynamicQuant x=FLOAT[1,2]:0,0 smoothScalesOptional=null yOut=INT8[1,2] scaleOut=FLOAT[1]",
        "aclnnDynamicQuant x=FLOAT[0,2] smoothScalesOptional=null yOut=INT8[0,2] scaleOut=FLOAT[0]",
    ],
)
def dynamic_quant_v1(x, smooth):
    return dynamic_quant(x, smooth, None, INT8, True, "pertoken")


# ops-nn: aclnnDynamicQuantV2.md. With offsetOut, as in these calls, the quantisation is not symmetrical.
@formula(
    "aclnnDynamicQuantV2",
    calls=[
        "aclnnDynamicQuantV2 x=FLOAT16[2,4]:-4,11,3,0,7,-2,1.25,9 smoothScalesOptional=null groupIndexOptional=null "
        "dstType=29 yOut=INT4[2,4] scaleOut=FLOAT[2] offsetOut=FLOAT[2]",
        "aclnnDynamicQuantV2 x=FLOAT[3,4]:32.5,30,26.25,28.75,-35,25,36.25,-20,-26.25,-33.75,23.75 "
        "smoothScalesOptional=FLOAT[2,4]:0.5,1,2,1.5,1,1,0.5 groupIndexOptional=INT32[2]:1,3 dstType=2 yOut=INT8[3,4] "
        "scaleOut=FLOAT[3] offsetOut=FLOAT[3]",
    ],
)
def dynamic_quant_v2(x, smooth, group_ends, dtype):
    return dynamic_quant(x, smooth, group_ends, dtype, False, "pertoken")


def calls_of_v3():
    name, x = "aclnnDynamicQuantV3", f"x=FLOAT16[3,2,8]:{VALUES},6"
    smooth, none = "smoothScalesOptional=FLOAT16[2]:0.5,2", "groupIndexOptional=null"
    for dtype, out in ((INT8, "INT8[3,2,8]"), (INT32, "INT32[3,2,1]"), (FLOAT8_E5M2, "FLOAT8_E5M2[3,2,8]")):
        mode = f'dstType={dtype} isSymmetrical=true quantMode="perchannel"'
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
    ],
)
def dynamic_quant_v4(x, smooth, group_ends, dtype, is_symmetrical, mode, _largest):
    return dynamic_quant(x, smooth, group_ends, dtype, is_symmetrical, mode)
