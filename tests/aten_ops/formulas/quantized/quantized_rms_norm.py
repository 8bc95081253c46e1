from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import call
from tests.aten_ops.formula_helpers.types import LARGEST, quantised, to_integers, unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

X = ":1,3,-2,0.5,4,-1.5,2.5,-0.75"


def scaled(values, scale, offset, divides):
    return (values / scale if divides else values * scale) + (0 if offset is None else offset)


def reciprocal_root(x, epsilon, dims):
    return 1 / np.sqrt(np.mean(x * x, dims, keepdims=True) + epsilon)


def norm(x, gamma, epsilon):
    return x * reciprocal_root(x, epsilon, tuple(range(-gamma.ndim, 0))) * gamma


def by_rows(values, smooth, output):
    """Each row over its scale, by which its largest magnitude becomes the type's, and the scale; zeros stay zeros."""
    dtype, values = dtype_of(output), values if smooth is None else values * smooth
    scale = np.abs(values).max(-1, initial=0) / LARGEST[dtype]
    return quantised(values / np.where(scale == 0, 1, scale)[..., None], dtype), scale


ADDED = "x1 x2 gamma scales1 scales2Optional zeroPoints1Optional zeroPoints2Optional axis=-1 epsilon=12.5 divMode "
ADDED += "y1Out y2Out xOut"
ADDED_V2 = ADDED.replace("axis", "betaOptional axis") + " rmsNormOut"
OPERANDS = {"x1": f"FLOAT[2,4]{X}", "x2": "FLOAT[2,4]:0.5,-1,2", "gamma": "FLOAT[4]:10,20,-5,15", "xOut": "FLOAT[2,4]"}
SCALES = {"scales1": "FLOAT[4]:2,-100,3,0.4", "scales2Optional": "FLOAT[4]:0.5,0.1,-1.25"}


def calls_of_added():
    name, zeros = "aclnnAddRmsNormQuant", {"zeroPoints1Optional": "INT32[4]:1,2,-3"}
    float8 = {key: "FLOAT8_E4M3FN[2,4]" for key in ("y1Out", "y2Out")}
    yield call(name, ADDED, **OPERANDS, **SCALES, **float8, divMode="false")
    yield call(name, ADDED, **OPERANDS, scales1=SCALES["scales1"], **float8, divMode="false")
    integers = {key: "INT8[2,4]" for key in ("y1Out", "y2Out")}
    yield call(name, ADDED, **OPERANDS, **SCALES, **zeros, **integers, divMode="true")
    name = f"{name}V2"
    for divides in ("true", "false"):
        flags = {"divMode": divides, "rmsNormOut": "FLOAT[2,4]"}
        yield call(name, ADDED_V2, **OPERANDS, **SCALES, **zeros, **integers, **flags)
    scales = {"scales1": "FLOAT[4]:2,3,0.43", "betaOptional": "FLOAT[4]:1,-1,3"}
    yield call(name, ADDED_V2, **OPERANDS, **scales, **integers, divMode="true")


# ops-nn: aclnnAddRmsNormQuant.md, aclnnAddRmsNormQuantV2.md.
@formula(
    "aclnnAddRmsNormQuant",
    "aclnnAddRmsNormQuantV2",
    calls=[
        *calls_of_added(),
        "aclnnAddRmsNormQuantV2 x1=FLOAT[1,2]:1,3 x2=FLOAT[1,2]:2,1 gamma=FLOAT[2]:10,20 scales1=FLOAT[2]:2,3 "
        "scales2Optional=null zeroPoints1Optional=FLOAT[2]:0.25,0.75 zeroPoints2Optional=null "
        "betaOptional=FLOAT[2]:1,-1 axis=-1 epsilon=12.5 divMode=false y1Out=INT8[1,2] y2Out=INT8[1] "
        "xOut=FLOAT[1,2] rmsNormOut=FLOAT[1,2]",
    ],
)
def add_rms_norm_quant(x1, x2, gamma, scales1, scales2, zeros1, zeros2, *others, outputs):
    beta, _axis, epsilon, divides = others if len(others) == 4 else (None, *others)
    x = x1 + x2
    y = norm(x, gamma, epsilon)
    pairs = (scales1, zeros1, outputs["y1Out"]), (scales2, zeros2, outputs["y2Out"])
    results = [
        unwritten(output)
        if scales is None
        else quantised(scaled(y + (0 if beta is None else beta), scales, zeros, divides), dtype_of(output))
        for scales, zeros, output in pairs
    ]
    return (*results, x) if outputs.get("rmsNormOut") is None else (*results, x, y)


