"""The operators on tensors that are spread over processes; importing this module is what teaches DTensor about them.

::

    import aclnn_torch.distributed

gives every operator of ``torch.ops.aclnn`` a sharding rule, through ``torch.distributed.tensor.experimental``'s
``register_sharding``. A rule says how an operator works on each process's part alone, without communication:

=============================  =========================================================================================
operator                       parts that it works on
=============================  =========================================================================================
elu, gelu, selu, silu and       any
their gradients
layer_norm                     rows: dimensions that are not normalised
layer_norm_backward            rows; the gradients of weight and bias are partial sums
rms_norm                       rows: dimensions that are not normalised
rms_norm_grad                  rows; the gradient of gamma is a partial sum
cross_entropy_loss             rows, where ``reduction`` is "none", or "sum": the loss is a partial sum
cross_entropy_loss_grad        rows, likewise
convolution                    examples of the batch; output channels; input channels without a bias: a partial sum.
                               Channels only without groups
convolution_backward           as its forward; the gradients of weight and bias are partial sums over examples. Output
                               channels only where the bias gets no gradient
=============================  =========================================================================================

What comes in other parts is gathered first, as everywhere in DTensor; so is what leaves a process without any rows,
examples or channels, since most of CANN's operators refuse empty tensors. "mean" divides by a sum over all rows, of
which one process knows nothing, so there all logits are gathered; :func:`cross_entropy` avoids that, and takes logits
whose classes are spread too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed._functional_collectives as collectives
from torch import Tensor
from torch._ops import OpOverload
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding

from .ops._elementwise import ELEMENTWISE

__all__ = ["cross_entropy"]

# Placements of an operator's results, and of its tensors.
_Sharding = tuple[list[Any], list[Any]]
_Rule = Callable[..., Sequence[_Sharding]]
_REPLICATED = Replicate()


def _sharding(*operators: OpOverload, of_nothing: bool = False) -> Callable[[_Rule], _Rule]:
    """Registers a rule, a function of the operator's arguments, for operators; `of_nothing` they take empty tensors."""

    def register(rule: _Rule) -> _Rule:
        def checked(*args: Any, **kwargs: Any) -> Sequence[_Sharding]:
            tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, DTensorSpec)]
            shardings = rule(*args, **kwargs)
            return shardings if of_nothing else [each for each in shardings if _all_get_some(tensors, each[1])]

        for operator in operators:
            register_sharding(operator)(checked)
            # By itself it would remember a decision for all calls whose integers are the same, though it also depends
            # on words, lists and flags.
            options = [argument.name for argument in operator._schema.arguments if argument.kwarg_only]
            DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[operator] = RuntimeSchemaInfo(
                static_argnum=1, static_kwargkey=options, needs_pytree=True
            )
        return rule

    return register


