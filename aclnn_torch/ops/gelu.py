"""``torch.ops.aclnn.gelu`` and ``gelu_backward``: see csrc/torch_ops/gelu.cpp."""

from __future__ import annotations

import torch

from ._elementwise import register_elementwise

register_elementwise(torch.ops.aclnn.gelu.default)
register_elementwise(torch.ops.aclnn.gelu_backward.default)
