from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive
from tests.aten_ops.formulas import formula

# ---- Along one dimension: matrices with a row of weights for each output element


def step(size, out, scale, align_corners=False):
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0
    return 1 / scale if scale > 0 else size / out


def nearest(size, out, scale, _):
    return weights(size, [[(math.floor(i * step(size, out, scale)), 1)] for i in range(out)])


def nearest_exact(size, out, scale, _):
    return weights(size, [[(math.floor((i + 0.5) * step(size, out, scale)), 1)] for i in range(out)])


def linear(size, out, scale, align_corners):
    rows = []
    for i in range(out):
        by = step(size, out, scale, align_corners)
        x = i * by if align_corners else max((i + 0.5) * by - 0.5, 0)
        rows.append([(math.floor(x), 1 - x % 1), (math.floor(x) + 1, x % 1)])
    return weights(size, rows)


def cubic_weight(distance, a):
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0


def cubic(size, out, scale, align_corners):
    rows = []
    for i in range(out):
        by = step(size, out, scale, align_corners)
        x = i * by if align_corners else (i + 0.5) * by - 0.5
        rows.append([(j, cubic_weight(x - j, -0.75)) for j in range(math.floor(x) - 1, math.floor(x) + 3)])
    return weights(size, rows)


def antialiased_linear(size, out, scale, align_corners):
    # The triangle is as wide as the step if that is more than an element, as the document's kH and kW imply.
    rows = []
    for i in range(out):
        by = step(size, out, scale, align_corners)
        width, center = max(by, 1), by * (i + 0.5)
        pairs = [(j, max(1 - abs((j + 0.5 - center) / width), 0)) for j in range(size)]
        total = sum(weight for _, weight in pairs)
        rows.append([(j, weight / total) for j, weight in pairs])
    return weights(size, rows)


def antialiased_cubic(size, out, scale, align_corners):
    # As wide as antialiased_linear, for a kernel of 2 elements on both sides.
    rows = []
    for i in range(out):
        by = step(size, out, scale, align_corners)
        pairs = [(j, cubic_weight((j + 0.5 - by * (i + 0.5)) / max(by, 1), -0.5)) for j in range(size)]
        total = sum(weight for _, weight in pairs)
        rows.append([(j, weight / total) for j, weight in pairs])
    return weights(size, rows)


def weights(size, rows):
    """A matrix with weights for elements; those outside are the element at the border."""
    matrix = np.zeros((len(rows), size))
    for row, pairs in zip(matrix, rows, strict=True):
        for place, weight in pairs:
            row[min(max(place, 0), size - 1)] += weight
    return matrix


# ---- Along all dimensions


def matrices(kind, input_size, output_size, align_corners, scales):
    sizes = input_size[-len(output_size) :]
    return [kind(size, out, scale, align_corners) for size, out, scale in zip(sizes, output_size, scales, strict=True)]


def multiplied(images, matrices):
    for i, matrix in enumerate(matrices):
        axis = i - len(matrices)
        images = np.moveaxis(np.tensordot(matrix, images, (1, axis)), 0, axis)
    return images


def forward(kind, self, output_size, align_corners, *scales):
    return multiplied(self, matrices(kind, self.shape, output_size, align_corners, scales))


def backward(kind, grad, output_size, input_size, align_corners, *scales):
    transposed = [matrix.T for matrix in matrices(kind, input_size, output_size, align_corners, scales)]
    return multiplied(grad, transposed)


VALUES = "1.5,-2,3,4.5,-6,7,9,0.5,-8,2.5,11"


# Sizes of inputs and outputs, and scales: the step from an element to the next one is exact in FLOAT.
CENTRES = (
    ((4, 3, 6), (8, 4, 4), (0, 0, 0)),
    ((6, 5, 3), (4, 4, 6), (0, 0, 0)),
    ((4, 6, 3), (9, 3, 7), (2, 0.5, 4)),
)
CORNERS = (((4, 3, 5), (7, 5, 3), (0, 0, 0)), ((5, 7, 4), (3, 4, 5), (2, 2, 2)))


def calls(name, argument="self", out="out", align="", scales="scales"):
    """Larger and smaller images, also with scales."""
    dims = int(next(each for each in name if each.isdigit()))
    names = {1: [scales], 2: ["scalesH", "scalesW"], 3: ["scalesD", "scalesH", "scalesW"]}[dims]
    for sizes, outs, factors in (*CENTRES, *CORNERS):
        size, result = (",".join(map(str, each[:dims])) for each in (sizes, outs))
        options = [f"outputSize=[{result}]"]
        if "Backward" in name:
            options.append(f"inputSize=[2,1,{size}]")
            size, result = result, size
        if align:
            options.append(f"{align}={str((sizes, outs, factors) in CORNERS).lower()}")
        options += [f"{each}={factor}" for each, factor in zip(names, factors[:dims], strict=True)]
        yield f"{name} {argument}=FLOAT[2,1,{size}]:{VALUES} {' '.join(options)} {out}=FLOAT[2,1,{result}]"


