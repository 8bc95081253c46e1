"""Shared by the functions of ``aclnn_torch.functional``: calls of operators, and texts about arguments."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function

from .. import _C

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

# The Python types accepted for each type in an operator's schema, and their name in an error's text.
_KINDS: dict[str, tuple[Any, str]] = {
    "Tensor": ((Tensor,), "a tensor"),
    "Optional[Tensor]": ((Tensor, type(None)), "a tensor or None"),
    "number": ((numbers.Number, *_SYMBOLS), "a number"),
    "float": ((numbers.Number, *_SYMBOLS), "a number"),
    "int": ((numbers.Integral, *_SYMBOLS), "an integer"),
    "List[int]": ((Sequence,), "a sequence of integers"),
    "str": ((str,), "a string"),
}
_NUMBERS = ("number", "float", "int")
# Names of arguments in the functions that differ from the operator's schema.
_NAMES = {"self": "input", "x": "input", "gamma": "weight", "epsilon": "eps"}


def wrong_kind(function: str, argument: str, value: object, expected: str) -> TypeError:
    """The error for an argument of a wrong kind."""
    if isinstance(value, Tensor):
        shown = f"a tensor of shape {list(value.shape)}" + (" that requires grad" if value.requires_grad else "")
    else:
        shown = reprlib.repr(value)
    error = TypeError(f"{function}: {argument} is {shown}, expected {expected}")
    error.__suppress_context__ = True  # hides the operator's own, less informative error
    return error


def accepted(function: str, argument: str, kind: str, value: Any) -> Any:
    """Converts a value for an operator: a zero-dimensional tensor given for a number becomes its number."""
    types, expected = _KINDS[kind]
    if kind in _NUMBERS and not isinstance(value, (int, float, complex)):
        # Numbers of other libraries, such as NumPy.
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
    if isinstance(value, types):
        if kind != "List[int]" or all(hasattr(item, "__index__") for item in value):
            return value
    elif kind in _NUMBERS and isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad:
        return value.item()
    raise wrong_kind(function, argument, value, expected)


def checked_call(name: str, function: str) -> Callable[..., Tensor]:
    """The first result of an operator, given all arguments by position.

    If the operator refuses an argument's type, a tensor is converted to a number, as in torch's functions, or the error
    names the argument as `function` does.
    """
    overload = getattr(torch.ops.aclnn, name).default
    schema = overload._schema
    by_position = sum(not argument.kwarg_only for argument in schema.arguments)
    by_name = [argument.name for argument in schema.arguments[by_position:]]

    def run(*arguments: object) -> Tensor:
        named = dict(zip(by_name, arguments[by_position:], strict=True))
        result: Any = overload(*arguments[:by_position], **named)
        first: Tensor = result if len(schema.returns) == 1 else result[0]
        return first

    if not by_name and len(schema.returns) == 1:
        run = overload

    def call(*arguments: object) -> Tensor:
        if is_dynamo_compiling():
            return run(*arguments)
        try:
            return run(*arguments)
        except (RuntimeError, TypeError):
            converted = [
                accepted(function, _NAMES.get(wanted.name, wanted.name), str(wanted.type), value)
                for wanted, value in zip(schema.arguments, arguments, strict=True)
            ]
            if all(one is other for one, other in zip(converted, arguments, strict=True)):
                raise
        return run(*converted)

    call.__name__ = call.__qualname__ = function  # in tracebacks and profiles
    return call


def direct_call(name: str, function: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Two versions: a direct call without the cost of torch.ops, and one for Dynamo, which cannot trace C functions.

    The former falls back to the latter for arguments that are not plain tensors and numbers, and under a mode of
    ``__torch_function__``.
    """
    traced = checked_call(name, function)
    return _C.direct_call(f"aclnn::{name}", traced), traced


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The dtype to which autocast casts a linear layer's tensor; None if it does not."""
    kind = tensor.device.type
    # Autocast does not support meta tensors. Dynamo traces torch.amp.is_autocast_available since torch 2.11.
    if kind == "meta" or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return None
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def overridden(function: Callable[..., Tensor], tensors: Sequence[object], *args: object, **kwargs: object) -> Tensor:
    """The result of ``__torch_function__`` of a tensor or a mode for a call: a node of torch.fx, for example."""
    result: Tensor = handle_torch_function(function, tensors, *args, **kwargs)
    return result
