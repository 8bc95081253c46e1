from __future__ import annotations

import numpy as np

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
        "aclnnInplaceFillTensor selfRef=FLOAT[2,3] value=FLOAT[1]:-2.75",
    ],
)
def inplace_fill(self, value):
    return np.zeros(self.shape) + value


@formula("aclnnInplaceOne", calls=["aclnnInplaceOne selfRef=INT32[2,3]:5,-4"])
def inplace_one(self):
    return np.ones(self.shape)


@formula("aclnnInplaceZero", calls=["aclnnInplaceZero selfRef=FLOAT[2,3]", "aclnnInplaceZero selfRef=INT32[5]:5,-4"])
def inplace_zero(self):
    return np.zeros(self.shape)


@formula("aclnnTensorMove", calls=["aclnnTensorMove x=INT32[2,3]:5,-4,3,-2,1,0 y=INT32[2,3]"])
def tensor_move(x):
    return x


INT32 = 3


@formula(
    "aclnnCastV3",
    calls=[
        "aclnnCastV3 x=FLOAT16[2,3]:-1.75,2.5,3.25,-7.5,8,0.125 dstType=0 y=FLOAT[2,3]",
        "aclnnCastV3 x=INT32[2,3]:-1,20,3,-7,8,16777216 dstType=0 y=FLOAT[2,3]",
        "aclnnCastV3 x=FLOAT[2,3]:-1.75,2.5,3.25,-7.5,8,0.99 dstType=3 y=INT32[2,3]",
    ],
)
def cast_v3(x, dtype):
    return np.trunc(x) if dtype == INT32 else x
