from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula("aclnnChannelShuffle", calls=["aclnnChannelShuffle self=FLOAT[2,6,2,3] groups=2 out=FLOAT[2,6,2,3]"])
def channel_shuffle(self, groups):
    channels = self.shape[1]
    # Channel j of group i comes to place (j, i).
    order = [i * (channels // groups) + j for j in range(channels // groups) for i in range(groups)]
    return self[:, order]


@formula(
    "aclnnFlip",
    calls=[
        "aclnnFlip self=FLOAT[2,3,4] dims=[0,-1] out=FLOAT[2,3,4]",
        "aclnnFlip self=INT32[2,3]:5,-4,3,-2,1,9 dims=[1] out=INT32[2,3]",
    ],
)
def flip(self, dims):
    for dim in dims:
        self = np.take(self, range(self.shape[dim] - 1, -1, -1), dim)
    return self


@formula(
    "aclnnRoll",
    calls=[
        "aclnnRoll x=FLOAT[3,5] shifts=[4] dims=[] out=FLOAT[3,5]",
        "aclnnRoll x=INT32[5]:5,-4,3,-2,1 shifts=[7] dims=[-1] out=INT32[5]",
    ],
)
def roll(x, shifts, dims):
    if x.size == 0:
        return x
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = np.take(x, (np.arange(x.shape[dim]) - shift) % x.shape[dim], dim)
    return x


X = "5,-4,3,-2.5,1,9,8,-7,6.25,10,-11,12"


@formula(
    "aclnnPermute",
    calls=[
        f"aclnnPermute self=FLOAT[2,3,2]:{X} dims=[1,-1,0] out=FLOAT[3,2,2]",
        "aclnnPermute self=INT32[2,3]:0,1,2,3,4,5 dims=[-1,0] out=INT32[3,2]",
    ],
)
def permute(self, dims):
    return self.transpose(dims)


@formula(
    "aclnnConfusionTranspose",
    calls=[
        f"aclnnConfusionTranspose x=FLOAT[2,3,2]:{X} perm=[2,0,1] shape=[4,3] transpose_first=true out=FLOAT[4,3]",
        f"aclnnConfusionTranspose x=FLOAT[4,3]:{X} perm=[1,2,0] shape=[2,2,3] transpose_first=false out=FLOAT[2,3,2]",
        "aclnnConfusionTranspose x=INT32[2,4]:1,2,3,4,5,6,7,8 perm=[1,0] shape=[2,4] transpose_first=true "
        "out=INT32[2,4]",
        "aclnnConfusionTranspose x=UINT8[4]:1,2,3,4 perm=[1,0] shape=[2,2] transpose_first=false out=UINT8[2,2]",
    ],
)
def confusion_transpose(x, perm, shape, transpose_first):
    return x.transpose(perm).reshape(shape) if transpose_first else x.reshape(shape).transpose(perm)


@formula(
    "aclnnFlatten",
    calls=[
        f"aclnnFlatten self=FLOAT[2,3,2]:{X} axis=2 out=FLOAT[6,2]",
        "aclnnFlatten self=INT32[2,1,2]:1,2,3,4 axis=-1 out=INT32[2,2]",
        "aclnnFlatten self=INT32[2,1,2]:1,2,3,4 axis=0 out=INT32[1,4]",
        "aclnnFlatten self=INT32[]:5 axis=0 out=INT32[1,1]",
    ],
)
def flatten(self, axis):
    return self.reshape(np.prod(self.shape[:axis], dtype=int), np.prod(self.shape[axis:], dtype=int))


# ops-nn: index/data_format_dim_map/README.md. A negative index counts from the end.
@formula(
    "aclnnDataFormatDimMap",
    calls=[
        'aclnnDataFormatDimMap x=INT32[6]:0,1,2,3,-1,-4 srcFormat="NHWC" dstFormat="NCHW" y=INT32[6]',
        'aclnnDataFormatDimMap x=INT64[1,5]:0,1,2,3,4 srcFormat="NDHWC" dstFormat="CDHWN" y=INT64[1,5]',
        'aclnnDataFormatDimMap x=INT32[0] srcFormat="A" dstFormat="A" y=INT32[0]',
        'aclnnDataFormatDimMap x=INT32[1]:0 srcFormat="A" dstFormat="A" y=INT32[1]',
    ],
)
def data_format_dim_map(x, source, target):
    return np.array([target.index(source[i]) for i in x.flat], np.int64).reshape(x.shape)
