from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

INTEGERS = "5,-4,3,-2,1,9,8,-7,6,10,-11,12"
X = "1.5,-4.25,3,-2,1,9,8,-7.5,6,10,-11,12"


@formula(
    "aclnnGather",
    calls=[
        f"aclnnGather self=FLOAT[3,4]:{X} dim=0 index=INT64[2,4]:2,0,1,2,1,2,0,0 out=FLOAT[2,4]",
        f"aclnnGather self=FLOAT[3,4]:{X} dim=-1 index=INT64[2,3]:3,0,2,1,2,3 out=FLOAT[2,3]",
        f"aclnnGather self=INT32[3,4]:{INTEGERS} dim=1 index=INT64[3,2]:3,0,2,1,2,0 out=INT32[3,2]",
    ],
)
def gather(self, dim, index):
    result = np.zeros(index.shape, self.dtype)
    for place in np.ndindex(index.shape):
        source = list(place)
        source[dim] = index[place]
        result[place] = self[tuple(source)]
    return result


# ops-nn: aclnnGatherV2.md. An index without dimensions is treated as one of one element.
@formula(
    "aclnnGatherV2",
    calls=[
        f"aclnnGatherV2 self=FLOAT[3,4]:{X} dim=-1 index=INT32[2,2]:1,0,-1,2 out=FLOAT[3,2,2]",
        f"aclnnGatherV2 self=FLOAT[3,4]:{X} dim=0 index=INT64[2]:2,0 out=FLOAT[2,4]",
        f"aclnnGatherV2 self=INT32[4,3]:{INTEGERS} dim=0 index=INT64[]:2 out=INT32[1,3]",
        "aclnnGatherV2 self=FLOAT[3]:1,2.5,3 dim=0 index=INT64[4]:-3,-1,0,1 out=FLOAT[4]",
        "aclnnGatherV2 self=FLOAT[]:7 dim=-1 index=INT64[1]:0 out=FLOAT[]",
        "aclnnGatherV2 self=FLOAT[2,3] dim=0 index=INT64[0] out=FLOAT[0,3]",
        "aclnnGatherV2 self=FLOAT[2,0] dim=0 index=INT64[3]:1,0,1 out=FLOAT[3,0]",
    ],
)
def gather_v2(self, dim, index):
    return np.take(self, np.atleast_1d(index), dim) if self.ndim else self


# ops-nn: aclnnGatherV3.md. The mode does not change the result.
@formula(
    "aclnnGatherV3",
    calls=[
        f"aclnnGatherV3 self=FLOAT[2,3,2]:{X} dim={dim} index=INT64{index} batchDims={batch} mode={mode} out=FLOAT{out}"
        for dim, index, batch, mode, out in (
            *((2, "[2,3]:1,0,1,0,0,1", 1, 0, "[2,3,3]"), (1, "[2,2]:2,0,1,-1", 1, 1, "[2,2,2]")),
            *((0, "[2,1]:1,0", 0, 1, "[2,1,3,2]"), (-1, "[2,3,2]:1,0,0,1,1,1,0,0,1,0,0,1", 2, 0, "[2,3,2]")),
        )
    ]
    + [f"aclnnGatherV3 self=FLOAT[3,4]:{X} dim=1 index=INT64[3]:2,0,3 batchDims=1 mode=0 out=FLOAT[3]"],
)
def gather_v3(self, dim, index, batch, _mode):
    if batch == 0:
        return np.take(self, index, dim)
    dim %= self.ndim
    parts = [gather_v3(each, dim - 1, places, batch - 1, _mode) for each, places in zip(self, index, strict=True)]
    return np.stack(parts) if parts else np.zeros((0,))


# The last dimension of indices holds the leading coordinates of each slice (ops-nn: aclnnGatherNd.md).
@formula(
    "aclnnGatherNd",
    calls=[
        f"aclnnGatherNd self=FLOAT[2,3,2]:{X} indices=INT64[3,2]:1,2,0,1,1,0 negativeIndexSupport=false out=FLOAT[3,2]",
        f"aclnnGatherNd self=FLOAT[3,4]:{X} indices=INT64[2,1]:-1,1 negativeIndexSupport=true out=FLOAT[2,4]",
        f"aclnnGatherNd self=INT32[3,4]:{INTEGERS} indices=INT64[3,2]:2,3,0,1,1,0 negativeIndexSupport=false "
        "out=INT32[3]",
        "aclnnGatherNd self=INT64[2,2]:0,1,2,3 indices=INT32[2,1]:-1,0 negativeIndexSupport=true out=INT64[2,2]",
        "aclnnGatherNd self=INT64[2,2]:0,1,2,3 indices=INT64[2,2]:0,0,1,1 negativeIndexSupport=false out=INT64[2]",
        "aclnnGatherNd self=UINT16[2,2,2]:0,1,2,3,4,5,6,7 indices=INT64[2,1,2]:0,1,1,0 "
        "negativeIndexSupport=false out=UINT16[2,1,2]",
    ],
)
def gather_nd(self, indices, _negative_index_support):
    return self[tuple(np.moveaxis(indices, -1, 0))]