def _all_get_some(tensors: Sequence[DTensorSpec], placements: Sequence[Placement]) -> bool:
    """Whether no tensor that is spread already in this way leaves a process without any of it."""
    for tensor, placement in zip(tensors, placements, strict=True):
        if isinstance(placement, Shard):
            sizes = zip(tensor.mesh.shape, tensor.placements, strict=True)
            parts = math.prod(size for size, now in sizes if now == placement)
            size = tensor.shape[placement.dim]
            if size == 0 or -(-size // -(-size // parts)) < parts:
                return False
    return True


@_sharding(*ELEMENTWISE, of_nothing=True)
def _elementwise(*args: Any, **_: Any) -> Sequence[_Sharding]:
    tensors = [arg for arg in args if isinstance(arg, DTensorSpec)]
    shapes = {tensor.shape for tensor in tensors}
    dims = range(tensors[0].ndim) if len(shapes) == 1 else ()  # not where one is broadcast
    return [([placement], [placement] * len(tensors)) for placement in (_REPLICATED, *map(Shard, dims))]


@_sharding(torch.ops.aclnn.layer_norm.default, of_nothing=True)
def _layer_norm(input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Sequence[_Sharding]:
    weights = [_REPLICATED] * sum(each is not None for each in (weight, bias))
    rows = map(Shard, range(input.ndim - len(normalized_shape)))
    return [([row] * 3, [row, *weights]) for row in (_REPLICATED, *rows)]


@_sharding(torch.ops.aclnn.layer_norm_backward.default, of_nothing=True)
def _layer_norm_backward(
    grad_out: Any,
    input: Any,
    normalized_shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,
    output_mask: Sequence[bool],
) -> Sequence[_Sharding]:
    weights = [_REPLICATED] * sum(each is not None for each in (weight, bias))
    shardings: list[_Sharding] = []
    for row in (_REPLICATED, *map(Shard, range(input.ndim - len(normalized_shape)))):
        of_weights = _REPLICATED if row == _REPLICATED else Partial()
        results = [
            place if wanted else None for place, wanted in zip([row, of_weights, of_weights], output_mask, strict=True)
        ]
        shardings.append((results, [row, row, row, row, *weights]))
    return shardings


@_sharding(torch.ops.aclnn.rms_norm.default)
def _rms_norm(x: Any, gamma: Any, epsilon: Any = None) -> Sequence[_Sharding]:
    rows = map(Shard, range(x.ndim - gamma.ndim))
    return [([row, row], [row, _REPLICATED]) for row in (_REPLICATED, *rows)]


@_sharding(torch.ops.aclnn.rms_norm_grad.default)
def _rms_norm_grad(dy: Any, x: Any, rstd: Any, gamma: Any) -> Sequence[_Sharding]:
    shardings: list[_Sharding] = [([_REPLICATED] * 2, [_REPLICATED] * 4)]
    for dim in range(x.ndim - gamma.ndim):
        if dim < rstd.ndim and rstd.shape[dim] == x.shape[dim]:
            shardings.append(([Shard(dim), Partial()], [Shard(dim)] * 3 + [_REPLICATED]))
    return shardings


@_sharding(torch.ops.aclnn.cross_entropy_loss.default)
def _cross_entropy_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: Any = None,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> Sequence[_Sharding]:
    weights = [] if weight is None else [_REPLICATED]
    shardings: list[_Sharding] = [([_REPLICATED] * 4, [_REPLICATED] * 2 + weights)]
    if reduction != "mean":
        row = Shard(0)
        loss = row if reduction == "none" else Partial()
        # What was not asked for is empty.
        zloss = loss if return_zloss else _REPLICATED
        lse = row if lse_square_scale_for_zloss else _REPLICATED
        shardings.append(([loss, row, zloss, lse], [row, row, *weights]))
    return shardings


@_sharding(torch.ops.aclnn.cross_entropy_loss_grad.default)
def _cross_entropy_loss_grad(
    grad_loss: Any,
    log_prob: Any,
    target: Any,
    weight: Any = None,
    grad_zloss: Any = None,
    lse_for_zloss: Any = None,
    reduction: str = "mean",
    *_: Any,
) -> Sequence[_Sharding]:
    def given(tensor: Any, placement: Placement) -> list[Placement]:
        return [] if tensor is None else [placement]

    def sharding(row: Placement, grad: Placement) -> _Sharding:
        zloss = given(grad_zloss, grad) + given(lse_for_zloss, row)
        return [row], [grad, row, row, *given(weight, _REPLICATED), *zloss]

    shardings = [sharding(_REPLICATED, _REPLICATED)]
    if reduction != "mean":
        row = Shard(0)
        shardings.append(sharding(row, row if reduction == "none" else _REPLICATED))
    return shardings


def _channels(transposed: bool) -> tuple[Shard, Shard]:
    """The weight's dimensions of output and input channels."""
    return (Shard(1), Shard(0)) if transposed else (Shard(0), Shard(1))


@_sharding(torch.ops.aclnn.convolution.default)
def _convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    **_: Any,
) -> Sequence[_Sharding]:
    def with_bias(placement: Placement) -> list[Placement]:
        return [] if bias is None else [placement]

    replicated, examples, channels = _REPLICATED, Shard(0), Shard(1)
    shardings: list[_Sharding] = [
        ([replicated], [replicated, replicated, *with_bias(replicated)]),
        ([examples], [examples, replicated, *with_bias(replicated)]),
    ]
    if groups == 1:
        out_channels, in_channels = _channels(transposed)
        shardings.append(([channels], [replicated, out_channels, *with_bias(Shard(0))]))
        if bias is None:
            shardings.append(([Partial()], [channels, in_channels]))
    return shardings


@_sharding(torch.ops.aclnn.convolution_backward.default)
def _convolution_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    **_: Any,
) -> Sequence[_Sharding]:
    def results(*placements: Placement) -> list[Placement | None]:
        return [placement if wanted else None for placement, wanted in zip(placements, output_mask, strict=True)]

    replicated, examples, channels = _REPLICATED, Shard(0), Shard(1)
    shardings: list[_Sharding] = [
        (results(replicated, replicated, replicated), [replicated] * 3),
        (results(examples, Partial(), Partial()), [examples, examples, replicated]),
    ]
    if groups == 1:
        out_channels, in_channels = _channels(transposed)
        shardings.append((results(channels, in_channels, replicated), [replicated, channels, in_channels]))
        if not output_mask[2]:  # bias_sizes are those of all channels
            shardings.append((results(Partial(), out_channels, replicated), [channels, replicated, out_channels]))
    return shardings


