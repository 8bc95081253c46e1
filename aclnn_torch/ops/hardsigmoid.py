"""Hardsigmoid: see csrc/torch_ops/hardsigmoid.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise, inplace_elementwise
from ._functions import checked_call, direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_hardsigmoid, _traced_hardsigmoid = direct_call("hardsigmoid", "hardsigmoid")
_hardsigmoid_ = checked_call("hardsigmoid_", "hardsigmoid")


@public_function
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    r"""1 for ``x >= 3``, 0 for ``x <= -3``, else ``x / 6 + 1 / 2``; as ``torch.nn.functional.hardsigmoid``.

    Calls aclnnHardsigmoid (in place aclnnInplaceHardsigmoid), and aclnnHardsigmoidBackward for the gradient.

    Args:
        input: a tensor of 0 to 8 dimensions, float32, float16, int32, bfloat16 from Ascend910B on, and float64 on the
            ``host`` product. The gradient does not exist for int32, whose results are truncated.
        inplace: overwrite ``input``. For a gradient a copy of it is kept.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype that is not accepted or more than 8 dimensions; 561003 on Ascend310P.
    """
    if has_torch_function_unary(input):
        return overridden(hardsigmoid, (input,), input, inplace=inplace)
    if inplace:
        return _hardsigmoid_(input)
    return (_traced_hardsigmoid if is_dynamo_compiling() else _hardsigmoid)(input)


@public_module
class Hardsigmoid(torch.nn.Hardsigmoid):
    """``torch.nn.Hardsigmoid`` through aclnn: see :func:`aclnn_torch.functional.hardsigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies Hardsigmoid to every element."""
        return hardsigmoid(input, self.inplace)


OPERATOR = Operator(
    functions=(hardsigmoid,),
    modules=(Hardsigmoid,),
    overloads=(
        elementwise(aclnn.hardsigmoid.default, decomposition="hardsigmoid", example=lambda: (example_rows(-4, 4),)),
        inplace_elementwise(
            aclnn.hardsigmoid_.default, decomposition="hardsigmoid_", example=lambda: (example_rows(-4, 4),)
        ),
        elementwise(
            aclnn.hardsigmoid_backward.default,
            decomposition="hardsigmoid_backward",
            example=lambda: (example_rows(1, -1), example_rows(-4, 4)),
        ),
    ),
)
