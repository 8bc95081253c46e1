"""SELU: see csrc/torch_ops/selu.cpp."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise, inplace_elementwise
from ._functions import checked_call, direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn, aten = torch.ops.aclnn, torch.ops.aten

ALPHA = 1.6732632423543772848170429916717
SCALE = 1.0507009873554804934193349852946

_selu, _traced_selu = direct_call("selu", "selu")
_selu_ = checked_call("selu_", "selu")


@public_function
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
        return overridden(selu, (input,), input, inplace=inplace)
    if inplace:
        return _selu_(input)
    return (_traced_selu if is_dynamo_compiling() else _selu)(input)


@public_module
class SELU(torch.nn.SELU):
    """``torch.nn.SELU`` through aclnn: see :func:`aclnn_torch.functional.selu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies SELU to every element."""
        return selu(input, self.inplace)


# Integers, which SELU supports, are not decomposed, because ATen's ELU does not support them.


def _decomposed_selu(self: Tensor) -> Any:
    return aten.elu(self, ALPHA, SCALE) if self.is_floating_point() else NotImplemented


def _decomposed_selu_(self: Tensor) -> Any:
    return aten.elu_(self, ALPHA, SCALE) if self.is_floating_point() else NotImplemented


def _decomposed_selu_backward(grad_output: Tensor, result: Tensor) -> Any:
    if not result.is_floating_point():
        return NotImplemented
    return aten.elu_backward(grad_output, ALPHA, SCALE, 1, True, result)


OPERATOR = Operator(
    functions=(selu,),
    modules=(SELU,),
    overloads=(
        elementwise(aclnn.selu.default, decomposition=_decomposed_selu, example=lambda: (example_rows(),)),
        inplace_elementwise(aclnn.selu_.default, decomposition=_decomposed_selu_, example=lambda: (example_rows(),)),
        elementwise(
            aclnn.selu_backward.default,
            decomposition=_decomposed_selu_backward,
            example=lambda: (example_rows(1, -1), example_rows()),
        ),
    ),
)
