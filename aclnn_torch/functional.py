"""The operators as functions with ``torch.nn.functional``'s signatures."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import _C  # noqa: F401  (defines the operators)

__all__ = ["celu", "elu", "selu"]

# Looked up once: attribute access on torch.ops costs as much as a small operator.
_elu: Callable[..., Tensor] = torch.ops.aclnn.elu.default
_elu_: Callable[..., Tensor] = torch.ops.aclnn.elu_.default
_selu: Callable[..., Tensor] = torch.ops.aclnn.selu.default
_selu_: Callable[..., Tensor] = torch.ops.aclnn.selu_.default


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
    if inplace:
        return _elu_(input, alpha)
    return _elu(input, alpha)


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
    if inplace:
        return _selu_(input)
    return _selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Continuously differentiable ELU: ``x`` for ``x > 0``, else ``alpha * (exp(x / alpha) - 1)``.

    As ``torch.nn.functional.celu``; calls aclnnElu with ``inputScale = 1 / alpha``, thus accepts what :func:`elu` does.

    Raises:
        RuntimeError: ``alpha`` is 0, as in torch.
        AclnnError: as :func:`elu`.
    """
    if alpha == 0:
        raise RuntimeError("celu: alpha is 0, expected another number: the formula divides by it")
    if inplace:
        return _elu_(input, alpha, 1.0, 1.0 / alpha)
    return _elu(input, alpha, 1.0, 1.0 / alpha)
