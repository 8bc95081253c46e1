"""Losses and their gradients under torch_npu; csrc/cann/rows/loss."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from .aten_ops import Case, cases_of, check, numbers, with_gradients

X = numbers(3, 4)
Y = numbers(3, 4, seed=1)
P = X.sigmoid()
Q = Y.sigmoid()
SIGNS = Y.sign()
LABELS = torch.tensor([1, 3, 0])
SKIPPED = torch.tensor([1, -100, 0])
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.25])
IMAGE = numbers(2, 4, 3, 2)
IMAGE_LABELS = torch.tensor([[[1, 3], [0, 2], [1, -100]], [[0, 0], [3, 1], [2, 2]]])
# If the gradient is not one call of ATen, its terms are rounded in another order.
ROUNDING = {"relative": 2**-22, "absolute": 2**-24}


def fixed(function, *constants):  # type: ignore[no-untyped-def]
    """The function of its first argument only, so that no other gets a gradient."""

    def call(x: torch.Tensor) -> torch.Tensor:
        return function(x, *(c.to(x.device) if isinstance(c, torch.Tensor) else c for c in constants))

    return with_gradients(call)


def pair(name: str) -> str:
    return f"{name} {name}Backward"


CASES = [
    *(
        Case(functions, fixed(partial(call, reduction=reduction), *constants), (x.to(dtype),), **tolerance)
        for reduction in ("mean", "sum", "none")
        for dtype in (torch.float,)
        for functions, call, x, constants, tolerance in [
            (pair("NLLLoss"), F.nll_loss, X, (LABELS,), {}),
            (pair("NLLLoss"), F.nll_loss, X, (SKIPPED, WEIGHT), {}),
            (pair("NLLLoss2d"), F.nll_loss, IMAGE, (IMAGE_LABELS, WEIGHT), {}),
            (f"LogSoftmax {pair('NLLLoss')} LogSoftmaxBackward", F.cross_entropy, X, (SKIPPED,), {}),
            ("LogSoftmax LogSoftmaxBackward", partial(F.cross_entropy, label_smoothing=0.1), X, (LABELS,), ROUNDING),
            (pair("NLLLoss2d"), F.cross_entropy, IMAGE, (IMAGE_LABELS,), {}),
            (pair("MseLoss"), F.mse_loss, X, (Y,), {}),
            (pair("L1Loss"), F.l1_loss, X, (Y,), ROUNDING),
            (pair("SmoothL1Loss"), partial(F.smooth_l1_loss, beta=0.5), X, (Y,), {}),
            (pair("SoftMarginLoss"), F.soft_margin_loss, X, (SIGNS,), {}),
            (pair("BinaryCrossEntropy"), F.binary_cross_entropy, P, (Q,), {}),
            (pair("BinaryCrossEntropy"), F.binary_cross_entropy, P, (Q, WEIGHT.expand(3, 4).contiguous()), {}),
            (pair("BinaryCrossEntropyWithLogits"), F.binary_cross_entropy_with_logits, X, (Q,), ROUNDING),
            (
                pair("BinaryCrossEntropyWithLogits"),
                lambda x, y, w, reduction: F.binary_cross_entropy_with_logits(
                    x, y, w, pos_weight=w, reduction=reduction
                ),
                X,
                (Q, WEIGHT),
                ROUNDING,
            ),
            (pair("KlDiv"), F.kl_div, P.log(), (Q,), ROUNDING),
            (pair("KlDiv"), partial(F.kl_div, log_target=True), P.log(), (Q.log(),), ROUNDING),
        ]
    ),
    Case("KlDivTargetBackward", with_gradients(F.kl_div), (P.log(), Q), **ROUNDING),
    Case("KlDivTargetBackward", with_gradients(partial(F.kl_div, log_target=True)), (P.log(), Q.log()), **ROUNDING),
    Case(
        "MultilabelMarginLoss",
        F.multilabel_margin_loss,
        (X, torch.tensor([[3, 0, -1, 1], [0, -1, 2, 2], [1, 2, 3, 0]])),
    ),
    Case("MseLoss", F.mse_loss, (X.half(), Y.half())),
    Case("LogSoftmax NLLLoss", F.cross_entropy, (X.bfloat16(), LABELS)),
]


@cases_of(CASES)
def test_loss(case: Case) -> None:
    check(case)
