from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.quantized import call, group_of_rows, rows_of
from tests.aten_ops.formula_helpers.types import LARGEST, quantised, to_integers, unwritten
from tests.aten_ops.formulas import formula


def group_numbers(groups, rows):
    """The groups have counts of rows, or pairs of a number and a count; rows after them belong to the last one."""
    if groups is None:
        return None
    numbers, counts = (np.arange(len(groups)), groups) if groups.ndim == 1 else groups.T
    return numbers[group_of_rows(np.cumsum(counts), rows)]


def gated(x, dim, is_left, mode, limit, alpha, bias):
    if mode == 1:
        gate, up = x[..., 0::2], x[..., 1::2]
    else:
        gate, up = np.split(x, 2, dim)
        gate, up = (gate, up) if is_left else (up, gate)
    if mode == 0:
        return gate * sigmoid(gate) * up
    up = np.clip(up, -limit, limit)
    if mode == 3:
        return np.minimum(gate * sigmoid(gate), limit) * up
    gate = np.minimum(gate, limit)
    return gate * sigmoid(alpha * gate) * (up + bias)


def calls_of_v1():
    name, integers = "aclnnDequantSwigluQuant", {"x": "INT32[2,4]:1,2,3,4,5,-6,7,8"}
    integers |= {"weightScaleOptional": "FLOAT[4]:0.5,0.25,1,2", "activationScaleOptional": "FLOAT[2]:5,2"}
    integers |= {"biasOptional": "INT32[4]:1,0,2,3", "quantScaleOptional": "FLOAT[2]:1,0.5"}
    outputs = {"yOut": "INT8[2,2]", "scaleOut": "FLOAT[2]"}
    yield call(name, V1, **integers, **outputs, quantModeOptional='"dynamic"')
    static = {"quantScaleOptional": "FLOAT[1]:0.013", "quantOffsetOptional": "FLOAT[1]:3", "activateLeft": "false"}
    yield call(name, V1, x="FLOAT16[2,4]:0.5,-1.25,2,0.75,-3", **static, **outputs, quantModeOptional='"static"')


def calls_of_v2():
    name = "aclnnDequantSwigluQuantV2"
    integers = {"x": "INT32[3,4]:1,2,3,4,5,-6,7,8,-2", "weightScaleOptional": "FLOAT[2,4]"}
    integers |= {
        "activationScaleOptional": "FLOAT[3]",
        "biasOptional": "FLOAT[2,4]",
        "quantScaleOptional": "FLOAT[2,2]",
    }
    outputs = {"yOut": "INT8[3,2]", "scaleOut": "FLOAT[3]", "quantModeOptional": '"dynamic"'}
    for groups in ("INT64[2,2]:1,1,0,2", "INT64[2]:1,2"):
        for mode in range(4):
            yield call(name, V2, **integers, **outputs, groupIndexOptional=groups, swigluMode=mode)
    for first in ("", "1,"):  # the parameters of one group have one or two dimensions
        one = {"weightScaleOptional": f"FLOAT[{first}4]", "biasOptional": f"FLOAT[{first}4]"}
        one |= {"quantScaleOptional": f"FLOAT[{first}2]", "groupIndexOptional": "INT64[1]:2"}
        yield call(name, V2, **integers | one, **outputs)
    static = {"quantScaleOptional": "FLOAT[1]:0.13", "quantOffsetOptional": "FLOAT[1]:0.25", "activateDim": 0}
    static |= {"quantModeOptional": '"static"', "x": "FLOAT16[4,4]:0.5,-1.25,2,0.75,-3,1.5,2.5,-0.375"}
    yield call(name, V2, **static, dstType=36, yOut="FLOAT8_E4M3FN[2,4]", scaleOut="FLOAT[2]")
    dynamic = {"x": "BFLOAT16[2,8]:0.5,-1.25,2,0.75,-3,1.5,2.5", "quantModeOptional": '"dynamic"'}
    yield call(name, V2, **dynamic, dstType=40, yOut="FLOAT4_E2M1[2,4]", scaleOut="FLOAT[2]")
    yield call(name, V2, **dynamic, dstType=35, activateLeft="false", yOut="FLOAT8_E5M2[2,4]", scaleOut="FLOAT[2]")


