"""The cases that test_distributed.py starts by torchrun: on all processes, compared with a single process.

    python -m torch.distributed.run --standalone --nproc-per-node 2 -m tests.distributed.cases OUTPUT

writes each case's name and its error, if any, on any process, as JSON.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import aclnn_torch
import aclnn_torch.distributed
import aclnn_torch.functional as F
from tests import LONGEST, inductor
from tests.operators import ELEMENTWISE

ops = torch.ops.aclnn
R, P = Replicate(), Partial()
CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


# ---- Training: data parallelism ------------------------------------------------------------------


class Block(nn.Module):
    """A block with one of every module."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            aclnn_torch.nn.Conv1d(channels, 8, 3, padding=1),
            aclnn_torch.nn.RMSNorm([8, 10], eps=1e-6),
            aclnn_torch.nn.ELU(),
            aclnn_torch.nn.ConvTranspose1d(8, channels, 3, padding=1),
            aclnn_torch.nn.SELU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Network(nn.Module):
    def __init__(self, reentrant: bool | None = None) -> None:
        """Checkpoints its blocks, as `reentrant` selects."""
        super().__init__()
        self.first = nn.Linear(10, 10)
        self.blocks = nn.ModuleList([Block(4), Block(4)])
        self.head = nn.Linear(40, 5)
        self.loss = aclnn_torch.nn.CrossEntropyLoss()
        self.reentrant = reentrant

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
        return self.loss(self.head(x.flatten(1)), target)


def network(reentrant: bool | None = None) -> Network:
    torch.manual_seed(0)
    return Network(reentrant)


def batches() -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 4, 10, generator=generator), torch.randint(5, (8,), generator=generator)) for _ in range(3)]


def train(model: nn.Module, parts: int = 1, part: int = 0) -> list[Tensor]:
    """Trains on one of equal shards of each batch; returns the losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x, target in batches():
        rows = len(x) // parts
        mine = slice(part * rows, (part + 1) * rows)
        optimizer.zero_grad()
        loss = model(x[mine], target[mine])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def learns_like_one_process(model: nn.Module, trained: nn.Module) -> None:
    """Trains the model on every process's shard and compares losses and parameters with a single process."""
    expected_model = network()
    expected = torch.stack(train(expected_model))
    found = torch.stack(train(trained, dist.get_world_size(), dist.get_rank()))
    dist.all_reduce(found)
    # The same sums of FP32 numbers, in another order.
    torch.testing.assert_close(found / dist.get_world_size(), expected, rtol=1e-5, atol=1e-6)
    parameters = dict(model.named_parameters())
    for name, parameter in expected_model.named_parameters():
        value = parameters[name]
        value = value.full_tensor() if isinstance(value, DTensor) else value
        torch.testing.assert_close(value, parameter, rtol=1e-4, atol=1e-5)


def sharded(model: Network) -> Network:
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


@case
def ddp() -> None:
    model = network()
    learns_like_one_process(model, DistributedDataParallel(model))


@case
def fsdp2() -> None:
    model = sharded(network())
    assert all(isinstance(parameter, DTensor) for parameter in model.parameters())
    learns_like_one_process(model, model)


@case
def fsdp2_with_checkpoints() -> None:
    model = sharded(network(reentrant=False))
    learns_like_one_process(model, model)


@case
def ddp_with_reentrant_checkpoints() -> None:
    model = network(reentrant=True)
    learns_like_one_process(model, DistributedDataParallel(model, static_graph=True))


@case
def compiled_ddp() -> None:
    model = network()
    learns_like_one_process(model, torch.compile(DistributedDataParallel(model), backend=inductor.BACKEND))


@case
def compiled_fsdp2() -> None:
    model = network()
    for block in model.blocks:
        block.compile(fullgraph=True, backend=inductor.BACKEND)
    sharded(model)
    learns_like_one_process(model, model)


# ---- The rules -----------------------------------------------------------------------------------


