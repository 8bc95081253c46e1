from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def _corners(y, x, height, width):
    """The elements around a position, each with its bilinear weight and the derivatives of that along y and x."""
    top, left = int(np.floor(y)), int(np.floor(x))
    for i, j in np.ndindex(2, 2):
        if 0 <= top + i < height and 0 <= left + j < width:
            down, right = (y - top if i else top + 1 - y), (x - left if j else left + 1 - x)
            yield (top + i, left + j), down * right, (right if i else -right), (down if j else -down)


def _samples(shape, offset, kernel, stride, padding, dilation, parts):
    """Every sample: the image, its channels, (part, kernel position, result), the mask and the corners."""
    (rows, columns), (height, width), share = kernel, offset.shape[2:], shape[1] // parts
    of = offset.reshape(len(offset), 3, parts, rows, columns, height, width)  # x, y, mask
    for n, g, r, c, i, j in np.ndindex(len(offset), *of.shape[2:]):
        x = -padding[2] + j * stride[3] + c * dilation[3] + of[n, 0, g, r, c, i, j]
        y = -padding[0] + i * stride[2] + r * dilation[2] + of[n, 1, g, r, c, i, j]
        channels = slice(g * share, (g + 1) * share)
        yield n, channels, (g, r, c, i, j), of[n, 2, g, r, c, i, j], [*_corners(y, x, *shape[2:])]


CALL = (
    "kernelSize=[2,3] stride=[1,1,2,2] padding=[1,0,1,1] dilation=[1,1,2,1] groups=2 deformableGroups=2 modulated=true"
)
OFFSET = (
    "0.1875,-0.3125,0.0625,-1.5,0.75,0.40625,-0.9375,0.28125,1.375,-0.5625,0.625,0.84375,-0.15625,"
    "-0.71875,0.34375,-1.09375,0.46875"
)


# The points of a result stand side by side (ops-nn: aclnnDeformableConv2d.md); offset has those along x, those along y
# and the masks, as the row says.
@formula(
    "aclnnDeformableConv2d",
    calls=[
        f"aclnnDeformableConv2d x=FLOAT[2,4,4,5] weight=FLOAT[2,2,2,3] offset=FLOAT[2,36,2,3]:{OFFSET} "
        f"biasOptional=FLOAT[2]:3,-0.6875 {CALL} out=FLOAT[2,2,2,3] deformOutOptional=FLOAT[2,4,4,9]"
    ],
    error=2e-6,  # sums in FLOAT
)
def deformable(x, weight, offset, bias, kernel, stride, padding, dilation, groups, parts, _modulated):
    rows, columns = kernel
    points = np.zeros((*x.shape[:2], offset.shape[2], rows, offset.shape[3], columns))
    for n, channels, (_, r, c, i, j), mask, corners in _samples(
        x.shape, offset, kernel, stride, padding, dilation, parts
    ):
        for (row, column), share, _, _ in corners:
            points[n, channels, i, r, j, c] += mask * share * x[n, channels, row, column]
    by_group = points.reshape(len(x), groups, -1, *points.shape[2:])
    of_group = weight.reshape(groups, -1, *weight.shape[1:])
    out = np.einsum("ngkirjc,gokrc->ngoij", by_group, of_group).reshape(len(x), len(weight), *offset.shape[2:])
    out = out if bias is None else out + bias[:, None, None]
    return out, points.reshape(*x.shape[:2], offset.shape[2] * rows, -1)


