"""How far apart rounding alone may drive the gradients of two correct implementations of one network.

Two correct implementations differ by their roundings only. The network is evaluated in float64, and every value
carries the scale of the error that rounding leaves in its computed counterpart (u is the dtype's unit roundoff,
2**-24, 2**-11 or 2**-8):

* storing a value in the dtype leaves an error of at most u * |value|, or half the smallest subnormal;
* a sum of n products, accumulated in float32, leaves n errors of at most 2**-24 times the sum of the magnitudes;
* an activation or softmax, evaluated in float32, leaves a few units of 2**-24;
* an error already there passes through a product times the other factor, and through a function times its slope.

Roundings are taken as independent and without bias, so their scales add as the root of the sum of squares. By
Hoeffding's inequality such a sum exceeds CONFIDENCE = 8 times its scale with probability below 2 exp(-32), that is, any
of 100,000 gradients with probability below 3e-9. Nothing is fitted to the implementations. What a difference of two
implementations has on top of one's error: a factor of sqrt(2), and, where an argument of an activation got another sign
in the one than in the other, the jump of the derivative at zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

CONFIDENCE = 8.0
FLOAT32_ROUNDOFF = 2.0**-24

# f(x) = below * (exp(x) - 1) for x <= 0 and above * x for x > 0.
SLOPES = {nn.ELU: (1.0, 1.0), nn.SELU: (1.6732632423543772 * 1.0507009873554805, 1.0507009873554805)}


@dataclass
class Rounded:
    """Exact values, in float64, and the scale of the error of the computed ones."""

    value: Tensor
    error: Tensor

    @property
    def mT(self) -> Rounded:
        """The transposed matrix."""
        return Rounded(self.value.mT, self.error.mT)

    def plus(self, error: Tensor) -> Rounded:
        """The same values with one more, independent error."""
        return Rounded(self.value, torch.hypot(self.error, error))

    def stored(self, dtype: torch.dtype) -> Rounded:
        """The same values after one rounding to `dtype`."""
        info = torch.finfo(dtype)
        return self.plus((self.value.abs() * info.eps / 2).clamp(min=info.smallest_normal * info.eps / 2))


def exact(tensor: Tensor) -> Rounded:
    """Values that both implementations share: weights and inputs."""
    value = tensor.detach().double()
    return Rounded(value, torch.zeros_like(value))


def matmul(a: Rounded, b: Rounded) -> Rounded:
    """A matrix product accumulated in float32."""
    inherited = (a.error**2 @ b.value**2 + a.value**2 @ b.error**2).sqrt()
    summation = a.value.shape[-1] ** 0.5 * FLOAT32_ROUNDOFF * (a.value.abs() @ b.value.abs())
    return Rounded(a.value @ b.value, inherited).plus(summation)


def multiply(a: Rounded, b: Rounded) -> Rounded:
    """An elementwise product."""
    return Rounded(a.value * b.value, torch.hypot(a.error * b.value, a.value * b.error))


def activate(x: Rounded, below: float, above: float, dtype: torch.dtype) -> tuple[Rounded, Rounded]:
    """An activation's stored result and its derivative."""
    negative = x.value <= 0
    value = torch.where(negative, below * torch.expm1(x.value), above * x.value)
    slope = torch.where(negative, value + below, above)
    # exp within 2 ulp (4 roundoffs), the subtraction, alpha * scale and the product with it.
    evaluation = 7 * FLOAT32_ROUNDOFF * value.abs().clamp(min=below)
    result = Rounded(value, slope * x.error).plus(evaluation).stored(dtype)
    # Below zero the derivative is result + alpha * scale, so it is as far off as the result it may be computed from.
    return result, Rounded(slope, torch.where(negative, result.error, 0)).plus(evaluation)