def mesh() -> DeviceMesh:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def in_parts(
    operator: Callable[..., Any],
    arguments: Sequence[Any],
    parts: Sequence[Placement],
    expected: Sequence[Placement | None],
    communicates: bool = False,
    **options: Any,
) -> None:
    """Calls the operator with its tensors so sharded, and compares placements and values with a single process."""
    places = iter(parts)
    spread = [distribute_tensor(a, mesh(), [next(places)]) if isinstance(a, Tensor) else a for a in arguments]
    with CommDebugMode() as communication:
        found = as_tuple(operator(*spread, **options))
    assert (communication.get_total_counts() > 0) is communicates, communication.get_comm_counts()
    for result, value, place in zip(found, as_tuple(operator(*arguments, **options)), expected, strict=True):
        if place is None:
            assert result is None
            continue
        assert result.placements == (place,), f"{result.placements}, expected {place}"
        assert result.shape == value.shape
        # Partial sums in another order; otherwise the same arithmetic.
        torch.testing.assert_close(result.full_tensor(), value, rtol=1e-5, atol=1e-5)


@case
def rules_of_elementwise_operators() -> None:
    x, g = torch.randn(4, 6, 9), torch.randn(4, 6, 9)
    for place in (R, Shard(0), Shard(1), Shard(2)):  # 9 in uneven shards
        for info in ELEMENTWISE.values():
            for kernel in info.kernels_for("tests"):
                arguments = kernel.arguments(*(g, x)[-kernel.reads :])
                in_parts(kernel.overload, arguments, [place] * kernel.reads, [place], **kernel.named)
        in_place = distribute_tensor(x.clone(), mesh(), [place])
        assert ops.elu_(in_place, 0.5) is in_place
        assert in_place.placements == (place,)
        torch.testing.assert_close(in_place.full_tensor(), ops.elu(x, 0.5))
    parts = DTensor.from_local(x, mesh(), [P])
    assert not ops.elu(parts).placements[0].is_partial()
    torch.testing.assert_close(ops.elu(parts).full_tensor(), ops.elu(x * dist.get_world_size()))


@case
def rules_of_layer_norm() -> None:
    x, g = torch.randn(4, 7, 5), torch.randn(4, 7, 5)  # 7 in uneven shards
    for weight, dims in ((torch.rand(5), 2), (torch.rand(7, 5), 1)):
        shape = weight.shape
        _, mean, rstd = ops.layer_norm(x, shape, weight, weight, 1e-5)
        for place in [R, *map(Shard, range(dims))]:
            of_weight = R if place == R else P
            in_parts(ops.layer_norm, (x, shape, weight, weight, 1e-5), [place, R, R], [place] * 3)
            in_parts(ops.layer_norm, (x, shape, None, None, 1e-5), [place], [place] * 3)
            arguments = (g, x, shape, mean, rstd, weight, weight)
            places = [place] * 4 + [R, R]
            in_parts(ops.layer_norm_backward, (*arguments, [True] * 3), places, [place, of_weight, of_weight])
            in_parts(ops.layer_norm_backward, (*arguments, [True, False, True]), places, [place, None, of_weight])


@case
def rules_of_rms_norm() -> None:
    x, dy = torch.randn(4, 7, 5), torch.randn(4, 7, 5)  # 7 in uneven shards
    for gamma, dims in ((torch.rand(5), 2), (torch.rand(7, 5), 1)):
        _, rstd = ops.rms_norm(x, gamma)
        for place in [R, *map(Shard, range(dims))]:
            dgamma = R if place == R else P
            in_parts(ops.rms_norm, (x, gamma), [place, R], [place, place])
            in_parts(ops.rms_norm_grad, (dy, x, rstd, gamma), [place] * 3 + [R], [place, dgamma])
        in_parts(ops.rms_norm, (x, gamma), [Shard(2), R], [R, R], communicates=True)


@case
def nobody_is_left_without_rows() -> None:
    """Chunks of 2 leave the last of 4 processes without any of 5 rows, which aclnnRmsNorm refuses."""
    x, gamma = torch.randn({2: 1, 4: 5}[dist.get_world_size()], 6), torch.rand(6)
    in_parts(ops.rms_norm, (x, gamma), [Shard(0), R], [R, R], communicates=True)


