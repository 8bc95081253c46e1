"""The cross entropy of a linear layer, forward and backward, beside what torch has for it: time and peak of memory.

    python -m benchmarks.linear_cross_entropy [--quick] [--plot FILE]

The providers take turns in one process, in random order, and only their ratios are judged. The peak of memory is that
of a process of its own for each: the most it ever held, less what it held when the inputs were there, so that the
gradients, which no way can do without, count. Ends with code 1 when a bar is missed.

==================  ===================================================================================================
provider            what it is
==================  ===================================================================================================
aclnn               ``aclnn_torch.functional.linear_cross_entropy``
two functions       torch's ``cross_entropy(linear(x, weight), target)``
reference           torch's ``linear_cross_entropy``
accurate, balanced  the same with ``LinearCrossEntropyOptions`` and this ``acc_policy``
and compact
compiled            ``torch.compile`` of the two functions
rows in parts       what Liger-Kernel computes, in torch's own operators: the gradients by the logits of some rows at a
                    time, made in the forward pass
products            the three matrix products alone, at the rate that one of 2048 x 2048 matrices reaches in float32
==================  ===================================================================================================
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

import aclnn_torch.functional as F

from .memory import resident

OURS, TWO = "aclnn", "two functions"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GEMM_SIZE = 2048


class Size(NamedTuple):
    """Rows of so many numbers, and so many classes."""

    rows: int
    hidden: int
    classes: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.hidden} -> {self.classes}"

    @property
    def operations(self) -> float:
        """Of the three products."""
        return 6.0 * self.rows * self.hidden * self.classes


# The first is the size of the issue that asked for the operator.
SIZES = (Size(1503, 512, 40001), Size(512, 1024, 32000), Size(2048, 512, 32000), Size(512, 512, 151936))
QUICK = SIZES[:2]

# The bars, of the first three sizes.
MOST_MEMORY = 0.25  # of the two functions'
LEAST_SPEEDUP = 1.3  # over torch's best
LEAST_RATE = 0.8  # of the products', float32
MOST_OF_BFLOAT16 = 1.3  # the time of float16 over that of bfloat16


class _RowsInParts(torch.autograd.Function):
    """The mean of the losses, with the gradients, of as many rows at a time as make logits of the size of the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        parts = max(1, weight.shape[0] // x.shape[1])
        rows = 1 << max(0, (-(-x.shape[0] // parts) - 1).bit_length())
        total = torch.zeros(())
        of_x, of_weight = torch.empty_like(x), torch.zeros_like(weight, dtype=torch.float32)
        for some, labels, gradient in zip(x.split(rows), target.split(rows), of_x.split(rows), strict=True):
            logits = linear(some, weight).float()
            total += cross_entropy(logits, labels, reduction="sum")
            probabilities = logits.softmax(1)
            probabilities[torch.arange(len(labels)), labels] -= 1
            by_logits = (probabilities / len(target)).to(x.dtype)
            gradient.copy_(by_logits @ weight)
            of_weight += by_logits.t() @ some
        ctx.save_for_backward(of_x, of_weight.to(weight.dtype))
        return total / len(target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        of_x, of_weight = ctx.saved_tensors
        return of_x * grad, of_weight * grad, None


def two_functions(x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Torch's, with whole logits."""
    return cross_entropy(linear(x, weight), target)


def providers(names: list[str] | None = None) -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """The ways to compute the mean of the losses that this torch has."""
    found: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
        OURS: F.linear_cross_entropy,
        TWO: two_functions,
        "compiled": torch.compile(two_functions),
        "rows in parts": _RowsInParts.apply,
    }
    if hasattr(torch.nn.functional, "linear_cross_entropy"):
        function = torch.nn.functional.linear_cross_entropy
        found["reference"] = function
        for policy in ("accurate", "balanced", "compact"):
            options = torch.nn.LinearCrossEntropyOptions(acc_policy=policy)
            found[policy] = lambda x, weight, target, options=options: function(x, weight, target, options=options)
    return {name: found[name] for name in found if names is None or name in names}


def inputs(size: Size, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, the weight of a head, and labels."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size.rows, size.hidden, generator=generator).to(dtype).requires_grad_()
    weight = (torch.randn(size.classes, size.hidden, generator=generator) * 0.05).to(dtype).requires_grad_()
    return x, weight, torch.randint(size.classes, (size.rows,), generator=generator)


def step(function: Callable[..., Tensor], x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Forward and backward; the gradients of an earlier step are let go of first."""
    x.grad = weight.grad = None
    loss = function(x, weight, target)
    loss.backward()
    return loss.detach()


def seconds_of(call: Callable[[], object]) -> float:
    """Of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure_times(size: Size, dtype: torch.dtype, names: list[str], turns: int) -> dict[str, list[float]]:
    """Seconds of each provider, in turns; one that takes ten times as long as the first has one turn."""
    arguments = inputs(size, dtype)
    calls: dict[str, Callable[[], object]] = {
        name: (lambda function=function: step(function, *arguments)) for name, function in providers(names).items()
    }
    a, b = torch.randn(GEMM_SIZE, GEMM_SIZE), torch.randn(GEMM_SIZE, GEMM_SIZE)
    c = torch.empty_like(a)
    share = size.operations / (2.0 * GEMM_SIZE**3)
    expected = step(two_functions, *(x.detach().double().requires_grad_() for x in arguments[:2]), arguments[2])
    times: dict[str, list[float]] = {name: [] for name in (*calls, "products")}
    for name, function in providers(names).items():
        first = seconds_of(lambda name=name, function=function: check(name, step(function, *arguments), expected))
        times[name].append(first)
    slow = {name for name in calls if times[name][0] > 10 * times[OURS][0]}
    for name in calls.keys() - slow:
        times[name].clear()  # the first pays for memory that later ones find
    chance = random.Random(0)
    for _ in range(turns):
        for name in chance.sample(sorted(times), len(times)):
            if name == "products":
                times[name].append(seconds_of(lambda: torch.mm(a, b, out=c)) * share)
            elif name not in slow:
                times[name].append(seconds_of(calls[name]))
    return times


def check(name: str, loss: Tensor, expected: Tensor) -> None:
    """That a provider computes the loss at all."""
    if not torch.allclose(loss.double(), expected, rtol=0.02):
        raise SystemExit(f"{name}: the loss is {loss.item()}, expected {expected.item()}")


def peak(name: str, size: Size, dtype: str) -> float:
    """MiB, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.linear_cross_entropy", "--peak", name, dtype, *map(str, size)]
    command += ["--threads", str(torch.get_num_threads())]
    root = Path(__file__).parents[1]
    result = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return float(result.stdout)


def print_peak(name: str, dtype: str, *sizes: str) -> None:
    """Of this process."""
    function = providers([name])[name]
    size = Size(*map(int, sizes))
    step(function, *inputs(Size(8, 8, 8), DTYPES[dtype]))  # what is loaded once is not the step's
    if name == "compiled":
        torch.compiler.reset()
    arguments = inputs(size, DTYPES[dtype])
    before = resident("VmRSS")
    step(function, *arguments)
    print((resident("VmHWM") - before) / 1024)


def report(size: Size, dtype: str, turns: int) -> list[str]:
    """Prints a table; the bars that are missed."""
    names = list(providers())
    times = measure_times(size, DTYPES[dtype], names, turns)
    slow = [name for name in names if len(times[name]) == 1 < turns]
    peaks = {name: peak(name, size, dtype) for name in names if name not in slow}
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"\n{size}, {dtype}\n\n| | ms | its time over aclnn's | MiB | its peak over aclnn's |\n|---|---|---|---|---|")
    for name in (*names, "products"):
        ratio = medians[name] / medians[OURS]
        if len(times[name]) == len(times[OURS]):  # of the same turn
            ratio = statistics.median(other / ours for other, ours in zip(times[name], times[OURS], strict=True))
        memory = f"{peaks[name]:.0f} | {peaks[name] / peaks[OURS]:.2f}" if name in peaks else " | "
        print(f"| {name} | {medians[name] * 1e3:.0f} | {ratio:.2f} | {memory} |", flush=True)
        medians[f"{name} over"] = ratio
    torchs = [name for name in names if name not in (OURS, "rows in parts")]
    missed = []
    best = min(medians[f"{name} over"] for name in torchs)
    if best < LEAST_SPEEDUP:
        missed.append(f"{best:.2f} times as fast as torch's best, of {LEAST_SPEEDUP}")
    if dtype == "float32" and medians["products over"] < LEAST_RATE:
        missed.append(f"the products take {medians['products over']:.2f} of the time, of {LEAST_RATE}")
    if peaks[OURS] > MOST_MEMORY * peaks[TWO]:
        missed.append(f"the peak is {peaks[OURS] / peaks[TWO]:.2f} of that of the two functions, of {MOST_MEMORY}")
    least = min(value for name, value in peaks.items() if name in torchs)
    if peaks[OURS] > least:
        missed.append(f"the peak is {peaks[OURS] / least:.2f} of torch's least")
    return [f"{size}, {dtype}: {text}" for text in missed]


def plot(path: str) -> None:
    """The peak over the number of classes, float32, into a file."""
    import matplotlib.pyplot as plt

    counts = (8000, 16000, 32000, 64000, 128000)
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for name in (OURS, TWO, *(name for name in ("accurate", "compact") if name in providers())):
        axes.plot(counts, [peak(name, Size(2048, 512, classes), "float32") for classes in counts], label=name)
    axes.plot(
        counts, [classes * 512 * 4 / 2**20 for classes in counts], "--", color="#999999", label="weight's gradient"
    )
    axes.set_xlabel("classes")
    axes.set_ylabel("peak of memory over the inputs, MiB")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110, bbox_inches="tight")


def main() -> int:
    """Measures all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two sizes, fewer turns")
    parser.add_argument("--threads", type=int, help="torch's threads (default: torch's)")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="one of them only")
    parser.add_argument("--plot", metavar="FILE", help="draw the peak over the number of classes, and nothing else")
    parser.add_argument("--peak", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print_peak(*arguments.peak)
        return 0
    if arguments.plot:
        plot(arguments.plot)
        return 0
    missed = []
    for size in QUICK if arguments.quick else SIZES:
        for dtype in arguments.dtype or DTYPES:
            found = report(size, dtype, 3 if arguments.quick else 7)
            missed += found if size in SIZES[:3] else []
    for text in missed:
        print(f"missed: {text}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