def cross_entropy_gradient(logits: Rounded, target: Tensor) -> Rounded:
    """Gradient of the mean cross entropy, evaluated in float32, with respect to the logits."""
    batch, classes = logits.value.shape
    probability = logits.value.softmax(-1)
    # dp_i = p_i (dz_i - sum_j p_j dz_j)
    common = (probability**2 * logits.error**2).sum(-1, keepdim=True).sqrt()
    evaluation = FLOAT32_ROUNDOFF * (classes + 4 * (1 + logits.value.abs().amax(-1, keepdim=True)))
    relative = torch.hypot(torch.hypot(logits.error, common), evaluation)
    value = (probability - nn.functional.one_hot(target, classes)) / batch
    return Rounded(value, probability * relative / batch).plus(4 * FLOAT32_ROUNDOFF * value.abs())


@dataclass
class GradientCheck:
    """The gradients of two implementations of one network, compared."""

    dtype: torch.dtype
    gradient: float  # largest gradient, for scale
    difference: float  # largest difference
    bound: float  # what rounding may make of that difference
    worst_share: float  # largest share of its bound that any difference uses

    @property
    def passed(self) -> bool:
        """Whether rounding explains every difference."""
        return self.worst_share <= 1


def check_gradients(ours: nn.Sequential, plain: nn.Sequential, images: Tensor, target: Tensor) -> GradientCheck:
    """Compares the gradients of two models that have the same weights, in the dtype of `images`.

    Both are sequences of Linear layers and activations that end in a Linear layer. The loss is the mean cross entropy
    of the logits, taken in float32.
    """
    passes = [_gradients(model, images, target) for model in (ours, plain)]
    (found, arguments), (expected, plain_arguments) = passes
    flipped = [(a > 0) != (b > 0) for a, b in zip(arguments, plain_arguments, strict=True)]
    bounds = _bounds(plain, images, target, flipped)
    difference = torch.cat([(a.double() - b.double()).abs().flatten() for a, b in zip(found, expected, strict=True)])
    bound = torch.cat([part.flatten() for part in bounds])
    share = (difference / bound).nan_to_num(nan=torch.inf)  # a gradient that is not a number explains nothing
    # Of equal differences the one with the largest bound, which matters when there is none at all.
    at = int(torch.where(difference == difference.max(), bound, 0.0).argmax())
    gradient = max(float(part.abs().max()) for part in expected)
    return GradientCheck(images.dtype, gradient, float(difference[at]), float(bound[at]), float(share.max()))


def _gradients(model: nn.Sequential, images: Tensor, target: Tensor) -> tuple[tuple[Tensor, ...], list[Tensor]]:
    """The gradients of all parameters, and the input of every layer."""
    arguments = [images]
    for layer in model:
        arguments.append(layer(arguments[-1]))
    loss = nn.functional.cross_entropy(arguments.pop().float(), target)
    return torch.autograd.grad(loss, list(model.parameters())), arguments


@torch.no_grad()
def _bounds(model: nn.Sequential, images: Tensor, target: Tensor, flipped: list[Tensor]) -> list[Tensor]:
    """Bounds on the difference of two implementations' gradients, one tensor per parameter."""
    dtype = images.dtype
    x = exact(images)
    factors: list[Rounded] = []  # of each layer's gradient: the input of a Linear, the derivative of an activation
    for layer, sign_differs in zip(model, flipped, strict=True):
        if isinstance(layer, nn.Linear):
            factors.append(x)
            product = matmul(x, exact(layer.weight).mT).stored(dtype)
            x = Rounded(product.value + layer.bias.double(), product.error).stored(dtype)
        else:
            below, above = SLOPES[type(layer)]
            x, derivative = activate(x, below, above, dtype)
            factors.append(derivative.plus(torch.where(sign_differs, abs(below - above), 0.0)))

    bounds: list[Tensor] = []
    gradient = cross_entropy_gradient(x, target).stored(dtype)
    for layer, factor in zip(reversed(model), reversed(factors), strict=True):
        if isinstance(layer, nn.Linear):
            weight = matmul(gradient.mT, factor).stored(dtype)
            bias = matmul(gradient.mT, exact(torch.ones(len(images), 1))).stored(dtype)
            bounds += [2**0.5 * CONFIDENCE * part.error for part in (bias, weight)]
            gradient = matmul(gradient, exact(layer.weight)).stored(dtype)
        else:
            gradient = multiply(gradient, factor).stored(dtype)
    return bounds[::-1]
