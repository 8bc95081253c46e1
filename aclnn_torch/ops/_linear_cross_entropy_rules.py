"""The rules of the cross entropy of a linear layer: decomposition, batching, sharding, flops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ._batching import one_by_one
from ._decomposing import working_dtype
from ._operator import PARTIAL, REPLICATE, Overload, Sharding, example_rows, shard
from .cross_entropy_loss import _weights_of_rows

aclnn = torch.ops.aclnn


def _decomposed_sums(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    vocab_start_index: int,
    vocab_end_index: int,
    return_logits: bool = False,
) -> tuple[Tensor, ...]:
    real = working_dtype(input.dtype)
    logits = input.to(real) @ weight.to(real).t()
    largest = logits.amax(1)
    total = (logits - largest.unsqueeze(1)).exp().sum(1)
    masked = (target < vocab_start_index) | (target >= vocab_end_index)
    label = torch.where(masked, 0, target - vocab_start_index)
    place = label.long().clamp(max=weight.shape[0] - 1)
    of_label = torch.where(label == place, logits.gather(1, place.unsqueeze(1)).squeeze(1), 0)
    predicted = torch.where(masked, 0, of_label - largest)
    # After the last row, the bits are those of target 0.
    of_zero = 0 if vocab_start_index <= 0 < vocab_end_index else 1
    bits = torch.nn.functional.pad(masked.to(torch.uint8), (0, -masked.shape[0] % 8), value=of_zero).reshape(-1, 8)
    mask = (bits << torch.arange(8, dtype=torch.uint8, device=bits.device)).sum(1, dtype=torch.uint8)
    return largest, total, predicted, mask, label, logits.to(input.dtype) if return_logits else input.new_empty([0])


def _decomposed_loss(
    logits_max: Tensor,
    sum_exp_logits: Tensor,
    predicted_logits: Tensor,
    label_smoothing: float = 0.0,
    vocab_parallel_logits: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    loss = sum_exp_logits.log() - predicted_logits
    if vocab_parallel_logits is None:
        return loss, loss.new_empty([0])
    logits = vocab_parallel_logits.to(working_dtype(vocab_parallel_logits.dtype))
    return loss, (logits - logits_max.unsqueeze(1)).exp() / sum_exp_logits.unsqueeze(1)


def _decomposed_grad(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    target_mask: Tensor,
    masked_target: Tensor,
    label_smoothing: float = 0.0,
    logits_max: Tensor | None = None,
    sum_exp_logits: Tensor | None = None,
    softmax: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    real = working_dtype(input.dtype)
    rows, matrix = input.to(real), weight.to(real)
    if softmax is None:
        assert logits_max is not None and sum_exp_logits is not None
        softmax = (rows @ matrix.t() - logits_max.unsqueeze(1)).exp() / sum_exp_logits.unsqueeze(1)
    masked = target_mask
    if masked.dtype != torch.bool:
        row = torch.arange(grad.shape[0], device=grad.device)
        masked = (target_mask[row // 8] >> (row % 8).to(torch.uint8)) & 1 != 0
    is_label = torch.arange(weight.shape[0], device=grad.device) == masked_target.unsqueeze(1)
    of_logits = grad.unsqueeze(1) * (softmax - (is_label & ~masked.unsqueeze(1)).to(real))
    return (of_logits @ matrix).to(input.dtype), (of_logits.t() @ rows).to(input.dtype)


def _decomposed(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    class_weights: Tensor | None = None,
    factors: Tensor | None = None,
    lse: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    output_mask: Sequence[bool] = (False, False, False),
    first_class: int = 0,
    vocabulary_size: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    classes, real = weight.shape[0], working_dtype(input.dtype)
    rows, matrix = input.to(real), weight.to(real)
    logits = rows @ matrix.t()
    if bias is not None:
        logits = logits + bias.to(real)
    # A label outside these classes has the logit 0, and no gradient of its own.
    is_here = (target >= first_class) & (target < first_class + classes)
    places = torch.where(target == ignore_index, target, torch.where(is_here, target - first_class, 0))
    weights, counts, labels, weight_of = _weights_of_rows(places, class_weights, classes, ignore_index, real)
    losses = lse_out = logits.new_empty([0])
    if lse is None:
        lse = lse_out = logits.logsumexp(1)
        of_label = torch.where(is_here, logits.gather(1, labels.unsqueeze(1)).squeeze(1), 0)
        losses = (1 - label_smoothing) * weight_of * (lse - of_label)
        if label_smoothing:
            losses = losses + label_smoothing / classes * (lse * weights.sum() - logits @ weights)
        losses = torch.where(counts, losses, 0)
    factor = torch.where(counts, 1 if factors is None else factors, 0).to(real)
    at_label = (1 - label_smoothing) * weight_of * factor
    is_label = (torch.arange(classes, device=target.device) == labels.unsqueeze(1)) & is_here.unsqueeze(1)
    of_softmax, of_classes = at_label, None
    if label_smoothing:  # without smoothing, other classes' weights do not count, even infinite ones
        everywhere = label_smoothing / classes * factor
        of_softmax = at_label + everywhere * weights.sum()
        of_classes = everywhere.unsqueeze(1) * weights
    of_logits = (logits - lse.unsqueeze(1)).exp() * of_softmax.unsqueeze(1)
    of_logits = of_logits - torch.where(is_label, at_label.unsqueeze(1), 0)
    if of_classes is not None:
        of_logits = of_logits - of_classes
    of_logits = torch.where(counts.unsqueeze(1), of_logits, 0)

    def wanted(i: int, gradient: Tensor) -> Tensor:
        return gradient.to(input.dtype) if output_mask[i] else input.new_empty([0])

    of_bias = input.new_empty([0]) if bias is None else wanted(2, of_logits.sum(0))
    return losses, lse_out, wanted(0, of_logits @ matrix), wanted(1, of_logits.t() @ rows), of_bias


def _decomposed_total(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    class_weights: Tensor | None = None,
    factors: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduced: bool = True,
) -> Tensor:
    losses = _decomposed(input, weight, target, bias, class_weights, None, None, ignore_index, label_smoothing)[0]
    if not reduced:
        return losses
    return (losses if factors is None else losses * factors).sum()


# ---- Sharding: by rows, and never by classes, because each process's labels would have another origin


def _replicated(results: int) -> Callable[..., Sequence[Sharding]]:
    """For CANN's functions of rows and a matrix: no sharding, because a byte of the mask covers eight rows."""

    def sharding(*arguments: Any, **named: Any) -> Sequence[Sharding]:
        tensors = [each for each in (*arguments, *named.values()) if hasattr(each, "placements")]
        return [([REPLICATE] * results, [REPLICATE] * len(tensors))]

    return sharding


