from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas.pooling.max_pooling import add_at_indices


def windows(sizes, output_size):
    """The places of an output with the slices of the input that they come from."""

    def along(size, count):
        return [(i, slice(i * size // count, -(-(i + 1) * size // count))) for i in range(count)]

    for pairs in itertools.product(*map(along, sizes, output_size)):
        places, slices = zip(*pairs, strict=True)
        yield (..., *places), (..., *slices)


def axes(dims):
    return tuple(range(-dims, 0))


@formula(
    "aclnnAdaptiveAvgPool2d",
    "aclnnAdaptiveAvgPool3d",
    calls=["aclnnAdaptiveAvgPool2d self=FLOAT[2,7,5]:1.5,-2,3,4.5,-6,7,9 outputSize=[3,4] out=FLOAT[2,3,4]"],
)
def average_pool(self, output_size):
    dims = len(output_size)
    result = np.zeros((*self.shape[:-dims], *output_size))
    for place, window in windows(self.shape[-dims:], output_size):
        result[place] = np.mean(self[window], axes(dims))
    return result


def average_pool_backward(grad, self, dims):
    result = np.zeros(self.shape)
    for place, window in windows(self.shape[-dims:], grad.shape[-dims:]):
        count = np.prod(result[window].shape[-dims:])
        result[window] += grad[place][(..., *[None] * dims)] / count
    return result


@formula(
    "aclnnAdaptiveAvgPool2dBackward",
    calls=["aclnnAdaptiveAvgPool2dBackward gradOutput=FLOAT[2,3,4]:1.5,-2,3,4.5,-6 self=FLOAT[2,7,5] out=FLOAT[2,7,5]"],
)
def average_pool_2d_backward(grad, self):
    return average_pool_backward(grad, self, 2)


@formula("aclnnAdaptiveAvgPool3dBackward")
def average_pool_3d_backward(grad, self):
    return average_pool_backward(grad, self, 3)


@formula(
    "aclnnAdaptiveMaxPool2d",
    "aclnnAdaptiveMaxPool3d",
    calls=[
        "aclnnAdaptiveMaxPool2d self=FLOAT[2,7,5]:-1.5,-2,-3,4.5,-6,7,-9,-8,-7.5,-4,-5 outputSize=[3,4]"
        " outputOut=FLOAT[2,3,4] indicesOut=INT64[2,3,4]"
    ],
)
def max_pool(self, output_size):
    dims = len(output_size)
    sizes = self.shape[-dims:]
    positions = np.arange(np.prod(sizes)).reshape(sizes)
    values = np.zeros((*self.shape[:-dims], *output_size))
    indices = np.zeros(values.shape, np.int64)
    for place, window in windows(sizes, output_size):
        elements = self[window].reshape(*self.shape[:-dims], positions[window].size)
        values[place] = elements.max(-1)
        indices[place] = positions[window].reshape(-1)[elements.argmax(-1)]
    return values, indices


@formula(
    "aclnnAdaptiveMaxPool2dBackward",
    calls=[
        "aclnnAdaptiveMaxPool2dBackward gradOutput=FLOAT[2,2,2]:1.5,-2,3,4.5,-6 self=FLOAT[2,3,4]"
        " indices=INT64[2,2,2]:0,7,7,11,5,10,3,10 gradInput=FLOAT[2,3,4]"
    ],
)
def max_pool_2d_backward(grad, self, indices):
    return add_at_indices(grad, self, indices, 2)


@formula(
    "aclnnAdaptiveMaxPool3dBackward",
    calls=[
        "aclnnAdaptiveMaxPool3dBackward gradOutput=FLOAT[2,1,2,2]:1.5,-2,3,4.5,-6 self=FLOAT[2,2,3,2]"
        " indices=INT32[2,1,2,2]:0,7,7,11,5,10,3,10 gradInput=FLOAT[2,2,3,2]"
    ],
)
def max_pool_3d_backward(grad, self, indices):
    return add_at_indices(grad, self, indices, 3)


# ops-math: aclnnGlobalAveragePool.md, aclnnGlobalMaxPool.md.
@formula(
    "aclnnGlobalAveragePool",
    calls=["aclnnGlobalAveragePool self=FLOAT[2,2,3,2]:1.5,-2,3,4.5,-6,7,9 out=FLOAT[2,2,1,1]"],
)
def global_average_pool(self):
    return self.mean(tuple(range(2, self.ndim)), keepdims=True)


@formula(
    "aclnnGlobalMaxPool",
    calls=["aclnnGlobalMaxPool self=FLOAT[2,2,3,2]:-1.5,-2,-3,4.5,-6,-7,-9 out=FLOAT[2,2,1,1]"],
)
def global_max_pool(self):
    return self.max(tuple(range(2, self.ndim)), keepdims=True)