@formula(
    *("aclnnUpsampleNearest1dV2", "aclnnUpsampleNearest2dV2", "aclnnUpsampleNearest3d"),
    calls=[
        *calls("aclnnUpsampleNearest1dV2", scales="scaleL"),
        *calls("aclnnUpsampleNearest2dV2"),
        *calls("aclnnUpsampleNearest3d"),
    ],
)
def upsample_nearest(self, output_size, *scales):
    return forward(nearest, self, output_size, False, *scales)


@formula(
    *(f"aclnnUpsampleNearest{dims}dBackward" for dims in (1, 2, 3)),
    calls=[
        *calls("aclnnUpsampleNearest1dBackward", "gradOut"),
        *calls("aclnnUpsampleNearest2dBackward", "gradOut", "gradInput"),
        *calls("aclnnUpsampleNearest3dBackward", "gradOut", "gradInput"),
    ],
)
def upsample_nearest_backward(grad, output_size, input_size, *scales):
    return backward(nearest, grad, output_size, input_size, False, *scales)


@formula(
    *(f"aclnnUpsampleNearestExact{dims}d" for dims in (1, 2, 3)),
    calls=[call for dims in (1, 2, 3) for call in calls(f"aclnnUpsampleNearestExact{dims}d")],
)
def upsample_nearest_exact(self, output_size, *scales):
    return forward(nearest_exact, self, output_size, False, *scales)


@formula(
    *(f"aclnnUpsampleNearestExact{dims}dBackward" for dims in (1, 2, 3)),
    calls=[
        *calls("aclnnUpsampleNearestExact1dBackward", "gradOut"),
        *calls("aclnnUpsampleNearestExact2dBackward", "gradOut", "gradInput"),
        *calls("aclnnUpsampleNearestExact3dBackward", "gradOut", "gradInput"),
    ],
)
def upsample_nearest_exact_backward(grad, output_size, input_size, *scales):
    return backward(nearest_exact, grad, output_size, input_size, False, *scales)


LINEAR = ("aclnnUpsampleLinear1d", "aclnnUpsampleBilinear2d", "aclnnUpsampleTrilinear3d")


@formula(*LINEAR, calls=[call for name in LINEAR for call in calls(name, align="alignCorners")])
def upsample_linear(self, output_size, align_corners, *scales):
    return forward(linear, self, output_size, align_corners, *scales)


@formula(
    *("aclnnUpsampleLinear1dBackward", "aclnnUpsampleBilinear2dBackwardV2", "aclnnUpsampleTrilinear3dBackward"),
    "aclnnUpsampleBilinear2dBackward",
    calls=[
        "aclnnUpsampleBilinear2dBackward "
        "gradOut=DOUBLE[1,2,3,5]:0.75,1.25,-2.0,1.25,-0.25,0.0,0.5,-1.0,2.0,-2.0,-1.0,-0.5,0.25,-0.5,-1.5,-2.0,"
        "-2.0,-2.0,-1.5,2.0,-1.25,0.75,1.0,-1.25,-1.0,-0.25,-1.0,2.0,-1.25,1.75 "
        "outputSize=[3,5] inputSize=[1,2,6,8] alignCorners=true scalesH=0.0 scalesW=0.0 "
        "out=DOUBLE[1,2,6,8]",
        "aclnnUpsampleBilinear2dBackward "
        "gradOut=DOUBLE[1,2,3,5]:0.75,1.25,-2.0,1.25,-0.25,0.0,0.5,-1.0,2.0,-2.0,-1.0,-0.5,0.25,-0.5,-1.5,-2.0,"
        "-2.0,-2.0,-1.5,2.0,-1.25,0.75,1.0,-1.25,-1.0,-0.25,-1.0,2.0,-1.25,1.75 "
        "outputSize=[3,5] inputSize=[1,2,6,8] alignCorners=false scalesH=0.5 scalesW=0.0 "
        "out=DOUBLE[1,2,6,8]",
        "aclnnUpsampleBilinear2dBackward "
        "gradOut=DOUBLE[1,2,3,5]:0.75,1.25,-2.0,1.25,-0.25,0.0,0.5,-1.0,2.0,-2.0,-1.0,-0.5,0.25,-0.5,-1.5,-2.0,"
        "-2.0,-2.0,-1.5,2.0,-1.25,0.75,1.0,-1.25,-1.0,-0.25,-1.0,2.0,-1.25,1.75 "
        "outputSize=[3,5] inputSize=[1,2,6,8] alignCorners=false scalesH=0.0 scalesW=0.0 "
        "out=DOUBLE[1,2,6,8]",
        *calls("aclnnUpsampleLinear1dBackward", "gradOut", align="alignCorners"),
        *calls("aclnnUpsampleBilinear2dBackwardV2", "gradOut", align="alignCorners"),
        *calls("aclnnUpsampleTrilinear3dBackward", "gradOut", "gradInput", align="alignCorners"),
    ],
)
def upsample_linear_backward(grad, output_size, input_size, align_corners, *scales):
    return backward(linear, grad, output_size, input_size, align_corners, *scales)


