"""The measurements: tables of operators, convolution layers and functions, and the cases derived from them.

Elementwise operators come from tests/operators; another operator adds a row to OPERATORS, a convolution layer one to
CONVOLUTIONS. The modes of each row are derived from these tables. bars.py defines the required results.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import aclnn_torch
from tests.operators import ELEMENTWISE, Kernel, kernels_for
from tests.operators import OPERATORS as INFOS

EPSILON = 1e-6  # for RMSNorm

Shape = tuple[int, ...]
Tensors = tuple[Tensor, ...]

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# Elements of a call: few, to measure the call; cache-sized; a curve of sizes; and large, to measure the memory
# bandwidth.
CALL_ELEMENTS = 16
CACHED_ELEMENTS = (2**14, 2**17, 2**20)
CURVE_ELEMENTS = (2**14, 2**16, 2**18, 2**20, 2**22)
SCALING_ELEMENTS = CACHED_ELEMENTS[-1]
LARGE_BYTES = 64 << 20

NOISE_ELEMENTS = 999_983  # a prime, so that no two rows of a matrix are equal

aten = torch.ops.aten


def noise(shape: Shape, dtype: torch.dtype, seed: int) -> Tensor:
    """Makes a tensor of positive and negative numbers; repeats them beyond a size, because random numbers are slow."""
    elements = math.prod(shape)
    numbers = torch.randn(min(elements, NOISE_ELEMENTS), generator=torch.Generator().manual_seed(seed)).to(dtype)
    return numbers.repeat(-(-elements // max(numbers.numel(), 1)))[:elements].view(shape)


def square(elements: int) -> Shape:
    """A matrix of this many elements, a power of two, with as many rows as columns or twice as many."""
    columns = 2 ** ((elements.bit_length() - 1) // 2)
    return elements // columns, columns


def line(elements: int) -> Shape:
    """One dimension with this many elements."""
    return (elements,)


@dataclass(frozen=True)
class Operator:
    """An operator of torch.ops.aclnn with one choice of options, and torch's equivalent."""

    operator: str
    inputs: Callable[[Shape, torch.dtype], Tensors]
    arguments: Callable[..., tuple[Any, ...]]  # of the operator, from the inputs
    torch: Callable[..., Any]  # torch's equivalent on the inputs; torch.compile uses it, too
    variant: str = ""
    # If eager torch is called differently: makes the call from the inputs.
    eager: Callable[..., Callable[[], Any]] | None = None
    # The same with no result requested, if torch supports it: the cost of a call that computes nothing.
    nothing: Callable[..., Callable[[], Any]] | None = None
    # The same into existing results: makes the call with out= from results and inputs, if torch has it.
    out: Callable[..., Callable[[], object]] | None = None
    # CANN's arguments before the outputs, if they differ from `arguments`.
    cann: Callable[..., tuple[Any, ...]] | None = None
    # Options of the function with this name in jax_child.py.
    jax: dict[str, Any] = field(default_factory=dict, hash=False)
    # Keyword arguments of the operator.
    named: dict[str, Any] = field(default_factory=dict, hash=False)
    cann_name: str = ""  # in snake_case, if it differs from the operator's
    shape: Callable[[int], Shape] = line  # for a number of elements
    flops: Callable[[Shape], float] | None = None  # of a call, for compute-bound operators
    # True if eager torch accumulates long sums in a 16-bit type, so that only float32 gives the right result.
    sums_narrow: bool = False

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.operator}:{self.variant}" if self.variant else self.operator

    def expected(self, inputs: Tensors) -> Any:
        """Eager torch's result, in float32 if only that is right."""
        return self.torch(*(tensor.float() for tensor in inputs) if self.sums_narrow else inputs)

    @property
    def call(self) -> Callable[..., Any]:
        """The operator."""
        operator = getattr(torch.ops.aclnn, self.operator)
        return functools.partial(operator, **self.named) if self.named else operator