@case
def rules_of_cross_entropy() -> None:
    """In sequence with the same shapes: no decision is cached for another reduction."""
    row = Shard(0)
    input, weight = torch.randn(8, 6), torch.rand(6)
    target = torch.tensor([0, 5, 2, -100, 1, 1, 4, 3])
    for reduction, loss in (("none", row), ("sum", P), ("mean", None), ("none", row)):
        for factors in (None, weight):
            arguments = (input, target, factors, reduction)
            whole = ops.cross_entropy_loss(*arguments)
            parts = [row, row] if factors is None else [row, row, R]
            expected = [R] * 4 if loss is None else [loss, row, R, R]
            in_parts(ops.cross_entropy_loss, arguments, parts, expected, communicates=loss is None)
            grad = torch.randn(whole[0].shape)
            arguments = (grad, whole[1], target, factors, None, None, reduction)
            parts = [row if reduction == "none" else R, row, row, *parts[2:]]
            expected = [R if loss is None else row]
            in_parts(ops.cross_entropy_loss_grad, arguments, parts, expected, communicates=loss is None)


@case
def rules_of_cross_entropy_with_zloss() -> None:
    row = Shard(0)
    input, target = torch.randn(8, 6), torch.randint(6, (8,))
    with aclnn_torch.product("host"):
        for reduction, loss in (("none", row), ("sum", P)):
            arguments = (input, target, None, reduction, -100, 0.1, 0.01, True)
            in_parts(ops.cross_entropy_loss, arguments, [row, row], [loss, row, loss, row])
            total, log_prob, zloss, lse = ops.cross_entropy_loss(*arguments)
            arguments = (torch.ones_like(total), log_prob, target, None, torch.ones_like(zloss), lse, *arguments[3:-1])
            grad = row if reduction == "none" else R
            in_parts(ops.cross_entropy_loss_grad, arguments, [grad, row, row, grad, row], [row])


@case
def rules_of_linear_cross_entropy() -> None:
    """Of 5 rows the last of 4 processes gets none, which it handles like the others."""
    row = Shard(0)
    for rows in (8, 5):
        x, w, b = torch.randn(rows, 6), torch.randn(5, 6), torch.randn(5)
        target = torch.arange(rows) % 5
        weights, factors = torch.rand(5), torch.rand(rows)
        places = [row, R, row, R, R, row]
        arguments = (x, w, target, b, weights, factors, None, 3, 0.1)
        in_parts(ops._linear_cross_entropy, (*arguments, [True] * 3), places, [row, row, row, P, P])
        in_parts(ops._linear_cross_entropy, (*arguments, [True, False, True]), places, [row, row, row, R, P])
        lse = ops._linear_cross_entropy(*arguments)[1]
        arguments = (x, w, target, None, None, factors, lse, 3, 0.1, [False, True, True])
        in_parts(ops._linear_cross_entropy, arguments, [row, R, row, row, row], [R, R, R, P, R])
        sums = (torch.randn(rows), torch.rand(rows) + 1, torch.randn(rows), 0.0)
        in_parts(ops.fused_cross_entropy_loss_with_max_sum, sums, [row] * 3, [row, R])
        arguments = (*sums, torch.randn(rows, 7))
        in_parts(ops.fused_cross_entropy_loss_with_max_sum, arguments, [row] * 4, [row, row])


@case
def rules_of_a_shared_vocabulary() -> None:
    row = Shard(0)
    x, w, target = torch.randn(16, 6), torch.randn(5, 6), torch.arange(16) % 7
    with aclnn_torch.product("host"):
        arguments = (x, w, target, 1, 6, True)
        in_parts(ops.fused_linear_online_max_sum, arguments, [row, R, row], [R] * 6, communicates=True)
        largest, total, _, mask, masked, _ = ops.fused_linear_online_max_sum(*arguments)
        arguments = (torch.rand(16), x, w, mask, masked, 0.0, largest, total)
        places = [row, row, R, R, row, row, row]
        in_parts(ops.fused_linear_cross_entropy_loss_grad, arguments, places, [R, R], communicates=True)


