"""The operators as functions with ``torch.nn.functional``'s signatures.

An argument of a wrong kind is a :class:`TypeError`, which names it.
"""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function_unary, has_torch_function_variadic

from . import _C
from ._scripting import not_scriptable

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
_cross_entropy_loss: Callable[..., tuple[Tensor, ...]] = torch.ops.aclnn.cross_entropy_loss.default
_convolution: Callable[..., Tensor] = torch.ops.aclnn.convolution.default

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

# What an argument may be, by its type in an operator's schema, and what the text of an error calls that.
_KINDS: dict[str, tuple[Any, str]] = {
    "Tensor": ((Tensor,), "a tensor"),
    "Optional[Tensor]": ((Tensor, type(None)), "a tensor or None"),
    "number": ((numbers.Number, *_SYMBOLS), "a number"),
    "float": ((numbers.Number, *_SYMBOLS), "a number"),
    "int": ((numbers.Integral, *_SYMBOLS), "an integer"),
    "List[int]": ((Sequence,), "a sequence of integers"),
    "str": ((str,), "a string"),
}
_NUMBERS = ("number", "float", "int")
# What the functions call arguments that have another name in an operator's schema.
_NAMES = {"self": "input", "x": "input", "gamma": "weight", "epsilon": "eps"}


def _wrong(function: str, argument: str, value: object, expected: str) -> TypeError:
    """The error about an argument of a wrong kind."""
    if isinstance(value, Tensor):
        shown = f"a tensor of shape {list(value.shape)}" + (" that requires grad" if value.requires_grad else "")
    else:
        shown = reprlib.repr(value)
    error = TypeError(f"{function}: {argument} is {shown}, expected {expected}")
    error.__suppress_context__ = True  # the operator's own, which says less
    return error


def _accepted(function: str, argument: str, kind: str, value: Any) -> Any:
    """The value as an operator takes it: of a tensor without dimensions, given for a number, its number."""
    types, expected = _KINDS[kind]
    if kind in _NUMBERS and not isinstance(value, (int, float, complex)):
        # Numbers of other libraries, such as NumPy's.
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
    if isinstance(value, types):
        if kind != "List[int]" or all(hasattr(item, "__index__") for item in value):
            return value
    elif kind in _NUMBERS and isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad:
        return value.item()
    raise _wrong(function, argument, value, expected)


def _operator(name: str, function: str) -> Callable[..., Tensor]:
    """The first result of an operator, given all arguments by position.

    Where the operator refuses an argument for its kind, a number is made of a tensor, as torch's functions do, or the
    error names the argument as `function` does.
    """
    overload = getattr(torch.ops.aclnn, name).default
    schema = overload._schema
    by_position = sum(not argument.kwarg_only for argument in schema.arguments)
    by_name = [argument.name for argument in schema.arguments[by_position:]]

    def run(*arguments: object) -> Tensor:
        named = dict(zip(by_name, arguments[by_position:], strict=True))
        result: Any = overload(*arguments[:by_position], **named)
        first: Tensor = result if len(schema.returns) == 1 else result[0]
        return first

    if not by_name and len(schema.returns) == 1:
        run = overload

    def call(*arguments: object) -> Tensor:
        if is_dynamo_compiling():
            return run(*arguments)
        try:
            return run(*arguments)
        except (RuntimeError, TypeError):
            accepted = [
                _accepted(function, _NAMES.get(wanted.name, wanted.name), str(wanted.type), value)
                for wanted, value in zip(schema.arguments, arguments, strict=True)
            ]
            if all(one is other for one, other in zip(accepted, arguments, strict=True)):
                raise
        return run(*accepted)

    call.__name__ = call.__qualname__ = function  # in tracebacks and profiles
    return call


