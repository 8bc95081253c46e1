"""What every rank of tests/npu/test_distributed.py runs: HCCL through torch.distributed, and what is built on it.

Models are compared with the same model in one process on the CPU.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("npu", RANK)
NEXT, PREVIOUS = (RANK + 1) % RANKS, (RANK - 1) % RANKS
ROWS, WIDTH = 2, 16
CASES: list[Callable[[], None]] = []


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Have the function run."""
    CASES.append(function)
    return function


def numbers(rank: int, count: int = 12) -> Tensor:
    """Small whole numbers, which every dtype has, different for each rank."""
    return (torch.arange(count) * 3 + rank * 5) % 7 + 1


def of_all(count: int = 12) -> Tensor:
    """The numbers of all ranks, a row each."""
    return torch.stack([numbers(rank, count) for rank in range(RANKS)])


def expect(found: Tensor, expected: Tensor) -> None:
    """On the device, and the same numbers."""
    assert found.device.type == "npu"
    torch.testing.assert_close(found.cpu(), expected.to(found.dtype), rtol=0, atol=0)


@case
def all_reduce() -> None:
    rows = of_all()
    reductions = {
        dist.ReduceOp.SUM: rows.sum(0),
        dist.ReduceOp.MAX: rows.amax(0),
        dist.ReduceOp.MIN: rows.amin(0),
        dist.ReduceOp.PRODUCT: rows.prod(0),
    }
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8):
        for reduction, expected in reductions.items():
            if reduction == dist.ReduceOp.PRODUCT and dtype in (torch.bfloat16, torch.int8, torch.float16):
                continue  # not of the product, or more than the dtype has
            values = numbers(RANK).to(DEVICE, dtype)
            dist.all_reduce(values, reduction)
            expect(values, expected)
    mean = numbers(RANK).to(DEVICE, torch.float32)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    expect(mean, rows.sum(0).float() / RANKS)


@case
def reduce_and_broadcast() -> None:
    values = numbers(RANK).to(DEVICE)
    dist.reduce(values, RANKS - 1)
    if RANK == RANKS - 1:
        expect(values, of_all().sum(0))
    values = numbers(RANK).to(DEVICE)
    dist.broadcast(values, 1)
    expect(values, numbers(1))


@case
def gathers() -> None:
    parts = [torch.empty(12, dtype=torch.int64, device=DEVICE) for _ in range(RANKS)]
    dist.all_gather(parts, numbers(RANK).to(DEVICE))
    expect(torch.stack(parts), of_all())
    whole = torch.empty(RANKS * 12, dtype=torch.int64, device=DEVICE)
    dist.all_gather_into_tensor(whole, numbers(RANK).to(DEVICE))
    expect(whole, of_all().flatten())
    uneven = [torch.empty(rank + 1, device=DEVICE) for rank in range(RANKS)]
    dist.all_gather(uneven, torch.full((RANK + 1,), float(RANK), device=DEVICE))
    for rank, part in enumerate(uneven):
        expect(part, torch.full((rank + 1,), float(rank)))