@case
def linear_cross_entropy_of_spread_rows() -> None:
    """The function, forward and backward, on DTensors."""
    x, w, target = torch.randn(8, 6), torch.randn(5, 6), torch.tensor([0, 4, 2, -100, 1, 1, 4, 3])
    for reduction in ("mean", "sum", "none"):
        leaves = [tensor.clone().requires_grad_() for tensor in (x, w)]
        expected = F.linear_cross_entropy(leaves[0], leaves[1], target, reduction=reduction)
        spread = [
            distribute_tensor(leaf.detach(), mesh(), [place]) for leaf, place in zip((x, w), (Shard(0), R), strict=True)
        ]
        for tensor in spread:
            tensor.requires_grad_()
        labels = distribute_tensor(target, mesh(), [Shard(0)])
        found = F.linear_cross_entropy(spread[0], spread[1], labels, reduction=reduction)
        torch.testing.assert_close(found.full_tensor(), expected)
        expected.sum().backward()
        found.sum().full_tensor().backward()
        for leaf, tensor in zip(leaves, spread, strict=True):
            torch.testing.assert_close(tensor.grad.full_tensor(), leaf.grad)


@case
def rules_of_convolution() -> None:
    examples, channels = Shard(0), Shard(1)
    for transposed in (False, True):
        x, dy = torch.randn(4, 4, 5, 6), torch.randn(4, 8, 5, 6)
        weight, bias = torch.randn((4, 8, 3, 3) if transposed else (8, 4, 3, 3)), torch.randn(8)
        outputs, inputs = (Shard(1), Shard(0)) if transposed else (Shard(0), Shard(1))
        shape = ([1, 1], [1, 1], [1, 1], transposed, [0, 0], 1)
        in_parts(ops.convolution, (x, weight, bias, *shape), [examples, R, R], [examples])
        in_parts(ops.convolution, (x, weight, bias, *shape), [R, outputs, Shard(0)], [channels])
        in_parts(ops.convolution, (x, weight, None, *shape), [channels, inputs], [P])
        in_parts(ops.convolution, (x, weight, bias, *shape), [channels, inputs, R], [R], communicates=True)
        whole = (dy, x, weight, [8], *shape, [True, True, True])
        in_parts(ops.convolution_backward, whole, [examples, examples, R], [examples, P, P])
        in_parts(ops.convolution_backward, whole, [R, channels, inputs], [channels, inputs, R])
        without_bias = (*whole[:-1], [True, True, False])
        in_parts(ops.convolution_backward, without_bias, [channels, R, outputs], [P, outputs, None])
    grouped = (torch.randn(4, 4, 7), torch.randn(8, 1, 3), None, [1], [0], [1], False, [0], 4)
    in_parts(ops.convolution, grouped, [examples, R], [examples])
    in_parts(ops.convolution, grouped, [R, Shard(0)], [R], communicates=True)


# ---- DTensor through modules and autograd --------------------------------------------------------


@case
def cross_entropy_of_spread_logits() -> None:
    world = dist.get_world_size()
    meshes = {"one": mesh()}
    places: list[tuple[str, list[Placement]]] = [("one", [Shard(0)]), ("one", [Shard(1)]), ("one", [R])]
    if world == 4:
        meshes["two"] = init_device_mesh("cpu", (2, 2))
        places += [("two", [Shard(0), Shard(1)]), ("two", [Shard(1), Shard(0)]), ("two", [Shard(0), Shard(0)])]
    target = torch.tensor([0, 9, 2, -100, 1, 10, 4, 3])
    for name, placements in places:
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(8, 11).mul(3).to(dtype)
            for weight in (None, torch.rand(11)):
                for reduction in ("mean", "sum", "none"):
                    whole = x.clone().requires_grad_()
                    expected = torch.nn.functional.cross_entropy(whole.float(), target, weight, reduction=reduction)
                    seed = torch.rand(expected.shape)
                    (gradient,) = torch.autograd.grad(expected, whole, seed)
                    spread = distribute_tensor(x, meshes[name], placements).requires_grad_()
                    loss = aclnn_torch.distributed.cross_entropy(spread, target, weight, reduction=reduction)
                    full = loss.full_tensor()
                    error = dict(rtol=2e-2, atol=2e-2) if dtype == torch.bfloat16 else dict(rtol=1e-5, atol=1e-6)
                    torch.testing.assert_close(full.float(), expected, **error)
                    (found,) = torch.autograd.grad(full, spread, seed.to(full.dtype))
                    assert found.placements == spread.placements
                    torch.testing.assert_close(found.full_tensor(), gradient, **error)


