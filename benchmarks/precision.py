"""Measures how far results lie from the exact ones, in units in the last place (ULP), beside ATen's.

    python -m benchmarks.precision

float16 and bfloat16 are tried on all their values, float32 and float64 on a dense sample. The exact result is the
formula in extended precision, of the inputs as they are and of coefficients rounded to the type that the operator
computes in: CANN hands its kernels FP32 scalars.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import aclnn_torch

from .cases import KERNELS, SELU_ALPHA, SELU_SCALE, Kernel

# 64 bits of mantissa on x86-64, 113 on aarch64.
Exact = np.longdouble
Array = np.ndarray[Any, np.dtype[np.longdouble]]

# Per dtype: bits of the mantissa with the leading one, and the exponent of the smallest normal number.
FORMATS = {
    torch.float16: (11, -14),
    torch.bfloat16: (8, -126),
    torch.float32: (24, -126),
    torch.float64: (53, -1022),
}
PI = np.arccos(Exact(-1))
SAMPLES = 1 << 19  # in each region of a wider dtype

# Alpha, scale and input scale that ask for every rounding the formulas have, beside the case table's.
SCALARS = {"scaled": (1.3, 1.1, 1.0), "celu": (0.7, 1.0, 1 / 0.7)}


def with_scalars(kernel: Kernel, variant: str) -> Kernel:
    """The same kernel with one of the choices of SCALARS."""

    def change(arguments: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        def changed(*tensors: Any) -> tuple[Any, ...]:
            first, _, _, _, *rest = arguments(*tensors)
            return (first, *SCALARS[variant], *rest)

        return changed

    return replace(
        kernel, variant=variant, arguments=change(kernel.arguments), peer_arguments=change(kernel.peer_arguments)
    )


def coefficients(dtype: torch.dtype, alpha: float, scale: float, input_scale: float) -> tuple[Exact, Exact, Exact]:
    """What the formulas read: scale, alpha * scale and the input's scale, each rounded once."""
    real = np.float64 if dtype == torch.float64 else np.float32
    return Exact(real(scale)), Exact(real(Exact(real(alpha)) * Exact(real(scale)))), Exact(real(input_scale))


