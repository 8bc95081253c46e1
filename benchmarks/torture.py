"""Measures errors on difficult inputs: non-finite values, cancellation, and very long sums.

    python -m benchmarks.torture [TEXT...]

For each operator, condition and dtype, the largest error of ours and of torch's on the same inputs, against extended
precision. The unit is the last place of the terms summed for a result, or of the exact result if it is not a sum. A
result whose inf, nan or finiteness differs from the exact one, and a zero of the wrong sign if the formula has no sum,
count as an error of inf. TEXT selects the operators whose names contain it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch
from tests.operators import Kernel, kernels_for
from tests.operators._exact import Array, Exact

from .cases import noise
from .precision import FORMATS, chosen

Tensors = tuple[Tensor, ...]
# An exact result, and the sum of the magnitudes of its terms; None if it is not a sum.
Expected = tuple[Array, Array | None]

aten, ours = torch.ops.aten, torch.ops.aclnn

HUGE_COUNT = 1 << 24  # terms of a sum
VOCABULARY = 1 << 20
EPSILON = 1e-6


@dataclass(frozen=True)
class Condition:
    """Inputs of an operator in a dtype."""

    name: str
    inputs: Callable[[torch.dtype], Tensors]
    large: bool = False  # takes seconds
    dtypes: Sequence[torch.dtype] = tuple(FORMATS)


@dataclass(frozen=True)
class Operator:
    """A comparison: functions of the inputs, the results' names, and the conditions."""

    name: str
    results: tuple[str, ...]
    ours: Callable[..., Tensors]
    torchs: Callable[..., Tensors]
    exact: Callable[..., Sequence[Expected]]  # from the dtype, and the inputs in extended precision
    conditions: Sequence[Condition]


def exactly(tensor: Tensor) -> Array:
    """The same numbers in extended precision."""
    return np.asarray(tensor.double().numpy(), Exact)


def limits(dtype: torch.dtype) -> list[float]:
    """Zeros, subnormal numbers, the largest numbers, infinities and NaN, with either sign."""
    bits, least = FORMATS[dtype]
    smallest = 2.0 ** (least - bits + 1)
    info = torch.finfo(dtype)
    positive = [0.0, smallest, 3 * smallest, info.tiny - smallest, info.tiny, info.max / 2, info.max, float("inf")]
    return [*positive, *(-value for value in positive), float("nan")]


# ---- Elementwise operators


def near_zero(dtype: torch.dtype) -> Tensor:
    """Numbers so small that an exponential minus one cancels, of every magnitude down to subnormals."""
    bits, least = FORMATS[dtype]
    magnitudes = torch.exp2(torch.linspace(least - bits + 1, -1, 4_000, dtype=torch.float64))
    return torch.cat([magnitudes, -magnitudes]).to(dtype)


def saturated(dtype: torch.dtype) -> Tensor:
    """Numbers around the limit beyond which an exponential has no effect."""
    return torch.linspace(-120, 0, 10_000, dtype=torch.float64).to(dtype)


def with_gradients(x: Tensor) -> Tensors:
    """Each number with gradients that are exact, tiny, and the largest possible."""
    info = torch.finfo(x.dtype)
    gradients = (1.0, -1.5, 4 * info.tiny, info.max)
    return torch.cat([torch.full_like(x, value) for value in gradients]), x.repeat(len(gradients))


ELEMENTWISE = (
    ("limits", lambda dtype: torch.tensor(limits(dtype), dtype=torch.float64).to(dtype)),
    ("near zero", near_zero),
    ("saturated", saturated),
)
FORWARD = tuple(Condition(name, lambda dtype, x=x: (x(dtype),)) for name, x in ELEMENTWISE)
BACKWARD = tuple(Condition(name, lambda dtype, x=x: with_gradients(x(dtype))) for name, x in ELEMENTWISE)