@case
def an_ignored_row_has_no_weight() -> None:
    """Not even an infinite weight of the class whose index replaces its label."""
    logits, target = torch.randn(4, 8), torch.tensor([3, -100, 5, 7])
    weight = torch.tensor([float("inf"), *[1.0] * 7])
    for reduction in ("mean", "sum", "none"):
        expected = torch.nn.functional.cross_entropy(logits, target, weight, reduction=reduction)
        spread = distribute_tensor(logits, mesh(), [Shard(1)])
        found = aclnn_torch.distributed.cross_entropy(spread, target, weight, reduction=reduction)
        torch.testing.assert_close(found.full_tensor(), expected)


@case
def cross_entropy_exchanges_no_logits() -> None:
    rows, classes = 8, 1000
    logits = distribute_tensor(torch.randn(rows, classes), mesh(), [Shard(1)]).requires_grad_()
    target = torch.arange(rows)
    largest = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if operator.namespace == "_c10d_functional" and operator._opname.startswith("all_"):
                largest.append(args[0].numel())
            return operator(*args, **kwargs or {})

    with Watch():
        aclnn_torch.distributed.cross_entropy(logits, target).to_local().backward()
    assert largest
    assert max(largest) <= rows


@case
def cross_entropy_refuses_what_is_no_class() -> None:
    logits = distribute_tensor(torch.randn(4, 8), mesh(), [Shard(1)])
    for wrong in (8, -1):
        with pytest.raises(aclnn_torch.AclnnError) as caught:
            aclnn_torch.distributed.cross_entropy(logits, torch.tensor([0, wrong, 1, 2]))
        assert caught.value.status == 507015
    with pytest.raises(ValueError, match="reduction is 'avg'"):
        aclnn_torch.distributed.cross_entropy(logits, torch.arange(4), reduction="avg")
    with pytest.raises(ValueError, match=r"input has shape \[4\]"):
        aclnn_torch.distributed.cross_entropy(distribute_tensor(torch.randn(4), mesh(), [R]), torch.tensor(0))


@case
def linear_cross_entropy_of_spread_classes() -> None:
    """Rows, classes or both, of a vocabulary that does not divide evenly; the logits are never stored as a whole."""
    world = dist.get_world_size()
    meshes = {"one": mesh()}
    places: list[tuple[str, list[Placement], list[Placement]]] = [
        ("one", [R], [Shard(0)]),
        ("one", [Shard(0)], [R]),
        ("one", [Shard(0)], [Shard(0)]),  # the rows are gathered
        ("one", [R], [R]),
    ]
    if world == 4:
        meshes["two"] = init_device_mesh("cpu", (2, 2))
        places += [("two", [Shard(0), R], [R, Shard(0)]), ("two", [R, Shard(0)], [Shard(0), R])]
    target = torch.tensor([0, 9, 2, -100, 1, 10, 4, 3])
    for name, rows, classes in places:
        for dtype in (torch.float32, torch.bfloat16):
            x, matrix = torch.randn(8, 6).to(dtype), torch.randn(11, 6).to(dtype)
            for weight in (None, torch.rand(11)):
                for reduction in ("mean", "sum", "none"):
                    whole = [tensor.float().requires_grad_() for tensor in (x, matrix)]
                    logits = torch.nn.functional.linear(*whole)
                    expected = torch.nn.functional.cross_entropy(logits, target, weight, reduction=reduction)
                    seed = torch.rand(expected.shape)
                    gradients = torch.autograd.grad(expected, whole, seed)
                    spread = [
                        distribute_tensor(tensor, meshes[name], placements).requires_grad_()
                        for tensor, placements in ((x, rows), (matrix, classes))
                    ]
                    loss = aclnn_torch.distributed.linear_cross_entropy(
                        *spread, target, weight=weight, reduction=reduction
                    )
                    full = loss.full_tensor()
                    torch.testing.assert_close(full, expected, rtol=1e-5, atol=1e-5)
                    error = dict(rtol=2e-2, atol=2e-2) if dtype == torch.bfloat16 else dict(rtol=1e-5, atol=1e-6)
                    for found, gradient in zip(torch.autograd.grad(full, spread, seed), gradients, strict=True):
                        torch.testing.assert_close(found.full_tensor().float(), gradient, **error)


