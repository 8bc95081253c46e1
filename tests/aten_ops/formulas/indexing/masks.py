"""From the documents of ops-math and ops-nn that have the functions' names, such as aclnnInplaceMaskedFillScalar.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnInplaceMaskedFillScalar",
    "aclnnInplaceMaskedFillTensor",
    calls=[
        "aclnnInplaceMaskedFillScalar selfRef=FLOAT[2,4] mask=BOOL[4]:1,0,0,1 value=DOUBLE(-2.75)",
        "aclnnInplaceMaskedFillScalar selfRef=INT32[5]:5,-4,3,-2,1 mask=BOOL[5]:0,1,0,0,1 value=INT64(-7)",
        "aclnnInplaceMaskedFillTensor selfRef=FLOAT[2,4] mask=BOOL[2,1]:0,1 value=FLOAT[]:-2.75",
    ],
)
def masked_fill(self, mask, value):
    return np.where(mask, value, self)


@formula(
    "aclnnInplaceMaskedScatter",
    calls=[
        "aclnnInplaceMaskedScatter selfRef=FLOAT[2,4] mask=BOOL[4]:1,0,0,1 source=FLOAT[5]:-1.5,2,3.25,-4,5",
        "aclnnInplaceMaskedScatter selfRef=INT32[5]:5,-4,3,-2,1 mask=BOOL[5]:0,1,0,0,1 source=INT32[2]:-8,9",
    ],
)
def masked_scatter(self, mask, source):
    mask = np.broadcast_to(mask, self.shape) != 0
    # The next element of the source goes to each true place of the mask.
    numbers = np.cumsum(mask.reshape(-1)).reshape(self.shape) - 1
    return np.where(mask, source.reshape(-1)[numbers.clip(0)], self)


@formula(
    "aclnnSWhere",
    calls=[
        "aclnnSWhere condition=BOOL[2,1]:0,1 self=FLOAT[2,4] other=FLOAT[4]:-1.5,2,3.25,-4 out=FLOAT[2,4]",
        "aclnnSWhere condition=BOOL[5]:1,0,0,1,1 self=INT32[5]:5,-4,3,-2,1 other=INT32[5]:-8,9,-10,11,12 out=INT32[5]",
    ],
)
def where(condition, self, other):
    return np.where(condition, self, other)


@formula(
    "aclnnMaskedSelect",
    calls=["aclnnMaskedSelect self=FLOAT[2,3]:3,-1,2,0.5,-4,7 mask=BOOL[3]:1,0,1 out=FLOAT[6]"],
)
def masked_select(self, mask):
    self, mask = np.broadcast_arrays(self, mask)
    return self[mask != 0]


@formula("aclnnNonzero", calls=["aclnnNonzero self=FLOAT[2,3]:0,2,3,nan,0,1 out=INT64[6,2]"])
def nonzero(self):
    return np.argwhere(self)


@formula("aclnnNonzeroV2", calls=["aclnnNonzeroV2 self=FLOAT[2,3]:0,2,3,nan,0,1 out=INT64[2,6]"])
def nonzero_v2(self):
    return np.argwhere(self).T
