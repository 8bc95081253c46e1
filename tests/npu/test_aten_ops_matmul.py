"""Matrix products under torch_npu; csrc/cann/rows/matmul."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
import torch_npu

from aclnn_torch.cli.coverage import asked_for

from .aten_ops import Case, cases_of, check, errors_are_clean, numbers, on_product, with_gradients

A = numbers(3, 4)
B = numbers(4, 5, seed=1)
BATCH = numbers(2, 3, 4, seed=2)
BATCHED = numbers(2, 4, 5, seed=3)
VECTOR = numbers(4, seed=4)


def widened(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function on 16-bit tensors as the matrix units compute it: in FP32, rounded once."""

    def call(*arguments: torch.Tensor) -> torch.Tensor:
        if arguments[0].device.type == "npu":
            return function(*arguments)
        return function(*(x.float() for x in arguments)).to(arguments[0].dtype)

    return call


PRODUCTS = [
    ("Mm", torch.mm, (A, B)),
    ("Mm", lambda a, b: torch.mm(a.t(), b.t()), (numbers(4, 3), numbers(5, 4))),
    ("Matmul", torch.matmul, (BATCH, B)),
    ("Matmul", torch.matmul, (BATCH, BATCHED)),
    ("Matmul", torch.matmul, (VECTOR, VECTOR)),
    ("BatchMatMul", torch.bmm, (BATCH, BATCHED)),
    ("Mv", torch.mv, (A, VECTOR)),
    ("Dot", torch.dot, (VECTOR, VECTOR + 1)),
    ("Addmm", partial(torch.addmm, beta=2, alpha=3), (numbers(5), A, B)),
    ("InplaceAddmm", partial(torch.Tensor.addmm_, beta=2, alpha=3), (numbers(3, 5), A, B)),
    ("Addmv", partial(torch.addmv, beta=2, alpha=3), (numbers(3), A, VECTOR)),
    ("Baddbmm", partial(torch.baddbmm, beta=0.5, alpha=3), (numbers(2, 3, 5), BATCH, BATCHED)),
    ("Addbmm", partial(torch.addbmm, beta=2, alpha=0.25), (numbers(3, 5), BATCH, BATCHED)),
]

CASES = [
    *(Case(name, call, arguments) for name, call, arguments in PRODUCTS),
    *(
        Case(name, widened(call), tuple(x.to(dtype) for x in arguments))
        for dtype in (torch.half, torch.bfloat16)
        for name, call, arguments in PRODUCTS
        if not name.startswith("Inplace")
    ),
    Case("Mm", torch.mm, (torch.empty(3, 0), torch.empty(0, 5))),
    Case("Mm", torch.mm, (torch.empty(0, 4), B)),
    Case("BatchMatMul", partial(torch.einsum, "bij,bjk->bik"), (BATCH, BATCHED)),
    Case("Addr", partial(torch.addr, beta=2, alpha=3), (numbers(3, 4), numbers(3), VECTOR)),
    Case("InplaceAddr", partial(torch.Tensor.addr_, beta=2, alpha=3), (numbers(3, 4), numbers(3), VECTOR)),
    Case("Addmm Mm", with_gradients(F.linear), (A, numbers(5, 4), numbers(5))),
    Case("Addmm Mm", with_gradients(F.linear), (BATCH, numbers(5, 4), numbers(5))),
    Case("Matmul", with_gradients(F.linear), (BATCH, numbers(5, 4)), relative=2**-21, absolute=2**-21),
    Case("Matmul", with_gradients(torch.matmul), (BATCH, BATCHED)),
    Case("Cdist", torch.cdist, (A, numbers(5, 4, seed=9)), relative=2**-21, absolute=2**-21),
]


@cases_of(CASES)
def test_matmul(case: Case) -> None:
    check(case)


def hf32(x: torch.Tensor) -> torch.Tensor:
    """FP32 rounded to nearest even to HF32: 11 bits of mantissa on Atlas A2, 10 on Ascend950."""
    dropped = 13 if on_product("950") else 12
    bits = x.view(torch.int32)
    lowest = (bits >> dropped) & 1
    return ((bits + (1 << (dropped - 1)) - 1 + lowest) & -(1 << dropped)).view(torch.float32)


def test_hf32_and_fp16_are_what_the_switches_say() -> None:
    a, b = numbers(16, 32), numbers(32, 8)
    assert torch.equal(torch.mm(a.npu(), b.npu()).cpu(), torch.mm(a, b))
    torch_npu.npu.matmul.allow_hf32 = True
    try:
        got = torch.mm(a.npu(), b.npu()).cpu()
    finally:
        torch_npu.npu.matmul.allow_hf32 = False
    assert not torch.equal(got, torch.mm(a, b))
    assert torch.equal(got, torch.mm(hf32(a), hf32(b)))


@errors_are_clean
@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_what_the_units_do_not_multiply_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="aclnnMm"):
        torch.mm(A.to(dtype).npu(), B.to(dtype).npu())


@errors_are_clean
def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)mat1|size|shape"):
        torch.mm(A.npu(), A.npu())


@pytest.mark.skipif("aclnnMatmulAbftVerify" not in (asked_for() or ()), reason="this torch_npu does not call it")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(33, 100, 67), (12, 64, 512), (7, 64, 9)])
def test_checksums_find_errors_in_a_product(dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    """MatmulAbftVerify: torch_npu adds the columns up itself if the function fails."""
    m, k, n = shape
    torch.manual_seed(0)
    a, b = torch.randn(m, k, dtype=dtype).npu(), torch.randn(k, n, dtype=dtype).npu()
    product = torch.mm(a, b)
    weight = torch.ones(n, dtype=dtype).npu()
    wrong = product.float().clone()
    wrong[m - 1, n - 1] += 100
    threshold = 2e-5 if dtype == torch.float32 else 1e-3
    for c, byte in ((product.float(), 255), (wrong, 255 - (1 << (m - 1) % 8))):
        bits = torch.ops.npu._npu_matmul_abft_verify(a, b, c, weight, e_max=threshold).cpu()
        assert bits.tolist() == [255] * (bits.numel() - 1) + [byte]
    assert not torch_npu.matmul_checksum(a, b, product).item()
    assert torch_npu.matmul_checksum(a, b, wrong.to(dtype)).item()
