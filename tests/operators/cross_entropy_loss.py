"""Cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import aclnn_torch.functional as F

from ._info import ROWS, Call, FunctionCase, ModuleCase, OperatorInfo, Run, noise, with_gradients

aclnn = torch.ops.aclnn

IGNORED = -100
REDUCTIONS = ("mean", "sum", "none")


def labels_of(values: Tensor) -> Tensor:
    """A label for every row; the second row is ignored, and class 0 does not occur."""
    rows = torch.arange(values.shape[0])
    return torch.where(rows == 1, IGNORED, (rows * 2) % (values.shape[1] - 1) + 1)


def weights_of(values: Tensor) -> Tensor:
    """A weight for every class, in the dtype that matches the values'."""
    dtype = torch.float64 if values.dtype == torch.float64 else torch.float32
    return torch.linspace(0.5, 1.75, values.shape[1], dtype=dtype)


def loss_call(name: str, **attributes: Any) -> Call:
    """The forward on [4, 5], with all non-empty results."""
    weighted = attributes.pop("weighted", False)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        results = aclnn.cross_entropy_loss(x, labels_of(x), weights_of(x) if weighted else None, **attributes)
        wanted = [True, True, attributes.get("return_zloss"), attributes.get("lse_square_scale_for_zloss")]
        return tuple(result for result, is_wanted in zip(results, wanted, strict=True) if is_wanted)

    return Call(function, [(4, 5)], [None], name)


def grad_call(name: str, rows: int | None, **attributes: Any) -> Call:
    """The gradient on [4, 5], with that of the z-loss if it has a scale."""
    weighted = attributes.pop("weighted", False)
    shape = (1,) if rows is None else (rows,)
    with_z = "lse_square_scale_for_zloss" in attributes

    def function(grad: Tensor, log_prob: Tensor, *z: Tensor) -> Tensor:
        weight = weights_of(log_prob) if weighted else None
        return aclnn.cross_entropy_loss_grad(grad, log_prob, labels_of(log_prob), weight, *z, **attributes)

    shapes = [shape, (4, 5), *([shape, (4,)] if with_z else [])]
    batched = [rows is not None, True, rows is not None, True][: len(shapes)]
    return Call(function, shapes, [None] * len(shapes), name, batched)


def number_call(name: str, weighted: bool = False, **attributes: Any) -> Call:
    """The loss alone, on [4, 5]."""

    def function(x: Tensor) -> Tensor:
        return aclnn._cross_entropy(x, labels_of(x), weights_of(x) if weighted else None, **attributes)

    return Call(function, [(4, 5)], [None], name)


Z = {"lse_square_scale_for_zloss": 0.3}
CALLS = [
    *(loss_call(f"{reduction}", reduction=reduction) for reduction in REDUCTIONS),
    *(loss_call(f"{r}, weights", reduction=r, weighted=True) for r in REDUCTIONS),
    loss_call("mean, smoothing", reduction="mean", label_smoothing=0.2),
    loss_call("none, smoothing, weights", reduction="none", label_smoothing=0.2, weighted=True),
    *(loss_call(f"{r}, z-loss", reduction=r, return_zloss=True, **Z) for r in REDUCTIONS),
    loss_call("lse without z-loss", **Z),
    loss_call("z-loss of scale 1", return_zloss=True, lse_square_scale_for_zloss=1.0),
    loss_call("everything", label_smoothing=0.1, weighted=True, return_zloss=True, **Z),
    grad_call("grad, mean", None, reduction="mean"),
    grad_call("grad, sum, weights", None, reduction="sum", weighted=True),
    grad_call("grad, none, smoothing", 4, reduction="none", label_smoothing=0.2),
    grad_call("grad, mean, everything", None, weighted=True, label_smoothing=0.1, **Z),
    grad_call("grad, none, everything", 4, reduction="none", weighted=True, label_smoothing=0.1, **Z),
    number_call("loss alone, mean, weights", weighted=True),
    number_call("loss alone, none", reduction="none"),
    number_call("loss alone, sum, smoothing", reduction="sum", label_smoothing=0.2),
]


def some_labels(rows: int, classes: int) -> Tensor:
    """Random labels, some of them ignored."""
    drawn = torch.randint(classes, (rows,))
    return drawn.where(torch.arange(rows) % 3 != 0, IGNORED)


def large_loss(rows: int, classes: int, reduction: str) -> tuple[Tensor, ...]:
    """All results for this many logits."""
    labels, weight = some_labels(rows, classes), noise(classes)
    return aclnn.cross_entropy_loss(noise(rows, classes), labels, weight, reduction, IGNORED, 0.1, 0.1, True)


def large_gradient(rows: int, classes: int) -> Tensor:
    """The gradient for this many logits."""
    return aclnn.cross_entropy_loss_grad(noise(1), noise(rows, classes), some_labels(rows, classes))


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Forward and backward."""
    x, target = noise(256, 160, dtype=dtype), torch.arange(256) % 160
    yield "cross_entropy_loss", with_gradients(lambda x: aclnn.cross_entropy_loss(x, target), x)
    log_prob = torch.log_softmax(x.float(), 1).to(dtype)
    grad = torch.ones(1).to(dtype)
    yield "cross_entropy_loss_grad", lambda: (aclnn.cross_entropy_loss_grad(grad, log_prob, target),)


def npu(dtype: torch.dtype) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """Forward and backward, reduced and not."""
    logits, weight, target = noise(7, 5, dtype=dtype), torch.rand(5), torch.tensor([0, 4, -100, 2, 1, 1, 3])
    log_prob = aclnn.cross_entropy_loss(logits, target, weight)[1]
    yield "cross_entropy_loss", aclnn.cross_entropy_loss, (logits, target, weight, "mean", -100)
    yield "cross_entropy_loss-none", aclnn.cross_entropy_loss, (logits, target, None, "none")
    arguments = (noise(1, dtype=dtype), log_prob, target, weight)
    yield "cross_entropy_loss_grad", aclnn.cross_entropy_loss_grad, arguments


LARGE = ((40000, 3), (4, 40000))
LABELS = torch.tensor([0, 3, 1])

INFO = OperatorInfo(
    calls=CALLS,
    product="host",  # the only one with every attribute
    functions=[FunctionCase(name="cross_entropy", tensors=(ROWS, LABELS), options=(torch.linspace(0.5, 1, 4),))],
    modules=[
        ModuleCase(
            name="CrossEntropyLoss",
            keywords={"weight": torch.linspace(1, 2, 4)},
            inputs=(ROWS, LABELS),
            least_samples=5,
        )
    ],
    memory={
        **{
            f"cross_entropy_loss, {rows} x {classes}, {reduction}": partial(large_loss, rows, classes, reduction)
            for rows, classes in LARGE
            for reduction in REDUCTIONS
        },
        **{
            f"cross_entropy_loss_grad, {rows} x {classes}": partial(large_gradient, rows, classes)
            for rows, classes in LARGE
        },
    },
    runs=runs,
    npu=npu,
    npu_functions={
        "cross_entropy": (
            lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1, 1, 2], device=x.device)),
            [(5, 4)],
        )
    },
)