def elu(dtype: torch.dtype, x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """The exact result of ELU."""
    upper, lower, inner = coefficients(dtype, alpha, scale, input_scale)
    return np.where(x > 0, upper * x, lower * np.expm1(inner * x))


def elu_backward(
    dtype: torch.dtype, g: Array, alpha: float, scale: float, input_scale: float, is_result: bool, v: Array
) -> Array:
    """The exact gradient of ELU."""
    upper, lower, inner = coefficients(dtype, alpha, scale, input_scale)
    slope = inner * (v + lower) if is_result else inner * lower * np.exp(inner * v)
    return g * np.where(v <= 0, slope, upper)  # of nan too


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without loss where that is small."""
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x)))


def normal(x: Array) -> tuple[Array, Array]:
    """The normal distribution's share below x, and its density."""
    z = np.abs(x)
    # Powers of numbers whose square is exact, and of what is left.
    upper = np.where(z < 1e4, z.astype(np.float32), z)
    rest = np.where(z < 1e4, (z - upper) * (z + upper), 0)
    density = np.exp(-upper * upper / 2) * np.exp(-rest / 2) / np.sqrt(2 * PI)
    # The tail is the density over a continued fraction, which is slow near 0: there it is what a series leaves of 1/2.
    near, far = np.minimum(z, 2), np.maximum(z, 2)
    fraction = far
    for k in range(200, 0, -1):
        fraction = far + k / fraction
    term = series = near
    for k in range(3, 81, 2):
        term = term * near * near / k
        series = series + term
    tail = np.where(z < 2, 0.5 - density * series, density / fraction)
    return np.where(x < 0, tail, 1 - tail), density


def exponent_of_gelu(x: Array) -> tuple[Array, Array]:
    """Of the approximation x sigmoid(v): v, and its derivative."""
    linear = np.sqrt(8 / PI)
    cubic = Exact(0.044715) * linear
    return x * (linear + cubic * x * x), linear + 3 * cubic * x * x


def gelu(x: Array, approximate: str = "none") -> Array:
    """The exact result of GELU, of either formula."""
    return x * (normal(x)[0] if approximate == "none" else sigmoid(exponent_of_gelu(x)[0]))


def slope_of_gelu(x: Array, approximate: str = "none") -> tuple[Array, Array]:
    """The two numbers whose sum is its derivative."""
    if approximate == "none":
        below, density = normal(x)
        return below, x * density
    v, derivative = exponent_of_gelu(x)
    return sigmoid(v), sigmoid(v) * sigmoid(-v) * x * derivative


EXACT: dict[str, Callable[..., Array]] = {
    "elu": elu,
    "elu_backward": elu_backward,
    "selu": lambda dtype, x: elu(dtype, x, SELU_ALPHA, SELU_SCALE, 1.0),
    "selu_backward": lambda dtype, g, y: elu_backward(dtype, g, SELU_ALPHA, SELU_SCALE, 1.0, True, y),
    "silu": lambda dtype, x: x * sigmoid(x),
    "silu_backward": lambda dtype, g, x: g * sigmoid(x) * (1 + x * sigmoid(-x)),
    "gelu": lambda dtype, x, **named: gelu(x, **named),
    "gelu_backward": lambda dtype, g, x, **named: g * sum(slope_of_gelu(x, **named)),
}

# Operators that have a formula here; those of SCALARS take them as arguments.
MEASURED = (
    *(kernel for kernel in KERNELS if kernel.operator in EXACT),
    *(
        with_scalars(kernel, variant)
        for kernel in KERNELS
        if kernel.name in ("elu", "elu_backward")
        for variant in SCALARS
    ),
)


def values(dtype: torch.dtype) -> Tensor:
    """All finite values of a 16-bit dtype; of a wider one every magnitude, and the curved part densely."""
    if dtype.itemsize == 2:
        every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
        return every[every.isfinite()]
    generator = torch.Generator().manual_seed(0)

    def uniform(low: float, high: float) -> Tensor:
        return torch.rand(SAMPLES, generator=generator, dtype=torch.float64) * (high - low) + low

    magnitudes = torch.exp2(uniform(-149, 127))
    return torch.cat([magnitudes, -magnitudes, uniform(-104, 1), uniform(-2, 0), uniform(-0.2, 0)]).to(dtype)


def ulps(dtype: torch.dtype, got: Tensor, exact: Array) -> Array:
    """The distance from the exact values in units of their last place."""
    bits, least = FORMATS[dtype]
    exponent = np.maximum(np.frexp(exact)[1], least + 1)
    return np.abs(got.double().numpy().astype(Exact) - exact) / np.ldexp(Exact(1), exponent - bits)


def largest_errors(kernel: Kernel, dtype: torch.dtype) -> list[float]:
    """Ours and ATen's."""
    x = values(dtype)
    generator = torch.Generator().manual_seed(1)
    # Gradients that neither enlarge a subnormal exponential nor lose bits below the smallest number.
    gradient = torch.rand(x.shape, generator=generator, dtype=torch.float64).add(1).to(dtype)
    inputs = (gradient, x) if kernel.reads == 2 else (x,)
    exact_inputs = (tensor.double().numpy().astype(Exact) for tensor in inputs)
    exact = EXACT[kernel.operator](dtype, *kernel.arguments(*exact_inputs), **kernel.named)
    # Elsewhere the result is inf, whatever its distance.
    inside = np.abs(exact) <= Exact(torch.finfo(dtype).max)
    results = (
        getattr(torch.ops.aclnn, kernel.operator)(*kernel.arguments(*inputs), **kernel.named),
        kernel.peer(*kernel.peer_arguments(*inputs), **kernel.named),
    )
    return [float(ulps(dtype, result, exact)[inside].max()) for result in results]


def main() -> int:
    """Prints the table: per operator and dtype our largest error and ATen's."""
    print(f"torch {torch.__version__}, {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}\n")
    print(
        "| Ours, ATen's |",
        " | ".join(str(dtype).removeprefix("torch.") for dtype in FORMATS),
        "|",
    )
    print("|---|" + "---|" * len(FORMATS))
    with aclnn_torch.product("host"), np.errstate(all="ignore"):
        for kernel in MEASURED:
            cells = [", ".join(f"{error:.4f}" for error in largest_errors(kernel, dtype)) for dtype in FORMATS]
            print(f"| {kernel.name} |", " | ".join(cells), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
