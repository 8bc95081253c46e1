"""What a call of an operator on a few elements costs, part by part.

    python -m benchmarks.call_path

Takes elu_backward apart: the C ABI's parts are timed in C++, what torch adds to them is the difference to a call from
Python. ATen's operator and function stand beside ours. Medians of many short rounds that take turns.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import statistics
import subprocess
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import aclnn_torch

from . import cann

SOURCE = Path(__file__).with_suffix(".cpp")
INCLUDE = Path(aclnn_torch.__file__).parent / "cann" / "include"
SIZE, ROUNDS, CALLS = 16, 200, 200
PARTS = ("descriptors made", "stage 1", "stage 2", "descriptors destroyed")


def load() -> Callable[[Tensor, Tensor, Tensor], list[float]]:
    """Builds call_path.cpp; returns a function that measures the parts, in nanoseconds."""
    with tempfile.TemporaryDirectory() as directory:
        library = Path(directory) / "call_path.so"
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        flags = ["-std=c++20", "-O2", "-shared", "-fPIC", f"-I{INCLUDE}"]
        subprocess.run([*compiler, *flags, SOURCE, "-o", library], check=True)
        function = ctypes.CDLL(str(library)).call_path
    function.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    handle = cann.load()._handle

    def measure(gradient: Tensor, value: Tensor, out: Tensor) -> list[float]:
        parts = (ctypes.c_double * 5)()
        addresses = [tensor.data_ptr() for tensor in (gradient, value, out)]
        status = function(handle, *addresses, gradient.numel(), CALLS, parts)
        if status != 0:
            raise RuntimeError(f"aclnnEluBackward failed with status {status}")
        *times, clock = parts
        return [time - clock for time in times]

    return measure


def rounds_of(candidates: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Nanoseconds a call, the median of rounds in which all take turns."""
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
    measure = load()
    turns = [measure(gradient, value, out) for _ in range(ROUNDS)]
    parts = {name: statistics.median(own) for name, own in zip(PARTS, zip(*turns, strict=True), strict=True)}
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


if __name__ == "__main__":
    main()