DYNAMIC = "x1 x2 gamma smoothScale1Optional smoothScale2Optional epsilon=12.5 y1Out y2Out xOut scale1Out scale2Out"
DYNAMIC_V2 = DYNAMIC.replace("epsilon=12.5", "betaOptional epsilon=12.5 outputMask")
SMOOTH = {"smoothScale1Optional": "FLOAT16[4]:1,1,3", "smoothScale2Optional": "FLOAT16[4]:1,0.25,30"}


def calls_of_dynamic():
    name = "aclnnAddRmsNormDynamicQuant"
    operands = {key: value.replace("FLOAT", "FLOAT16") for key, value in OPERANDS.items()}
    scales = {"scale1Out": "FLOAT[2]", "scale2Out": "FLOAT[2]"}
    integers = {"y1Out": "INT8[2,4]", "y2Out": "INT8[2,4]", **scales}
    yield call(name, DYNAMIC, **operands, **SMOOTH, **integers)
    yield call(name, DYNAMIC, **operands, y1Out="FLOAT8_E5M2[2,4]", y2Out="FLOAT8_E5M2[1]", **scales)
    yield call(name, DYNAMIC, **operands, y1Out="FLOAT8_E4M3FN[2,4]", y2Out="FLOAT8_E4M3FN[1]", **scales)
    rows = {"x1": "FLOAT16[2,1,2]:0,0,3,4", "x2": "FLOAT16[2,1,2]:0", "gamma": "FLOAT16[2]:10,20"}
    rows |= {"xOut": "FLOAT16[2,1,2]", "smoothScale1Optional": "FLOAT16[2]:1,1"}
    yield call(name, DYNAMIC, **rows, y1Out="INT8[2,2]", y2Out="INT8[1]", **scales)
    empty = {key: "FLOAT16[0,2]" for key in ("x1", "x2", "xOut")} | {"scale1Out": "FLOAT[0]", "scale2Out": "FLOAT[0]"}
    yield call(name, DYNAMIC, **empty, gamma="FLOAT16[2]", y1Out="FLOAT8_E5M2[0,2]", y2Out="FLOAT8_E5M2[1]")
    name, beta = f"{name}V2", "FLOAT16[4]:1,-2,3"
    yield call(name, DYNAMIC_V2, **operands, **SMOOTH, **integers, betaOptional=beta)
    int4 = {"y1Out": "INT4[1]", "y2Out": "INT4[2,4]", "scale1Out": "FLOAT[1]", "scale2Out": "FLOAT[2]"}
    yield call(name, DYNAMIC_V2, **operands, **int4, betaOptional=beta, outputMask="[false,true]")
    operands = {key: f"FLOAT16[2,8]{X}" for key in ("x1", "x2")} | {"gamma": "FLOAT16[8]:1,2,-3,4,5"}
    packed = {"y1Out": "INT32[2,1]", "y2Out": "INT32[2,1]", "xOut": "FLOAT16[2,8]", **scales}
    smooth = {"smoothScale2Optional": "FLOAT16[8]:3,-1,0.5", "outputMask": "[true,true]"}
    yield call(name, DYNAMIC_V2, **operands, **packed, **smooth)


