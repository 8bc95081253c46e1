"""How a module of this folder declares its operator, once for all parts of the package.

Each module has one ``OPERATOR``. ``aclnn_torch.ops`` finds it and registers its rules with torch; other parts read it:

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

from .._scripting import not_scriptable


class Placement(NamedTuple):
    """A placement in DTensor's terms, without importing DTensor, which is slow.

    Split along a dimension, replicated on every process, or a partial sum on each.
    """

    kind: Literal["shard", "replicate", "partial"]
    dim: int | None = None  # the dimension of a split


REPLICATE, PARTIAL = Placement("replicate"), Placement("partial")


def shard(dim: int) -> Placement:
    """Split along a dimension."""
    return Placement("shard", dim)


# Placements of an operator's results (None if one is not requested) and of its tensors.
Sharding = tuple[Sequence[Placement | None], Sequence[Placement]]


# dataclass's other methods would add a millisecond to the import.
@dataclass(kw_only=True, eq=False, repr=False)
class Overload:
    """One overload in ``torch.ops.aclnn``: forward, in place, or backward.

    Attributes:
        operator: the overload.
        decomposition: its computation in ATen's operators, a function of the same arguments; or the name of ATen's
            equivalent operator, looked up later to keep the import fast.
        example: makes the arguments of a small call, which the product ``host`` accepts.
        batching: the rule for ``torch.vmap``, for ``torch.library.register_vmap``. None: torch uses the operators that
            it is composed of.
        nested: the rule for jagged tensors, for ``torch.library.register_torch_dispatch``. None: refused.
        sharding: the placements with which it works without communication, a function of the operator's arguments.
            None: DTensor refuses the operator.
        accepts_empty: True if a process may have an empty shard.
        flops: the number of operations of a call, a function of shapes, for torch's flop counter. None: none are
            counted, as for ATen's activations, norms and losses.
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
        """Registers the rules with torch, except for the number of operations."""
        if self.batching is not None:
            torch.library.register_vmap(self.operator, self.batching)
        if self.nested is not None:
            torch.library.register_torch_dispatch(self.operator, NestedTensor, self.nested)

    def register_flops(self) -> None:
        """Registers the number of operations with torch's flop counter, which this imports."""
        from torch.utils.flop_counter import flop_registry, register_flop_formula

        packet = self.operator.overloadpacket
        if self.flops is not None and packet not in flop_registry:
            register_flop_formula(packet, get_raw=True)(self.flops)


@dataclass(kw_only=True, eq=False, repr=False)
class Operator:
    """An operator, forward and backward: its functions and modules under torch's names, and its overloads."""

    functions: tuple[Callable[..., Tensor], ...]
    modules: tuple[type[torch.nn.Module], ...]
    overloads: tuple[Overload, ...]


_Function = TypeVar("_Function", bound=Callable[..., Tensor])
_Module = TypeVar("_Module", bound=type[torch.nn.Module])


def _published(thing: Any, module: str) -> Any:
    thing.__module__ = module  # so that pickle, torch.fx and the documents find it
    thing.__prepare_scriptable__ = not_scriptable(f"{module}.{thing.__name__}")
    return thing


def public_function(function: _Function) -> _Function:
    """Adds a function to ``aclnn_torch.functional``."""
    published: _Function = _published(function, "aclnn_torch.functional")
    return published


def public_module(cls: _Module) -> _Module:
    """Adds a class to ``aclnn_torch.nn``."""
    published: _Module = _published(cls, "aclnn_torch.nn")
    return published


def example_rows(first: float = -2.0, last: float = 2.0) -> Tensor:
    """Positive and negative numbers for an ``example``: four rows of six."""
    return torch.linspace(first, last, 24).reshape(4, 6)
