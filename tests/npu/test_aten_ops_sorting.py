"""Sorting under torch_npu; csrc/cann/rows/sorting."""

from __future__ import annotations

from functools import partial

import torch

from aclnn_torch.cli.coverage import asked_for

from .aten_ops import Case, cases_of, check, numbers, with_gradients

# Older versions of torch_npu call the first version.
TOPK = "TopkV2" if "aclnnTopkV2" in (asked_for() or ()) else "Topk"
X = numbers(4, 5)
STRIDED = numbers(5, 4).t()
HOLES = torch.where(X > 1, torch.nan, X)
EDGES = torch.tensor([-1.0, 0.0, 0.5, 2.0, 3.0])
COUNTS = torch.tensor([3, 1, 1, 0, 7])

CASES = [
    *(
        Case(name, call, (x,))
        for x in (X, X.half(), X.bfloat16(), (X * 99).long(), (X * 99).int(), STRIDED)
        for name, call in [
            ("Sort", torch.sort),
            ("Sort", partial(torch.sort, dim=0, descending=True, stable=True)),
            ("Sort", torch.argsort),
            (TOPK, partial(torch.topk, k=3)),
            (TOPK, partial(torch.topk, k=2, dim=0, largest=False)),
            ("Kthvalue", partial(torch.kthvalue, k=2)),
            ("MedianDim", partial(torch.median, dim=1)),
            ("MedianDim", partial(torch.median, dim=0, keepdim=True)),
            ("Median", torch.median),
        ]
    ),
    Case("NanMedian", torch.nanmedian, (HOLES,)),
    Case("NanMedianDim", partial(torch.nanmedian, dim=1), (HOLES,)),
    Case(TOPK, with_gradients(partial(torch.topk, k=2)), (X,)),
    Case("Sort", with_gradients(torch.sort), (X,)),
    Case("SearchSorted", torch.searchsorted, (EDGES, X)),
    Case("SearchSorted", partial(torch.searchsorted, right=True, out_int32=True), (EDGES, X)),
    Case(
        "SearchSorted",
        lambda edges, x, order: torch.searchsorted(edges, x, sorter=order),
        (EDGES.flip(0), X, torch.arange(5).flip(0)),
    ),
    Case("SearchSorteds", partial(torch.searchsorted, right=True), (EDGES, 0.5)),
    Case("SearchSorted", torch.bucketize, (X, EDGES), product="910"),
    Case("Bucketize", torch.bucketize, (X, EDGES), product="950"),
    Case("Bucketize", partial(torch.bucketize, right=True, out_int32=True), (X, EDGES), product="950"),
    Case("Bincount", torch.bincount, (COUNTS,)),
    Case("Bincount", partial(torch.bincount, minlength=10), (COUNTS, EDGES)),
    Case("Histc", partial(torch.histc, bins=4, min=-2, max=2), (X,)),
    Case("Histc", partial(torch.histc, bins=3), (X,)),
]


@cases_of(CASES)
def test_sorting(case: Case) -> None:
    check(case)
