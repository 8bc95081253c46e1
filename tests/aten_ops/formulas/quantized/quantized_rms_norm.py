from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas_helpers_quantized import call, packed_int4, rows_of, to_integers, to_minifloat, unwritten

X = ":1,3,-2,0.5,4,-1.5,2.5,-0.75"


def scaled(values, scale, offset, divides):
    return (values / scale if divides else values * scale) + (0 if offset is None else offset)


def reciprocal_root(x, epsilon, dims):
    return 1 / np.sqrt(np.mean(x * x, dims, keepdims=True) + epsilon)


def norm(x, gamma, epsilon):
    return x * reciprocal_root(x, epsilon, tuple(range(-gamma.ndim, 0))) * gamma


def by_rows(values, smooth, largest):
    """Each row over its largest magnitude, and this magnitude over the largest number; zeros stay zeros."""
    values = values if smooth is None else values * smooth
    scale = np.abs(values).max(-1, initial=0) / largest
    return values / np.where(scale == 0, 1, scale)[..., None], scale


# ---- The types of results are no arguments: each formula says which ones its calls have.

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


# ops-nn: aclnnAddRmsNormQuant.md. Calls that divide have INT8, others FLOAT8_E4M3FN.
@formula("aclnnAddRmsNormQuant", calls=[each for each in calls_of_added() if each.startswith("aclnnAddRmsNormQuant ")])
def add_rms_norm_quant(x1, x2, gamma, scales1, scales2, zeros1, zeros2, _axis, epsilon, divides):
    x = x1 + x2
    y = norm(x, gamma, epsilon)

    def result(scales, zeros):
        if scales is None:
            return unwritten(x.shape, np.int8) if divides else np.full(x.shape, -0.203125)  # the bits 0xA5
        values = scaled(y, scales, zeros, divides)
        return to_integers(values) if divides else to_minifloat(values, "FLOAT8_E4M3FN")

    return result(scales1, zeros1), result(scales2, zeros2), x


# ops-nn: aclnnAddRmsNormQuantV2.md. All calls have INT8; those without betaOptional ask for rmsNormOut.
@formula("aclnnAddRmsNormQuantV2", calls=[each for each in calls_of_added() if "QuantV2 " in each])
def add_rms_norm_quant_v2(x1, x2, gamma, scales1, scales2, zeros1, zeros2, beta, _axis, epsilon, divides):
    x = x1 + x2
    y = norm(x, gamma, epsilon)
    pairs = (scales1, zeros1), (scales2, zeros2)
    results = [
        unwritten(x.shape, np.int8)
        if scales is None
        else to_integers(scaled(y + (0 if beta is None else beta), scales, zeros, divides))
        for scales, zeros in pairs
    ]
    return (*results, x, y) if beta is None else (*results, x)


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


# ops-nn: aclnnAddRmsNormDynamicQuant.md. Calls with smooth scales have INT8, others FLOAT8_E5M2, of rows in one
# dimension; a second output that is not written has one element.
@formula("aclnnAddRmsNormDynamicQuant", calls=[each for each in calls_of_dynamic() if "QuantV2 " not in each])
def add_rms_norm_dynamic_quant(x1, x2, gamma, smooth1, smooth2, epsilon):
    x = x1 + x2
    y = rows_of(norm(x, gamma, epsilon))
    if smooth1 is None:
        quotients, scale = by_rows(y, None, 57344)
        not_written = np.array([-0.01953125])  # the bits 0xA5
        return to_minifloat(quotients, "FLOAT8_E5M2"), not_written, x, scale, unwritten(len(y), np.float32)
    quotients, scale1 = by_rows(y, smooth1, 127)
    if smooth2 is None:
        return np.rint(quotients), unwritten(1, np.int8), x, scale1, unwritten(len(y), np.float32)
    others, scale2 = by_rows(y, smooth2, 127)
    return np.rint(quotients), np.rint(others), x, scale1, scale2


# ops-nn: aclnnAddRmsNormDynamicQuantV2.md. Calls without a mask have INT8, those with true for both outputs INT32,
# which holds eight INT4, and others INT4; what is not written has one element.
@formula("aclnnAddRmsNormDynamicQuantV2", calls=[each for each in calls_of_dynamic() if "QuantV2 " in each])
def add_rms_norm_dynamic_quant_v2(x1, x2, gamma, smooth1, smooth2, beta, epsilon, mask):
    x = x1 + x2
    y = norm(x, gamma, epsilon) + (0 if beta is None else beta)
    results = []
    is_both = smooth1 is not None and smooth2 is not None
    for smooth, is_written in zip((smooth1, smooth2), mask or (True, is_both), strict=True):
        if not is_written:
            results += [unwritten(1, np.int8) if mask is None else np.array([5]), unwritten(1, np.float32)]
            continue
        quotients, scale = by_rows(y, smooth, 7 if mask else 127)
        integers = np.rint(quotients)
        results += [packed_int4(integers) if mask == [True, True] else integers, scale]
    y1, scale1, y2, scale2 = results
    return y1, y2, x, scale1, scale2


# ops-nn: aclnnRmsNormQuant.md. Calls whose gamma has one dimension have INT32, which holds eight INT4, others INT8.
@formula(
    "aclnnRmsNormQuant",
    calls=[
        f"aclnnRmsNormQuant x=FLOAT16[2,4]{X} gamma=FLOAT16[1,4]:10,20,-5 beta=FLOAT16[4]:1,-1 scale=FLOAT16[1]:0.3 "
        "offset=INT8[1]:-3 epsilon=12.5 y=INT8[2,4]",
        f"aclnnRmsNormQuant x=FLOAT[2,8]{X} gamma=FLOAT[8]:10,20,-5 beta=FLOAT[8]:1,-1,2 scale=FLOAT[1]:3 "
        "offset=FLOAT[1]:-0.5 epsilon=12.5 y=INT32[2,1]",
    ],
)
def rms_norm_quant(x, gamma, beta, scale, offset, epsilon):
    y = norm(x, gamma.reshape(-1), epsilon) + beta.reshape(-1)
    values = scaled(y, scale, offset, divides=True)
    return packed_int4(to_integers(values, 4)) if gamma.ndim == 1 else to_integers(values)


# ops-nn: aclnnRmsNormQuantV3.md. The results of INT4 are within its range.
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
def rms_norm_quant_v3(x, gamma, scale, offset, beta, epsilon, divides, returns_rstd):
    rstd = reciprocal_root(x, epsilon, -1)
    y = to_integers(scaled(x * rstd * gamma + (0 if beta is None else beta), scale, offset, divides))
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
def rms_norm_dynamic_quant(x, gamma, smooth, beta, epsilon, _dtype):
    quotients, scale = by_rows(norm(x, gamma, epsilon) + (0 if beta is None else beta), smooth, 127)
    return np.rint(quotients), scale


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
