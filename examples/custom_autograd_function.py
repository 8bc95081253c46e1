"""A user-defined torch.autograd.Function around aclnn operators, with a check of its gradients.

ELU's gradient can be computed from its result, so the input need not be saved for the backward pass. This example
implements that by hand; aclnn_torch.functional.elu already does it.

    python examples/custom_autograd_function.py
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

import aclnn_torch


class EluFromResult(torch.autograd.Function):
    """ELU that saves its result, not its input, for the backward pass; alpha must not be negative."""

    # Inside forward and backward, autograd does not record, so the operators are called as plain functions.
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        """Returns elu(x)."""
        result = torch.ops.aclnn.elu(x, alpha)
        # save_for_backward detects in-place changes before the backward pass and avoids a reference cycle of the
        # result; an attribute ctx.result would do neither.
        ctx.save_for_backward(result)
        ctx.alpha = alpha
        return result

    # This backward is not differentiable: that would need another formula. once_differentiable makes autograd raise an
    # error instead of silently dropping a part of the second derivative.
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        """Returns one gradient per argument of forward; alpha, a number, has none."""
        (result,) = ctx.saved_tensors
        return torch.ops.aclnn.elu_backward(grad_output, ctx.alpha, 1, 1, True, result), None


def prove() -> dict[str, bool]:
    """Checks the function against autograd; returns the results of the checks."""
    torch.manual_seed(0)
    x = torch.randn(1000, requires_grad=True)
    upstream = torch.randn(1000, requires_grad=True)
    ours = EluFromResult.apply(x, 1.5)
    plain = torch.nn.functional.elu(x, 1.5)
    (gradient,) = torch.autograd.grad(ours, x, upstream, create_graph=True)
    (expected,) = torch.autograd.grad(plain, x, upstream)
    held = {
        "result equals torch's": torch.allclose(ours, plain, rtol=1e-6, atol=1e-6),
        "gradient equals torch's": torch.allclose(gradient, expected, rtol=1e-6, atol=1e-6),
    }
    try:
        gradient.sum().backward()
        held["a second derivative is refused"] = False
    except RuntimeError as error:
        held["a second derivative is refused"] = "once_differentiable" in str(error)

    # Finite differences need float64, for which only the product `host` computes ELU's gradient.
    product = aclnn_torch.get_product()
    aclnn_torch.set_product("host")
    try:
        points = torch.tensor([-3.0, -1.0, -0.1, 0.1, 2.0], dtype=torch.float64, requires_grad=True)
        held["gradcheck in float64"] = torch.autograd.gradcheck(
            EluFromResult.apply, (points, 1.5), raise_exception=False
        )
    finally:
        aclnn_torch.set_product(product)
    return held


def main() -> int:
    """Prints the checks; returns 0 if all of them pass."""
    held = prove()
    for claim, holds in held.items():
        print(f"{'ok    ' if holds else 'FAILED'} {claim}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
