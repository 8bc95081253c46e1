"""Softplus: see csrc/torch_ops/softplus.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise
from ._functions import direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_softplus, _traced_softplus = direct_call("softplus", "softplus")


@public_function
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    r"""A smooth ``max(x, 0)``: ``log(1 + exp(beta * x)) / beta``; as ``torch.nn.functional.softplus``.

    Calls aclnnSoftplus, and aclnnSoftplusBackward for the gradient.

    Args:
        input: a tensor of 0 to 8 dimensions, float32, float16, bfloat16 from Ascend910B on, and float64 on the ``host``
            product. The gradient does not exist on Ascend310P.
        beta: sharpness of the bend at 0.
        threshold: where ``beta * x`` is greater, the result is ``x``.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for a dtype or rank that is not accepted; in the gradient also 561003 on Ascend310P.
    """
    if has_torch_function_unary(input):
        return overridden(softplus, (input,), input, beta=beta, threshold=threshold)
    return (_traced_softplus if is_dynamo_compiling() else _softplus)(input, beta, threshold)


@public_module
class Softplus(torch.nn.Softplus):
    """``torch.nn.Softplus`` through aclnn: see :func:`aclnn_torch.functional.softplus`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies Softplus to every element."""
        return softplus(input, self.beta, self.threshold)


OPERATOR = Operator(
    functions=(softplus,),
    modules=(Softplus,),
    overloads=(
        elementwise(aclnn.softplus.default, decomposition="softplus", example=lambda: (example_rows(), 2.0, 3.0)),
        elementwise(
            aclnn.softplus_backward.default,
            decomposition="softplus_backward",
            example=lambda: (example_rows(1, -1), example_rows(), 2.0, 3.0),
        ),
    ),
)
