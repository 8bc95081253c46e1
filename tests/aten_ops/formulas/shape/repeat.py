from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula("aclnnRepeat", calls=["aclnnRepeat self=INT32[2,3]:5,-4,3,-2,1,9 repeats=[2,1,2] out=INT32[2,2,6]"])
def repeat(self, repeats):
    return np.tile(self, repeats)


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


# ops-math: aclnnExpandv.md
@formula(
    "aclnnExpand",
    "aclnnExpandv",
    calls=[
        "aclnnExpandv self=FLOAT[2,1,3]:5,-4,3.25,-2,1,9 shape=[2,2,3] out=FLOAT[2,2,3]",
        "aclnnExpand self=FLOAT[2,1,3]:5,-4,3.25,-2,1,9 size=[2,2,3] out=FLOAT[2,2,3]",
        "aclnnExpand self=INT32[2,1]:5,-4 size=[3,2,2] out=INT32[3,2,2]",
        "aclnnExpand self=INT32[2,1]:7,8 size=[2,2,3] out=INT32[2,2,3]",
        "aclnnExpand self=INT32[]:7 size=[2] out=INT32[2]",
    ],
)
def expand(self, size):
    return np.broadcast_to(self, size)


# ops-nn: aclnnRepeatInterleaveGrad.md
@formula(
    "aclnnRepeatInterleaveGrad",
    calls=[
        "aclnnRepeatInterleaveGrad yGrad=FLOAT[2,6] repeats=INT64[4]:2,0,3,1 axis=1 out=FLOAT[2,4]",
        "aclnnRepeatInterleaveGrad yGrad=FLOAT[6,2] repeats=INT32[1]:2 axis=-2 out=FLOAT[3,2]",
        "aclnnRepeatInterleaveGrad yGrad=FLOAT[2,6] repeats=INT64[]:3 axis=-1 out=FLOAT[2,2]",
        "aclnnRepeatInterleaveGrad yGrad=FLOAT[0] repeats=INT32[]:0 axis=0 out=FLOAT[2]",
        "aclnnRepeatInterleaveGrad yGrad=FLOAT[6] repeats=INT32[1]:2 axis=-1 out=FLOAT[1,3]",
    ],
)
def repeat_interleave_grad(grad, repeats, axis, outputs):
    rows = np.moveaxis(grad, axis, 0)
    counts = repeats if repeats.size > 1 else [repeats.item()] * outputs["out"].shape[axis]
    ends = np.cumsum(counts)
    parts = [rows[end - count : end].sum(0) for count, end in zip(counts, ends, strict=True)]
    result = np.moveaxis(np.stack(parts) if parts else np.zeros((0, *rows.shape[1:])), 0, axis)
    return result.reshape(outputs["out"].shape)
