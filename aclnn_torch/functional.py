"""The operators as functions with ``torch.nn.functional``'s signatures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _C

__all__ = [
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "elu",
    "gelu",
    "layer_norm",
    "rms_norm",
    "selu",
    "silu",
]

# Looked up once: attribute access on torch.ops costs as much as a small operator.
_elu_: Callable[..., Tensor] = torch.ops.aclnn.elu_.default
_selu_: Callable[..., Tensor] = torch.ops.aclnn.selu_.default
_gelu: Callable[..., Tensor] = torch.ops.aclnn.gelu.default
_cross_entropy_loss: Callable[..., tuple[Tensor, ...]] = torch.ops.aclnn.cross_entropy_loss.default
_convolution: Callable[..., Tensor] = torch.ops.aclnn.convolution.default


def _direct(name: str) -> Callable[..., Tensor]:
    """The first result of an operator that is given all arguments by position, without what torch.ops costs.

    Dynamo, which cannot look into functions in C, is shown the call through torch.ops; so is who gets in by
    ``__torch_function__``. Others are met by the dispatcher.
    """
    overload = getattr(torch.ops.aclnn, name).default
    otherwise = overload
    if len(overload._schema.returns) > 1:

        def otherwise(*arguments: object) -> Tensor:
            first: Tensor = overload(*arguments)[0]
            return first

    straight = _C.direct_call(f"aclnn::{name}", otherwise)

    def call(*arguments: object) -> Tensor:
        return otherwise(*arguments) if is_dynamo_compiling() else straight(*arguments)

    call.__name__ = call.__qualname__ = name  # in tracebacks and profiles
    return call


_elu = _direct("elu")
_selu = _direct("selu")
_silu = _direct("silu")
_layer_norm = _direct("layer_norm")
_rms_norm = _direct("rms_norm")
_cross_entropy = _direct("_cross_entropy")


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Exponential linear unit: ``x`` for ``x > 0``, else ``alpha * (exp(x) - 1)``; as ``torch.nn.functional.elu``.

    Calls aclnnElu (in place aclnnInplaceElu), and aclnnEluBackward for the gradient.

    Args:
        input: a tensor of 0 to 8 dimensions, float32, float16, bfloat16 or float64. On CPU the gradient exists for
            float32 and float16, for bfloat16 from Ascend910B on, and for float64 on the ``host`` product.
        alpha: the scale of the negative branch. In place, the gradient needs ``alpha >= 0``.
        inplace: overwrite ``input``.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype, rank or alpha that is not accepted.
    """
    if inplace:
        return _elu_(input, alpha)
    return _elu(input, alpha, 1, 1)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Scaled ELU: ``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))``; as ``torch.nn.functional.selu``.

    Calls aclnnSelu (in place aclnnInplaceSelu), and aclnnSeluBackward for the gradient.

    Args:
        input: a tensor of any rank, float32, float16, int32 or int8, bfloat16 from Ascend910B on, and float64 on the
            ``host`` product.
        inplace: overwrite ``input``.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype that is not accepted.
    """
    if inplace:
        return _selu_(input)
    return _selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Continuously differentiable ELU: ``x`` for ``x > 0``, else ``alpha * (exp(x / alpha) - 1)``.

    As ``torch.nn.functional.celu``; calls aclnnElu with ``inputScale = 1 / alpha``, thus accepts what :func:`elu` does.

    Raises:
        RuntimeError: ``alpha`` is 0, as in torch.
        AclnnError: as :func:`elu`.
    """
    if alpha == 0:
        raise RuntimeError("celu: alpha is 0, expected another number: the formula divides by it")
    if inplace:
        return _elu_(input, alpha, 1.0, 1.0 / alpha)
    return _elu(input, alpha, 1.0, 1.0 / alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Sigmoid linear unit, or Swish: ``x / (1 + exp(-x))``; as ``torch.nn.functional.silu``.

    Calls aclnnSilu, and aclnnSiluBackward for the gradient.

    Args:
        input: a tensor, float32, float16, bfloat16 from Ascend910B on, and float64 on the ``host`` product. The
            gradient exists for 0 to 8 dimensions, and not on Ascend310P.
        inplace: overwrite ``input``. CANN has no such operator: the result is copied into it.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype that is not accepted; in the gradient also for more than 8 dimensions, and
            561003 on Ascend310P.
    """
    return _overwritten(_silu, input) if inplace else _silu(input)


def _overwritten(function: Callable[[Tensor], Tensor], input: Tensor) -> Tensor:
    """A function's result in the place of its input, of which the gradient needs a copy."""
    return input.copy_(function(input.clone()))


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    r"""Gaussian error linear unit: ``x * Phi(x)``; as ``torch.nn.functional.gelu``.

    ``Phi`` is the normal distribution function for ``"none"``, by aclnnGeluV2 and aclnnGeluBackwardV2; for ``"tanh"``
    it is ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2``, by aclnnGelu and aclnnGeluBackward.

    Args:
        input: a tensor, float32, float16, bfloat16 from Ascend910B on, and float64 on the ``host`` product; for
            ``"tanh"`` of 0 to 8 dimensions.
        approximate: ``"none"`` or ``"tanh"``.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype, rank or approximate that is not accepted.
    """
    return _gelu(input, approximate=approximate)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Layer normalisation: ``(x - mean) / sqrt(var + eps) * weight + bias``; as ``torch.nn.functional.layer_norm``.

    Calls aclnnLayerNorm, and aclnnLayerNormBackward for the gradients, which sums the weights' in float32.

    Args:
        input: a tensor of 1 to 8 dimensions, float32 or float16, bfloat16 from Ascend910B on, float64 on the ``host``
            product. Mean and variance are those of its last ``len(normalized_shape)`` dimensions.
        normalized_shape: the sizes of these dimensions.
        weight: of this shape and the input's dtype, or float32. None: ones.
        bias: of this shape and the weight's dtype, without a weight as that. None: zeros.
        eps: added to the variance.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for dtypes that are not accepted together, and shapes that do not match.
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    r"""Root mean square normalisation: ``x / sqrt(mean(x^2) + eps) * weight``; as ``torch.nn.functional.rms_norm``.

    Calls aclnnRmsNorm, and aclnnRmsNormGrad for the gradient, which sums the weight's in float32.

    Args:
        input: a tensor of 1 to 8 dimensions, float32 or float16, bfloat16 from Ascend910B on, float64 on the ``host``
            product. The mean is taken over its last ``len(normalized_shape)`` dimensions.
        normalized_shape: the sizes of these dimensions.
        weight: of this shape and the input's dtype; from Ascend910B on also float32 for a 16-bit input. A 16-bit weight
            of a float32 input is widened. None: ones, which CANN needs a tensor for.
        eps: at least 0. None: the smallest step above 1 of the dtype computed in, float32 for 16-bit inputs.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for dtypes that are not accepted together, 561002 for shapes that do not match, an
            empty tensor (but on Ascend950 and ``host``), or a negative eps.
    """
    if weight is None:
        weight = torch.ones(tuple(normalized_shape), dtype=input.dtype, device=input.device)
    elif tuple(weight.shape) != tuple(normalized_shape):
        raise RuntimeError(
            f"rms_norm: weight has shape {list(weight.shape)}, expected normalized_shape {list(normalized_shape)}"
        )
    elif input.dtype == torch.float32 and weight.dtype in (torch.float16, torch.bfloat16):
        weight = weight.float()
    if eps is None:
        eps = torch.finfo(torch.promote_types(input.dtype, torch.float32)).eps
    return _rms_norm(input, weight, eps)


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
        ignore_index: the target that counts for nothing; any value.
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
    if size_average is not None or reduce is not None:
        reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
    if target.is_floating_point():
        raise NotImplementedError(
            f"cross_entropy: target has dtype {target.dtype}, class probabilities, expected class indices (int64): "
            "aclnnCrossEntropyLoss takes nothing else; call torch.nn.functional.cross_entropy for these"
        )
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, expected a number between 0 and 1")
    labels = target if target.dtype != torch.uint8 else target.long()
    logits, dims = input, input.dim()
    if dims != 2:
        logits, labels = _as_rows(input, labels)
    if weight is not None:
        weight = weight.to(torch.promote_types(input.dtype, torch.float32))
    if label_smoothing == 0.0 or _smooths_labels(input.device):
        loss = _cross_entropy(logits, labels, weight, reduction, ignore_index, label_smoothing)
    else:
        loss = _smoothed(logits, labels, weight, reduction, ignore_index, label_smoothing)
    return loss.reshape(target.shape if dims > 1 else ()) if dims != 2 and reduction == "none" else loss


def _as_rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of other than two dimensions as a row for each label."""
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
    """Whether label smoothing may be left to the operator. A compiler's trace may run on any product."""
    return not torch.compiler.is_compiling() and _C.product_of(device.type).startswith(("Ascend950", "host"))


def _smoothed(
    logits: Tensor, labels: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, label_smoothing: float
) -> Tensor:
    """The loss with label smoothing, by an operator without."""
    nll, log_prob, _, _ = _cross_entropy_loss(logits, labels, weight, reduction, ignore_index)
    smooth = _smoothing_loss(log_prob, labels, weight, reduction, ignore_index)
    loss = ((1.0 - label_smoothing) * nll + label_smoothing / logits.shape[1] * smooth).to(nll.dtype)
    return loss if reduction == "none" else loss.squeeze(0)


def _smoothing_loss(
    log_prob: Tensor, labels: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    """The loss against all classes alike: the sum over classes of ``-weight * log_prob``, reduced as the loss is."""
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


Size = int | Sequence[int]


def _sizes(name: str, value: Size, dims: int) -> list[int]:
    """One number for each spatial dimension."""
    if isinstance(value, (int, torch.SymInt)):
        return [value] * dims
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value) * dims if len(value) == 1 else list(value)
    try:
        return [operator.index(value)] * dims
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a number, or one for each of {dims} dimensions") from None


def _convolve(
    dims: int,
    transposed: bool,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    padding: Size | str,
    dilation: Size,
    output_padding: Size,
    groups: int,
    cube_math_type: int | None,
) -> Tensor:
    """Convolution of any kind; a single example is made a batch of one."""
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"conv{'_transpose' if transposed else ''}{dims}d: input has shape {list(input.shape)}, expected "
            f"{dims + 1} dimensions (one example) or {dims + 2} (a batch)"
        )
    batch = input if input.dim() == dims + 2 else input.unsqueeze(0)
    strides, dilations = _sizes("stride", stride, dims), _sizes("dilation", dilation, dims)
    if isinstance(padding, str) and not transposed:
        batch, padding = _pad_by_name(padding, batch, weight.shape[2:], strides, dilations)
    output = _convolution(
        batch,
        weight,
        bias,
        strides,
        _sizes("padding", padding, dims),  # type: ignore[arg-type]
        dilations,
        transposed,
        _sizes("output_padding", output_padding, dims),
        groups,
        cube_math_type=cube_math_type,
    )
    return output if input.dim() == dims + 2 else output.squeeze(0)


