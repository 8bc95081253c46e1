"""Cross entropy: see csrc/torch_ops/cross_entropy_loss.cpp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_variadic

from .. import _C
from ._batching import one_by_one
from ._decomposing import working_dtype
from ._functions import accepted, direct_call, overridden, wrong_kind
from ._operator import (
    PARTIAL,
    REPLICATE,
    Operator,
    Overload,
    Placement,
    Sharding,
    example_rows,
    public_function,
    public_module,
    shard,
)

aclnn = torch.ops.aclnn

_cross_entropy, _traced_cross_entropy = direct_call("_cross_entropy", "cross_entropy")
# Looked up once: attribute access on torch.ops costs as much as a small operator.
_cross_entropy_loss: Callable[..., tuple[Tensor, ...]] = aclnn.cross_entropy_loss.default


@public_function
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Cross entropy between logits and class indices; as ``torch.nn.functional.cross_entropy``.

    Calls aclnnCrossEntropyLoss, and aclnnCrossEntropyLossGrad for the gradient. The products that have them are
    Ascend910B, Ascend910_93, Ascend950 and ``host``; label smoothing is aclnn's on the last two, and composed from the
    log probabilities on the first.

    Args:
        input: logits of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``: float32, float16, bfloat16, or float64 on the
            ``host`` product.
        target: class indices of the same shape without ``C`` (of one example also ``(1)``), int64 or uint8, on
            Ascend950 and ``host`` also int32; each in ``[0, C)`` or equal to ``ignore_index``. Class probabilities are
            not supported: aclnn has no such operator.
        weight: a factor for each class, ``(C)``. Not differentiable.
        size_average: deprecated, as in torch.
        reduce: deprecated, as in torch.
        ignore_index: the target that is ignored; any value.
        reduction: ``"mean"`` (over the sum of the targets' weights; NaN if every target is ignored), ``"sum"`` or
            ``"none"``.
        label_smoothing: between 0 and 1.

    Returns:
        A number, or a tensor of the target's shape for ``"none"``, in the input's dtype.

    Raises:
        AclnnError: status 561003 on a product without the operator, 161002 for dtypes, 561002 for shapes and values,
            507015 for a target outside ``[0, C)``.
        NotImplementedError: the target has class probabilities.
        ValueError: the target's shape is not that of an input of other than two dimensions, or a label smoothing is
            outside ``[0, 1]``.
    """
    if has_torch_function_variadic(input, target, weight):
        return overridden(
            cross_entropy,
            (input, target, weight),
            input,
            target,
            weight=weight,
            size_average=size_average,
            ignore_index=ignore_index,
            reduce=reduce,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    for name, value in (("input", input), ("target", target)):
        if not isinstance(value, Tensor):
            raise wrong_kind("cross_entropy", name, value, "a tensor")
    if size_average is not None or reduce is not None:
        reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
    if target.is_floating_point():
        raise NotImplementedError(
            f"cross_entropy: target has dtype {target.dtype}, class probabilities, expected class indices (int64): "
            "aclnnCrossEntropyLoss takes nothing else; call torch.nn.functional.cross_entropy for these"
        )
    if not isinstance(label_smoothing, (int, float)):
        label_smoothing = accepted("cross_entropy", "label_smoothing", "float", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, expected a number between 0 and 1")
    labels = target if target.dtype != torch.uint8 else target.long()
    logits, dims = input, input.dim()
    if dims != 2:
        logits, labels = _as_rows(input, labels)
    if weight is not None:
        if not isinstance(weight, Tensor):
            raise wrong_kind("cross_entropy", "weight", weight, "a tensor or None")
        weight = weight.to(torch.promote_types(input.dtype, torch.float32))
    if label_smoothing == 0.0 or _smooths_labels(input.device):
        entropy = _traced_cross_entropy if is_dynamo_compiling() else _cross_entropy
        loss = entropy(logits, labels, weight, reduction, ignore_index, label_smoothing)
    else:
        loss = _smoothed(logits, labels, weight, reduction, ignore_index, label_smoothing)
    return loss.reshape(target.shape if dims > 1 else ()) if dims != 2 and reduction == "none" else loss


def _as_rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Reshapes logits of other than two dimensions to one row per label."""
    dims = input.dim()
    if dims == 0:
        raise ValueError("cross_entropy: input has no dimension, expected (C), (N, C) or (N, C, d1, ...)")
    expected = input.shape[:1] + input.shape[2:] if dims > 1 else input.shape[1:]
    if target.shape != expected and not (dims == 1 and target.shape == (1,)):
        raise ValueError(
            f"cross_entropy: target has shape {list(target.shape)}, expected {list(expected)}, that of input "
            f"{list(input.shape)} without its classes"
        )
    axis = min(dims - 1, 1)
    return input.movedim(axis, -1).reshape(-1, input.shape[axis]), target.reshape(-1)


def _smooths_labels(device: torch.device) -> bool:
    """True if the operator supports the label smoothing. A compiler's trace may run on any product."""
    return not torch.compiler.is_compiling() and _C.product_of(device.type).startswith(("Ascend950", "host"))


def _smoothed(
    logits: Tensor, labels: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, label_smoothing: float
) -> Tensor:
    """The loss with label smoothing, from an operator without it."""
    nll, log_prob, _, _ = _cross_entropy_loss(logits, labels, weight, reduction, ignore_index)
    smooth = _smoothing_loss(log_prob, labels, weight, reduction, ignore_index)
    loss = ((1.0 - label_smoothing) * nll + label_smoothing / logits.shape[1] * smooth).to(nll.dtype)
    return loss if reduction == "none" else loss.squeeze(0)


def _smoothing_loss(
    log_prob: Tensor, labels: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    """The loss against all classes alike: the sum over classes of ``-weight * log_prob``, reduced as the loss."""
    scores = log_prob.to(torch.promote_types(log_prob.dtype, torch.float32))
    kept = labels != ignore_index
    rows = -(scores if weight is None else scores * weight).sum(1)
    rows = torch.where(kept, rows, 0.0)
    if reduction == "none":
        return rows
    total = rows.sum(0, keepdim=True)
    if reduction == "sum":
        return total
    factors = kept.to(scores.dtype)
    if weight is not None:
        factors = factors * weight[torch.where(kept, labels, 0).long()]
    return total / factors.sum()


@public_module
class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """``torch.nn.CrossEntropyLoss`` through aclnn: see :func:`aclnn_torch.functional.cross_entropy`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits against class indices."""
        return cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


def _weights_of_rows(
    target: Tensor, weight: Tensor | None, classes: Any, ignore_index: int, real: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weight of each class; and for each row, if it counts, a valid label index, and its label's weight."""
    weights = target.new_ones([classes], dtype=real) if weight is None else weight.to(real)
    counts = target != ignore_index
    labels = torch.where(counts, target, 0).long()
    return weights, counts, labels, torch.where(counts, weights[labels], 0)


def _reduced(rows: Tensor, reduction: str, count: Tensor) -> Tensor:
    if reduction == "none":
        return rows
    total = rows.sum().reshape(1)
    return total / count if reduction == "mean" else total


def _decomposed(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    classes, real = input.shape[1], working_dtype(input.dtype)
    wide = input.to(real)
    weights, counts, labels, weight_of = _weights_of_rows(target, weight, classes, ignore_index, real)
    log_prob = torch.log_softmax(wide, 1)
    lse = torch.logsumexp(wide, 1)
    loss = -weight_of * log_prob.gather(1, labels.unsqueeze(1)).squeeze(1)
    if label_smoothing:
        smooth = -(log_prob * weights).sum(1) * (label_smoothing / classes)
        loss = (1 - label_smoothing) * loss + smooth
    loss = _reduced(torch.where(counts, loss, 0), reduction, weight_of.sum())
    zloss = torch.where(counts, lse_square_scale_for_zloss * lse * lse, 0)
    zloss = _reduced(zloss, reduction, counts.sum()) if return_zloss else lse.new_empty([0])
    lse = lse if lse_square_scale_for_zloss else lse.new_empty([0])
    return loss.to(input.dtype), log_prob.to(input.dtype), zloss.to(input.dtype), lse.to(input.dtype)


def _decomposed_number(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    loss = _decomposed(input, target, weight, reduction, ignore_index, label_smoothing)[0]
    return loss if reduction == "none" else loss.squeeze(0)


def _decomposed_grad(
    grad_loss: Tensor,
    log_prob: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    grad_zloss: Tensor | None = None,
    lse_for_zloss: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
) -> Tensor:
    classes, real = log_prob.shape[1], working_dtype(log_prob.dtype)
    weights, counts, labels, weight_of = _weights_of_rows(target, weight, classes, ignore_index, real)
    grad = grad_loss.to(real) / (weight_of.sum() if reduction == "mean" else 1)
    at_label = weight_of * grad * (1 - label_smoothing)
    factor = at_label
    everywhere = None
    if label_smoothing:
        smooth = torch.where(counts, grad * (label_smoothing / classes), 0)
        factor = factor + smooth * weights.sum()
        everywhere = smooth.unsqueeze(1) * weights
    if grad_zloss is not None and lse_for_zloss is not None and lse_square_scale_for_zloss:
        grad_z = grad_zloss.to(real) / (counts.sum() if reduction == "mean" else 1)
        z = grad_z * (2 * lse_square_scale_for_zloss) * lse_for_zloss.to(real)
        factor = factor + torch.where(counts, z, 0)
    result = log_prob.to(real).exp() * factor.unsqueeze(1)
    is_label = torch.arange(classes, device=target.device) == labels.unsqueeze(1)
    result = result - torch.where(is_label, at_label.unsqueeze(1), 0)
    if everywhere is not None:
        result = result - everywhere
    return torch.where(counts.unsqueeze(1), result, 0).to(log_prob.dtype)


def _sharding(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: Any = None,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> Sequence[Sharding]:
    weights = [] if weight is None else [REPLICATE]
    shardings: list[Sharding] = [([REPLICATE] * 4, [REPLICATE] * 2 + weights)]
    if reduction != "mean":
        row = shard(0)
        loss = row if reduction == "none" else PARTIAL
        # Outputs that were not requested are empty.
        zloss = loss if return_zloss else REPLICATE
        lse = row if lse_square_scale_for_zloss else REPLICATE
        shardings.append(([loss, row, zloss, lse], [row, row, *weights]))
    return shardings


def _sharding_of_grad(
    grad_loss: Any,
    log_prob: Any,
    target: Any,
    weight: Any = None,
    grad_zloss: Any = None,
    lse_for_zloss: Any = None,
    reduction: str = "mean",
    *_: Any,
) -> Sequence[Sharding]:
    def given(tensor: Any, placement: Placement) -> list[Placement]:
        return [] if tensor is None else [placement]

    def sharding(row: Placement, grad: Placement) -> Sharding:
        zloss = given(grad_zloss, grad) + given(lse_for_zloss, row)
        return [row], [grad, row, row, *given(weight, REPLICATE), *zloss]

    shardings = [sharding(REPLICATE, REPLICATE)]
    if reduction != "mean":
        row = shard(0)
        shardings.append(sharding(row, row if reduction == "none" else REPLICATE))
    return shardings


OPERATOR = Operator(
    functions=(cross_entropy,),
    modules=(CrossEntropyLoss,),
    overloads=(
        Overload(
            operator=aclnn.cross_entropy_loss.default,
            decomposition=_decomposed,
            example=lambda: (example_rows(), torch.arange(4)),
            batching=one_by_one(aclnn.cross_entropy_loss.default),
            sharding=_sharding,
        ),
        Overload(
            operator=aclnn._cross_entropy.default,
            decomposition=_decomposed_number,
            example=lambda: (example_rows(), torch.arange(4)),
        ),
        Overload(
            operator=aclnn.cross_entropy_loss_grad.default,
            decomposition=_decomposed_grad,
            example=lambda: (torch.ones(1), torch.log_softmax(example_rows(), 1), torch.arange(4)),
            batching=one_by_one(aclnn.cross_entropy_loss_grad.default),
            sharding=_sharding_of_grad,
        ),
    ),
)
