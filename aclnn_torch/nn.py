"""Modules with ``torch.nn``'s constructors over :mod:`aclnn_torch.functional`."""

from __future__ import annotations

import torch
from torch import Tensor

from . import functional as F

__all__ = ["CELU", "ELU", "SELU"]


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


class CELU(torch.nn.CELU):
    """``torch.nn.CELU`` through aclnn: see :func:`aclnn_torch.functional.celu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Applies CELU to every element."""
        return F.celu(input, self.alpha, self.inplace)
