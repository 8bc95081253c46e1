"""Pooling with a padding for each side.

ops-nn: aclnnMaxPool.md, aclnnMaxPoolV3.md, aclnnMaxPool3D.md, aclnnMaxPoolingGrad.md, aclnnAveragePoolingGrad.md.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula


def windows(size, kernel, stride, before, after, ceil, dilation=1):
    """The elements of each window in one direction; the last window starts in the input or the padding before it."""
    count = (size + before + after - dilation * (kernel - 1) - 1) / stride
    count = int(np.ceil(count) if ceil else np.floor(count)) + 1
    if ceil and (count - 1) * stride >= size + before:
        count -= 1
    starts = np.arange(count) * stride - before
    return [[i for i in start + np.arange(kernel) * dilation if 0 <= i < size] for start in starts]


def same_windows(size, kernel, stride, dilation):
    """One window for each stride, with the padding that they need on both sides, at the end if it is odd."""
    padding = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    return windows(size, kernel, stride, padding // 2, padding - padding // 2, False, dilation)


def maxima(x, *directions):
    """The maxima of the windows in the last dimensions. Padding is less than any number."""
    lead = x.shape[: x.ndim - len(directions)]
    results = np.zeros((*lead, *map(len, directions)), x.dtype)
    for places in product(*(range(len(each)) for each in directions)):
        elements = x[(..., *np.ix_(*(each[i] for each, i in zip(directions, places, strict=True))))]
        results[(..., *places)] = elements.max(tuple(range(len(lead), x.ndim)))
    return results


NCDHW = '"NCDHW"'
OF_ALL_SIGNS = ",".join(str(37 * i % 181 - 90) for i in range(60))
NOT_NEGATIVE = ",".join(str(37 * i % 181) for i in range(60))


@formula(
    "aclnnMaxPool",
    calls=[
        f"aclnnMaxPool self={dtype}[2,5,6]:{values} kernelShape=[{kernel}] strides=[{strides}] autoPad=0 pads=[{pads}] "
        f"dilations=[1] ceilMode={ceil} out={dtype}[2,{out}]"
        for dtype, values in (("FLOAT", OF_ALL_SIGNS), ("INT8", OF_ALL_SIGNS), ("UINT16", NOT_NEGATIVE))
        for kernel, strides, pads, ceil, out in (
            ("2,3", "3,2", "1,1", 1, "2,4"),
            ("2", "3", "", 1, "2,2"),
            ("2", "", "", 0, "4,5"),
            ("3,2", "1,2", "1,0", 0, "5,3"),
            ("3,2", "2,1", "0,1", 1, "2,7"),
            ("3,2", "2,2", "1,0,2,1", 0, "3,3"),
            ("3,2", "2,2", "1,0,2,1", 1, "3,3"),
            ("3", "2", "1", 1, "3,4"),
        )
    ],
)
def max_pool(x, kernel, strides, _auto_pad, pads, _dilations, ceil):
    def both(numbers):
        return numbers * 2 if len(numbers) == 1 else numbers

    before, after = (pads[:2], pads[2:]) if len(pads) == 4 else (both(pads or [0]), both(pads or [0]))
    given = (x.shape[-2:], both(kernel), both(strides or [1]), before, after)
    return maxima(x, *(windows(*each, ceil != 0) for each in zip(*given, strict=True)))


@formula(
    "aclnnMaxPoolV3",
    calls=[
        f"aclnnMaxPoolV3 x={signed('2,1,5,4', 1)} ksize=[1,1,3,2] strides=[1,1,2,2] pads=[1,1,0,1] ceilMode=null "
        "out=FLOAT[2,1,3,2]",
        f"aclnnMaxPoolV3 x={signed('2,1,3,5', 2)} ksize=[1,1,2,2] strides=[1,1,2,2] pads=null ceilMode=INT64(1) "
        "out=FLOAT[2,1,2,3]",
        "aclnnMaxPoolV3 x=FLOAT[1,1,2,3]:-5,-1,-7,-2,-4,-3 ksize=[1,1,1,2] strides=[1,1,1,1] pads=[0,0,1,1] "
        "ceilMode=INT64(0) out=FLOAT[1,1,2,4]",
    ],
)
def max_pool_v3(x, kernel, strides, pads, ceil):
    pads = pads or [0] * 4
    return maxima(
        x, *(windows(x.shape[2 + i], kernel[2 + i], strides[2 + i], *pads[2 * i :][:2], bool(ceil)) for i in (0, 1))
    )


@formula(
    "aclnnMaxPool3D",
    calls=[
        f"aclnnMaxPool3D x={signed(shape, 1)} ksize=[{kernel}] strides=[{strides}] padding={padding} "
        f"padsOptional={pads} dilationOptional={dilation} ceilMode={ceil} dataFormatOptional={layout} out=FLOAT[{out}]"
        for shape, kernel, strides, padding, pads, dilation, ceil, layout, out in (
            ("0,1,1,1,5", "1", "1", '"VALID"', "null", "null", 0, NCDHW, "0,1,1,1,5"),
            (
                "1,2,3,4,5",
                "1,1,2,2,2",
                "1,1,2,1,2",
                '"CALCULATED"',
                "[1,0,0,0,1,0]",
                "[1,1,3]",
                0,
                NCDHW,
                "1,2,2,3,2",
            ),
            ("1,2,3,4,5", "2,1,2", "1,2,2", '"SAME"', "[1,1,1,1,1,1]", "[2]", 1, NCDHW, "1,2,3,2,3"),
            ("1,2,3,4,5", "1,2,2", "1,3,2", '"VALID"', "[1,1,1,1,1,1]", "null", 1, NCDHW, "1,2,3,1,2"),
            ("1,2,4,5,3", "1,1,2", "1,1,2", '"CALCULATED"', "null", "[1,1,1,2,1]", 1, "null", "1,2,4,2,3"),
            ("2,3,4,4,3", "1,2,1", "2,2,2", '"CALCULATED"', "[0,1,0,1,0,1]", "[1,1,2,1,1]", 1, '"NDHWC"', "2,2,2,2,3"),
        )
    ],
)
def max_pool_3d(x, kernel, strides, padding, pads, dilation, ceil, layout):
    def spatial(numbers):
        if len(numbers) == 5:
            return numbers[2:] if layout == "NCDHW" else numbers[1:4]
        return numbers if len(numbers) == 3 else numbers * 3

    image = x if layout == "NCDHW" else np.moveaxis(x, -1, 1)
    given = (image.shape[2:], *map(spatial, (kernel, strides, dilation or [1])))
    directions = []
    for i, (size, extent, stride, gap) in enumerate(zip(*given, strict=True)):
        if padding == "SAME":
            directions.append(same_windows(size, extent, stride, gap))
        else:
            calculated = padding == "CALCULATED"
            before, after = pads[2 * i :][:2] if calculated and pads else (0, 0)
            directions.append(windows(size, extent, stride, before, after, calculated and ceil != 0, gap))
    result = maxima(image, *directions) if image.size else np.zeros((*image.shape[:2], *map(len, directions)))
    return result if layout == "NCDHW" else np.moveaxis(result, 1, -1)


@formula(
    "aclnnMaxPoolingGrad",
    calls=[
        "aclnnMaxPoolingGrad dy=FLOAT[2,3]:1,-2,3,4,5,6 x=FLOAT[2,3]:5,6,7,8,1,-2 y=FLOAT[2,3]:5,6,8,8,1,2 "
        "dx=FLOAT[2,3]"
    ],
)
def max_pooling_grad(dy, x, y):
    return np.where(x == y, dy, 0)


# A divisor counts all elements of a window, with countIncludePad also those beyond the padding.
@formula(
    "aclnnAveragePoolingGrad",
    calls=[
        *(
            f"aclnnAveragePoolingGrad origInputShape=[1,1,5,4] gradOutput={positive('1,1,3,2', 1)} kernelH=3 kernelW=2 "
            "strideH=2 strideW=2 padTop=1 padBottom=1 padLeft=0 padRight=1 ceilMode=false "
            f"countIncludePad={counted} divisorOverride={divisor} out=FLOAT[1,1,5,4]"
            for counted, divisor in (("false", 0), ("false", 4), ("true", 0), ("true", 3))
        ),
        *(
            f"aclnnAveragePoolingGrad origInputShape=[2,1,3,4] gradOutput={positive('2,1,2,3', 1)} kernelH=2 kernelW=2 "
            f"strideH=2 strideW=2 padTop=0 padBottom=0 padLeft=1 padRight=0 ceilMode=true countIncludePad={counted} "
            "divisorOverride=0 out=FLOAT[2,1,3,4]"
            for counted in ("false", "true")
        ),
    ],
)
def average_pooling_grad(
    shape, grad, kernel_h, kernel_w, stride_h, stride_w, top, bottom, left, right, ceil, *divisors
):
    counts_padding, divisor = divisors
    result = np.zeros(shape)
    down = windows(shape[2], kernel_h, stride_h, top, bottom, ceil)
    across = windows(shape[3], kernel_w, stride_w, left, right, ceil)
    for (i, ys), (j, xs) in product(enumerate(down), enumerate(across)):
        count = divisor or (kernel_h * kernel_w if counts_padding else len(ys) * len(xs))
        result[(..., *np.ix_(ys, xs))] += grad[..., i, j][..., None, None] / count
    return result