# ops-nn: aclnnAddRmsNormDynamicQuant.md, aclnnAddRmsNormDynamicQuantV2.md.
@formula(
    "aclnnAddRmsNormDynamicQuant",
    "aclnnAddRmsNormDynamicQuantV2",
    calls=[
        *calls_of_dynamic(),
        "aclnnAddRmsNormDynamicQuant x1=FLOAT16[2,1,2]:0,0,3,4 x2=FLOAT16[2,1,2]:0,0,0,0 gamma=FLOAT16[2]:10,20 "
        "smoothScale1Optional=null smoothScale2Optional=null epsilon=12.5 y1Out=INT8[2,2] y2Out=INT8[1] "
        "xOut=FLOAT16[2,1,2] scale1Out=FLOAT[2] scale2Out=FLOAT[2]",
        "aclnnAddRmsNormDynamicQuantV2 x1=FLOAT16[1,8]:1,1,1,1,1,1,1,1 x2=FLOAT16[1,8]:0,0,0,0,0,0,0,0 "
        "gamma=FLOAT16[8]:1,2,3,4,5,6,7,-7 smoothScale1Optional=null smoothScale2Optional=null betaOptional=null "
        "epsilon=0 outputMask=null y1Out=INT32[1,1] y2Out=INT32[1] xOut=FLOAT16[1,8] scale1Out=FLOAT[1] "
        "scale2Out=FLOAT[1]",
    ],
)
def add_rms_norm_dynamic_quant(x1, x2, gamma, smooth1, smooth2, *others, outputs):
    beta, epsilon, mask = others if len(others) == 3 else (None, *others, None)
    x = x1 + x2
    y = norm(x, gamma, epsilon) + (0 if beta is None else beta)
    results = []
    is_both = smooth1 is not None and smooth2 is not None
    for i, (smooth, is_written) in enumerate(zip((smooth1, smooth2), mask or (True, is_both), strict=True), 1):
        output, of_output = outputs[f"y{i}Out"], outputs[f"scale{i}Out"]
        if is_written:
            values, scale = by_rows(y, smooth, output)
            results += [values.reshape(output.shape), scale.reshape(of_output.shape)]
        else:
            results += [unwritten(each) for each in (output, of_output) if each is not None]
    y1, scale1, *rest = results
    return (y1, rest[0], x, scale1, *rest[1:])


# ops-nn: aclnnRmsNormQuant.md. nan becomes 0.
@formula(
    "aclnnRmsNormQuant",
    calls=[
        f"aclnnRmsNormQuant x=FLOAT16[2,4]{X} gamma=FLOAT16[1,4]:10,20,-5 beta=FLOAT16[4]:1,-1 scale=FLOAT16[1]:0.3 "
        "offset=INT8[1]:-3 epsilon=12.5 y=INT8[2,4]",
        f"aclnnRmsNormQuant x=FLOAT[2,8]{X} gamma=FLOAT[8]:10,20,-5 beta=FLOAT[8]:1,-1,2 scale=FLOAT[1]:3 "
        "offset=FLOAT[1]:-0.5 epsilon=12.5 y=INT32[2,1]",
        "aclnnRmsNormQuant x=FLOAT[1,2]:3,nan gamma=FLOAT[1,2]:10,20 beta=FLOAT[2]:1,-1 scale=FLOAT[1]:2 "
        "offset=FLOAT[1]:-3 epsilon=12.5 y=FLOAT8_E5M2[1,2]",
    ],
)
def rms_norm_quant(x, gamma, beta, scale, offset, epsilon, outputs):
    y = norm(x, gamma.reshape(-1), epsilon) + beta.reshape(-1)
    return quantised(np.nan_to_num(scaled(y, scale, offset, divides=True)), dtype_of(outputs["y"]))


