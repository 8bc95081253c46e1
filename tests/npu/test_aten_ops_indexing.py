"""Elements by index under torch_npu; csrc/cann/rows/indexing."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from .aten_ops import Case, cases_of, check, errors_are_clean, numbers, with_gradients

X = numbers(4, 5)
CUBE = numbers(4, 5, 6)
ROWS = torch.tensor([3, 0, 3])
COLUMNS = torch.tensor([1, -2, 0])
PLACES = torch.tensor([[0, 4], [1, 1], [2, 0], [3, 3]])
MASK = X > 0
VALUES = numbers(3, 5, seed=1)
STRIDED = numbers(5, 4).t()
WORDS = torch.tensor([[3, 1, 1], [3, 1, 1], [0, 2, 2]])


def assign(x: torch.Tensor, index: object, values: object) -> torch.Tensor:
    x[index] = values
    return x


CASES = [
    *(
        Case(name, call, (x, *rest))
        for x in (X, X.half(), X.bfloat16(), (X * 9).long(), (X * 9).int(), X > 0.5, STRIDED)
        for name, call, rest in [
            ("Index", lambda x, i: x[i], (ROWS,)),
            ("Index", lambda x, i: x[:, i], (ROWS,)),
            ("IndexSelect", lambda x, i: x.index_select(1, i), (ROWS,)),
            ("Gather", lambda x, i: x.gather(1, i), (PLACES,)),
            ("Take", torch.take, (ROWS + 9,)),
        ]
    ),
    Case("Index", lambda x, i, j: x[i, j], (CUBE, ROWS, COLUMNS)),
    Case("Index", lambda x, i, j: x[:, i, j], (CUBE, COLUMNS, ROWS)),
    Case("Index", lambda x, i, j: x[i, :, j], (CUBE, COLUMNS, ROWS)),
    Case("Index", lambda x, i: x[i.int()], (X, ROWS)),
    Case("Index", lambda x, i: x[i], (X, ROWS[:0])),
    Case("Index", lambda x, i: x[i], (X, WORDS[:2] - 1)),
    Case("NonzeroV2 Index", lambda x, m: x[m], (X, MASK)),
    Case("NonzeroV2 Index", lambda x, m: x[m], (X, MASK[:, 0])),
    Case("NonzeroV2 Index", lambda x, m: x[m], (X, MASK & ~MASK)),
    Case("IndexPutImpl", with_gradients(lambda x, i: x[i]), (X, ROWS)),
    Case("ScatterAdd", with_gradients(lambda x, i: x.gather(1, i)), (X, PLACES)),
    *(
        Case("IndexPutImpl", assign, (X.to(d), ROWS[:2], VALUES[:2].to(d)))
        for d in (torch.float, torch.half, torch.long)
    ),
    Case("IndexPutImpl", assign, (X, ROWS, 1.5)),
    Case("IndexPutImpl", assign, (X, ROWS[:0], 1.5)),
    Case("IndexPutImpl", lambda x, i, v: assign(x, (slice(None), i), v), (X.long(), ROWS[:0], 1)),
    Case("Index", lambda x, i: x[:, i], (X.long(), ROWS[:0])),
    # An empty index selects nothing, whatever the other indices.
    *(
        case
        for empty in (ROWS[:0], MASK[:, 0] & ~MASK[:, 0])
        for case in (
            Case("Index", lambda x, i, j: x[i, j], (X, empty, COLUMNS[:1])),
            Case("Index", lambda x, i, j: x[i, :, j], (CUBE.long(), empty, COLUMNS[:1])),
            Case("IndexPutImpl", lambda x, i, j: assign(x, (i, j), 9.0), (X, empty, COLUMNS[:1])),
        )
    ),
    Case("Index", lambda x, i, j: x[j, i], (X, ROWS[:0], COLUMNS[:1])),
    Case("IndexPutImpl", lambda x, i, j: assign(x, (slice(None), i, j), 9.0), (CUBE, ROWS[:0], COLUMNS[:1])),
    Case("IndexPutImpl", lambda x, i, j: assign(x, (j, i), 9.0), (X.half(), ROWS[:0], COLUMNS[:1])),
    Case("IndexPutImpl", lambda x, i: assign(x, (slice(None), i), 9), (X.long(), COLUMNS[:1])),
    Case("IndexPutImpl", assign, (STRIDED.clone(), ROWS[:2], VALUES[:2])),
    Case("IndexPutImpl", lambda x, i, v: x.index_put_((i,), v, accumulate=True), (X, ROWS, VALUES)),
    Case("IndexPutImpl", lambda x, i, v: x.index_put((i,), v), (X, ROWS[:2], VALUES[:2])),
    *(
        Case("IndexAdd", lambda x, i, v: x.index_add(0, i, v, alpha=2), (X.to(d), ROWS, VALUES.to(d)))
        for d in (torch.float, torch.half, torch.long)
    ),
    Case("IndexAdd", lambda x, i, v: x.index_add_(0, i, v), (X, ROWS, VALUES)),
    *(
        Case(function, call, (X, ROWS, *value), product=product)
        for function, product in (("IndexFill", "910"), ("IndexFillTensor", "950"))
        for call, value in [
            (lambda x, i: x.index_fill(0, i, 2.5), ()),
            (lambda x, i, v: x.index_fill(1, i, v), (torch.tensor(7.0),)),
        ]
    ),
    Case("InplaceIndexFill", lambda x, i: x.index_fill_(1, i, 2.5), (X, ROWS)),
    Case("InplaceIndexFill", lambda x, i: x.index_fill_(0, i, -1), (STRIDED, ROWS)),
    Case("IndexCopy", lambda x, i, v: x.index_copy(0, i, v), (X, ROWS[:2], VALUES[:2])),
    Case("InplaceIndexCopy", lambda x, i, v: x.index_copy_(0, i, v), (X, ROWS[:2], VALUES[:2])),
    *(
        Case(name, call, (x, PLACES, numbers(4, 2, seed=3).to(x.dtype)))
        for x in (X, X.bfloat16(), (X * 9).long())
        for name, call in [
            ("Scatter", lambda x, i, v: x.scatter(1, i[:, :1], v)),
            ("InplaceScatter", lambda x, i, v: x.scatter_(1, i[:, :1], v)),
            ("ScatterAdd", lambda x, i, v: x.scatter_add(1, i, v)),
            ("ScatterAdd", lambda x, i, v: x.scatter_add_(1, i, v)),
        ]
    ),
    Case("ScatterValue", lambda x, i: x.scatter(1, i, 2.5), (X, PLACES)),
    Case("InplaceScatterValue", lambda x, i: x.scatter_(1, i, -1), (X, PLACES)),
    Case("Gather", lambda x, i: torch.take_along_dim(x, i, 1), (X, PLACES)),
    Case("InplacePut", lambda x, i, v: x.put_(i, v), (X, ROWS[:2] + 5, VALUES[0, :2])),
    Case("InplacePut", lambda x, i, v: x.put_(i, v, accumulate=True), (X, ROWS + 5, VALUES[0, :3])),
    Case("InplaceMaskedScatter", torch.masked_scatter, (X, MASK, numbers(20))),
    Case("InplaceMaskedScatter", torch.Tensor.masked_scatter_, (X.half(), MASK, numbers(20).half())),
    *(Case("Nonzero", torch.nonzero, (x,)) for x in (MASK, X.relu(), (X * 2).int(), MASK & ~MASK, CUBE.relu())),
    Case("Nonzero", torch.where, (MASK,)),
    Case("Unique2", torch.unique, (WORDS,)),
    Case("Unique2", partial(torch.unique, return_inverse=True, return_counts=True), (WORDS.float(),)),
    Case("UniqueDim", partial(torch.unique, dim=0), (WORDS,)),
    Case("UniqueDim", partial(torch.unique, dim=1, return_inverse=True, return_counts=True), (WORDS,)),
    Case("UniqueConsecutive", torch.unique_consecutive, (WORDS,)),
    Case("UniqueConsecutive", partial(torch.unique_consecutive, return_inverse=True, return_counts=True), (WORDS,)),
    Case("UniqueConsecutive", partial(torch.unique_consecutive, dim=0, return_counts=True), (WORDS,)),
    Case("RepeatInterleaveInt", partial(torch.repeat_interleave, repeats=3), (X,)),
    Case("RepeatInterleaveIntWithDim", partial(torch.repeat_interleave, repeats=3, dim=1), (X,)),
    Case("RepeatInterleave", torch.repeat_interleave, (X[0], torch.tensor([1, 0, 2, 3, 1]))),
    Case("RepeatInterleaveWithDim", partial(torch.repeat_interleave, dim=0), (X, torch.tensor([1, 0, 2, 3]))),
]


@cases_of(CASES)
def test_indexing(case: Case) -> None:
    check(case)


@errors_are_clean
def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)index|shape"):
        X.npu().index_select(0, PLACES.npu())