@case
def linear_cross_entropy_without_dtensor() -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    x, matrix = torch.randn(7, 6, requires_grad=True), torch.randn(4 * world, 6, requires_grad=True)
    target = torch.tensor([0, 3, 4, 4 * world - 1, -100, 1, 5])
    expected = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, matrix), target, reduction="none")
    gradients = torch.autograd.grad(expected.square().sum(), [x, matrix])
    own = matrix.detach()[4 * rank : 4 * rank + 4].clone().requires_grad_()
    losses = aclnn_torch.distributed.vocabulary_parallel_linear_cross_entropy(x, own, target, dist.group.WORLD)
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-5)
    of_x, of_own = torch.autograd.grad(losses.square().sum(), [x, own])
    torch.testing.assert_close(of_x, gradients[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_own, gradients[1][4 * rank : 4 * rank + 4], rtol=1e-5, atol=1e-5)


@case
def linear_cross_entropy_in_autocast() -> None:
    """Products of rounded numbers, the loss and the leaves' gradients in float32."""
    world = dist.get_world_size()
    x, matrix = torch.randn(6, 8), torch.randn(2 * world, 8)
    target = torch.tensor([0, 1, 2 * world - 1, -100, 1, 0])
    whole = [tensor.bfloat16().float().requires_grad_() for tensor in (x, matrix)]
    expected = torch.nn.functional.cross_entropy(torch.nn.functional.linear(*whole), target)
    of_x, of_matrix = torch.autograd.grad(expected, whole)
    spread = [
        distribute_tensor(tensor, mesh(), [place]).requires_grad_() for tensor, place in ((x, R), (matrix, Shard(0)))
    ]
    own = spread[1].detach().to_local().clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = aclnn_torch.distributed.linear_cross_entropy(*spread, target).full_tensor()
        losses = aclnn_torch.distributed.vocabulary_parallel_linear_cross_entropy(x, own, target, dist.group.WORLD)
    gradients = [gradient.full_tensor() for gradient in torch.autograd.grad(loss, spread)]
    (of_own,) = torch.autograd.grad(losses.sum() / 5, [own])
    torch.testing.assert_close([loss, losses.sum() / 5], [expected, expected], rtol=1e-5, atol=1e-5)
    # Rounded to bfloat16 before widening, and possibly so are the gradients with respect to logits.
    expected_gradients = [of_x, of_matrix, distribute_tensor(of_matrix, mesh(), [Shard(0)]).to_local()]
    torch.testing.assert_close([*gradients, of_own], expected_gradients, rtol=2**-7, atol=2**-9)


@case
def linear_cross_entropy_refuses_what_it_cannot() -> None:
    x, matrix = torch.randn(4, 6), distribute_tensor(torch.randn(8, 6), mesh(), [Shard(0)])
    spread = distribute_tensor(x, mesh(), [R])
    for wrong in (8, -1):
        with pytest.raises(aclnn_torch.AclnnError) as caught:
            aclnn_torch.distributed.linear_cross_entropy(spread, matrix, torch.tensor([0, wrong, 1, 2]))
        assert caught.value.status == 507015
    world = dist.get_world_size()
    with pytest.raises(aclnn_torch.AclnnError) as caught:
        aclnn_torch.distributed.vocabulary_parallel_linear_cross_entropy(
            x, torch.randn(3, 6), torch.tensor([0, 3 * world, 1, 2]), dist.group.WORLD
        )
    assert caught.value.status == 507015
    with pytest.raises(ValueError, match="reduction is 'avg'"):
        aclnn_torch.distributed.linear_cross_entropy(spread, matrix, torch.arange(4), reduction="avg")
    by_columns = distribute_tensor(torch.randn(8, 6), mesh(), [Shard(1)])
    with pytest.raises(ValueError, match="linear_weight has placements"):
        aclnn_torch.distributed.linear_cross_entropy(spread, by_columns, torch.arange(4))
    with pytest.raises(TypeError, match="linear_weight is a Tensor, expected a DTensor"):
        aclnn_torch.distributed.linear_cross_entropy(spread, matrix.full_tensor(), torch.arange(4))
    elsewhere = DTensor.from_local(x, init_device_mesh("cpu", (1, dist.get_world_size())), [R, R])
    with pytest.raises(ValueError, match="distribute both over one mesh"):
        aclnn_torch.distributed.linear_cross_entropy(elsewhere, matrix, torch.arange(4))


class Feedforward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = aclnn_torch.nn.RMSNorm(16, eps=1e-6)
        self.up = nn.Linear(16, 32, bias=False)
        self.activation = aclnn_torch.nn.SELU()
        self.down = nn.Linear(32, 16, bias=False)
        self.last = aclnn_torch.nn.RMSNorm(16, eps=1e-6)
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.last(self.down(self.activation(self.up(self.norm(x)))))
        return self.head(x)


@case
def tensor_and_sequence_parallelism() -> None:
    """Norms by sequence, linear layers by channel, the loss by vocabulary."""
    torch.manual_seed(0)
    model = Feedforward()
    for norm in (model.norm, model.last):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
    x, target = torch.randn(2, 8, 16), torch.randint(20, (16,))
    reference = copy.deepcopy(model)
    expected = torch.nn.functional.cross_entropy(reference(x).flatten(0, 1), target)
    expected.backward()
    plan = {
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "last": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(2), use_local_output=False),
    }
    model = parallelize_module(model, mesh(), plan)
    logits = model(distribute_tensor(x, mesh(), [Shard(1)]))
    assert logits.placements == (Shard(2),)
    loss = aclnn_torch.distributed.cross_entropy(logits.flatten(0, 1), target)
    loss.backward()
    torch.testing.assert_close(loss.full_tensor(), expected, rtol=1e-5, atol=1e-6)
    for (name, found), value in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(found.grad.full_tensor(), value.grad, rtol=1e-4, atol=1e-6, msg=name)


