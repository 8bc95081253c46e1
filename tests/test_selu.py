"""Properties specific to SELU, in addition to tests/test_operators.py."""

from __future__ import annotations

import pytest
import torch

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks

ops = torch.ops.aclnn

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805


def test_zero_is_on_the_negative_branch() -> None:
    result = torch.tensor([0.0, -0.0, 1e-30, -SCALE * ALPHA, float("nan")])
    gradient = ops.selu_backward(torch.ones(5), result)
    torch.testing.assert_close(gradient, torch.tensor([1.7580993, 1.7580993, 1.0507010, 0.0, 1.0507010]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 2, 19, 20, -1, -2, -100], dtype=dtype)
    # 20 * 1.05... exceeds 21; every negative number gives a fraction above -2.
    assert ops.selu(x).tolist() == [0, 1, 2, 19, 21, -1, -1, -1]
    g = torch.tensor([1, 2, 3, 10, 0, 4, 5, 0], dtype=dtype)
    y = torch.tensor([1, 0, -1, 5, 7, -1, 0, 3], dtype=dtype)
    # g * 1.0507 or g * (y + 1.7581), to the nearest integer.
    assert ops.selu_backward(g, y).tolist() == [1, 4, 2, 11, 0, 3, 9, 0]


def test_second_use_of_the_graph_is_refused_as_torchs() -> None:
    x = torch.randn(3, requires_grad=True)
    y = F.selu(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_bfloat16_before_atlas_a2() -> None:
    with aclnn_torch.product("Ascend310P"):
        operator_checks.check_error(
            lambda: ops.selu(torch.ones(2).bfloat16()), ["BFLOAT16", "Ascend310P", "FLOAT, FLOAT16", "Ascend910B"]
        )


def test_any_rank() -> None:
    x = torch.randn([1] * 9)
    torch.library.opcheck(ops.selu.default, (x,))
    torch.library.opcheck(ops.selu_backward.default, (x, x))
    torch.testing.assert_close(ops.selu(x), torch.selu(x))


def test_what_the_gradient_needs_is_the_result() -> None:
    x = torch.randn(3, requires_grad=True) * 1
    F.selu(x, inplace=True)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()
