"""ELU and its special case CELU: see csrc/torch_ops/elu.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise, inplace_elementwise
from ._functions import accepted, checked_call, direct_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_elu, _traced_elu = direct_call("elu", "elu")
_celu, _traced_celu = direct_call("elu", "celu")
_elu_ = checked_call("elu_", "elu")
_celu_ = checked_call("elu_", "celu")


@public_function
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
        return overridden(elu, (input,), input, alpha=alpha, inplace=inplace)
    if inplace:
        return _elu_(input, alpha, 1, 1)
    return (_traced_elu if is_dynamo_compiling() else _elu)(input, alpha, 1, 1)


@public_function
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Continuously differentiable ELU: ``x`` for ``x > 0``, else ``alpha * (exp(x / alpha) - 1)``.

    As ``torch.nn.functional.celu``; calls aclnnElu with ``inputScale = 1 / alpha``, thus accepts what :func:`elu` does.

    Raises:
        RuntimeError: ``alpha`` is 0, as in torch.
        AclnnError: as :func:`elu`.
    """
    if has_torch_function_unary(input):
        return overridden(celu, (input,), input, alpha=alpha, inplace=inplace)
    if not isinstance(alpha, (int, float)):
        alpha = accepted("celu", "alpha", "number", alpha)
    if alpha == 0:
        raise RuntimeError("celu: alpha is 0, expected another number: the formula divides by it")
    if inplace:
        return _celu_(input, alpha, 1.0, 1.0 / alpha)
    return (_traced_celu if is_dynamo_compiling() else _celu)(input, alpha, 1.0, 1.0 / alpha)


@public_module
class ELU(torch.nn.ELU):
    """``torch.nn.ELU`` through aclnn: see :func:`aclnn_torch.functional.elu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies ELU to every element."""
        return elu(input, self.alpha, self.inplace)


@public_module
class CELU(torch.nn.CELU):
    """``torch.nn.CELU`` through aclnn: see :func:`aclnn_torch.functional.celu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies CELU to every element."""
        return celu(input, self.alpha, self.inplace)


OPERATOR = Operator(
    functions=(elu, celu),
    modules=(ELU, CELU),
    overloads=(
        elementwise(aclnn.elu.default, decomposition="elu", example=lambda: (example_rows(), 1.5, 0.5, 2.0)),
        inplace_elementwise(aclnn.elu_.default, decomposition="elu_", example=lambda: (example_rows(), 1.5)),
        elementwise(
            aclnn.elu_backward.default,
            decomposition="elu_backward",
            example=lambda: (example_rows(1, -1), 1.5, 0.5, 2.0, False, example_rows()),
        ),
    ),
)
