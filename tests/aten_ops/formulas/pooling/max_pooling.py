"""From the documents of ops-nn that have the functions' names, such as aclnnMaxPool2dWithIndices.md."""

from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formulas import formula


def output_size(size, kernel, stride, padding, dilation, ceil_mode):
    count = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride
    count = int(np.ceil(count) if ceil_mode else np.floor(count)) + 1
    # The last window starts in the input or the padding before it.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def pool(self, kernel, stride, padding, dilation, ceil_mode, dims):
    """The maxima and their places in each plane or volume: the first ones, where there are several."""
    options = [
        numbers * dims if len(numbers) == 1 else numbers for numbers in (kernel, stride or kernel, padding, dilation)
    ]
    kernel, stride, padding, dilation = options
    sizes = self.shape[-dims:]
    counts = [output_size(*each, ceil_mode) for each in zip(sizes, *options, strict=True)]
    positions = np.arange(np.prod(sizes)).reshape(sizes)
    values = np.zeros((*self.shape[:-dims], *counts))
    indices = np.zeros(values.shape, np.int64)
    for place in itertools.product(*map(range, counts)):
        along = [
            [x for x in range(i * s - p, i * s - p + k * d, d) if 0 <= x < size]
            for i, k, s, p, d, size in zip(place, *options, sizes, strict=True)
        ]
        window = (..., *np.ix_(*along))
        elements = self[window].reshape(*self.shape[:-dims], positions[window].size)
        values[(..., *place)] = elements.max(-1)
        indices[(..., *place)] = positions[window].reshape(-1)[elements.argmax(-1)]
    return values, indices


def add_at_indices(grad, self, indices, dims):
    """Sums of the gradients at their places in each plane or volume."""
    planes = np.zeros((int(np.prod(self.shape[:-dims])), int(np.prod(self.shape[-dims:]))))
    grads = grad.reshape(len(planes), int(np.prod(grad.shape[-dims:])))
    rows = np.broadcast_to(np.arange(len(planes))[:, None], grads.shape)
    np.add.at(planes, (rows, indices.reshape(grads.shape)), grads)
    return planes.reshape(self.shape)


VALUES = "-1.5,-2,-3,4.5,-6,7,-9,-8,-7.5,-4,-5,-2.5,-1"
# Input and output, and options, in which windows overlap and reach into the padding.
SHAPES_2D = (
    ("5,6", "5,3", "[3,2]", "[1,2]", "[1,0]", "[1,1]", "false"),
    ("5,6", "3,4", "[3,2]", "[2,2]", "[1,1]", "[1,1]", "true"),
)
DILATED_2D = (*SHAPES_2D, ("5,6", "3,4", "[2,3]", "[2,1]", "[1,1]", "[2,2]", "true"))


@formula(
    "aclnnMaxPool2dWithIndices",
    calls=[
        f"aclnnMaxPool2dWithIndices self=FLOAT[2,{self}]:{VALUES} kernelSize={kernel} stride={stride}"
        f" padding={padding} dilation={dilation} ceilMode={ceil_mode} out=FLOAT[2,{out}] indices=INT32[2,{out}]"
        for self, out, kernel, stride, padding, dilation, ceil_mode in DILATED_2D
    ],
)
def max_pool_2d(self, kernel, stride, padding, dilation, ceil_mode):
    return pool(self, kernel, stride, padding, dilation, ceil_mode, 2)


@formula(
    "aclnnMaxPool2dWithIndicesBackward",
    calls=[
        "aclnnMaxPool2dWithIndicesBackward gradOutput=FLOAT[2,2,2]:1.5,-2,3,4.5,-6 self=FLOAT[2,4,4]"
        " indices=INT32[2,2,2]:0,7,7,11,5,15,3,15 kernelSize=[2,2] stride=[2,2] padding=[0,0] dilation=[1,1]"
        " ceilMode=false gradInput=FLOAT[2,4,4]"
    ],
)
def max_pool_2d_backward(grad, self, indices, kernel, stride, padding, dilation, ceil_mode):
    return add_at_indices(grad, self, indices, 2)


@formula(
    "aclnnMaxPool2dWithMask",
    calls=[
        f"aclnnMaxPool2dWithMask self=FLOAT[2,{self}]:{VALUES} kernelSize={kernel} stride={stride}"
        f" padding={padding} dilation={dilation} ceilMode={ceil_mode} out=FLOAT[2,{out}] indices=INT8[2,6,64]"
        for self, out, kernel, stride, padding, dilation, ceil_mode in SHAPES_2D
    ],
)
def max_pool_2d_with_mask(self, kernel, stride, padding, dilation, ceil_mode):
    values, indices = pool(self, kernel, stride, padding, dilation, ceil_mode, 2)
    # The indices as INT32, whose bytes begin the mask; the documented shape is that of bits, which older products have.
    width = (-(-values.shape[-1] * values.shape[-2] // 16) + 1) * 32
    mask = np.zeros((*self.shape[:-2], kernel[0] * kernel[-1], width), np.int8)
    if mask.shape[-2] > 1:
        np.put(mask, range(4 * indices.size), indices.astype("<i4").view(np.int8))
    return values, mask


@formula(
    "aclnnMaxPool2dWithMaskBackward",
    calls=[
        f"aclnnMaxPool2dWithMaskBackward gradOutput=FLOAT[2,{out}]:1.5,-2,3,4.5,-6 self=FLOAT[2,{self}]:{VALUES}"
        f" indices=INT8[2,6,64] kernelSize={kernel} stride={stride} padding={padding} dilation={dilation}"
        f" ceilMode={ceil_mode} gradInput=FLOAT[2,{self}]"
        for self, out, kernel, stride, padding, dilation, ceil_mode in SHAPES_2D
    ],
)
def max_pool_2d_with_mask_backward(grad, self, mask, kernel, stride, padding, dilation, ceil_mode):
    _, indices = pool(self, kernel, stride, padding, dilation, ceil_mode, 2)
    return add_at_indices(grad, self, indices, 2)


@formula(
    "aclnnMaxPool3dWithArgmax",
    calls=[
        f"aclnnMaxPool3dWithArgmax self=FLOAT[2,4,5,6]:{VALUES} kernelSize=[2,3,2] stride=[2,2,2] padding=[1,1,1]"
        " dilation=[1,1,1] ceilMode=true out=FLOAT[2,3,3,4] indices=INT32[2,3,3,4]",
        f"aclnnMaxPool3dWithArgmax self=FLOAT[2,4,5,6]:{VALUES} kernelSize=[2,2,3] stride=[1,2,1] padding=[0,1,1]"
        " dilation=[2,2,2] ceilMode=false out=FLOAT[2,2,3,4] indices=INT32[2,2,3,4]",
    ],
)
def max_pool_3d(self, kernel, stride, padding, dilation, ceil_mode):
    return pool(self, kernel, stride, padding, dilation, ceil_mode, 3)


@formula(
    "aclnnMaxPool3dWithArgmaxBackward",
    calls=[
        "aclnnMaxPool3dWithArgmaxBackward gradOutput=FLOAT[2,1,2,2]:1.5,-2,3,4.5,-6 self=FLOAT[2,2,4,4]"
        " indices=INT32[2,1,2,2]:0,7,7,11,5,31,3,31 kernelSize=[2,2,2] stride=[2,2,2] padding=[0,0,0]"
        " dilation=[1,1,1] ceilMode=false gradInput=FLOAT[2,2,4,4]"
    ],
)
def max_pool_3d_backward(grad, self, indices, kernel, stride, padding, dilation, ceil_mode):
    return add_at_indices(grad, self, indices, 3)
