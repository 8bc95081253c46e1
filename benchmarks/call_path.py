"""The cost of an operator's call on a few elements, part by part.

    python -m benchmarks.call_path

Measures elu_backward: the C ABI's parts are timed in C++; torch's part is the difference to a call from Python. ATen's
operator and function are measured, too. Then a row: a function of the host CANN that is one call of ATen; the cost of
its two stages beyond that call. Medians of many short rounds that alternate.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import statistics
import subprocess
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

import aclnn_torch

from . import cann

HERE = Path(__file__).parent
PREFIX = Path(aclnn_torch.__file__).parent / "cann"
SIZE, ROUNDS, CALLS = 16, 200, 200
PARTS = ("descriptors made", "stage 1", "stage 2", "descriptors destroyed")
ROW_PARTS = ("stage 1", "stage 2", "ATen's call")


def load(name: str, parts: int, library: ctypes.CDLL, flags: Sequence[str] = ()) -> Callable[..., list[float]]:
    """Builds NAME.cpp, whose function NAME takes three tensors; returns a measurement of its parts, in ns."""
    with tempfile.TemporaryDirectory() as directory:
        binary = Path(directory) / f"{name}.so"
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        own = ["-std=c++20", "-O2", "-shared", "-fPIC", f"-I{PREFIX / 'include'}", str(HERE / f"{name}.cpp")]
        subprocess.run([*compiler, *own, "-o", str(binary), *flags], check=True)
        function = ctypes.CDLL(str(binary))[name]
    function.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def measure(*tensors: Tensor) -> list[float]:
        nanoseconds = (ctypes.c_double * (parts + 1))()
        addresses = [tensor.data_ptr() for tensor in tensors]
        status = function(library._handle, *addresses, tensors[0].numel(), CALLS, nanoseconds)
        if status != 0:
            raise RuntimeError(f"{name} failed with status {status}")
        *times, clock = nanoseconds
        return [time - clock for time in times]

    return measure


def medians_of(measure: Callable[..., list[float]], names: Sequence[str], *tensors: Tensor) -> dict[str, float]:
    """The median of each part over many rounds."""
    turns = [measure(*tensors) for _ in range(ROUNDS)]
    return {name: statistics.median(own) for name, own in zip(names, zip(*turns, strict=True), strict=True)}


def load_row() -> Callable[..., list[float]]:
    """The function that measures a row of the prefix."""
    torch_folder = Path(torch.__file__).parent
    flags = [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}", "-ltorch_cpu", "-lc10"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    return load("row_path", len(ROW_PARTS), ctypes.CDLL(str(PREFIX / "lib64" / "libopapi.so")), flags)


def rounds_of(candidates: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Nanoseconds per call, the median over rounds in which all alternate."""
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            samples[name].append(timeit.timeit(call, number=CALLS) / CALLS * 1e9)
    return {name: statistics.median(own) for name, own in samples.items()}


def main() -> None:
    """Measures and prints."""
    gradient, value = torch.randn(SIZE), torch.randn(SIZE)
    leaf = value.clone().requires_grad_()
    out = torch.empty(SIZE)
    parts = medians_of(load("call_path", len(PARTS), cann.load()), PARTS, gradient, value, out)
    own, aten = torch.ops.aclnn.elu_backward.default, torch.ops.aten.elu_backward.default
    arguments = (gradient, 1.0, 1.0, 1.0, False, value)

    def step(function: Callable[[Tensor], Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(function(leaf), leaf, gradient)

    times = rounds_of(
        {
            "operator": lambda: own(*arguments),
            "ATen's operator": lambda: aten(*arguments),
            "forward and backward": step(aclnn_torch.functional.elu),
            "torch's forward and backward": step(torch.nn.functional.elu),
            "a result": lambda: torch.empty(SIZE),
        }
    )
    inside = sum(parts.values())
    print(f"elu_backward on {SIZE} float32, nanoseconds")
    for name, time in parts.items():
        print(f"  {name:32}{time:8.0f}")
    print(f"  {'dispatcher, result, Python':32}{times['operator'] - inside:8.0f}")
    print(f"  {'operator':32}{times['operator']:8.0f}")
    for name in ("ATen's operator", "a result", "forward and backward", "torch's forward and backward"):
        print(f"  {name:32}{times[name]:8.0f}")

    row = medians_of(load_row(), ROW_PARTS, gradient, value, out)
    print(f"aclnnMul, a row on ATen, on {SIZE} float32, nanoseconds")
    for name, time in row.items():
        print(f"  {name:32}{time:8.0f}")
    print(f"  {'both stages beyond ATen':32}{row['stage 1'] + row['stage 2'] - row[ROW_PARTS[-1]]:8.0f}")


if __name__ == "__main__":
    main()
