from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula("aclnnRepeat", calls=["aclnnRepeat self=INT32[2,3]:5,-4,3,-2,1,9 repeats=[2,1,2] out=INT32[2,2,6]"])
def repeat(self, repeats):
    result = self.reshape((1,) * (len(repeats) - self.ndim) + self.shape)
    for dim, count in enumerate(repeats):
        result = np.concatenate([result] * count, dim)
    return result


def interleaved(self, repeats, dim):
    counts = np.broadcast_to(repeats, self.shape[dim])
    return np.take(self, [i for i, count in enumerate(counts) for _ in range(count)], dim)


@formula(
    "aclnnRepeatInterleave",
    "aclnnRepeatInterleaveInt",
    calls=["aclnnRepeatInterleave self=INT32[2,2]:5,-4,3,-2 repeats=INT64[1]:2 outputSize=8 out=INT32[8]"],
)
def repeat_interleave(self, repeats, output_size):
    return interleaved(self.reshape(-1), repeats, 0)


@formula("aclnnRepeatInterleaveWithDim", "aclnnRepeatInterleaveIntWithDim")
def repeat_interleave_with_dim(self, repeats, dim, output_size):
    return interleaved(self, repeats, dim)


@formula(
    "aclnnRepeatInterleaveTensor",
    calls=["aclnnRepeatInterleaveTensor repeats=INT64[5]:1,2,0,3,1 outputSize=7 out=INT64[7]"],
)
def repeat_interleave_tensor(repeats, output_size):
    return interleaved(np.arange(len(repeats)), repeats, 0)


@formula(
    "aclnnExpand",
    calls=[
        "aclnnExpand self=FLOAT[2,1,3]:5,-4,3.25,-2,1,9 size=[2,2,3] out=FLOAT[2,2,3]",
        "aclnnExpand self=INT32[2,1]:5,-4 size=[3,2,2] out=INT32[3,2,2]",
    ],
)
def expand(self, size):
    return np.broadcast_to(self, size)
