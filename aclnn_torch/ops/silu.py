"""``torch.ops.aclnn.silu`` and ``silu_backward``: see csrc/torch_ops/silu.cpp."""

from __future__ import annotations

import torch

from ._elementwise import register_elementwise

register_elementwise(torch.ops.aclnn.silu.default)
register_elementwise(torch.ops.aclnn.silu_backward.default)
