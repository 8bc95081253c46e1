from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import call
from tests.aten_ops.formula_helpers.types import LARGEST, quantised, to_integers, unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

X1 = ":1,3,-2,0.5,4,-1.5,2.5,-0.75"
X2 = ":0.5,-1,2,0.25,-3,1.5"


def normalised(x, epsilon, dims):
    centred = x - np.mean(x, dims, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, dims, keepdims=True) + epsilon)


def scaled(values, scale, offset, divides):
    return to_integers((values / scale if divides else values * scale) + (0 if offset is None else offset))


# ops-nn: aclnnLayerNormQuant.md. Static quantisation does not write the scales.
@formula(
    "aclnnLayerNormQuant",
    calls=[
        f"aclnnLayerNormQuant x=FLOAT[2,4]{X1} gammma=FLOAT[1,4]:10,20,-30 beta=FLOAT[1,4]:1,2,5 scale=FLOAT[1]:0.25 "
        "zeroPointsOptional=INT8[1]:3 quantMode=0 epsilon=3 res=INT8[2,4] scaleOut=FLOAT[2]"
    ],
)
def layer_norm_quant(x, gamma, beta, scale, zero, _mode, epsilon, outputs):
    y = normalised(x, epsilon, -1) * gamma.reshape(-1) + beta.reshape(-1)
    return scaled(y, scale, zero, divides=True), unwritten(outputs["scaleOut"])


V1 = "x1 x2 gamma beta biasOptional scales1Optional scales2Optional zeroPoints1Optional zeroPoints2Optional quantMode "
V1 += "epsilon=3 additionalOutput=true divMode=false y1Out=INT8[2,4] y2Out=INT8[2,4] xOut outScales1Out=FLOAT[2] "
V1 += "outScales2Out=FLOAT[2]"
V2 = V1.replace("xOut", "xOut layernormRes")


def calls_of_add(name, parameters, row):
    def operands(dtype):
        given = {"x1": f"{dtype}[2,4]{X1}", "x2": f"{dtype}[2,4]{X2}", "xOut": f"{dtype}[2,4]"}
        given |= {"gamma": f"{dtype}{row}:10,20,-30", "beta": f"{dtype}{row}:1,2"}
        return given | ({"layernormRes": f"{dtype}[2,4]"} if "layernormRes" in parameters else {})

    static, half = {**operands("FLOAT"), "quantMode": '"static"'}, operands("FLOAT16")
    bias = f"FLOAT{row}:1,1,-0.5"
    scales = {"scales1Optional": f"FLOAT{row}:2,3,0.75", "scales2Optional": f"FLOAT{row}:1,-20,0.3"}
    zeros = {"zeroPoints1Optional": f"FLOAT{row}:0.5,1", "zeroPoints2Optional": f"FLOAT{row}:3,0"}
    yield call(name, parameters, **static, **scales, **zeros, biasOptional=bias)
    yield call(name, parameters, **static, **scales, divMode="true")
    smooth = {"scales1Optional": f"FLOAT16{row}:1,1,0.25", "scales2Optional": f"FLOAT16{row}:1,0.25,20"}
    smooth |= {"biasOptional": f"FLOAT16[2,4]{X2},3", "quantMode": '"dynamic"'}
    yield call(name, parameters, **half, **smooth, additionalOutput="false")


# ops-nn: aclnnAddLayerNormQuant.md, aclnnAddLayerNormQuantV2.md.
def add_layer_norm(x1, x2, gamma, beta, bias, scales, zeros, mode, epsilon, returns_sum, divides, outputs):
    """The sum, its norm, and two results with their scales, which only dynamic quantisation has."""
    x = x1 + x2 + (0 if bias is None else bias)
    y = normalised(x, epsilon, tuple(range(-gamma.ndim, 0))) * gamma + beta
    results = []
    for i, (scale, zero) in enumerate(zip(scales, zeros, strict=True), 1):
        out, of_out = (unwritten(outputs[name]) for name in (f"y{i}Out", f"outScales{i}Out"))
        is_dynamic = mode == "dynamic"
        if is_dynamic and (scale is not None or i == 1):
            smooth = y if scale is None else y * scale
            most = np.abs(smooth).max(-1, initial=0) / 127
            results += [np.rint(smooth / np.where(most == 0, 1, most)[..., None]), most]
        elif scale is None:
            results += [out, of_out]
        else:
            results += [scaled(y, scale, zero, divides), of_out]
    return x if returns_sum else unwritten(outputs["xOut"]), y, results


@formula("aclnnAddLayerNormQuant", calls=[*calls_of_add("aclnnAddLayerNormQuant", V1, "[4]")])
def add_layer_norm_quant(x1, x2, gamma, beta, bias, scales1, scales2, zeros1, zeros2, *others, outputs):
    x, _, (y1, of_y1, y2, of_y2) = add_layer_norm(
        x1, x2, gamma, beta, bias, (scales1, scales2), (zeros1, zeros2), *others, outputs=outputs
    )
    return y1, y2, x, of_y1, of_y2


