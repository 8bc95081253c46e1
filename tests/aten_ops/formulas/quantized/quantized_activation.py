from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VALUES = "1.5,-2,0.25,3.75,-0.5,0.875,4.25,-1.25,2,0.5,-3.5,7"


@formula(
    "aclnnSwiGluQuantV2",
    calls=[
        f"aclnnSwiGluQuantV2 x=FLOAT[3,32]:{VALUES},{6 + left} smoothScalesOptional=FLOAT[2,16]:1,0.5,2"
        " offsetsOptional=null groupIndexOptional=INT32[2]:1,3"
        f' activateLeft={"true" if left else "false"} quantModeOptional="dynamic" groupListType=0 dstType=2'
        " yOut=INT8[3,16] scaleOut=FLOAT[3]"
        for left in (0, 1)
    ],
)
def swiglu_quant_v2(x, smooth, offsets, groups, activates_left, mode, list_type, dtype):
    left, right = np.split(x, 2, -1)
    gate, up = (left, right) if activates_left else (right, left)
    result = gate / (1 + np.exp(-gate)) * up
    if smooth is not None:
        ends = np.cumsum(groups) if list_type == 1 else groups
        result = result * smooth[np.searchsorted(ends, np.arange(len(x)), side="right")]
    scale = {2: 127, 29: 7}[dtype] / np.max(np.abs(result), -1)
    return np.rint(result * scale[:, None]), scale
