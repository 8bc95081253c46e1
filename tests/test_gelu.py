"""torch.ops.aclnn.gelu, gelu_backward and the faces over them, against torch's own GELU."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks
from tests.operator_checks import FLOATS, TOLERANCE, Call, views

ops = torch.ops.aclnn

FORMULAS = ("none", "tanh")
EACH_FORMULA = pytest.mark.parametrize("approximate", FORMULAS)

CALLS = [
    *(Call(partial(F.gelu, approximate=a), [(3, 4)], [None], f"gelu, {a}") for a in FORMULAS),
    *(
        Call(partial(ops.gelu_backward, approximate=a), [(4, 3), (4, 3)], [None, None], f"gelu_backward, {a}")
        for a in FORMULAS
    ),
    Call(F.gelu, [()], [None], "gelu of a number"),
]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def in_double(function: Callable[..., Tensor], *tensors: Tensor, **options: str) -> Tensor:
    """torch's function, computed in double and rounded once: in float its own cancels below zero."""
    return function(*(tensor.double() for tensor in tensors), **options).to(tensors[-1].dtype)


def test_schemas_are_atens() -> None:
    for name in ("gelu", "gelu_backward"):
        ours = str(getattr(ops, name).default._schema).removeprefix("aclnn::")
        assert ours == str(getattr(torch.ops.aten, name).default._schema).removeprefix("aten::")


@NAMED_CALLS
def test_gradients(call: Call, host_product: None) -> None:
    operator_checks.check_gradients(call)


@NAMED_CALLS
def test_transforms(call: Call, host_product: None) -> None:
    operator_checks.check_transforms(call)


@NAMED_CALLS
def test_compilers(call: Call) -> None:
    operator_checks.check_compilers(call, torch.float32)


@NAMED_CALLS
def test_compiled_autograd(call: Call) -> None:
    operator_checks.check_compiled_autograd(call, torch.float32)


@EACH_FORMULA
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(dtype: torch.dtype, requires_grad: bool, approximate: str) -> None:
    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape).to(dtype).requires_grad_(requires_grad)

    strided = torch.randn(4, 6).to(dtype).t()[::2].detach().requires_grad_(requires_grad)
    options = {"test_utils": operator_checks.OPCHECK_TESTS}
    for x in (tensor(3, 4), tensor(), tensor(0, 2), strided):
        keywords = {"approximate": approximate}
        torch.library.opcheck(ops.gelu.default, (x,), keywords, **options)
        arguments = (torch.randn_like(x).requires_grad_(requires_grad), x)
        torch.library.opcheck(ops.gelu_backward.default, arguments, keywords, **options)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_agrees_with_torch_on_its_samples(dtype: torch.dtype) -> None:
    info = next(op for op in op_db if op.name == "nn.functional.gelu")
    count = 0
    with aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B"):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
            results = []
            for module, wide in ((F, dtype), (TF, torch.float64)):
                x = sample.input.detach().to(wide).requires_grad_()
                y = module.gelu(x, *sample.args, **sample.kwargs)
                weight = torch.linspace(-2, 2, y.numel(), dtype=torch.float64).to(dtype).reshape(y.shape)
                results.append((y, *torch.autograd.grad(y, x, weight.to(wide))))
            for got, expected in zip(*results, strict=True):
                # In double torch's own cancels: a unit of 1 times the largest input, 9.
                tolerance = {"rtol": 0.0, "atol": 2**-49} if dtype == torch.float64 else TOLERANCE[dtype]
                torch.testing.assert_close(got, expected.to(dtype), **tolerance)
                assert got.stride() == expected.stride()
            count += 1
    assert count >= 3


@EACH_FORMULA
@pytest.mark.parametrize("dtype", FLOATS)
def test_strides(dtype: torch.dtype, approximate: str) -> None:
    gradients = views((2, 3, 5, 7), dtype)
    for g, x in itertools.product(gradients.values(), views((2, 3, 5, 7), dtype).values()):
        ours = ops.gelu(x, approximate=approximate)
        torch.testing.assert_close(ours, in_double(TF.gelu, x, approximate=approximate), **TOLERANCE[dtype])
        ours = ops.gelu_backward(g, x, approximate=approximate)
        torchs = in_double(torch.ops.aten.gelu_backward, g, x, approximate=approximate)
        # Where the two parts of the derivative cancel, a gradient of up to 5 has roundings of either.
        torch.testing.assert_close(ours, torchs, **TOLERANCE[dtype] | {"atol": 8 * torch.finfo(torch.float32).eps})
        assert ours.stride() == torch.ops.aten.gelu_backward(g, x, approximate=approximate).stride()


