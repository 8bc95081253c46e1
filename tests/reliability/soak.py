"""Long runs of torch.ops.aclnn calls: memory, file descriptors and threads must not grow.

``python -m tests.reliability.soak`` makes a hundredth of the calls of docs/reliability.md; ACLNN_TEST_SOAK=1 in the
environment makes all. Prints their cost, and exits with 1 if anything grew.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from aclnn_torch import _C, AclnnError

from .operators import aclnn, runs

STEPS = 100  # each is measured
SPARE_BYTES = 512 << 10  # memory that Python and the C library may keep once allocated
PR_SET_THP_DISABLE = 41
M_ARENA_MAX = -8
FULL = "ACLNN_TEST_SOAK" in os.environ


@dataclass
class Usage:
    """The process's resources."""

    bytes: int
    files: int
    threads: int


def threads(expected: int) -> int:
    """The number of threads; a joined one may be listed a moment longer."""
    for _ in range(1000):
        if len(os.listdir("/proc/self/task")) <= expected:
            break
        time.sleep(0.001)
    return len(os.listdir("/proc/self/task"))


def usage(expected_threads: int) -> Usage:
    gc.collect()
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    # Pages of files come and go with the machine's free memory.
    anonymous = (resident - shared) * resource.getpagesize()
    return Usage(anonymous, len(os.listdir("/proc/self/fd")), threads(expected_threads))


def growth(sizes: list[int]) -> float:
    """The growth per step: the median over all pairs (Theil-Sen), which is zero for a size that only fluctuates."""
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(sizes), 2))


def soak(what: str, full_count: int, body: Callable[[int], None]) -> bool:
    """Runs body(i) this often, and measures the process after every step. The first quarter fills caches.

    Returns true if nothing grew.
    """
    per_step = max(1, full_count // STEPS // (1 if FULL else 100))
    live = _C.live_objects()
    first = last = usage(0)
    sizes = []
    for step in range(STEPS):
        for i in range(per_step):
            body(step * per_step + i)
        last = usage(first.threads)
        if step <= STEPS // 4:
            first = last
        if step >= STEPS // 4:
            sizes.append(last.bytes)
    slope = growth(sizes)
    print(f"{what}: {per_step * STEPS}, of which the last three quarters take {slope / per_step:.3f} bytes each")
    print(
        f"  memory {first.bytes >> 10} -> {last.bytes >> 10} KiB, files {first.files} -> {last.files}, "
        f"threads {first.threads} -> {last.threads}",
        flush=True,
    )
    return (
        slope * len(sizes) < SPARE_BYTES
        and (last.files, last.threads) == (first.files, first.threads)
        and _C.live_objects() == live
    )


class Fails(torch.autograd.Function):
    """The identity with a gradient that an operator refuses."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        return aclnn.selu_backward(grad, grad.new_ones(3))


def failures() -> Iterator[Callable[[], object]]:
    """Refused calls: by checks before CANN, by stage 1, because of data values, inside a backward."""
    x = torch.randn(8, 24)
    leaf = x.clone().requires_grad_()
    yield lambda: aclnn.layer_norm(x, [23], None, None, 1e-5)
    yield lambda: aclnn.elu(x.to(torch.int32))
    yield lambda: aclnn.cross_entropy_loss(x, torch.full((8,), 99))
    yield lambda: aclnn.selu(Fails.apply(aclnn.elu(leaf))).sum().backward()


def refused(call: Callable[[], object]) -> None:
    try:
        call()
    except AclnnError:
        return
    raise AssertionError("the call was not refused")


def on_thread(body: Callable[[], object]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def main() -> int:
    torch.set_num_threads(1)  # otherwise calls mostly wait for one another's threads
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)  # otherwise memory changes in units of 2 MiB
    libc.mallopt(M_ARENA_MAX, 1)  # otherwise each thread may use another heap, and fill it
    every = [run for dtype in (torch.float32, torch.bfloat16) for _, run in runs(dtype)]
    wrong = list(failures())
    for run in every:  # one-time objects, ours and torch's
        run()
        on_thread(run)
    gc.collect()
    gc.freeze()  # otherwise every measurement traverses all of torch's modules
    fine = [
        soak("operators, forward and backward", 200_000, lambda i: every[i % len(every)]() and None),
        soak("failing calls", 100_000, lambda i: refused(wrong[i % len(wrong)])),
        soak("threads of their own", 20_000, lambda i: on_thread(every[i % len(every)])),
    ]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
