"""Declares what to test of an operator, like PyTorch's OpInfo.

Each module has one ``INFO``. The tests, the benchmarks and the fuzzer iterate over all of them, and name no operator.
Nothing here imports pytest, because the benchmarks use it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket

Tensors = tuple[Tensor, ...]

# A small matrix of positive and negative numbers.
ROWS = torch.linspace(-2, 2, 12).reshape(3, 4)


def as_tuple(results: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The results of an operator as a tuple."""
    return (results,) if isinstance(results, Tensor) else tuple(results)


@dataclass
class Call:
    """One differentiable call of a function: tensor arguments by shape, the others unchanged."""

    function: Callable[..., Tensor | tuple[Tensor, ...]]
    shapes: Sequence[tuple[int, ...]]
    arguments: Sequence[Any] = ()  # None stands for the next tensor
    name: str = ""
    batched: Sequence[bool] | None = None  # tensors whose first dimension is the batch; default: all

    def tensors(self, dtype: torch.dtype, requires_grad: bool = False, seed: int = 0) -> list[Tensor]:
        """Values away from 0, where second derivatives jump."""
        generator = torch.Generator().manual_seed(seed)
        result = []
        for shape in self.shapes:
            value = torch.randn(shape, generator=generator, dtype=torch.float64)
            value = torch.where(value.abs() < 0.05, value.sign() * 0.05 + value, value)
            result.append(value.to(dtype).requires_grad_(requires_grad))
        return result

    def on(self, *tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The call on these tensors."""
        rest = iter(tensors)
        arguments = [next(rest) if argument is None else argument for argument in self.arguments]
        return self.function(*arguments)

    def results(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The same as a tuple, even for one result."""
        return as_tuple(self.on(*tensors))

    def __str__(self) -> str:
        return self.name


def same(*tensors: Any) -> tuple[Any, ...]:
    """The arguments of an operator without arguments other than its input tensors."""
    return tensors


# The users of a kernel: the tests, and the benchmarks' tables of speed, precision, and errors on difficult inputs.
EVERYONE = ("tests", "speed", "precision", "torture")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One elementwise overload with one choice of its numbers, and ATen's equivalent operator."""

    operator: str  # in torch.ops.aclnn
    reads: int  # input tensors; one is written
    arguments: Callable[..., tuple[Any, ...]] = same  # the operator's and aclnn's, from the input tensors
    peer: OpOverloadPacket
    peer_arguments: Callable[..., tuple[Any, ...]] | None = None  # if they differ from the operator's
    # The exact result in extended precision, from the dtype and the operator's arguments as arrays.
    exact: Callable[..., Any]
    # The same for the sum of the terms' magnitudes, if it is a sum.
    magnitude: Callable[..., Any] | None = None
    variant: str = ""
    used_by: Sequence[str] = EVERYONE
    in_place: str = ""  # the overload that writes its result into the first tensor
    peer_is_exact_in_double: bool = False  # in a narrower dtype ATen's loses digits to cancellation
    # The distance from ATen's result allowed beyond its last rounding, by dtype.
    atol: Callable[[torch.dtype], float] = lambda dtype: 0.0
    named: Mapping[str, Any] = field(default_factory=dict, hash=False)  # keyword arguments, also the peer's and JAX's
    cann_name: str = ""  # in snake_case, if it differs from the operator's
    cann: Callable[..., tuple[Any, ...]] | None = None  # CANN's arguments, if they differ from the operator's

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.operator}:{self.variant}" if self.variant else self.operator

    def __str__(self) -> str:
        return self.name

    @property
    def out_name(self) -> str | None:
        """What the peer calls a tensor to write to, if it can."""
        schemas = [getattr(self.peer, overload)._schema for overload in self.peer.overloads()]
        return next((argument.name for schema in schemas for argument in schema.arguments if argument.is_out), None)

    @property
    def overload(self) -> OpOverload:
        """The operator."""
        overload: OpOverload = getattr(torch.ops.aclnn, self.operator).default
        return overload

    def of_peer(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The peer's arguments."""
        return (self.peer_arguments or self.arguments)(*tensors)

    def __call__(self, *tensors: Tensor) -> Tensor:
        result: Tensor = self.overload(*self.arguments(*tensors), **self.named)
        return result

    def by_peer(self, *tensors: Tensor) -> Tensor:
        """The result of ATen's operator on the same tensors."""
        result: Tensor = self.peer(*self.of_peer(*tensors), **self.named)
        return result

    def expected(self, *tensors: Tensor) -> Tensor:
        """The peer's result, computed in double and rounded once if only that is right."""
        if self.peer_is_exact_in_double:
            return self.by_peer(*(tensor.double() for tensor in tensors)).to(tensors[-1].dtype)
        return self.by_peer(*tensors)

    def run_in_place(self, tensor: Tensor) -> Tensor:
        """The overload that overwrites its tensor."""
        result: Tensor = getattr(torch.ops.aclnn, self.in_place)(*self.arguments(tensor), **self.named)
        return result


class _Reference:
    """torch.nn.functional, but for functions whose derivatives are wrong or missing there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.nn.functional, name)


REFERENCE = _Reference()


@dataclass(frozen=True, kw_only=True)
class FunctionCase:
    """A function of aclnn_torch.functional, which torch.nn.functional has, too, and a call of it."""

    name: str
    tensors: Tensors = (ROWS,)
    options: tuple[Any, ...] = ()  # after the tensors, by position
    keywords: Mapping[str, Any] = field(default_factory=dict)  # after these, in order
    other_keywords: Sequence[Mapping[str, Any]] = ()  # for further calls
    in_place: bool = False  # it has the argument `inplace`
    # True if torch supports its own function on nested tensors, in place and with a gradient.
    nested_in_torch: bool = True
    direct: bool = True  # its calls bypass torch.ops, by _C.direct_call
    # For an elementwise function, on torch's samples: see Kernel; and the distance allowed from torch's gradient.
    peer_is_exact_in_double: bool = False
    gradient_atol: Callable[[torch.dtype], float] = lambda dtype: 0.0
    # What REFERENCE has in place of torch.nn.functional's own.
    reference: Callable[..., Tensor] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All arguments, by position."""
        return *self.tensors, *self.options, *self.keywords.values()

    def of(self, functional: Any) -> Callable[..., Tensor]:
        """The function in a module."""
        if functional is REFERENCE and self.reference:
            return self.reference
        function: Callable[..., Tensor] = getattr(functional, self.name)
        return function

    def variants(self, functional: Any, others: bool = True) -> Iterable[tuple[str, Callable[[Tensor], Tensor]]]:
        """With its keywords and with others, also in place, as named functions of one tensor."""
        function = self.of(functional)
        for keywords in (self.keywords, *(self.other_keywords if others else ())):
            name = ", ".join((self.name, *(f"{keyword}={value}" for keyword, value in keywords.items())))
            yield name, partial(function, **keywords)
            if self.in_place:
                yield f"{name}, in place", partial(_of_a_copy, function, inplace=True, **keywords)


def _of_a_copy(function: Callable[..., Tensor], x: Tensor, **keywords: Any) -> Tensor:
    return function(x * 1, **keywords)


@dataclass(frozen=True, kw_only=True)
class ModuleCase:
    """A class of aclnn_torch.nn, which torch.nn has, too, its construction, and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    inputs: Tensors = (ROWS,)
    other_arguments: Sequence[tuple[Any, ...]] = ()  # of further instances
    least_samples: int = 1  # how many of torch's own samples must use it

    def __str__(self) -> str:
        return self.name

    def of(self, nn: Any) -> torch.nn.Module:
        """The instance of the class in a module."""
        made: torch.nn.Module = getattr(nn, self.name)(*self.arguments, **self.keywords)
        return made


Run = Callable[[], Tensors]


@dataclass(frozen=True, kw_only=True)
class OperatorInfo:
    """All test data of an operator, forward and backward."""

    # Differentiable calls, for derivatives, transforms, compilers and decompositions.
    calls: Sequence[Call] = ()
    product: str = "Ascend910B"  # its checks accept them in float32
    functions: Sequence[FunctionCase] = ()
    modules: Sequence[ModuleCase] = ()
    kernels: Sequence[Kernel] = ()  # for an elementwise operator
    # Overloads and their schemas: a text, or the name of ATen's operator with the same arguments.
    schemas: Mapping[str, str] = field(default_factory=dict)
    # Calls that fail, and words of the error's text.
    errors: Mapping[str, tuple[Callable[[], Any], Sequence[str]]] = field(default_factory=dict)
    # Calls on tensors that are large enough for the memory pool; for an elementwise operator, in addition to its
    # kernels'.
    memory: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    # For operators that are not elementwise: repeatable calls, for soaks and faults; and overloads with their
    # arguments, for comparison with an NPU. Both in a dtype.
    runs: Callable[[torch.dtype], Iterable[tuple[str, Run]]] = lambda dtype: ()
    npu: Callable[[torch.dtype], Iterable[tuple[str, Callable[..., Any], Sequence[Any]]]] = lambda dtype: ()
    npu_functions: Mapping[str, tuple[Callable[..., Tensor], Sequence[tuple[int, ...]]]] = field(default_factory=dict)
    # True if it was added after the bars were set: --quick skips some of it, and such operators share the fuzzer's ten
    # minutes.
    later: bool = False

    def kernels_for(self, user: str) -> list[Kernel]:
        """Its kernels for one of EVERYONE."""
        return [kernel for kernel in self.kernels if user in kernel.used_by]


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random numbers."""
    return torch.randn(shape).to(dtype)


def with_gradients(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Run:
    """The function's results, and the gradients of the first."""

    def run() -> tuple[Tensor, ...]:
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
        results = as_tuple(function(*leaves))
        return *(result.detach() for result in results), *torch.autograd.grad(results[0].sum(), leaves)

    return run


def _call_of(kernel: Kernel) -> Call:
    # Without the kernel itself, so that compilers only see the operator.
    operator, arguments, named = getattr(torch.ops.aclnn, kernel.operator), kernel.arguments, dict(kernel.named)
    shape = (3, 4) if kernel.reads == 1 else (4, 3)

    def function(*tensors: Tensor) -> Tensor:
        result: Tensor = operator(*arguments(*tensors), **named)
        return result

    return Call(function, [shape] * kernel.reads, [None] * kernel.reads, kernel.name)


def elementwise_calls(kernels: Iterable[Kernel], functions: Iterable[FunctionCase]) -> list[Call]:
    """The differentiable calls of kernels, of functions, also in place, and of a function of a number."""
    import aclnn_torch.functional

    variants = [variant for case in functions for variant in case.variants(aclnn_torch.functional, others=False)]
    name, first = variants[0]
    return [
        *(_call_of(kernel) for kernel in kernels if "tests" in kernel.used_by),
        *(Call(function, [(3, 4)], [None], f"F.{name}") for name, function in variants),
        Call(first, [()], [None], f"F.{name} of a number"),
    ]
