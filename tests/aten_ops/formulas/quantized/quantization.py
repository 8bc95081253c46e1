from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import call
from tests.aten_ops.formula_helpers.types import (
    E4M3,
    E5M2,
    INT4,
    INT8,
    INT32,
    TYPES,
    quantised,
    unpacked_int4,
    unwritten,
)
from tests.aten_ops.formulas import formula
from tests.cabi import Dtype

X = "FLOAT[2,4]:1.25,1.75,-0.75,150,-150,0.4,3.5,-7.25"
ROUNDINGS = {"round": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def along(numbers, x, axis):
    """One number, or one for each element of a dimension."""
    return numbers.reshape(-1, *[1] * ((-1 - axis) % x.ndim))


QUANT = "x scale offset sqrtMode=false roundMode dstType=2 y"
QUANT_V3 = QUANT.replace(" y", " axis=-1 y")


def calls_of_quant():
    name, one, y = "aclnnAscendQuant", "FLOAT[1]:1", "INT8[2,4]"
    for mode in ROUNDINGS:
        yield call(name, QUANT, x=X, scale=one, roundMode=f'"{mode}"', y=y)
    twice = {"scale": "FLOAT[1,4]:1,2,-0.5,0.25", "offset": "FLOAT[1,4]:0.25,0.25,3,-8", "sqrtMode": "true"}
    yield call(name, QUANT, x=X, **twice, roundMode='"ceil"', y=y)
    yield call(name, QUANT, x=X, scale=one, roundMode='"round"', dstType=int(INT4), y="INT4[2,4]")
    eight = {"x": "FLOAT[2,8]:1,2,3,4,5,6,7,-9,-3", "scale": one, "roundMode": '"floor"', "dstType": int(INT32)}
    yield call(name, QUANT, **eight, y="INT32[2,1]")
    name, operands = f"{name}V3", {"x": X, "roundMode": '"round"'}
    yield call(name, QUANT_V3, **operands, scale="FLOAT[1,4]:10,20,-3,0.5", axis=1, y=y)
    yield call(name, QUANT_V3, **operands, scale="FLOAT[2]:10,0.5", offset="FLOAT[2]:1,2", axis=-2, y=y)
    for dtype, y in ((E4M3, "FLOAT8_E4M3FN[2,4]"), (E5M2, "FLOAT8_E5M2[2,4]")):
        yield call(name, QUANT_V3, **operands, scale="FLOAT[1]:1.1", dstType=int(dtype), y=y)


# FLOAT8 has no rounding mode (ops-nn: aclnnAscendQuant.md, aclnnAscendQuantV3.md).
@formula("aclnnAscendQuant", "aclnnAscendQuantV3", calls=[*calls_of_quant()])
def ascend_quant(x, scale, offset, is_twice, mode, dtype, axis=-1):
    factor = along(scale, x, axis)
    values = x * factor * (factor if is_twice else 1) + (0 if offset is None else along(offset, x, axis))
    return quantised(values if dtype in TYPES else ROUNDINGS[mode](values), dtype)


ANTI = "x scale offset dstType=1 sqrtMode=false y"


def calls_of_anti_quant():
    name, offset = "aclnnAscendAntiQuant", "FLOAT[2]:1,-1"
    of_columns = {"scale": "FLOAT[2]:0.5,2", "offset": offset, "y": "FLOAT16[3,2]"}
    yield call(name, ANTI, x="INT8[3,2]:1,2,-3,4,50,-6", **of_columns)
    yield call(name, ANTI, x="INT4[3,2]:1,-8,7,2,-3,5", **of_columns)
    yield call(name, ANTI, x="INT8[3,2]:1,2,-3,4,50,-6", scale="FLOAT[3]:1,10,100", y="FLOAT16[3,2]")
    rows = {"scale": "FLOAT[2,1]:1,10", "offset": "FLOAT[2,1]:0,1", "dstType": 27}
    yield call(name, ANTI, x="INT8[2,2]:1,2,3,-4", **rows, y="BFLOAT16[2,2]")
    yield call(name, ANTI, x="INT8[2]:1,-3", scale="BFLOAT16[1]:0.5", dstType=27, sqrtMode="true", y="BFLOAT16[2]")
    packed = {"x": "INT32[2,1]:-2023406815,1985229328", "scale": "FLOAT[1]:0.5"}
    yield call(name, ANTI, **packed, y="FLOAT16[2,8]")
    yield call(name, ANTI, x="FLOAT8_E4M3FN[3]:1.5,-3,0.25", scale="FLOAT[1]:2", y="FLOAT16[3]")


# ops-nn: aclnnAscendAntiQuant.md. An INT32 holds eight INT4: such numbers are beyond INT8.
@formula("aclnnAscendAntiQuant", calls=[*calls_of_anti_quant()])
def ascend_anti_quant(x, scale, offset, _dtype, is_twice):
    values = unpacked_int4(x) if x.dtype == np.int64 and np.abs(x).max(initial=0) > 128 else x
    is_of_rows = scale.ndim == 1 and scale.size not in (1, values.shape[-1])
    factor = scale[:, None] if is_of_rows else scale
    added = 0 if offset is None else offset[:, None] if is_of_rows else offset
    return (values + added) * factor * (factor if is_twice else 1)


# A scale of 0 counts as 1. Without scales or elements nothing is computed (ops-nn: aclnnQuantize.md).
@formula(
    "aclnnQuantize",
    calls=[
        "aclnnQuantize x=FLOAT[2,2]:1,-3,5,700 scales=FLOAT[2]:2,0 zeroPoints=INT32[2]:1,2 dtype=4 axis=-1 "
        "out=UINT8[2,2]",
        "aclnnQuantize x=FLOAT[2,2]:1,-3,5,7e9 scales=FLOAT[2]:1,2 zeroPoints=INT8[2]:1,-2 dtype=3 axis=0 "
        "out=INT32[2,2]",
        "aclnnQuantize x=FLOAT[4]:1,3,5,7 scales=FLOAT[1]:2 zeroPoints=null dtype=2 axis=9 out=INT8[4]",
        "aclnnQuantize x=FLOAT[2,2]:1,-300,5,700 scales=FLOAT[2]:2,0.75 zeroPoints=null dtype=2 axis=-1 out=INT8[2,2]",
    ],
)
def quantize(x, scales, zeros, dtype, axis, outputs):
    axis = -1 if scales.size == 1 else axis
    factor = along(np.where(scales == 0, 1, scales), x, axis)
    limits = np.iinfo({INT8: np.int8, Dtype.UINT8: np.uint8, INT32: np.int32}[dtype])
    if factor.size == 0:
        return unwritten(outputs["out"])
    return np.clip(np.rint(x / factor + (0 if zeros is None else along(zeros, x, axis))), limits.min, limits.max)


def fake_quantized(x, scale, zero, low, high):
    quantised = np.rint(x / scale) + zero
    return (np.clip(quantised, low, high) - zero) * scale, (quantised >= low) & (quantised <= high)


# ops-nn: aclnnFakeQuantPerTensorAffineCachemask.md.
@formula(
    "aclnnFakeQuantPerTensorAffineCachemask",
    calls=[
        f"aclnnFakeQuantPerTensorAffineCachemask self=FLOAT[2,2]:1.1,3,40,-6 scale=FLOAT[1]:2 zeroPoint=INT32[1]:2 "
        f"fakeQuantEnabled={enabled} quantMin=0 quantMax=15 out=FLOAT[2,2] mask=BOOL[2,2]"
        for enabled in (1.0, 0.5)
    ],
)
def fake_quant_per_tensor(x, scale, zero, enabled, low, high):
    return fake_quantized(x, scale, zero, low, high) if enabled >= 1 else (x, np.ones(x.shape))


# ops-nn: aclnnFakeQuantPerChannelAffineCachemask.md.
@formula(
    "aclnnFakeQuantPerChannelAffineCachemask",
    calls=[
        "aclnnFakeQuantPerChannelAffineCachemask self=FLOAT[2,2]:1,3,40,-6 scale=FLOAT[2]:2,1 zeroPoint=INT32[2]:0,1 "
        "axis=-2 quantMin=0 quantMax=15 out=FLOAT[2,2] mask=BOOL[2,2]"
    ],
)
def fake_quant_per_channel(x, scale, zero, axis, low, high):
    return fake_quantized(x, along(scale, x, axis), along(zero, x, axis), low, high)