def elementwise(kernel: Kernel) -> Operator:
    """An elementwise operator and its peer."""

    def exact(dtype: torch.dtype, *tensors: Array) -> Sequence[Expected]:
        arguments = kernel.arguments(*tensors)
        size = kernel.magnitude(dtype, *arguments, **kernel.named) if kernel.magnitude else None
        return ((kernel.exact(dtype, *arguments, **kernel.named), size),)

    return Operator(
        kernel.name,
        ("out",),
        lambda *tensors: (kernel(*tensors),),
        lambda *tensors: (kernel.by_peer(*tensors),),
        exact,
        FORWARD if kernel.reads == 1 else BACKWARD,
    )


# ---- RmsNorm


def rms_norm(x: Tensor, gamma: Tensor) -> Tensors:
    wide = x.double() if x.dtype == torch.float64 else x.float()
    return TF.rms_norm(x, gamma.shape, gamma, EPSILON), (wide.square().mean(-1, keepdim=True) + EPSILON).rsqrt()


def rms_norm_grad_of_ours(dy: Tensor, x: Tensor, gamma: Tensor) -> Tensors:
    dx, dgamma = ours.rms_norm_grad(dy, x, ours.rms_norm(x, gamma, EPSILON)[1], gamma)
    return dx, dgamma.to(gamma.dtype)  # as in autograd


def rms_norm_grad(dy: Tensor, x: Tensor, gamma: Tensor) -> Tensors:
    x, gamma = x.detach().requires_grad_(), gamma.detach().requires_grad_()
    return torch.autograd.grad(TF.rms_norm(x, gamma.shape, gamma, EPSILON), (x, gamma), dy)


def exact_rms_norm(dtype: torch.dtype, x: Array, gamma: Array) -> Sequence[Expected]:
    epsilon = Exact(EPSILON) if dtype == torch.float64 else Exact(np.float32(EPSILON))
    rstd = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon)
    return (x * rstd * gamma, None), (rstd, None)


def exact_rms_norm_grad(dtype: torch.dtype, dy: Array, x: Array, gamma: Array) -> Sequence[Expected]:
    rstd = exact_rms_norm(dtype, x, gamma)[1][0]
    xhat, a = x * rstd, dy * gamma
    mean, size = (np.mean(terms, -1, keepdims=True) for terms in (a * xhat, np.abs(a * xhat)))
    return (rstd * (a - xhat * mean), rstd * (np.abs(a) + np.abs(xhat) * size)), (
        np.sum(dy * xhat, 0),
        np.sum(np.abs(dy * xhat), 0),
    )


def rows_of(rows: int, columns: int, scale: float = 1.0) -> Callable[[torch.dtype], Tensors]:
    """x, with numbers of this size, and gamma."""
    return lambda dtype: (noise((rows, columns), torch.float64, 1).mul(scale).to(dtype), noise((columns,), dtype, 2))


def special_rows(dtype: torch.dtype) -> Tensors:
    """Rows that contain a number from `limits`, except the largest, whose squares overflow."""
    values = [value for value in limits(dtype) if abs(value) < 1e4 or value in (float("inf"), float("-inf"))]
    x = noise((len(values) + 1, 40), dtype, 1)
    x[:-1, 7] = torch.tensor(values, dtype=torch.float64).to(dtype)
    x[-1, 7] = float("nan")
    return x, noise((40,), dtype, 2)


def before(dy: Callable[[Tensor, Tensor], Tensor], inputs: Callable[[torch.dtype], Tensors]) -> Callable[..., Tensors]:
    """The inputs of a gradient: dy, made from x and gamma, and these."""

    def all_three(dtype: torch.dtype) -> Tensors:
        x, gamma = inputs(dtype)
        return dy(x, gamma).to(dtype), x, gamma

    return all_three


def any_dy(x: Tensor, gamma: Tensor) -> Tensor:
    return noise(tuple(x.shape), x.dtype, 3)


def parallel_dy(x: Tensor, gamma: Tensor) -> Tensor:
    """Inputs for which dx nearly cancels: dy gamma is x."""
    return x.double() / gamma.double()


