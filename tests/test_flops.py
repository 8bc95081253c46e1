"""The counts of torch.utils.flop_counter, compared with those of torch's own functions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import aclnn_torch
import aclnn_torch.functional as F
from tests.builds import ROOT
from tests.operators import ELEMENTWISE
from tests.operators.linear_cross_entropy import in_three


def counted(run: Callable[[], Any]) -> dict[str, int]:
    """Operations by operator, ours and torch's."""
    with FlopCounterMode(display=False) as counter:
        run()
    return {str(operator).split(".")[1]: count for operator, count in counter.get_flop_counts()["Global"].items()}


@pytest.mark.parametrize("mask", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions(dims: int, transposed: bool, groups: int, mask: tuple[bool, bool]) -> None:
    name = f"conv{'_transpose' if transposed else ''}{dims}d"
    shape = (4, 6 // groups) if transposed else (6, 4 // groups)

    def run(functions: Any) -> None:
        x = torch.ones(2, 4, *[7] * dims, requires_grad=mask[0])
        weight = torch.ones(*shape, *[3] * dims, requires_grad=mask[1])
        getattr(functions, name)(x, weight, torch.ones(6), stride=2, padding=1, groups=groups).sum().backward()

    got, expected = counted(lambda: run(F)), counted(lambda: run(torch.nn.functional))
    assert set(expected) == {"convolution", "convolution_backward"}
    assert got == expected


def test_rounded_factors_count_as_others() -> None:
    x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3, requires_grad=True)
    plain, rounded = (
        counted(lambda kind=kind: F.conv2d(x, weight, cube_math_type=kind).sum().backward()) for kind in (0, 3)
    )
    assert plain == rounded
    assert all(plain.values())


@pytest.mark.parametrize("mask", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy(bias: bool, mask: tuple[bool, bool]) -> None:
    """The matrix products: one more in 16 bits, because the logits are recomputed."""
    target = torch.tensor([0, 3, 1])

    def run(function: Callable[..., Tensor], dtype: torch.dtype) -> None:
        x = torch.ones(3, 4, dtype=dtype, requires_grad=mask[0])
        weight = torch.ones(5, 4, dtype=dtype, requires_grad=mask[1])
        function(x, weight, target, torch.ones(5, dtype=dtype) if bias else None).backward()

    def torchs(x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None) -> Tensor:
        return torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, weight, bias), target)

    def ours(x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear_cross_entropy(x, weight, target, linear_bias=bias)

    expected = sum(counted(lambda: run(torchs, torch.float32)).values())
    assert counted(lambda: run(ours, torch.float32)) == {"_linear_cross_entropy": expected}
    again = 2 * 3 * 4 * 5
    assert counted(lambda: run(ours, torch.bfloat16)) == {"_linear_cross_entropy": expected + again}


def test_a_vocabulary_on_one_of_several_devices() -> None:
    found = counted(lambda: in_three(torch.ones(3, 4).half(), torch.ones(5, 4).half(), torch.tensor([0, 3, 1])))
    product = 2 * 3 * 4 * 5
    assert found == {"fused_linear_online_max_sum": product, "fused_linear_cross_entropy_loss_grad": 3 * product}


def model() -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        *(case.of(torch.nn) for info in ELEMENTWISE.values() for case in info.modules),
        torch.nn.ConvTranspose2d(4, 4, 2, stride=2),
        torch.nn.LayerNorm(12),
        torch.nn.Conv2d(4, 2, 3, groups=2),
        torch.nn.Flatten(),
        torch.nn.RMSNorm(200),
        torch.nn.Linear(200, 3),
    )


def test_a_converted_network() -> None:
    """Module by module; torch counts nothing for activations, norms and losses, and neither do we."""

    def step(network: torch.nn.Module, loss: torch.nn.Module) -> dict[str, dict[str, int]]:
        x: Tensor = torch.ones(5, 1, 6, 6)
        with FlopCounterMode(display=False) as counter:
            loss(network(x), torch.tensor([0, 1, 2, 0, 1])).backward()
        return {
            name: {str(operator).split(".")[1]: count for operator, count in counts.items()}
            for name, counts in counter.get_flop_counts().items()
        }

    plain, converted = model(), model()
    aclnn_torch.convert(converted)
    expected = step(plain, torch.nn.CrossEntropyLoss())
    got = step(converted, aclnn_torch.nn.CrossEntropyLoss())
    assert got == expected
    assert set(got["Global"]) == {"convolution", "convolution_backward", "addmm", "mm"}


# The counter is imported by the program, before or after the package, or anew.
COUNTER = "torch.utils.flop_counter"
ORDERS = {
    "after": "import aclnn_torch; assert NAME not in sys.modules; importlib.import_module(NAME)",
    "before": "importlib.import_module(NAME); import aclnn_torch",
    "reloaded": "import aclnn_torch; importlib.reload(importlib.import_module(NAME))",
}


@pytest.mark.parametrize(
    "order", ["after", *(pytest.param(order, marks=pytest.mark.test_all) for order in ("before", "reloaded"))]
)
def test_the_counter_is_imported_by_who_counts(order: str) -> None:
    """With triton installed, the counter imports it; a Python without the GIL then enables it, if triton wants that."""
    code = f"""
import importlib, sys, torch
NAME = {COUNTER!r}
{ORDERS[order]}
with sys.modules[NAME].FlopCounterMode(display=False) as counter:
    aclnn_torch.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 3))
print(counter.get_total_flops())
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{2 * 2 * 3}\n"  # a product and a sum for each of three weights and two results
