from __future__ import annotations

import itertools
import math

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula

BILINEAR, ZEROS, BORDER = 0, 0, 1
THETA = "1.5,-0.25,0.75,-2,0.5,1.25,0.625,3,-1,2.5,-0.75,4"


@formula(
    "aclnnAffineGrid",
    calls=[
        f"aclnnAffineGrid theta=FLOAT[2,2,3]:{THETA} size=[2,1,4,8] alignCorners=false out=FLOAT[2,4,8,2]",
        f"aclnnAffineGrid theta=FLOAT[2,2,3]:{THETA} size=[2,3,3,5] alignCorners=true out=FLOAT[2,3,5,2]",
        "aclnnAffineGrid theta=FLOAT[1,3,4]:1.5,-0.25,0.75,-2,0.5,1.25,0.625,3,-1,2.5,-0.75,4 size=[1,1,2,4,4]"
        " alignCorners=false out=FLOAT[1,2,4,4,3]",
    ],
    error=2e-6,  # a sum of terms of both signs
)
def affine_grid(theta, size, align_corners):
    def along(count):
        places = np.arange(count)
        return 2 * places / (count - 1) - 1 if align_corners else (2 * places + 1) / count - 1

    # A point is (x, y) or (x, y, z): the last dimension first.
    points = np.meshgrid(*map(along, size[2:]), indexing="ij")[::-1]
    points = np.stack([*points, np.ones(size[2:])], -1)
    return np.einsum("...i,nji->n...j", points, theta)


def position(coordinate, size, padding, align_corners):
    """A position in elements, moved into the image as the padding requires, and its derivative."""
    factor = (size - 1) / 2 if align_corners else size / 2
    if math.isnan(coordinate) and padding != ZEROS:
        return 0, 0
    x = (coordinate + 1) * factor - (0 if align_corners else 0.5)
    if padding == ZEROS:
        return x, factor
    if padding != BORDER:
        low, length = (0, size - 1) if align_corners else (-0.5, size)
        if length == 0:
            return 0, 0
        turns, rest = divmod(x - low, length)
        if turns % 2:
            rest, factor = length - rest, -factor
        x = low + rest
    return min(max(x, 0), size - 1), factor if 0 < x < size - 1 else 0


@formula(
    "aclnnGridSampler2DBackward",
    calls=[
        "aclnnGridSampler2DBackward gradOutput=FLOAT[2,2,2,3]:1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11"
        " input=FLOAT[2,2,4,5]:-1.5,2,3,4.5,-6,7,9,8,-7.5,4,5.5,2.5,-1 grid=FLOAT[2,2,3,2]:"
        "-0.75,0.3125,0.125,-0.6875,1.125,0.4375,0.625,1.1875,-1.375,-0.25,0.4375,0.8125"
        f" interpolationMode={mode} paddingMode={padding} alignCorners={corners} outputMask=[true,true]"
        " inputGrad=FLOAT[2,2,4,5] gridGrad=FLOAT[2,2,3,2]"
        for mode, padding, corners in (
            (0, 0, "false"),
            (0, 0, "true"),
            (0, 1, "false"),
            (0, 1, "true"),
            (0, 2, "false"),
            (0, 2, "true"),
            (1, 0, "false"),
            (1, 1, "true"),
        )
    ],
)
def grid_sampler_2d_backward(grad, image, grid, mode, padding, align_corners, mask):
    of_image, of_grid = np.zeros(image.shape), np.zeros(grid.shape)
    height, width = image.shape[2:]
    for n, i, j in np.ndindex(grid.shape[:3]):
        x, x_factor = position(grid[n, i, j, 0], width, padding, align_corners)
        y, y_factor = position(grid[n, i, j, 1], height, padding, align_corners)
        if mode != BILINEAR:
            row, column = round(y), round(x)  # ties to even
            if 0 <= row < height and 0 <= column < width:
                of_image[n, :, row, column] += grad[n, :, i, j]
            continue
        for row in (math.floor(y), math.floor(y) + 1):
            for column in (math.floor(x), math.floor(x) + 1):
                if 0 <= row < height and 0 <= column < width:
                    by_row, by_column = 1 - abs(y - row), 1 - abs(x - column)
                    of_image[n, :, row, column] += grad[n, :, i, j] * by_row * by_column
                    product = np.sum(grad[n, :, i, j] * image[n, :, row, column])
                    of_grid[n, i, j, 0] += product * by_row * x_factor * (1 if column > x else -1)
                    of_grid[n, i, j, 1] += product * by_column * y_factor * (1 if row > y else -1)
    return of_image, of_grid