@case
def scatters() -> None:
    part = torch.empty(12, dtype=torch.int64, device=DEVICE)
    dist.scatter(part, list(of_all().to(DEVICE)) if RANK == 0 else None, 0)
    expect(part, numbers(RANK))
    part = torch.empty(12 // RANKS, dtype=torch.int64, device=DEVICE)
    dist.reduce_scatter_tensor(part, numbers(RANK).to(DEVICE))
    expect(part, of_all().sum(0).view(RANKS, -1)[RANK])


@case
def all_to_all() -> None:
    received = torch.empty(12, dtype=torch.int64, device=DEVICE)
    dist.all_to_all_single(received, numbers(RANK).to(DEVICE))
    expect(received, of_all().view(RANKS, RANKS, -1)[:, RANK].flatten())
    # Rank i sends i + j + 1 numbers to rank j.
    counts = [[i + j + 1 for j in range(RANKS)] for i in range(RANKS)]
    sent = torch.cat([torch.full((counts[RANK][j],), 10 * RANK + j) for j in range(RANKS)])
    expected = torch.cat([torch.full((counts[i][RANK],), 10 * i + RANK) for i in range(RANKS)])
    received = torch.empty(len(expected), dtype=torch.int64, device=DEVICE)
    dist.all_to_all_single(received, sent.to(DEVICE), [row[RANK] for row in counts], counts[RANK])
    expect(received, expected)


@case
def messages() -> None:
    received = torch.empty(12, dtype=torch.int64, device=DEVICE)
    if RANK == 0:
        dist.send(numbers(0).to(DEVICE), 1)
    elif RANK == 1:
        dist.recv(received, 0)
        expect(received, numbers(0))
    operations = [
        dist.P2POp(dist.isend, numbers(RANK).to(DEVICE), NEXT),
        dist.P2POp(dist.irecv, received, PREVIOUS),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    expect(received, numbers(PREVIOUS))


@case
def groups_and_objects() -> None:
    halves = [list(range(RANKS // 2)), list(range(RANKS // 2, RANKS))]
    groups = [dist.new_group(half) for half in halves]
    mine = 0 if RANK in halves[0] else 1
    values = numbers(RANK).to(DEVICE)
    dist.all_reduce(values, group=groups[mine])
    expect(values, of_all()[halves[mine]].sum(0))
    objects: list[object] = [None] * RANKS
    dist.all_gather_object(objects, {"rank": RANK})
    assert objects == [{"rank": rank} for rank in range(RANKS)]


@case
def asynchronous() -> None:
    """The stream waits, not the process."""
    values = numbers(RANK, 1 << 20).to(DEVICE, torch.float32)
    work = dist.all_reduce(values, async_op=True)
    work.wait()
    expect(values * 2, of_all(1 << 20).sum(0) * 2)


def model() -> nn.Module:
    """The same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.Tanh(), nn.Linear(4 * WIDTH, WIDTH))


def train(net: nn.Module, rows: Tensor, steps: int = 3) -> None:
    """Some steps of SGD on the mean of the squares."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(rows).square().mean().backward()
        optimizer.step()


def whole(value: Tensor) -> Tensor:
    """On the CPU, with the parts of all ranks."""
    return (value.full_tensor() if isinstance(value, DTensor) else value).detach().cpu()


def compare(net: nn.Module, *, data_parallel: bool) -> None:
    """Train it with each rank's rows, or with all rows on each, and one process's with all rows."""
    torch.manual_seed(1)
    rows = torch.randn(RANKS * ROWS, WIDTH)
    reference = model()
    train(reference, rows)
    own = rows.view(RANKS, ROWS, WIDTH)[RANK] if data_parallel else rows
    train(net, own.to(DEVICE))
    for found, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(whole(found), expected.detach(), rtol=1e-5, atol=1e-6)


@case
def distributed_data_parallel() -> None:
    compare(nn.parallel.DistributedDataParallel(model().to(DEVICE), device_ids=[RANK]), data_parallel=True)


@case
def fully_sharded() -> None:
    net = model().to(DEVICE)
    mesh = init_device_mesh("npu", (RANKS,))
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    compare(fully_shard(net, mesh=mesh), data_parallel=True)


@case
def tensor_parallel() -> None:
    mesh = init_device_mesh("npu", (RANKS,))
    net = copy.deepcopy(model()).to(DEVICE)
    compare(parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}), data_parallel=False)


def main() -> None:
    """Run every case; rank 0 writes what failed anywhere."""
    torch.npu.set_device(DEVICE)
    torch.npu.matmul.allow_hf32 = False
    dist.init_process_group("hccl", timeout=timedelta(seconds=120))
    outcomes: dict[str, list[str | None]] = {}
    for run in CASES:
        problem = None
        try:
            run()
        except Exception:
            problem = traceback.format_exc()
        problems: list[str | None] = [None] * RANKS
        dist.all_gather_object(problems, problem)
        outcomes[run.__name__] = problems
    if RANK == 0:
        Path(sys.argv[1]).write_text(json.dumps(outcomes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
