"""The host's cost of a call before its result exists: ours and torch_npu's own elu_backward on 16 elements.

Starts itself on simulated NPUs, once for every mode of torch_npu's task queue::

    .venv-npu/bin/python -m benchmarks.npu

The two alternate in one process, and the time includes the synchronisation at the end of a turn, so that work deferred
to another thread counts. On the host CANN these figures measure the path to the launch, not a device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

CALLS = 200  # per turn
MODES = ("0", "1", "2")


def turn(call: Callable[[], object], synchronize: Callable[[], None]) -> float:
    """Microseconds per call."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def quantiles(times: list[float]) -> tuple[float, float, float]:
    """Median, 20th and 80th percentile."""
    cuts = statistics.quantiles(times, n=10)
    return statistics.median(times), cuts[1], cuts[7]


def measure(turns: int) -> None:
    """Prints this process's figures, in one line."""
    import torch
    import torch_npu  # noqa: F401

    import aclnn_torch  # noqa: F401

    gradient, x = torch.randn(16).npu(), torch.randn(16).npu()
    arguments = (gradient, 1.0, 1.0, 1.0, False, x)
    operators = {
        "ours": torch.ops.aclnn.elu_backward.default,
        "torch_npu": torch.ops.aten.elu_backward.default,
    }
    times: dict[str, list[float]] = {name: [] for name in operators}
    with torch.no_grad():
        for number in range(turns + turns // 10):
            for name, operator in operators.items():
                microseconds = turn(lambda operator=operator: operator(*arguments), torch.npu.synchronize)
                if number >= turns // 10:
                    times[name].append(microseconds)
    figures = {name: quantiles(values) for name, values in times.items()}
    columns = "  ".join(
        f"{name} {median:5.2f} ({low:5.2f} - {high:5.2f})" for name, (median, low, high) in figures.items()
    )
    ratio = figures["ours"][0] / figures["torch_npu"][0]
    print(f"{os.environ['TASK_QUEUE_ENABLE']:>17}  {columns}  {ratio:4.2f}")


def main() -> int:
    """Measures in every mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200, help=f"of {CALLS} calls each (default: %(default)s)")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_process:
        measure(arguments.turns)
        return 0
    print("elu_backward, 16 elements: us per call, median (20th - 80th percentile); ratio of the medians")
    print("TASK_QUEUE_ENABLE")
    for mode in MODES:
        command = [sys.executable, "-m", "aclnn_torch", "run", "-m", "benchmarks.npu", "--in-process"]
        command += ["--turns", str(arguments.turns)]
        # torch_npu's warnings are shown only if it fails.
        result = subprocess.run(
            command, env=os.environ | {"TASK_QUEUE_ENABLE": mode}, stderr=subprocess.PIPE, text=True
        )
        if result.returncode != 0:
            print(result.stderr, file=sys.stderr)
            return result.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
