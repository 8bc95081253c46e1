"""The rules that all elementwise operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch._ops import OpOverload

from ._nested import elementwise_nested
from ._operator import REPLICATE, Overload, Sharding, shard

MAX_RANK = 8  # CANN's maximum rank


def elementwise(
    operator: OpOverload, *, decomposition: Callable[..., Any] | str, example: Callable[[], tuple[Any, ...]]
) -> Overload:
    """An elementwise overload, on tensors of one shape."""

    def batching(info: Any, in_dims: tuple[int | None, ...], *args: Any, **kwargs: Any) -> tuple[Tensor, int]:
        batched = _batched_first(info.batch_size, in_dims, args)
        shape = next(arg.shape for arg in batched if isinstance(arg, Tensor))
        if len(shape) <= MAX_RANK:
            return operator(*batched, **kwargs), 0
        # Flattened, so that the batch dimension cannot exceed the maximum rank.
        flat = [arg.flatten() if isinstance(arg, Tensor) else arg for arg in batched]
        return operator(*flat, **kwargs).reshape(shape), 0

    return _overload(operator, decomposition, example, batching)


def inplace_elementwise(
    operator: OpOverload, *, decomposition: Callable[..., Any] | str, example: Callable[[], tuple[Any, ...]]
) -> Overload:
    """The same for an operator whose first argument is its only tensor and is overwritten."""

    def batching(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int | None]:
        return operator(*args), in_dims[0]

    return _overload(operator, decomposition, example, batching)


def _overload(
    operator: OpOverload,
    decomposition: Callable[..., Any] | str,
    example: Callable[[], tuple[Any, ...]],
    batching: Callable[..., tuple[Any, Any]],
) -> Overload:
    return Overload(
        operator=operator,
        decomposition=decomposition,
        example=example,
        batching=batching,
        nested=elementwise_nested(operator),
        sharding=sharding,
        accepts_empty=True,
    )


def sharding(*args: Any, **_: Any) -> Sequence[Sharding]:
    """One placement for all tensors, which may be split along any dimension."""
    tensors = [arg for arg in args if hasattr(arg, "placements")]
    shapes = {tensor.shape for tensor in tensors}
    dims = range(tensors[0].ndim) if len(shapes) == 1 else ()  # not if one is broadcast
    return [([placement], [placement] * len(tensors)) for placement in (REPLICATE, *map(shard, dims))]


def _batched_first(batch_size: int, in_dims: tuple[int | None, ...], args: tuple[Any, ...]) -> list[Any]:
    """Moves every tensor's batch dimension to the front, and adds one where it is missing."""
    return [
        arg
        if not isinstance(arg, Tensor)
        else arg.unsqueeze(0).expand(batch_size, *arg.shape)
        if dim is None
        else arg.movedim(dim, 0)
        for arg, dim in zip(args, in_dims, strict=True)
    ]