def taps(place, grid_point, sizes, mode, padding, align_corners):
    """The elements around a sample, with the weights, and the derivatives of the weights, along each dimension."""
    along = []
    for coordinate, size in zip(grid_point[::-1], sizes, strict=True):
        x, factor = position(coordinate, size, padding, align_corners)
        if mode != BILINEAR:
            along.append([(round(x), 1, 0)])  # ties to even
        else:
            low = math.floor(x)
            along.append([(low, 1 - (x - low), -factor), (low + 1, x - low, factor)])
        along[-1] = [tap for tap in along[-1] if 0 <= tap[0] < size]
    for chosen in itertools.product(*along):
        indices, weights, derivatives = zip(*chosen, strict=True)
        yield (place[0], slice(None), *indices), weights, derivatives


# ops-cv: aclnnGridSampler2D.md, aclnnGridSampler3D.md. A position that is not a number is the first element, but for
# padding with zeros.
@formula(
    "aclnnGridSampler2D",
    "aclnnGridSampler3D",
    calls=[
        *(
            f"aclnnGridSampler2D input={positive('2,2,3,4', 1)} grid={signed('2,3,2,2', 2)} interpolationMode={mode} "
            f"paddingMode={padding} alignCorners={corners} out=FLOAT[2,2,3,2]"
            for mode, padding, corners in (
                *((0, 0, "true"), (0, 1, "false"), (0, 2, "true"), (0, 2, "false"), (1, 1, "true")),
            )
        ),
        "aclnnGridSampler2D input=FLOAT[1,1,2,2]:1,2,3,4 grid=FLOAT[1,1,4,2]:nan,nan,-1,-1,inf,inf,-1,inf "
        "interpolationMode=0 paddingMode=1 alignCorners=true out=FLOAT[1,1,1,4]",
        *(
            f"aclnnGridSampler3D input={signed('2,1,2,3,4', 1, dtype)} grid={signed('2,1,2,2,3', 2, dtype)} "
            f"interpolationMode={mode} paddingMode={padding} alignCorners={corners} out={dtype}[2,1,1,2,2]"
            for dtype, mode, padding, corners in (
                *(("DOUBLE", 0, 0, "true"), ("DOUBLE", 0, 1, "false"), ("FLOAT", 1, 1, "true")),
            )
        ),
    ],
    error=3e-6,  # positions in FLOAT
)
def grid_sampler(image, grid, mode, padding, align_corners):
    result = np.zeros((*image.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(grid.shape[:-1]):
        for indices, weights, _ in taps(place, grid[place], image.shape[2:], mode, padding, align_corners):
            result[(place[0], slice(None), *place[1:])] += image[indices] * math.prod(weights)
    return result


# ops-cv: aclnnGridSampler3DBackward.md.
@formula(
    "aclnnGridSampler3DBackward",
    calls=[
        f"aclnnGridSampler3DBackward gradOutput={signed('2,2,1,1,2', 1, dtype)} input={signed('2,2,2,3,4', 2, dtype)} "
        f"grid={signed('2,1,1,2,3', 3, dtype)} interpolationMode={mode} paddingMode={padding} alignCorners={corners} "
        f"outputMask=[true,true] inputGrad={dtype}[2,2,2,3,4] gridGrad={dtype}[2,1,1,2,3]"
        for dtype, mode, padding, corners in (
            ("DOUBLE", 0, 0, "true"),
            ("DOUBLE", 0, 1, "false"),
            ("DOUBLE", 0, 2, "false"),
            ("FLOAT", 1, 1, "true"),
        )
    ],
    error=3e-6,  # positions in FLOAT
)
def grid_sampler_3d_backward(grad, image, grid, mode, padding, align_corners, _mask):
    of_image, of_grid = np.zeros(image.shape), np.zeros(grid.shape)
    for place in np.ndindex(grid.shape[:-1]):
        gradient = grad[(place[0], slice(None), *place[1:])]
        for indices, weights, derivatives in taps(place, grid[place], image.shape[2:], mode, padding, align_corners):
            of_image[indices] += gradient * math.prod(weights)
            for dim, derivative in enumerate(derivatives):
                others = math.prod(weight for i, weight in enumerate(weights) if i != dim)
                of_grid[(*place, -1 - dim)] += gradient @ image[indices] * derivative * others
    return of_image, of_grid
