"""Bounds on the difference that rounding alone can cause between two correct implementations of a network.

Two correct implementations differ only by their roundings. The network is evaluated in float64, and every value has an
error scale, that of the rounding errors in its computed counterpart (u is a dtype's unit roundoff, 2**-24, 2**-11 or
2**-8):

* * storing a value in a dtype adds an error of at most u * |value|, or half the smallest subnormal;
* * a sum of n terms, accumulated in float32, adds n errors of at most 2**-24 times the sum of their magnitudes;
* * a function evaluated in float32 adds a few units of 2**-24;
* * an existing error is multiplied by the other factor of a product, and by the slope of a function.

Roundings are assumed to be independent and unbiased, so their scales add as the root of the sum of squares; if one
rounding arrives on two paths, they add linearly. By Hoeffding's inequality such a sum exceeds CONFIDENCE = 8 times its
scale with probability below 2 exp(-32), that is, any of a million values with probability below 3e-8. Nothing is fitted
to the implementations. Each has its own scales, because they round in different places (Arithmetic). The scale of a
difference of two is the root of the sum of both squares, plus the jump of the derivative at zero if an argument of an
activation has different signs in the two. The last rounding of a result, being a single one, is bounded by itself, not
by 8 times itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CONFIDENCE = 8.0
FLOAT32_ROUNDOFF = 2.0**-24

# f(x) = below * (exp(x) - 1) for x <= 0 and above * x for x > 0.
SLOPES = {nn.ELU: (1.0, 1.0), nn.SELU: (1.6732632423543772 * 1.0507009873554805, 1.0507009873554805)}

# The operators of a layer's forward and backward pass; a Flatten computes nothing.
OPERATORS = {
    nn.Conv2d: ("convolution", "convolution_backward"),
    nn.RMSNorm: ("rms_norm", "rms_norm_grad"),
    nn.ELU: ("elu", "elu_backward"),
    nn.SELU: ("selu", "selu_backward"),
    nn.CrossEntropyLoss: ("cross_entropy_loss", "cross_entropy_loss_grad"),
}


@dataclass(frozen=True)
class Arithmetic:
    """The places where an implementation rounds."""

    stored: torch.dtype  # the dtype of every operator's result
    partial: torch.dtype  # the dtype of an operator's intermediate results

    @staticmethod
    def of_ours(dtype: torch.dtype) -> Arithmetic:
        """An aclnn operator computes in float32 and rounds once."""
        return Arithmetic(dtype, torch.float32)

    @staticmethod
    def of_plain(dtype: torch.dtype) -> Arithmetic:
        """ATen stores partial results in the dtype if it has no better kernel, as on most CPUs for float16."""
        return Arithmetic(dtype, dtype)


@dataclass
class Rounded:
    """Exact values, in float64, and the error scale of the computed values."""

    value: Tensor
    error: Tensor

    def arranged(self, how: Callable[[Tensor], Tensor]) -> Rounded:
        """The same values rearranged or reshaped."""
        return Rounded(how(self.value), how(self.error))

    def plus(self, error: Tensor) -> Rounded:
        """The same values with an additional, independent error."""
        return Rounded(self.value, torch.hypot(self.error, error))

    def stored(self, dtype: torch.dtype) -> Rounded:
        """The same values after one rounding to `dtype`."""
        return self.plus(rounding(self.value, dtype))


# Maps the gradient of a layer's result to those of its input and of its parameters. These and the result are the values
# before an implementation stores them.
Backward = Callable[[Rounded], tuple[Rounded, list[Rounded]]]


def exact(tensor: Tensor) -> Rounded:
    """Values that both implementations share: weights and inputs."""
    value = tensor.detach().cpu().double()
    return Rounded(value, torch.zeros_like(value))


def rounding(value: Tensor, dtype: torch.dtype) -> Tensor:
    """The largest error from storing values in `dtype`."""
    info = torch.finfo(dtype)
    return (value.abs() * info.eps / 2).clamp(min=info.smallest_normal * info.eps / 2)


def root_sum_square(x: Tensor, dim: int) -> Tensor:
    """The root of the sum of squares along a dimension, which is kept with length 1."""
    return x.square().sum(dim, keepdim=True).sqrt()


def matmul(a: Rounded, b: Rounded) -> Rounded:
    """A matrix product accumulated in float32."""
    inherited = (a.error**2 @ b.value**2 + a.value**2 @ b.error**2).sqrt()
    summation = a.value.shape[-1] ** 0.5 * FLOAT32_ROUNDOFF * (a.value.abs() @ b.value.abs())
    return Rounded(a.value @ b.value, inherited).plus(summation)


def multiply(a: Rounded, b: Rounded) -> Rounded:
    """An elementwise product."""
    return Rounded(a.value * b.value, torch.hypot(a.error * b.value, a.value * b.error))


def total(x: Rounded, partial: torch.dtype = torch.float32) -> Rounded:
    """The sum over the first dimension in any order, with every partial sum stored in `partial`."""
    summation = len(x.value) ** 0.5 * torch.finfo(partial).eps / 2 * x.value.abs().sum(0)
    return Rounded(x.value.sum(0), root_sum_square(x.error, 0)[0]).plus(summation)


def convolution(layer: nn.Conv2d, x: Rounded, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """A convolution: the product of the weight [channels, K] and patches [images, K, positions] of the input."""
    geometry = {name: getattr(layer, name) for name in ("kernel_size", "dilation", "padding", "stride")}
    sizes = zip(x.value.shape[2:], *geometry.values(), strict=True)
    size = [(n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k, dilation, padding, stride in sizes]
    weight = exact(layer.weight).arranged(lambda t: t.flatten(1))
    patches = x.arranged(lambda t: F.unfold(t, **geometry))

    product = matmul(weight, patches).stored(arithmetic.partial)
    y = Rounded(product.value + layer.bias.detach().cpu().double()[:, None], product.error)

    def backward(gradient: Rounded) -> tuple[Rounded, list[Rounded]]:
        dy = gradient.arranged(lambda t: t.flatten(2))
        # The input's: the gradients of all patches, added where patches overlap, one kernel element after another.
        columns = matmul(weight.arranged(lambda t: t.mT), dy).stored(arithmetic.partial)

        def fold(t: Tensor) -> Tensor:
            return F.fold(t, x.value.shape[2:], **geometry)

        overlap = weight.value[0].numel() // x.value.shape[1]
        summation = overlap**0.5 * torch.finfo(arithmetic.partial).eps / 2 * fold(columns.value.abs())
        dx = Rounded(fold(columns.value), fold(columns.error.square()).sqrt()).plus(summation)
        # The weight's: one sum over images and positions, or stored after every image.
        dy_of_channel = dy.arranged(lambda t: t.transpose(0, 1).flatten(1))
        dweight = matmul(dy_of_channel, patches.arranged(lambda t: t.mT.flatten(0, 1)))
        after_each_image = (dy.value @ patches.value.mT).cumsum(0)
        dweight = dweight.plus(root_sum_square(rounding(after_each_image, arithmetic.partial), 0)[0])
        dbias = total(dy_of_channel.arranged(lambda t: t.mT))
        return dx, [dweight.arranged(lambda t: t.view(layer.weight.shape)), dbias]

    return y.arranged(lambda t: t.unflatten(2, size)), backward


def rms_norm(layer: nn.RMSNorm, x: Rounded, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """In rows of D, y = x * rstd * gamma with rstd = 1 / sqrt(mean(x**2) + eps); evaluated in float32."""
    shape = x.value.shape
    rows = x.arranged(lambda t: t.flatten(-len(layer.normalized_shape)))
    values, errors = rows.value, rows.error
    gamma = layer.weight.detach().cpu().double().flatten()
    count = values.shape[-1]
    # A sum over a row and fewer than 8 other operations.
    evaluation = (count**0.5 + 8) * FLOAT32_ROUNDOFF

    rstd = (values.square().mean(-1, keepdim=True) + layer.eps).rsqrt()
    # d(x_i rstd) = rstd dx_i - x_i rstd**3 mean(x dx)
    through_rstd = rstd**3 * values.abs() * root_sum_square(values * errors, -1) / count
    normalised = Rounded(values * rstd, rstd * errors + through_rstd)
    normalised = normalised.plus(evaluation * normalised.value.abs())
    y = multiply(normalised, Rounded(gamma, torch.zeros_like(gamma)))

    def backward(gradient: Rounded) -> tuple[Rounded, list[Rounded]]:
        dy = gradient.arranged(lambda t: t.reshape(values.shape))
        # dx_i = rstd a_i - rstd**3 m x_i with a = dy * gamma and m = mean(a x)
        a, a_error = dy.value * gamma, dy.error * gamma.abs()
        m = (a * values).mean(-1, keepdim=True)
        from_dy = rstd * a_error + rstd**3 * values.abs() * root_sum_square(values * a_error, -1) / count
        # Its derivative by x_j is -rstd**3 (m [i = j] + (b_i x_j + x_i a_j) / D) with b = a - 3 rstd**2 m x.
        b = a - 3 * rstd**2 * m * values
        across = b.abs() * root_sum_square(values * errors, -1) + values.abs() * root_sum_square(a * errors, -1)
        from_x = rstd**3 * (m.abs() * errors + across / count)
        # rstd, cubed, contributes three times, each time with half the error of its sum.
        magnitude = rstd * a.abs() + 3 * rstd**3 * values.abs() * (a * values).abs().mean(-1, keepdim=True)
        dx = Rounded(rstd * a - rstd**3 * m * values, torch.hypot(from_dy, from_x)).plus(evaluation * magnitude)
        dgamma = total(multiply(dy, normalised).arranged(lambda t: t.flatten(0, -2)))
        dgamma = dgamma.arranged(lambda t: t.view(layer.normalized_shape))
        return dx.arranged(lambda t: t.view(shape)), [dgamma]

    return y.arranged(lambda t: t.view(shape)), backward


def activation(layer: nn.ELU | nn.SELU, x: Rounded, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """ELU or SELU, evaluated in float32."""
    below, above = SLOPES[type(layer)]
    negative = x.value <= 0
    value = torch.where(negative, below * torch.expm1(x.value), above * x.value)
    slope = torch.where(negative, value + below, above)
    # exp within 2 ulp (4 roundoffs), the subtraction, alpha * scale and the product with it.
    evaluation = 7 * FLOAT32_ROUNDOFF * value.abs().clamp(min=below)
    y = Rounded(value, slope * x.error).plus(evaluation)
    # Below zero the derivative is y + alpha * scale, so it has the error of the stored y that it may be computed from.
    derivative = Rounded(slope, torch.where(negative, y.stored(arithmetic.stored).error, 0)).plus(evaluation)
    return y, lambda dy: (multiply(dy, derivative), [])


def flatten(layer: nn.Flatten, x: Rounded, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """Computes nothing."""
    return x.arranged(layer), lambda dy: (dy.arranged(lambda t: t.view(x.value.shape)), [])


RULES = {nn.Conv2d: convolution, nn.RMSNorm: rms_norm, nn.ELU: activation, nn.SELU: activation, nn.Flatten: flatten}


def cross_entropy(logits: Rounded, target: Tensor, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """The mean cross entropy, evaluated in float32."""
    batch, classes = logits.value.shape
    log_prob = logits.value.log_softmax(-1)
    probability = log_prob.exp()
    # d log_prob_i = dz_i - sum of p_j dz_j
    inherited = logits.error + root_sum_square(probability * logits.error, -1)
    evaluation = FLOAT32_ROUNDOFF * (classes + 4 * (1 + logits.value.abs().amax(-1, keepdim=True)))
    computed = Rounded(log_prob, inherited).plus(evaluation)
    labelled = F.one_hot(target, classes).bool()
    losses = computed.stored(arithmetic.partial).arranged(lambda t: t[labelled] / batch)
    loss = total(Rounded(-losses.value, losses.error), arithmetic.partial)

    def backward(gradient: Rounded) -> tuple[Rounded, list[Rounded]]:
        # (exp(log_prob) - [labelled]) / batch, from the stored log_prob: one more rounding.
        value = (probability - labelled.double()) / batch
        dz = Rounded(value, probability / batch * computed.stored(arithmetic.stored).error)
        return multiply(gradient, dz.plus(4 * FLOAT32_ROUNDOFF * value.abs())), []

    return loss, backward


def propagate(layer: nn.Module, x: Rounded, target: Tensor, arithmetic: Arithmetic) -> tuple[Rounded, Backward]:
    """A layer's result, and its backward pass."""
    if isinstance(layer, nn.CrossEntropyLoss):
        return cross_entropy(x, target.cpu(), arithmetic)
    return RULES[type(layer)](layer, x, arithmetic)