# The gradient of weight is that of the points given (ops-nn: aclnnDeformableConv2dBackward.md).
@formula(
    "aclnnDeformableConv2dBackward",
    calls=[
        "aclnnDeformableConv2dBackward input=FLOAT[2,4,4,5] gradOutput=FLOAT[2,2,2,3] offsetOut=FLOAT[2,4,4,9] "
        f"weight=FLOAT[2,2,2,3] offset=FLOAT[2,36,2,3]:{OFFSET} {CALL} gradInput=FLOAT[2,4,4,5] "
        "gradWeight=FLOAT[2,2,2,3] gradOffset=FLOAT[2,36,2,3] gradBias=FLOAT[2]"
    ],
    error=2e-6,  # sums in FLOAT
)
def deformable_gradient(
    x, gradient, points, weight, offset, kernel, stride, padding, dilation, groups, parts, _modulated
):
    rows, columns = kernel
    height, width = offset.shape[2:]
    by_group = gradient.reshape(len(x), groups, -1, height, width)
    of_group = weight.reshape(groups, -1, *weight.shape[1:])
    of_points = np.einsum("ngoij,gokrc->ngkirjc", by_group, of_group).reshape(
        *x.shape[:2], height, rows, width, columns
    )
    points = points.reshape(len(x), groups, -1, height, rows, width, columns)
    of_weight = np.einsum("ngoij,ngkirjc->gokrc", by_group, points).reshape(weight.shape)
    of_x, of_offset = np.zeros(x.shape), np.zeros((len(x), 3, parts, rows, columns, height, width))
    for n, channels, (g, r, c, i, j), mask, corners in _samples(
        x.shape, offset, kernel, stride, padding, dilation, parts
    ):
        of_point = of_points[n, channels, i, r, j, c]
        for (row, column), share, along_y, along_x in corners:
            of_x[n, channels, row, column] += of_point * mask * share
            product = of_point @ x[n, channels, row, column]
            of_offset[n, :, g, r, c, i, j] += product * np.array([mask * along_x, mask * along_y, share])
    return of_x, of_weight, of_offset.reshape(offset.shape), gradient.sum((0, 2, 3))


def _attended(value, shapes, starts, location):
    """Every sample of attention: its index, the head and image, and the corners with their keys."""
    for index in np.ndindex(location.shape[:-1]):
        n, _query, head, level, _point = index
        height, width = shapes[level]
        x, y = location[index] * (width, height) - 0.5
        yield (
            index,
            (n, head),
            (
                (int(starts[level]) + row * width + column, share, along_y * height, along_x * width)
                for (row, column), share, along_y, along_x in _corners(y, x, height, width)
            ),
        )


ATTENTION = (
    "value=FLOAT[2,8,2,8] spatialShape=INT32[2,2]:2,3,1,2 levelStartIndex=INT64[2]:0,6 "
    "location=FLOAT[2,{0},2,2,2,2]:0.953125,0.078125,0.140625,0.515625,0.734375,0.328125,0.890625,1.046875,0.265625,"
    "0.421875,-0.109375,0.609375,0.203125 attnWeight=FLOAT[2,{0},2,2,2]"
)


# ops-nn: aclnnMultiScaleDeformableAttnFunction.md
@formula(
    "aclnnMultiScaleDeformableAttnFunction",
    calls=[f"aclnnMultiScaleDeformableAttnFunction {ATTENTION.format(32)} output=FLOAT[2,32,16]"],
)
def attention(value, shapes, starts, location, weight):
    result = np.zeros((*location.shape[:3], value.shape[3]))
    for index, (n, head), corners in _attended(value, shapes, starts, location):
        for key, share, _, _ in corners:
            result[index[:3]] += weight[index] * share * value[n, key, head]
    return result.reshape(*location.shape[:2], -1)


@formula(
    "aclnnMultiScaleDeformableAttentionGrad",
    calls=[
        f"aclnnMultiScaleDeformableAttentionGrad {ATTENTION.format(3)} gradOutput=FLOAT[2,3,16] "
        "gradValue=FLOAT[2,8,2,8] gradLocation=FLOAT[2,3,2,2,2,2] gradAttnWeight=FLOAT[2,3,2,2,2]"
    ],
)
def attention_gradient(value, shapes, starts, location, weight, gradient):
    gradient = gradient.reshape(*location.shape[:3], value.shape[3])
    of_value, of_location, of_weight = (np.zeros(each.shape) for each in (value, location, weight))
    for index, (n, head), corners in _attended(value, shapes, starts, location):
        for key, share, along_y, along_x in corners:
            product = gradient[index[:3]] @ value[n, key, head]
            of_value[n, key, head] += weight[index] * share * gradient[index[:3]]
            of_location[index] += weight[index] * product * np.array([along_x, along_y])
            of_weight[index] += share * product
    return of_value, of_location, of_weight
