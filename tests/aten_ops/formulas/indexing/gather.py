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


# The last dimension of indices holds the leading coordinates of each slice (ops-nn: aclnnGatherNd.md).
@formula(
    "aclnnGatherNd",
    calls=[
        f"aclnnGatherNd self=FLOAT[2,3,2]:{X} indices=INT64[3,2]:1,2,0,1,1,0 negativeIndexSupport=false out=FLOAT[3,2]",
        f"aclnnGatherNd self=FLOAT[3,4]:{X} indices=INT64[2,1]:-1,1 negativeIndexSupport=true out=FLOAT[2,4]",
        f"aclnnGatherNd self=INT32[3,4]:{INTEGERS} indices=INT64[3,2]:2,3,0,1,1,0 negativeIndexSupport=false "
        "out=INT32[3]",
    ],
)
def gather_nd(self, indices, _negative_index_support):
    return self[tuple(np.moveaxis(indices, -1, 0))]
