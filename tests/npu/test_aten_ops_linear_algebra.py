"""Decompositions under torch_npu; csrc/cann/rows/linear_algebra."""

from __future__ import annotations

from functools import partial

import torch

from .aten_ops import Case, cases_of, check, numbers

A = numbers(2, 4, 4)

CASES = [
    Case("LinalgCross", torch.linalg.cross, (numbers(5, 3), numbers(5, 3, seed=1))),
    Case("LinalgCross", partial(torch.cross, dim=0), (numbers(3, 5), numbers(3, 5, seed=1))),
    *(Case("LinalgQr", partial(torch.linalg.qr, mode=mode), (numbers(4, 3),)) for mode in ("reduced", "complete")),
    Case("LinalgQr", lambda x: torch.linalg.qr(x, mode="r")[1], (numbers(4, 3),)),
    Case("LinalgQr", lambda x: torch.nn.init.orthogonal_(x.clone()).pow(2).sum(1).round(), (torch.eye(3),)),
    Case("LinalgCholesky", torch.linalg.cholesky, (A @ A.mT + torch.eye(4),)),
    Case("Inverse", torch.inverse, (A,)),
    Case("Slogdet", torch.slogdet, (A,)),
]


@cases_of(CASES)
def test_linear_algebra(case: Case) -> None:
    check(case)
