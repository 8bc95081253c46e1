"""``torch.ops.aclnn.elu``, ``elu_`` and ``elu_backward``: see csrc/torch_ops/elu.cpp."""

from __future__ import annotations

import torch

from ._elementwise import register_elementwise, register_inplace_elementwise

register_elementwise(torch.ops.aclnn.elu.default)
register_elementwise(torch.ops.aclnn.elu_backward.default)
register_inplace_elementwise(torch.ops.aclnn.elu_.default)
