"""Mish: see csrc/torch_ops/mish.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise, inplace_elementwise
from ._functions import checked_call, direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_mish, _traced_mish = direct_call("mish", "mish")
_mish_ = checked_call("mish_", "mish")


@public_function
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""``x * tanh(log(1 + exp(x)))``; as ``torch.nn.functional.mish``.

    Calls aclnnMish (in place aclnnInplaceMish), and aclnnMishBackward for the gradient.

    Args:
        input: a tensor of 0 to 8 dimensions, float32, float16, bfloat16 from Ascend910B on, and float64 on the
            ``host`` product.
        inplace: overwrite ``input``. For a gradient a copy of it is kept.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype that is not accepted or more than 8 dimensions; 561003 on Ascend310P.
    """
    if has_torch_function_unary(input):
        return overridden(mish, (input,), input, inplace=inplace)
    if inplace:
        return _mish_(input)
    return (_traced_mish if is_dynamo_compiling() else _mish)(input)


@public_module
class Mish(torch.nn.Mish):
    """``torch.nn.Mish`` through aclnn: see :func:`aclnn_torch.functional.mish`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies Mish to every element."""
        return mish(input, self.inplace)


OPERATOR = Operator(
    functions=(mish,),
    modules=(Mish,),
    overloads=(
        elementwise(aclnn.mish.default, decomposition="mish", example=lambda: (example_rows(),)),
        inplace_elementwise(aclnn.mish_.default, decomposition="mish_", example=lambda: (example_rows(),)),
        elementwise(
            aclnn.mish_backward.default,
            decomposition="mish_backward",
            example=lambda: (example_rows(1, -1), example_rows()),
        ),
    ),
)
