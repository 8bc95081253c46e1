"""Reductions under torch_npu; csrc/cann/rows/reduction."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from .aten_ops import Case, cases_of, check

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
X = torch.sin(torch.arange(120.0)).reshape(4, 5, 6)
STRIDED = X.transpose(0, 2)[::2]
N = torch.arange(-12, 12).reshape(2, 3, 4) * 7 % 11
BOOLS = N > 4
INPUTS = [*(X.to(d) for d in FLOATS), STRIDED, X.double()]

CASES = [
    *(
        Case(name, call, (x,))
        for x in INPUTS
        for name, call in [
            ("ReduceSum", torch.sum),
            ("ReduceSum", partial(torch.sum, dim=1)),
            ("ReduceSum", partial(torch.sum, dim=(0, -1), keepdim=True)),
            ("Mean", torch.mean),
            ("Mean", partial(torch.mean, dim=(0, 2))),
            ("Max", torch.max),
            ("Min", torch.min),
            ("MaxDim", partial(torch.max, dim=1)),
            ("MinDim", partial(torch.min, dim=-1, keepdim=True)),
            ("Amax", partial(torch.amax, dim=(0, 1))),
            ("Amin", partial(torch.amin, dim=2, keepdim=True)),
            ("ArgMax", torch.argmax),
            ("ArgMax", partial(torch.argmax, dim=1)),
            ("ArgMin", partial(torch.argmin, dim=0, keepdim=True)),
            ("AminmaxAll", torch.ops.aten._aminmax),
            ("AminmaxDim", partial(torch.ops.aten._aminmax.dim, dim=1)),
            ("Aminmax", partial(torch.aminmax, dim=1, keepdim=True)),
            ("VarCorrection", torch.var),
            ("VarCorrection", partial(torch.var, dim=1, correction=0, keepdim=True)),
            ("VarMean", partial(torch.var_mean, dim=(0, 2))),
            ("Std", partial(torch.std, dim=1)),
            ("StdMeanCorrection", partial(torch.std_mean, dim=2, correction=0)),
            ("VarCorrection", partial(torch.var, dim=1, correction=3)),
            ("VarMean", partial(torch.var_mean, dim=(0, 2), correction=2)),
            ("Std", partial(torch.std, dim=1, correction=4)),
            ("StdMeanCorrection", partial(torch.std_mean, dim=2, correction=-1)),
            ("LogSumExp", partial(torch.logsumexp, dim=(0, 1))),
            ("Cumsum", partial(torch.cumsum, dim=1)),
            ("Cumprod", partial(torch.cumprod, dim=-1)),
            ("Cummax", partial(torch.cummax, dim=1)),
            ("Cummin", partial(torch.cummin, dim=0)),
            ("Norm", partial(torch.ops.aten.norm.ScalarOpt_dim, p=2, dim=[1])),
            ("Norm", partial(torch.ops.aten.norm.ScalarOpt_dim, p=1, dim=[0, 2], keepdim=True)),
            ("LinalgVectorNorm", torch.linalg.vector_norm),
            ("LinalgVectorNorm", partial(torch.linalg.vector_norm, ord=3, dim=1)),
            ("ProdDim", partial(torch.prod, dim=1)),
            ("Prod", torch.prod),
        ]
    ),
    Case("ReduceSum", torch.sum, (N,)),
    Case("ReduceSum", torch.sum, (BOOLS,)),
    Case("ReduceSum", partial(torch.sum, dim=1, dtype=torch.float32), (N,)),
    Case("ReduceNansum", torch.nansum, (torch.tensor([1.0, float("nan"), 2]),)),
    Case("ReduceNansum", partial(torch.nansum, dim=1), (torch.tensor([[1.0, float("nan")], [2, 3]]),)),
    Case("Mean", partial(torch.mean, dtype=torch.float32), (N,)),
    Case("MaxDim", partial(torch.max, dim=1), (N,)),
    Case("Max", torch.max, (N,)),
    Case("All", torch.all, (BOOLS,)),
    Case("All", partial(torch.all, dim=1), (BOOLS,)),
    Case("Any", torch.any, (BOOLS,)),
    Case("Any", partial(torch.any, dim=-1, keepdim=True), (N.float(),)),
    Case("Prod", torch.prod, (N + 20,)),
    Case("ProdDim", partial(torch.prod, dim=0, dtype=torch.float32), (N,)),
    Case("Cumsum", partial(torch.cumsum, dim=0), (BOOLS,)),
    Case("Cumsum", partial(torch.cumsum, dim=0, dtype=torch.float64), (X,)),
    Case("Trace", torch.trace, (X[0],)),
    Case("Renorm", partial(torch.renorm, p=2, dim=0, maxnorm=1.5), (X,)),
    Case("InplaceRenorm", lambda x: x.renorm_(1, 1, 2.0), (X,)),
]


@cases_of(CASES)
def test_reduction(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(1, 20000), (1500, 7), (33, 1000), (3, 400, 5)])
@pytest.mark.parametrize("dim", [-1, 0])
def test_rows_of_16_bits_are_computed_in_float_and_rounded_once(
    dtype: torch.dtype, shape: tuple[int, ...], dim: int
) -> None:
    """Sum, softmax and its logarithm, of as many rows as are computed at a time, fewer, more, and of columns."""
    torch.manual_seed(0)
    x = (torch.rand(shape) + 0.5).to(dtype)
    wide = x.double()
    exponentials = (wide - wide.amax(dim, keepdim=True)).exp()
    epsilon = torch.finfo(dtype).eps
    for result, expected in (
        (torch.sum(x.npu(), dim), wide.sum(dim)),
        (torch.sum(x.npu(), dim, keepdim=True), wide.sum(dim, keepdim=True)),
        (torch.softmax(x.npu(), dim), exponentials / exponentials.sum(dim, keepdim=True)),
        (torch.log_softmax(x.npu(), dim), torch.log_softmax(wide, dim)),
    ):
        assert result.dtype == dtype and result.shape == expected.shape
        # Half a unit in the last place, and what FLOAT adds; those below the normal numbers of FLOAT16 are coarser.
        torch.testing.assert_close(
            result.cpu().double(), expected, rtol=0.51 * epsilon, atol=torch.finfo(dtype).tiny * epsilon
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [(0,), (1,), (-1,), (0, 1), (2, 1), (0, 2), (0, 1, 2)])
def test_sums_of_16_bits_over_any_dimensions_are_rounded_once(
    dtype: torch.dtype, transposed: bool, dims: tuple[int, ...]
) -> None:
    """Sum and mean by their definitions, in the type of the elements and in FLOAT."""
    torch.manual_seed(0)
    x = (torch.rand(40, 30, 50) + 0.5).to(dtype)
    x = x.transpose(0, 1) if transposed else x
    epsilon = torch.finfo(dtype).eps
    for result, expected in (
        (torch.sum(x.npu(), dims), x.double().sum(dims)),
        (torch.sum(x.npu(), dims, keepdim=True), x.double().sum(dims, keepdim=True)),
        (torch.sum(x.npu(), dims, dtype=torch.float32), x.double().sum(dims)),
        (torch.mean(x.npu(), dims), x.double().mean(dims)),
    ):
        rounding = 0.51 * epsilon if result.dtype == dtype else 1e-6
        assert result.shape == expected.shape
        torch.testing.assert_close(result.cpu().double(), expected, rtol=rounding, atol=0)
