"""Cross entropy of a linear layer: see csrc/torch_ops/linear_cross_entropy.cpp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import has_torch_function_variadic

from .. import _C
from ..errors import AclnnError
from ._functions import accepted, autocast_dtype, overridden, wrong_kind
from ._linear_cross_entropy_rules import OVERLOADS
from ._operator import Operator, public_function, public_module
from .cross_entropy_loss import cross_entropy

aclnn = torch.ops.aclnn

# Looked up once: attribute access on torch.ops costs as much as a small operator.
_linear_cross_entropy: Callable[..., Tensor] = aclnn.linear_cross_entropy.default

_REDUCTIONS = ("mean", "sum", "none")


@public_function
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
) -> Tensor:
    r"""``cross_entropy(linear(input, linear_weight, linear_bias), target)`` without the logits.

    As ``torch.nn.functional.linear_cross_entropy`` of torch 2.13. Logits are never stored as a whole, forward or
    backward; for a large vocabulary they are most of a training step's memory. Their sums are computed in float32, or
    float64 for float64.

    On a CPU, a function of the host CANN computes it on any product. On an NPU it is CANN's
    aclnnFusedLinearOnlineMaxSum and aclnnFusedLinearCrossEntropyLossGrad, which Ascend910B and Ascend910_93 have; cases
    that these do not support (float32, label smoothing and other products) are composed of a linear layer and
    :func:`cross_entropy`, with whole logits. So is a layer of several outputs on every device.

    Args:
        input: ``(N, D)``, or one row, ``(D)``: float32, float16, bfloat16 or float64.
        linear_weight: ``(C, D)``, of the input's dtype; or ``(C, d1, ..., D)`` for a loss of each of ``d1 * ...``
            outputs of an input ``(N, D)``.
        target: class indices, ``(N)``, of one row ``()`` or ``(1)``, of several outputs ``(N, d1, ...)``: int64, uint8
            or, which torch refuses, int32; each in ``[0, C)`` or equal to ``ignore_index``. Class probabilities are not
            supported.
        linear_bias: ``(C)``, or ``(C, d1, ...)``, of the input's dtype.
        weight: a factor for each class, ``(C)``; unlike torch's, of any real dtype. Not differentiable.
        reduction: ``"mean"`` (over the sum of the targets' weights; NaN if every target is ignored), ``"sum"`` or
            ``"none"``.
        ignore_index: the target that is ignored; None: -100.
        label_smoothing: between 0 and 1.
        options: torch's options to save memory. Accepted and without effect: memory is always saved.

    Returns:
        A number, or for ``"none"`` a tensor of the target's shape, ``()`` of one row, in the input's dtype; under
        autocast in float32, if the input is not float64.

    Raises:
        AclnnError: status 161002 for dtypes and shapes, 507015 for a target outside ``[0, C)``.
        NotImplementedError: the target has class probabilities.
        ValueError: another reduction, a label smoothing outside ``[0, 1]``, or shapes without the dimensions above.
    """
    if has_torch_function_variadic(input, linear_weight, target, linear_bias, weight):
        return overridden(
            linear_cross_entropy,
            (input, linear_weight, target, linear_bias, weight),
            input,
            linear_weight,
            target,
            linear_bias=linear_bias,
            weight=weight,
            reduction=reduction,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            options=options,
        )
    for name, value in (("input", input), ("linear_weight", linear_weight), ("target", target)):
        if not isinstance(value, Tensor):
            raise wrong_kind("linear_cross_entropy", name, value, "a tensor")
    for name, optional in (("linear_bias", linear_bias), ("weight", weight)):
        if optional is not None and not isinstance(optional, Tensor):
            raise wrong_kind("linear_cross_entropy", name, optional, "a tensor or None")
    if target.is_floating_point():
        torchs = "linear_cross_entropy" if hasattr(torch.nn.functional, "linear_cross_entropy") else "cross_entropy"
        raise NotImplementedError(
            f"linear_cross_entropy: target has dtype {target.dtype}, class probabilities, expected class indices "
            f"(int64): aclnn takes nothing else; call torch.nn.functional.{torchs} for these"
        )
    if reduction not in _REDUCTIONS:
        raise ValueError(f"linear_cross_entropy: reduction is {reduction!r}, expected 'mean', 'sum' or 'none'")
    ignored = -100 if ignore_index is None else accepted("linear_cross_entropy", "ignore_index", "int", ignore_index)
    smoothing = accepted("linear_cross_entropy", "label_smoothing", "float", label_smoothing)
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"linear_cross_entropy: label_smoothing is {smoothing}, expected a number between 0 and 1")
    _check_dimensions(input, linear_weight, target, linear_bias)
    if not torch.compiler.is_compiling():  # a trace of unknown sizes, in which the operator refuses known errors
        _check_sizes_and_dtypes(input, linear_weight, target, linear_bias, weight)
    if linear_weight.dim() > 2 or not has_functions(input, smoothing):
        bias = None if linear_bias is None else linear_bias.flatten()
        logits = torch.nn.functional.linear(input, linear_weight.flatten(0, -2), bias)
        logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
        labels = target.long() if target.dtype == torch.int32 else target  # not supported by every product
        return cross_entropy(
            logits, labels, weight, ignore_index=ignored, reduction=reduction, label_smoothing=smoothing
        )
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    labels = target if target.dim() == 1 else target.reshape(1)
    if labels.dtype == torch.uint8:
        labels = labels.long()
    loss = loss_of_rows(rows, linear_weight, labels, linear_bias, weight, reduction, ignored, smoothing)
    if reduction == "none":
        loss = loss.reshape(target.shape if input.dim() == 2 else ())
    return loss.to(input.dtype) if autocast_dtype(input) is None else loss


def loss_of_rows(
    rows: Tensor,
    linear_weight: Tensor,
    labels: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """The loss of rows ``(N, D)`` by a matrix ``(C, D)``, in FLOAT or, for DOUBLE, in DOUBLE."""
    real = torch.promote_types(rows.dtype, torch.float32)
    weights = None if weight is None else weight.to(real)
    factors = _shares(labels, weights, ignore_index, real) if reduction == "mean" else None
    loss = _linear_cross_entropy(
        rows, linear_weight, labels, linear_bias, weights, factors, ignore_index, label_smoothing, reduction != "none"
    )
    return loss + math.nan if reduction == "mean" and rows.shape[0] == 0 else loss


def _check_dimensions(input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None) -> None:
    """Checks that the operator, which has rows and a matrix, does not make."""
    outputs = linear_weight.shape[1:-1]
    if linear_weight.dim() < 2:
        raise ValueError(
            f"linear_cross_entropy: linear_weight has shape {list(linear_weight.shape)}, expected (C, D) or "
            "(C, d1, ..., D)"
        )
    if input.dim() not in (1, 2) or (outputs and input.dim() == 1):
        expected = "(N, D), as linear_weight has several outputs" if outputs else "(D) or (N, D)"
        raise ValueError(f"linear_cross_entropy: input has shape {list(input.shape)}, expected {expected}; reshape it")
    if input.dim() == 1:
        if target.shape not in ((), (1,)):
            raise ValueError(f"linear_cross_entropy: target has shape {list(target.shape)}, expected [] or [1]")
    elif target.dim() != 1 + len(outputs):
        raise ValueError(
            f"linear_cross_entropy: target has shape {list(target.shape)}, expected "
            f"{[input.shape[0], *outputs]}; reshape it"
        )
    if outputs and linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise ValueError(
            f"linear_cross_entropy: linear_bias has shape {list(linear_bias.shape)}, expected "
            f"{list(linear_weight.shape[:-1])}, that of linear_weight without its last dimension"
        )


def _check_sizes_and_dtypes(
    input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None
) -> None:
    """The checks of stage 1, with the function's argument names, and those of a linear layer."""

    def require(condition: bool, text: str) -> None:
        if not condition:
            raise AclnnError(
                f"linear_cross_entropy: {text}",
                "aclnnHostLinearCrossEntropyGetWorkspaceSize",
                161002,
                "ACLNN_ERR_PARAM_INVALID",
            )

    def require_shape(name: str, tensor: Tensor, *expected: Any) -> None:
        # If the sizes are known.
        pairs = [(a, b) for a, b in zip(tensor.shape, expected, strict=False) if type(a) is type(b) is int]
        require(
            tensor.dim() == len(expected) and all(a == b for a, b in pairs),
            f"{name} has shape {list(tensor.shape)}, expected {list(expected)} beside input {list(input.shape)} and "
            f"linear_weight {list(linear_weight.shape)}; reshape it",
        )

    optional = {"linear_bias": linear_bias, "weight": weight}
    others = {"linear_weight": linear_weight, "target": target} | {
        name: tensor for name, tensor in optional.items() if tensor is not None
    }
    for name, tensor in others.items():
        require(
            tensor.device == input.device,
            f"{name} is on {tensor.device}, expected {input.device} as input is; move one with .to()",
        )
    for name in ("linear_weight", "linear_bias"):
        if name in others:
            dtypes = [autocast_dtype(each) or each.dtype for each in (others[name], input)]
            require(
                dtypes[0] == dtypes[1],
                f"{name} has dtype {dtypes[0]}, expected {dtypes[1]} as input has; cast one of them",
            )
    *classes, _ = linear_weight.shape
    require(
        type(classes[0]) is not int or classes[0] > 0,
        f"linear_weight has shape {list(linear_weight.shape)}, expected at least one class",
    )
    require_shape("linear_weight", linear_weight, *classes, input.shape[-1])
    if input.dim() == 2:
        require_shape("target", target, input.shape[0], *classes[1:])
    if linear_bias is not None:
        require_shape("linear_bias", linear_bias, *classes)
    if weight is not None:
        require_shape("weight", weight, classes[0])


def has_functions(input: Tensor, label_smoothing: float) -> bool:
    """True if the operator supports the call. A compiler's trace may run on any product."""
    device = input.device.type
    if device != "npu":
        return True
    dtype = autocast_dtype(input) or input.dtype
    if label_smoothing != 0.0 or dtype not in (torch.float16, torch.bfloat16) or torch.compiler.is_compiling():
        return False
    return _C.product_of(device).startswith(("Ascend910B", "Ascend910_93", "host"))


def _shares(labels: Tensor, weights: Tensor | None, ignore_index: int, real: torch.dtype) -> Tensor:
    """The factor of each row's loss in the mean: the same for all, because the losses of ignored rows are zero."""
    counts = labels != ignore_index
    if weights is None:
        total = counts.sum(dtype=real)
    else:
        # The operator refuses invalid labels.
        places = torch.where(counts, labels, 0).clamp(0, max(weights.shape[0] - 1, 0))
        total = torch.where(counts, weights.detach().index_select(0, places), 0).sum(dtype=torch.float64).to(real)
    return total.reciprocal().expand(labels.shape)


class _LossOfALinearLayer(torch.nn.modules.loss._WeightedLoss):
    """The attributes of ``torch.nn.LinearCrossEntropyLoss``, for a torch that lacks it."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: object = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        outputs = math.prod(out_features, start=num_classes)
        self.linear = torch.nn.Linear(in_features, outputs, bias, device, dtype)


_Base: Any = getattr(torch.nn, "LinearCrossEntropyLoss", _LossOfALinearLayer)


@public_module
class LinearCrossEntropyLoss(_Base):  # type: ignore[misc]
    """``torch.nn.LinearCrossEntropyLoss`` of torch 2.13 through aclnn.

    See :func:`aclnn_torch.functional.linear_cross_entropy`.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of rows, whose logits would be those of ``self.linear``, against class indices."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )


OPERATOR = Operator(
    functions=(linear_cross_entropy,),
    modules=(LinearCrossEntropyLoss,),
    overloads=OVERLOADS,
)
