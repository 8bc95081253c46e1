"""Pooling and interpolation under torch_npu; csrc/cann/rows/pooling and vision/upsampling.cpp."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from .aten_ops import Case, cases_of, check, errors_are_clean, numbers, with_gradients

LINE = numbers(2, 3, 8)
IMAGE = numbers(2, 3, 8, 6)
VOLUME = numbers(2, 3, 4, 6, 5)
MAX_POOLS = (("MaxPool2dWithMask", "910"), ("MaxPool2dWithIndices", "950"))


def pair(name: str) -> str:
    return f"{name} {name}Backward"


def interpolate(mode: str, **keywords: object) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    return with_gradients(partial(F.interpolate, mode=mode, **keywords))


MODES = [
    ("UpsampleNearest1dV2 UpsampleNearest1dBackward", "nearest", LINE),
    ("UpsampleNearest2dV2 UpsampleNearest2dBackward", "nearest", IMAGE),
    (pair("UpsampleNearest3d"), "nearest", VOLUME),
    (pair("UpsampleNearestExact1d"), "nearest-exact", LINE),
    (pair("UpsampleNearestExact2d"), "nearest-exact", IMAGE),
    (pair("UpsampleNearestExact3d"), "nearest-exact", VOLUME),
    (pair("UpsampleLinear1d"), "linear", LINE),
    ("UpsampleBilinear2d UpsampleBilinear2dBackwardV2", "bilinear", IMAGE),
    (pair("UpsampleBicubic2d"), "bicubic", IMAGE),
    (pair("UpsampleTrilinear3d"), "trilinear", VOLUME),
]

CASES = [
    *(
        Case(pair(name), with_gradients(call), (x.to(dtype),), product=product)
        for name, product in MAX_POOLS
        for dtype in (torch.float, torch.half)
        for call, x in [
            (partial(F.max_pool2d, kernel_size=2), IMAGE),
            (partial(F.max_pool2d, kernel_size=3, stride=2, padding=1, ceil_mode=True), IMAGE),
            (partial(F.max_pool1d, kernel_size=2), LINE),
        ]
    ),
    *(
        Case(functions, with_gradients(call), (x.to(dtype),))
        for dtype in (torch.float, torch.half)
        for functions, call, x in [
            (pair("MaxPool3dWithArgmax"), partial(F.max_pool3d, kernel_size=2), VOLUME),
            (pair("AvgPool2d"), partial(F.avg_pool2d, kernel_size=2), IMAGE),
            (
                pair("AvgPool2d"),
                partial(F.avg_pool2d, kernel_size=3, stride=2, padding=1, count_include_pad=False),
                IMAGE,
            ),
            (pair("AvgPool2d"), partial(F.avg_pool2d, kernel_size=2, divisor_override=3), IMAGE),
            (pair("AvgPool2d"), partial(F.avg_pool1d, kernel_size=2), LINE),
            (pair("AvgPool3d"), partial(F.avg_pool3d, kernel_size=2), VOLUME),
            (pair("AdaptiveAvgPool2d"), partial(F.adaptive_avg_pool2d, output_size=3), IMAGE),
            (pair("AdaptiveAvgPool2d"), partial(F.adaptive_avg_pool1d, output_size=3), LINE),
            (pair("AdaptiveAvgPool3d"), partial(F.adaptive_avg_pool3d, output_size=3), VOLUME),
            (pair("AdaptiveMaxPool2d"), partial(F.adaptive_max_pool2d, output_size=4), IMAGE),
            (pair("AdaptiveMaxPool2d"), partial(F.adaptive_max_pool1d, output_size=4), LINE),
            (pair("AdaptiveMaxPool3d"), partial(F.adaptive_max_pool3d, output_size=2), VOLUME),
        ]
        if not (dtype == torch.half and "3d" in functions)
    ),
    Case("Mean", with_gradients(partial(F.adaptive_avg_pool2d, output_size=1)), (IMAGE,)),
    *(Case(functions, interpolate(mode, scale_factor=2.0), (x,)) for functions, mode, x in MODES),
    *(Case(functions, interpolate(mode, size=[5] * (x.dim() - 2)), (x,)) for functions, mode, x in MODES),
    Case("UpsampleBilinear2d", interpolate("bilinear", scale_factor=1.5, align_corners=True), (IMAGE,)),
    Case("MaxUnpool2d", partial(F.max_unpool2d, kernel_size=2), F.max_pool2d(IMAGE, 2, return_indices=True)),
    Case(pair("UpsampleBilinear2dAA"), interpolate("bilinear", size=(4, 4), antialias=True), (IMAGE,)),
]


@cases_of(CASES)
def test_pooling(case: Case) -> None:
    check(case)


@errors_are_clean
def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)pad|output size|kernel"):
        F.avg_pool2d(IMAGE.npu(), 20)