V1 = "x weightScaleOptional activationScaleOptional biasOptional quantScaleOptional quantOffsetOptional "
V1 += "groupIndexOptional activateLeft=true quantModeOptional yOut scaleOut"
V2_ONLY = 'dstType=2 roundModeOptional="rint" activateDim=-1 swigluMode=0 clampLimit=1.5 gluAlpha=1.2 gluBias=0.7'
V2 = V1.replace("yOut", f"{V2_ONLY} yOut")


# Static quantisation divides by the scale, as in the call of ops-nn: aclnnDequantSwigluQuant.md,
# aclnnDequantSwigluQuantV2.md.
@formula("aclnnDequantSwigluQuant", "aclnnDequantSwigluQuantV2", calls=[*calls_of_v1(), *calls_of_v2()])
def dequant_swiglu_quant(
    x, weight_scale, activation_scale, bias, quant_scale, quant_offset, groups, is_left, *others, outputs
):
    quant_mode, dtype, _rounds, dim, *variant = others if len(others) > 1 else (*others, 2, None, -1, 0, 0, 0, 0)
    rows = rows_of(x)
    index = group_numbers(groups, len(rows))

    def parameter(numbers):
        """One number, or one row of numbers, or one for each group."""
        return numbers if index is None or numbers.ndim == 1 else numbers[index]

    if weight_scale is not None:
        is_first = bias is not None and bias.dtype == np.int64
        rows = (rows + (parameter(bias) if is_first else 0)) * parameter(weight_scale)
        rows = rows * (1 if activation_scale is None else activation_scale.reshape(-1, 1))
        rows = rows + (0 if is_first or bias is None else parameter(bias))
    result = gated(rows.reshape(x.shape), dim, is_left, *variant)
    flat = rows_of(result)
    if quant_mode == "dynamic":
        flat = flat * (1 if quant_scale is None else parameter(quant_scale))
        scale = np.abs(flat).max(-1) / LARGEST[dtype]
        return quantised(flat / scale[:, None], dtype).reshape(result.shape), scale.reshape(result.shape[:-1])
    flat = flat / parameter(quant_scale) + (0 if quant_offset is None else parameter(quant_offset))
    return quantised(flat, dtype).reshape(result.shape), unwritten(outputs["scaleOut"])


SITU = "x weightScaleOptional activationScaleOptional biasOptional quantScaleOptional quantOffsetOptional "
SITU += "groupIndexOptional beta=4.0 linearBeta=25.0 activateLeft=true quantTypeOptional yOut=INT8[2,2] "
SITU += "yScaleOut=FLOAT[2]"


def calls_of_situ():
    name = "aclnnDequantSituQuant"
    int8 = {"x": "INT8[2,4]:1,-2,3,4,5,-6,7,8", "weightScaleOptional": "FLOAT[1]:1.25", "biasOptional": "FLOAT[4]"}
    yield call(name, SITU, **int8, quantTypeOptional='"dynamic"')
    static = {"quantScaleOptional": "FLOAT[2]:0.1,0.03", "quantOffsetOptional": "FLOAT[2]:3.5,-2.25"}
    yield call(name, SITU, **int8, **static, quantTypeOptional='"static"', activateLeft="false")
    scales = {"weightScaleOptional": "FLOAT[4]:0.25,0.5,0.125,1", "activationScaleOptional": "FLOAT[1]:0.3"}
    yield call(name, SITU, x=int8["x"].replace("INT8", "INT32"), **scales, quantTypeOptional='"dynamic"')


# ops-nn: aclnnDequantSituQuant.md.
@formula("aclnnDequantSituQuant", calls=[*calls_of_situ()])
def dequant_situ_quant(
    x, weight_scale, activation_scale, bias, quant_scale, quant_offset, _groups, beta, *others, outputs
):
    linear_beta, is_left, mode = others
    for scale in (weight_scale, activation_scale):
        x = x if scale is None else x * scale
    gate, up = np.split(x + (0 if bias is None else bias), 2, -1)
    gate, up = (gate, up) if is_left else (up, gate)
    up = linear_beta * np.tanh(up / linear_beta) if linear_beta > 0 else up
    result = beta * np.tanh(gate / beta) * sigmoid(gate) * up
    if mode == "static":
        offset = 0 if quant_offset is None else quant_offset
        return to_integers(np.trunc(result / quant_scale + offset)), unwritten(outputs["yScaleOut"])
    result = result * (1 if quant_scale is None else quant_scale)
    most = np.abs(result).max(-1)
    # The quotient of the largest element is exactly 127.
    return np.trunc(result / most[..., None] * 127), most / 127
