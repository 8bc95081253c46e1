"""The peak of memory that cross entropy takes, forward and backward, measured in a process of its own.

    python -m benchmarks.memory PROVIDER ROWSxCLASSES THREADS

Prints MiB: the most the process ever held, less what it held before the logits were made. The logits, which are the
caller's, and their gradient count: no memory of the step is left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch

import aclnn_torch

FUNCTIONS = {"aclnn": aclnn_torch.functional.cross_entropy, "eager": torch.nn.functional.cross_entropy}


def peak(provider: str, shape: tuple[int, ...], threads: int) -> float:
    """Runs this module; MiB."""
    size = "x".join(map(str, shape))
    command = [sys.executable, "-m", "benchmarks.memory", provider, size, str(threads)]
    root = Path(__file__).parents[1]
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def step(provider: str, rows: int, classes: int) -> None:
    """Makes logits and runs the loss forward and backward."""
    logits = torch.randn(rows, classes, requires_grad=True)
    FUNCTIONS[provider](logits, torch.zeros(rows, dtype=torch.int64)).backward()
    assert logits.grad is not None


def resident(which: str) -> int:
    """What the kernel knows of this process, in KiB: VmRSS, now, or VmHWM, the most of it so far."""
    found = re.search(rf"^{which}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def main(arguments: list[str]) -> None:
    """Measures this process."""
    provider, size, threads = arguments
    torch.set_num_threads(int(threads))
    rows, classes = map(int, size.split("x"))
    step(provider, 8, 8)  # what is loaded once is not the step's
    before = resident("VmRSS")
    step(provider, rows, classes)
    print((resident("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
