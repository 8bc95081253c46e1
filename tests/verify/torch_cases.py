"""Tests through torch_npu: every operator and the derivatives of every function, compared with the CPU's.

Neither of two correct results is known to be closer to the exact one, so the bounds are torch's own for results of two
devices, those of torch.testing.assert_close.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from tests.operators import ELEMENTWISE, OPERATORS
from tests.operators._info import as_tuple
from tests.verify.observation import Case, Observation

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def on_npu(value: Any) -> Any:
    """The same on the NPU, a view as the same view."""
    if isinstance(value, Tensor):
        base = torch.empty(0, dtype=value.dtype).set_(value.detach().untyped_storage())
        moved = base.to("npu").as_strided(value.shape, value.stride(), value.storage_offset())
        return moved.requires_grad_(value.requires_grad)
    return type(value)(on_npu(item) for item in value) if isinstance(value, (tuple, list)) else value


def attempt(call: Callable[[], Any]) -> tuple[Observation, tuple[Tensor, ...]]:
    """A call's results on the CPU, or the status of its error."""
    try:
        results = tuple(result.detach().cpu() for result in as_tuple(call()) if result is not None)
        return Observation("0"), results
    except aclnn_torch.AclnnError as error:
        return Observation(str(error.status), str(error)), ()


def compare(function: Callable[..., Any], arguments: Sequence[Any]) -> Observation:
    """Compares a call on the NPU with the same on the CPU."""
    expected, theirs = attempt(lambda: function(*arguments))
    seen, ours = attempt(lambda: function(*on_npu(tuple(arguments))))
    if seen.outcome != expected.outcome:
        seen.wrong = f"the CPU's outcome is {expected.outcome} {expected.text}".strip()
    for result, exact in zip(ours, theirs, strict=False):
        if exact.is_floating_point():
            spacing = torch.finfo(exact.dtype).eps * exact.double().abs().clamp_min(torch.finfo(exact.dtype).tiny)
            distance = ((result.double() - exact.double()).abs() / spacing).nan_to_num(0.0)
            largest = float(distance.max()) if distance.numel() else 0.0
            seen.errors[_name(exact.dtype)] = max(largest, seen.errors.get(_name(exact.dtype), 0.0))
        try:
            torch.testing.assert_close(result, exact, equal_nan=True)
        except AssertionError as error:
            seen.wrong = str(error)
    return seen


def _derivatives(function: Callable[..., Tensor], shapes: Sequence[tuple[int, ...]]) -> Observation:
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator) for shape in shapes]

    def first(*tensors: Tensor) -> tuple[Tensor, ...]:
        leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
        result = function(*leaves)
        direction = torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(result.device)
        return result, *torch.autograd.grad(result, leaves, direction)

    return compare(first, values)


def cases(product: str, release: str) -> Iterator[Case]:
    """All cases; the operators on CPU tensors follow the rules of the product and of the release of CANN."""
    importlib.import_module("torch_npu")
    torch.npu.conv.allow_hf32 = False  # the CPU's kernels compute in FLOAT
    aclnn_torch.set_product(product)
    aclnn_torch.set_cann_release(release)
    torch.manual_seed(0)
    for dtype in FLOATS:
        g, x = torch.randn(2, 64, 33).to(dtype).unbind()
        for info in ELEMENTWISE.values():
            for kernel in info.kernels_for("tests"):
                yield Case(f"torch/{kernel}/{_name(dtype)}", partial(compare, kernel, (g, x)[-kernel.reads :]))
        for info in OPERATORS.values():
            try:
                for name, operator, arguments in info.npu(dtype):
                    yield Case(f"torch/{name}/{_name(dtype)}", partial(compare, operator, arguments))
            except aclnn_torch.AclnnError:
                continue  # the product does not have the dtype
    for info in ELEMENTWISE.values():
        for function in info.functions:
            for name, variant in function.variants(F):
                yield Case(f"derivatives/{name}", partial(_derivatives, variant, [(5, 4)]))
    for info in OPERATORS.values():
        for name, (operator, shapes) in info.npu_functions.items():
            yield Case(f"derivatives/{name}", partial(_derivatives, operator, shapes))
