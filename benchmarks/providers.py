"""Who does the work of a case: by name, something to call. All of a case's providers use the same memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import cann
from .cases import Case
from .roofline import allocate, rooflines

# The provider a bar speaks of.
OURS = "aclnn"


@dataclass(frozen=True)
class Provider:
    """Something to time: `call(*arguments)`."""

    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Field:
    """The providers of a case, and those of them that ours is held against: the best of them counts."""

    providers: dict[str, Provider]
    peers: tuple[str, ...]


@contextlib.contextmanager
def providers(case: Case) -> Iterator[Field]:
    """Makes the providers of a case, first checking that ours and ATen's agree."""
    with contextlib.ExitStack() as stack:
        if case.mode == "kernel":
            yield _kernel(case, stack)
        else:
            yield {"call": _call, "forward+backward": _forward_backward}[case.mode](case)


def _call(case: Case) -> Field:
    kernel = case.kernel
    inputs = [_fill(torch.empty(case.size, dtype=case.dtype), seed) for seed in range(kernel.reads)]
    operator = getattr(torch.ops.aclnn, kernel.operator)
    found = {
        OURS: Provider(operator, kernel.arguments(*inputs)),
        "aten": Provider(kernel.peer, kernel.peer_arguments(*inputs)),
    }
    torch.testing.assert_close(*(provider.call(*provider.arguments) for provider in found.values()))
    return Field(found, ("aten",))


def _forward_backward(case: Case) -> Field:
    assert case.kernel.functions is not None
    x = _fill(torch.empty(case.size, dtype=case.dtype), 0).requires_grad_()
    upstream = _fill(torch.empty(case.size, dtype=case.dtype), 1)

    def step(function: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(function(x), x, upstream)

    ours, torchs = case.kernel.functions
    torch.testing.assert_close(step(ours), step(torchs))
    return Field({OURS: Provider(step, (ours,)), "torch": Provider(step, (torchs,))}, ("torch",))


def _kernel(case: Case, stack: contextlib.ExitStack) -> Field:
    kernel = case.kernel
    inputs = tuple(_fill(allocate(case.size, case.dtype), seed) for seed in range(kernel.reads))
    out = allocate(case.size, case.dtype)
    call = cann.Call(kernel.operator, kernel.arguments(*inputs), out)
    stack.callback(call.close)

    def run_torch() -> None:
        kernel.peer(*kernel.peer_arguments(*inputs), **{kernel.out_name: out})

    call.run()
    result = out.clone()
    run_torch()
    torch.testing.assert_close(result, out)
    traffic = rooflines(inputs, out)
    found = {
        OURS: Provider(call.run),
        "with stage 1": Provider(call.run_both_stages),
        "aten out=": Provider(run_torch),
        **{name: Provider(function) for name, function in traffic.items()},
    }
    return Field(found, tuple(traffic))


def _fill(tensor: Tensor, seed: int) -> Tensor:
    """Fills a tensor with numbers on either side of zero."""
    return tensor.normal_(generator=torch.Generator().manual_seed(seed))
