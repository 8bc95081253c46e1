"""Calls of named operators that their own checks refuse: with the status and the text of the error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tests.cabi import AICORE_EXCEPTION
from tests.named_ops.call import Attribute, Host, Input

INVALID = 100000  # ACL_ERROR_INVALID_PARAM


@dataclass(frozen=True)
class Refusal:
    name: str
    inputs: Sequence[Input]
    outputs: Sequence[Tensor]
    text: str  # what follows the operator's name, or the words "the computation failed" of the stream
    attributes: dict[str, Attribute] = field(default_factory=dict)
    status: int = INVALID  # of the call, or AICORE_EXCEPTION of the stream if values are refused
    product: str = "host"

    @property
    def error(self) -> str:
        failed = "the computation failed: " if self.status == AICORE_EXCEPTION else ""
        return f"aclop {self.name}: {failed}{self.text}"


def _ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


def _ints(*shape: int) -> Tensor:
    """Zeros, which are valid indices."""
    return torch.zeros(shape, dtype=torch.int32)


def _bytes(*shape: int) -> Tensor:
    return _ones(*shape, dtype=torch.uint8)


def _host(value: float) -> Host:
    return Host(torch.tensor([value]))


X = _ones(2, 3)


def _arguments() -> Iterator[Refusal]:
    """The arguments of any operator."""
    string = 13  # ACL_STRING
    two = torch.tensor([0, 1])
    yield Refusal("Slice", [X, None, Host.ints(2, 3)], [X], "offsets is absent, expected values in host memory")
    yield Refusal("Transpose", [X], [X], "perm is absent, expected values in host memory")
    yield Refusal("Transpose", [X, two], [X], "perm is in device memory, expected values in host memory (acl")
    yield Refusal("Transpose", [X, Host(two, dtype=string)], [X], "perm has dtype STRING, which the host CANN does not")
    yield Refusal("Transpose", [X, Host(two, shape=(3,))], [X], "perm has shape [3], but 16 bytes of values")
    yield Refusal("Transpose", [X, Host(two, is_null=True)], [X], "perm has 2 values at a null address")
    yield Refusal("Neg", [X, X], [X], "the call has 2 inputs, expected at most 1")
    yield Refusal("Neg", [X], [X, X], "the call has 2 outputs, expected at most 1")
    yield Refusal("Tril", [X], [X], "attribute diagonal is a text or a list, expected a number", {"diagonal": "main"})
    yield Refusal("Tril", [X], [X], "attribute diagonal is a text or a list, expected a number", {"diagonal": [1]})
    yield Refusal(
        "ReduceMeanD", [X], [X], "attribute axes is a list of lists, which no operator here has", {"axes": [[0], [1]]}
    )


def _moved() -> Iterator[Refusal]:
    x, y = _ones(2, 3), _ones(6)
    yield Refusal(
        "AsStrided", [x, Host.ints(2, 2), Host.ints(1), Host.ints(0)], [_ones(2, 2)],
        "size has 2 numbers and stride 1, expected as many of both",
    )  # fmt: skip
    yield Refusal(
        "StridedSlice", [x, Host.ints(0), Host.ints(1, 2), Host.ints(1)], [x],
        "begin, end and strides have 1, 2 and 1 numbers, expected as many of each, at most 2",
    )  # fmt: skip
    yield Refusal(
        "StridedSlice", [x, Host.ints(0, 0), Host.ints(2, 3), Host.ints(1, 0)], [x],
        "strides[1] is 0, expected 1 or more",
    )  # fmt: skip
    yield Refusal(
        "StridedSlice", [x, Host.ints(0, 0), Host.ints(2, 3), Host.ints(1, 1)], [x],
        "ellipsis_mask or new_axis_mask is not 0, which the host CANN does not emulate", {"ellipsis_mask": 1},
    )  # fmt: skip
    yield Refusal(
        "StridedSlice", [x, Host.ints(0, 0), Host.ints(2, 3), Host.ints(1, 1)], [x],
        "ellipsis_mask or new_axis_mask is not 0, which the host CANN does not emulate", {"new_axis_mask": 2},
    )  # fmt: skip
    yield Refusal("ConfusionTransposeD", [x], [y], "perm or shape is absent, expected both", {"shape": [6]})
    yield Refusal("ConfusionTransposeD", [x], [y], "perm or shape is absent, expected both", {"perm": [0, 1]})
    yield Refusal("Slice", [x, Host.ints(0), Host.ints(2, 3)], [x], "offsets and size have 1 and 2 numbers, expected 2")
    yield Refusal("Slice", [x, Host.ints(0), Host.ints(2)], [x], "offsets and size have 1 and 1 numbers, expected 2")
    yield Refusal("Slice", [x, Host.ints(0, -1), Host.ints(2, 3)], [x], "offsets[1] is -1, expected 0 to 3")
    yield Refusal("Slice", [x, Host.ints(3, 0), Host.ints(0, 3)], [x], "offsets[0] is 3, expected 0 to 2")
    yield Refusal("Fill", [Host.ints(2, 3), _ones(2)], [x], "value has 2 elements, expected one")
    yield Refusal(
        "ShuffleChannel", [_ones(1, 4, 2)], [_ones(1, 4, 2)],
        "x has shape [1, 4, 2], expected channels in dimension 1, a multiple of 3", {"group": 3},
    )  # fmt: skip
    yield Refusal("Pad", [x, Host.ints(0, 1)], [_ones(2, 4)], "paddings has 2 numbers, expected 4")
    grads, shape = _ones(3, 3, 3, 3), _ones(1, 1, 1, 1)
    yield Refusal(
        "PadV3Grad", [grads, Host.ints(*[1] * 8)], [shape], "paddings pads 4 dimensions, expected 1 to 3",
        {"mode": "edge"},
    )  # fmt: skip
    yield Refusal(
        "PadV3Grad", [grads, Host.ints(*[1] * 8)], [shape], "mode is constant, expected edge or reflect",
        {"mode": "constant"},
    )  # fmt: skip


def _computed() -> Iterator[Refusal]:
    a, one = _ones(4), _ones()
    yield Refusal("Pdist", [X], [_ones(1)], "p is -2, expected 0 or more, or -1", {"p": -2.0})
    yield Refusal("LpLoss", [X, X], [X], "p is 2, expected 1", {"p": 2, "reduction": "none"})
    yield Refusal("MatMul", [_ones(3), X], [X], "x1 has shape [3] and x2 [2, 3], expected matrices")
    yield Refusal("MatMulV2", [X, _ones(3, 2)], [_ones(2, 2)], "offset_x is 1, expected 0", {"offset_x": 1})
    yield Refusal(
        "LogAddExp", [X, X], [X],
        "base is 3, scale 1 and shift 0, expected a base of -1 or 2, a scale of 1 and a shift of 0", {"base": 3.0},
    )  # fmt: skip
    yield Refusal("LogAddExp", [X, X], [X], "base is -1, scale 2 and shift 0, expected a base", {"scale": 2.0})
    yield Refusal("LogAddExp", [X, X], [X], "base is -1, scale 1 and shift 4, expected a base", {"shift": 4.0})
    blocks = _ones(1, 40, 1, 1)
    yield Refusal(
        "StrideAdd", [blocks, blocks], [_ones(1, 16, 1, 1)], "x2 has 3 blocks of channels, expected at least 4",
        {"x1_c1_offset": 0, "x2_c1_offset": 3, "c1_len": 1},
    )  # fmt: skip
    for name in ("Cumsum", "Cumprod"):
        for attribute in ("exclusive", "reverse"):
            yield Refusal(
                name, [X, Host.ints(1)], [X], "exclusive or reverse is true, which the host CANN does not emulate",
                {attribute: True},
            )  # fmt: skip
    images, scale = _ones(1, 4, 2, 2), _ones(4)
    yield Refusal(
        "GroupNorm", [images, scale, scale], [images, _ones(1, 3), _ones(1, 3)],
        "x has shape [1, 4, 2, 2], expected channels in dimension 1, a multiple of num_groups, 3", {"num_groups": 3},
    )  # fmt: skip
    yield Refusal(
        "GroupNorm", [images, _ones(3), scale], [images, _ones(1, 2), _ones(1, 2)],
        "x has shape [1, 4, 2, 2], expected 3 channels in dimension 1", {"num_groups": 2},
    )  # fmt: skip
    yield Refusal(
        "ApplyAdamW", [a, a, a, *[one] * 7, a, None], [_ones(4), _ones(4), _ones(4)],
        "amsgrad is true and max_grad_norm is absent", {"amsgrad": True},
    )  # fmt: skip
    yield Refusal(
        "ApplyAdamD", [a, a, a, one, one, a, *[one] * 3, a], [_ones(4), _ones(4), _ones(4)],
        "lr has 4 elements, expected one",
    )  # fmt: skip
    number, bins = _ones(1), _ints(4) + 1
    yield Refusal(
        "IFMR", [a, number, number, bins], [_ones(1), _ones(1)],
        "search_range is not two numbers at most 65536 search_steps apart", {"search_range": [1.0]},
    )  # fmt: skip
    yield Refusal(
        "IFMR", [a, number, number, bins], [_ones(1), _ones(1)],
        "search_range is not two numbers at most 65536 search_steps apart", {"search_step": 1e-6},
    )  # fmt: skip
    yield Refusal(
        "IFMR", [a, _ones(2), number, bins], [_ones(1), _ones(1)],
        "data_min and data_max have 2 and 1 elements and cumsum 4, expected one each, and some bins",
    )  # fmt: skip
    yield Refusal(
        "IFMR", [a, number, number, bins[:0]], [_ones(1), _ones(1)],
        "data_min and data_max have 1 and 1 elements and cumsum 0, expected one each, and some bins",
    )  # fmt: skip
    yield Refusal("SignBitsPack", [_ones(16)], [_bytes(3, 1)], "size is 3, expected a divisor of 2", {"size": 3})
    yield Refusal("SignBitsUnpack", [_bytes(2)], [_ones(3, 5)], "size is 3, expected a divisor of 16", {"size": 3})
    infinity = "Ascend950 is in infinity mode (ACL_RT_OVERFLOW_MODE_INFNAN), in which a device keeps no float status"
    yield Refusal("NPUGetFloatStatusV2", [], [_ones(8)], infinity, product="Ascend950")


def _convolutions() -> Iterator[Refusal]:
    x, filters, size, of_filter = _ones(1, 1, 3, 3), _ones(1, 1, 2, 2), Host.ints(1, 1, 3, 3), Host.ints(1, 1, 2)
    layout: dict[str, Attribute] = {"data_format": "NCHW"}
    uneven: dict[str, Attribute] = {**layout, "pads": [0, 1, 0, 0]}
    yield Refusal("Conv2D", [x, filters], [x], "strides has 2 numbers, expected 4", {**layout, "strides": [1, 1]})
    yield Refusal("Conv2D", [x, filters], [x], "pads has 2 numbers, expected 4", {**layout, "pads": [0, 0]})
    yield Refusal("Conv2DBackpropInput", [size, filters, filters], [x], "pads differ between the two sides of a "
                  "dimension, which the host CANN does not emulate in gradients", uneven)  # fmt: skip
    yield Refusal(
        "Conv2DTranspose", [size, filters, filters], [x], "pads differ between the two sides of a dimension", uneven
    )
    volume, filters3 = x.unsqueeze(2), filters.unsqueeze(2)
    yield Refusal(
        "Conv3DTranspose", [Host.ints(1, 1, 1, 3, 3), filters3, filters3], [volume],
        "pads differ between the two sides of a dimension", {"data_format": "NCDHW", "pads": [0, 0, 0, 0, 1, 0]},
    )  # fmt: skip
    yield Refusal(
        "DepthwiseConv2DBackpropFilter", [x, of_filter, filters], [filters], "filter_size has 3 numbers, expected 4",
        layout,
    )  # fmt: skip
    yield Refusal(
        "AvgPoolV2", [x], [x], "ksize has 2 numbers, expected 4",
        {"ksize": [1, 1], "strides": [1] * 4, "pads": [0] * 4},
    )  # fmt: skip
    yield Refusal("AvgPoolV2", [x], [x], "strides has 0 numbers, expected 4", {"ksize": [1] * 4, "pads": [0] * 4})


def _indexed() -> Iterator[Refusal]:
    x, index = _ones(2, 3), _ints(2)
    yield Refusal(
        "ScatterNdUpdate",
        [x, _ints(1, 3), _ones(1)],
        [x],
        "indices has shape [1, 3], expected a last dimension of 1 to 2",
    )
    yield Refusal(
        "ScatterNdAdd", [x, _ints(), _ones(1)], [x], "indices has shape [], expected a last dimension of 1 to 2"
    )
    yield Refusal(
        "GatherV2", [x, index, Host.ints(0, 1)], [x], "axis has 2 numbers and batch_dims is 0, expected one and 0"
    )
    yield Refusal(
        "GatherV2", [x, index, Host.ints(1)], [x], "axis has 1 numbers and batch_dims is 1, expected one and 0",
        {"batch_dims": 1},
    )  # fmt: skip
    fewer = "indexed_sizes asks for more dimensions than x or indices have"
    yield Refusal("IndexPutV2", [x, _ones(2), Host.ints(1, 1), Host.ints(1, 1), index], [x], fewer)
    yield Refusal("IndexPutV2", [x, _ones(2), Host.ints(1, 1, 1), Host.ints(1), *[index] * 3], [x], fewer)
    yield Refusal(
        "IndexPutV2", [x, x, Host.ints(1), Host.ints(1), _ones(2)], [x],
        "indices have dtype FLOAT, expected integers or BOOL",
    )  # fmt: skip
    yield Refusal(
        "MaskedFillRange", [x, _ints(1, 2), _ints(1, 1), _ones(1)], [x],
        "start has shape [1, 2], end [1, 1] and value [1], expected (N, B) twice and (N)",
    )  # fmt: skip
    yield Refusal(
        "MaskedFillRange", [x, _ints(1, 3), _ints(1, 3), _ones(1)], [x], "start has shape [1, 3], expected (N, 2)"
    )
    yield Refusal(
        "MaskedFillRange", [_ones(3), _ints(1, 3), _ints(1, 3), _ones(1)], [_ones(3)],
        "start has shape [1, 3], expected (N, 1)",
    )  # fmt: skip


def _boxes() -> Iterator[Refusal]:
    boxes, deltas = _ones(2, 4), _ones(2, 4)
    yield Refusal(
        "BoundingBoxEncode", [boxes, deltas], [boxes], "means has 3 numbers, expected 4", {"means": [0.0, 0.0, 0.0]}
    )
    yield Refusal(
        "RotatedBoxEncode", [_ones(1, 4, 2), _ones(1, 4, 2)], [_ones(1, 4, 2)],
        "anchor_box has shape [1, 4, 2], expected (B, 5, N)",
    )  # fmt: skip
    yield Refusal(
        "BoundingBoxDecode", [boxes, deltas], [boxes],
        "max_shape has 1 numbers, expected a height and a width, or none", {"max_shape": [8]},
    )  # fmt: skip
    yield Refusal("Iou", [boxes, boxes], [_ones(2, 2)], "aligned is true, expected false", {"aligned": True})
    columns = _ones(4, 2)
    yield Refusal(
        "GIoU", [_ones(3, 2), columns], [_ones(2, 2)],
        "bboxes has shape [3, 2] and gtboxes [4, 2], expected (4, N) and (4, M)",
    )  # fmt: skip
    yield Refusal(
        "GIoU", [columns, _ones(4, 1)], [_ones(1, 2)],
        "bboxes has 2 boxes and gtboxes 1, expected as many, as is_cross is false", {"is_cross": False},
    )  # fmt: skip
    yield Refusal(
        "GIoUGrad", [_ones(3), columns, columns], [_ones(4, 2), _ones(4, 2)],
        "dy has shape [3], expected 2 elements", {"is_cross": False},
    )  # fmt: skip
    rotated = _ones(1, 5, 2)
    yield Refusal(
        "RotatedOverlaps", [rotated, _ones(2, 5, 3)], [_ones(1, 2, 3)],
        "boxes has shape [1, 5, 2] and query_boxes [2, 5, 3], expected (B, 5, N) and (B, 5, K)",
    )  # fmt: skip
    yield Refusal(
        "RotatedIou", [rotated, rotated], [_ones(1, 2, 2)], "is_cross is false, expected true", {"is_cross": False}
    )
    yield Refusal(
        "RotatedNMS", [_ones(2, 5), _ones(2), torch.tensor([0, 1], dtype=torch.int32)], [_ones(2, 5), _ints(2)],
        "labels has different labels, expected one for all boxes", status=AICORE_EXCEPTION,
    )  # fmt: skip
    yield Refusal(
        "NonMaxSuppressionV4", [boxes, _ones(2), _ints(), _ones(2), _ones()], [_ints(2), _ints(1)],
        "iou_threshold has 2 elements, expected one",
    )  # fmt: skip
    batch, scores = _ones(1, 2, 1, 4), _ones(1, 2, 3)
    results = [_ones(1, 2, 4), _ones(1, 2), _ones(1, 2), _ints(1)]
    name, sizes = "BatchMultiClassNonMaxSuppression", {"max_size_per_class": 2, "max_total_size": 2}
    given = "clip_window, num_valid_boxes or change_coordinate_frame is given, which the host CANN does not emulate"
    yield Refusal(name, [batch, scores, _ones(1, 4)], results, given, {**sizes})
    yield Refusal(name, [batch, scores, None, _ints(1)], results, given, {**sizes})
    yield Refusal(name, [batch, scores], results, given, {**sizes, "change_coordinate_frame": True})
    yield Refusal(
        name, [_ones(1, 2, 2, 4), scores], results,
        "boxes has shape [1, 2, 2, 4], expected (B, N, 1 or C, 4) for scores of shape [1, 2, 3]", {**sizes},
    )  # fmt: skip


def _regions() -> Iterator[Refusal]:
    x, boxes, pooled = _ones(1, 4, 4, 4), _ones(1, 5, 2), _ones(2, 1, 2, 2)
    two: dict[str, Attribute] = {"output_dim": 1, "group_size": 2}
    yield Refusal(
        "PSROIPoolingV2", [x, boxes], [pooled], "spatial_scale is 2e+06, expected -1e+06 to 1e+06",
        {**two, "spatial_scale": 2e6},
    )  # fmt: skip
    yield Refusal("PSROIPoolingV2", [x, _ones(2, 5)], [pooled], "rois has shape [2, 5], expected (B, 5, N)", {**two})
    yield Refusal(
        "PSROIPoolingV2", [x, boxes * math.nan], [pooled], "rois has sides that are not finite", {**two},
        AICORE_EXCEPTION,
    )  # fmt: skip
    images, offsets = _ones(1, 3, 3, 2), _ones(1, 3, 3, 3)
    sizes: dict[str, Attribute] = {"strides": [1] * 4, "pads": [0] * 4, "ksize": [1, 1], "data_format": "NHWC"}
    for attribute in ("strides", "pads", "ksize", "dilations"):
        yield Refusal(
            "DeformableOffsets", [images, offsets], [images],
            "strides, pads, ksize or dilations has not 4, 4, 2 and 4 numbers", {**sizes, attribute: [1, 1, 1]},
        )  # fmt: skip
    for value in (True, False):
        yield Refusal(
            "ResizeBilinearV2", [x, Host.ints(4, 4)], [x],
            f"align_corners and half_pixel_centers are both {str(value).lower()}, expected one to be true",
            {"align_corners": value, "half_pixel_centers": value},
        )  # fmt: skip
    yield Refusal(
        "ResizeGradD", [x], [x], "original_size is not four numbers",
        {"mode": "cubic", "data_format": "HWNC", "original_size": [4, 4]},
    )  # fmt: skip


def _random() -> Iterator[Refusal]:
    half, kept = _host(0.5), _bytes(6)
    yield Refusal("DropOutDoMask", [X, _bytes(16), _host(1.5)], [X], "keep_prob is 1.5, expected 0 to 1")
    yield Refusal("DropOutDoMask", [X, _bytes(16), _host(math.nan)], [X], "keep_prob is nan, expected 0 to 1")
    yield Refusal(
        "DropOutGenMaskV3", [Host.ints(-1, 6), half], [kept],
        "shape is [-1, 6], expected sizes of 0 or more, of at most 2^40 elements",
    )  # fmt: skip
    yield Refusal(
        "DropOutGenMaskV3", [Host.ints(2**21, 2**20), half], [kept],
        "shape is [2097152, 1048576], expected sizes of 0 or more, of at most 2^40 elements",
    )  # fmt: skip
    yield Refusal(
        "DropOutGenMaskV3", [Host.ints(2, 4), half], [kept], "y has 6 bytes, expected 8, one for each element"
    )
    yield Refusal(
        "StatelessDropOutGenMask", [Host.ints(2, 3), half, Host.ints(1), Host.ints(5), Host.ints(0, 0)], [_bytes(16)],
        "seed1 is [5], expected 0: the host CANN draws from seed and offset",
    )  # fmt: skip
    yield Refusal("DropOutDoMaskV3", [X, _bytes(8), half], [X], "mask has 8 bytes, expected 6, one for each element")


def _recurrent() -> Iterator[Refusal]:
    x, state = _ones(2, 1, 3), _ones(2, 1, 2)  # 2 steps of 1 sequence, with a hidden state of 2
    order: dict[str, Attribute] = {"gate_order": "ifjo"}
    lstm, w, outputs = "DynamicRNN", _ones(5, 8), [state] * 8
    yield Refusal(
        lstm, [x, w, None, None, _ones(1, 2, 2), None], outputs, "init_h has shape [1, 2, 2], expected [1, 2]", order
    )
    yield Refusal(
        lstm, [x, w, None, _ints(3, 1, 2)], outputs, "seq_length has shape [3, 1, 2], expected (2, 1, H) or (1)", order
    )
    yield Refusal(lstm, [x, _ones(4, 8)], outputs, "w has shape [4, 8], expected (5, 8)", order)
    yield Refusal(lstm, [x, _ones(5, 6)], outputs, "w has shape [5, 6], expected (features, 4 * H)", order)
    order = {"gate_order": "rzh"}
    wx, wh = _ones(3, 6), _ones(2, 6)
    yield Refusal(
        "DynamicGRUV2", [x, wx, wh, None, None, _ints(1)], [state] * 6,
        "seq_length is given, which the host CANN does not emulate", order,
    )  # fmt: skip
    yield Refusal(
        "DynamicGRUV2Grad", [x, wx, wh, state, _ones(1, 2), *[state] * 2, _ones(1, 2), *[state] * 4],
        [wx, wh, _ones(6), _ones(6), x, _ones(1, 2)], "direction is REDIRECTIONAL, expected UNIDIRECTIONAL",
        {**order, "direction": "REDIRECTIONAL"},
    )  # fmt: skip


def refusals() -> list[Refusal]:
    families = (
        _arguments, _moved, _computed, _convolutions, _indexed, _boxes, _regions, _random, _recurrent,
    )  # fmt: skip
    return [refusal for family in families for refusal in family()]
