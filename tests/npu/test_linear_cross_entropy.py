"""The cross entropy of a linear layer on an NPU: by CANN's three functions, or composed if they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as TF
import torch_npu  # noqa: F401  (brings the device)
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch.functional as F
from aclnn_torch import _C

# On other products the loss is composed.
HAS_FUNCTIONS = _C.product_of("npu") in ("Ascend910B", "Ascend910_93", "host")
NARROW = (torch.float16, torch.bfloat16)
OPTIONS: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum, weights": {"reduction": "sum", "weight": True},
    "none, bias": {"reduction": "none", "bias": True},
    "mean, everything": {"weight": True, "bias": True, "ignore_index": 2},
    "mean, smoothing": {"label_smoothing": 0.2},
}


@contextmanager
def calls() -> Iterator[set[str]]:
    """The project's operators that run."""
    names: set[str] = set()

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, called: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            if called.namespace == "aclnn":
                names.add(called._opname)
            return called(*arguments, **(keywords or {}))

    with Calls():
        yield names


def outcome(function: Any, tensors: list[Tensor], target: Tensor, **keywords: Any) -> list[Tensor]:
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    bias = leaves[2] if len(leaves) > 2 else None
    loss = function(leaves[0], leaves[1], target, linear_bias=bias, **keywords)
    incoming = torch.linspace(-1, 2, loss.numel()).bfloat16().reshape(loss.shape).to(loss)
    return [loss.detach(), *torch.autograd.grad(loss, leaves, incoming)]


def in_torch(x: Tensor, w: Tensor, target: Tensor, linear_bias: Tensor | None = None, **keywords: Any) -> Tensor:
    return TF.cross_entropy(TF.linear(x, w, linear_bias), target, **keywords)


@pytest.mark.parametrize("dtype", [*NARROW, torch.float32], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_values(name: str, dtype: torch.dtype) -> None:
    keywords = dict(OPTIONS[name])
    x, w, b = torch.randn(37, 24), torch.randn(150, 24) / 5, torch.randn(150)
    tensors = [tensor.to(dtype) for tensor in (x, w, *([b] if keywords.pop("bias", False) else []))]
    target = torch.arange(37) * 4
    ignored = keywords.get("ignore_index", -100)
    target[1::5] = ignored
    weight = torch.linspace(0.5, 2, 150) if keywords.pop("weight", False) else None
    with calls() as names:
        moved = [tensor.npu() for tensor in tensors]
        of_classes = None if weight is None else weight.npu()
        got = outcome(F.linear_cross_entropy, moved, target.npu(), weight=of_classes, **keywords)
    fused = HAS_FUNCTIONS and dtype in NARROW and not keywords.get("label_smoothing")
    assert ("_linear_cross_entropy" in names) is fused
    assert all(one.dtype == dtype for one in got)
    keywords["weight"] = None if weight is None else weight.double()
    exact = outcome(in_torch, [tensor.double() for tensor in tensors], target, **keywords)
    # CANN rounds logits, of up to 8, and their gradients, of up to 4; a sum over rows has as many rounding errors.
    eps = torch.finfo(dtype).eps
    terms = 37 if keywords.get("reduction") == "sum" else 4
    for one, reference in zip(got, exact, strict=True):
        torch.testing.assert_close(one.cpu().double(), reference, rtol=4 * eps, atol=8 * eps * terms)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_second_derivatives_and_a_kept_graph(dtype: torch.dtype) -> None:
    x, w, target = torch.randn(5, 4).to(dtype).npu(), torch.randn(6, 4).to(dtype).npu(), torch.arange(5).npu()
    x.requires_grad_(), w.requires_grad_()
    loss = F.linear_cross_entropy(x, w, target)
    first, again = (torch.autograd.grad(loss, (x, w), retain_graph=True) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    gradient = torch.autograd.grad(loss, w, create_graph=True)[0]
    (second,) = torch.autograd.grad(gradient.float().square().sum(), x)
    wide = [tensor.detach().cpu().double().requires_grad_() for tensor in (x, w)]
    exact = torch.autograd.grad(in_torch(*wide, target.cpu()), wide[1], create_graph=True)[0]
    (expected,) = torch.autograd.grad(exact.square().sum(), wide[0])
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(second.cpu().double(), expected, rtol=8 * eps, atol=8 * eps)


def test_no_rows() -> None:
    x, w = torch.zeros(0, 4).half().npu(), torch.ones(6, 4).half().npu()
    target = torch.zeros(0, dtype=torch.int64).npu()
    loss, of_rows, of_matrix = outcome(F.linear_cross_entropy, [x, w], target)
    assert loss.isnan()
    assert of_rows.shape == (0, 4)
    assert not of_matrix.any()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_autocast(dtype: torch.dtype) -> None:
    x, w, target = torch.randn(5, 4), torch.randn(6, 4), torch.arange(5)
    leaves = [x.npu().requires_grad_(), w.npu().requires_grad_()]
    with torch.autocast("npu", dtype=dtype), calls() as names:
        loss = F.linear_cross_entropy(leaves[0], leaves[1], target.npu())
    assert ("_linear_cross_entropy" in names) is HAS_FUNCTIONS
    assert loss.dtype == torch.float32
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(loss.cpu(), in_torch(x, w, target), rtol=4 * eps, atol=8 * eps)
    assert all(gradient.dtype == torch.float32 for gradient in torch.autograd.grad(loss, leaves))
