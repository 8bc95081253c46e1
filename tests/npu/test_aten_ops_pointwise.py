"""Functions of one tensor under torch_npu; csrc/cann/rows/elementwise."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from .aten_ops import Case, cases_of, check, errors_are_clean, with_gradients

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def values(low: float, high: float, dtype: torch.dtype) -> torch.Tensor:
    """Values over a range, not contiguous."""
    return torch.linspace(low, high, 66).to(dtype).reshape(6, 11)[:, ::2]


# The aclnn function, the torch function, and a range of its domain.
FLOAT_FUNCTIONS = [
    ("Abs", torch.abs, -3, 3),
    ("Acos", torch.acos, -1, 1),
    ("Acosh", torch.acosh, 1, 9),
    ("Asin", torch.asin, -1, 1),
    ("Asinh", torch.asinh, -9, 9),
    ("Atan", torch.atan, -9, 9),
    ("Atanh", torch.atanh, -0.9, 0.9),
    ("Ceil", torch.ceil, -3, 3),
    ("Cos", torch.cos, -9, 9),
    ("Cosh", torch.cosh, -3, 3),
    ("Erf", torch.erf, -3, 3),
    ("Erfc", torch.erfc, -3, 3),
    ("Erfinv", torch.erfinv, -0.9, 0.9),
    ("Exp", torch.exp, -9, 9),
    ("Exp2", torch.exp2, -9, 9),
    ("Expm1", torch.expm1, -3, 3),
    ("Floor", torch.floor, -3, 3),
    ("Frac", torch.frac, -3, 3),
    ("Log", torch.log, 0.1, 9),
    ("Log10", torch.log10, 0.1, 9),
    ("Log1p", torch.log1p, -0.9, 9),
    ("Log2", torch.log2, 0.1, 9),
    ("Neg", torch.neg, -3, 3),
    ("Reciprocal", torch.reciprocal, 0.1, 9),
    ("Round", torch.round, -3, 3),
    ("Rsqrt", torch.rsqrt, 0.1, 9),
    ("Sigmoid", torch.sigmoid, -9, 9),
    ("Sign", torch.sign, -3, 3),
    ("Sin", torch.sin, -9, 9),
    ("Sinc", torch.sinc, -3, 3),
    ("Sinh", torch.sinh, -3, 3),
    ("Sqrt", torch.sqrt, 0, 9),
    ("Tan", torch.tan, -1, 1),
    ("Tanh", torch.tanh, -3, 3),
    ("Trunc", torch.trunc, -3, 3),
]
IN_PLACE = [
    "acos_",
    "acosh_",
    "asin_",
    "asinh_",
    "atan_",
    "atanh_",
    "ceil_",
    "cos_",
    "cosh_",
    "erf_",
    "erfc_",
    "erfinv_",
    "exp_",
    "exp2_",
    "expm1_",
    "floor_",
    "frac_",
    "log_",
    "log10_",
    "log1p_",
    "log2_",
    "reciprocal_",
    "rsqrt_",
    "sigmoid_",
    "sin_",
    "sinc_",
    "sinh_",
    "sqrt_",
    "tan_",
    "tanh_",
]
WILD = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5])

CASES = [
    *(
        Case(name, function, (values(low, high, dtype),))
        for name, function, low, high in FLOAT_FUNCTIONS
        for dtype in FLOATS
    ),
    *(
        Case(f"Inplace{name}", getattr(torch.Tensor, f"{function.__name__}_"), (values(low, high, dtype),))
        for name, function, low, high in FLOAT_FUNCTIONS
        for dtype in FLOATS
        if f"{function.__name__}_" in IN_PLACE
    ),
    Case("Abs", torch.abs, (torch.arange(-5, 5),)),
    Case("Neg", torch.neg, (torch.arange(-5, 5, dtype=torch.int32),)),
    Case("Sqrt", torch.sqrt, (torch.arange(5),)),
    Case("Exp", torch.exp, (torch.empty(0, 3),)),
    Case("Exp", torch.exp, (torch.tensor(0.5),)),
    Case("Tanh", torch.tanh, (torch.linspace(-1, 1, 6, dtype=torch.float64),)),
    Case("AngleV2", torch.angle, (values(-2, 2, torch.float32),)),
    Case("BitwiseNot", torch.bitwise_not, (torch.arange(-5, 5),)),
    Case("BitwiseNot", torch.bitwise_not, (torch.tensor([True, False]),)),
    Case("LogicalNot", torch.logical_not, (torch.tensor([0.0, 1.5, -2]),)),
    Case("InplaceLogicalNot", torch.Tensor.logical_not_, (torch.tensor([0.0, 1.5, -2]),)),
    Case("IsFinite", torch.isfinite, (WILD,)),
    Case("IsPosInf", torch.isposinf, (WILD,)),
    Case("IsNegInf", torch.isneginf, (WILD,)),
    Case("Signbit", torch.signbit, (WILD[1:],)),
    Case("NanToNum", partial(torch.nan_to_num, nan=0.5, posinf=8.0, neginf=-9.0), (WILD,)),
    Case("NanToNum", torch.nan_to_num, (WILD,)),
    Case("InplaceNanToNum", partial(torch.Tensor.nan_to_num_, nan=0.5, posinf=8.0, neginf=-9.0), (WILD,)),
    Case("RoundDecimals", partial(torch.round, decimals=1), (values(-3, 3, torch.float32),)),
    Case("InplaceRoundDecimals", partial(torch.Tensor.round_, decimals=2), (values(-3, 3, torch.float32),)),
    Case("Logit LogitGrad", with_gradients(partial(torch.logit, eps=0.2)), (values(0.1, 0.9, torch.float32),)),
    Case("Logit LogitGrad", with_gradients(torch.logit), (values(0.1, 0.9, torch.float32),)),
]


@cases_of(CASES)
def test_pointwise(case: Case) -> None:
    check(case)


@errors_are_clean
def test_types_are_checked_in_stage_one() -> None:
    x = torch.ones(2).npu()
    with pytest.raises(RuntimeError, match="aclnnBitwiseNot: self has dtype FLOAT, expected an integer type or BOOL"):
        torch.bitwise_not(x)
    torch.npu.synchronize()
    assert torch.equal(x.cpu(), torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_sign_of_a_complex_number_has_its_angle(dtype: torch.dtype) -> None:
    """The gradient of a magnitude is the sign, as documented for CANN's aclnnSign: x / |x|, and 0 for 0."""
    x = torch.tensor([3 + 4j, 0, -2j, -5], dtype=dtype)
    expected = torch.tensor([0.6 + 0.8j, 0, -1j, -1], dtype=dtype)
    torch.testing.assert_close(torch.sgn(x.npu()).cpu(), expected)
    on_npu = x.npu().requires_grad_()
    on_npu.abs().sum().backward()
    torch.testing.assert_close(on_npu.grad.cpu(), expected)
