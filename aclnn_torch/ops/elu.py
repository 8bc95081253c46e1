"""``torch.ops.aclnn.elu``, ``elu_`` and ``elu_backward``: see csrc/ops/elu.cpp."""

from __future__ import annotations

import torch

from ._elementwise import register_elementwise_vmap, register_inplace_elementwise_vmap

register_elementwise_vmap(torch.ops.aclnn.elu.default)
register_elementwise_vmap(torch.ops.aclnn.elu_backward.default)
register_inplace_elementwise_vmap(torch.ops.aclnn.elu_.default)