def _pad_by_name(
    name: str, batch: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Tensor, list[int]]:
    """The padding that "valid" or "same" stands for, and the input padded by what is left over on one side."""
    if name == "valid":
        return batch, [0] * len(kernel)
    if name != "same":
        raise RuntimeError(f"padding is {name!r}, expected numbers, 'valid' or 'same'")
    if any(step != 1 for step in stride):
        raise RuntimeError(f"padding is 'same' with stride {list(stride)}, expected stride 1; pad by numbers")
    totals = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
    if any(total % 2 for total in totals):
        ends = [end for total in reversed(totals) for end in (0, total % 2)]
        batch = torch.nn.functional.pad(batch, ends)
    return batch, [total // 2 for total in totals]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""1-D convolution of ``(N, C_in, L)``; as ``torch.nn.functional.conv1d``, see :func:`conv2d`."""
    return _convolve(1, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""2-D convolution; as ``torch.nn.functional.conv2d``.

    Calls aclnnConvolution, and aclnnConvolutionBackward for the gradients. Products are summed in float32 whatever the
    dtype.

    Args:
        input: ``(N, C_in, H, W)`` or ``(C_in, H, W)``: float32, float16, bfloat16 from Ascend910B on, float64 on the
            ``host`` product. Channels-last inputs give channels-last outputs.
        weight: ``(C_out, C_in / groups, kH, kW)``. Different dtypes are promoted, as CANN does.
        bias: ``(C_out)``, or None.
        stride: a number, or one for each spatial dimension.
        padding: the same, or ``"valid"``, or for stride 1 ``"same"``.
        dilation: as stride.
        groups: a divisor of ``C_in`` and ``C_out``.
        cube_math_type: 0 computes in the tensors' dtype; 1 may round float32 to HFLOAT32 (to float16 on Ascend310P
            and Ascend910), 2 rounds to float16, 3 rounds float32 to HFLOAT32. Ascend310P and Ascend910 need 1 or 2
            for float32. None: 0 on CPU; on NPU what torch_npu gives its own convolutions, which is 3 from Ascend910B
            on, or 0 with ``torch_npu.npu.conv.allow_hf32 = False``.

    Returns:
        ``(N, C_out, H_out, W_out)``, or without ``N``.

    Raises:
        AclnnError: status 161002 for dtypes, shapes and numbers that the product does not accept.
        RuntimeError: the input has another number of dimensions, or ``"same"`` comes with a stride.
    """
    return _convolve(2, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""3-D convolution of ``(N, C_in, D, H, W)``; as ``torch.nn.functional.conv3d``, see :func:`conv2d`.

    Ascend310P and Ascend910 refuse it.
    """
    return _convolve(3, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""Transposed 1-D convolution; as ``torch.nn.functional.conv_transpose1d``, see :func:`conv_transpose2d`."""
    return _convolve(1, True, input, weight, bias, stride, padding, dilation, output_padding, groups, cube_math_type)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""Transposed 2-D convolution, the gradient of one as an operator; as ``torch.nn.functional.conv_transpose2d``.

    As :func:`conv2d`, but ``weight`` is ``(C_in, C_out / groups, kH, kW)``, and ``output_padding``, smaller than
    stride or dilation, enlarges the output at one end.
    """
    return _convolve(2, True, input, weight, bias, stride, padding, dilation, output_padding, groups, cube_math_type)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
    *,
    cube_math_type: int | None = None,
) -> Tensor:
    r"""Transposed 3-D convolution; as ``torch.nn.functional.conv_transpose3d``, see :func:`conv_transpose2d`."""
    return _convolve(3, True, input, weight, bias, stride, padding, dilation, output_padding, groups, cube_math_type)
