"""What is measured, against what, and how good it must be.

A new operator adds a row to KERNELS if it is elementwise, else to LAYERS; everything else follows from the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

import aclnn_torch

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805

# Small enough that only the cost of calling counts, and large enough that only the memory's speed does.
CALL_SHAPE = (16,)
KERNEL_SHAPE = (2**24,)

Shape = tuple[int, ...]

aten = torch.ops.aten


def noise(shape: Shape, dtype: torch.dtype, seed: int) -> Tensor:
    """Makes a tensor of numbers on either side of zero."""
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Kernel:
    """One elementwise operator, with one choice of its numbers."""

    operator: str  # in torch.ops.aclnn; CANN's name in snake_case
    reads: int  # tensors read; one is written
    arguments: Callable[..., tuple[Tensor | float | bool, ...]]  # the operator's and aclnn's, of the tensors read
    peer: torch._ops.OpOverloadPacket  # ATen's operator that computes the same
    peer_arguments: Callable[..., tuple[Tensor | float | bool, ...]]
    out_name: str = "out"  # what the peer calls a tensor to write to
    functions: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] | None = None  # ours and torch's
    variant: str = ""

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.operator}:{self.variant}" if self.variant else self.operator


KERNELS = (
    Kernel(
        "elu",
        reads=1,
        arguments=lambda x: (x, 1.0, 1.0, 1.0),
        peer=aten.elu,
        peer_arguments=lambda x: (x, 1.0, 1.0, 1.0),
        functions=(aclnn_torch.functional.elu, torch.nn.functional.elu),
    ),
    Kernel(
        "elu_backward",
        reads=2,
        arguments=lambda g, x: (g, 1.0, 1.0, 1.0, False, x),
        peer=aten.elu_backward,
        peer_arguments=lambda g, x: (g, 1.0, 1.0, 1.0, False, x),
        out_name="grad_input",
    ),
    Kernel(
        "elu_backward",
        variant="is_result",
        reads=2,
        arguments=lambda g, y: (g, 1.0, 1.0, 1.0, True, y),
        peer=aten.elu_backward,
        peer_arguments=lambda g, y: (g, 1.0, 1.0, 1.0, True, y),
        out_name="grad_input",
    ),
    Kernel(
        "selu",
        reads=1,
        arguments=lambda x: (x,),
        peer=aten.elu,
        peer_arguments=lambda x: (x, SELU_ALPHA, SELU_SCALE, 1.0),
        functions=(aclnn_torch.functional.selu, torch.nn.functional.selu),
    ),
    Kernel(
        "selu_backward",
        reads=2,
        arguments=lambda g, y: (g, y),
        peer=aten.elu_backward,
        peer_arguments=lambda g, y: (g, SELU_ALPHA, SELU_SCALE, 1.0, True, y),
        out_name="grad_input",
    ),
)


@dataclass(frozen=True)
class Layer:
    """One function that is not elementwise, with one choice of its options."""

    function: str  # in aclnn_torch.functional, and in torch.nn.functional
    operators: tuple[str, ...]  # those of torch.ops.aclnn that it runs, forward and backward
    inputs: Callable[[Shape, torch.dtype], tuple[Tensor, ...]]
    call: Callable[..., Tensor]  # of the module that has the function, and of the inputs
    tiny: Shape
    shapes: tuple[Shape, ...]  # realistic ones
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)  # at the realistic shapes; the tiny one is float32
    variant: str = ""

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.function}:{self.variant}" if self.variant else self.function

    @property
    def functions(self) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
        """Ours and torch's."""
        return partial(self.call, aclnn_torch.functional), partial(self.call, torch.nn.functional)


