"""Every operator of torch.ops.aclnn, forward and backward, as a call that can be made again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import aclnn_torch  # noqa: F401  (registers the operators)

aclnn = torch.ops.aclnn

Run = Callable[[], tuple[Tensor, ...]]


def with_gradients(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Run:
    """The function's results, and the gradients of the first."""

    def run() -> tuple[Tensor, ...]:
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
        results = function(*leaves)
        results = (results,) if isinstance(results, Tensor) else results
        return *(result.detach() for result in results), *torch.autograd.grad(results[0].sum(), leaves)

    return run


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Every operator, on tensors that are large enough for the memory pool where that is cheap."""
    generator = torch.Generator().manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    x = some(256, 160)
    yield "elu", with_gradients(lambda x: aclnn.elu(x, 1.5, 1.0, 2), x)
    yield "elu_", lambda: (aclnn.elu_(x.clone(), 1.5, 1.0, 2),)
    yield "elu_backward", with_gradients(lambda g, y: aclnn.elu_backward(g, 1.5, 1.0, 1.0, False, y), x, x + 1)
    yield "selu", with_gradients(aclnn.selu, x)
    yield "selu_", lambda: (aclnn.selu_(x.clone()),)
    yield "selu_backward", with_gradients(aclnn.selu_backward, x, x + 1)
    yield "silu", with_gradients(aclnn.silu, x)
    yield "silu_backward", with_gradients(aclnn.silu_backward, x, x + 1)
    yield "gelu", with_gradients(aclnn.gelu, x)
    yield "gelu_backward", with_gradients(aclnn.gelu_backward, x, x + 1)
    yield "layer_norm", with_gradients(lambda x, w, b: aclnn.layer_norm(x, [160], w, b, 1e-5), x, some(160), some(160))
    yield "rms_norm", with_gradients(aclnn.rms_norm, x, some(160))
    rstd = torch.rand(256, 1, generator=generator)
    yield "rms_norm_grad", lambda: aclnn.rms_norm_grad(x, x, rstd, some(160).fill_(1))
    target = torch.arange(256) % 160
    yield "cross_entropy_loss", with_gradients(lambda x: aclnn.cross_entropy_loss(x, target), x)
    log_prob = torch.log_softmax(x.float(), 1).to(dtype)
    grad = torch.ones(1).to(dtype)
    yield "cross_entropy_loss_grad", lambda: (aclnn.cross_entropy_loss_grad(grad, log_prob, target),)
    for name, image, weight in (
        ("direct", some(2, 2, 7, 7), some(2, 2, 3, 3)),
        ("products", some(2, 16, 19, 19), some(32, 16, 3, 3)),
    ):
        args = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        bias = some(weight.shape[0])
        yield (
            f"convolution ({name})",
            with_gradients(lambda x, w, b, args=args: aclnn.convolution(x, w, b, *args), image, weight, bias),
        )
