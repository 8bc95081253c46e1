"""Every operator inside a package that AOTInductor compiled ahead of time."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

import aclnn_torch  # noqa: F401  (registers the operators)

ops = torch.ops.aclnn


class EveryOperator(torch.nn.Module):
    """Calls each operator, forwards and gradients, on tensors that the others made."""

    def forward(self, x: Tensor, weight: Tensor, gamma: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        image = ops.convolution(x, weight, None, *geometry)
        active = ops.selu(ops.elu(image, 0.5, 1.0, 1.0))
        normal, rstd = ops.rms_norm(active, gamma, 1e-6)
        logits = normal.flatten(1)
        loss, log_prob, _, _ = ops.cross_entropy_loss(logits, target)
        grad = ops.cross_entropy_loss_grad(torch.ones_like(loss), log_prob, target).reshape(normal.shape)
        dx, dgamma = ops.rms_norm_grad(grad, active, rstd, gamma)
        grad = ops.selu_backward(dx, active)
        grad = ops.elu_backward(grad, 0.5, 1.0, 1.0, False, image)
        dx, dweight, dbias = ops.convolution_backward(grad, x, weight, [4], *geometry, [True, True, True])
        return loss, dgamma, dx, dweight, dbias


def test_every_operator(tmp_path: Path) -> None:
    torch.manual_seed(0)
    arguments = (torch.randn(2, 3, 4, 5), torch.randn(4, 3, 3, 3), torch.randn(5), torch.tensor([3, 70]))
    module = EveryOperator()
    calls = {"elu", "elu_backward", "selu", "selu_backward", "convolution", "convolution_backward"}
    calls |= {"rms_norm", "rms_norm_grad", "cross_entropy_loss", "cross_entropy_loss_grad"}
    program = torch.export.export(module, arguments)
    found = {node.target._opname for node in program.graph.nodes if "aclnn" in str(node.target)}
    assert found == calls
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "every.pt2"))
    loaded = torch._inductor.aoti_load_package(package)
    for got, expected in zip(loaded(*arguments), module(*arguments), strict=True):
        torch.testing.assert_close(got, expected)