def rows_and_gain(shape: Shape, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """What a normalisation of rows takes."""
    return noise(shape, dtype, 0), noise(shape[-1:], dtype, 1)


def rows_and_labels(shape: Shape, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """What a classification's loss takes."""
    rows, classes = shape
    return noise(shape, dtype, 0), torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(1))


def images_and_filters(
    *kernel: int, depthwise: bool = False, layout: torch.memory_format = torch.contiguous_format
) -> Callable[[Shape, torch.dtype], tuple[Tensor, ...]]:
    """What a convolution with bias takes that keeps the number of channels."""

    def inputs(shape: Shape, dtype: torch.dtype) -> tuple[Tensor, ...]:
        channels = shape[1]
        images = noise(shape, dtype, 0).contiguous(memory_format=layout)
        filters = noise((channels, 1 if depthwise else channels, *kernel), dtype, 1).contiguous(memory_format=layout)
        return images, filters, noise((channels,), dtype, 2)

    return inputs


CONVOLUTION = ("convolution", "convolution_backward")
TINY_IMAGES = (2, 2, 7, 7)
IMAGES = (8, 64, 56, 56)

LAYERS = (
    Layer(
        "rms_norm",
        ("rms_norm", "rms_norm_grad"),
        inputs=rows_and_gain,
        call=lambda F, x, gain: F.rms_norm(x, gain.shape, gain, 1e-6),
        tiny=(2, 8),
        shapes=((4096, 4096), (8192, 1024)),
        dtypes=(torch.float32, torch.bfloat16),
    ),
    Layer(
        "cross_entropy",
        ("cross_entropy_loss", "cross_entropy_loss_grad"),
        inputs=rows_and_labels,
        call=lambda F, x, labels: F.cross_entropy(x, labels),
        tiny=(2, 8),
        shapes=((2048, 32000),),
        dtypes=(torch.float32, torch.bfloat16),
    ),
    Layer(
        "conv2d",
        CONVOLUTION,
        variant="3x3",
        inputs=images_and_filters(3, 3),
        call=lambda F, x, weight, bias: F.conv2d(x, weight, bias, padding=1),
        tiny=TINY_IMAGES,
        shapes=(IMAGES,),
        dtypes=(torch.float32, torch.bfloat16, torch.float16),
    ),
    Layer(
        "conv2d",
        CONVOLUTION,
        variant="3x3_channels_last",
        inputs=images_and_filters(3, 3, layout=torch.channels_last),
        call=lambda F, x, weight, bias: F.conv2d(x, weight, bias, padding=1),
        tiny=TINY_IMAGES,
        shapes=(IMAGES,),
    ),
    Layer(
        "conv2d",
        CONVOLUTION,
        variant="3x3_depthwise",
        inputs=images_and_filters(3, 3, depthwise=True),
        call=lambda F, x, weight, bias: F.conv2d(x, weight, bias, padding=1, groups=x.shape[1]),
        tiny=TINY_IMAGES,
        shapes=(IMAGES,),
        dtypes=(torch.float32, torch.bfloat16),
    ),
    Layer(
        "conv2d",
        CONVOLUTION,
        variant="1x1",
        inputs=images_and_filters(1, 1),
        call=lambda F, x, weight, bias: F.conv2d(x, weight, bias),
        tiny=TINY_IMAGES,
        shapes=(IMAGES,),
        dtypes=(torch.float32, torch.bfloat16),
    ),
    Layer(
        "conv_transpose2d",
        CONVOLUTION,
        variant="stride_2",
        inputs=images_and_filters(3, 3),
        call=lambda F, x, weight, bias: F.conv_transpose2d(x, weight, bias, stride=2, padding=1, output_padding=1),
        tiny=TINY_IMAGES,
        shapes=((8, 64, 28, 28),),
    ),
    Layer(
        "conv1d",
        CONVOLUTION,
        inputs=images_and_filters(3),
        call=lambda F, x, weight, bias: F.conv1d(x, weight, bias, padding=1),
        tiny=(2, 2, 7),
        shapes=((8, 64, 4096),),
    ),
)


@dataclass(frozen=True)
class Bar:
    """What a mode measures of each provider, and the least good ratio of ours to the peer that will do."""

    metric: str
    limit: float
    at_least: bool  # whether more is better

    def met(self, ratio: float) -> bool:
        """Whether a ratio is good enough."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit}"


BARS = {
    # One operator called, without autograd: our time over ATen's.
    "call": Bar("us", 1.25, at_least=False),
    # A function called on a tensor that requires grad, and its backward pass: our time over torch's.
    "forward+backward": Bar("us", 1.15, at_least=False),
    # Stage 2 of the C ABI into an output that is there already: our bandwidth over the best one for the same traffic.
    "kernel": Bar("GB/s", 0.85, at_least=True),
    # A function that is not elementwise, on a tiny input, without autograd: our time over torch's.
    "layer_call": Bar("us", 1.5, at_least=False),
    # The same on tensors that require grad, and its backward pass.
    "layer_forward+backward": Bar("us", 1.5, at_least=False),
    # The same at a realistic size, where computing counts.
    "layer_step": Bar("ms", 1.1, at_least=False),
}


@dataclass(frozen=True)
class Case:
    """One measurement."""

    kernel: Kernel | Layer
    mode: str
    dtype: torch.dtype
    shape: Shape

    @property
    def bar(self) -> Bar:
        """What it must reach."""
        return BARS[self.mode]

    @property
    def dtype_name(self) -> str:
        """The dtype without its module."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def size(self) -> str:
        """The shape in results."""
        return "x".join(map(str, self.shape))

    def __str__(self) -> str:
        return f"{self.kernel.name}/{self.mode}/{self.dtype_name}/{self.size}"


CASES = (
    *(Case(kernel, "call", torch.float32, CALL_SHAPE) for kernel in KERNELS),
    *(Case(kernel, "forward+backward", torch.float32, CALL_SHAPE) for kernel in KERNELS if kernel.functions),
    *(
        Case(kernel, "kernel", dtype, KERNEL_SHAPE)
        for kernel in KERNELS
        for dtype in (torch.float32, torch.bfloat16, torch.float16)
    ),
    *(Case(layer, "layer_call", torch.float32, layer.tiny) for layer in LAYERS),
    *(Case(layer, "layer_forward+backward", torch.float32, layer.tiny) for layer in LAYERS),
    *(Case(layer, "layer_step", dtype, shape) for layer in LAYERS for shape in layer.shapes for dtype in layer.dtypes),
)
