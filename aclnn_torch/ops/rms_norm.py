"""``torch.ops.aclnn.rms_norm`` and ``rms_norm_grad``: see csrc/torch_ops/rms_norm.cpp."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._batching import map_over_batch
from ._elementwise import MAX_RANK
from ._nested import register_rowwise_nested

ops = torch.ops.aclnn


def _rms_norm_rule(
    info: Any, in_dims: tuple[int | None, ...], x: Tensor, gamma: Tensor, *epsilon: float
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    dim, gamma_dim = in_dims[:2]
    if dim is None or gamma_dim is not None:
        return map_over_batch(ops.rms_norm, info, in_dims, (x, gamma, *epsilon))
    x = x.movedim(dim, 0)
    if x.dim() <= MAX_RANK:
        return ops.rms_norm(x, gamma, *epsilon), (0, 0)
    # The batch dimension must not make a tensor that is accepted one of too many dimensions.
    y, rstd = ops.rms_norm(x.reshape(-1, gamma.numel()), gamma.flatten(), *epsilon)
    rows = x.shape[: x.dim() - gamma.dim()]
    return (y.reshape(x.shape), rstd.reshape(*rows, *[1] * gamma.dim())), (0, 0)


def _rms_norm_grad_rule(
    info: Any, in_dims: tuple[int | None, ...], *args: Tensor
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    # Every sample has its own dgamma, a sum over its rows.
    return map_over_batch(ops.rms_norm_grad, info, in_dims, args)


torch.library.register_vmap(ops.rms_norm.default, _rms_norm_rule)
torch.library.register_vmap(ops.rms_norm_grad.default, _rms_norm_grad_rule)
register_rowwise_nested(ops.rms_norm.default, "gamma")
register_rowwise_nested(ops.rms_norm_grad.default, "gamma")
