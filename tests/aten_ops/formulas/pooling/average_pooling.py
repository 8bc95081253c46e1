"""From the documents of ops-nn that have the functions' names, such as aclnnAvgPool2d.md."""

from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formulas import formula


def output_size(size, kernel, stride, padding, ceil_mode):
    count = (size + 2 * padding - kernel) / stride
    count = int(np.ceil(count) if ceil_mode else np.floor(count)) + 1
    # The last window starts in the input or the padding before it.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def pools(sizes, counts, kernel, stride, padding, count_include_pad, divisor):
    """The places of the output with the slices of the input and the divisors."""

    def along(size, count, kernel, stride, padding):
        for i in range(count):
            start = i * stride - padding
            padded = min(start + kernel, size + padding) - start
            inside = slice(max(start, 0), min(start + kernel, size))
            yield i, inside, padded if count_include_pad else inside.stop - inside.start

    for triples in itertools.product(*map(along, sizes, counts, kernel, stride, padding)):
        places, slices, lengths = zip(*triples, strict=True)
        yield (..., *places), (..., *slices), divisor or np.prod(lengths)


def expanded(numbers, dims):
    return numbers * dims if len(numbers) == 1 else numbers


def arguments(kernel, stride, padding, dims):
    return expanded(kernel, dims), expanded(stride or kernel, dims), expanded(padding, dims)


def average(self, dims, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    kernel, stride, padding = arguments(kernel, stride, padding, dims)
    sizes = self.shape[-dims:]
    counts = [output_size(*each, ceil_mode) for each in zip(sizes, kernel, stride, padding, strict=True)]
    result = np.zeros((*self.shape[:-dims], *counts))
    for place, window, by in pools(sizes, counts, kernel, stride, padding, count_include_pad, divisor):
        result[place] = np.sum(self[window], tuple(range(-dims, 0))) / by
    return result


def average_backward(grad, self, dims, kernel, stride, padding, count_include_pad, divisor):
    kernel, stride, padding = arguments(kernel, stride, padding, dims)
    result = np.zeros(self.shape)
    sizes, counts = self.shape[-dims:], grad.shape[-dims:]
    for place, window, by in pools(sizes, counts, kernel, stride, padding, count_include_pad, divisor):
        result[window] += grad[place][(..., *[None] * dims)] / by
    return result


# Input and output, and options, in which windows overlap and reach into the padding.
SHAPES_2D = (
    ("5,6", "5,3", "[3,2]", "[1,2]", "[1,0]", "false", "true", 0),
    ("5,6", "3,4", "[3,2]", "[2,2]", "[1,1]", "true", "true", 0),
    ("5,6", "3,4", "[3,2]", "[2,2]", "[1,1]", "true", "false", 0),
    ("5,6", "2,2", "[2]", "[3]", "[0]", "false", "true", 3),
)
SHAPES_3D = (
    ("4,5,6", "3,3,3", "[2,3,2]", "[1,2,2]", "[0,1,0]", "false", "true", 0),
    ("4,5,6", "3,3,4", "[2,3,2]", "[2,2,2]", "[1,1,1]", "true", "true", 0),
    ("4,5,6", "3,3,4", "[2,3,2]", "[2,2,2]", "[1,1,1]", "true", "false", 0),
    ("4,5,6", "2,2,3", "[2]", "[]", "[0]", "false", "true", -3),
)
VALUES = "1.5,-2,3,4.5,-6,7,9"


@formula(
    "aclnnAvgPool2d",
    calls=[
        f"aclnnAvgPool2d self=FLOAT[2,{self}]:{VALUES} kernelSize={kernel} strides={stride} paddings={padding}"
        f" ceilMode={ceil_mode} countIncludePad={include} divisorOverride={divisor} cubeMathType=0 out=FLOAT[2,{out}]"
        for self, out, kernel, stride, padding, ceil_mode, include, divisor in SHAPES_2D
    ],
)
def average_2d(self, kernel, stride, padding, ceil_mode, count_include_pad, divisor, cube_math_type):
    return average(self, 2, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


@formula(
    "aclnnAvgPool2dBackward",
    calls=[
        f"aclnnAvgPool2dBackward gradOutput=FLOAT[2,{out}]:{VALUES} self=FLOAT[2,{self}] kernelSize={kernel}"
        f" stride={stride} padding={padding} ceilMode={ceil_mode} countIncludePad={include} divisorOverride={divisor}"
        f" cubeMathType=0 gradInput=FLOAT[2,{self}]"
        for self, out, kernel, stride, padding, ceil_mode, include, divisor in SHAPES_2D
    ],
)
def average_2d_backward(grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor, cube_math_type):
    return average_backward(grad, self, 2, kernel, stride, padding, count_include_pad, divisor)


@formula(
    "aclnnAvgPool3d",
    calls=[
        f"aclnnAvgPool3d self=FLOAT[2,{self}]:{VALUES} kernelSize={kernel} stride={stride} padding={padding}"
        f" ceilMode={ceil_mode} countIncludePad={include} divisorOverride={divisor} out=FLOAT[2,{out}]"
        for self, out, kernel, stride, padding, ceil_mode, include, divisor in SHAPES_3D
    ],
)
def average_3d(self, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    return average(self, 3, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


@formula(
    "aclnnAvgPool3dBackward",
    calls=[
        f"aclnnAvgPool3dBackward gradOuput=FLOAT[2,{out}]:{VALUES} self=FLOAT[2,{self}] kernelSize={kernel}"
        f" stride={stride} padding={padding} ceilMode={ceil_mode} countIncludePad={include} divisorOverride={divisor}"
        f" output=FLOAT[2,{self}]"
        for self, out, kernel, stride, padding, ceil_mode, include, divisor in SHAPES_3D
    ],
)
def average_3d_backward(grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    return average_backward(grad, self, 3, kernel, stride, padding, count_include_pad, divisor)
