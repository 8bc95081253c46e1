"""The operators on tensors sharded over processes; importing this module registers them with DTensor.

::

    import aclnn_torch.distributed

gives every operator of ``torch.ops.aclnn`` a sharding rule, through ``torch.distributed.tensor.experimental``'s
``register_sharding``. A rule states which shards an operator can process locally, without communication:

=============================  =========================================================================================
operator                       parts that it works on
=============================  =========================================================================================
elementwise operators          any
and their gradients
layer_norm                     rows: dimensions that are not normalised
layer_norm_backward            rows; the gradients of weight and bias are partial sums
rms_norm                       rows: dimensions that are not normalised
rms_norm_grad                  rows; the gradient of gamma is a partial sum
cross_entropy_loss             rows, where ``reduction`` is "none", or "sum": the loss is a partial sum
cross_entropy_loss_grad        rows, likewise
_linear_cross_entropy          rows; the gradients of matrix and bias are partial sums
fused_cross_entropy_loss_with  rows
_max_sum
other fused_linear operators   none: a byte of their mask has eight rows
convolution                    examples of the batch; output channels; input channels without a bias: a partial sum.
                               Channels only without groups
convolution_backward           as its forward; the gradients of weight and bias are partial sums over examples. Output
                               channels only where the bias gets no gradient
=============================  =========================================================================================

Tensors sharded in other ways are gathered first, as usual in DTensor; so are shardings that leave a process without
rows, examples or channels, since most of CANN's operators refuse empty tensors. "mean" divides by a sum over all rows,
which no single process has, so all logits are gathered; :func:`cross_entropy` avoids that, and also accepts logits with
sharded classes. :func:`linear_cross_entropy` has no logits at all: the head's weight is sharded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.distributed._functional_collectives as collectives
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding

from .ops import OPERATORS, _operator
from .ops._functions import autocast_dtype

__all__ = ["cross_entropy", "linear_cross_entropy", "vocabulary_parallel_linear_cross_entropy"]

# torch has renamed it.
_all_gather: Any = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor

_REPLICATED = Replicate()

_SomeTensor = TypeVar("_SomeTensor", bound=Tensor)


def _placement(stated: _operator.Placement | None) -> Placement | None:
    """Converts a placement of a rule to DTensor's."""
    if stated is None:
        return None
    if stated.dim is not None:
        return Shard(stated.dim)
    return _REPLICATED if stated == _operator.REPLICATE else Partial()


def _register(overload: _operator.Overload) -> None:
    """Registers the rule of an operator with DTensor."""
    rule, operator = overload.sharding, overload.operator
    assert rule is not None

    def shardings(*args: Any, **kwargs: Any) -> Sequence[tuple[list[Placement | None], list[Placement | None]]]:
        tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, DTensorSpec)]
        found = [
            ([_placement(each) for each in results], [_placement(each) for each in inputs])
            for results, inputs in rule(*args, **kwargs)
        ]
        return found if overload.accepts_empty else [each for each in found if _all_get_some(tensors, each[1])]

    register_sharding(operator)(shardings)
    # By default DTensor caches a decision for all calls with equal integers, but it also depends on strings, lists and
    # flags.
    options = [argument.name for argument in operator._schema.arguments if argument.kwarg_only]
    DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[operator] = RuntimeSchemaInfo(
        static_argnum=1, static_kwargkey=options, needs_pytree=True
    )


