"""What elementwise operators share: which they are, and their rules for batches and nested tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from ._nested import register_elementwise_nested

MAX_RANK = 8  # of CANN's tensors

ELEMENTWISE: list[OpOverload] = []  # in place or not


def register_elementwise(operator: OpOverload) -> None:
    """Gives an operator that works element by element, on tensors of one shape, its rules.

    They are those for ``torch.vmap`` and for nested tensors.
    """
    ELEMENTWISE.append(operator)
    register_elementwise_nested(operator)

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any, **kwargs: Any) -> tuple[Tensor, int]:
        batched = _batched_first(info.batch_size, in_dims, args)
        shape = next(arg.shape for arg in batched if isinstance(arg, Tensor))
        if len(shape) <= MAX_RANK:
            return operator(*batched, **kwargs), 0
        # The batch dimension must not make a tensor that is accepted one of too many dimensions.
        flat = [arg.flatten() if isinstance(arg, Tensor) else arg for arg in batched]
        return operator(*flat, **kwargs).reshape(shape), 0

    torch.library.register_vmap(operator, rule)


def register_inplace_elementwise(operator: OpOverload) -> None:
    """The same for an operator whose first argument is its only tensor and is overwritten."""
    ELEMENTWISE.append(operator)
    register_elementwise_nested(operator)

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int | None]:
        return operator(*args), in_dims[0]

    torch.library.register_vmap(operator, rule)


def _batched_first(batch_size: int, in_dims: tuple[int | None, ...], args: tuple[Any, ...]) -> list[Any]:
    """Moves every tensor's batch dimension to the front, and gives one to those that have none."""
    return [
        arg
        if not isinstance(arg, Tensor)
        else arg.unsqueeze(0).expand(batch_size, *arg.shape)
        if dim is None
        else arg.movedim(dim, 0)
        for arg, dim in zip(args, in_dims, strict=True)
    ]
