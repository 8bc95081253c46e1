"""Nested tensors of the jagged layout: their rules are calls on the values of all sequences, one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nested._internal.nested_tensor import NestedTensor


def _raggedness(tensor: Any) -> tuple[Any, ...]:
    """The sizes up to the ragged one, which stands for the lengths of the sequences."""
    return tuple(tensor.shape[: tensor._ragged_idx + 1])


def _unwrapped(operator: Any, args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A nested tensor of the arguments, and all arguments with their values; the sequences must be the same."""
    nested = [arg for arg in args if isinstance(arg, NestedTensor)]
    first = nested[0]
    for other in nested[1:]:
        if _raggedness(other) != _raggedness(first):
            raise RuntimeError(
                f"{operator.name()}: a nested tensor has shape {list(other.shape)}, expected sequences of the lengths "
                f"and offsets of {list(first.shape)}; make one from the other's with "
                "torch.nested.nested_tensor_from_jagged"
            )
    return first, [arg._values if isinstance(arg, NestedTensor) else arg for arg in args]


def _wrapped(values: Tensor, like: Any) -> Any:
    from torch.nested._internal.ops import extract_kwargs  # which is slow to import

    # As torch's own rules do it: torch.nested.nested_tensor_from_jagged refuses to be traced.
    return NestedTensor(values, **extract_kwargs(like))  # type: ignore[no-untyped-call]


def elementwise_nested(operator: Any) -> Callable[..., Any]:
    """The rule of an operator that works element by element, on tensors of one shape; in place or not."""
    in_place = operator._schema.is_mutable

    def rule(cls: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        for argument, value in zip(operator._schema.arguments, args, strict=False):
            if isinstance(value, Tensor) and not isinstance(value, NestedTensor):
                raise RuntimeError(
                    f"{operator.name()}: {argument.name} is no nested tensor, expected one as other arguments are"
                )
        like, values = _unwrapped(operator, args)
        result = operator(*values, **(kwargs or {}))
        return args[0] if in_place else _wrapped(result, like)

    return rule


def rowwise_nested(operator: Any, normalized: str) -> Callable[..., Any]:
    """The rule of a normalisation: its first result is as the first argument is, others are of the values.

    Args:
        operator: an operator of ``torch.ops.aclnn``.
        normalized: the argument that has the normalised dimensions, a list of their sizes or a tensor of these.
    """
    names = [argument.name for argument in operator._schema.arguments]

    def rule(cls: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        like, values = _unwrapped(operator, args)
        shape = args[names.index(normalized)]
        shape = list(shape.shape if isinstance(shape, Tensor) else shape)
        dense = like.dim() - like._ragged_idx - 1
        if len(shape) > dense:
            raise RuntimeError(
                f"{operator.name()}: {normalized} has {len(shape)} dimensions, expected at most {dense}, those behind "
                f"the ragged one of the nested tensor of shape {list(like.shape)}"
            )
        first, *others = operator(*values, **(kwargs or {}))
        return None if first is None else _wrapped(first, like), *others

    return rule