NORMS = (
    ("any numbers", rows_of(64, 1000), False),
    ("one column", rows_of(50, 1), False),
    ("numbers of 1e-15", rows_of(20, 100, 1e-15), False),
    ("one row of 2^20", rows_of(1, VOCABULARY), True),
    ("2^17 rows", rows_of(1 << 17, 8), True),
)
WIDE = (torch.float32, torch.float64)
NORM_CONDITIONS = (
    *(Condition(name, inputs, large) for name, inputs, large in NORMS),
    Condition("limits", special_rows),
    Condition("numbers of 1e15", rows_of(20, 100, 1e15), dtypes=(torch.bfloat16, *WIDE)),
    Condition("squares that overflow", rows_of(20, 100, 1e25), dtypes=(torch.bfloat16, torch.float32)),
    Condition("one row of 2^24", rows_of(1, HUGE_COUNT), large=True, dtypes=(torch.float32,)),
)
NORM_GRADIENTS = (
    *(
        Condition(condition.name, before(any_dy, condition.inputs), condition.large, condition.dtypes)
        for condition in NORM_CONDITIONS
    ),
    Condition("cancellation", before(parallel_dy, rows_of(20, 200))),
)

# ---- LayerNorm


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensors:
    """The statistics of rows in FLOAT, like ours; torch's own would have x's dtype."""
    wide = x if x.dtype == torch.float64 else x.float()
    statistics = aten.native_layer_norm(wide, gamma.shape, None, None, EPSILON)[1:]
    return TF.layer_norm(x, gamma.shape, gamma, beta, EPSILON), *statistics