@formula("aclnnUpsampleBicubic2d", calls=[*calls("aclnnUpsampleBicubic2d", align="alignCorners")])
def upsample_bicubic(self, output_size, align_corners, *scales):
    return forward(cubic, self, output_size, align_corners, *scales)


@formula(
    "aclnnUpsampleBicubic2dBackward",
    calls=[*calls("aclnnUpsampleBicubic2dBackward", "gradOut", "gradInput", align="alignCorners")],
    error=3.9e-6,  # positions, and cubic functions of them with terms of both signs, are rounded to FLOAT
)
def upsample_bicubic_backward(grad, output_size, input_size, align_corners, *scales):
    return backward(cubic, grad, output_size, input_size, align_corners, *scales)


@formula(
    "aclnnUpsampleBilinear2dAA", calls=[*calls("aclnnUpsampleBilinear2dAA", "input", "output", align="alignCorners")]
)
def upsample_antialiased(self, output_size, align_corners, *scales):
    return forward(antialiased_linear, self, output_size, align_corners, *scales)


@formula(
    "aclnnUpsampleBilinear2dAABackward",
    calls=[*calls("aclnnUpsampleBilinear2dAABackward", "gradOutput", "gradInput", align="alignCorners")],
)
def upsample_antialiased_backward(grad, output_size, input_size, align_corners, *scales):
    return backward(antialiased_linear, grad, output_size, input_size, align_corners, *scales)


# ops-cv: aclnnUpsampleNearest1d.md, aclnnUpsampleNearest2d.md.
@formula(
    "aclnnUpsampleNearest1d",
    "aclnnUpsampleNearest2d",
    calls=[
        f"aclnnUpsampleNearest1d self=FLOAT[2,1,3]:{VALUES} outputSize=[5] out=FLOAT[2,1,5]",
        "aclnnUpsampleNearest1d self=UINT8[2,1,4]:1,2,3,4,5,6,7,8 outputSize=[2] out=UINT8[2,1,2]",
        f"aclnnUpsampleNearest2d self=FLOAT[2,1,2,2]:{VALUES} outputSize=[3,1] out=FLOAT[2,1,3,1]",
    ],
)
def upsample_nearest_by_size(self, output_size):
    return forward(nearest, self, output_size, False, *[0] * len(output_size))


OF_CUBIC_AA = (
    ("6,4", "3,8", "false", "0.0", "0.0"),
    ("5,4", "3,7", "true", "0.0", "0.0"),
    ("6,4", "3,2", "false", "0.5", "0.5"),
)


# ops-cv: aclnnUpsampleBicubic2dAA.md.
@formula(
    "aclnnUpsampleBicubic2dAA",
    calls=[
        f"aclnnUpsampleBicubic2dAA x={positive(f'1,2,{size}', 1, dtype)} outputSize=[{out}] alignCorners={corners} "
        f"scalesH={scale_h} scalesW={scale_w} out={dtype}[1,2,{out}]"
        for dtype in ("DOUBLE", "FLOAT")
        for size, out, corners, scale_h, scale_w in OF_CUBIC_AA
    ],
    error=2e-6,  # sums with weights in FLOAT
)
def upsample_bicubic_2d_aa(self, output_size, align_corners, *scales):
    return forward(antialiased_cubic, self, output_size, align_corners, *scales)


# ops-cv: aclnnUpsampleBicubic2dAAGrad.md.
@formula(
    "aclnnUpsampleBicubic2dAAGrad",
    calls=[
        f"aclnnUpsampleBicubic2dAAGrad gradOutput={positive(f'1,2,{out}', 1, dtype)} outputSize=[{out}] "
        f"inputSize=[1,2,{size}] alignCorners={corners} scalesH={scale_h} scalesW={scale_w} out={dtype}[1,2,{size}]"
        for dtype in ("DOUBLE", "FLOAT")
        for size, out, corners, scale_h, scale_w in OF_CUBIC_AA
    ],
    error=2e-6,  # as above
)
def upsample_bicubic_2d_aa_grad(grad, output_size, input_size, align_corners, *scales):
    return backward(antialiased_cubic, grad, output_size, input_size, align_corners, *scales)
