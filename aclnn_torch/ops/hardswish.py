"""Hardswish: see csrc/torch_ops/hardswish.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise, inplace_elementwise
from ._functions import checked_call, direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_hardswish, _traced_hardswish = direct_call("hardswish", "hardswish")
_hardswish_ = checked_call("hardswish_", "hardswish")


@public_function
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""``x`` for ``x >= 3``, 0 for ``x <= -3``, else ``x * (x + 3) / 6``; as ``torch.nn.functional.hardswish``.

    Calls aclnnHardswish (in place aclnnInplaceHardswish), and aclnnHardswishBackwardV2 for the gradient.

    Args:
        input: a tensor, float32, float16, bfloat16 from Ascend910B on, and float64 on the ``host`` product. The
            gradient exists for 0 to 8 dimensions.
        inplace: overwrite ``input``. For a gradient a copy of it is kept.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype that is not accepted, in the gradient also for more than 8 dimensions;
            561003 on Ascend310P.
    """
    if has_torch_function_unary(input):
        return overridden(hardswish, (input,), input, inplace=inplace)
    if inplace:
        return _hardswish_(input)
    return (_traced_hardswish if is_dynamo_compiling() else _hardswish)(input)


@public_module
class Hardswish(torch.nn.Hardswish):
    """``torch.nn.Hardswish`` through aclnn: see :func:`aclnn_torch.functional.hardswish`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies Hardswish to every element."""
        return hardswish(input, self.inplace)


OPERATOR = Operator(
    functions=(hardswish,),
    modules=(Hardswish,),
    overloads=(
        elementwise(aclnn.hardswish.default, decomposition="hardswish", example=lambda: (example_rows(-4, 4),)),
        inplace_elementwise(
            aclnn.hardswish_.default, decomposition="hardswish_", example=lambda: (example_rows(-4, 4),)
        ),
        elementwise(
            aclnn.hardswish_backward.default,
            decomposition="hardswish_backward",
            example=lambda: (example_rows(1, -1), example_rows(-4, 4)),
        ),
    ),
)
