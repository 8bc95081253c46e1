"""torch.ops.aclnn.silu, silu_backward and the faces over them, against torch's own SiLU."""

from __future__ import annotations

import itertools
import pickle

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks
from tests.operator_checks import FLOATS, TOLERANCE, Call, views

ops = torch.ops.aclnn

CALLS = [
    Call(F.silu, [(3, 4)], [None], "silu"),
    Call(lambda x: F.silu(x * 1, inplace=True), [(3, 4)], [None], "silu in place"),
    Call(ops.silu_backward, [(4, 3), (4, 3)], [None, None], "silu_backward"),
    Call(F.silu, [()], [None], "silu of a number"),
]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def test_schemas_are_atens() -> None:
    for name in ("silu", "silu_backward"):
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


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(dtype: torch.dtype, requires_grad: bool) -> None:
    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape).to(dtype).requires_grad_(requires_grad)

    strided = torch.randn(4, 6).to(dtype).t()[::2].detach().requires_grad_(requires_grad)
    for x in (tensor(3, 4), tensor(), tensor(0, 2), strided):
        torch.library.opcheck(ops.silu.default, (x,), test_utils=operator_checks.OPCHECK_TESTS)
        arguments = (torch.randn_like(x).requires_grad_(requires_grad), x)
        torch.library.opcheck(ops.silu_backward.default, arguments, test_utils=operator_checks.OPCHECK_TESTS)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_agrees_with_torch_on_its_samples(dtype: torch.dtype) -> None:
    with aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B"):
        operator_checks.check_samples("silu", F, TF, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strides(dtype: torch.dtype) -> None:
    gradients = views((2, 3, 5, 7), dtype)
    for g, x in itertools.product(gradients.values(), views((2, 3, 5, 7), dtype).values()):
        torch.testing.assert_close(ops.silu(x), TF.silu(x), **TOLERANCE[dtype])
        ours, torchs = ops.silu_backward(g, x), torch.ops.aten.silu_backward(g, x)
        # Where 1 + x (1 - s) cancels, a gradient of up to 5 has roundings of its parts.
        torch.testing.assert_close(ours, torchs, **TOLERANCE[dtype] | {"atol": 8 * torch.finfo(dtype).eps})
        assert ours.stride() == torchs.stride()


def test_inplace_follows_autograds_rules() -> None:
    leaf = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.silu(leaf, inplace=True)
    x = leaf * 1
    version = x._version
    assert F.silu(x, inplace=True) is x
    assert x._version == version + 1
    torch.testing.assert_close(torch.autograd.grad(x.sum(), leaf), torch.autograd.grad(TF.silu(leaf).sum(), leaf))
    torch._dynamo.reset()
    compiled = torch.compile(lambda t: F.silu(t.sin(), inplace=True) + 1, fullgraph=True)
    value = torch.randn(5)
    torch.testing.assert_close(compiled(value), TF.silu(value.sin()) + 1)


def test_far_from_zero(host_product: None) -> None:
    """Small results do not vanish before they must, and infinities are as torch's."""
    x = torch.tensor([-90.0, -100.0, 200.0])
    exact = x.double() * torch.sigmoid(x.double())
    torch.testing.assert_close(ops.silu(x).double(), exact, rtol=1e-6, atol=2e-43)
    x = torch.tensor([float("inf"), -float("inf"), float("nan")])
    torch.testing.assert_close(ops.silu(x), TF.silu(x), equal_nan=True)
    ours, torchs = ops.silu_backward(x.new_ones(3), x), torch.ops.aten.silu_backward(x.new_ones(3), x)
    torch.testing.assert_close(ours, torchs, equal_nan=True)


def test_third_derivative(host_product: None) -> None:
    values = []
    for function in (F.silu, TF.silu):
        x = torch.tensor([-1.5, 0.7, 3.0], dtype=torch.float64, requires_grad=True)
        value = function(x)
        for _ in range(3):
            (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        values.append(value.detach())
    torch.testing.assert_close(*values)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_silu_alone_as_torchs(dtype: torch.dtype) -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        assert F.silu(x).dtype == TF.silu(x).dtype == torch.float32
        assert F.silu(x @ x).dtype == TF.silu(x @ x).dtype == dtype


def test_module() -> None:
    for arguments in ((), (True,)):
        ours, torchs = aclnn_torch.nn.SiLU(*arguments), torch.nn.SiLU(*arguments)
        assert repr(ours) == repr(torchs)
        x = torch.randn(3, 5)
        torch.testing.assert_close(ours(x.clone()), torchs(x.clone()), **TOLERANCE[torch.float32])
        y = x.clone()
        assert (ours(y) is y) == (torchs(x) is x)
        assert pickle.loads(pickle.dumps(ours)).inplace == ours.inplace


BAD_CALLS = {
    "float64 on Ascend910B": (
        lambda: ops.silu(torch.ones(2).double()),
        ["aclnnSilu", "self", "DOUBLE", "FLOAT16, FLOAT, BFLOAT16", "Ascend910B", "host product"],
    ),
    "integers": (lambda: ops.silu(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
    "dtype mismatch": (
        lambda: ops.silu_backward(torch.ones(2), torch.ones(2).half()),
        ["aclnnSiluBackward", "self", "Half", "gradOutput", "cast"],
    ),
    "shape mismatch": (
        lambda: ops.silu_backward(torch.ones(2, 3), torch.ones(3, 2)),
        ["self", "[3, 2]", "[2, 3]", "expand"],
    ),
    "9 dimensions": (
        lambda: ops.silu_backward(torch.ones([1] * 9), torch.ones([1] * 9)),
        ["gradOutput", "9 dimensions", "at most 8", "reshape"],
    ),
    "tensors on different devices": (
        lambda: ops.silu_backward(torch.ones(2, device="meta"), torch.ones(2)),
        ["self", "cpu", "meta", "gradOutput"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])


def test_no_gradient_on_ascend310p() -> None:
    with aclnn_torch.product("Ascend310P"):
        x = torch.randn(3, requires_grad=True)
        y = F.silu(x)
        operator_checks.check_error(
            lambda: y.sum().backward(), ["aclnnSiluBackward", "Ascend310P"], 561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR"
        )
