"""The peak memory of a loss, forward and backward, measured in a separate process.

    python -m benchmarks.memory PROVIDER ROWSxCLASSES THREADS
    python -m benchmarks.memory PROVIDER ROWSxWIDTHxCLASSES THREADS
    python -m benchmarks.memory PROVIDER finetune_llama THREADS

The first form measures cross entropy and prints MiB: the process's peak, minus its memory before the logits were made.
The logits, which belong to the caller, and their gradient count, so that all memory of the step is included. The second
form measures the cross entropy of a linear layer, minus the memory after rows and matrix were made; their gradients
count. The third form measures training steps of the example's Llama, in models.py, minus the memory after that module
was loaded: parameters, gradients and the optimizer's state count.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch.functional as F

from . import models


def linear_cross_entropy(x: Tensor, matrix: Tensor, labels: Tensor) -> Tensor:
    """Torch's two functions."""
    return TF.cross_entropy(TF.linear(x, matrix), labels)


FUNCTIONS = {"aclnn": F.cross_entropy, "eager": TF.cross_entropy}
OF_LINEAR_LAYERS = {"aclnn": F.linear_cross_entropy, "eager": linear_cross_entropy}
if hasattr(torch.nn, "LinearCrossEntropyOptions"):
    OF_LINEAR_LAYERS["chunks"] = functools.partial(
        TF.linear_cross_entropy, options=torch.nn.LinearCrossEntropyOptions()
    )


def peak(provider: str, work: tuple[int, ...] | str, threads: int) -> float:
    """Runs this module; returns MiB. `work` is a shape, or the model."""
    size = work if isinstance(work, str) else "x".join(map(str, work))
    command = [sys.executable, "-m", "benchmarks.memory", provider, size, str(threads)]
    root = Path(__file__).parents[1]
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def step(provider: str, rows: int, *sizes: int) -> int:
    """Makes the inputs and runs the loss forward and backward; returns the process's memory before, in KiB."""
    labels = torch.zeros(rows, dtype=torch.int64)
    if len(sizes) == 1:
        before = resident("VmRSS")
        logits = torch.randn(rows, *sizes, requires_grad=True)
        FUNCTIONS[provider](logits, labels).backward()
        assert logits.grad is not None
        return before
    width, classes = sizes
    x, matrix = torch.randn(rows, width, requires_grad=True), torch.randn(classes, width, requires_grad=True)
    before = resident("VmRSS")
    OF_LINEAR_LAYERS[provider](x, matrix, labels).backward()
    assert x.grad is not None and matrix.grad is not None
    return before


def train(provider: str) -> int:
    """Trains the example's Llama, whose optimizer has no state before its first step; returns the memory before."""
    models.example_of("finetune_llama")
    before = resident("VmRSS")
    step = models.finetune_llama_step(provider == "aclnn", torch.float32)
    for _ in range(3):
        step()
    return before


def resident(which: str) -> int:
    """The kernel's figures for this process, in KiB: VmRSS, now, or VmHWM, the peak so far."""
    found = re.search(rf"^{which}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def main(arguments: list[str]) -> None:
    """Measures this process."""
    provider, size, threads = arguments
    torch.set_num_threads(int(threads))
    if size == "finetune_llama":
        before = train(provider)
    else:
        shape = tuple(map(int, size.split("x")))
        step(provider, *(min(count, 8) for count in shape))  # excludes one-time loading from the step
        before = step(provider, *shape)
    print((resident("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
