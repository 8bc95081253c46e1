"""Comparisons, logic and selection under torch_npu; csrc/cann/rows/elementwise, indexing/masks.cpp."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from .aten_ops import Case, cases_of, check

A = torch.tensor([[1.0, 2, float("nan"), 4], [-1, 0, 3, float("inf")]])
B = torch.tensor([[1.0, 3, 5], [2, -2, float("nan")], [0, 3, 1], [4, 1, float("inf")]]).t()[:2]
N = torch.arange(-4, 8).reshape(3, 4)
J = torch.tensor([2, -3, 0, 5])
BOOLS = torch.tensor([[True, False, True, False], [False, False, True, True]])
FLIPPED = torch.tensor([True, True, False, False])
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
FINITE = torch.linspace(-3, 3, 24).reshape(4, 6)[:, 1:]


def in_place(name: str) -> object:
    return getattr(torch.Tensor, name)


def bits(*names: str) -> list[tuple[str, object]]:
    return [(name, getattr(torch, f"bitwise_{name}")) for name in names]


COMPARED = {
    "Tensor": [(A, B), (A.half(), B.half()), (A.bfloat16(), B.bfloat16()), (N, J), (A, J), (BOOLS, FLIPPED)],
    "Scalar": [(A, 2.0), (A.half(), 3), (N, 3), (N.int(), 2.5), (A.bfloat16()[:, ::2], 1)],
}

CASES = [
    *(
        Case(f"{prefix}{name.capitalize()}{kind}", getattr(module, f"{name}{suffix}"), pair)
        for name in ("eq", "ne", "gt", "ge", "lt", "le")
        for prefix, module, suffix in [("", torch, ""), ("Inplace", torch.Tensor, "_")]
        for kind, pairs in COMPARED.items()
        for pair in pairs
    ),
    Case("Equal", torch.equal, (N, N)),
    Case("Equal", torch.equal, (N, N + 1)),
    Case("IsClose", torch.isclose, (FINITE, FINITE + 1e-6)),
    Case("IsClose", partial(torch.isclose, rtol=0.1, atol=0.5, equal_nan=True), (A, A * 1.05)),
    Case("IsInTensorScalar", torch.isin, (N, 3)),
    Case("IsInScalarTensor", torch.isin, (3, N)),
    *(
        Case(name, call, pair)
        for name, call in [
            ("LogicalAnd", torch.logical_and),
            ("LogicalOr", torch.logical_or),
            ("LogicalXor", torch.logical_xor),
            ("InplaceLogicalAnd", torch.Tensor.logical_and_),
            ("InplaceLogicalOr", torch.Tensor.logical_or_),
        ]
        for pair in [(BOOLS, FLIPPED), (N.float(), J.float()), (N, FLIPPED)]
    ),
    *(
        Case(f"Bitwise{name.capitalize()}Tensor", call, pair)
        for name, call in bits("and", "or", "xor")
        for pair in [(N, J), (N.int(), J.int()), (BOOLS, FLIPPED)]
    ),
    *(
        Case(f"Bitwise{name.capitalize()}Scalar", call, pair)
        for name, call in bits("and", "or", "xor")
        for pair in [(N, 6), (N.int(), 6), (BOOLS, True)]
    ),
    Case("InplaceBitwiseAndTensor", torch.Tensor.bitwise_and_, (N, J)),
    Case("InplaceBitwiseAndScalar", torch.Tensor.bitwise_and_, (N, 6)),
    Case("InplaceBitwiseXorTensor", torch.Tensor.bitwise_xor_, (N, J)),
    Case("InplaceBitwiseXorScalar", torch.Tensor.bitwise_xor_, (N, 6)),
    Case("LeftShift", torch.bitwise_left_shift, (N, J.abs())),
    Case("LeftShifts", torch.Tensor.__lshift__, (N, 3)),
    Case("RightShift", torch.bitwise_right_shift, (N, J.abs())),
    *(
        Case(name, call, pair)
        for name, call in [("Maximum", torch.maximum), ("Minimum", torch.minimum)]
        for pair in [(A, B), (A.half(), B.half()), (N, J), (A, J)]
    ),
    *(Case("Atan2", torch.atan2, (FINITE.to(d), FINITE.flip(0).to(d))) for d in FLOATS),
    Case("InplaceAtan2", torch.Tensor.atan2_, (FINITE, FINITE.flip(0))),
    *(
        Case(name, call, (x,))
        for x in (FINITE, FINITE.half(), FINITE.bfloat16(), N)
        for name, call in [
            ("Clamp", partial(torch.clamp, min=-1, max=1)),
            ("Clamp", partial(torch.clamp, min=-1)),
            ("ClampMin", partial(torch.clamp_min, min=1)),
            ("ClampMax", partial(torch.clamp_max, max=1)),
            ("InplaceClampMax", lambda x: x.clamp_max_(1)),
        ]
    ),
    Case("Clamp", partial(torch.clamp, max=2.5), (N,)),
    Case("ClampTensor", torch.clamp, (FINITE, torch.tensor(-1.0), FINITE.abs() / 2)),
    Case("ClampTensor", partial(torch.clamp, max=None), (FINITE, FINITE.abs() / 2)),
    Case("ClampMinTensor", torch.clamp_min, (FINITE, FINITE.abs() / 2)),
    Case("ClampMaxTensor", torch.clamp_max, (FINITE, FINITE.abs() / 2)),
    Case("InplaceClampMinTensor", torch.Tensor.clamp_min_, (FINITE, FINITE.abs() / 2)),
    Case("InplaceClampMaxTensor", torch.Tensor.clamp_max_, (FINITE, FINITE.abs() / 2)),
    *(Case("SWhere", torch.where, (BOOLS, x, y)) for x, y in [(A, B[:, :4]), (A.half(), -A.half()), (J, N[:2])]),
    Case("SWhere", torch.where, (BOOLS, A, torch.tensor(7.0))),
    Case("InplaceMaskedFillScalar", torch.Tensor.masked_fill_, (A, BOOLS, 2.5)),
    Case("InplaceMaskedFillScalar", torch.masked_fill, (A.half(), FLIPPED, -1)),
    Case("InplaceMaskedFillTensor", torch.Tensor.masked_fill_, (A, FLIPPED, torch.tensor(9.0))),
    Case("MaskedSelect", torch.masked_select, (A, BOOLS)),
    Case("MaskedSelect", torch.masked_select, (N.half(), FLIPPED)),
    Case("MaskedSelect", torch.masked_select, (A, BOOLS & ~BOOLS)),
]


@cases_of(CASES)
def test_comparison(case: Case) -> None:
    check(case)


def test_tensors_are_printed() -> None:
    """torch's printing selects the finite nonzero elements, so it must get their number."""
    x = torch.tensor([[0.5, float("inf")], [100.0, 0]])
    assert repr(x.npu()).replace(", device='npu:0'", "") == repr(x)


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.eq(torch.ones(3).npu(), torch.ones(2).npu())
