"""The cases that every rank of tests/npu/test_distributed.py runs: HCCL through torch.distributed.

Models are compared with the same model in one process on the CPU.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from aclnn_torch.distributed import vocabulary_parallel_linear_cross_entropy
from tests import LONGEST

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("npu", RANK)
NEXT, PREVIOUS = (RANK + 1) % RANKS, (RANK - 1) % RANKS
ROWS, WIDTH = 2, 16
CASES: list[Callable[[], None]] = []


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Adds the function to the cases."""
    CASES.append(function)
    return function


def numbers(rank: int, count: int = 24) -> Tensor:
    """Small integers, exact in every dtype, different for each rank."""
    return (torch.arange(count) * 3 + rank * 5) % 7 + 1


def of_all(count: int = 24) -> Tensor:
    """The numbers of all ranks, one row each."""
    return torch.stack([numbers(rank, count) for rank in range(RANKS)])


def expect(found: Tensor, expected: Tensor) -> None:
    """Compares a device tensor with the expected numbers."""
    assert found.device.type == "npu"
    torch.testing.assert_close(found.cpu(), expected.to(found.dtype), rtol=0, atol=0)


FLOATING = (torch.float32, torch.float16, torch.bfloat16)
COPIED = (*FLOATING, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
REDUCTIONS: dict[dist.ReduceOp.RedOpType, Callable[[Tensor], Tensor]] = {
    dist.ReduceOp.SUM: lambda rows: rows.sum(0),
    dist.ReduceOp.MAX: lambda rows: rows.amax(0),
    dist.ReduceOp.MIN: lambda rows: rows.amin(0),
    dist.ReduceOp.PRODUCT: lambda rows: rows.prod(0),
    dist.ReduceOp.AVG: lambda rows: rows.double().mean(0),
}


def reductions() -> Iterator[tuple[torch.dtype, dist.ReduceOp.RedOpType, Tensor, Tensor]]:
    """Reductions: dtype, reduction, this rank's numbers, and the result over all ranks."""
    for reduction, compute in REDUCTIONS.items():
        for dtype in (*FLOATING, torch.int8, torch.int16, torch.int32, torch.int64):
            product, mean = reduction == dist.ReduceOp.PRODUCT, reduction == dist.ReduceOp.AVG
            if product and dtype in (torch.bfloat16, torch.int16):
                continue  # not supported by Ascend910B
            if mean and dtype not in FLOATING:
                continue
            rows = of_all() % 2 + 1 if product else of_all()  # products exact in every floating dtype
            yield dtype, reduction, rows[RANK].to(DEVICE, dtype), compute(rows)


@case
def all_reduce() -> None:
    for _, reduction, values, expected in reductions():
        dist.all_reduce(values, reduction)
        expect(values, expected)


@case
def reduce() -> None:
    for _, reduction, values, expected in reductions():
        dist.reduce(values, RANKS - 1, reduction)
        if RANK == RANKS - 1:
            expect(values, expected)


@case
def reduce_scatter() -> None:
    for dtype, reduction, values, expected in reductions():
        part = torch.empty(24 // RANKS, dtype=dtype, device=DEVICE)
        dist.reduce_scatter_tensor(part, values, reduction)
        expect(part, expected.view(RANKS, -1)[RANK])
        parts = list(values.view(RANKS, -1))
        dist.reduce_scatter(part, parts, reduction)
        expect(part, expected.view(RANKS, -1)[RANK])


@case
def the_same_bits_on_every_rank() -> None:
    """Sums that round: in the order of the ranks; 16-bit numbers in float32, rounded once."""
    for dtype in FLOATING:
        rows = torch.stack([1 / (1 + numbers(rank, 5000) + torch.arange(5000)) for rank in range(RANKS)]).to(dtype)
        expected = rows[0].float()
        for row in rows[1:]:
            expected = expected + row.float()
        values = rows[RANK].to(DEVICE)
        dist.all_reduce(values)
        expect(values, expected)


@case
def broadcast() -> None:
    for dtype in COPIED:
        values = numbers(RANK).to(DEVICE, dtype)
        dist.broadcast(values, 1)
        expect(values, numbers(1))


@case
def gathers() -> None:
    for dtype in COPIED:
        parts = [torch.empty(24, dtype=dtype, device=DEVICE) for _ in range(RANKS)]
        dist.all_gather(parts, numbers(RANK).to(DEVICE, dtype))
        expect(torch.stack(parts), of_all())
        whole = torch.empty(RANKS * 24, dtype=dtype, device=DEVICE)
        dist.all_gather_into_tensor(whole, numbers(RANK).to(DEVICE, dtype))
        expect(whole, of_all().flatten())
    uneven = [torch.empty(rank + 1, device=DEVICE) for rank in range(RANKS)]
    dist.all_gather(uneven, torch.full((RANK + 1,), float(RANK), device=DEVICE))
    for rank, part in enumerate(uneven):
        expect(part, torch.full((rank + 1,), float(rank)))


@case
def scatter() -> None:
    for dtype in COPIED:
        part = torch.empty(24, dtype=dtype, device=DEVICE)
        dist.scatter(part, list(of_all().to(DEVICE, dtype)) if RANK == 0 else None, 0)
        expect(part, numbers(RANK))


@case
def all_to_all() -> None:
    for dtype in COPIED:
        received = torch.empty(24, dtype=dtype, device=DEVICE)
        dist.all_to_all_single(received, numbers(RANK).to(DEVICE, dtype))
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
    for dtype in COPIED:
        received = torch.empty(24, dtype=dtype, device=DEVICE)
        if RANK == 0:
            dist.send(numbers(0).to(DEVICE, dtype), 1)
        elif RANK == 1:
            dist.recv(received, 0)
            expect(received, numbers(0))
    received = torch.empty(24, dtype=torch.int64, device=DEVICE)
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
    dist.barrier()
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
    """On the CPU, with the shards of all ranks."""
    return (value.full_tensor() if isinstance(value, DTensor) else value).detach().cpu()


def compare(net: nn.Module, *, data_parallel: bool) -> None:
    """Train it with each rank's rows, or with all rows on each, and compare with one process and all rows."""
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


@case
def shared_vocabulary() -> None:
    """CANN's three functions, each rank with its own classes; they support 16 bits only."""
    torch.manual_seed(2)
    classes = 130
    x, weight = torch.randn(9, 64).bfloat16(), (torch.randn(classes * RANKS, 64) / 8).bfloat16()
    target = torch.arange(9) * classes * RANKS // 9
    target[4] = -100
    exact = [tensor.double().requires_grad_() for tensor in (x, weight)]
    expected = nn.functional.cross_entropy(nn.functional.linear(*exact), target, reduction="none")
    gradients = torch.autograd.grad(expected.square().sum(), exact)
    own = slice(classes * RANK, classes * (RANK + 1))
    inputs = [x.to(DEVICE).requires_grad_(), weight[own].to(DEVICE).requires_grad_()]
    losses = vocabulary_parallel_linear_cross_entropy(*inputs, target.to(DEVICE), dist.group.WORLD)
    assert losses.device.type == "npu"
    found = torch.autograd.grad(losses.square().sum(), inputs)
    # A device rounds logits, which are below 8 here, and their gradients to BFLOAT16.
    torch.testing.assert_close(losses.cpu().double(), expected.detach(), rtol=0, atol=2**-5)
    for one, other in zip(found, (gradients[0], gradients[1][own]), strict=True):
        error = (one.cpu().double() - other).norm() / other.norm()
        assert error < 2**-6, error


def main() -> None:
    """Run every case; rank 0 writes the failures of all ranks."""
    torch.npu.set_device(DEVICE)
    torch.npu.matmul.allow_hf32 = False
    dist.init_process_group("hccl", timeout=timedelta(seconds=LONGEST))
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
