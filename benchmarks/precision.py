"""Measures the errors of results against exact ones, in units in the last place (ULP), compared with ATen's.

    python -m benchmarks.precision [TEXT...]

float16 and bfloat16 are tested on all their values, float32 and float64 on a dense sample. The exact result is the
formula in extended precision, on the unrounded inputs and on coefficients rounded to the operator's compute type: CANN
passes FP32 scalars to its kernels. TEXT selects the operators whose names contain it.
"""

from __future__ import annotations

import platform
import sys

import numpy as np
import torch
from torch import Tensor

import aclnn_torch
from tests.operators import Kernel, kernels_for
from tests.operators._exact import Array, Exact

# For each dtype: bits of the mantissa with the leading one, and the exponent of the smallest normal number.
FORMATS = {
    torch.float16: (11, -14),
    torch.bfloat16: (8, -126),
    torch.float32: (24, -126),
    torch.float64: (53, -1022),
}
SAMPLES = 1 << 19  # in each region of a wider dtype


def values(dtype: torch.dtype) -> Tensor:
    """All finite values of a 16-bit dtype; for a wider one every magnitude, and the curved part densely."""
    if dtype.itemsize == 2:
        every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
        return every[every.isfinite()]
    generator = torch.Generator().manual_seed(0)

    def uniform(low: float, high: float) -> Tensor:
        return torch.rand(SAMPLES, generator=generator, dtype=torch.float64) * (high - low) + low

    magnitudes = torch.exp2(uniform(-149, 127))
    return torch.cat([magnitudes, -magnitudes, uniform(-104, 1), uniform(-2, 0), uniform(-0.2, 0)]).to(dtype)


def ulps(dtype: torch.dtype, got: Tensor, exact: Array) -> Array:
    """The distance from the exact values, in ULP of those."""
    bits, least = FORMATS[dtype]
    exponent = np.maximum(np.frexp(exact)[1], least + 1)
    return np.abs(got.double().numpy().astype(Exact) - exact) / np.ldexp(Exact(1), exponent - bits)


def largest_errors(kernel: Kernel, dtype: torch.dtype) -> list[float]:
    """Our result and ATen's."""
    x = values(dtype)
    generator = torch.Generator().manual_seed(1)
    # Gradients that neither amplify a subnormal exponential nor lose bits below the smallest number.
    gradient = torch.rand(x.shape, generator=generator, dtype=torch.float64).add(1).to(dtype)
    inputs = (gradient, x) if kernel.reads == 2 else (x,)
    exact_inputs = (tensor.double().numpy().astype(Exact) for tensor in inputs)
    exact = kernel.exact(dtype, *kernel.arguments(*exact_inputs), **kernel.named)
    # Outside, the result is inf, whatever its distance.
    inside = np.abs(exact) <= Exact(torch.finfo(dtype).max)
    results = (kernel(*inputs), kernel.by_peer(*inputs))
    return [float(ulps(dtype, result, exact)[inside].max()) for result in results]


def chosen(name: str) -> bool:
    """Whether the command line asks for an operator: by a part of its name, or for all."""
    return len(sys.argv) == 1 or any(text in name for text in sys.argv[1:])


def main() -> int:
    """Prints the table: for each operator and dtype our largest error and ATen's."""
    print(f"torch {torch.__version__}, {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}\n")
    print(
        "| Ours, ATen's |",
        " | ".join(str(dtype).removeprefix("torch.") for dtype in FORMATS),
        "|",
    )
    print("|---|" + "---|" * len(FORMATS))
    with aclnn_torch.product("host"), np.errstate(all="ignore"):
        for kernel in filter(lambda kernel: chosen(kernel.name), kernels_for("precision")):
            cells = [", ".join(f"{error:.4f}" for error in largest_errors(kernel, dtype)) for dtype in FORMATS]
            print(f"| {kernel.name} |", " | ".join(cells), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
