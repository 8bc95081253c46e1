from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed, whole
from tests.aten_ops.formulas import formula


@formula(
    "aclnnBackgroundReplace",
    calls=[
        "aclnnBackgroundReplace "
        "bkg=UINT8[4,5,3]:224,117,16,109,42,97,132,170,34,250,240,180,249,131,217,75,113,240,86,157,212,218,5,"
        "141,62,69,91,204,63,249,71,92,173,200,12,97,198,204,36,50,166,185,20,235,243,84,36,9,80,240,30,143,125,"
        "61,15,10,31,88,232,145 "
        "src=UINT8[4,5,3]:98,131,165,80,11,157,179,197,189,103,87,185,80,240,203,25,74,53,116,163,208,185,135,"
        "224,84,81,129,210,219,251,242,36,157,240,28,223,7,78,23,157,198,157,87,31,105,95,179,86,15,199,80,246,"
        "18,12,45,212,160,153,151,189 "
        "mask=FLOAT16[4,5,1]:0.875,0.75,0.5,0.875,0.875,0.75,0.5,0.375,0.0,1.0,0.5,0.25,1.0,0.875,0.25,0.625,0.0,"
        "0.0,0.25,0.5 "
        "out=UINT8[4,5,3]",
        "aclnnBackgroundReplace bkg=UINT8[4,2]:0,1,2,3,4,5,6,7 src=UINT8[4,2]:1,2,3,4,5,6,7,8 "
        "mask=FLOAT16[4,2]:1 out=UINT8[4,2]",
        "aclnnBackgroundReplace bkg=FLOAT16[2,2,3]:1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11,-12 src=FLOAT16[2,2,3]:7,5,-3"
        " mask=FLOAT16[2,2,1]:0,0.25,0.625,1 out=FLOAT16[2,2,3]",
        "aclnnBackgroundReplace bkg=UINT8[2,2,3]:10,200,35,4,50,61,255,8,91,100,11,0 src=UINT8[2,2,3]:7,255,130,19"
        " mask=FLOAT16[2,2,1]:0,0.25,0.625,1 out=UINT8[2,2,3]",
    ],
)
def background_replace(background, image, mask):
    result = background * (1 - mask) + image * mask
    return np.rint(result) if background.dtype == np.int64 else result


# The quotient is rounded to the nearest number (ops-cv: aclnnBlendImagesCustom.md).
@formula(
    "aclnnBlendImagesCustom",
    calls=[
        f"aclnnBlendImagesCustom rgb={whole('2,3,3', 1, 251, 'UINT8')} alpha=UINT8[2,3,1]:0,255,36,208,127,169 "
        f"frame={whole('2,3,3', 2, 251, 'UINT8')} out=UINT8[2,3,3]"
    ],
)
def blend_images(rgb, alpha, frame):
    return np.rint(rgb * (alpha / 255) + frame * (1 - alpha / 255))


# The quotient is rounded down (ops-cv: aclnnMrgbaCustom.md).
@formula(
    "aclnnMrgbaCustom",
    calls=[
        f"aclnnMrgbaCustom rgb={whole('2,3,3', 1, 251, 'UINT8')} alpha=UINT8[2,3,1]:0,255,36,208,127,169 "
        "out=UINT8[2,3,3]"
    ],
)
def mrgba(rgb, alpha):
    return rgb * alpha // 255


# The fixed kernels of OpenCV, which apply where there is no deviation.
KERNELS = {
    1: [1],
    3: [1, 2, 1],
    5: [1, 4, 6, 4, 1],
    7: [8, 28, 56, 72, 56, 28, 8],
    9: [4, 13, 30, 51, 60, 51, 30, 13, 4],
}
BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}


def gaussian(size, sigma):
    """Weights that sum to 1, as OpenCV's getGaussianKernel; a size of 0 is 4 deviations on both sides."""
    size = size or round(8 * sigma + 1) | 1
    if sigma > 0 or size not in KERNELS:
        sigma = sigma if sigma > 0 else 0.3 * ((size - 1) / 2 - 1) + 0.8
        weights = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    else:
        weights = np.array(KERNELS[size])
    return weights / weights.sum()


