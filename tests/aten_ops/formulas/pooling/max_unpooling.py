from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnMaxUnpool2d",
    calls=[
        "aclnnMaxUnpool2d self=FLOAT[2,2,2]:1.5,-2,3.25,-4,5,6,-7,8.5 indices=INT64[2,2,2]:0,5,7,11,10,3,2,11 "
        "outputSize=[3,4] out=FLOAT[2,3,4]",
        "aclnnMaxUnpool2d self=INT32[1,2,1,2]:1,-2,3,-4 indices=INT64[1,2,1,2]:3,0,1,2 outputSize=[2,2] "
        "out=INT32[1,2,2,2]",
    ],
)
def max_unpool_2d(self, indices, output_size):
    result = np.zeros((*self.shape[:-2], output_size[0] * output_size[1]), self.dtype)
    for place in np.ndindex(self.shape):
        result[(*place[:-2], indices[place])] = self[place]
    return result.reshape(*self.shape[:-2], *output_size)


OF_3D = "indices=INT32[2,1,1,2]:5,0,2,3 outputSize=[2,1,3] stride=[1,1,1] padding=[0,0,0]"


# ops-nn: aclnnMaxUnpool3d.md.
@formula(
    "aclnnMaxUnpool3d",
    calls=[
        f"aclnnMaxUnpool3d self=FLOAT[2,1,1,2]:1.5,-2,3.25,-4 {OF_3D} outRef=FLOAT[2,2,1,3]",
        f"aclnnMaxUnpool3d self=FLOAT[1,2,1,1,2]:1.5,-2,3.25,-4 {OF_3D.replace('2[2', '2[1,2')} "
        "outRef=FLOAT[1,2,2,1,3]",
    ],
)
def max_unpool_3d(self, indices, output_size, _stride, _padding):
    result = np.zeros((*self.shape[:-3], int(np.prod(output_size))), self.dtype)
    for place in np.ndindex(self.shape):
        result[(*place[:-3], indices[place])] = self[place]
    return result.reshape(*self.shape[:-3], *output_size)


def gathered(grad, indices, dims):
    """The gradients at the indices in each plane or volume."""
    planes, places = (x.reshape(*x.shape[:-dims], math.prod(x.shape[-dims:])) for x in (grad, indices))
    return np.take_along_axis(planes, places, -1).reshape(indices.shape)


@formula(
    "aclnnMaxUnpool2dBackward",
    calls=[
        "aclnnMaxUnpool2dBackward gradOutput=FLOAT[1,2,2,3]:0,-3,-5,-8,1,2,0,7,7,-6,1,2 self=FLOAT[1,2,1,2] "
        "indices=INT32[1,2,1,2]:5,1,2,3 outputSize=[2,3] out=FLOAT[1,2,1,2]"
    ],
)
def max_unpool_2d_backward(grad, _self, indices, _output_size):
    """ops-nn: aclnnMaxUnpool2dBackward.md."""
    return gathered(grad, indices, 2)


@formula(
    "aclnnMaxUnpool3dBackward",
    calls=[
        "aclnnMaxUnpool3dBackward gradOutput=FLOAT[2,2,1,3]:-5,-4,-1,4,-4,3,2,-6,-3,5,6,2 self=FLOAT[2,1,1,2] "
        f"{OF_3D} out=FLOAT[2,1,1,2]"
    ],
)
def max_unpool_3d_backward(grad, _self, indices, _output_size, _stride, _padding):
    """ops-nn: aclnnMaxUnpool3dBackward.md."""
    return gathered(grad, indices, 3)
