"""What every differentiable operator must survive, checked on its own sample calls.

An operator's test module gives a list of :class:`Call`; the checks here run each of them through PyTorch's own tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

# opcheck's tests, all of them.
OPCHECK_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


@dataclass
class Call:
    """One call of a function: tensor arguments by shape, the others as they are."""

    function: Callable[..., Tensor]
    shapes: Sequence[tuple[int, ...]]
    arguments: Sequence[Any] = ()  # None stands where the next tensor goes
    name: str = ""
    differentiable: Sequence[bool] = field(default_factory=list)

    def tensors(self, dtype: torch.dtype, requires_grad: bool = False, seed: int = 0) -> list[Tensor]:
        """Values away from 0, where second derivatives jump."""
        generator = torch.Generator().manual_seed(seed)
        result = []
        for shape in self.shapes:
            value = torch.randn(shape, generator=generator, dtype=torch.float64)
            value = torch.where(value.abs() < 0.05, value.sign() * 0.05 + value, value)
            result.append(value.to(dtype).requires_grad_(requires_grad))
        return result

    def on(self, *tensors: Tensor) -> Tensor:
        """The call on these tensors."""
        rest = iter(tensors)
        arguments = [next(rest) if argument is None else argument for argument in self.arguments]
        return self.function(*arguments)

    def __str__(self) -> str:
        return self.name


def check_gradients(call: Call) -> None:
    """First and second derivatives, reverse, forward, and one over the other, against finite differences."""
    tensors = call.tensors(torch.float64, requires_grad=True)
    torch.autograd.gradcheck(call.on, tensors, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(call.on, tensors, check_fwd_over_rev=True, check_rev_over_rev=True)


def check_transforms(call: Call) -> None:
    """torch.func.grad, vmap (over each argument alone and over all), vmap over grad, jacrev and jacfwd, jvp."""
    tensors = call.tensors(torch.float64)
    positions = tuple(range(len(tensors)))

    def total(*args: Tensor) -> Tensor:
        return call.on(*args).square().sum()

    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    expected = torch.autograd.grad(total(*leaves), leaves)
    torch.testing.assert_close(torch.func.grad(total, argnums=positions)(*tensors), expected)

    torch.testing.assert_close(
        torch.func.jacrev(call.on, argnums=positions)(*tensors), torch.func.jacfwd(call.on, argnums=positions)(*tensors)
    )

    batched = [torch.stack([call.tensors(torch.float64, seed=seed)[i] for seed in range(3)]) for i in positions]
    for chosen in [positions, *[(i,) for i in positions]]:
        for dim in (0, -1):
            in_dims = tuple(dim if i in chosen else None for i in positions)
            args = [batched[i].movedim(0, dim) if i in chosen else tensors[i] for i in positions]
            single = [[batched[i][k] if i in chosen else tensors[i] for i in positions] for k in range(3)]
            torch.testing.assert_close(
                torch.vmap(call.on, in_dims)(*args), torch.stack([call.on(*one) for one in single])
            )
            gradients = torch.vmap(torch.func.grad(total, argnums=positions), in_dims)(*args)
            for i in positions:
                each = torch.stack([torch.func.grad(total, argnums=i)(*one) for one in single])
                torch.testing.assert_close(gradients[i], each)
    nested = torch.vmap(torch.vmap(call.on))(*[tensor.unsqueeze(0).expand(2, *tensor.shape) for tensor in batched])
    torch.testing.assert_close(nested[1], torch.vmap(call.on)(*batched))


def check_compilers(call: Call, dtype: torch.dtype) -> None:
    """torch.compile without graph breaks and with dynamic shapes, and torch.export, forward and backward."""
    torch._dynamo.reset()
    compiled = torch.compile(call.on, fullgraph=True, dynamic=True)
    for seed in range(2):
        eager, traced = (call.tensors(dtype, requires_grad=True, seed=seed) for _ in range(2))
        expected, got = call.on(*eager), compiled(*traced)
        torch.testing.assert_close(got, expected)
        expected.sum().backward()
        got.sum().backward()
        for a, b in zip(traced, eager, strict=True):
            torch.testing.assert_close(a.grad, b.grad)

    class Module(torch.nn.Module):
        def forward(self, *tensors: Tensor) -> Tensor:
            return call.on(*tensors)

    tensors = tuple(call.tensors(dtype))
    batch = torch.export.Dim("batch")
    shapes = None
    if all(tensor.dim() > 0 and tensor.shape[0] > 1 for tensor in tensors):
        shapes = {"tensors": tuple({0: batch} for _ in tensors)}
    program = torch.export.export(Module(), tensors, dynamic_shapes=shapes)
    torch.testing.assert_close(program.module()(*tensors), call.on(*tensors))


def check_compiled_autograd(call: Call, dtype: torch.dtype) -> None:
    """The backward pass itself compiled."""
    torch._dynamo.reset()
    eager, traced = (call.tensors(dtype, requires_grad=True) for _ in range(2))
    call.on(*eager).sum().backward()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        call.on(*traced).sum().backward()
    for a, b in zip(traced, eager, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
