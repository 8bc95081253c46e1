"""The peak of memory that a loss takes, forward and backward, measured in a process of its own.

    python -m benchmarks.memory PROVIDER ROWSxCLASSES THREADS
    python -m benchmarks.memory PROVIDER ROWSxWIDTHxCLASSES THREADS
    python -m benchmarks.memory PROVIDER finetune_llama THREADS

The first is of cross entropy, and prints MiB: the most the process ever held, less what it held before the logits were
made. The logits, which are the caller's, and their gradient count: no memory of the step is left out. The second is of
the cross entropy of a linear layer, less what the process held when rows and matrix were made; their gradients count.
The third is of training steps of the example's Llama, in models.py, less what the process held when that module was
loaded: parameters, gradients and what the optimizer keeps count.
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
    """Runs this module; MiB. `work` is a shape, or the model."""
    size = work if isinstance(work, str) else "x".join(map(str, work))
    command = [sys.executable, "-m", "benchmarks.memory", provider, size, str(threads)]
    root = Path(__file__).parents[1]
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def step(provider: str, rows: int, *sizes: int) -> int:
    """Makes the inputs and runs the loss forward and backward; what the process held before, in KiB."""
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
    """Trains the example's Llama, whose optimizer keeps nothing before its first step; what the process held before."""
    models.example_of("finetune_llama")
    before = resident("VmRSS")
    step = models.finetune_llama_step(provider == "aclnn", torch.float32)
    for _ in range(3):
        step()
    return before


def resident(which: str) -> int:
    """What the kernel knows of this process, in KiB: VmRSS, now, or VmHWM, the most of it so far."""
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
        step(provider, *(min(count, 8) for count in shape))  # what is loaded once is not the step's
        before = step(provider, *shape)
    print((resident("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