def layer_norm_backward_of_ours(dy: Tensor, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensors:
    _, mean, rstd = ours.layer_norm(x, gamma.shape, gamma, beta, EPSILON)
    return ours.layer_norm_backward(dy, x, gamma.shape, mean, rstd, gamma, beta, [True] * 3)


def layer_norm_backward(dy: Tensor, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensors:
    leaves = [tensor.detach().requires_grad_() for tensor in (x, gamma, beta)]
    return torch.autograd.grad(TF.layer_norm(leaves[0], gamma.shape, leaves[1], leaves[2], EPSILON), leaves, dy)


def standardized(dtype: torch.dtype, x: Array) -> tuple[Array, Array, Array, Array]:
    """Mean and rstd of the rows, xhat, and the size of its terms: an element and the terms of the mean."""
    epsilon = Exact(EPSILON) if dtype == torch.float64 else Exact(np.float32(EPSILON))
    mean = np.mean(x, -1, keepdims=True)
    rstd = 1 / np.sqrt(np.mean((x - mean) ** 2, -1, keepdims=True) + epsilon)
    return mean, rstd, (x - mean) * rstd, (np.abs(x) + np.mean(np.abs(x), -1, keepdims=True)) * rstd


def exact_layer_norm(dtype: torch.dtype, x: Array, gamma: Array, beta: Array) -> Sequence[Expected]:
    mean, rstd, xhat, size = standardized(dtype, x)
    return (
        (xhat * gamma + beta, size * np.abs(gamma) + np.abs(beta)),
        (mean, np.mean(np.abs(x), -1, keepdims=True)),
        (rstd, None),
    )


def exact_layer_norm_backward(dtype: torch.dtype, dy: Array, x: Array, gamma: Array, beta: Array) -> Sequence[Expected]:
    _, rstd, xhat, size = standardized(dtype, x)
    a = dy * gamma
    mean, product = np.mean(a, -1, keepdims=True), np.mean(a * xhat, -1, keepdims=True)
    sizes = [np.mean(np.abs(terms), -1, keepdims=True) for terms in (a, a * size)]
    return (
        (rstd * (a - mean - xhat * product), rstd * (np.abs(a) + sizes[0] + size * sizes[1])),
        (np.sum(dy * xhat, 0), np.sum(np.abs(dy) * size, 0)),
        (np.sum(dy, 0), np.sum(np.abs(dy), 0)),
    )


def with_beta(inputs: Callable[[torch.dtype], Tensors]) -> Callable[[torch.dtype], Tensors]:
    """The inputs of RmsNorm, and beta."""

    def all_three(dtype: torch.dtype) -> Tensors:
        x, gamma = inputs(dtype)
        return x, gamma, noise(tuple(gamma.shape), dtype, 8)

    return all_three


def around_1000(scale: float) -> Callable[[torch.dtype], Tensors]:
    """Numbers that are nearly equal; and gamma."""
    return lambda dtype: (
        noise((20, 200), torch.float64, 1).mul(scale).add(1000).to(dtype),
        noise((200,), dtype, 2),
    )


def equal_rows(dtype: torch.dtype) -> Tensors:
    """Rows of one value each; and gamma."""
    numbers = torch.linspace(-3, 3, 20, dtype=torch.float64).to(dtype)
    return numbers[:, None].repeat(1, 77), noise((77,), dtype, 2)


LAYER_NORM_CONDITIONS = (
    *(Condition(one.name, with_beta(one.inputs), one.large, one.dtypes) for one in NORM_CONDITIONS),
    Condition("equal numbers", with_beta(equal_rows)),
    Condition("numbers around 1000", with_beta(around_1000(1.0))),
    Condition("numbers around 1000, 1e-2 apart", with_beta(around_1000(1e-2)), dtypes=WIDE),
)


def with_dy(condition: Condition) -> Condition:
    """The inputs of the gradient."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x, gamma, beta = condition.inputs(dtype)
        return any_dy(x, gamma), x, gamma, beta

    return Condition(condition.name, inputs, condition.large, condition.dtypes)


def parallel(dtype: torch.dtype) -> Tensors:
    """Inputs for which dx nearly cancels: dy gamma is x."""
    x, gamma, beta = with_beta(rows_of(20, 200))(dtype)
    return parallel_dy(x, gamma).to(dtype), x, gamma, beta


LAYER_NORM_GRADIENTS = (
    *(with_dy(condition) for condition in LAYER_NORM_CONDITIONS),
    Condition("cancellation", parallel),
)

# ---- CrossEntropyLoss


def cross_entropy_loss(x: Tensor, target: Tensor) -> Tensors:
    return TF.cross_entropy(x, target), TF.log_softmax(x, 1)


def exact_cross_entropy_loss(dtype: torch.dtype, x: Array, target: Array) -> Sequence[Expected]:
    shifted = x - np.max(x, 1, keepdims=True)
    logarithm = np.log(np.sum(np.exp(shifted), 1, keepdims=True))
    log_prob = shifted - logarithm
    # A relative error of the sum is an absolute error of its logarithm.
    size = 1 + np.abs(shifted) + logarithm
    rows = np.arange(len(x)), target.astype(int)
    return (-np.mean(log_prob[rows]), np.mean(size[rows])), (log_prob, size)


def cross_entropy_loss_grad(grad: Tensor, log_prob: Tensor, target: Tensor) -> Tensors:
    """The two steps of torch's own gradient."""
    total = torch.tensor(float(len(target)), dtype=log_prob.dtype)
    step = aten.nll_loss_backward(grad, log_prob, target, None, 1, -100, total)
    return (aten._log_softmax_backward_data(step, log_prob, 1, log_prob.dtype),)


def exact_cross_entropy_loss_grad(
    dtype: torch.dtype, grad: Array, log_prob: Array, target: Array
) -> Sequence[Expected]:
    factor = grad / Exact(len(target))
    at_label = np.zeros_like(log_prob)
    at_label[np.arange(len(target)), target.astype(int)] = 1
    return (((np.exp(log_prob) - at_label) * factor, (np.exp(log_prob) + at_label) * np.abs(factor)),)


def labels(rows: int, classes: int) -> Tensor:
    return torch.arange(rows) * 7919 % classes


def logits(
    rows: int, classes: int, scale: float = 1.0, offset: float = 0.0, set_to: float | None = None
) -> Callable[[torch.dtype], Tensors]:
    """Logits of this size around `offset`, with one given number in every row, if any; and labels."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x = noise((rows, classes), torch.float64, 4).mul(scale).add(offset)
        if set_to is not None:
            x[torch.arange(rows), torch.arange(rows) % classes] = set_to
        return x.to(dtype), labels(rows, classes)

    return inputs


def largest(dtype: torch.dtype) -> Tensors:
    """Logits whose differences overflow."""
    most = torch.finfo(dtype).max
    x = torch.tensor([[most, -most, 0.0], [-most, most, -most], [most, most, most]], dtype=torch.float64)
    return x.to(dtype), torch.tensor([0, 1, 2])


INFINITY = float("inf")
LOSSES = (
    Condition("any logits", logits(64, 1000)),
    Condition("one class", logits(50, 1)),
    Condition("two classes, nearly sure", logits(50, 2, 0.1, 0.0, 12.0)),
    Condition("logits around 1000", logits(20, 500, 1.0, 1000.0)),
    Condition("subnormal logits", logits(20, 50, 1e-40), dtypes=(torch.bfloat16, *WIDE)),
    Condition("one class of -inf", logits(20, 50, set_to=-INFINITY)),
    Condition("one class of inf", logits(20, 50, set_to=INFINITY)),
    Condition("one class of nan", logits(20, 50, set_to=float("nan"))),
    Condition("largest logits", largest),
    Condition("2^20 classes", logits(2, VOCABULARY), large=True),
    Condition("2^20 equal classes", logits(2, VOCABULARY, 0.0), large=True),
    Condition("2^22 rows", logits(1 << 22, 4), large=True, dtypes=(torch.float32,)),
)


def with_log_prob(condition: Condition) -> Condition:
    """The inputs of the gradient."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x, target = condition.inputs(dtype)
        return torch.tensor(0.75, dtype=dtype), TF.log_softmax(x.double(), 1).to(dtype), target

    return Condition(condition.name, inputs, condition.large, condition.dtypes)


# ---- The cross entropy of a linear layer


def loss_and_gradients(function: Callable[..., Tensor]) -> Callable[..., Tensors]:
    """The mean loss, and its gradients with respect to rows and matrix."""

    def compute(x: Tensor, matrix: Tensor, target: Tensor) -> Tensors:
        leaves = x.detach().requires_grad_(), matrix.detach().requires_grad_()
        loss = function(*leaves, target)
        return loss.detach(), *torch.autograd.grad(loss, leaves)

    return compute


def exact_linear_cross_entropy(dtype: torch.dtype, x: Array, matrix: Array, target: Array) -> Sequence[Expected]:
    z = x @ matrix.T
    rows = np.arange(len(x)), target.astype(int)
    shifted = z - np.max(z, 1, keepdims=True)
    logarithm = np.log(np.sum(np.exp(shifted), 1, keepdims=True))
    log_prob = shifted - logarithm
    # The terms of a row's logits: their error is an error of the loss, and a relative one of each probability.
    terms = np.max(np.abs(x) @ np.abs(matrix.T), 1, keepdims=True)
    size = 1 + terms + np.abs(shifted) + logarithm
    p = np.exp(log_prob)
    at_label = np.zeros_like(p)
    at_label[rows] = 1
    g, of_g = (p - at_label) / len(x), (p * size + at_label) / len(x)
    return (
        (-np.mean(log_prob[rows]), np.mean(size[rows])),
        (g @ matrix, of_g @ np.abs(matrix)),
        (g.T @ x, of_g.T @ np.abs(x)),
    )


def layer(
    rows: int, width: int, classes: int, scale: float = 1.0, offset: float = 0.0, set_to: float | None = None
) -> Callable[[torch.dtype], Tensors]:
    """Rows and matrix whose logits are of this size, around `offset`; a class with a given number, if any; labels."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x = noise((rows, width), torch.float64, 4)
        matrix = noise((classes, width), torch.float64, 5).mul(scale / width**0.5)
        if offset:
            x[:, 0], matrix[:, 0] = 1.0, offset
        if set_to is not None:
            matrix[classes // 2] = set_to
        return x.to(dtype), matrix.to(dtype), labels(rows, classes)

    return inputs


def largest_layer(dtype: torch.dtype) -> Tensors:
    """Logits outside the dtype's range."""
    most = torch.finfo(dtype).max
    matrix = torch.tensor([[most] * 3, [1.0] * 3], dtype=dtype)
    return torch.full((2, 3), most, dtype=dtype), matrix, torch.tensor([0, 0])


LINEAR_LAYERS = (
    Condition("any numbers", layer(64, 48, 1000)),
    Condition("one class", layer(50, 8, 1)),
    Condition("logits of 30, nearly sure", layer(50, 16, 20, 30.0)),
    Condition("logits around 1000", layer(20, 32, 500, 1.0, 1000.0)),
    Condition("rows of 2^16", layer(4, 1 << 16, 10)),
    Condition("one class of inf", layer(20, 8, 50, set_to=INFINITY)),
    Condition("one class of nan", layer(20, 8, 50, set_to=float("nan"))),
    Condition("largest numbers", largest_layer),
    Condition("2^20 classes", layer(2, 2, VOCABULARY), large=True),
    Condition("2^20 rows", layer(1 << 20, 2, 4), large=True),
)

# ---- Convolution

LINE = ([1], [0], [1], False, [0], 1)  # one dimension, no padding


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensors:
    return (aten.convolution(x, weight, bias, *LINE),)


def convolution_backward(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensors:
    return tuple(aten.convolution_backward(gradient, x, weight, [weight.shape[0]], *LINE, [True] * 3))


def windows(x: Array, taps: int) -> Array:
    """Of shape [batch, channels, positions, taps]."""
    return np.lib.stride_tricks.sliding_window_view(x, taps, 2)


def exact_convolution(dtype: torch.dtype, x: Array, weight: Array, *bias: Array) -> Sequence[Expected]:
    def sum_of(x: Array, weight: Array) -> Array:
        return np.einsum("nctk,ock->not", windows(x, weight.shape[2]), weight)

    added = bias[0][:, np.newaxis] if bias else 0
    return ((sum_of(x, weight) + added, sum_of(np.abs(x), np.abs(weight))),)


def exact_convolution_backward(dtype: torch.dtype, gradient: Array, x: Array, weight: Array) -> Sequence[Expected]:
    def sums(gradient: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
        taps = weight.shape[2]
        around = np.pad(gradient, ((0, 0), (0, 0), (taps - 1, taps - 1)))
        return (
            np.einsum("notk,ock->nct", windows(around, taps), weight[..., ::-1]),
            np.einsum("not,nctk->ock", gradient, windows(x, taps)),
            gradient.sum((0, 2)),
        )

    results = sums(gradient, x, weight)
    return list(zip(results, sums(np.abs(gradient), np.abs(x), np.abs(weight)), strict=True))


def images(
    shape: tuple[int, int, int],
    results: int,
    taps: int,
    scale: float = 1.0,
    set_to: float | None = None,
    one_sign: bool = False,
) -> Callable[[torch.dtype], Tensors]:
    """x, with numbers of this size, one of them given, if any; and a weight."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x = noise(shape, torch.float64, 5).mul(scale)
        weight = noise((results, shape[1], taps), dtype, 6)
        if one_sign:
            x, weight = x.abs(), weight.abs()
        if set_to is not None:
            x[0, 0, shape[2] // 2] = set_to
        return x.to(dtype), weight

    return inputs


def differences(dtype: torch.dtype) -> Tensors:
    """Large numbers that are nearly equal."""
    x = noise((2, 4, 300), torch.float64, 5).mul(2.0**-6).add(1000)
    return x.to(dtype), torch.tensor([1.0, -1.0], dtype=dtype).repeat(4, 4, 1)


def with_bias(inputs: Callable[[torch.dtype], Tensors]) -> Callable[[torch.dtype], Tensors]:
    """And a bias so large that few bits are left for each product."""

    def inputs_and_bias(dtype: torch.dtype) -> Tensors:
        x, weight = inputs(dtype)
        return x, weight, noise((weight.shape[0],), torch.float64, 8).div(torch.finfo(dtype).eps / 4).to(dtype)

    return inputs_and_bias


CONVOLUTIONS = (
    Condition("few channels", images((2, 3, 40), 4, 3)),
    Condition("many channels", images((4, 256, 30), 32, 3)),
    Condition("many products of one sign", images((1, 3000, 40), 18, 3, one_sign=True)),
    Condition("one tap", images((4, 300, 100), 40, 1)),
    Condition("cancellation", differences),
    Condition("numbers of 1e-36", images((2, 16, 200), 16, 3, 1e-36), dtypes=(torch.bfloat16, *WIDE)),
    Condition("subnormal numbers", images((2, 16, 200), 16, 3, 1e-39), dtypes=(torch.bfloat16, *WIDE)),
    Condition("products that overflow", images((2, 3, 100), 4, 3, 1e38), dtypes=(torch.bfloat16, torch.float32)),
    Condition("an inf", images((2, 16, 200), 16, 3, set_to=INFINITY)),
    Condition("a nan", images((2, 16, 200), 16, 3, set_to=float("nan"))),
    # Not in BFLOAT16: torch's own gradient corrupts memory there.
    Condition("2^20 channels", images((1, VOCABULARY, 2), 2, 1), large=True, dtypes=(torch.float32,)),
    Condition("2^24 positions", images((1, 1, HUGE_COUNT), 1, 1), large=True, dtypes=(torch.float32,)),
)


BIASES = (
    Condition("large bias, few products", with_bias(images((1, 30, 20), 8, 3, one_sign=True)), dtypes=WIDE),
    Condition("large bias, many products", with_bias(images((1, 3000, 40), 18, 3, one_sign=True)), dtypes=WIDE),
)


def with_gradient(condition: Condition) -> Condition:
    """The inputs of the gradient."""

    def inputs(dtype: torch.dtype) -> Tensors:
        x, weight = condition.inputs(dtype)
        shape = (x.shape[0], weight.shape[0], x.shape[2] - weight.shape[2] + 1)
        return noise(shape, dtype, 7), x, weight

    return Condition(condition.name, inputs, condition.large, condition.dtypes)


# ---- All


OPERATORS = (
    *map(elementwise, kernels_for("torture")),
    Operator(
        "layer_norm",
        ("y", "mean", "rstd"),
        lambda x, gamma, beta: ours.layer_norm(x, gamma.shape, gamma, beta, EPSILON),
        layer_norm,
        exact_layer_norm,
        LAYER_NORM_CONDITIONS,
    ),
    Operator(
        "layer_norm_backward",
        ("dx", "dgamma", "dbeta"),
        layer_norm_backward_of_ours,
        layer_norm_backward,
        exact_layer_norm_backward,
        LAYER_NORM_GRADIENTS,
    ),
    Operator(
        "rms_norm",
        ("y", "rstd"),
        lambda x, gamma: ours.rms_norm(x, gamma, EPSILON),
        rms_norm,
        exact_rms_norm,
        NORM_CONDITIONS,
    ),
    Operator(
        "rms_norm_grad",
        ("dx", "dgamma"),
        rms_norm_grad_of_ours,
        rms_norm_grad,
        exact_rms_norm_grad,
        NORM_GRADIENTS,
    ),
    Operator(
        "cross_entropy_loss",
        ("loss", "log_prob"),
        lambda x, target: ours.cross_entropy_loss(x, target)[:2],
        cross_entropy_loss,
        exact_cross_entropy_loss,
        LOSSES,
    ),
    Operator(
        "cross_entropy_loss_grad",
        ("grad",),
        lambda grad, log_prob, target: (ours.cross_entropy_loss_grad(grad, log_prob, target),),
        cross_entropy_loss_grad,
        exact_cross_entropy_loss_grad,
        tuple(with_log_prob(condition) for condition in LOSSES),
    ),
    Operator(
        "linear_cross_entropy",
        ("loss", "dinput", "dweight"),
        loss_and_gradients(aclnn_torch.functional.linear_cross_entropy),
        loss_and_gradients(lambda x, matrix, target: TF.cross_entropy(TF.linear(x, matrix), target)),
        exact_linear_cross_entropy,
        LINEAR_LAYERS,
    ),
    Operator(
        "convolution",
        ("output",),
        lambda x, weight, bias=None: (ours.convolution(x, weight, bias, *LINE),),
        convolution,
        exact_convolution,
        CONVOLUTIONS + BIASES,
    ),
    Operator(
        "convolution_backward",
        ("gradInput", "gradWeight", "gradBias"),
        lambda gradient, x, weight: ours.convolution_backward(
            gradient, x, weight, [weight.shape[0]], *LINE, [True] * 3
        ),
        convolution_backward,
        exact_convolution_backward,
        tuple(with_gradient(condition) for condition in CONVOLUTIONS),
    ),
)


def largest_error(got: Tensor, expected: Expected) -> float:
    """In units in the last place; inf if finiteness or a zero's sign is wrong."""
    bits, least = FORMATS[got.dtype]
    exact, size = expected
    values = exactly(got).reshape(np.shape(exact))
    most = Exact(torch.finfo(got.dtype).max) * (1 + Exact(2) ** -(bits + 1))  # larger values round to inf
    finite = np.abs(exact) < most
    kind = np.where(np.isnan(exact), exact, np.copysign(Exact(np.inf), exact))
    right = np.where(finite, np.isfinite(values), (values == kind) | (np.isnan(values) & np.isnan(kind)))
    if size is None:
        right &= (exact != 0) | (np.signbit(values) == np.signbit(exact))
    if not np.all(right):
        return float("inf")
    exponent = np.maximum(np.frexp(np.abs(exact) if size is None else np.maximum(size, np.abs(exact)))[1], least + 1)
    errors = np.abs(values - exact) / np.ldexp(Exact(1), exponent - bits)
    return float(np.max(errors, where=finite, initial=0.0))


def errors(operator: Operator, condition: Condition, dtype: torch.dtype) -> dict[str, tuple[float, float]]:
    """Our error and torch's for each result."""
    inputs = condition.inputs(dtype)
    with aclnn_torch.product("host"), np.errstate(all="ignore"):
        expected = operator.exact(dtype, *map(exactly, inputs))
        results = zip(operator.results, operator.ours(*inputs), operator.torchs(*inputs), expected, strict=True)
        return {name: (largest_error(got, one), largest_error(peer, one)) for name, got, peer, one in results}


def main() -> int:
    """Prints the table: for each operator, condition and dtype the largest error of any result, ours and torch's."""
    print("| Ours, torch's |", " | ".join(str(dtype).removeprefix("torch.") for dtype in FORMATS), "|")
    print("|---|" + "---|" * len(FORMATS))
    for operator in filter(lambda operator: chosen(operator.name), OPERATORS):
        for condition in operator.conditions:
            cells = []
            for dtype in FORMATS:
                found = errors(operator, condition, dtype).values() if dtype in condition.dtypes else ()
                cells.append(", ".join(f"{max(one):.3g}" for one in zip(*found, strict=True)))
            print(f"| {operator.name}: {condition.name} |", " | ".join(cells), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
