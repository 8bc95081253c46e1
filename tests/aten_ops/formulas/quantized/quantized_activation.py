from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import gelu, sigmoid
from tests.aten_ops.formula_helpers.quantized import call, group_of_rows
from tests.aten_ops.formula_helpers.types import LARGEST, quantised, to_integers, unwritten
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
    ]
    + [
        "aclnnSwiGluQuantV2 x=FLOAT[3,4] smoothScalesOptional=FLOAT[2]:20,30 offsetsOptional=null "
        'groupIndexOptional=INT32[2]:1,2 activateLeft=true quantModeOptional="dynamic" groupListType=1 dstType=29 '
        "yOut=INT4[3,2] scaleOut=FLOAT[3]"
    ],
)
def swiglu_quant_v2(x, smooth, offsets, groups, activates_left, mode, list_type, dtype):
    left, right = np.split(x, 2, -1)
    gate, up = (left, right) if activates_left else (right, left)
    result = gate * sigmoid(gate) * up
    if smooth is not None:
        ends = np.cumsum(groups) if list_type == 1 else groups
        result = result * smooth.reshape(len(groups), -1)[group_of_rows(ends, len(x))]
    scale = LARGEST[dtype] / np.max(np.abs(result), -1)
    return np.rint(result * scale[:, None]), scale


def calls_of_swiglu():
    name, x = "aclnnSwiGluQuant", f"x=FLOAT[3,8]:{VALUES}"
    groups = "groupIndexOptional=INT32[2]:1,3 activateLeft=false"
    smooth = "smoothScalesOptional=FLOAT[2,4]:10,0.5,2,30,1.5 offsetsOptional=null"
    yield f'{name} {x} {smooth} {groups} quantModeOptional="dynamic" yOut=INT8[3,4] scaleOut=FLOAT[3]'
    smooth = "smoothScalesOptional=FLOAT[2]:10,3 offsetsOptional=FLOAT[2]:1,-2"
    yield f'{name} {x} {smooth} {groups} quantModeOptional="static" yOut=INT8[3,4] scaleOut=FLOAT[3]'


# ops-nn: aclnnSwiGluQuant.md. Static quantisation does not write the scales.
@formula("aclnnSwiGluQuant", calls=[*calls_of_swiglu()])
def swiglu_quant(x, smooth, offsets, groups, activates_left, mode, outputs):
    if mode == "dynamic":
        return swiglu_quant_v2(x, smooth, offsets, groups, activates_left, mode, 0, 2)
    left, right = np.split(x, 2, -1)
    gate, up = (left, right) if activates_left else (right, left)
    index = group_of_rows(groups, len(x))
    scale, offset = (None if each is None else each.reshape(len(groups), -1)[index] for each in (smooth, offsets))
    values = gate * sigmoid(gate) * up * scale + (0 if offset is None else offset)
    return to_integers(values), unwritten(outputs["scaleOut"])


GELU = "self inputScaleOptional inputOffsetOptional approximate quantMode roundMode dstType=2 y outScaleOptional"


def calls_of_gelu():
    name, rint = "aclnnGeluQuant", {"roundMode": '"rint"'}
    dynamic = {"self": "FLOAT[2,4]:13,2.5,6.7,-4,-1.4,-1.6,3,-0.9", "quantMode": '"dynamic"', **rint}
    scales = {"inputScaleOptional": "FLOAT[4]:10,2,0.5,1", "inputOffsetOptional": "FLOAT[4]:9,9,9,9"}
    result = {"y": "FLOAT8_E4M3FN[2,4]", "outScaleOptional": "FLOAT[2]", "dstType": 36}
    yield call(name, GELU, **dynamic, **scales, **result, approximate='"none"')
    result = {"y": "INT8[2,4]", "outScaleOptional": "FLOAT[2]"}
    yield call(name, GELU, **dynamic, **result, approximate='"tanh"')
    static = {"self": "FLOAT[4,2]:1.3,2.5,6.7,-4,-1.4,-1.6,-8,16.9", "quantMode": '"static"', **rint}
    yield call(name, GELU, **static, inputScaleOptional="FLOAT[1]:5.3", approximate='"tanh"', y="INT8[4,2]")
    static |= {"inputScaleOptional": "FLOAT[2]:5,-3", "inputOffsetOptional": "FLOAT[2]:-3,20"}
    yield call(name, GELU, **static, approximate='"none"', dstType=35, y="FLOAT8_E5M2[4,2]")


# ops-nn: aclnnGeluQuant.md. Only static quantisation has an offset.
@formula("aclnnGeluQuant", calls=[*calls_of_gelu()])
def gelu_quant(x, scale, offset, approximates, mode, _rounds, dtype):
    values = gelu(x, approximates == "tanh") * (1 if scale is None else scale)
    if mode == "static":
        return quantised(values + (0 if offset is None else offset), dtype)
    most = np.abs(values).max(-1) / LARGEST[dtype]
    return quantised(values / most[..., None], dtype), most