def cross_entropy(
    input: DTensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""Cross entropy of logits whose rows, classes or both are spread over processes; no logits are exchanged.

    For rows it calls aclnnCrossEntropyLoss on each process's. For classes, as a vocabulary's in tensor parallelism,
    too: a process's logits and one more, the log of the sum of the exponentials of everyone else's, have the same
    softmax as all together. One number per row and process is exchanged for that, and one loss per row. In FLOAT, for
    float16 and bfloat16 too, and differentiable once in that case. The checks of both are aclnn's, process by process.

    Args:
        input: logits ``(N, C)``, as a DTensor. Not more than one dimension of the mesh may spread the classes, evenly
            or not, and every process needs some rows.
        target: class indices ``(N)``, int64: a DTensor, or a tensor that is the same on every process.
        weight: a factor for each class, ``(C)``, likewise. Not differentiable.
        ignore_index: the target that counts for nothing.
        reduction: ``"mean"`` (over the sum of the targets' weights, of all processes), ``"sum"`` or ``"none"``.

    Returns:
        The loss as a DTensor, a number or ``(N)``; ``full_tensor()`` is the same on every process. Its dtype is the
        input's where only rows are spread, float32 (float64 for float64) where classes are.

    Raises:
        AclnnError: as :func:`aclnn_torch.functional.cross_entropy`.
        ValueError: another reduction, or the input is not two-dimensional, or its classes are spread over several
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
            f"cross_entropy: the classes of input are spread over dimensions {spread} of the mesh, expected one at most"
        )
    rows = [_REPLICATED if dim in spread else place for dim, place in enumerate(input.placements)]
    labels = _on_mesh(target, mesh).redistribute(placements=rows)
    counts = labels != ignore_index
    if spread:
        nll = _ShardedClasses.apply(input.to_local(), labels.to_local(), input.shape[1], mesh, spread[0], ignore_index)  # type: ignore[no-untyped-call]
        losses = DTensor.from_local(nll, mesh, rows, run_check=False, shape=labels.shape, stride=(1,))
    else:
        losses = torch.ops.aclnn.cross_entropy_loss(input, labels, None, "none", ignore_index)[0]
    if weight is None:
        factors = counts.to(losses.dtype)
    else:
        weights = _on_mesh(weight, mesh).to(losses.dtype)
        factors = weights[torch.where(counts, labels, torch.zeros_like(labels))] * counts
        losses = losses * factors
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / factors.sum()


def _on_mesh(tensor: Tensor, mesh: DeviceMesh) -> DTensor:
    """A tensor that is the same on every process, as a DTensor."""
    if isinstance(tensor, DTensor):
        return tensor
    return DTensor.from_local(tensor, mesh, [_REPLICATED] * mesh.ndim, run_check=False)


class _ShardedClasses(torch.autograd.Function):
    """The loss of each row, 0 where it is ignored, from some of the classes and what others tell of theirs."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, target: Tensor, classes: int, mesh: DeviceMesh, mesh_dim: int, ignore_index: int
    ) -> Tensor:
        own, rank = input.shape[1], mesh.get_local_rank(mesh_dim)
        first = min(-(-classes // mesh.size(mesh_dim)) * rank, classes)  # of its classes, as DTensor divides them
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        sums = collectives.all_gather_single(torch.logsumexp(wide, 1, keepdim=True), 1, (mesh, mesh_dim))
        others = torch.logsumexp(torch.cat([sums[:, :rank], sums[:, rank + 1 :]], 1), 1, keepdim=True)
        logits = torch.cat([wide, others], 1)
        is_own = (target >= first) & (target < first + own)
        counts = target != ignore_index
        is_class = (target >= 0) & (target < classes)
        # A target that is no class stays none, for the operator to refuse.
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
