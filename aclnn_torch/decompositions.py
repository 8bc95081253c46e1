"""The operators in terms of ATen's, for compilers and backends that know nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from . import ops as _ops  # noqa: F401  (registers them)

__all__ = ["decompositions"]

aten = torch.ops.aten
aclnn = torch.ops.aclnn

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """What each operator of ``torch.ops.aclnn`` computes, written with ATen's operators.

    A new table, to be changed and merged at will::

        program = torch.export.export(model, inputs)
        program.run_decompositions(torch.export.default_decompositions() | aclnn_torch.decompositions())

    Results have the operators' shapes, dtypes and branches (SELU's gradient at 0, CrossEntropyLoss's ignored rows); 16
    bits are computed in FLOAT and rounded once, except within ATen's own ``elu``, ``silu``, ``gelu``, ``convolution``
    and their gradients. ``cube_math_type``, which chooses among a device's ways to multiply, and the checks with their
    status codes are aclnn's alone and left out. SELU of integers has no counterpart and is not decomposed.

    Returns:
        Operator -> function of the same arguments, as ``make_fx`` and ``run_decompositions`` want it.
    """
    return {
        aclnn.elu.default: aten.elu.default,
        aclnn.elu_.default: aten.elu_.default,
        aclnn.elu_backward.default: aten.elu_backward.default,
        aclnn.selu.default: _selu,
        aclnn.selu_.default: _selu_,
        aclnn.selu_backward.default: _selu_backward,
        aclnn.silu.default: aten.silu.default,
        aclnn.silu_backward.default: aten.silu_backward.default,
        aclnn.gelu.default: aten.gelu.default,
        aclnn.gelu_backward.default: aten.gelu_backward.default,
        aclnn.layer_norm.default: _layer_norm,
        aclnn.layer_norm_backward.default: _layer_norm_backward,
        aclnn.rms_norm.default: _rms_norm,
        aclnn.rms_norm_grad.default: _rms_norm_grad,
        aclnn.cross_entropy_loss.default: _cross_entropy_loss,
        aclnn.cross_entropy_loss_grad.default: _cross_entropy_loss_grad,
        aclnn._cross_entropy.default: _cross_entropy,
        aclnn.convolution.default: _convolution,
        aclnn.convolution_backward.default: _convolution_backward,
    }


def _real(dtype: torch.dtype) -> torch.dtype:
    """The type that is computed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _selu(self: Tensor) -> Any:
    return aten.elu(self, SELU_ALPHA, SELU_SCALE) if self.is_floating_point() else NotImplemented


def _selu_(self: Tensor) -> Any:
    return aten.elu_(self, SELU_ALPHA, SELU_SCALE) if self.is_floating_point() else NotImplemented


def _selu_backward(grad_output: Tensor, result: Tensor) -> Any:
    if not result.is_floating_point():
        return NotImplemented
    return aten.elu_backward(grad_output, SELU_ALPHA, SELU_SCALE, 1, True, result)


def _layer_norm(
    input: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    real = _real(input.dtype)
    wide = input.to(real)
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt((centered * centered).mean(dims, keepdim=True) + eps)
    y = centered * rstd
    y = y if weight is None else y * weight.to(real)
    y = y if bias is None else y + bias.to(real)
    return y.to(input.dtype), mean, rstd


def _layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[Any],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    real = _real(input.dtype)
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    dy = grad_out.to(real)
    xhat = (input.to(real) - mean) * rstd
    a = dy if weight is None else dy * weight.to(real)
    dx = rstd * (a - a.mean(inner, keepdim=True) - xhat * (a * xhat).mean(inner, keepdim=True))

    def of_weight(terms: Tensor, like: Tensor | None) -> Tensor:
        return (terms.sum(outer) if outer else terms).to(real if like is None else like.dtype)

    return (
        dx.to(input.dtype) if output_mask[0] else None,
        of_weight(dy * xhat, weight) if output_mask[1] else None,
        of_weight(dy, weight if bias is None else bias) if output_mask[2] else None,
    )


def _rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    real = _real(x.dtype)
    wide = x.to(real)
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    rstd = torch.rsqrt((wide * wide).mean(dims, keepdim=True) + epsilon)
    return (wide * rstd * gamma.to(real)).to(x.dtype), rstd


def _rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    real = _real(x.dtype)
    rows = x.dim() - gamma.dim()
    # rstd may have fewer dimensions than x, where x's are 1.
    rstd = rstd.reshape([*x.shape[:rows], *[1] * gamma.dim()])
    normed, scaled = x.to(real) * rstd, dy.to(real) * gamma.to(real)
    mean = (scaled * normed).mean(list(range(rows, x.dim())), keepdim=True)
    dx = (rstd * (scaled - normed * mean)).to(x.dtype)
    dgamma = dy.to(real) * normed
    return dx, dgamma.sum(list(range(rows))) if rows else dgamma


def _rows(
    target: Tensor, weight: Tensor | None, classes: Any, ignore_index: int, real: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weight of each class; and of each row, whether it counts, a label to index with, and its label's weight."""
    weights = target.new_ones([classes], dtype=real) if weight is None else weight.to(real)
    counts = target != ignore_index
    labels = torch.where(counts, target, 0).long()
    return weights, counts, labels, torch.where(counts, weights[labels], 0)


def _reduced(rows: Tensor, reduction: str, count: Tensor) -> Tensor:
    if reduction == "none":
        return rows
    total = rows.sum().reshape(1)
    return total / count if reduction == "mean" else total


def _cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    classes, real = input.shape[1], _real(input.dtype)
    wide = input.to(real)
    weights, counts, labels, weight_of = _rows(target, weight, classes, ignore_index, real)
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


def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    loss = _cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)[0]
    return loss if reduction == "none" else loss.squeeze(0)


def _cross_entropy_loss_grad(
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
    classes, real = log_prob.shape[1], _real(log_prob.dtype)
    weights, counts, labels, weight_of = _rows(target, weight, classes, ignore_index, real)
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


def _for_each(spatial: int, *values: Sequence[Any]) -> list[list[Any]]:
    """One value per spatial dimension, where ATen wants so many."""
    return [list(value) * spatial if len(value) == 1 else list(value) for value in values]


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    output_padding: Sequence[Any],
    groups: Any,
    *,
    cube_math_type: int | None = None,
) -> Any:
    stride, padding, dilation, output_padding = _for_each(input.dim() - 2, stride, padding, dilation, output_padding)
    return aten.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[Any] | None,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    output_padding: Sequence[Any],
    groups: Any,
    output_mask: Sequence[bool],
    *,
    cube_math_type: int | None = None,
) -> Any:
    stride, padding, dilation, output_padding = _for_each(input.dim() - 2, stride, padding, dilation, output_padding)
    return aten.convolution_backward(
        grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
        output_mask,
    )  # fmt: skip
