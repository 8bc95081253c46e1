"""Who does the work of a case: by name, something to call. All of a case's providers use the same memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import cann
from .cases import Case, Kernel, Layer, noise
from .roofline import allocate, rooflines

# The provider a bar speaks of.
OURS = "aclnn"

# How far results of layers may lie apart, in units of eps at the largest of them: torch adds the up to 2^15 terms of a
# float32 gradient of a bias one by one, and 16-bit results have more than one rounding.
AGREEMENT = {torch.float32: 128, torch.bfloat16: 4, torch.float16: 4}


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
    traffic: int = 0  # bytes that a call reads and writes, where they count


@contextlib.contextmanager
def providers(case: Case) -> Iterator[Field]:
    """Makes the providers of a case, first checking that ours and ATen's agree."""
    with contextlib.ExitStack() as stack:
        kernel = case.kernel
        if isinstance(kernel, Layer):
            yield _layer(case, kernel)
        elif case.mode == "kernel":
            yield _kernel(case, kernel, stack)
        else:
            yield {"call": _call, "forward+backward": _forward_backward}[case.mode](case, kernel)


def _call(case: Case, kernel: Kernel) -> Field:
    inputs = [noise(case.shape, case.dtype, seed) for seed in range(kernel.reads)]
    operator = getattr(torch.ops.aclnn, kernel.operator)
    found = {
        OURS: Provider(operator, kernel.arguments(*inputs)),
        "aten": Provider(kernel.peer, kernel.peer_arguments(*inputs)),
    }
    torch.testing.assert_close(*(provider.call(*provider.arguments) for provider in found.values()))
    return Field(found, ("aten",))


def _forward_backward(case: Case, kernel: Kernel) -> Field:
    assert kernel.functions is not None
    step = _step((noise(case.shape, case.dtype, 0),), noise(case.shape, case.dtype, 1))
    ours, torchs = kernel.functions
    torch.testing.assert_close(step(ours), step(torchs))
    return Field({OURS: Provider(step, (ours,)), "torch": Provider(step, (torchs,))}, ("torch",))


def _kernel(case: Case, kernel: Kernel, stack: contextlib.ExitStack) -> Field:
    inputs = tuple(
        allocate(case.shape, case.dtype).copy_(noise(case.shape, case.dtype, seed)) for seed in range(kernel.reads)
    )
    out = allocate(case.shape, case.dtype)
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
    return Field(found, tuple(traffic), sum(tensor.nbytes for tensor in (*inputs, out)))


def _layer(case: Case, layer: Layer) -> Field:
    inputs = layer.inputs(case.shape, case.dtype)
    ours, torchs = layer.functions
    expected = torchs(*inputs)
    _check_agreement([ours(*inputs)], [expected])
    if case.mode == "layer_call":
        return Field({OURS: Provider(ours, inputs), "torch": Provider(torchs, inputs)}, ("torch",))
    step = _step(inputs, noise(tuple(expected.shape), case.dtype, 3))
    _check_agreement(step(ours), step(torchs))
    return Field({OURS: Provider(step, (ours,)), "torch": Provider(step, (torchs,))}, ("torch",))


def _step(inputs: Sequence[Tensor], upstream: Tensor) -> Callable[[Callable[..., Tensor]], tuple[Tensor, ...]]:
    """Makes what runs a function and its backward pass, for the gradient of every floating-point input."""
    wanted = [tensor.requires_grad_() for tensor in inputs if tensor.is_floating_point()]

    def step(function: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(function(*inputs), wanted, upstream)

    return step


def _check_agreement(got: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Measures differences by the largest result: a small one may be what large terms have left."""
    for ours, torchs in zip(got, expected, strict=True):
        limit = AGREEMENT[torchs.dtype] * torch.finfo(torchs.dtype).eps * torchs.abs().max().item()
        torch.testing.assert_close(ours, torchs, rtol=0, atol=limit)