def _direct(name: str, function: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The same twice: without what torch.ops costs, and for Dynamo, which cannot look into functions in C.

    The former leaves to the latter what is not plain tensors and numbers, as a mode of ``__torch_function__`` wants.
    """
    traced = _operator(name, function)
    return _C.direct_call(f"aclnn::{name}", traced), traced


_elu, _traced_elu = _direct("elu", "elu")
_celu, _traced_celu = _direct("elu", "celu")
_selu, _traced_selu = _direct("selu", "selu")
_silu, _traced_silu = _direct("silu", "silu")
_layer_norm, _traced_layer_norm = _direct("layer_norm", "layer_norm")
_rms_norm, _traced_rms_norm = _direct("rms_norm", "rms_norm")
_cross_entropy, _traced_cross_entropy = _direct("_cross_entropy", "cross_entropy")
_gelu = _operator("gelu", "gelu")
_elu_ = _operator("elu_", "elu")
_celu_ = _operator("elu_", "celu")
_selu_ = _operator("selu_", "selu")


def _overridden(function: Callable[..., Tensor], tensors: Sequence[object], *args: object, **kwargs: object) -> Tensor:
    """What ``__torch_function__`` of one of the tensors, or a mode, makes of a call: torch.fx, say, a node."""
    result: Tensor = handle_torch_function(function, tensors, *args, **kwargs)
    return result


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
    if has_torch_function_unary(input):
        return _overridden(elu, (input,), input, alpha=alpha, inplace=inplace)
    if inplace:
        return _elu_(input, alpha, 1, 1)
    return (_traced_elu if is_dynamo_compiling() else _elu)(input, alpha, 1, 1)


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
    if has_torch_function_unary(input):
        return _overridden(selu, (input,), input, inplace=inplace)
    if inplace:
        return _selu_(input)
    return (_traced_selu if is_dynamo_compiling() else _selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Continuously differentiable ELU: ``x`` for ``x > 0``, else ``alpha * (exp(x / alpha) - 1)``.

    As ``torch.nn.functional.celu``; calls aclnnElu with ``inputScale = 1 / alpha``, thus accepts what :func:`elu` does.

    Raises:
        RuntimeError: ``alpha`` is 0, as in torch.
        AclnnError: as :func:`elu`.
    """
    if has_torch_function_unary(input):
        return _overridden(celu, (input,), input, alpha=alpha, inplace=inplace)
    if not isinstance(alpha, (int, float)):
        alpha = _accepted("celu", "alpha", "number", alpha)
    if alpha == 0:
        raise RuntimeError("celu: alpha is 0, expected another number: the formula divides by it")
    if inplace:
        return _celu_(input, alpha, 1.0, 1.0 / alpha)
    return (_traced_celu if is_dynamo_compiling() else _celu)(input, alpha, 1.0, 1.0 / alpha)


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
    if has_torch_function_unary(input):
        return _overridden(silu, (input,), input, inplace=inplace)
    if inplace and isinstance(input, Tensor):
        return input.copy_(silu(input.clone()))  # the gradient needs a copy of the input
    return (_traced_silu if is_dynamo_compiling() else _silu)(input)


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
    if has_torch_function_unary(input):
        return _overridden(gelu, (input,), input, approximate=approximate)
    return _gelu(input, approximate)


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
    if has_torch_function_variadic(input, weight, bias):
        return _overridden(
            layer_norm, (input, weight, bias), input, normalized_shape, weight=weight, bias=bias, eps=eps
        )
    return (_traced_layer_norm if is_dynamo_compiling() else _layer_norm)(input, normalized_shape, weight, bias, eps)


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
    if has_torch_function_variadic(input, weight):
        return _overridden(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps)
    if not isinstance(input, Tensor):
        raise _wrong("rms_norm", "input", input, "a tensor")
    if weight is None or not isinstance(normalized_shape, (tuple, list)):
        normalized_shape = _accepted("rms_norm", "normalized_shape", "List[int]", normalized_shape)
    if weight is None:
        weight = torch.ones(tuple(normalized_shape), dtype=input.dtype, device=input.device)
    elif not isinstance(weight, Tensor):
        raise _wrong("rms_norm", "weight", weight, "a tensor or None")
    elif tuple(weight.shape) != tuple(normalized_shape):
        raise RuntimeError(
            f"rms_norm: weight has shape {list(weight.shape)}, expected normalized_shape {list(normalized_shape)}"
        )
    elif input.dtype == torch.float32 and weight.dtype in (torch.float16, torch.bfloat16):
        weight = weight.float()
    if eps is None:
        eps = torch.finfo(torch.promote_types(input.dtype, torch.float32)).eps
    return (_traced_rms_norm if is_dynamo_compiling() else _rms_norm)(input, weight, eps)


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
    if has_torch_function_variadic(input, target, weight):
        return _overridden(
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
            raise _wrong("cross_entropy", name, value, "a tensor")
    if size_average is not None or reduce is not None:
        reduction = torch.nn._reduction.legacy_get_string(size_average, reduce)
    if target.is_floating_point():
        raise NotImplementedError(
            f"cross_entropy: target has dtype {target.dtype}, class probabilities, expected class indices (int64): "
            "aclnnCrossEntropyLoss takes nothing else; call torch.nn.functional.cross_entropy for these"
        )
    if not isinstance(label_smoothing, (int, float)):
        label_smoothing = _accepted("cross_entropy", "label_smoothing", "float", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, expected a number between 0 and 1")
    labels = target if target.dtype != torch.uint8 else target.long()
    logits, dims = input, input.dim()
    if dims != 2:
        logits, labels = _as_rows(input, labels)
    if weight is not None:
        if not isinstance(weight, Tensor):
            raise _wrong("cross_entropy", "weight", weight, "a tensor or None")
        weight = weight.to(torch.promote_types(input.dtype, torch.float32))
    if label_smoothing == 0.0 or _smooths_labels(input.device):
        entropy = _traced_cross_entropy if is_dynamo_compiling() else _cross_entropy
        loss = entropy(logits, labels, weight, reduction, ignore_index, label_smoothing)
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
_LISTS = ("stride", "padding", "dilation", "output_padding")


def _sizes(function: str, name: str, value: Size, dims: int) -> list[int]:
    """One number for each spatial dimension."""
    if isinstance(value, (int, torch.SymInt)):
        return [value] * dims
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value) * dims if len(value) == 1 else list(value)
    return [_index(function, name, value, f"an integer, or one for each of {dims} dimensions")] * dims


def _index(function: str, name: str, value: Any, expected: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(function, name, value, expected) from None


def _convolve(
    function: Callable[..., Tensor],
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
    """Convolution of any kind, called as `function`; a single example is made a batch of one."""
    if has_torch_function_variadic(input, weight, bias):
        named: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if transposed:
            named["output_padding"] = output_padding
        named["cube_math_type"] = cube_math_type
        return _overridden(function, (input, weight, bias), input, weight, bias=bias, **named)
    name = function.__name__
    for argument, value in (("input", input), ("weight", weight)):
        if not isinstance(value, Tensor):
            raise _wrong(name, argument, value, "a tensor")
    if bias is not None and not isinstance(bias, Tensor):
        raise _wrong(name, "bias", bias, "a tensor or None")
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: input has shape {list(input.shape)}, expected "
            f"{dims + 1} dimensions (one example) or {dims + 2} (a batch)"
        )
    batch = input if input.dim() == dims + 2 else input.unsqueeze(0)
    strides, dilations = _sizes(name, "stride", stride, dims), _sizes(name, "dilation", dilation, dims)
    if isinstance(padding, str) and not transposed:
        batch, padding = _pad_by_name(name, padding, batch, weight.shape[2:], strides, dilations)
    if not isinstance(groups, (int, torch.SymInt)):
        groups = _index(name, "groups", groups, "an integer")
    if not (cube_math_type is None or isinstance(cube_math_type, int)):
        cube_math_type = _index(name, "cube_math_type", cube_math_type, "an integer or None")
    paddings = _sizes(name, "padding", padding, dims)  # type: ignore[arg-type]
    output_paddings = _sizes(name, "output_padding", output_padding, dims)
    try:
        output = _convolution(
            batch,
            weight,
            bias,
            strides,
            paddings,
            dilations,
            transposed,
            output_paddings,
            groups,
            cube_math_type=cube_math_type,
        )
    except (RuntimeError, TypeError):
        for argument, sizes in zip(_LISTS, (strides, paddings, dilations, output_paddings), strict=True):
            _accepted(name, argument, "List[int]", sizes)
        raise
    return output if input.dim() == dims + 2 else output.squeeze(0)


def _pad_by_name(
    function: str, name: str, batch: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Tensor, list[int]]:
    """The padding that "valid" or "same" stands for, and the input padded by what is left over on one side."""
    dims = batch.dim() - 2
    if name == "valid" or not len(kernel) == len(stride) == len(dilation) == dims:  # the operator says what is wrong
        return batch, [0] * dims
    if name != "same":
        raise RuntimeError(f"{function}: padding is {name!r}, expected numbers, 'valid' or 'same'")
    if any(step != 1 for step in stride):
        raise RuntimeError(
            f"{function}: padding is 'same' with stride {list(stride)}, expected stride 1; pad by numbers"
        )
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
    return _convolve(conv1d, 1, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


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
    return _convolve(conv2d, 2, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


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
    return _convolve(conv3d, 3, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


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
    parameters = (stride, padding, dilation, output_padding, groups, cube_math_type)
    return _convolve(conv_transpose1d, 1, True, input, weight, bias, *parameters)


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
    parameters = (stride, padding, dilation, output_padding, groups, cube_math_type)
    return _convolve(conv_transpose2d, 2, True, input, weight, bias, *parameters)


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
    parameters = (stride, padding, dilation, output_padding, groups, cube_math_type)
    return _convolve(conv_transpose3d, 3, True, input, weight, bias, *parameters)


for _name in __all__:
    globals()[_name].__prepare_scriptable__ = not_scriptable(f"{__name__}.{_name}")