@dataclass
class Comparison:
    """A comparison of two implementations' results."""

    name: str
    dtype: torch.dtype
    largest: float  # largest value, for scale
    difference: float  # largest difference
    bound: float  # of the difference, from rounding
    worst_share: float  # largest difference as a share of its bound

    @property
    def passed(self) -> bool:
        """True if rounding explains every difference."""
        return self.worst_share <= 1


def compare(name: str, found: Sequence[Tensor], expected: Sequence[Tensor], bounds: Sequence[Tensor]) -> Comparison:
    """Compares every difference with its own bound."""
    parts = zip(found, expected, strict=True)
    difference = torch.cat([(a.detach().cpu().double() - b.detach().cpu().double()).abs().flatten() for a, b in parts])
    bound = torch.cat([part.flatten() for part in bounds])
    share = (difference / bound).nan_to_num(nan=torch.inf)  # a NaN is never within its bound
    # Among equal differences, the one with the largest bound; matters if all differences are zero.
    at = int(torch.where(difference == difference.max(), bound, 0.0).argmax())
    largest = max(float(part.detach().abs().max()) for part in expected)
    return Comparison(name, expected[0].dtype, largest, float(difference[at]), float(bound[at]), float(share.max()))


def bounds(rounded: Callable[[Arithmetic], list[Rounded]], dtype: torch.dtype) -> list[Tensor]:
    """Bounds on the difference of two implementations of `rounded`'s computation, in `dtype`."""
    pairs = zip(rounded(Arithmetic.of_ours(dtype)), rounded(Arithmetic.of_plain(dtype)), strict=True)
    return [CONFIDENCE * torch.hypot(a.error, b.error) + 2 * rounding(a.value, dtype) for a, b in pairs]