# ops-nn: aclnnRmsNormQuantV3.md.
@formula(
    "aclnnRmsNormQuantV3",
    calls=[
        f"aclnnRmsNormQuantV3 x=FLOAT[2,4]{X} gamma=FLOAT[1,4]:10,20,-5,15 scale=FLOAT[4]:2,0.5,0.75,1.5 offset=null "
        "beta=FLOAT[4]:1,-1,3 epsilon=12.5 divMode=true outputRstd=true y=INT8[2,4] rstd=FLOAT[2,1]",
        f"aclnnRmsNormQuantV3 x=FLOAT[2,4]{X} gamma=FLOAT[4]:10,20,-5 scale=FLOAT[1]:0.3 offset=FLOAT[1]:-2 beta=null "
        "epsilon=12.5 divMode=false outputRstd=false y=INT4[2,4] rstd=null",
        f"aclnnRmsNormQuantV3 x=FLOAT16[2,4]{X} gamma=FLOAT16[4]:10,20,-5 scale=FLOAT16[1]:0.01 offset=INT8[1]:-100 "
        "beta=null epsilon=12.5 divMode=true outputRstd=false y=INT8[2,4] rstd=null",
    ],
)
def rms_norm_quant_v3(x, gamma, scale, offset, beta, epsilon, divides, returns_rstd, outputs):
    rstd = reciprocal_root(x, epsilon, -1)
    values = scaled(x * rstd * gamma + (0 if beta is None else beta), scale, offset, divides)
    y = quantised(values, dtype_of(outputs["y"]))
    return (y, rstd) if returns_rstd else y


# ops-nn: aclnnRmsNormDynamicQuant.md.
@formula(
    "aclnnRmsNormDynamicQuant",
    calls=[
        f"aclnnRmsNormDynamicQuant x=FLOAT16[2,4]{X} gamma=FLOAT16[4]:10,20,-5 smoothScalesOptional={smooth} "
        f"betaOptional={beta} epsilon=12.5 dstType=2 yOut=INT8[2,4] scaleOut=FLOAT[2]"
        for smooth, beta in (("FLOAT16[4]:2,1,20", "FLOAT16[4]:1,-1"), ("null", "null"))
    ]
    + [
        "aclnnRmsNormDynamicQuant x=FLOAT16[2,2]:0,0,3,4 gamma=FLOAT16[2]:10,20 smoothScalesOptional=null "
        "betaOptional=null epsilon=12.5 dstType=2 yOut=INT8[2,2] scaleOut=FLOAT[2]"
    ],
)
def rms_norm_dynamic_quant(x, gamma, smooth, beta, epsilon, _dtype, outputs):
    return by_rows(norm(x, gamma, epsilon) + (0 if beta is None else beta), smooth, outputs["yOut"])


# ops-nn: aclnnRmsNormGradQuant.md, with the offset added in both modes.
@formula(
    "aclnnRmsNormGradQuant",
    calls=[
        f"aclnnRmsNormGradQuant dy=FLOAT[3,2]:1,2,-3,0.5,2.5 x=FLOAT[3,2]{X} rstd=FLOAT[3]:0.2,0.5,0.3 "
        f'gamma=FLOAT[2]:10,-7 scalesX=FLOAT[1]:{scale} offsetXOptional={offset} quantMode="static" divMode={divides} '
        "dxOut=INT8[3,2] dgammaOut=FLOAT[2]"
        for scale, offset, divides in ((10, "INT32[1]:1", "false"), (0.07, "null", "true"))
    ],
)
def rms_norm_grad_quant(dy, x, rstd, gamma, scale, offset, _mode, divides):
    dims = tuple(range(-gamma.ndim, 0))
    rstd = rstd.reshape(x.shape[: x.ndim - gamma.ndim] + (1,) * gamma.ndim)
    y = dy * gamma * x * rstd
    dx = (dy * gamma - rstd * x * np.mean(y, dims, keepdims=True)) * rstd
    dgamma = np.sum(rstd * x * dy, tuple(range(x.ndim - gamma.ndim)))
    return to_integers(scaled(dx, scale, offset, divides)), dgamma
