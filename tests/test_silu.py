"""Properties specific to SiLU, in addition to tests/test_operators.py."""

from __future__ import annotations

import torch
import torch.nn.functional as TF

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks

ops = torch.ops.aclnn


def test_far_from_zero(host_product: None) -> None:
    """Small results do not underflow early, and infinities are as in torch."""
    x = torch.tensor([-90.0, -100.0, 200.0])
    exact = x.double() * torch.sigmoid(x.double())
    torch.testing.assert_close(ops.silu(x).double(), exact, rtol=1e-6, atol=2e-43)
    x = torch.tensor([float("inf"), -float("inf"), float("nan")])
    torch.testing.assert_close(ops.silu(x), TF.silu(x), equal_nan=True)
    ours, torchs = ops.silu_backward(x.new_ones(3), x), torch.ops.aten.silu_backward(x.new_ones(3), x)
    torch.testing.assert_close(ours, torchs, equal_nan=True)


def test_no_gradient_on_ascend310p() -> None:
    with aclnn_torch.product("Ascend310P"):
        x = torch.randn(3, requires_grad=True)
        y = F.silu(x)
        operator_checks.check_error(
            lambda: y.sum().backward(), ["aclnnSiluBackward", "Ascend310P"], 561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR"
        )
