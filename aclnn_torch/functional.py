"""The operators as functions with ``torch.nn.functional``'s signatures.

An argument of a wrong kind raises a :class:`TypeError`, which names it. Each function is defined in its operator's
module in :mod:`aclnn_torch.ops`, and is imported here by name for type checkers.
"""

from __future__ import annotations

from .ops.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .ops.cross_entropy_loss import cross_entropy
from .ops.elu import celu, elu
from .ops.gelu import gelu
from .ops.hardsigmoid import hardsigmoid
from .ops.hardswish import hardswish
from .ops.layer_norm import layer_norm
from .ops.linear_cross_entropy import linear_cross_entropy
from .ops.mish import mish
from .ops.rms_norm import rms_norm
from .ops.selu import selu
from .ops.silu import silu
from .ops.softplus import softplus

__all__ = [
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "layer_norm",
    "linear_cross_entropy",
    "mish",
    "rms_norm",
    "selu",
    "silu",
    "softplus",
]