# ops-cv: aclnnGaussianBlur.md, which is OpenCV's GaussianBlur for images in FLOAT. ksize is width, height.
@formula(
    "aclnnGaussianBlur",
    calls=[
        *(
            f"aclnnGaussianBlur src={positive('6,5,2', 1)} ksize=[5,3] sigmaX=1.25 sigmaY={sigma} borderType={border} "
            "dst=FLOAT[6,5,2]"
            for border in BORDERS
            for sigma in (0.0, -1.0)
        ),
        f"aclnnGaussianBlur src={positive('4,3', 1)} ksize=[0,7] sigmaX=2.5 sigmaY=2.0 borderType=4 dst=FLOAT[4,3]",
        *(
            f"aclnnGaussianBlur src={positive('4,3', 2)} ksize=[{width},{height}] sigmaX=0.0 sigmaY=0.0 borderType=1 "
            "dst=FLOAT[4,3]"
            for width, height in ((3, 7), (1, 5), (9, 11))
        ),
    ],
)
def gaussian_blur(image, sizes, sigma_x, sigma_y, border):
    for dim, size, sigma in ((1, sizes[0], sigma_x), (0, sizes[1], sigma_y if sigma_y > 0 else sigma_x)):
        weights = gaussian(size, sigma)
        beside = [(0, 0)] * image.ndim
        beside[dim] = (len(weights) // 2,) * 2
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, beside, BORDERS[border]), len(weights), dim)
        image = windows @ weights
    return image


# Two pixels in a row share the U and V of the first: the first one is stored with U, the second with V (ops-cv:
# aclnnRgb2yuv422.md, whose packing is YUYV). Bytes are rounded to the nearest number.
YUV = np.array([[0.299, 0.587, 0.114], [-0.16874, -0.33126, 0.5], [0.5, -0.41869, -0.08131]])


@formula(
    "aclnnRgb2yuv422",
    calls=[
        f'aclnnRgb2yuv422 x={signed("2,3,3,5", 1)} dataFormatOptional="NCHW" out=FLOAT[2,2,3,5]',
        f'aclnnRgb2yuv422 x={signed("2,2,5,3", 2)} dataFormatOptional="NHWC" out=FLOAT[2,2,5,2]',
        f"aclnnRgb2yuv422 x={signed('2,4,3', 2)} dataFormatOptional=null out=FLOAT[2,4,2]",
        f'aclnnRgb2yuv422 x={whole("3,4,3", 1, 251, "UINT8").replace(":", ":0,0,255,")} dataFormatOptional="NHWC" '
        "out=UINT8[3,4,2]",
    ],
)
def rgb2yuv422(x, data_format):
    channel = -3 if data_format == "NCHW" else -1
    yuv = np.moveaxis(x, channel, -1) @ YUV.T + [0, *((128, 128) if x.dtype == np.int64 else (0, 0))]
    chroma = yuv[..., 1].copy()
    chroma[..., 1::2] = yuv[..., :-1:2, 2]
    result = np.moveaxis(np.stack([yuv[..., 0], chroma], -1), -1, channel)
    return np.minimum(np.rint(result), 255) if x.dtype == np.int64 else result


def resized(image, dim, scale, mode):
    size = image.shape[dim]
    out = int(np.floor(size * scale))
    if mode == "nearest":
        return image.take(np.arange(out) * size // out, dim)
    places = np.maximum((np.arange(out) + 0.5) * size / out - 0.5, 0)
    before = places.astype(int)
    share = (places - before).reshape([-1 if i == dim else 1 for i in range(image.ndim)])
    return image.take(before, dim) * (1 - share) + image.take(np.minimum(before + 1, size - 1), dim) * share


# ops-cv: aclnnResize.md. Bilinear mode samples at the centres of pixels, nearest mode takes the element before.
@formula(
    "aclnnResize",
    calls=[
        *(
            f'aclnnResize self={positive("2,2,3,4", 1)} scales=[1.0,1.0,{h},{w}] mode="{mode}" out=FLOAT[2,2,{size}]'
            for mode in ("bilinear", "nearest")
            for h, w, size in ((1.5, 0.75, "4,3"), (2.0, 0.5, "6,2"))
        ),
        f'aclnnResize self={positive("1,2,4,3", 2, "FLOAT@NHWC")} scales=[1.0,1.5,0.75,1.0] mode="bilinear" '
        "out=FLOAT@NHWC[1,3,3,3]",
    ],
)
def resize(image, scales, mode):
    for dim, scale in enumerate(scales):
        if scale != 1:
            image = resized(image, dim, scale, mode)
    return image
