"""How a module of this folder states its operator: once, for every part of the package that asks.

Each module has one ``OPERATOR``. ``aclnn_torch.ops`` finds it, and registers its rules with torch; the rest reads it:

=====================  ================================================================================================
statement              who reads it
=====================  ================================================================================================
``functions``          ``aclnn_torch.functional``, which imports them by name for type checkers
``modules``            ``aclnn_torch.nn``, likewise; ``convert`` and ``revert``, which swap torch's classes for them
``decomposition``      ``aclnn_torch.decompositions()``
``example``            ``aclnn-torch doctor``, which holds the decomposition's result against the operator's
``batching``           ``torch.vmap``
``nested``             nested tensors of the jagged layout
``sharding``           ``aclnn_torch.distributed``, for DTensor
``flops``              ``torch.utils.flop_counter``
=====================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.nested._internal.nested_tensor import NestedTensor
from torch.utils.flop_counter import register_flop_formula

from .._scripting import not_scriptable


class Placement(NamedTuple):
    """Where a tensor is, in DTensor's words, which would be slow to import.

    Split along a dimension, replicated on every process, or a partial sum on each.
    """

    kind: Literal["shard", "replicate", "partial"]
    dim: int | None = None  # that it is split along


REPLICATE, PARTIAL = Placement("replicate"), Placement("partial")


def shard(dim: int) -> Placement:
    """Split along a dimension."""
    return Placement("shard", dim)


# Placements of an operator's results, None where one is not asked for, and of its tensors.
Sharding = tuple[Sequence[Placement | None], Sequence[Placement]]


# What else dataclass can make would cost the import a millisecond.
@dataclass(kw_only=True, eq=False, repr=False)
class Overload:
    """One overload in ``torch.ops.aclnn``: forward, in place, or backward.

    Attributes:
        operator: the overload.
        decomposition: what it computes in ATen's operators, a function of the same arguments; or the name of
            ATen's operator that computes the same: to look all of those up would make the import slower.
        example: makes the arguments of a small call, which the product ``host`` accepts.
        batching: the rule for ``torch.vmap``, as ``torch.library.register_vmap`` wants it. None: torch calls what the
            operator is composed of.
        nested: the rule for jagged tensors, as ``torch.library.register_torch_dispatch`` wants it. None: refused.
        sharding: the placements that it can work on without communication, a function of the operator's arguments.
            None: DTensor refuses the operator.
        accepts_empty: whether a process may be left without any elements.
        flops: how many operations a call does, a function of shapes, as torch's flop counter wants it. None: none are
            counted, as of ATen's activations, norms and losses.
    """

    operator: OpOverload
    decomposition: Callable[..., Any] | str
    example: Callable[[], tuple[Any, ...]]
    batching: Callable[..., tuple[Any, Any]] | None = None
    nested: Callable[..., Any] | None = None
    sharding: Callable[..., Sequence[Sharding]] | None = None
    accepts_empty: bool = False
    flops: Callable[..., int] | None = None

    def register(self) -> None:
        """Gives torch the rules."""
        if self.batching is not None:
            torch.library.register_vmap(self.operator, self.batching)
        if self.nested is not None:
            torch.library.register_torch_dispatch(self.operator, NestedTensor, self.nested)
        if self.flops is not None:
            register_flop_formula(self.operator.overloadpacket, get_raw=True)(self.flops)


@dataclass(kw_only=True, eq=False, repr=False)
class Operator:
    """An operator, forward and backward: its functions and modules under torch's names, and its overloads."""

    functions: tuple[Callable[..., Tensor], ...]
    modules: tuple[type[torch.nn.Module], ...]
    overloads: tuple[Overload, ...]


_Function = TypeVar("_Function", bound=Callable[..., Tensor])
_Module = TypeVar("_Module", bound=type[torch.nn.Module])


def _published(thing: Any, module: str) -> Any:
    thing.__module__ = module  # where pickle, torch.fx and the documents find it
    thing.__prepare_scriptable__ = not_scriptable(f"{module}.{thing.__name__}")
    return thing


def public_function(function: _Function) -> _Function:
    """Makes a function one of ``aclnn_torch.functional``."""
    published: _Function = _published(function, "aclnn_torch.functional")
    return published


def public_module(cls: _Module) -> _Module:
    """Makes a class one of ``aclnn_torch.nn``."""
    published: _Module = _published(cls, "aclnn_torch.nn")
    return published


def example_rows(first: float = -2.0, last: float = 2.0) -> Tensor:
    """Numbers on either side of zero for an ``example``: four rows of six."""
    return torch.linspace(first, last, 24).reshape(4, 6)
