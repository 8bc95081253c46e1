from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnCat",
    calls=[
        "aclnnCat tensors={FLOAT[2,3] FLOAT[1,3]:-5,7,9} dim=0 out=FLOAT[3,3]",
        "aclnnCat tensors={INT32[2,1]:-4,5 INT32[2,2]:6,-7,8,9} dim=-1 out=INT32[2,3]",
    ],
)
def cat(tensors, dim):
    return np.concatenate(tensors, dim)


@formula(
    "aclnnStack",
    calls=[
        "aclnnStack tensors={FLOAT[2,3] FLOAT[2,3]:-5,7,9,11,-13,15} dim=1 out=FLOAT[2,2,3]",
        "aclnnStack tensors={INT32[2]:-4,5 INT32[2]:6,-7 INT32[2]:8,-9} dim=-1 out=INT32[2,3]",
    ],
)
def stack(tensors, dim):
    axis = dim % (tensors[0].ndim + 1)
    return np.concatenate([np.expand_dims(tensor, axis) for tensor in tensors], axis)


@formula(
    "aclnnSplitWithSize",
    calls=["aclnnSplitWithSize self=INT32[3,2]:1,-2,3,4,-5,6 splitSize=[1,2] dim=0 out={INT32[1,2] INT32[2,2]}"],
)
def split_with_size(self, split_size, dim):
    ends = np.cumsum(split_size)
    return [np.take(self, np.arange(end - size, end), dim) for size, end in zip(split_size, ends, strict=True)]


@formula(
    "aclnnSplitTensor",
    calls=[
        "aclnnSplitTensor self=FLOAT[2,5]:1.5,-2,3,4.25,-5,6,-7,8,9,-10 splitSections=3 dim=-1 "
        "out={FLOAT[2,3] FLOAT[2,2]}",
        "aclnnSplitTensor self=INT32[4,2]:1,-2,3,4,-5,6,-7,8 splitSections=2 dim=0 out={INT32[2,2] INT32[2,2]}",
        "aclnnSplitTensor self=FLOAT[0] splitSections=0 dim=0 out={FLOAT[0]}",
        "aclnnSplitTensor self=INT32[2]:1,2 splitSections=18446744073709551615 dim=0 out={INT32[2]}",
        "aclnnSplitTensor self=INT32[5]:1,2,3,4,5 splitSections=3 dim=-1 out={INT32[3] INT32[2]}",
    ],
)
def split_tensor(self, size, dim):
    count = self.shape[dim]
    starts = range(0, max(count, 1), max(size, 1))
    return [np.take(self, np.arange(start, min(start + size, count)), dim) for start in starts]


# ops-math: aclnnChunkCat.md. The last chunks are filled up with zeros.
@formula(
    "aclnnChunkCat",
    calls=[
        "aclnnChunkCat tensors={FLOAT[3,2]:1,2,3,4,5,6 FLOAT[2]:-4,5.5} dim=0 numChunks=2 out=FLOAT[2,5]",
        "aclnnChunkCat tensors={FLOAT[5,2] FLOAT[3]:-1,2,3 FLOAT[4,1]:7,-8,9,6.5} dim=0 numChunks=3 out=FLOAT[3,7]",
        "aclnnChunkCat tensors={FLOAT16[1]:1 FLOAT16[0]} dim=0 numChunks=2 out=FLOAT[2,1]",
    ],
)
def chunk_cat(tensors, dim, count):
    parts = []
    for tensor in tensors:
        missing = -tensor.shape[dim] % count
        whole = np.pad(tensor, [(0, missing if d == dim % tensor.ndim else 0) for d in range(tensor.ndim)])
        before = whole.shape[: dim % tensor.ndim]
        parts.append(whole.reshape(*before, count, whole.size // max(int(np.prod(before)) * count, 1)))
    return np.concatenate(parts, -1)
