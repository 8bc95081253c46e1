"""Modules with ``torch.nn``'s constructors over :mod:`aclnn_torch.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function_variadic

from . import functional as F
from ._scripting import not_scriptable

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossEntropyLoss",
    "LayerNorm",
    "RMSNorm",
    "SiLU",
]


class ELU(torch.nn.ELU):
    """``torch.nn.ELU`` through aclnn: see :func:`aclnn_torch.functional.elu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies ELU to every element."""
        return F.elu(input, self.alpha, self.inplace)


class SELU(torch.nn.SELU):
    """``torch.nn.SELU`` through aclnn: see :func:`aclnn_torch.functional.selu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies SELU to every element."""
        return F.selu(input, self.inplace)


class GELU(torch.nn.GELU):
    """``torch.nn.GELU`` through aclnn: see :func:`aclnn_torch.functional.gelu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies GELU to every element."""
        return F.gelu(input, self.approximate)


class SiLU(torch.nn.SiLU):
    """``torch.nn.SiLU`` through aclnn: see :func:`aclnn_torch.functional.silu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies SiLU to every element."""
        return F.silu(input, self.inplace)


class CELU(torch.nn.CELU):
    """``torch.nn.CELU`` through aclnn: see :func:`aclnn_torch.functional.celu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies CELU to every element."""
        return F.celu(input, self.alpha, self.inplace)


class LayerNorm(torch.nn.LayerNorm):
    """``torch.nn.LayerNorm`` through aclnn: see :func:`aclnn_torch.functional.layer_norm`."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalises over the last dimensions."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):
    """``torch.nn.RMSNorm`` through aclnn: see :func:`aclnn_torch.functional.rms_norm`."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalises over the last dimensions."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """``torch.nn.CrossEntropyLoss`` through aclnn: see :func:`aclnn_torch.functional.cross_entropy`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits against class indices."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class _CubeMath:
    """What the convolution modules have beside torch's.

    Attributes:
        cube_math_type: see :func:`aclnn_torch.functional.conv2d`. None until set; float32 on Ascend310P and
            Ascend910 needs 1 or 2.
    """

    cube_math_type: int | None = None

    def extra_repr(self) -> str:
        """As torch's, and the type if it is set."""
        text: str = super().extra_repr()  # type: ignore[misc]
        return f"{text}, cube_math_type={self.cube_math_type}" if self.cube_math_type is not None else text


def _padded_convolution(module: Any, function: Callable[..., Tensor], input: Tensor) -> Tensor:
    """A convolution module's work: padding that is not by zeros comes first."""
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
    """A transposed convolution module's work; `output_size` chooses among the sizes that the stride leaves open."""
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
    """What makes the output that large, by torch's rule; a function that torch.fx can put into a graph."""
    arguments = output_size, output_padding, stride, padding, kernel_size, dilation
    if has_torch_function_variadic(input, output_size):
        return handle_torch_function(_output_padding, (input, output_size), input, *arguments)
    if output_size is None:
        return output_padding
    rule: Any = torch.nn.ConvTranspose1d._output_padding  # which needs no module for an output_size
    return rule(None, input, output_size, stride, padding, kernel_size, len(kernel_size), dilation)


class Conv1d(_CubeMath, torch.nn.Conv1d):
    """``torch.nn.Conv1d`` through aclnn: see :func:`aclnn_torch.functional.conv1d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, F.conv1d, input)


class Conv2d(_CubeMath, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` through aclnn: see :func:`aclnn_torch.functional.conv2d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, F.conv2d, input)


class Conv3d(_CubeMath, torch.nn.Conv3d):
    """``torch.nn.Conv3d`` through aclnn: see :func:`aclnn_torch.functional.conv3d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Convolves."""
        return _padded_convolution(self, F.conv3d, input)


class ConvTranspose1d(_CubeMath, torch.nn.ConvTranspose1d):
    """``torch.nn.ConvTranspose1d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose1d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, F.conv_transpose1d, 1, input, output_size)


class ConvTranspose2d(_CubeMath, torch.nn.ConvTranspose2d):
    """``torch.nn.ConvTranspose2d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose2d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, F.conv_transpose2d, 2, input, output_size)


class ConvTranspose3d(_CubeMath, torch.nn.ConvTranspose3d):
    """``torch.nn.ConvTranspose3d`` through aclnn: see :func:`aclnn_torch.functional.conv_transpose3d`.

    Its attribute ``cube_math_type``, None until set, chooses what the factors are rounded to.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolves, transposed."""
        return _transposed_convolution(self, F.conv_transpose3d, 3, input, output_size)


for _name in __all__:
    globals()[_name].__prepare_scriptable__ = not_scriptable(f"{__name__}.{_name}")
