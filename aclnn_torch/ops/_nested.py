"""Nested tensors of the jagged layout: a rule calls the operator on the concatenated values of all sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nested._internal.nested_tensor import NestedTensor


def _raggedness(tensor: Any) -> tuple[Any, ...]:
    """The sizes up to the ragged one, which stands for the sequences' lengths."""
    return tuple(tensor.shape[: tensor._ragged_idx + 1])


def _unwrapped(operator: Any, args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """One nested tensor of the arguments, and all arguments with their values; sequence lengths must be equal."""
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
    from torch.nested._internal.ops import extract_kwargs  # slow to import

    # As in torch's own rules: torch.nested.nested_tensor_from_jagged cannot be traced.
    return NestedTensor(values, **extract_kwargs(like))  # type: ignore[no-untyped-call]


def elementwise_nested(operator: Any) -> Callable[..., Any]:
    """The rule of an elementwise operator, on tensors of one shape; in place or not."""
    in_place = operator._schema.is_mutable

    def rule(cls: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        for argument, value in zip(operator._schema.arguments, args, strict=False):
            if isinstance(value, Tensor) and not isinstance(value, NestedTensor):
                raise RuntimeError(
                    f"{operator.name()}: {argument.name} is not a nested tensor, expected one because another argument "
                    "is; make one with torch.nested.nested_tensor_from_jagged"
                )
        like, values = _unwrapped(operator, args)
        result = operator(*values, **(kwargs or {}))
        return args[0] if in_place else _wrapped(result, like)

    return rule


def rowwise_nested(operator: Any, normalized: str) -> Callable[..., Any]:
    """The rule of a normalisation: its first result is nested like the first argument, others belong to the values.

    Args:
        operator: an operator of ``torch.ops.aclnn``.
        normalized: the argument that gives the normalised dimensions, a list of sizes or a tensor with that shape.
    """
    names = [argument.name for argument in operator._schema.arguments]

    def rule(cls: Any, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        like, values = _unwrapped(operator, args)
        shape = args[names.index(normalized)]
        shape = list(shape.shape if isinstance(shape, Tensor) else shape)
        dense = like.dim() - like._ragged_idx - 1
        if len(shape) > dense:
            raise RuntimeError(
                f"{operator.name()}: {normalized} has {len(shape)} dimensions, expected at most {dense}, the "
                f"number behind the ragged dimension of the nested tensor of shape {list(like.shape)}"
            )
        first, *others = operator(*values, **(kwargs or {}))
        return None if first is None else _wrapped(first, like), *others

    return rule
