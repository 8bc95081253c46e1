"""A tensor declared as NHWC is computed as such, or refused: it is never read as NCHW."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from tests.aten_ops.sweep import LIBRARY, SAMPLES, run_calls
from tests.cabi import PARAM_INVALID, SUCCESS
from tests.published import images, rows

# Functions whose documents list NHWC or NDHWC as formats, in ops-nn, ops-math and ops-cv, with the tensors.
DOCUMENTED = {
    "aclnnAdaptiveMaxPool2d": "self outputOut indicesOut",
    "aclnnBatchNorm": "input output",
    "aclnnBatchNormBackward": "gradOut input gradInput",
    "aclnnGridSampler2D": "input out",
    "aclnnGridSampler3D": "input out",
    "aclnnGridSampler3DBackward": "gradOutput input inputGrad",
    "aclnnMaxPool2dWithIndices": "self out indices",
    "aclnnMaxPool2dWithIndicesBackward": "gradOutput self indices gradInput",
    "aclnnMaxPool3dWithArgmax": "self out indices",
    "aclnnUpsampleBicubic2d": "self out",
    "aclnnUpsampleBicubic2dBackward": "gradOut gradInput",
    "aclnnUpsampleBilinear2d": "self out",
    "aclnnUpsampleBilinear2dBackward": "gradOut out",
    "aclnnUpsampleBilinear2dBackwardV2": "gradOut out",
    "aclnnUpsampleNearest2d": "self out",
    "aclnnUpsampleNearest2dBackward": "gradOut gradInput",
    "aclnnUpsampleNearest2dV2": "self out",
    "aclnnUpsampleNearest3d": "self out",
    "aclnnUpsampleNearest3dBackward": "gradOut gradInput",
    "aclnnUpsampleNearestExact2d": "self out",
    "aclnnUpsampleNearestExact3d": "self out",
    "aclnnUpsampleNearestExact3dBackward": "gradOut gradInput",
    "aclnnUpsampleTrilinear3d": "self out",
    "aclnnUpsampleTrilinear3dBackward": "gradOut gradInput",
}
# Similar functions, whether or not their documents list NHWC.
KIN = re.compile("Pool|Upsample|GridSampler|BatchNorm|GroupNorm|RoiAlign|DeformableConv2d|ConvDepthwise|Im2col")
# Exceptions: functions with an argument for the order, or whose tensors are per channel or flat.
OTHERS = {
    *("aclnnMaxPool3D", "aclnnMaxPoolV3", "aclnnBatchNormGatherStatsWithCounts", "aclnnSyncBatchNormGatherStats"),
}
IMAGES = images(LIBRARY)


def test_images_are_those_of_the_documents() -> None:
    assert {name: set(arguments.split()) - set(IMAGES.get(name, ())) for name, arguments in DOCUMENTED.items()} == {
        name: set() for name in DOCUMENTED
    }


def test_no_kin_is_left_out() -> None:
    assert {name for name in rows(LIBRARY) if KIN.search(name)} - IMAGES.keys() - OTHERS == set()


@functools.cache
def in_nhwc() -> dict[tuple[str, str], str]:
    """Each sample with images, with one of them in NHWC."""
    lines = {}
    for line in SAMPLES.read_text().splitlines():
        name = line.split(" ")[0]
        for argument in IMAGES.get(name, ()):
            described = re.sub(rf"( {argument}=[A-Z]\w*)\[", r"\1@NHWC[", line)
            if described != line:
                lines[name, argument] = described
    return lines


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_in_nhwc_is_refused(name: str) -> None:
    tried = {argument: line for (function, argument), line in in_nhwc().items() if function == name}
    assert tried
    for argument, (stage1, _, text, _) in zip(tried, run_calls(list(tried.values())), strict=True):
        assert (stage1, f"{name}: {argument} has format NHWC, expected ND, NCHW" in text) == (PARAM_INVALID, True), text


# NC has no image dimensions, and functions without them accept NHWC.
@pytest.mark.parametrize("format", ["NC", "NCL", "NCHW", "NHWC", "NCDHW"])
def test_formats_that_are_read_as_nd(format: str) -> None:
    line = f"aclnnAdd self=FLOAT@{format}[1,2]:1,2 other=FLOAT[2]:3,4 alpha=FLOAT(1) out=FLOAT@{format}[1,2]"
    assert run_calls([line]) == [(SUCCESS, SUCCESS, "", [[[4.0, 6.0]]])]


# aclnnResize computes NHWC: two rows of two pixels of two channels, each doubled in width.
def test_nhwc_is_computed_where_it_is_known() -> None:
    resize = (
        'aclnnResize self=FLOAT@NHWC[1,1,2,2]:1,2,3,4 scales=[1.0,1.0,2.0,1.0] mode="nearest" out=FLOAT@NHWC[1,1,4,2]'
    )
    [resized] = run_calls([resize])
    assert resized[:3] == (SUCCESS, SUCCESS, "")
    np.testing.assert_array_equal(resized[3], [[[[[1, 2], [1, 2], [3, 4], [3, 4]]]]])