def _sharding_of_loss(
    logits_max: Any,
    sum_exp_logits: Any,
    predicted_logits: Any,
    label_smoothing: Any = None,
    vocab_parallel_logits: Any = None,
) -> Sequence[Sharding]:
    row, count = shard(0), 3 if vocab_parallel_logits is None else 4
    return [
        ([REPLICATE] * 2, [REPLICATE] * count),
        ([row, REPLICATE if vocab_parallel_logits is None else row], [row] * count),
    ]


def _sharding(
    input: Any,
    weight: Any,
    target: Any,
    bias: Any = None,
    class_weights: Any = None,
    factors: Any = None,
    lse: Any = None,
    ignore_index: Any = None,
    label_smoothing: Any = None,
    output_mask: Sequence[bool] = (False, False, False),
    *_: Any,
) -> Sequence[Sharding]:
    row = shard(0)
    places = [
        place
        for tensor, place in (
            *((input, row), (weight, REPLICATE), (target, row), (bias, REPLICATE)),
            *((class_weights, REPLICATE), (factors, row), (lse, row)),
        )
        if tensor is not None
    ]
    # Outputs that were not requested are empty.
    found = [row if lse is None else REPLICATE] * 2
    gradients = [
        place if wanted else REPLICATE for place, wanted in zip((row, PARTIAL, PARTIAL), output_mask, strict=True)
    ]
    if bias is None:
        gradients[2] = REPLICATE
    return [([REPLICATE] * 5, [REPLICATE] * len(places)), ([*found, *gradients], places)]