def row_of(kernel: Kernel) -> Operator:
    """The row of OPERATORS for an elementwise kernel."""

    def inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
        return tuple(noise(shape, dtype, seed) for seed in range(kernel.reads))

    out_name = kernel.out_name

    def out(results: Tensors, *tensors: Tensor) -> Callable[[], Tensor]:
        keywords = {**kernel.named, str(out_name): results[0]}
        return functools.partial(kernel.peer, *kernel.of_peer(*tensors), **keywords)

    # Without a Python function in between, whose cost would be visible at 16 elements.
    def eager(*tensors: Tensor) -> Callable[[], Tensor]:
        return functools.partial(kernel.peer, *kernel.of_peer(*tensors), **kernel.named)

    # For compilers, which cannot see into the kernel itself.
    peer_arguments, call_peer, named = kernel.peer_arguments or kernel.arguments, kernel.peer, dict(kernel.named)

    def peer(*tensors: Tensor) -> Tensor:
        return call_peer(*peer_arguments(*tensors), **named)

    return Operator(
        kernel.operator,
        inputs,
        kernel.arguments,
        peer,
        kernel.variant,
        eager=eager,
        out=out if out_name else None,
        cann=kernel.cann,
        jax={"is_result": True} if kernel.variant == "is_result" else dict(kernel.named),
        named=dict(kernel.named),
        cann_name=kernel.cann_name,
    )


# The elementwise operators, as declared in tests/operators.
KERNELS = tuple(kernels_for("speed"))


# RMSNorm: rows and the gain of each column.


def rms_norm_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Rows and gain."""
    return noise(shape, dtype, 0), noise(shape[-1:], dtype, 1)


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    """Torch's function."""
    return torch.nn.functional.rms_norm(x, gain.shape, gain, EPSILON)


def rms_norm_grad_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Incoming gradient, rows, the values per row that the forward saves, and gain."""
    x, gain = rms_norm_inputs(shape, dtype)
    rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + EPSILON)
    return noise(shape, dtype, 2), x, rstd, gain


def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gain: Tensor) -> Tensors:
    """The formula, for torch.compile: torch has no such operator on the CPU."""
    normal = x.float() * rstd
    upstream = dy.float() * gain.float()
    dx = rstd * (upstream - normal * (upstream * normal).mean(-1, keepdim=True))
    return dx.to(x.dtype), (dy.float() * normal).sum(0)


def rms_norm_backward(dy: Tensor, x: Tensor, _: Tensor, gain: Tensor) -> Callable[[], Tensors]:
    """Eager torch's equivalent: the backward pass of its function, with the graph retained."""
    leaves = x.detach().requires_grad_(), gain.detach().requires_grad_()
    return functools.partial(torch.autograd.grad, rms_norm(*leaves), leaves, dy, retain_graph=True)


# LayerNorm: the same with a shift for each column.


def layer_norm_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Rows, gain and shift."""
    return *rms_norm_inputs(shape, dtype), noise(shape[-1:], dtype, 3)


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Torch's function."""
    return torch.nn.functional.layer_norm(x, gain.shape, gain, shift, EPSILON)


def layer_norm_backward_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Incoming gradient, rows, the values per row that the forward saves, gain and shift."""
    x, gain, shift = layer_norm_inputs(shape, dtype)
    variance, mean = torch.var_mean(x.float(), -1, correction=0, keepdim=True)
    return noise(shape, dtype, 2), x, mean, torch.rsqrt(variance + EPSILON), gain, shift


def layer_norm_backward(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, shift: Tensor
) -> tuple[Tensor, ...]:
    """Torch's operator, which requires the saved values in the rows' dtype if gain and shift have that dtype."""
    kept = (tensor.to(x.dtype) for tensor in (mean, rstd))
    return aten.native_layer_norm_backward(dy, x, gain.shape, *kept, gain, shift, [True] * 3)


# Cross entropy: a mean over rows of logits.


def cross_entropy_shape(elements: int) -> Shape:
    """Logits of a language model's shape if they are large."""
    return square(elements) if elements < 2**24 else (2048, 32000)


def cross_entropy_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Logits and labels."""
    rows, classes = shape
    return noise(shape, dtype, 0), torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(1))


def cross_entropy_loss(x: Tensor, labels: Tensor) -> Tensors:
    """Torch's two operators; the loss and the values for the backward pass."""
    log_prob = aten._log_softmax(x, 1, False)
    return aten.nll_loss_forward(log_prob, labels, None, 1, -100)[0], log_prob


