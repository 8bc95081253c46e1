"""GELU, with either formula: see csrc/torch_ops/gelu.cpp."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.overrides import has_torch_function_unary

from ._elementwise import elementwise
from ._functions import checked_call, overridden
from ._operator import Operator, example_rows, public_function, public_module

aclnn = torch.ops.aclnn

_gelu = checked_call("gelu", "gelu")


@public_function
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
        return overridden(gelu, (input,), input, approximate=approximate)
    return _gelu(input, approximate)


@public_module
class GELU(torch.nn.GELU):
    """``torch.nn.GELU`` through aclnn: see :func:`aclnn_torch.functional.gelu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies GELU to every element."""
        return gelu(input, self.approximate)


OPERATOR = Operator(
    functions=(gelu,),
    modules=(GELU,),
    overloads=(
        elementwise(aclnn.gelu.default, decomposition="gelu", example=lambda: (example_rows(),)),
        elementwise(
            aclnn.gelu_backward.default,
            decomposition="gelu_backward",
            example=lambda: (example_rows(1, -1), example_rows()),
        ),
    ),
)
