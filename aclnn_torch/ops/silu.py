"""SiLU: see csrc/torch_ops/silu.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise
from ._functions import direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_silu, _traced_silu = direct_call("silu", "silu")


@public_function
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
        return overridden(silu, (input,), input, inplace=inplace)
    if inplace and isinstance(input, Tensor):
        return input.copy_(silu(input.clone()))  # the gradient needs a copy of the input
    return (_traced_silu if is_dynamo_compiling() else _silu)(input)


@public_module
class SiLU(torch.nn.SiLU):
    """``torch.nn.SiLU`` through aclnn: see :func:`aclnn_torch.functional.silu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies SiLU to every element."""
        return silu(input, self.inplace)


OPERATOR = Operator(
    functions=(silu,),
    modules=(SiLU,),
    overloads=(
        elementwise(aclnn.silu.default, decomposition="silu", example=lambda: (example_rows(),)),
        elementwise(
            aclnn.silu_backward.default,
            decomposition="silu_backward",
            example=lambda: (example_rows(1, -1), example_rows()),
        ),
    ),
)
