"""Properties specific to Softplus, in addition to tests/test_operators.py."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as TF

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks

ops = torch.ops.aclnn


def test_far_from_zero(host_product: None) -> None:
    """Small results do not underflow early, and a threshold beyond the exponential's range works."""
    x = torch.tensor([-80.0, -100.0, -20.0])
    exact = torch.log1p(torch.exp(x.double()))
    torch.testing.assert_close(ops.softplus(x).double(), exact, rtol=1e-6, atol=2e-45)
    x = torch.tensor([200.0, 3e38])
    assert torch.equal(ops.softplus(x, 1, math.inf), x)  # torch's is inf
    assert torch.equal(ops.softplus_backward(torch.ones(2), x, 1, math.inf), torch.ones(2))
    x = torch.tensor([math.inf, -math.inf, math.nan])
    torch.testing.assert_close(ops.softplus(x), TF.softplus(x), equal_nan=True)


@pytest.mark.parametrize("beta", [0.5, 2.0, -1.0])
def test_second_derivatives_on_either_side_of_the_threshold(beta: float, host_product: None) -> None:
    for x in (torch.tensor([-1.0, 0.5, 3.0]), torch.tensor([4.0, 6.0]), torch.tensor([-4.0, -6.0])):
        results = []
        for function in (F.softplus, TF.softplus):
            leaf = x.double().requires_grad_()
            (first,) = torch.autograd.grad(function(leaf, beta, 1.75).sum(), leaf, create_graph=True)
            results.append((first.detach(), *torch.autograd.grad(first.sum(), leaf)))
        torch.testing.assert_close(*results)


def test_numbers_of_any_kind() -> None:
    x = torch.linspace(-2, 2, 5)
    expected = F.softplus(x, 2.0, 3.0)
    assert torch.equal(F.softplus(x, 2, 3), expected)
    assert torch.equal(F.softplus(x, torch.tensor(2.0), 3), expected)
    with pytest.raises(TypeError, match="softplus: beta is 'soft', expected a number"):
        F.softplus(x, "soft")  # type: ignore[arg-type]


def test_no_gradient_on_ascend310p() -> None:
    with aclnn_torch.product("Ascend310P"):
        x = torch.randn(3, requires_grad=True)
        y = F.softplus(x)
        operator_checks.check_error(
            lambda: y.sum().backward(),
            ["aclnnSoftplusBackward", "Ascend310P"],
            561003,
            "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
        )
