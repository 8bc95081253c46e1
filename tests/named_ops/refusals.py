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


def _emulated() -> Iterator[Refusal]:
    """Attributes and values that CANN has, or may have, and the host CANN does not emulate."""
    x = _ones(1, 2, 4, 4)
    volume, alone = x[None], "which alone the host CANN emulates"
    yield Refusal(
        "Mish", [x], [x], "the host CANN does not know attribute approximate of this operator", {"approximate": "tanh"}
    )
    yield Refusal("MaxPool3D", [volume], [volume], f"attribute padding is not CALCULATED, {alone}", {"padding": "SAME"})
    yield Refusal(
        "MaxPool3D", [volume], [volume], f"attribute data_format is absent; set it to NCDHW, {alone}",
        {"padding": "CALCULATED"},
    )  # fmt: skip
    yield Refusal(
        "Conv2D", [_ones(1, 1, 2, 2), _ones(1, 1, 2)], [_ones(1)],
        f"attribute data_format is absent; set it to NCHW, {alone}",
    )  # fmt: skip
    yield Refusal("AvgPoolV2", [x], [x], f"attribute global_pooling is not false, {alone}", {"global_pooling": True})
    for attributes, text in (
        ({"mode": "cubic", "cubic_coeff_a": -0.5}, f"attribute cubic_coeff_a is not -0.75, {alone}"),
        ({"mode": "nearest"}, 'nearest_mode is "round_prefer_floor", expected "floor"'),
        (
            {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
            'coordinate_transformation_mode is "asymmetric", expected "half_pixel", "pytorch_half_pixel" or "ali',
        ),
        ({"mode": 1}, "attribute mode is a number or a list, expected a text"),
    ):
        yield Refusal("ResizeD", [x], [x], text, attributes)
    yield Refusal("ReduceMeanD", [x], [x], "attribute axes is a number or a text, expected a list", {"axes": "all"})
    yield Refusal("ReduceMeanD", [x], [x], "axes has 1e+30, expected integers", {"axes": [1e30]})
    yield Refusal(
        "ReduceSum", [x, _host(0.7)], [x],
        "the values of an input in host memory are of dtype FLOAT, expected integers",
    )  # fmt: skip
    yield Refusal(
        "ReduceSum", [_ones(*[1] * 9), Host.ints(0)], [_ones(*[1] * 8)], "x has 9 dimensions, expected at most 8"
    )
    yield Refusal("Range", [_host(math.nan), _host(1), _host(1)], [_ints(1)], "start has nan, expected integers")
    yield Refusal(
        "OneHot",
        [_ones(3), Host.ints(2), _ones(), _ones()],
        [_ones(3, 2)],
        "x has dtype FLOAT, expected INT32 or INT64",
    )
    box = _ones(1, 1, 5)
    for attribute, first, second in (("v_threshold", 0.5, 0), ("e_threshold", 0, 0.5)):
        yield Refusal(
            "RotatedIou", [box, box], [_ones(1, 1, 1)], f"v_threshold is {first} and e_threshold {second}, expected 0",
            {attribute: 0.5},
        )  # fmt: skip
    for flags, attributes, text in (
        (4, {"featmap_size": [2**31 - 1] * 2, "strides": [1, 1]}, "4 elements, expected 2147483647 * 2147483647 * 1"),
        (5, {"featmap_size": [2, 2], "strides": [1, 1]}, "5 elements, expected 2 * 2 * 1"),
    ):
        yield Refusal("AnchorResponseFlags", [_ones(1, 4)], [_bytes(flags)], f"flags has {text}", attributes)
    yield Refusal(
        "AsStrided", [x, Host.ints(2), Host.ints(1), Host.ints(0)], [_ints(2)], "y has dtype INT32, expected FLOAT"
    )
    yield Refusal(
        "DropoutWithMulsAndSoftmaxGrad", [x, x.byte(), x], [x], "axes has 2 numbers, expected one", {"axes": [2, 3]}
    )


def _misfits() -> Iterator[Refusal]:
    """Shapes that do not fit together."""
    x, wider = _ones(1, 2, 4, 4), _ones(9, 2, 4, 4)
    says = "the arguments do not fit together: {}; ATen, which computes it, says: "
    yield Refusal(
        "MatMul", [X, X], [X], says.format("x1 FLOAT [2, 3], x2 FLOAT [2, 3], y FLOAT [2, 3]") + "mat1 and mat2 shapes"
    )
    yield Refusal(
        "ReduceSum",
        [_ones(3), Host.ints(5)],
        [_ones()],
        says.format("x FLOAT [3], y FLOAT []") + "Dimension out of range",
    )
    yield Refusal(
        "Slice",
        [_ones(3), Host.ints(2), Host.ints(2)],
        [_ones(2)],
        says.format("x FLOAT [3], y FLOAT [2]") + "start (2)",
    )
    yield Refusal(
        "GatherV2", [_ones(3), torch.tensor([3]), Host.ints(0)], [_ones(1)],
        "indices has values from 3 to 3, expected -3 to 2", status=AICORE_EXCEPTION,
    )  # fmt: skip
    planes = "has shape [1, 2, {}4, 4], expected [9, 2] in the leading dimensions"
    pool: dict[str, Attribute] = {"ksize": [1] * 4, "strides": [1] * 4, "pads": [0] * 4}
    pool3: dict[str, Attribute] = {"ksize": [1] * 3, "strides": [1] * 3, "pads": [0] * 6, "data_format": "NCDHW"}
    yield Refusal("AvgPoolV2Grad", [Host.ints(9, 2, 4, 4), x], [wider], "input_grad " + planes.format(""), pool)
    yield Refusal(
        "AdaptiveAvgPool2dGrad", [x], [wider], "input_grad " + planes.format(""), {"orig_input_shape": [9, 2, 4, 4]}
    )
    yield Refusal(
        "AvgPool3DGrad",
        [Host.ints(9, 2, 1, 4, 4), x[:, :, None]],
        [wider[:, :, None]],
        "grads " + planes.format("1, "),
        pool3,
    )
    yield Refusal(
        "MaxPool3DGrad", [wider[:, :, None], x[:, :, None], x[:, :, None]], [wider[:, :, None]],
        "grads " + planes.format("1, "), {**pool3, "padding": "CALCULATED"},
    )  # fmt: skip
    # What repeats a shape.
    yield Refusal(
        "ResizeNearestNeighborV2", [x, Host.ints(4, 5)], [x], "size is [4, 5], expected [4, 4], as the shape of y is"
    )
    yield Refusal(
        "UpsampleNearest3d", [x[None]], [x[None]], "output_size is [1, 4, 4], expected [2, 4, 4], as the shape of y is",
        {"output_size": [1, 4, 4]},
    )  # fmt: skip
    yield Refusal("Fill", [Host.ints(2, 2), _ones()], [_ones(4)], "dims is [2, 2], expected [4], as the shape of y is")
    yield Refusal(
        "PadV3Grad", [x, Host.ints(0, 0, 0, 0, 1, 1, 1, 1)], [wider[:, :, :2, :2].contiguous()],
        "x has shape [1, 2, 4, 4], expected [9, 2] in the dimensions that are not padded",
    )  # fmt: skip
    boxes, align = torch.tensor([[0, 0, 0, 3, 3.0]]), {"pooled_height": 2, "pooled_width": 2}
    yield Refusal(
        "ROIAlign", [x[:, :, :0], boxes], [_ones(1, 2, 2, 2)],
        "features has shape [1, 2, 0, 4], expected no 0 but for the channels", {**align}, AICORE_EXCEPTION,
    )  # fmt: skip
    yield Refusal(
        "ROIAlign", [x, boxes], [_ones(1, 2, 2, 2)], "spatial_scale is 0, expected", {**align, "spatial_scale": 0.0}
    )
    yield Refusal(
        "ROIAlign", [x, boxes], [_ones(1, 2, 2, 2)], "sample_num is -1, expected", {**align, "sample_num": -1}
    )
    normed, rows, last = _ones(2, 3, 4), _ones(2, 3, 1), _ones(4)
    of_last = "expected the last dimensions of x, which is [2, 3, 4]"
    for inputs, text in (
        ([normed[:, :2], normed, rows, last], "dy has shape [2, 2, 4], expected [2, 3, 4]"),
        ([normed, normed, rows[:, :2], last], "rstd has shape [2, 2, 1], expected [2, 3, 1]"),
        ([normed, normed, rows, last[:3]], f"gamma has shape [3], {of_last}"),
    ):
        yield Refusal("RmsNormGrad", inputs, [normed, inputs[-1]], text)
    for inputs, text in (
        ([normed[:1], normed, rows, rows, last], "dy has shape [1, 3, 4], expected [2, 3, 4]"),
        ([normed, normed, rows[:1], rows, last], "variance has shape [1, 3, 1], expected [2, 3, 1]"),
        ([normed, normed, rows, rows[:1], last], "mean has shape [1, 3, 1], expected [2, 3, 1]"),
        ([normed, normed, rows, rows, rows], f"gamma has shape [2, 3, 1], {of_last}"),
    ):
        yield Refusal("LayerNormGrad", inputs, [normed, inputs[-1], inputs[-1]], text)


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
        "ellipsis_mask is 1, expected 0, which alone the host CANN emulates", {"ellipsis_mask": 1},
    )  # fmt: skip
    yield Refusal(
        "StridedSlice", [x, Host.ints(0, 0), Host.ints(2, 3), Host.ints(1, 1)], [x],
        "new_axis_mask is 2, expected 0, which alone the host CANN emulates", {"new_axis_mask": 2},
    )  # fmt: skip
    yield Refusal("ConfusionTransposeD", [x], [y], "attribute perm is absent, expected the order of", {"shape": [6]})
    yield Refusal("ConfusionTransposeD", [x], [y], "attribute shape is absent, expected the sizes", {"perm": [0, 1]})
    yield Refusal("Tile", [y, Host.ints(-1)], [y], "multiples is [-1], expected sizes of 0 or more")
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
    # Their sum with the size is the size: INT64 overflows.
    least = -(2**63)
    yield Refusal(
        "MirrorPad", [x, Host.ints(0, 0, least, least)], [x],
        f"paddings is [0, 0, {least}, {least}], expected numbers from -2147483647 to 2147483647",
    )  # fmt: skip
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
    # The last three overflow INT64 as channels: 2^60 * 16 is 2^64.
    for first, second, length in ((0, 3, 1), (2**60, 0, 1), (-1, 0, 1), (1, 0, 2**60), (2**63 - 1, 0, 2)):
        name, offset = ("x2", second) if second else ("x1", first)
        yield Refusal(
            "StrideAdd", [blocks, blocks], [_ones(1, 16, 1, 1)],
            f"{name}_c1_offset is {offset} and c1_len {length}, expected a part of the 3 blocks of 16 channels of ",
            {"x1_c1_offset": first, "x2_c1_offset": second, "c1_len": length},
        )  # fmt: skip
    yield Refusal("StrideAdd", [blocks, blocks], [blocks], "c1_len is -1, expected 0 or more", {"c1_len": -1})
    for name in ("Cumsum", "Cumprod"):
        for attribute in ("exclusive", "reverse"):
            yield Refusal(
                name, [X, Host.ints(1)], [X], f"{attribute} is true, expected false, which alone the host CANN",
                {attribute: True},
            )  # fmt: skip
    yield Refusal("ReduceProd", [X, Host.ints(1, -1)], [_ones()], "axes is [1, -1], expected every axis once")
    yield Refusal("Histogram", [X], [_ones(3)], "bins is 0, expected 1 or more", {"bins": 0})
    yield Refusal("Histogram", [X], [_ones(3)], "y has shape [3], expected [4]", {"bins": 4})
    yield Refusal("Bincount", [_ints(4), Host.ints(2), _ones(3)], [_ones(2)], "weights has shape [3], expected [4]")
    yield Refusal("Bincount", [_ints(4), Host.ints(2), _ones(0)], [_ones(3)], "bins has shape [3], expected [2]")
    targets, none = torch.tensor([0, 3], dtype=torch.int32), {"reduction": "none"}
    yield Refusal(
        "NLLLossGrad", [X, _ones(2), targets, _ones(3), _ones()], [X], "target has values from 0 to 3, expected 0 to 2",
        {**none}, AICORE_EXCEPTION,
    )  # fmt: skip
    yield Refusal(
        "NLLLossGrad", [X, _ones(2), targets, _ones(3), _ones(2)], [X], "total_weight has 2 elements, expected one",
        {**none},
    )  # fmt: skip
    yield Refusal(
        "NLLLossGrad", [X, _ones(2), targets, _ones(3), _ones()], [X], "y_grad has 2 elements, expected one",
        {"reduction": "mean"},
    )  # fmt: skip
    yield Refusal("KLDiv", [one, one], [one], "x has no dimensions, expected a batch", {"reduction": "batchmean"})
    yield Refusal("BinaryCrossEntropyGrad", [X, _ones(3), X], [X], "y has shape [3], expected [2, 3]")
    yield Refusal(
        "BinaryCrossEntropyGrad", [X, X, _ones(3)], [X],
        "grad_output has shape [3], expected one element or [2, 3], the shape of x",
    )  # fmt: skip
    images, scale = _ones(1, 4, 2, 2), _ones(4)
    yield Refusal(
        "GroupNorm", [images, scale, scale], [images, _ones(1, 3), _ones(1, 3)],
        "x has shape [1, 4, 2, 2], expected channels in dimension 1, a multiple of num_groups, 3", {"num_groups": 3},
    )  # fmt: skip
    yield Refusal(
        "GroupNorm", [images, _ones(3), scale], [images, _ones(1, 2), _ones(1, 2)],
        "gamma has shape [3], expected [4]", {"num_groups": 2},
    )  # fmt: skip
    yield Refusal(
        "GroupNorm", [images, scale, _ones(2, 2)], [images, _ones(1, 2), _ones(1, 2)],
        "beta has shape [2, 2], expected [4]", {"num_groups": 2},
    )  # fmt: skip
    for name in ("LayerNorm", "LayerNormV3"):
        statistics, axis = [_ones(2, 1), _ones(2, 1)], {"begin_norm_axis": 1}
        yield Refusal(
            name, [X, _ones(1), _ones(3)], [X, *statistics],
            "gamma has shape [1], expected the last dimensions of x, which is [2, 3]", {**axis},
        )  # fmt: skip
        yield Refusal(name, [X, _ones(3), _ones(1)], [X, *statistics], "beta has shape [1], expected [3]", {**axis})
    yield Refusal(
        "BNInfer", [images, scale, scale, _ones(1, 4, 1, 1), scale], [images],
        "mean has shape [1, 4, 1, 1], expected [4]",
    )  # fmt: skip
    yield Refusal(
        "BNInferGrad", [_ones(4), scale, scale], [_ones(4)],
        "grads has shape [4], expected channels in dimension 1",
    )  # fmt: skip
    yield Refusal("BNTrainingReduce", [_ones(4)], [one, one], "x has shape [4], expected channels in dimension 1")
    yield Refusal(
        "ApplyAdamW", [a, a, a, *[one] * 7, a, None], [_ones(4), _ones(4), _ones(4)],
        "max_grad_norm is absent, expected the largest v so far, as amsgrad is true", {"amsgrad": True},
    )  # fmt: skip
    yield Refusal(
        "ApplyAdamD", [a, a, a, one, one, a, *[one] * 3, a], [_ones(4), _ones(4), _ones(4)],
        "lr has 4 elements, expected one",
    )  # fmt: skip
    number, bins = _ones(1), _ints(4) + 1
    yield Refusal(
        "IFMR", [a, number, number, bins], [_ones(1), _ones(1)],
        "search_range has 1 numbers and search_step is 0.01, expected two finite numbers, at most 65536 positive steps",
        {"search_range": [1.0]},
    )  # fmt: skip
    yield Refusal(
        "IFMR", [a, number, number, bins], [_ones(1), _ones(1)],
        "search_range has 2 numbers and search_step is 1e-06, expected two finite numbers, at most 65536 positive",
        {"search_step": 1e-6},
    )  # fmt: skip
    for given, outputs, text in (
        ([a, _ones(2), number, bins], [_ones(1), _ones(1)], "data_min has 2 elements, expected one"),
        ([a, number, _ones(2), bins], [_ones(1), _ones(1)], "data_max has 2 elements, expected one"),
        ([a, number, number, bins[:0]], [_ones(1), _ones(1)], "cumsum has shape [0], expected elements, a number for"),
        ([a, number, number, bins.float()], [_ones(1), _ones(1)], "cumsum has dtype FLOAT, expected INT32"),
        ([a, number, number, bins.view(2, 2)], [_ones(1), _ones(1)], "cumsum has 2 dimensions, expected 1"),
        ([a, number, number, bins], [_ones(2), _ones(1)], "scale has 2 elements, expected one"),
        ([a, number, number, bins], [_ones(1), _ones(2)], "offset has 2 elements, expected one"),
    ):
        yield Refusal("IFMR", given, outputs, text)
    for attribute in ("min_percentile", "max_percentile"):
        yield Refusal(
            "IFMR", [a, number, number, bins], [_ones(1), _ones(1)], f"{attribute} is 1.5, expected 0 to 1",
            {attribute: 1.5},
        )  # fmt: skip
    yield Refusal("SignBitsPack", [_ones(16)], [_bytes(3, 1)], "size is 3, expected a divisor of 2", {"size": 3})
    yield Refusal("SignBitsUnpack", [_bytes(2)], [_ones(3, 5)], "size is 3, expected a divisor of 16", {"size": 3})
    yield Refusal("SignBitsUnpack", [_bytes(2, 1)], [_ones(1, 16)], "self has 2 dimensions, expected 1", {"size": 1})
    infinity = "Ascend950 is in infinity mode (ACL_RT_OVERFLOW_MODE_INFNAN), in which a device keeps no float status"
    yield Refusal("NPUGetFloatStatusV2", [], [_ones(8)], infinity, product="Ascend950")


