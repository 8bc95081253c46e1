from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VALUES = "1.5,-2,0.25,3.7,-0.55,0.8,4.1,-1.25,2,0.5,-3.3,7.9"
# The largest values of INT8, INT4 and FLOAT8_E4M3FN, whose codes are those of aclDataType.
INT8, INT4, FLOAT8 = 2, 29, 36
LARGEST = {INT8: 127, INT4: 7, FLOAT8: 448}


def rounded(values, dtype):
    if dtype != FLOAT8:
        return np.rint(values)
    unit = 2.0 ** (np.maximum(np.frexp(values)[1] - 1, -6) - 3)
    return np.rint(values / unit) * unit


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
def dynamic_quant_v4(x, smooth, group_ends, dtype, is_symmetrical, mode, largest):
    values, most = x, LARGEST[dtype]
    if smooth is not None:
        row_group = 0 if group_ends is None else np.searchsorted(group_ends, np.arange(len(x)), side="right")
        values = values * (smooth if group_ends is None else smooth[row_group])
    dims = None if mode == "pertensor" else -1
    high, low = values.max(dims, keepdims=True), values.min(dims, keepdims=True)
    if is_symmetrical:
        scale = np.maximum(high, -low) / most
        return rounded(values / scale, dtype), scale.reshape(-1)
    scale = (high - low) / (2 * most + (dtype != FLOAT8))
    offset = most - high / scale
    return rounded(values / scale + offset, dtype), scale.reshape(-1), offset.reshape(-1)
