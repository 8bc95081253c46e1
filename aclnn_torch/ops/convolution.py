"""Convolution of one to three dimensions, transposed or not: see csrc/torch_ops/convolution.cpp."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function_variadic

from ._convolution_rules import OVERLOADS
from ._functions import accepted, overridden, wrong_kind
from ._operator import Operator, public_function, public_module

# Looked up once: attribute access on torch.ops costs as much as a small operator.
_convolution: Callable[..., Tensor] = torch.ops.aclnn.convolution.default

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
        raise wrong_kind(function, name, value, expected) from None


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
    """Convolution of any kind, called as `function`; a single example becomes a batch of one."""
    if has_torch_function_variadic(input, weight, bias):
        named: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if transposed:
            named["output_padding"] = output_padding
        named["cube_math_type"] = cube_math_type
        return overridden(function, (input, weight, bias), input, weight, bias=bias, **named)
    name = function.__name__
    for argument, value in (("input", input), ("weight", weight)):
        if not isinstance(value, Tensor):
            raise wrong_kind(name, argument, value, "a tensor")
    if bias is not None and not isinstance(bias, Tensor):
        raise wrong_kind(name, "bias", bias, "a tensor or None")
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
            accepted(name, argument, "List[int]", sizes)
        raise
    return output if input.dim() == dims + 2 else output.squeeze(0)


def _pad_by_name(
    function: str, name: str, batch: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Tensor, list[int]]:
    """The padding for "valid" or "same", and the input padded by the asymmetric rest."""
    dims = batch.dim() - 2
    if name == "valid" or not len(kernel) == len(stride) == len(dilation) == dims:  # the operator reports the error
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


@public_function
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


@public_function
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
            and Ascend910), 2 rounds to float16, 3 rounds float32 to HFLOAT32. 4 and 5 keep float32; the gradient
            takes 4 up to CANN 9.1, and both take 5 up to CANN 9.0. Ascend310P and Ascend910 need 1, 2 or that 5 for
            float32. None: 0 on CPU; on NPU what torch_npu gives its own convolutions, which is 3 from Ascend910B
            on, or 0 with ``torch_npu.npu.conv.allow_hf32 = False``.

    Returns:
        ``(N, C_out, H_out, W_out)``, or without ``N``.

    Raises:
        AclnnError: status 161002 for dtypes, shapes and numbers that the product does not accept.
        RuntimeError: the input has another number of dimensions, or ``"same"`` comes with a stride.
    """
    return _convolve(conv2d, 2, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


@public_function
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

    Ascend910 refuses it, Ascend310P its gradients and all but float16.
    """
    return _convolve(conv3d, 3, False, input, weight, bias, stride, padding, dilation, 0, groups, cube_math_type)


@public_function
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


@public_function
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


@public_function
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


class _CubeMath:
    """What the convolution modules have beside torch's.

    Attributes:
        cube_math_type: see :func:`aclnn_torch.functional.conv2d`. None until set; float32 on Ascend310P and
            Ascend910 needs 1 or 2.
    """

    cube_math_type: int | None = None

    def extra_repr(self) -> str:
        """As torch's, and cube_math_type if it is set."""
        text: str = super().extra_repr()  # type: ignore[misc]
        return f"{text}, cube_math_type={self.cube_math_type}" if self.cube_math_type is not None else text


def _padded_convolution(module: Any, function: Callable[..., Tensor], input: Tensor) -> Tensor:
    """The forward of a convolution module: pads first unless padding is by zeros."""
    padding = module.padding
    if module.padding_mode != "zeros":
        input = torch.nn.functional.pad(input, module._reversed_padding_repeated_twice, mode=module.padding_mode)
        padding = 0
    return function(
        input,
        module.weight,
        module.bias,
        module.stride,
        padding,
        module.dilation,
        module.groups,
        cube_math_type=module.cube_math_type,
    )


def _transposed_convolution(
    module: Any, function: Callable[..., Tensor], dims: int, input: Tensor, output_size: Sequence[int] | None
) -> Tensor:
    """The forward of a transposed convolution module; `output_size` selects among the sizes that the stride allows."""
    output_padding = module.output_padding
    if output_size is not None:
        sizes = module.stride, module.padding, module.kernel_size, module.dilation
        output_padding = _output_padding(input, output_size, output_padding, *sizes)
    return function(
        input,
        module.weight,
        module.bias,
        module.stride,
        module.padding,
        output_padding,
        module.groups,
        module.dilation,
        cube_math_type=module.cube_math_type,
    )


def _output_padding(
    input: Tensor,
    output_size: Sequence[int] | None,
    output_padding: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
) -> Any:
    """The output padding for a given output size, by torch's rule; torch.fx can put it into a graph."""
    arguments = output_size, output_padding, stride, padding, kernel_size, dilation
    if has_torch_function_variadic(input, output_size):
        return handle_torch_function(_output_padding, (input, output_size), input, *arguments)
    if output_size is None:
        return output_padding
    rule: Any = torch.nn.ConvTranspose1d._output_padding  # needs no module for an output_size
    return rule(None, input, output_size, stride, padding, kernel_size, len(kernel_size), dilation)


@public_module
class Conv1d(_CubeMath, torch.nn.Conv1d):
    """``torch.nn.Conv1d`` through aclnn: see :func:`aclnn_torch.functional.conv1d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, conv1d, input)


@public_module
class Conv2d(_CubeMath, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` through aclnn: see :func:`aclnn_torch.functional.conv2d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, conv2d, input)


@public_module
class Conv3d(_CubeMath, torch.nn.Conv3d):
    """``torch.nn.Conv3d`` through aclnn: see :func:`aclnn_torch.functional.conv3d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, conv3d, input)


@public_module
class ConvTranspose1d(_CubeMath, torch.nn.ConvTranspose1d):
    """``torch.nn.ConvTranspose1d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose1d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, conv_transpose1d, 1, input, output_size)


@public_module
class ConvTranspose2d(_CubeMath, torch.nn.ConvTranspose2d):
    """``torch.nn.ConvTranspose2d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose2d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, conv_transpose2d, 2, input, output_size)


@public_module
class ConvTranspose3d(_CubeMath, torch.nn.ConvTranspose3d):
    """``torch.nn.ConvTranspose3d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose3d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, conv_transpose3d, 3, input, output_size)


OPERATOR = Operator(
    functions=(conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d),
    modules=(Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d),
    overloads=OVERLOADS,
)