def _convolutions() -> Iterator[Refusal]:
    x, filters, size, of_filter = _ones(1, 1, 3, 3), _ones(1, 1, 2, 2), Host.ints(1, 1, 3, 3), Host.ints(1, 1, 2)
    layout: dict[str, Attribute] = {"data_format": "NCHW"}
    uneven: dict[str, Attribute] = {**layout, "pads": [0, 1, 0, 0]}
    yield Refusal("Conv2D", [x, filters], [x], "strides has 2 numbers, expected 4", {**layout, "strides": [1, 1]})
    yield Refusal("Conv2D", [x, filters], [x], "pads has 2 numbers, expected 4", {**layout, "pads": [0, 0]})
    alike = "expected the same numbers, which alone the host CANN emulates in gradients and transposed convolutions"
    pads = f"pads has [0, 0] before the dimensions and [1, 0] after them, {alike}"
    yield Refusal("Conv2DBackpropInput", [size, filters, filters], [x], pads, uneven)
    yield Refusal("Conv2DTranspose", [size, filters, filters], [x], pads, uneven)
    volume, filters3 = x.unsqueeze(2), filters.unsqueeze(2)
    yield Refusal(
        "Conv3DTranspose", [Host.ints(1, 1, 1, 3, 3), filters3, filters3], [volume],
        f"pads has [0, 0, 1] before the dimensions and [0, 0, 0] after them, {alike}",
        {"data_format": "NCDHW", "pads": [0, 0, 0, 0, 1, 0]},
    )  # fmt: skip
    # Ranks and shapes, each with the name of its argument.
    of_filters, misfit = Host.ints(1, 1, 2, 2), "out_backprop has shape [1, 1, 3, 3], expected [1, 1, 2, 2]"
    by_input, by_filter = "DepthwiseConv2DBackpropInput", "DepthwiseConv2DBackpropFilter"
    for name, inputs, output, text in (
        ("Conv2D", [x[0], filters], x, "x has 3 dimensions, expected 4"),
        ("Conv2D", [x, filters[0]], x, "filter has 3 dimensions, expected 4"),
        ("Conv2D", [x, filters], x, "y has shape [1, 1, 3, 3], expected [1, 1, 2, 2]"),
        ("Conv2D", [x, _ones(1, 2, 2, 2)], x, "filter has shape [1, 2, 2, 2], expected filters of the 1 channels of x"),
        ("Conv2D", [filters, _ones(1, 1, 3, 3)], x, "filter has shape [1, 1, 3, 3], expected sizes that, with [1, 1]"),
        ("Conv2DTranspose", [size, filters[0], filters], x, "x has 3 dimensions, expected 4"),
        ("Conv2DTranspose", [size, filters, filters[0]], x, "filter has 3 dimensions, expected 4"),
        ("Conv2DBackpropInput", [size, filters[0], filters], x, "filter has 3 dimensions, expected 4"),
        ("Conv2DBackpropInput", [size, filters, filters[0]], x, "out_backprop has 3 dimensions, expected 4"),
        ("Conv2DBackpropInput", [Host.ints(3, 3), filters, filters], x[0, 0], "y has 2 dimensions, expected 4"),
        ("Conv2DBackpropInput", [size, filters, x], x, misfit),
        ("Conv2DBackpropFilter", [x[0], of_filters, filters], filters, "x has 3 dimensions, expected 4"),
        ("Conv2DBackpropFilter", [x, of_filters, filters[0]], filters, "out_backprop has 3 dimensions, expected 4"),
        ("Conv2DBackpropFilter", [x, Host.ints(2, 2), filters], filters[0, 0], "y has 2 dimensions, expected 4"),
        ("Conv2DBackpropFilter", [x, of_filters, x], filters, misfit),
        ("DepthwiseConv2D", [x, filters[0]], x, "filter has 3 dimensions, expected 4"),
        ("DepthwiseConv2D", [x, _ones(1, 0, 2, 2)], x, "filter has shape [1, 0, 2, 2], expected channels in"),
        (by_input, [size, filters, x], x, misfit),
        (by_input, [Host.ints(3, 3), filters, filters], x[0, 0], "input_grad has 2 dimensions"),
        (by_filter, [x, of_filter, filters], filters, "filter_size has 3 numbers, expected 4"),
        (by_filter, [x, of_filters, filters], _ones(4), "filter_grad has 1 dimensions, expected 4"),
        (by_filter, [x, of_filters, filters], _ones(), "filter_grad has 0 dimensions, expected 4"),
        (by_filter, [x, size, filters], filters, "filter_size is [1, 1, 3, 3], expected [1, 1, 2, 2]"),
        (by_filter, [x, Host.ints(2, 1, 2, 2), filters], _ones(2, 1, 2, 2),
         "filter_grad has shape [2, 1, 2, 2], expected [1, 1, 2, 2] or [1, 1, 2, 2]"),
        (by_filter, [x[:, :0], of_filters, filters], filters, "input has shape [1, 0, 3, 3], expected"),
        (by_filter, [x, of_filters, x], filters, misfit),
        (by_filter, [x[0], of_filters, filters], filters, "input has 3 dimensions, expected 4"),
        (by_filter, [x, of_filters, filters[0]], filters, "out_backprop has 3 dimensions, expected 4"),
    ):  # fmt: skip
        yield Refusal(name, inputs, [output], text, layout)
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
    whole, most = [x, _ones(3), Host.ints(1), Host.ints(1)], "expected at most 2 numbers, as x has dimensions, and a 1"
    for given, text in (
        (
            [x, _ones(2), Host.ints(1, 1), Host.ints(1, 1), index],
            f"indexed_sizes is [1, 1], {most} for each of 1 indices",
        ),
        ([*whole, index, index], f"indexed_sizes is [1], {most} for each of 2 indices"),
        ([x, _ones(2), Host.ints(1, 1, 1), Host.ints(1), *[index] * 3], f"indexed_sizes is [1, 1, 1], {most}"),
        ([x, _ones(2), Host.ints(1, 0, 0), Host.ints(1), index], f"indexed_sizes is [1, 0, 0], {most}"),
        ([x, _ones(3), Host.ints(2), Host.ints(1), index], "indexed_sizes is [2], expected numbers from 0 to 1"),
        ([*whole, _ones(2)], "indices has dtype FLOAT, expected INT64, INT32, BOOL or UINT8"),
        ([x, _ones(3).half(), Host.ints(1), Host.ints(1), index], "value has dtype FLOAT16, expected FLOAT"),
    ):
        yield Refusal("IndexPutV2", given, [x], text)
    yield Refusal("ScatterUpdate", [x, index, _ones(3)], [x], "updates has shape [3], expected [2, 3]")
    yield Refusal("ScatterUpdate", [x, index, x.half()], [x], "updates has dtype FLOAT16, expected FLOAT")
    yield Refusal("ScatterUpdate", [_ones(), index, _ones(2)], [_ones()], "var has no dimensions, expected one or more")
    for name in ("ScatterNdUpdate", "ScatterNdAdd"):
        yield Refusal(name, [x, _ints(2, 1), _ones(3)], [x], "updates has shape [3], expected [2, 3]")
        yield Refusal(name, [x, _ints(2, 1), x.half()], [x], "updates has dtype FLOAT16, expected FLOAT")
    yield Refusal("InplaceIndexAdd", [x, _ints(2, 1), x, None], [x], "indices has 2 dimensions, expected 0 to 1")
    yield Refusal("InplaceIndexAdd", [x, index, x, _ones(2)], [x], "alpha has 2 elements, expected one")
    yield Refusal("IndexFillD", [x, _ones(3), x], [x], "assist1 has shape [3], expected [2, 3]")
    yield Refusal("IndexFillD", [x, x, x.half()], [x], "assist2 has dtype FLOAT16, expected FLOAT")
    yield Refusal("MaskedFill", [x, x, _ones()], [x], "mask has dtype FLOAT, expected BOOL")
    yield Refusal("MaskedScatter", [x, x, x], [x], "mask has dtype FLOAT, expected BOOL")
    yield Refusal("MaskedScatter", [x, x > 0, x.half()], [x], "updates has dtype FLOAT16, expected FLOAT")
    yield Refusal("MaskedSelect", [x, x], [_ones(6)], "mask has dtype FLOAT, expected BOOL")
    hot = [_ones(2, 3)]
    yield Refusal("OneHot", [index, Host.ints(-1), _ones(), _ones()], hot, "depth is -1, expected 0 or more")
    yield Refusal("OneHot", [index, Host.ints(3), _ones(2), _ones()], hot, "on_value has 2 elements, expected one")
    yield Refusal("OneHot", [index, Host.ints(3), _ones(), _ones(2)], hot, "off_value has 2 elements, expected one")
    yield Refusal("OneHot", [index, Host.ints(3), _ones(), _ints()], hot, "off_value has dtype INT32, expected FLOAT")
    yield Refusal("OneHotD", [index, _ones(), _ones()], hot, "attribute depth is absent, expected a number of classes")
    for given, axis, text in (
        ([x, _ints(1, 2), _ints(1, 2), _ones(1).half()], -1, "value has dtype FLOAT16, expected FLOAT"),
        ([x, _ints(1, 2), _ints(1, 2), _ones(1)], 0, "axis is 0, expected -1 or 1, the last dimension of x"),
        ([_ones(), _ints(1, 1), _ints(1, 1), _ones(1)], -1, "x has 0 dimensions, expected 1 to 3"),
        ([_ones(2, 1, 1, 1), _ints(1, 2), _ints(1, 2), _ones(1)], -1, "x has 4 dimensions, expected 1 to 3"),
    ):
        yield Refusal("MaskedFillRange", given, [given[0]], text, {"axis": axis})
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
    for given, outputs, text in (
        ([_ints(), _ones(2), _ones()], [_ints(2), _ints(1)], "iou_threshold has 2 elements, expected one"),
        ([_ones(), _ones(), _ones()], [_ints(2), _ints(1)], "max_output_size has dtype FLOAT, expected INT32"),
        ([_ints(2), _ones(), _ones()], [_ints(2), _ints(1)], "max_output_size has 2 elements, expected one"),
        ([_ints(), _ones(), _ones()], [_ints(2), _ints(2)], "valid_outputs has 2 elements, expected one"),
    ):
        yield Refusal("NonMaxSuppressionV4", [boxes, _ones(2), *given], outputs, text)
    for most in (-1, 3):
        yield Refusal(
            "NonMaxSuppressionV4", [boxes, _ones(2), _ints() + most, _ones(), _ones()], [_ints(2), _ints(1)],
            f"max_output_size is {most}, expected 0 to 2, the size of selected_indices", status=AICORE_EXCEPTION,
        )  # fmt: skip
    turned = [_ones(2, 5), _ones(2)]
    for labels, attributes, text in (
        (_ones(2), {}, "labels has dtype FLOAT, expected INT32 or INT64"),
        (_ints(3), {}, "labels has shape [3], expected [2] or one element"),
        (_ints(2), {"mode": 2}, "mode is 2, expected 0 to 1"),
        (_ints(2), {"max_output_size": -2}, "max_output_size is -2, expected -1 or more"),
    ):
        yield Refusal("RotatedNMS", [*turned, labels], [_ones(2, 5), _ints(2)], text, {**attributes})
    batch, scores = _ones(1, 2, 1, 4), _ones(1, 2, 3)
    results = [_ones(1, 2, 4), _ones(1, 2), _ones(1, 2), _ints(1)]
    name, sizes = "BatchMultiClassNonMaxSuppression", {"max_size_per_class": 2, "max_total_size": 2}
    given = "is given, expected none: the host CANN does not emulate it"
    yield Refusal(name, [batch, scores, _ones(1, 4)], results, f"clip_window {given}", {**sizes})
    yield Refusal(name, [batch, scores, None, _ints(1)], results, f"num_valid_boxes {given}", {**sizes})
    yield Refusal(
        name, [batch, scores], results, "change_coordinate_frame is true, expected false, which alone the host CANN",
        {**sizes, "change_coordinate_frame": True},
    )  # fmt: skip
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
        "PSROIPoolingV2", [x, boxes * math.nan], [pooled],
        "rois has a box with the sides nan, nan, nan and nan, expected finite numbers", {**two}, AICORE_EXCEPTION,
    )  # fmt: skip
    yield Refusal("PSROIPoolingV2", [x[0], boxes], [pooled], "x has 3 dimensions, expected 4", {**two})
    images, offsets = _ones(1, 3, 3, 2), _ones(1, 3, 3, 3)
    sizes: dict[str, Attribute] = {"strides": [1] * 4, "pads": [0] * 4, "ksize": [1, 1], "data_format": "NHWC"}
    for attribute, count in (("strides", 4), ("pads", 4), ("ksize", 2), ("dilations", 4)):
        yield Refusal(
            "DeformableOffsets", [images, offsets], [images], f"{attribute} has 3 numbers, expected {count}",
            {**sizes, attribute: [1, 1, 1]},
        )  # fmt: skip
    for value in (True, False):
        yield Refusal(
            "ResizeBilinearV2", [x, Host.ints(4, 4)], [x],
            f"align_corners and half_pixel_centers are both {str(value).lower()}, expected one to be true",
            {"align_corners": value, "half_pixel_centers": value},
        )  # fmt: skip
    yield Refusal(
        "ResizeGradD", [x], [x], "original_size has 2 numbers, expected 4",
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
    yield Refusal("DropOutDoMaskV3", [X, X, half], [X], "mask has dtype FLOAT, expected UINT8 or BOOL")
    yield Refusal(
        "RandomChoiceWithMask", [X > 0], [_ints(0, 2), X[0, :0] > 0], "count is -1, expected 0 or more", {"count": -1}
    )


def _recurrent() -> Iterator[Refusal]:
    x, state = _ones(2, 1, 3), _ones(2, 1, 2)  # 2 steps of 1 sequence, with a hidden state of 2
    order: dict[str, Attribute] = {"gate_order": "ifjo"}
    lstm, w, outputs = "DynamicRNN", _ones(5, 8), [state] * 8
    for given, text in (
        ([x, w, None, None, _ones(1, 2, 2)], "init_h has shape [1, 2, 2], expected [1, 2] or [1, 1, 2]"),
        ([x, w, None, None, _ones(2, 1)], "init_h has shape [2, 1], expected [1, 2] or [1, 1, 2]"),
        ([x, w, None, None, None, _ones(2)], "init_c has shape [2], expected [1, 2] or [1, 1, 2]"),
        ([x, w, None, _ints(3, 1, 2)], "seq_length has shape [3, 1, 2], expected [2, 1, 2] or [1]"),
        ([x, w, None, _ints(2, 1, 1)], "seq_length has shape [2, 1, 1], expected [2, 1, 2] or [1]"),
        ([x, w, None, _ones(1)], "seq_length has dtype FLOAT, expected INT32 or INT64 where it has the lengths"),
        ([x, w, _ones(1)], "b has shape [1], expected [8]"),
        ([x, w, _ones(2, 4)], "b has shape [2, 4], expected [8]"),
        ([x, _ones(4, 8)], "w has shape [4, 8], expected (5, 8)"),
        ([x, _ones(5, 6)], "w has shape [5, 6], expected (features, 4 * H)"),
        ([x[0], w], "x has 2 dimensions, expected 3"),
    ):
        yield Refusal(lstm, given, outputs, text, order)
    of_x, of_h = w[:3], w[3:]
    yield Refusal("DynamicRNNV2", [x, of_x, of_h, _ones(4)], outputs, "b has shape [4], expected [8]", order)
    # Every sequence is (T, B, H); CANN passes gradients of the last state, or of all.
    h0, sequences = _ones(1, 2), ("h", "c", "dy", "dh", "dc", "i", "j", "f", "o", "tanhc")
    for place, name in enumerate(sequences):
        values: list[Input] = [state] * len(sequences)
        values[place] = _ones(1, 1, 3)
        end = "expected [1, 2], [1, 1, 2] or [2, 1, 2]" if name in ("dh", "dc") else "expected [2, 1, 2]"
        text = f"{name} has shape [1, 1, 3], {end}"
        yield Refusal("DynamicRNNGrad", [x, w, None, state, h0, h0, *values], [w, _ones(8), x, h0, h0], text, order)
        yield Refusal(
            "DynamicRNNV2Grad", [x, of_x, of_h, state, h0, h0, *values], [of_x, of_h, _ones(8), x, h0, h0], text, order
        )
    values = [state] * len(sequences)
    yield Refusal(
        "DynamicRNNGrad", [x, w, None, state, h0, h0, *values], [w, _ones(8), x, _ones(2, 1), h0],
        "dh_prev has shape [2, 1], expected [1, 2] or [1, 1, 2]", order,
    )  # fmt: skip
    yield Refusal(
        "DynamicRNNGrad", [x, w, None, state, h0, h0, *values], [w, _ones(8), x, h0, _ones(2)],
        "dc_prev has shape [2], expected [1, 2] or [1, 1, 2]", order,
    )  # fmt: skip
    yield Refusal(
        "DynamicRNNGrad", [x, w, None, state, _ones(2), h0, *values], [w, _ones(8), x, h0, h0],
        "init_h has shape [2], expected [1, 2] or [1, 1, 2]", order,
    )  # fmt: skip
    yield Refusal(
        "DynamicRNNV2Grad", [_ones(3), of_x, of_h, state, h0, h0, *values], [of_x, of_h, _ones(8), x, h0, h0],
        "x has 1 dimensions, expected 2 to 3", order,
    )  # fmt: skip
    order = {"gate_order": "rzh"}
    wx, wh = _ones(3, 6), _ones(2, 6)
    for given, text in (
        ([None, None, _ints(1)], "seq_length is given, expected none: the host CANN does not emulate it"),
        ([_ones(1), None], "bias_input has shape [1], expected [6]"),
        ([None, _ones(2, 3)], "bias_hidden has shape [2, 3], expected [6]"),
    ):
        yield Refusal("DynamicGRUV2", [x, wx, wh, *given], [state] * 6, text, order)
    of_gru = ("h", "dy", "dh", "update", "reset", "new", "hidden_new")
    results = [wx, wh, _ones(6), _ones(6), x, h0]
    for place, name in enumerate(of_gru):
        values = [state] * len(of_gru)
        values[place] = _ones(1, 1, 3)
        end = "expected [1, 2], [1, 1, 2] or [2, 1, 2]" if name == "dh" else "expected [2, 1, 2]"
        yield Refusal(
            "DynamicGRUV2Grad", [x, wx, wh, state, h0, *values], results, f"{name} has shape [1, 1, 3], {end}", order
        )
    values = [state] * len(of_gru)
    yield Refusal(
        "DynamicGRUV2Grad", [x, wx, wh, state, h0, *values], results,
        "direction is REDIRECTIONAL, expected UNIDIRECTIONAL", {**order, "direction": "REDIRECTIONAL"},
    )  # fmt: skip
    yield Refusal(
        "DynamicGRUV2Grad", [x, wx, wh, state, h0, *values], [*results[:5], _ones(2)],
        "dh_prev has shape [2], expected [1, 2] or [1, 1, 2]", order,
    )  # fmt: skip


def refusals() -> list[Refusal]:
    families = (
        _arguments, _emulated, _misfits, _moved, _computed, _convolutions, _indexed, _boxes, _regions, _random,
        _recurrent,
    )  # fmt: skip
    return [refusal for family in families for refusal in family()]
