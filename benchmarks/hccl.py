"""Collective operations of simulated NPUs compared with torch's gloo on CPU tensors of the same processes.

Starts itself on 2 and on 4 simulated NPUs, one process each, which share memory; and again, using the network as if
each were on its own host::

    .venv-npu/bin/python -m benchmarks.hccl

The two alternate in one run, and only their ratio is judged. A size is that of the larger buffer of a rank, in float32.
A turn is a number of calls, and ends when the results are complete; its time is that of the slowest rank.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

RANKS = (2, 4)
TRANSPORTS = ("memory", "network")
SIZES = tuple(1 << power for power in range(10, 27, 4))  # 1 KiB to 64 MiB
LEAST_SECONDS = 0.02  # per turn
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter", "AlltoAll")


def text_of(size: int) -> str:
    """In KiB or MiB."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def measure(turns: int, sizes: list[int], transport: str) -> None:
    """Measures in this process, which is one rank; rank 0 prints."""
    import torch
    import torch.distributed as dist
    from torch import Tensor

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    gloo = dist.new_group(backend="gloo")
    peers = {"HCCL": ("npu", dist.group.WORLD, torch.npu.synchronize), "gloo": ("cpu", gloo, lambda: None)}

    def calls_of(operation: str, whole: Tensor, part: Tensor, other: Tensor, group: object) -> Callable[[], object]:
        return {
            "AllReduce": lambda: dist.all_reduce(whole, group=group),
            "AllGather": lambda: dist.all_gather_into_tensor(whole, part, group),
            "ReduceScatter": lambda: dist.reduce_scatter_tensor(part, whole, group=group),
            "AlltoAll": lambda: dist.all_to_all_single(other, whole, group=group),
        }[operation]

    def turn(call: Callable[[], object], synchronize: Callable[[], None], count: int) -> float:
        """Microseconds per call on the slowest rank."""
        dist.barrier(gloo)
        begin = time.perf_counter()
        for _ in range(count):
            call()
        synchronize()
        slowest = torch.tensor([(time.perf_counter() - begin) / count * 1e6], dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, gloo)
        return slowest.item()

    for operation in OPERATIONS:
        for size in sizes:
            calls = {}
            for name, (device, group, synchronize) in peers.items():
                whole = torch.zeros(size // 4, device=device)
                call = calls_of(operation, whole, torch.zeros_like(whole[: size // 4 // ranks]), whole.clone(), group)
                turn(call, synchronize, 2)
                calls[name] = (call, synchronize, max(1, int(LEAST_SECONDS * 1e6 / turn(call, synchronize, 2))))
            times: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(turns):
                for name, arguments in calls.items():
                    times[name].append(turn(*arguments))
            ratios = sorted(gloo / own for own, gloo in zip(times["HCCL"], times["gloo"], strict=True))
            low, high = ratios[len(ratios) // 5], ratios[-1 - len(ratios) // 5]
            own, other = (statistics.median(times[name]) for name in calls)
            if rank == 0:
                print(
                    f"{transport:8} {ranks:>5}  {operation:13} {text_of(size):>7} {own:10.0f} {other:10.0f}"
                    f"   {statistics.median(ratios):5.2f} ({low:.2f} - {high:.2f})",
                    flush=True,
                )
    dist.destroy_process_group()


def main() -> int:
    """Measures with each number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15, help="of each operation and size (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="in bytes (default: 1 KiB to 64 MiB)")
    parser.add_argument("--transport", choices=TRANSPORTS, nargs="+", default=TRANSPORTS, help="(default: both)")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_process:
        measure(arguments.turns, arguments.sizes, *arguments.transport)
        return 0
    print("microseconds a call, medians; gloo's time divided by HCCL's, median (20th - 80th percentile)")
    print("way      ranks  operation        size       HCCL       gloo   ratio")
    for transport, ranks in itertools.product(arguments.transport, RANKS):
        command = [sys.executable, "-m", "aclnn_torch", "run", "--devices", str(ranks)]
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command += ["-m", "benchmarks.hccl", "--in-process", "--turns", str(arguments.turns)]
        command += ["--transport", transport, "--sizes", *map(str, arguments.sizes)]
        own = {"OMP_NUM_THREADS": "1", "HCCL_IF_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
        own["ACLNN_TORCH_HCCL_NETWORK"] = str(TRANSPORTS.index(transport))
        # torch_npu's warnings are shown only if it fails.
        result = subprocess.run(command, env=os.environ | own, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            print(result.stderr, file=sys.stderr)
            return result.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
