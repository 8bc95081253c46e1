"""``torch.ops.aclnn.selu``, ``selu_`` and ``selu_backward``: see csrc/torch_ops/selu.cpp."""

from __future__ import annotations

import torch

from ._elementwise import register_elementwise, register_inplace_elementwise

register_elementwise(torch.ops.aclnn.selu.default)
register_elementwise(torch.ops.aclnn.selu_backward.default)
register_inplace_elementwise(torch.ops.aclnn.selu_.default)
