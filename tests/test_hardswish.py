"""Properties specific to Hardswish, in addition to tests/test_operators.py."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as TF

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks
from tests.operator_checks import FLOATS

ops = torch.ops.aclnn

# The ends of the curve, its zeros, large and infinite values.
SPECIAL = [-3.0, 3.0, 0.0, -0.0, -1.5, 6e37, 3e38, -3e38, math.inf]


def test_the_ends_of_the_curve_are_torchs() -> None:
    x = torch.tensor(SPECIAL)
    ours, torchs = F.hardswish(x), TF.hardswish(x.double()).float()
    assert torch.equal(ours, torchs)
    assert torch.equal(ours.signbit(), torchs.signbit())
    g = torch.full_like(x, 2.0)
    assert torch.equal(ops.hardswish_backward(g, x), torch.ops.aten.hardswish_backward(g, x))


@pytest.mark.parametrize("count", [1, 7, 64, 100])
def test_what_is_not_torchs(count: int) -> None:
    """-inf gives 0 times inf in torch; a nan has the slope of what is not less than 3, in torch if it is not in a full
    vector."""
    assert F.hardswish(torch.full((count,), -math.inf)).tolist() == [0.0] * count
    nan, g = torch.full((count,), math.nan), torch.full((count,), 3.0)
    assert F.hardswish(nan).isnan().all()
    assert ops.hardswish_backward(g, nan).tolist() == [3.0] * count


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_gradient_in_place_starts_from_the_input(dtype: torch.dtype) -> None:
    """Two inputs between -3 and 0 have the same result."""
    for base in (torch.tensor([-2.5, -0.5, -4.0, 5.0, 1.0]), torch.tensor(-2.5).expand(1)):
        results = []
        for functional in (F, TF):
            leaf = base.to(dtype, copy=True).requires_grad_()
            x = leaf * 1
            functional.hardswish(x, inplace=True)
            results.append((x.detach(), *torch.autograd.grad(x.sum(), leaf)))
        torch.testing.assert_close(*results, **operator_checks.TOLERANCE[dtype])


def test_second_derivatives_in_place(host_product: None) -> None:
    results = []
    for functional in (F, TF):
        leaf = torch.tensor([-4.0, -2.0, 0.25, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
        y = functional.hardswish(leaf * leaf - 2, inplace=True)
        (first,) = torch.autograd.grad(y.sum(), leaf, create_graph=True)
        results.append((first.detach(), *torch.autograd.grad(first.sum(), leaf)))
    torch.testing.assert_close(*results)


def test_not_on_ascend310p() -> None:
    with aclnn_torch.product("Ascend310P"):
        for inplace in (False, True):
            operator_checks.check_error(
                lambda inplace=inplace: F.hardswish(torch.ones(2), inplace=inplace),
                ["Hardswish", "Ascend310P"],
                561003,
                "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
            )
