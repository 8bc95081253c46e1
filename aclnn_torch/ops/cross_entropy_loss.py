"""``torch.ops.aclnn.cross_entropy_loss`` and ``cross_entropy_loss_grad``: see csrc/torch_ops/cross_entropy_loss.cpp."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from ._batching import map_over_batch


def _register_vmap(operator: OpOverload) -> None:
    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return map_over_batch(operator, info, in_dims, args, **kwargs)

    torch.library.register_vmap(operator, rule)


_register_vmap(torch.ops.aclnn.cross_entropy_loss.default)
_register_vmap(torch.ops.aclnn.cross_entropy_loss_grad.default)
