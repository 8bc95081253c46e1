"""Properties specific to GELU, in addition to tests/test_operators.py."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as TF

import aclnn_torch

ops = torch.ops.aclnn

FORMULAS = ("none", "tanh")
EACH_FORMULA = pytest.mark.parametrize("approximate", FORMULAS)


@EACH_FORMULA
def test_far_from_zero(approximate: str) -> None:
    """Results below zero keep their digits; inf has a value but no derivative, -inf neither, as 0 * inf has none."""
    x = torch.tensor([-6.0, -9.0, -1e20, 1e20])
    exact = TF.gelu(x.double(), approximate=approximate)
    if approximate == "none":
        exact = x.double() * torch.special.erfc(x.double() * -(0.5**0.5)) / 2
    torch.testing.assert_close(ops.gelu(x, approximate=approximate).double()[[0, 3]], exact[[0, 3]], rtol=1e-5, atol=0)
    assert ops.gelu_backward(torch.ones(4), x, approximate=approximate)[2:].tolist() == [0.0, 1.0]
    x = torch.tensor([float("inf"), -float("inf"), float("nan")])
    torch.testing.assert_close(ops.gelu(x, approximate=approximate), torch.where(x > 0, x, torch.nan), equal_nan=True)
    assert ops.gelu_backward(x.new_ones(3), x, approximate=approximate).isnan().all()


def test_digits_of_the_normal_distribution() -> None:
    """torch's own float32 loses them to cancellation from -4 on."""
    x = torch.linspace(-9, 0, 1000)
    exact = x.double() * torch.special.erfc(x.double() * -(0.5**0.5)) / 2
    torch.testing.assert_close(ops.gelu(x).double(), exact, rtol=50 * 2**-24, atol=0)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_unknown_formula(device: str) -> None:
    x = torch.ones(2, device=device)
    text = 'approximate is "erf", expected "none" or "tanh"'
    for call in (lambda: ops.gelu(x, approximate="erf"), lambda: ops.gelu_backward(x, x, approximate="erf")):
        with pytest.raises(aclnn_torch.AclnnError, match=text) as caught:
            call()
        assert caught.value.status == 161002