@case
def compiled_dtensors() -> None:
    gamma = distribute_tensor(torch.rand(16), mesh(), [R]).requires_grad_()
    x = distribute_tensor(torch.randn(8, 16), mesh(), [Shard(0)]).requires_grad_()

    def function(x: Tensor, gamma: Tensor) -> Tensor:
        return ops.elu(ops.rms_norm(x, gamma, 1e-6)[0], 0.5)

    found = torch.compile(function, fullgraph=True, backend="aot_eager")(x, gamma)
    expected = function(x, gamma)
    assert found.placements == (Shard(0),)
    for a, b in zip(
        [found, *torch.autograd.grad(found.sum(), (x, gamma))],
        [expected, *torch.autograd.grad(expected.sum(), (x, gamma))],
        strict=True,
    ):
        torch.testing.assert_close(a.full_tensor(), b.full_tensor(), rtol=1e-5, atol=1e-5)


def main(output: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=LONGEST))
    found = {}
    for name, function in CASES.items():
        torch.manual_seed(0)
        problem = None
        try:
            function()
        except Exception:
            problem = traceback.format_exc()
        problems: list[str | None] = [None] * dist.get_world_size()
        dist.all_gather_object(problems, problem)
        found[name] = next(filter(None, problems), None)
    if dist.get_rank() == 0:
        output.write_text(json.dumps(found))
    dist.destroy_process_group()
    os._exit(0)  # torch's communication threads may abort a process whose interpreter ends before they do


if __name__ == "__main__":
    main(Path(sys.argv[1]))