# ---- Operations: those of the matrix products -------------------------------------------------------


def _flops_of_product(input: Tensor, weight: Tensor) -> int:
    return 2 * input.shape[0] * weight.shape[0] * input.shape[1]


def _flops_of_sums(input: Tensor, weight: Tensor, *_: Any, **__: Any) -> int:
    return _flops_of_product(input, weight)


def _flops_of_grad(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    target_mask: Tensor,
    masked_target: Tensor,
    label_smoothing: float = 0.0,
    logits_max: Tensor | None = None,
    sum_exp_logits: Tensor | None = None,
    softmax: Tensor | None = None,
    **_: Any,
) -> int:
    return (3 if softmax is None else 2) * _flops_of_product(input, weight)


def _flops(
    input: Tensor,
    weight: Tensor,
    *options: Any,
    output_mask: Sequence[bool] = (False, False, False),
    **_: Any,
) -> int:
    mask = options[7] if len(options) > 7 else output_mask
    return (1 + sum(mask[:2])) * _flops_of_product(input, weight)


def _example() -> tuple[Tensor, Tensor, Tensor]:
    """Four rows, as many classes, and labels."""
    return example_rows(), example_rows(1.5, -1), torch.arange(4)


def _example_of_grad() -> tuple[Any, ...]:
    rows, matrix, target = _example()
    logits = rows @ matrix.t()
    largest = logits.amax(1)
    mask = torch.tensor([False, True, False, False])
    return rows[:, 0], rows, matrix, mask, target, 0.0, largest, (logits - largest.unsqueeze(1)).exp().sum(1)


OVERLOADS = (
    Overload(
        operator=aclnn.fused_linear_online_max_sum.default,
        decomposition=_decomposed_sums,
        example=lambda: (*_example(), 1, 6, True),
        batching=one_by_one(aclnn.fused_linear_online_max_sum.default),
        sharding=_replicated(6),
        flops=_flops_of_sums,
    ),
    Overload(
        operator=aclnn.fused_cross_entropy_loss_with_max_sum.default,
        decomposition=_decomposed_loss,
        example=lambda: (torch.zeros(4), torch.arange(1.0, 5.0), torch.full((4,), -0.5), 0.0, example_rows()),
        batching=one_by_one(aclnn.fused_cross_entropy_loss_with_max_sum.default),
        sharding=_sharding_of_loss,
        accepts_empty=True,
    ),
    Overload(
        operator=aclnn.fused_linear_cross_entropy_loss_grad.default,
        decomposition=_decomposed_grad,
        example=_example_of_grad,
        batching=one_by_one(aclnn.fused_linear_cross_entropy_loss_grad.default),
        sharding=_replicated(2),
        flops=_flops_of_grad,
    ),
    Overload(
        operator=aclnn._linear_cross_entropy.default,
        decomposition=_decomposed,
        example=lambda: (*_example(), None, None, None, None, -100, 0.1, [True, True, False]),
        batching=one_by_one(aclnn._linear_cross_entropy.default),
        sharding=_sharding,
        accepts_empty=True,
        flops=_flops,
    ),
    Overload(
        operator=aclnn.linear_cross_entropy.default,
        decomposition=_decomposed_total,
        example=_example,
        batching=one_by_one(aclnn.linear_cross_entropy.default),
    ),
)
