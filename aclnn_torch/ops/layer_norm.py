"""``torch.ops.aclnn.layer_norm`` and ``layer_norm_backward``: see csrc/torch_ops/layer_norm.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._batching import map_over_batch
from ._elementwise import MAX_RANK
from ._nested import register_rowwise_nested

ops = torch.ops.aclnn


def _layer_norm_rule(info: Any, in_dims: Sequence[Any], input: Tensor, *rest: Any) -> tuple[Any, Any]:
    dim, _, *others = in_dims
    if dim is None or any(isinstance(other, int) for other in others) or input.dim() > MAX_RANK:
        return map_over_batch(ops.layer_norm, info, in_dims, (input, *rest))
    return ops.layer_norm(input.movedim(dim, 0), *rest), (0, 0, 0)


def _layer_norm_backward_rule(info: Any, in_dims: Sequence[Any], *args: Any) -> tuple[Any, Any]:
    # Every sample has its own gradients of the weights, sums over its rows.
    return map_over_batch(ops.layer_norm_backward, info, in_dims, args)


torch.library.register_vmap(ops.layer_norm.default, _layer_norm_rule)
torch.library.register_vmap(ops.layer_norm_backward.default, _layer_norm_backward_rule)
register_rowwise_nested(ops.layer_norm.default, "normalized_shape")
register_rowwise_nested(ops.layer_norm_backward.default, "normalized_shape")