def cross_entropy_loss_out(results: Tensors, x: Tensor, labels: Tensor) -> Callable[[], None]:
    """The same into existing results; our loss is one-dimensional."""
    loss, log_prob = results[0].view(()), results[1]
    rows = torch.empty_like(loss)

    def call() -> None:
        aten._log_softmax.out(x, 1, False, out=log_prob)
        aten.nll_loss_forward.output(log_prob, labels, None, 1, -100, output=loss, total_weight=rows)

    return call


def cross_entropy_loss_grad_inputs(shape: Shape, dtype: torch.dtype) -> Tensors:
    """Incoming gradient, log probabilities, labels, and the number of rows, which only torch needs."""
    x, labels = cross_entropy_inputs(shape, dtype)
    return torch.tensor(0.75, dtype=dtype), x.log_softmax(-1), labels, torch.tensor(float(shape[0]), dtype=dtype)


def cross_entropy_loss_grad(g: Tensor, log_prob: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Torch's two operators."""
    gradient = aten.nll_loss_backward(g, log_prob, labels, None, 1, -100, rows)
    return aten._log_softmax_backward_data(gradient, log_prob, 1, log_prob.dtype)


def cross_entropy_loss_grad_out(
    results: Tensors, g: Tensor, log_prob: Tensor, labels: Tensor, rows: Tensor
) -> Callable[[], None]:
    """The same into an existing result and an existing intermediate."""
    between = torch.empty_like(log_prob)

    def call() -> None:
        aten.nll_loss_backward.grad_input(g, log_prob, labels, None, 1, -100, rows, grad_input=between)
        aten._log_softmax_backward_data.out(between, log_prob, 1, log_prob.dtype, out=results[0])

    return call


OPERATORS = (
    *map(row_of, KERNELS),
    Operator(
        "rms_norm",
        inputs=rms_norm_inputs,
        arguments=lambda x, gain: (x, gain, EPSILON),
        torch=rms_norm,
        cann=lambda x, gain: (x, gain, ctypes.c_double(EPSILON)),
        jax={"epsilon": EPSILON},
        shape=square,
    ),
    Operator(
        "rms_norm_grad",
        inputs=rms_norm_grad_inputs,
        arguments=lambda *inputs: inputs,
        torch=rms_norm_grad,
        eager=rms_norm_backward,
        shape=square,
    ),
    Operator(
        "layer_norm",
        inputs=layer_norm_inputs,
        arguments=lambda x, gain, shift: (x, gain.shape, gain, shift, EPSILON),
        torch=layer_norm,
        cann=lambda x, gain, shift: (x, gain.shape, gain, shift, ctypes.c_double(EPSILON)),
        jax={"epsilon": EPSILON},
        shape=square,
    ),
    Operator(
        "layer_norm_backward",
        inputs=layer_norm_backward_inputs,
        arguments=lambda dy, x, mean, rstd, gain, shift: (dy, x, gain.shape, mean, rstd, gain, shift, [True] * 3),
        torch=layer_norm_backward,
        shape=square,
        sums_narrow=True,
    ),
    Operator(
        "cross_entropy_loss",
        inputs=cross_entropy_inputs,
        arguments=lambda x, labels: (x, labels),
        torch=cross_entropy_loss,
        eager=lambda x, labels: functools.partial(torch.nn.functional.cross_entropy, x, labels),
        out=cross_entropy_loss_out,
        cann=lambda x, labels: (
            *(x, labels, None, ctypes.c_char_p(b"mean"), ctypes.c_int64(-100)),
            *(ctypes.c_double(0), ctypes.c_double(0), False),
        ),
        shape=cross_entropy_shape,
    ),
    Operator(
        "cross_entropy_loss_grad",
        inputs=cross_entropy_loss_grad_inputs,
        arguments=lambda g, log_prob, labels, rows: (g, log_prob, labels),
        torch=cross_entropy_loss_grad,
        out=cross_entropy_loss_grad_out,
        cann=lambda g, log_prob, labels, rows: (
            *(g, log_prob, labels, None, None, None, ctypes.c_char_p(b"mean"), ctypes.c_int64(-100)),
            *(ctypes.c_double(0), ctypes.c_double(0)),
        ),
        shape=cross_entropy_shape,
    ),
)


@dataclass(frozen=True)
class Convolution:
    """One convolution layer with bias."""

    name: str
    images: Shape
    filters: int
    kernel: Shape
    stride: int = 1
    padding: int = 0
    groups: int = 1
    transposed: bool = False
    output_padding: int = 0
    channels_last: bool = False

    def options(self) -> dict[str, Any]:
        """ATen's arguments, by name and in order."""
        rank = len(self.kernel)
        return {
            "stride": [self.stride] * rank,
            "padding": [self.padding] * rank,
            "dilation": [1] * rank,
            "transposed": self.transposed,
            "output_padding": [self.output_padding] * rank,
            "groups": self.groups,
        }

    def forward_inputs(self, images: Shape, dtype: torch.dtype) -> Tensors:
        """Images, filters, bias."""
        outer, inner = (images[1], self.filters) if self.transposed else (self.filters, images[1])
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        x = noise(images, dtype, 0).contiguous(memory_format=layout)
        filters = noise((outer, inner // self.groups, *self.kernel), dtype, 1).contiguous(memory_format=layout)
        return x, filters, noise((self.filters,), dtype, 2)

    def backward_inputs(self, images: Shape, dtype: torch.dtype) -> Tensors:
        """Incoming gradient, images, filters."""
        x, filters, _ = self.forward_inputs(images, dtype)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return noise(self.results(images), dtype, 3).contiguous(memory_format=layout), x, filters

    def results(self, images: Shape) -> Shape:
        """The shape of the layer's output."""
        inputs = (tensor.to("meta") for tensor in self.forward_inputs(images, torch.float32))
        return tuple(aten.convolution(*inputs, *self.options().values()).shape)

    def flops(self, images: Shape) -> float:
        """Multiplications and additions of the forward pass: every pixel of the smaller side times every weight."""
        outer = images if self.transposed else self.results(images)
        weights = images[1] * self.filters // self.groups * math.prod(self.kernel)
        return 2.0 * outer[0] * math.prod(outer[2:]) * weights

    def rows(self) -> tuple[Operator, Operator]:
        """Both operators: the backward pass with all three gradients, and the forward pass."""
        options = tuple(self.options().values())
        mask = [True, True, True]

        def forward(x: Tensor, filters: Tensor, bias: Tensor) -> tuple[Any, ...]:
            return x, filters, bias, *options

        def backward(g: Tensor, x: Tensor, filters: Tensor) -> tuple[Any, ...]:
            return g, x, filters, [self.filters], *options, mask

        def gradients(g: Tensor, x: Tensor, filters: Tensor) -> tuple[Tensor, ...]:
            """torch's, except for the bias: in float32 torch adds up to 2^19 numbers sequentially."""
            of_input, of_filters, of_bias = aten.convolution_backward(*backward(g, x, filters))
            return of_input, of_filters, g.double().transpose(0, 1).flatten(1).sum(1).to(of_bias.dtype)

        common: dict[str, Any] = {
            "variant": self.name,
            "jax": self.options(),
            "shape": lambda _: self.images,
        }
        return (
            Operator(
                "convolution_backward",
                inputs=self.backward_inputs,
                arguments=backward,
                torch=gradients,
                eager=lambda *inputs: functools.partial(aten.convolution_backward, *backward(*inputs)),
                nothing=lambda *inputs: functools.partial(
                    aten.convolution_backward, *backward(*inputs)[:-1], [False] * len(mask)
                ),
                flops=lambda images: 2 * self.flops(images),
                **common,
            ),
            Operator(
                "convolution",
                inputs=self.forward_inputs,
                arguments=forward,
                torch=lambda *inputs: aten.convolution(*forward(*inputs)),
                eager=lambda *inputs: functools.partial(aten.convolution, *forward(*inputs)),
                flops=self.flops,
                **common,
            ),
        )


# The kinds of layers of ResNet-50 at a batch of 8, and kinds that it lacks.
CONVOLUTIONS = (
    Convolution("7x7_stride_2", (8, 3, 224, 224), 64, (7, 7), stride=2, padding=3),
    Convolution("1x1_64_256", (8, 64, 56, 56), 256, (1, 1)),
    Convolution("1x1_256_64", (8, 256, 56, 56), 64, (1, 1)),
    Convolution("3x3_64", (8, 64, 56, 56), 64, (3, 3), padding=1),
    Convolution("3x3_64_channels_last", (8, 64, 56, 56), 64, (3, 3), padding=1, channels_last=True),
    Convolution("3x3_128_stride_2", (8, 128, 56, 56), 128, (3, 3), stride=2, padding=1),
    Convolution("1x1_256_512_stride_2", (8, 256, 56, 56), 512, (1, 1), stride=2),
    Convolution("3x3_128", (8, 128, 28, 28), 128, (3, 3), padding=1),
    Convolution("1x1_512_128_channels_last", (8, 512, 28, 28), 128, (1, 1), channels_last=True),
    Convolution("3x3_256", (8, 256, 14, 14), 256, (3, 3), padding=1),
    Convolution("1x1_1024_256", (8, 1024, 14, 14), 256, (1, 1)),
    Convolution("3x3_512", (8, 512, 7, 7), 512, (3, 3), padding=1),
    Convolution("1x1_512_2048", (8, 512, 7, 7), 2048, (1, 1)),
    Convolution("3x3_depthwise", (8, 64, 56, 56), 64, (3, 3), padding=1, groups=64),
    Convolution("3x3_depthwise_channels_last", (8, 64, 56, 56), 64, (3, 3), padding=1, groups=64, channels_last=True),
    Convolution("1d", (8, 64, 4096), 64, (3,), padding=1),
    Convolution("3d", (2, 32, 16, 28, 28), 32, (3, 3, 3), padding=1),
    Convolution(
        "transposed_stride_2", (8, 64, 28, 28), 64, (3, 3), stride=2, padding=1, transposed=True, output_padding=1
    ),
    Convolution("3x3_rgb", (8, 3, 224, 224), 32, (3, 3), padding=1),
    Convolution("3x3_20_24", (4, 20, 60, 60), 24, (3, 3), padding=1),
    Convolution("3x3_groups_of_20", (8, 160, 28, 28), 160, (3, 3), stride=2, padding=1, groups=8),
    Convolution("3x3_512_stride_2", (8, 512, 14, 14), 512, (3, 3), stride=2, padding=1),
    Convolution("16x16_patches", (8, 3, 224, 224), 768, (16, 16), stride=16),
)

# Layers added after the bars were set.
LATER_LAYERS = ("3x3_rgb", "3x3_20_24", "3x3_groups_of_20", "3x3_512_stride_2", "16x16_patches")
# The same for operators, by the prefixes of their names.
LATER = tuple(name for name, info in INFOS.items() if info.later)
QUICK_LAYERS = ("3x3_64", "3x3_64_channels_last", "1x1_1024_256", "3x3_depthwise", "1d", "transposed_stride_2")

# The size of CANN's own example.
TINY_CONVOLUTIONS = (
    Convolution("1x1", (2, 2, 7, 7), 2, (1, 1)),
    Convolution("3x3", (2, 2, 7, 7), 2, (3, 3), padding=1),
    Convolution("3x3_depthwise", (2, 2, 7, 7), 2, (3, 3), padding=1, groups=2),
    Convolution("3x3_transposed", (2, 2, 7, 7), 2, (3, 3), stride=2, padding=1, transposed=True, output_padding=1),
    Convolution("1d", (2, 2, 7), 2, (3,), padding=1),
)


@dataclass(frozen=True)
class Function:
    """A function of aclnn_torch.functional and torch.nn.functional, run forward and backward."""

    name: str
    operators: tuple[str, ...]  # operators of torch.ops.aclnn that it runs
    inputs: Callable[[Shape, torch.dtype], Tensors]
    call: Callable[..., Tensor]  # from the module and the inputs
    shape: Shape

    def of(self, module: Any) -> Callable[..., Tensor]:
        """The function of a module."""
        return functools.partial(self.call, module)

    @property
    def ours(self) -> Callable[..., Tensor]:
        """Ours."""
        return self.of(aclnn_torch.functional)

    @property
    def torchs(self) -> Callable[..., Tensor]:
        """Torch's."""
        return self.of(torch.nn.functional)


def one_input(shape: Shape, dtype: torch.dtype) -> Tensors:
    """The arguments of an activation."""
    return (noise(shape, dtype, 0),)


FUNCTIONS = (
    *(
        Function(
            f"functional.{name}",
            (name, f"{name}_backward"),
            one_input,
            lambda F, x, name=name: getattr(F, name)(x),
            (16,),
        )
        for name in ELEMENTWISE
    ),
    Function(
        "functional.rms_norm",
        ("rms_norm", "rms_norm_grad"),
        rms_norm_inputs,
        lambda F, x, gain: F.rms_norm(x, gain.shape, gain, EPSILON),
        (2, 8),
    ),
    Function(
        "functional.layer_norm",
        ("layer_norm", "layer_norm_backward"),
        layer_norm_inputs,
        lambda F, x, gain, shift: F.layer_norm(x, gain.shape, gain, shift, EPSILON),
        (2, 8),
    ),
    Function(
        "functional.cross_entropy",
        ("cross_entropy_loss", "cross_entropy_loss_grad"),
        cross_entropy_inputs,
        lambda F, x, labels: F.cross_entropy(x, labels),
        (2, 8),
    ),
    Function(
        "functional.conv2d",
        ("convolution", "convolution_backward"),
        TINY_CONVOLUTIONS[1].forward_inputs,
        lambda F, x, filters, bias: F.conv2d(x, filters, bias, padding=1),
        TINY_CONVOLUTIONS[1].images,
    ),
)


@dataclass(frozen=True)
class Model:
    """A model of models.py, trained with torch's modules and with converted modules."""

    name: str


MODELS = (
    (Model("digits"), (torch.float32,)),
    (Model("llama"), (torch.float32, torch.bfloat16)),
    (Model("finetune_llama"), (torch.float32,)),
)


@dataclass(frozen=True)
class PeakMemory:
    """The memory that a loss, or a training step, takes: see memory.py."""

    name: str


@dataclass(frozen=True)
class Vocabulary:
    """The cross entropy of a linear layer, forward and backward; its shape is rows, width and classes."""

    name: str

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Tensors:
        """Rows, matrix and labels; logits are about 1."""
        rows, width, classes = shape
        labels = torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(2))
        return noise((rows, width), dtype, 0), noise((classes, width), dtype, 1).div_(width**0.5), labels

    def flops(self, shape: Shape) -> float:
        """Multiplications and additions of the three products: logits, and the gradients of rows and matrix."""
        return 6.0 * math.prod(shape)


VOCABULARY = Vocabulary("linear_cross_entropy")
CURVE_CLASSES = (8000, 16000, 32000, 64000, 128000)
VOCABULARIES = ((1503, 512, 40001), (512, 4096, 32000), (8192, 1024, 32000), (512, 2048, 151936))


# The metric, unit and peers of a mode; JAX is added where an operator is called.
MODES = {
    "large": ("ms", ("eager", "eager out=", "torch.compile", "JAX", "roofline", "in cache")),
    "kernel": ("GB/s", ("roofline", "in cache")),
    "curve": ("GB/s", ("roofline",)),
    "cached": ("us", ("eager", "JAX")),
    "call": ("us", ("eager", "JAX")),
    "forward+backward": ("us", ("eager",)),
    "convolution": ("GFLOP/s", ("eager", "GEMM peak", "JAX")),
    "tiny_convolution": ("us", ("eager", "JAX", "nothing asked")),
    "memory": ("MiB", ("eager", "chunks")),
    "memory_curve": ("MiB", ("eager", "chunks")),
    "vocabulary": (
        "GFLOP/s",
        ("eager", "chunks", "rows in parts", "CANN's three", "torch.compile", "JAX", "GEMM peak"),
    ),
    "training": ("ms", ("eager", "rest of the step")),
    "scaling": ("us", ("1 thread",)),
}

# Upper limits of our speed, of which the slowest applies: the memory bandwidth, the part of a training step that is not
# ours, a call that computes nothing, and the kernel's own arithmetic.
_OF_A_KERNEL = ("roofline", "in cache")
LIMITS = {
    "large": _OF_A_KERNEL,
    "kernel": _OF_A_KERNEL,
    "tiny_convolution": ("nothing asked",),
    "training": ("rest of the step",),
    "vocabulary": ("GEMM peak",),
}


@dataclass(frozen=True)
class Case:
    """One measurement."""

    subject: Operator | Function | Model | PeakMemory | Vocabulary
    mode: str
    dtype: torch.dtype
    shape: Shape = ()

    @property
    def dtype_name(self) -> str:
        """The dtype without its module."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def size(self) -> str:
        """The shape in results."""
        return "x".join(map(str, self.shape))

    @property
    def quick(self) -> bool:
        """True if --quick measures it: without middle sizes, some convolutions, LATER rows, and most of float16."""
        if self.mode == "convolution":
            operator, _, layer = self.subject.name.partition(":")
            return operator == "convolution_backward" and layer in QUICK_LAYERS
        middle = self.mode in ("curve", "cached") and math.prod(self.shape) in (2**16, 2**17, 2**18)
        like_bfloat16 = self.mode in ("large", "cached") and self.dtype == torch.float16
        later = self.mode in ("large", "kernel", "curve") and self.subject.name.startswith(LATER)
        others = self.mode == "vocabulary" and (self.shape != VOCABULARIES[0] or self.dtype == torch.float16)
        between = self.mode == "memory_curve" and self.shape[-1] not in (CURVE_CLASSES[0], CURVE_CLASSES[-2])
        return not (middle or like_bfloat16 or later or others or between)

    def __str__(self) -> str:
        return "/".join(filter(None, (self.mode, self.subject.name, self.dtype_name, self.size)))


def _batch(layer: Convolution, dtype: torch.dtype) -> Shape:
    """A layer's images; a single one in float16, for which torch takes a second."""
    return layer.images if dtype != torch.float16 else (1, *layer.images[1:])


def cases() -> list[Case]:
    """Everything that is measured."""
    found = []
    for operator in OPERATORS:
        for dtype in DTYPES:
            large = operator.shape(LARGE_BYTES // dtype.itemsize)
            found += [Case(operator, mode, dtype, large) for mode in ("large", "kernel")]
            found += [Case(operator, "cached", dtype, operator.shape(elements)) for elements in CACHED_ELEMENTS]
        shapes = map(operator.shape, CURVE_ELEMENTS)
        found += [Case(operator, "curve", torch.float32, shape) for shape in shapes]
        found.append(Case(operator, "call", torch.float32, operator.shape(CALL_ELEMENTS)))
    found += [Case(function, "forward+backward", torch.float32, function.shape) for function in FUNCTIONS]
    for layers, mode, dtypes in (
        (CONVOLUTIONS, "convolution", DTYPES),
        (TINY_CONVOLUTIONS, "tiny_convolution", DTYPES[:1]),
    ):
        for layer in layers:
            found += [Case(row, mode, dtype, _batch(layer, dtype)) for row in layer.rows() for dtype in dtypes]
    found.append(Case(PeakMemory("cross_entropy"), "memory", torch.float32, (2048, 32000)))
    found.append(Case(PeakMemory("linear_cross_entropy"), "memory", torch.float32, VOCABULARIES[0]))
    found.append(Case(PeakMemory("finetune_llama"), "memory", torch.float32))
    rows, width, _ = VOCABULARIES[0]
    found += [
        Case(PeakMemory("linear_cross_entropy"), "memory_curve", torch.float32, (rows, width, classes))
        for classes in CURVE_CLASSES
    ]
    found += [Case(VOCABULARY, "vocabulary", dtype, shape) for shape in VOCABULARIES for dtype in DTYPES]
    found += [Case(model, "training", dtype) for model, dtypes in MODELS for dtype in dtypes]
    # One exponential per element, and tensors small enough to stay in the caches.
    bound_by_arithmetic = ("elu", "elu_backward", "selu", "cross_entropy_loss")
    found += [
        Case(operator, "scaling", dtype, operator.shape(SCALING_ELEMENTS))
        for operator in OPERATORS
        if operator.name in bound_by_arithmetic
        for dtype in DTYPES
    ]
    convolution = next(layer for layer in CONVOLUTIONS if layer.name == "3x3_128")
    found.append(Case(convolution.rows()[0], "scaling", torch.float32, convolution.images))
    return sorted(found, key=lambda case: list(MODES).index(case.mode))


CASES = cases()