def _all_get_some(tensors: Sequence[DTensorSpec], placements: Sequence[Placement | None]) -> bool:
    """True if no tensor already sharded in this way leaves a process with an empty shard."""
    for tensor, placement in zip(tensors, placements, strict=True):
        if isinstance(placement, Shard):
            sizes = zip(tensor.mesh.shape, tensor.placements, strict=True)
            parts = math.prod(size for size, now in sizes if now == placement)
            size = tensor.shape[placement.dim]
            if size == 0 or -(-size // -(-size // parts)) < parts:
                return False
    return True


for _stated in OPERATORS.values():
    for _overload in _stated.overloads:
        if _overload.sharding is not None:
            _register(_overload)


def cross_entropy(
    input: DTensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""Cross entropy of logits whose rows, classes or both are sharded over processes; no logits are exchanged.

    For sharded rows, each process calls aclnnCrossEntropyLoss on its rows. For sharded classes, as in tensor
    parallelism, too: a process's logits plus one more, the log of the sum of the exponentials of all other processes',
    have the same softmax as all logits together. This exchanges one number per row and process, and one loss per row.
    It is computed in FLOAT, for float16 and bfloat16 too, and is then differentiable once. The checks are aclnn's, on
    each process.

    Args:
        input: logits ``(N, C)``, as a DTensor. At most one dimension of the mesh may shard the classes, evenly or not,
            and every process needs some rows.
        target: class indices ``(N)``, int64: a DTensor, or a tensor that is the same on every process.
        weight: a factor for each class, ``(C)``, likewise. Not differentiable.
        ignore_index: the target that is ignored.
        reduction: ``"mean"`` (over the sum of the targets' weights, of all processes), ``"sum"`` or ``"none"``.

    Returns:
        The loss as a DTensor, a number or ``(N)``; ``full_tensor()`` is the same on every process. Its dtype is the
        input's if only rows are sharded, float32 (float64 for float64) if classes are.

    Raises:
        AclnnError: as :func:`aclnn_torch.functional.cross_entropy`.
        ValueError: another reduction, or the input is not two-dimensional, or its classes are sharded over several
            dimensions of the mesh.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"cross_entropy: reduction is {reduction!r}, expected 'mean', 'sum' or 'none'")
    if input.dim() != 2:
        raise ValueError(f"cross_entropy: input has shape {list(input.shape)}, expected (N, C); reshape it")
    mesh = input.device_mesh
    losses: Tensor
    input = input.redistribute(placements=[_REPLICATED if place.is_partial() else place for place in input.placements])
    spread = [dim for dim, place in enumerate(input.placements) if place.is_shard(1)]
    if len(spread) > 1:
        raise ValueError(
            f"cross_entropy: the classes of input are sharded over dimensions {spread} of the mesh, expected at most "
            "one dimension; redistribute the input"
        )
    rows = [_REPLICATED if dim in spread else place for dim, place in enumerate(input.placements)]
    labels = _on_mesh(target, mesh).redistribute(placements=rows)
    if spread:
        nll = _ShardedClasses.apply(input.to_local(), labels.to_local(), input.shape[1], mesh, spread[0], ignore_index)  # type: ignore[no-untyped-call]
        losses = DTensor.from_local(nll, mesh, rows, run_check=False, shape=labels.shape, stride=(1,))
    else:
        losses = torch.ops.aclnn.cross_entropy_loss(input, labels, None, "none", ignore_index)[0]
    return _reduced(losses, labels, weight, ignore_index, reduction)


def _as_in_autocast(tensor: _SomeTensor) -> _SomeTensor:
    """Casts a tensor as autocast does for a linear layer, if it is active."""
    dtype = autocast_dtype(tensor)
    return tensor if dtype is None else tensor.to(dtype)  # type: ignore[return-value]


def _on_mesh(tensor: Tensor, mesh: DeviceMesh) -> DTensor:
    """A tensor that is equal on every process, as a DTensor."""
    if isinstance(tensor, DTensor):
        return tensor
    return DTensor.from_local(tensor, mesh, [_REPLICATED] * mesh.ndim, run_check=False)


def _reduced(losses: Tensor, labels: DTensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Reduces the losses of rows, each times the weight of its label."""
    counts = labels != ignore_index
    if weight is None:
        factors = counts.to(losses.dtype)
    else:
        mesh = labels.device_mesh
        weights = _on_mesh(weight.detach(), mesh).redistribute(placements=[_REPLICATED] * mesh.ndim)
        # Indexed by hand: torch before 2.11 cannot index by rows that two dimensions of the mesh shard.
        own = labels.to_local()
        of_own = weights.to_local().to(losses.dtype)[torch.where(own != ignore_index, own, torch.zeros_like(own))]
        of_labels = DTensor.from_local(
            of_own, mesh, labels.placements, run_check=False, shape=labels.shape, stride=labels.stride()
        )
        factors = torch.where(counts, of_labels, torch.zeros_like(of_labels))
        losses = losses * factors
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / factors.sum()


class _ShardedClasses(torch.autograd.Function):
    """The loss of each row, 0 if it is ignored, from this process's classes and the other processes' statistics."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, target: Tensor, classes: int, mesh: DeviceMesh, mesh_dim: int, ignore_index: int
    ) -> Tensor:
        own, rank = input.shape[1], mesh.get_local_rank(mesh_dim)
        first = min(-(-classes // mesh.size(mesh_dim)) * rank, classes)  # of its classes, as DTensor shards them
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        sums = _all_gather(torch.logsumexp(wide, 1, keepdim=True), 1, (mesh, mesh_dim))
        others = torch.logsumexp(torch.cat([sums[:, :rank], sums[:, rank + 1 :]], 1), 1, keepdim=True)
        logits = torch.cat([wide, others], 1)
        is_own = (target >= first) & (target < first + own)
        counts = target != ignore_index
        is_class = (target >= 0) & (target < classes)
        # An invalid target stays invalid, so that the operator refuses it.
        label = torch.where(is_own, target - first, torch.where(is_class, own, own + 1))
        label = torch.where(counts, label, -1)
        loss, log_prob, _, _ = torch.ops.aclnn.cross_entropy_loss(logits, label, None, "none", -1)
        ctx.save_for_backward(log_prob, label)
        ctx.dtype = input.dtype
        loss = torch.where(is_own, loss, torch.zeros_like(loss))
        return collectives.all_reduce(loss, "sum", (mesh, mesh_dim))  # type: ignore[no-any-return]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        log_prob, label = ctx.saved_tensors
        gradient = torch.ops.aclnn.cross_entropy_loss_grad(grad, log_prob, label, None, None, None, "none", -1)
        return gradient[:, :-1].to(ctx.dtype), None, None, None, None, None


def linear_cross_entropy(
    input: DTensor,
    linear_weight: DTensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""Cross entropy of ``linear(input, linear_weight)`` with the weight's classes sharded; logits are never stored.

    A process computes with its classes: for each row the log of the sum of their exponentials, and the logit of the
    label if it is one of its classes. Three numbers per row are reduced over the processes in turn: the maximum of
    these logs, the sum of their exponentials, and the label's logit; in the backward pass, the input's gradient.
    Computed in float32 (float64 for float64), for 16-bit tensors too; differentiable once. Under autocast, input and
    weight are cast as for a linear layer.

    Args:
        input: ``(N, D)``, a DTensor; its rows may be sharded over the dimensions of the mesh that do not shard classes.
        linear_weight: ``(C, D)``, a DTensor whose classes are sharded over at most one dimension of the mesh, evenly or
            not, and replicated over the others.
        target: class indices ``(N)``, int64: a DTensor, or a tensor that is the same on every process.
        weight: a factor for each class, ``(C)``, likewise. Not differentiable.
        ignore_index: the target that is ignored.
        reduction: ``"mean"`` (over the sum of the targets' weights, of all processes), ``"sum"`` or ``"none"``.

    Returns:
        The loss as a DTensor, a number or ``(N)``, float32 or float64; ``full_tensor()`` is the same on every process.

    Raises:
        AclnnError: status 161002 for dtypes and shapes, 507015 for a target outside ``[0, C)``, except on an NPU, where
            its logit counts as 0.
        TypeError: input or weight is no DTensor.
        ValueError: another reduction, or the tensors are sharded in another way, or over different meshes.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"linear_cross_entropy: reduction is {reduction!r}, expected 'mean', 'sum' or 'none'")
    for name, tensor in {"input": input, "linear_weight": linear_weight}.items():
        if not isinstance(tensor, DTensor):
            raise TypeError(
                f"linear_cross_entropy: {name} is a {type(tensor).__name__}, expected a DTensor; distribute it, or use "
                "vocabulary_parallel_linear_cross_entropy"
            )
    mesh = input.device_mesh
    if linear_weight.device_mesh != mesh:
        raise ValueError(
            f"linear_cross_entropy: linear_weight is on {linear_weight.device_mesh}, expected input's {mesh}; "
            "distribute both over one mesh"
        )
    input, linear_weight = _as_in_autocast(input), _as_in_autocast(linear_weight)
    spread = [dim for dim, place in enumerate(linear_weight.placements) if place.is_shard(0)]
    others = [place for place in linear_weight.placements if not place.is_shard(0)]
    if len(spread) > 1 or not all(place.is_replicate() for place in others):
        raise ValueError(
            f"linear_cross_entropy: linear_weight has placements {linear_weight.placements}, expected classes that are "
            "sharded over at most one dimension of the mesh and replicated over the others; redistribute it"
        )
    rows = [
        _REPLICATED if dim in spread or not place.is_shard(0) else place for dim, place in enumerate(input.placements)
    ]
    x = input.redistribute(placements=rows)
    labels = _on_mesh(target, mesh).redistribute(placements=rows)
    # A process's gradient of the weight is from its rows.
    of_weight = [
        place if dim in spread or rows[dim].is_replicate() else Partial()
        for dim, place in enumerate(linear_weight.placements)
    ]
    group, dim = ((mesh, spread[0]), spread[0]) if spread else (None, None)
    classes = linear_weight.shape[0]
    first = 0 if dim is None else min(-(-classes // mesh.size(dim)) * mesh.get_local_rank(dim), classes)
    nll = _ShardedVocabulary.apply(  # type: ignore[no-untyped-call]
        x.to_local(grad_placements=rows),
        linear_weight.to_local(grad_placements=of_weight),
        labels.to_local(),
        first,
        classes,
        group,
        ignore_index,
    )
    losses: Tensor = DTensor.from_local(nll, mesh, rows, run_check=False, shape=labels.shape, stride=(1,))
    return _reduced(losses, labels, weight, ignore_index, reduction)


def vocabulary_parallel_linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, group: ProcessGroup, ignore_index: int = -100
) -> Tensor:
    r"""The losses of rows that every process of a group has, with a sharded vocabulary, as in Megatron.

    The same as :func:`linear_cross_entropy` without DTensor, also under autocast. Every process gets the input's
    gradient with respect to the whole vocabulary.

    Args:
        input: ``(N, D)``, the same on every process.
        linear_weight: ``(C, D)``, this process's classes; every process has as many, in the order of ranks.
        target: ``(N)``, int64, indices into the whole vocabulary, the same on every process.
        group: the processes.
        ignore_index: the target that is ignored.

    Returns:
        The losses ``(N)``, float32 (float64 for float64), 0 if the target is ignored.

    Raises:
        AclnnError: as :func:`linear_cross_entropy`.
    """
    own = linear_weight.shape[0]
    first, classes = own * group.rank(), own * group.size()
    losses: Tensor = _ShardedVocabulary.apply(  # type: ignore[no-untyped-call]
        _as_in_autocast(input), _as_in_autocast(linear_weight), target, first, classes, group, ignore_index
    )
    return losses


class _ShardedVocabulary(torch.autograd.Function):
    """The loss of each row, 0 if it is ignored, from this process's classes and the other processes' statistics."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor,
        target: Tensor,
        first: int,
        classes: int,
        group: Any,
        ignore_index: int,
    ) -> Tensor:
        ctx.shard = (first, classes)
        ctx.group, ctx.ignore_index = group, ignore_index
        if weight.shape[0] > 0:
            losses, lse, *_ = torch.ops.aclnn._linear_cross_entropy(
                input, weight, target, ignore_index=ignore_index, first_class=first, vocabulary_size=classes
            )
        else:
            # One class of zeros, so that the labels are checked here as well.
            losses, *_ = torch.ops.aclnn._linear_cross_entropy(
                input,
                weight.new_zeros([1, weight.shape[1]]),
                target,
                ignore_index=ignore_index,
                vocabulary_size=classes,
            )
            lse = torch.full_like(losses, -math.inf)
        is_here = (target >= first) & (target < first + weight.shape[0])
        counts = target != ignore_index
        logit = torch.where(is_here & counts, lse - losses, torch.zeros_like(lse))
        if group is not None:
            largest = collectives.all_reduce(lse, "max", group)
            total = collectives.all_reduce(torch.exp(lse - largest), "sum", group)
            lse = largest + torch.log(total)
            logit = collectives.all_reduce(logit, "sum", group)
        ctx.save_for_backward(input, weight, target, lse)
        return torch.where(counts, lse - logit, torch.zeros_like(lse))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, target, lse = ctx.saved_tensors
        if weight.shape[0] == 0:
            of_input, of_weight = torch.zeros_like(input), torch.zeros_like(weight)
        else:
            *_, of_input, of_weight, _ = torch.ops.aclnn._linear_cross_entropy(
                input,
                weight,
                target,
                factors=grad.to(lse.dtype).contiguous(),
                lse=lse,
                ignore_index=ctx.ignore_index,
                output_mask=[ctx.needs_input_grad[0], ctx.needs_input_grad[1], False],
                first_class=ctx.shard[0],
                vocabulary_size=ctx.shard[1],
            )
        if ctx.needs_input_grad[0] and ctx.group is not None:
            # Rounded once, after the reduction.
            of_input = collectives.all_reduce(of_input.to(lse.dtype), "sum", ctx.group).to(input.dtype)
        return (
            of_input if ctx.needs_input_grad[0] else None,
            of_weight if ctx.needs_input_grad[1] else None,
            *[None] * 5,
        )
