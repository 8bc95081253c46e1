from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[3,4]:5,-4,3,-2.5,1,9,8,-7,6.25,10,-11,12"


@formula(
    "aclnnSlice",
    calls=[
        f"aclnnSlice self={X} dim=1 start=-3 end=-1 step=1 out=FLOAT[3,2]",
        f"aclnnSlice self={X} dim=0 start=0 end=9 step=2 out=FLOAT[2,4]",
        "aclnnSlice self=INT32[5]:10,11,12,13,14 dim=-1 start=-9 end=2 step=1 out=INT32[2]",
        "aclnnSlice self=INT32[5]:10,11,12,13,14 dim=0 start=-4 end=9 step=2 out=INT32[2]",
        "aclnnSlice self=INT32[5]:10,11,12,13,14 dim=0 start=1 end=9223372036854775807 step=9223372036854775807 "
        "out=INT32[1]",
        "aclnnSlice self=INT32[5]:10,11,12,13,14 dim=0 start=3 end=-3 step=1 out=INT32[0]",
    ],
)
def slice_along(self, dim, start, end, step):
    return np.moveaxis(np.moveaxis(self, dim, 0)[start:end:step], 0, dim)


def window(self, starts, ends, steps, axes):
    """The slice of each dimension."""
    slices = [slice(None)] * self.ndim
    for start, end, step, axis in zip(starts, ends, steps, axes, strict=True):
        slices[axis] = slice(start, end, step)
    return tuple(slices)


@formula(
    "aclnnSliceV2",
    calls=[
        f"aclnnSliceV2 self={X} starts=[-2,1] ends=[3,9] axes=[0,1] steps=[1,2] out=FLOAT[2,2]",
        "aclnnSliceV2 self=INT32[2,2]:0,1,2,3 starts=[] ends=[] axes=[] steps=[] out=INT32[2,2]",
        "aclnnSliceV2 self=INT32[2,4]:0,1,2,3,4,5,6,7 starts=[-3,1] ends=[100,2] axes=[1,0] steps=[2,1] out=INT32[1,2]",
    ],
)
def slice_v2(self, starts, ends, axes, steps):
    return self[window(self, starts, ends, steps, axes)]


def has_bit(mask, i):
    return mask >> i & 1


# An ellipsis wins over a new axis, a new axis over a dimension that is removed, and that over open ends (TensorFlow's
# StridedSlice, which ops-math: aclnnStridedSlice.md follows).
@formula(
    "aclnnStridedSlice",
    calls=[
        f"aclnnStridedSlice self={X} begin=[{begin}] end=[{end}] strides=[{strides}] beginMask={begin_mask} "
        f"endMask={end_mask} ellipsisMask={ellipsis} newAxisMask={new} shrinkAxisMask={shrink} out=FLOAT[{out}]"
        for begin, end, strides, begin_mask, end_mask, ellipsis, new, shrink, out in (
            ("1,0", "3,-1", "1,2", 0, 0, 0, 0, 0, "2,2"),
            ("1,1", "2,2", "1,1", 1, 2, 0, 0, 0, "2,3"),
            ("2,-1", "0,0", "-1,-2", 0, 2, 0, 0, 0, "2,2"),
            ("-1,0,1", "0,0,4", "1,1,1", 0, 0, 0, 2, 1, "1,3"),
            ("0,1", "0,3", "1,1", 0, 0, 1, 0, 0, "3,2"),
            ("1,9", "2,9", "1,1", 0, 0, 2, 2, 1, "4"),
        )
    ]
    + [
        "aclnnStridedSlice self=INT32[2,2]:0,1,2,3 begin=[] end=[] strides=[] beginMask=0 endMask=0 "
        "ellipsisMask=0 newAxisMask=0 shrinkAxisMask=0 out=INT32[2,2]",
        "aclnnStridedSlice self=INT32[2,3]:0,1,2,3,4,5 begin=[-1] end=[0] strides=[1] beginMask=0 endMask=0 "
        "ellipsisMask=0 newAxisMask=0 shrinkAxisMask=1 out=INT32[3]",
        "aclnnStridedSlice self=INT32[2,3]:0,1,2,3,4,5 begin=[0,1] end=[0,0] strides=[1,1] beginMask=0 endMask=0 "
        "ellipsisMask=1 newAxisMask=0 shrinkAxisMask=2 out=INT32[2]",
        "aclnnStridedSlice self=INT32[2,3]:0,1,2,3,4,5 begin=[0,1] end=[0,2] strides=[1,1] beginMask=0 endMask=0 "
        "ellipsisMask=0 newAxisMask=1 shrinkAxisMask=0 out=INT32[1,1,3]",
        "aclnnStridedSlice self=INT32[3]:0,1,2 begin=[9223372036854775807] end=[-9223372036854775808] "
        "strides=[-9223372036854775808] beginMask=0 endMask=0 ellipsisMask=0 newAxisMask=0 shrinkAxisMask=0 "
        "out=INT32[1]",
        "aclnnStridedSlice self=INT32[5]:0,1,2,3,4 begin=[3] end=[0] strides=[-1] beginMask=0 endMask=0 "
        "ellipsisMask=0 newAxisMask=0 shrinkAxisMask=0 out=INT32[3]",
        "aclnnStridedSlice self=INT32[5]:0,1,2,3,4 begin=[3] end=[0] strides=[-2] beginMask=0 endMask=1 "
        "ellipsisMask=0 newAxisMask=0 shrinkAxisMask=0 out=INT32[2]",
        "aclnnStridedSlice self=INT32[5]:0,1,2,3,4 begin=[3] end=[2] strides=[2] beginMask=1 endMask=0 "
        "ellipsisMask=0 newAxisMask=0 shrinkAxisMask=0 out=INT32[1]",
    ],
)
def strided_slice(self, begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask):
    index = []
    for i, (start, stop, stride) in enumerate(zip(begin, end, strides, strict=True)):
        if has_bit(ellipsis_mask, i):
            index.append(Ellipsis)
        elif has_bit(new_axis_mask, i):
            index.append(None)
        elif has_bit(shrink_axis_mask, i):
            index.append(start)
        else:
            open_ends = has_bit(begin_mask, i), has_bit(end_mask, i)
            index.append(slice(None if open_ends[0] else start, None if open_ends[1] else stop, stride))
    return self[tuple(index)]


@formula(
    "aclnnStridedSliceAssignV2",
    calls=[
        f"aclnnStridedSliceAssignV2 varRef={X} inputValue=FLOAT[2,2]:1.5,-2,3.25,-6 begin=[0,1] end=[3,3] "
        "strides=[2,1] axesOptional=[0,1]",
        f"aclnnStridedSliceAssignV2 varRef={X} inputValue=FLOAT[2,3]:1.5,-2,3.25,-6,7,0.5 begin=[1,-3] end=[9,9] "
        "strides=[1,1] axesOptional=null",
        "aclnnStridedSliceAssignV2 varRef=INT32[2,2]:0,0,0,0 inputValue=INT32[1,2]:1,2 begin=[1] end=[2] "
        "strides=[1] axesOptional=[0]",
        "aclnnStridedSliceAssignV2 varRef=INT32[3,3]:0,0,0,0,0,0,0,0,0 inputValue=INT32[2,2]:1,2,3,4 "
        "begin=[0,-2] end=[9,9] strides=[2,1] axesOptional=null",
    ],
)
def strided_slice_assign(var, value, begin, end, strides, axes):
    result = var.copy()
    result[window(var, begin, end, strides, axes or range(var.ndim))] = value
    return result
