"""``bench``: the speed of the operators on this machine, compared with torch's."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .command import Command

DTYPES = ("float32", "bfloat16", "float16")
ROUNDS = 15


def _arguments(name: str, function: Callable[..., Any], elements: int, dtype: Any) -> tuple[Any, ...]:
    """Arguments for a function of aclnn_torch.functional, with about this many elements; tensors first."""
    import torch

    def numbers(*shape: int) -> Any:
        return torch.randn(shape, dtype=torch.float32).to(dtype)

    parameters = inspect.signature(function).parameters
    columns = min(elements, 1024)
    rows = max(elements // columns, 1)
    if "normalized_shape" in parameters:
        return numbers(rows, columns), (columns,), numbers(columns)
    if "linear_weight" in parameters:
        width = min(elements, 64)
        rows = max(elements // width, 1)
        return numbers(rows, width), numbers(columns, width), torch.randint(columns, (rows,))
    if "target" in parameters:
        return numbers(rows, columns), torch.randint(columns, (rows,))
    if "stride" in parameters:
        dims, channels = int(name.removesuffix("d")[-1]), 16
        side = max(round((elements / channels) ** (1 / dims)), 3)
        return numbers(1, channels, *[side] * dims), numbers(channels, channels, *[3] * dims)
    return (numbers(elements),)


def _seconds(calls: list[Callable[[], object]]) -> list[float]:
    """The median time of each, measured in turns, since the machine's speed changes."""

    def measure(call: Callable[[], object], count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count

    counts = [math.ceil(2e-3 / max(min(measure(call, 1) for _ in range(3)), 1e-7)) for call in calls]
    rounds = [[measure(call, count) for call, count in zip(calls, counts, strict=True)] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def measure(pattern: str, elements: int, dtype_name: str) -> Iterator[dict[str, Any]]:
    """Measures the functions in order, forward, and forward with backward; times in seconds."""
    import torch

    from .. import functional

    dtype = getattr(torch, dtype_name)
    for name in functional.__all__:
        ours, theirs = getattr(functional, name), getattr(torch.nn.functional, name, None)
        if theirs is None or not re.search(pattern, name):  # missing in an older torch
            continue
        torch.manual_seed(0)
        plain = _arguments(name, ours, elements, dtype)
        learned = [
            x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in plain
        ]
        leaves = [x for x in learned if isinstance(x, torch.Tensor) and x.requires_grad]

        def step(function: Any, learned: Any = learned, leaves: Any = leaves) -> None:
            result = function(*learned)
            torch.autograd.grad(result, leaves, torch.ones_like(result))

        for mode, calls in (
            ("forward", [lambda f=f, plain=plain: f(*plain) for f in (ours, theirs)]),
            ("forward+backward", [lambda f=f, step=step: step(f) for f in (ours, theirs)]),
        ):
            own, other = _seconds(calls)  # type: ignore[arg-type]
            yield {"function": name, "mode": mode, "seconds": own, "torch_seconds": other, "ratio": other / own}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", default="", metavar="REGEX", help="only functions whose name contains it")
    parser.add_argument("--elements", type=int, default=2**20, metavar="N", help="of the input; default 1048576")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="default float32")
    parser.add_argument("--threads", type=int, metavar="N", help="of torch and ours; default: torch's")
    parser.add_argument("--json", action="store_true", help="print a JSON object, times in seconds")


def _run(arguments: argparse.Namespace) -> int:
    import torch

    from .. import AclnnError, get_product

    try:
        re.compile(arguments.filter)
    except re.error as error:
        print(f"aclnn-torch: --filter {arguments.filter} is not a regular expression: {error}", file=sys.stderr)
        return 2
    if arguments.elements < 1 or (arguments.threads or 1) < 1:
        print("aclnn-torch: --elements and --threads are numbers from 1 on", file=sys.stderr)
        return 2
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    conditions = {
        "product": get_product(),
        "dtype": arguments.dtype,
        "elements": arguments.elements,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
    }
    rows = []
    if not arguments.json:
        print(", ".join(f"{name} {value}" for name, value in conditions.items()))
        print(f"{'function':<18} {'mode':<17} {'ours, us':>10} {'torch, us':>10} {'times as fast':>13}")
    try:
        for row in measure(arguments.filter, arguments.elements, arguments.dtype):
            rows.append(row)
            if not arguments.json:
                times = f"{row['seconds'] * 1e6:>10.1f} {row['torch_seconds'] * 1e6:>10.1f} {row['ratio']:>13.2f}"
                print(f"{row['function']:<18} {row['mode']:<17} {times}", flush=True)
    except AclnnError as error:
        print(f"aclnn-torch: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({**conditions, "results": rows}, indent=2))
    return 0


COMMANDS = {
    "bench": Command(
        "measure the functions of aclnn_torch.functional beside torch's, on the CPU",
        _add_arguments,
        _run,
        "examples:\n  aclnn-torch bench\n  aclnn-torch bench --filter 'elu|norm' --dtype bfloat16 --threads 1\n\n"
        "Medians of rounds that take turns. The project's own benchmarks, with more peers and sizes, are in its\n"
        "repository: docs/benchmarks.md there.\n\n"
        "exit status: 1 if the product refuses a call, 2 for invalid arguments",
    )
}