class Network(nn.Module):
    """Layers, and the mean cross entropy of the last layer's result."""

    def __init__(self, layers: nn.Sequential, loss: nn.Module) -> None:
        super().__init__()
        self.layers = layers
        self.loss = loss

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits."""
        return self.layers(images)

    def all_values(self, images: Tensor, target: Tensor) -> list[Tensor]:
        """The images, the result of every layer, and the loss."""
        values = [images]
        for layer in self.layers:
            values.append(layer(values[-1]))
        return [*values, self.loss(values[-1], target)]


def check_gradients(ours: Network, plain: Network, images: Tensor, target: Tensor) -> Comparison:
    """Compares the gradients of all parameters of two networks that have the same weights."""
    values = [network.all_values(images, target) for network in (ours, plain)]
    found, expected = (
        torch.autograd.grad(loss, list(network.parameters()))
        for network, (*_, loss) in zip((ours, plain), values, strict=True)
    )
    flipped = [((a > 0) != (b > 0)).cpu() for a, b in zip(*values, strict=True)]

    def rounded(arithmetic: Arithmetic) -> list[Rounded]:
        x, passes = exact(images), []
        for layer, sign_differs in zip([*plain.layers, plain.loss], flipped, strict=False):
            x, backward = propagate(layer, x, target, arithmetic)
            x = x.stored(arithmetic.stored)
            passes.append((layer, backward, sign_differs))
        dx, all_parameters = exact(torch.tensor(1.0)), []
        for layer, backward, sign_differs in reversed(passes):
            dy = dx
            dx, parameters = backward(dy)
            if type(layer) in SLOPES:
                below, above = SLOPES[type(layer)]
                dx = dx.plus(abs(below - above) * sign_differs * dy.value.abs())
            dx = dx.stored(arithmetic.stored)
            all_parameters += reversed(parameters)
        return all_parameters[::-1]

    return compare("all parameters", found, expected, bounds(rounded, images.dtype))


def check_operators(ours: Network, plain: Network, images: Tensor, target: Tensor) -> list[Comparison]:
    """Compares every operator separately: all layers get the inputs and gradients of the plain network."""
    *values, loss = plain.all_values(images, target)
    gradients = torch.autograd.grad(loss, [*values[1:], loss])
    compared: dict[str, list[list[Tensor]]] = {}
    pairs = zip([*ours.layers, ours.loss], [*plain.layers, plain.loss], strict=True)
    for (our_layer, layer), x, dy in zip(pairs, values, gradients, strict=True):
        if type(layer) not in OPERATORS:
            continue

        def rounded(arithmetic: Arithmetic, layer: nn.Module = layer, x: Tensor = x, dy: Tensor = dy) -> list[Rounded]:
            y, backward = propagate(layer, exact(x), target, arithmetic)
            dx, parameters = backward(exact(dy))
            return [y, dx, *parameters]

        columns = []
        for implementation in (our_layer, layer):
            argument = x.detach().requires_grad_()
            y = implementation(argument, target) if layer is plain.loss else implementation(argument)
            columns.append([y, *torch.autograd.grad(y, [argument, *implementation.parameters()], dy)])
        columns.append(bounds(rounded, x.dtype))
        forward, backward = OPERATORS[type(layer)]
        for name, part in ((forward, slice(1)), (backward, slice(1, None))):
            for all_layers, column in zip(compared.setdefault(name, [[], [], []]), columns, strict=True):
                all_layers += column[part]
    return [compare(name, *columns) for name, columns in compared.items()]
