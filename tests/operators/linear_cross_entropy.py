"""Cross entropy of a linear layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import aclnn_torch.functional as F

from ._info import ROWS, Call, FunctionCase, ModuleCase, OperatorInfo, Run, noise, with_gradients
from .cross_entropy_loss import IGNORED, some_labels

aclnn = torch.ops.aclnn


def labels_of(x: Tensor, w: Tensor, ignored: int = IGNORED) -> Tensor:
    """A label for every row; the second row is ignored, and class 0 does not occur."""
    rows = torch.arange(x.shape[0])
    return torch.where(rows == 1, ignored, (rows * 2) % (w.shape[0] - 1) + 1)


def real(x: Tensor) -> torch.dtype:
    """The dtype of losses, and of their factors."""
    return torch.promote_types(x.dtype, torch.float32)


def loss_call(name: str, bias: bool = False, weighted: bool = False, shared: bool = False, **attributes: Any) -> Call:
    """The operator on 4 rows of 3 and 5 classes; it is not differentiable in weights and factors."""

    def function(x: Tensor, w: Tensor, *b: Tensor) -> Tensor:
        weights = torch.linspace(0.5, 1.75, w.shape[0], dtype=real(x)) if weighted else None
        factors = torch.arange(x.shape[0], dtype=real(x)) * 0.75 - 0.5 if shared else None
        target = labels_of(x, w, attributes.get("ignore_index", IGNORED))
        return aclnn.linear_cross_entropy(x, w, target, *(b or [None]), weights, factors, **attributes)

    shapes: list[tuple[int, ...]] = [(4, 3), (5, 3), *([(5,)] if bias else [])]
    batched = [True, False, False][: len(shapes)]
    return Call(function, shapes, [None] * len(shapes), f"linear_cross_entropy, {name}", batched)


def function_call(name: str, bias: bool = False, **keywords: Any) -> Call:
    """The function, whose mean has a factor for its rows."""

    def function(x: Tensor, w: Tensor, *b: Tensor) -> Tensor:
        return F.linear_cross_entropy(x, w, labels_of(x, w), linear_bias=b[0] if b else None, **keywords)

    shapes: list[tuple[int, ...]] = [(4, 3), (5, 3), *([(5,)] if bias else [])]
    batched = [True, False, False][: len(shapes)]
    return Call(function, shapes, [None] * len(shapes), f"F.linear_cross_entropy, {name}", batched)


CALLS = [
    loss_call("sum"),
    loss_call("sum, factors, bias", bias=True, shared=True),
    loss_call("sum, everything", bias=True, weighted=True, shared=True, label_smoothing=0.2),
    loss_call("sum, another label ignored", ignore_index=1, weighted=True),
    loss_call("none", reduced=False),
    loss_call("none, everything", bias=True, weighted=True, reduced=False, label_smoothing=0.2),
    function_call("mean, bias", bias=True),
    function_call("none, smoothing", reduction="none", label_smoothing=0.3),
]


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Forward and backward, and CANN's three functions, each on the previous one's results."""
    x, weight, bias = (noise(*shape, dtype=dtype) for shape in ((256, 96), (160, 96), (160,)))
    target = torch.arange(256) % 160
    loss = partial(_biased_loss, target)
    yield "linear_cross_entropy", with_gradients(loss, x, weight, bias)
    if dtype in (torch.float16, torch.bfloat16):
        yield "fused_linear_online_max_sum", partial(in_three, x, weight, target)


def _biased_loss(target: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear_cross_entropy(x, weight, target, linear_bias=bias)


def in_three(x: Tensor, weight: Tensor, target: Tensor, with_logits: bool = False) -> tuple[Tensor, ...]:
    """All results of CANN's three functions on one device with all classes."""
    largest, total, predicted, mask, masked, logits = aclnn.fused_linear_online_max_sum(
        x, weight, target, 0, weight.shape[0], with_logits
    )
    loss, softmax = aclnn.fused_cross_entropy_loss_with_max_sum(
        largest, total, predicted, 0.0, logits if with_logits else None
    )
    gradients = aclnn.fused_linear_cross_entropy_loss_grad(
        *(torch.ones_like(loss), x, weight, mask, masked, 0.0),
        *((None, None, softmax) if with_logits else (largest, total)),
    )
    return largest, total, predicted, mask, masked, logits, loss, softmax, *gradients


def npu(dtype: torch.dtype) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """CANN's three functions, and both modes of the gradient."""
    if dtype not in (torch.float16, torch.bfloat16):
        return
    x, weight, target = noise(11, 16, dtype=dtype), noise(128, 16, dtype=dtype), torch.arange(11) * 12
    largest, total, predicted, mask, masked, logits = aclnn.fused_linear_online_max_sum(x, weight, target, 5, 120, True)
    yield "fused_linear_online_max_sum", aclnn.fused_linear_online_max_sum, (x, weight, target, 5, 120, True)
    arguments = (largest, total, predicted, 0.0, logits)
    yield "fused_cross_entropy_loss_with_max_sum", aclnn.fused_cross_entropy_loss_with_max_sum, arguments
    softmax = aclnn.fused_cross_entropy_loss_with_max_sum(*arguments)[1]
    gradient = (noise(11), x, weight, mask, masked, 0.0)
    operator = aclnn.fused_linear_cross_entropy_loss_grad
    yield "fused_linear_cross_entropy_loss_grad", operator, (*gradient, largest, total)
    yield "fused_linear_cross_entropy_loss_grad-softmax", operator, (*gradient, None, None, softmax)


def large_parts(rows: int, classes: int, depth: int) -> tuple[Tensor, ...]:
    """All results of the host's own function."""
    arguments = noise(rows, depth), noise(classes, depth), some_labels(rows, classes), noise(classes)
    return aclnn._linear_cross_entropy(*arguments, noise(classes), noise(rows), None, IGNORED, 0.1, [True] * 3)


def large_in_three(rows: int, classes: int, depth: int, with_logits: bool) -> tuple[Tensor, ...]:
    """All results of CANN's three functions, with or without logits."""
    x, weight = noise(rows, depth).half(), noise(classes, depth).half()
    results = in_three(x, weight, torch.randint(classes, (rows,)), with_logits)
    return tuple(result for result in results if result.numel())


WEIGHT = torch.linspace(-1, 2, 20).reshape(5, 4)
LABELS = torch.tensor([0, 4, 1])
LARGE = ((20000, 5, 3), (3, 20000, 5), (3, 5, 20000))

INFO = OperatorInfo(
    calls=CALLS,
    product="host",
    functions=[
        FunctionCase(
            name="linear_cross_entropy",
            tensors=(ROWS, WEIGHT, LABELS),
            direct=False,
        )
    ],
    modules=[
        ModuleCase(
            name="LinearCrossEntropyLoss",
            arguments=(4, 5),
            keywords={"bias": True, "weight": torch.linspace(1, 2, 5)},
            inputs=(ROWS, LABELS),
            least_samples=5,
        )
    ],
    memory={
        **{f"_linear_cross_entropy, {size}": partial(large_parts, *size) for size in LARGE},
        **{
            f"fused_linear_online_max_sum, {size}, {'with' if with_logits else 'without'} logits": partial(
                large_in_three, *size, with_logits
            )
            for size in ((20000, 128, 3), (3, 20000, 5), (3, 128, 20000))
            for with_logits in (False, True)
        },
    },
    runs=runs,
    npu=npu,
    later=True,
)
