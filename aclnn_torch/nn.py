"""Modules with ``torch.nn``'s constructors over :mod:`aclnn_torch.functional`.

Each class is defined in its operator's module in :mod:`aclnn_torch.ops`, and is imported here by name for type
checkers.
"""

from __future__ import annotations

from .ops.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .ops.cross_entropy_loss import CrossEntropyLoss
from .ops.elu import CELU, ELU
from .ops.gelu import GELU
from .ops.hardsigmoid import Hardsigmoid
from .ops.hardswish import Hardswish
from .ops.layer_norm import LayerNorm
from .ops.linear_cross_entropy import LinearCrossEntropyLoss
from .ops.mish import Mish
from .ops.rms_norm import RMSNorm
from .ops.selu import SELU
from .ops.silu import SiLU
from .ops.softplus import Softplus

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossEntropyLoss",
    "Hardsigmoid",
    "Hardswish",
    "LayerNorm",
    "LinearCrossEntropyLoss",
    "Mish",
    "RMSNorm",
    "SiLU",
    "Softplus",
]