def without_row(parameters):
    return parameters[0] if parameters is not None and parameters.shape[:-1] == (1,) else parameters


@formula("aclnnAddLayerNormQuantV2", calls=[*calls_of_add("aclnnAddLayerNormQuantV2", V2, "[1,4]")])
def add_layer_norm_quant_v2(x1, x2, gamma, beta, bias, scales1, scales2, zeros1, zeros2, *others, outputs):
    scales, zeros = (without_row(scales1), without_row(scales2)), (without_row(zeros1), without_row(zeros2))
    x, y, (y1, of_y1, y2, of_y2) = add_layer_norm(
        x1, x2, without_row(gamma), without_row(beta), bias, scales, zeros, *others, outputs=outputs
    )
    return y1, y2, x, y, of_y1, of_y2


ADAPTED = "x scale shift weightOptional biasOptional smoothScalesOptional epsilon=3 "
ADAPTED += 'quantMode="dynamic" out quantScale quantOffsetOptional'


def calls_of_adapted():
    name = "aclnnAdaLayerNormQuant"
    operands = {"x": f"FLOAT16[2,2,4]{X1},3,0.125", "quantScale": "FLOAT[2,2]"}
    operands |= {"scale": "FLOAT16[2,4]:9,19,-4,2,5", "shift": "FLOAT16[2,1,4]:1,2,-3,0.5,4"}
    weights = {"weightOptional": "FLOAT16[4]:2,1,-3", "biasOptional": "FLOAT16[4]:0.5,1,-0.25"}
    smooth = "FLOAT16[4]:1,0.25,3"
    yield call(name, ADAPTED, **operands, smoothScalesOptional=smooth, out="INT8[2,2,4]")
    yield call(name, ADAPTED, **operands, **weights, smoothScalesOptional=smooth, out="INT8[2,2,4]")
    yield call(name, ADAPTED, **operands, **weights, out="FLOAT8_E4M3FN[2,2,4]")


# ops-nn: aclnnAdaLayerNormQuant.md.
@formula("aclnnAdaLayerNormQuant", calls=[*calls_of_adapted()])
def ada_layer_norm_quant(x, scale, shift, weight, bias, smooth, epsilon, _mode, outputs):
    scale, shift = (each if each.ndim == x.ndim else each[..., None, :] for each in (scale, shift))
    y = normalised(x, epsilon, -1) * (1 if weight is None else weight) + (0 if bias is None else bias)
    y = (y * (1 + scale) + shift) * (1 if smooth is None else smooth)
    dtype = dtype_of(outputs["out"])
    most = np.abs(y).max(-1) / LARGEST[dtype]
    quotients = y / np.where(most == 0, 1, most)[..., None]
    return quantised(quotients, dtype), most


# ops-nn: aclnnGroupNormSiluQuant.md. The mean of nothing is 0, and its rstd nan.
@formula(
    "aclnnGroupNormSiluQuant",
    calls=[
        f"aclnnGroupNormSiluQuant self=FLOAT16[2,4,2]{X1},2,0.125,-3 gamma=null beta=null "
        "quantScale=FLOAT[4]:0.01,0.1,0.02,0.005 group=2 eps=3 activateSilu=true out=INT8[2,4,2] "
        "meanOut=FLOAT16[2,2] rstdOut=FLOAT16[2,2]",
        f"aclnnGroupNormSiluQuant self=FLOAT16[2,4]{X1} gamma=FLOAT16[4]:20,-20,15 beta=FLOAT16[4]:10,10,-3 "
        "quantScale=FLOAT[1]:0.5 group=1 eps=3 activateSilu=true out=INT8[2,4] meanOut=FLOAT16[2,1] "
        "rstdOut=FLOAT16[2,1]",
        "aclnnGroupNormSiluQuant self=FLOAT16[0,2,2] gamma=null beta=null quantScale=FLOAT[2] group=2 eps=3 "
        "activateSilu=true out=INT8[0,2,2] meanOut=FLOAT16[0,2] rstdOut=FLOAT16[0,2]",
        "aclnnGroupNormSiluQuant self=FLOAT16[1,2,0] gamma=null beta=null quantScale=FLOAT[2] group=2 eps=3 "
        "activateSilu=true out=INT8[1,2,0] meanOut=FLOAT16[1,2] rstdOut=FLOAT16[1,2]",
    ],
)
def group_norm_silu_quant(x, gamma, beta, scale, group, epsilon, _activates):
    if x.size == 0:
        return x, np.zeros((len(x), group)), np.full((len(x), group), np.nan)
    groups = x.reshape(len(x), group, -1)
    mean = groups.mean(-1)
    rstd = 1 / np.sqrt(groups.var(-1) + epsilon)

    def of_channels(numbers):
        return numbers.reshape(-1, *[1] * (x.ndim - 2))

    y = ((groups - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    y = y * (1 if gamma is None else of_channels(gamma)) + (0 if beta is None else of_channels(beta))
    return to_integers(y / (1 + np.exp(-y)) / of_channels(scale)), mean, rstd
