"""Batching rules shared by operators that are not elementwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def map_over_batch(
    operator: Callable[..., Any], info: Any, in_dims: Sequence[Any], args: Sequence[Any], **kwargs: Any
) -> tuple[Any, Any]:
    """A rule for ``torch.vmap``: calls the operator sample by sample and stacks what it returns.

    Arguments without a batch dimension are passed to every call. Results that are None stay None.
    """
    # For a list argument, the dimension is a list of None.
    in_dims = [dim if isinstance(dim, int) else None for dim in in_dims]
    if info.batch_size == 0:
        # A call with one sample of zeros gives the results' shapes.
        args = [
            arg if dim is None else arg.new_zeros([*arg.shape[:dim], 1, *arg.shape[dim + 1 :]])
            for arg, dim in zip(args, in_dims, strict=True)
        ]
    results = [
        operator(
            *[arg if dim is None else arg.select(dim, i) for arg, dim in zip(args, in_dims, strict=True)], **kwargs
        )
        for i in range(max(info.batch_size, 1))
    ]
    if isinstance(results[0], Tensor):
        return torch.stack(results)[: info.batch_size], 0
    stacked = tuple(
        None if parts[0] is None else torch.stack(parts)[: info.batch_size] for parts in zip(*results, strict=True)
    )
    return stacked, tuple(None if part is None else 0 for part in stacked)


def one_by_one(operator: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """The rule of an operator without a better one than :func:`map_over_batch`."""

    def rule(info: Any, in_dims: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return map_over_batch(operator, info, in_dims, args, **kwargs)

    return rule
