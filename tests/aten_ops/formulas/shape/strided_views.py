from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def places(size, stride, offset):
    """The positions of a view's elements."""
    positions = np.full(size, offset)
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        positions += (step * np.arange(count)).reshape([-1 if d == dim else 1 for d in range(len(size))])
    return positions


# ops-math: aclnnAsStrided.md
@formula(
    "aclnnAsStrided",
    calls=[
        "aclnnAsStrided x=INT32[10]:0,1,2,3,4,5,6,7,8,9 size=[2,3] stride=[3,2] storageOffset=[1] out=INT32[2,3]",
        "aclnnAsStrided x=FLOAT[3,4] size=[2,2,2] stride=[1,0,5] storageOffset=[2] out=FLOAT[2,2,2]",
        "aclnnAsStrided x=FLOAT8_E4M3FN[4]:1,2,3,4 size=[2] stride=[2] storageOffset=[1] out=FLOAT8_E4M3FN[2]",
        "aclnnAsStrided x=UINT16[4]:6,7,8,9 size=[3] stride=[0] storageOffset=[3] out=UINT16[3]",
        "aclnnAsStrided x=FLOAT[2]:1,2 size=[0,3] stride=[9,9] storageOffset=[50] out=FLOAT[0,3]",
    ],
)
def as_strided(x, size, stride, offset):
    return x.reshape(-1)[places(size, stride, offset[0])]


# ops-math: aclnnViewCopy.md
@formula(
    "aclnnViewCopy",
    calls=[
        "aclnnViewCopy dst=INT8[2,3]:1,2,3,4,5,6 dst_size=INT64[2]:2,2 dst_stride=INT64[2]:3,1 "
        "dst_storage_offset=INT64[1]:1 src=INT8[4]:7,8,9,10 src_size=INT64[2]:2,2 src_stride=INT64[2]:1,2 "
        "src_storage_offset=INT64[1]:0 dst_out=INT8[2,3]",
        "aclnnViewCopy dst=FLOAT[3,4] dst_size=INT32[1]:3 dst_stride=INT32[1]:5 dst_storage_offset=INT32[1]:1 "
        "src=FLOAT[5]:10,20,-30,40,50 src_size=INT32[1]:3 src_stride=INT32[1]:2 src_storage_offset=INT32[1]:0 "
        "dst_out=FLOAT[3,4]",
        "aclnnViewCopy dst=FLOAT[0] dst_size=INT64[1]:1 dst_stride=INT64[1]:1 dst_storage_offset=INT64[1]:0 "
        "src=FLOAT[2]:3,4 src_size=INT64[1]:1 src_stride=INT64[1]:1 src_storage_offset=INT64[1]:0 dst_out=FLOAT[0]",
        "aclnnViewCopy dst=FLOAT[2]:1,2 dst_size=INT64[1]:0 dst_stride=INT64[1]:1 dst_storage_offset=INT64[1]:9 "
        "src=FLOAT[2]:3,4 src_size=INT64[1]:0 src_stride=INT64[1]:1 src_storage_offset=INT64[1]:9 dst_out=FLOAT[2]",
    ],
)
def view_copy(dst, size, stride, offset, src, src_size, src_stride, src_offset):
    result = dst.copy().reshape(-1)
    if dst.size and src.size:
        result[places(size, stride, offset[0])] = src.reshape(-1)[places(src_size, src_stride, src_offset[0])]
    return result.reshape(dst.shape)