@EACH_FORMULA
def test_far_from_zero(approximate: str) -> None:
    """Results below zero keep their digits; inf has a value but no derivative, -inf neither, as 0 * inf has none."""
    x = torch.tensor([-6.0, -9.0, -1e20, 1e20])
    exact = TF.gelu(x.double(), approximate=approximate)
    if approximate == "none":
        exact = x.double() * torch.special.erfc(x.double() * -(0.5**0.5)) / 2
    torch.testing.assert_close(ops.gelu(x, approximate=approximate).double()[[0, 3]], exact[[0, 3]], rtol=1e-5, atol=0)
    assert ops.gelu_backward(torch.ones(4), x, approximate=approximate)[2:].tolist() == [0.0, 1.0]
    x = torch.tensor([float("inf"), -float("inf"), float("nan")])
    torch.testing.assert_close(ops.gelu(x, approximate=approximate), torch.where(x > 0, x, torch.nan), equal_nan=True)
    assert ops.gelu_backward(x.new_ones(3), x, approximate=approximate).isnan().all()


def test_digits_of_the_normal_distribution() -> None:
    """torch's own float32 loses them to cancellation from -4 on."""
    x = torch.linspace(-9, 0, 1000)
    exact = x.double() * torch.special.erfc(x.double() * -(0.5**0.5)) / 2
    torch.testing.assert_close(ops.gelu(x).double(), exact, rtol=50 * 2**-24, atol=0)


@EACH_FORMULA
def test_third_derivative(approximate: str, host_product: None) -> None:
    values = []
    for function in (F.gelu, TF.gelu):
        x = torch.tensor([-1.5, 0.7, 3.0], dtype=torch.float64, requires_grad=True)
        value = function(x, approximate=approximate)
        for _ in range(3):
            (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        values.append(value.detach())
    torch.testing.assert_close(*values)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_gelu_alone_as_torchs(dtype: torch.dtype) -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        assert F.gelu(x).dtype == TF.gelu(x).dtype == torch.float32
        assert F.gelu(x @ x).dtype == TF.gelu(x @ x).dtype == dtype


@EACH_FORMULA
def test_module(approximate: str) -> None:
    ours, torchs = aclnn_torch.nn.GELU(approximate), torch.nn.GELU(approximate)
    assert repr(ours) == repr(torchs)
    x = torch.randn(3, 5)
    torch.testing.assert_close(ours(x), torchs(x))
    assert pickle.loads(pickle.dumps(ours)).approximate == approximate


BAD_CALLS = {
    "float64 on Ascend910B": (
        lambda: ops.gelu(torch.ones(2).double()),
        ["aclnnGeluV2", "x", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
    ),
    "integers": (
        lambda: ops.gelu(torch.ones(2, dtype=torch.int32), approximate="tanh"),
        ["aclnnGelu", "self", "INT32", "cast"],
    ),
    "another formula": (lambda: F.gelu(torch.ones(2), "erf"), ["approximate", '"erf"', '"none"', '"tanh"']),
    "dtype mismatch": (
        lambda: ops.gelu_backward(torch.ones(2), torch.ones(2).half()),
        ["aclnnGeluBackwardV2", "self", "Half", "gradOutput", "cast"],
    ),
    "shape mismatch": (
        lambda: ops.gelu_backward(torch.ones(2, 3), torch.ones(3, 2), approximate="tanh"),
        ["aclnnGeluBackward", "self", "[3, 2]", "[2, 3]", "expand"],
    ),
    "9 dimensions": (
        lambda: ops.gelu(torch.ones([1] * 9), approximate="tanh"),
        ["self", "9 dimensions", "at most 8", "reshape"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])
