from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import E2M1, E4M3, E5M2, TYPES, cast
from tests.aten_ops.formulas import formula


@formula(
    "aclnnInplaceCopy",
    calls=[
        "aclnnInplaceCopy selfRef=FLOAT[3,4] src=FLOAT[4]:-1.5,2,3.25,-7",
        "aclnnInplaceCopy selfRef=INT32[2,3] src=FLOAT[2,3]:-1.75,2.5,3.25,-7.5,8,0.99",
    ],
)
def inplace_copy(self, src):
    source = np.broadcast_to(src, self.shape)
    return np.trunc(source) if self.dtype == np.int64 else source


@formula(
    "aclnnInplaceFillScalar",
    "aclnnInplaceFillTensor",
    calls=[
        "aclnnInplaceFillScalar selfRef=FLOAT[2,3] value=DOUBLE(-2.75)",
        "aclnnInplaceFillScalar selfRef=INT32[5] value=INT64(-3)",
        "aclnnInplaceFillScalar selfRef=INT8[40,30] value=INT64(-3)",
        "aclnnInplaceFillScalar selfRef=UINT8[1100] value=DOUBLE(2.75)",
        "aclnnInplaceFillTensor selfRef=FLOAT[2,3] value=FLOAT[1]:-2.75",
    ],
)
def inplace_fill(self, value):
    numbers = np.zeros(self.shape) + value
    return np.trunc(numbers) if self.dtype == np.int64 else numbers


@formula("aclnnInplaceOne", calls=["aclnnInplaceOne selfRef=INT32[2,3]:5,-4", "aclnnInplaceOne selfRef=BOOL[1100]:0"])
def inplace_one(self):
    return np.ones(self.shape)


@formula("aclnnInplaceZero", calls=["aclnnInplaceZero selfRef=FLOAT[2,3]", "aclnnInplaceZero selfRef=INT32[5]:5,-4"])
def inplace_zero(self):
    return np.zeros(self.shape)


@formula(
    "aclnnTensorMove",
    calls=[
        "aclnnTensorMove x=INT32[2,3]:5,-4,3,-2,1,0 y=INT32[2,3]",
        "aclnnTensorMove x=UINT64[2]:7,9 y=UINT64[2]",
    ],
)
def tensor_move(x):
    return x


INT32, BOOL = 3, 12


@formula(
    "aclnnCastV3",
    calls=[
        "aclnnCastV3 x=FLOAT16[2,3]:-1.75,2.5,3.25,-7.5,8,0.125 dstType=0 y=FLOAT[2,3]",
        "aclnnCastV3 x=INT32[2,3]:-1,20,3,-7,8,16777216 dstType=0 y=FLOAT[2,3]",
        "aclnnCastV3 x=FLOAT[2,3]:-1.75,2.5,3.25,-7.5,8,0.99 dstType=3 y=INT32[2,3]",
        "aclnnCastV3 x=FLOAT[3]:1.75,-2.5,0 dstType=3 y=INT32[3]",
        "aclnnCastV3 x=INT32[3]:0,5,-1 dstType=12 y=BOOL[3]",
    ],
)
def cast_v3(x, dtype):
    if dtype == BOOL:
        return x != 0
    return np.trunc(x) if dtype == INT32 else x


# Codes of aclDataType.
INT8, INT16, INT64 = 2, 6, 9


def low_precision(x, dtype):
    """Rounded to FLOAT8 or FLOAT4: what exceeds FLOAT8 by half a step is inf or nan; FLOAT4 is limited."""
    half_step = {E5M2: 4096, E4M3: 16, E2M1: np.inf}[dtype]
    excess, largest = np.abs(x) - TYPES[dtype][3], cast(x, dtype)
    if dtype == E5M2:
        return np.where(excess >= half_step, np.copysign(np.inf, x), largest)
    return np.where(excess > half_step, np.nan, largest)


# ops-math: aclnnCast.md, and the types' definitions
@formula(
    "aclnnCast",
    calls=[
        "aclnnCast self=FLOAT[2,4]:-1.75,2.5,3.25,-7.5,8,0.99,11,-0.5 dtype=3 out=INT32[2,4]",
        "aclnnCast self=INT32[2,3]:-1,20,3,-7,8,-1234 dtype=0 out=FLOAT[2,3]",
        "aclnnCast self=FLOAT16[4]:1.0,0.3,70000,-2.75 dtype=35 out=FLOAT8_E5M2[4]",
        "aclnnCast self=FLOAT8_E4M3FN[3]:1.125,-448,0.5 dtype=0 out=FLOAT[3]",
        "aclnnCast self=FLOAT[4]:0.25,1.5,-6,2.4 dtype=40 out=FLOAT4_E2M1[4]",
        "aclnnCast self=FLOAT[4]:464,465,-448,-inf dtype=36 out=FLOAT8_E4M3FN[4]",
        "aclnnCast self=FLOAT[6]:1.0,0.3,500,-2.25,1e-5,nan dtype=36 out=FLOAT8_E4M3FN[6]",
        "aclnnCast self=INT32[4]:-8,7,0,3 dtype=29 out=INT4[4]",
        "aclnnCast self=FLOAT[4]:1,2,3,4 dtype=1 out=FLOAT[4]",
    ],
)
def to_type(x, dtype):
    if dtype in (E5M2, E4M3, E2M1):
        return low_precision(x, dtype)
    return np.trunc(x) if dtype in (INT8, INT16, INT32, INT64) else x
