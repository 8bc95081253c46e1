"""torch.ops.aclnn.selu, selu_, selu_backward and the faces over them, against torch's own SELU."""

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

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805

CALLS = [
    Call(F.selu, [(3, 4)], [None], "selu"),
    Call(lambda x: F.selu(x * 1, inplace=True), [(3, 4)], [None], "selu in place"),
    Call(ops.selu_backward, [(4, 3), (4, 3)], [None, None], "selu_backward"),
    Call(F.selu, [()], [None], "selu of a number"),
]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def reference_backward(grad_output: Tensor, result: Tensor) -> Tensor:
    """The gradient through ATen's ELU, which SELU is a case of."""
    return torch.ops.aten.elu_backward(grad_output, ALPHA, SCALE, 1.0, True, result)


def test_schemas() -> None:
    assert str(ops.selu.default._schema) == "aclnn::selu(Tensor self) -> Tensor"
    assert str(ops.selu_backward.default._schema) == "aclnn::selu_backward(Tensor grad_output, Tensor result) -> Tensor"


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

    for shape in ((3, 4), (), (0, 2), [1] * 9):
        x = tensor(*shape)
        torch.library.opcheck(ops.selu.default, (x,), test_utils=operator_checks.OPCHECK_TESTS)
        arguments = (tensor(*shape), x)
        torch.library.opcheck(ops.selu_backward.default, arguments, test_utils=operator_checks.OPCHECK_TESTS)
    torch.library.opcheck(ops.selu_.default, (tensor(3, 4).detach(),))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_agrees_with_torch_on_its_samples(dtype: torch.dtype) -> None:
    with aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B"):
        # CANN's gradient starts from the rounded result, torch's from the input: half a unit in the last place of a
        # result in (-2, -1], times the incoming gradient of at most 2.
        operator_checks.check_samples("selu", F, TF, dtype, gradient_atol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strides(dtype: torch.dtype) -> None:
    gradients = views((2, 3, 5, 7), dtype)
    for g, x in itertools.product(gradients.values(), views((2, 3, 5, 7), dtype).values()):
        torch.testing.assert_close(ops.selu(x), TF.selu(x), **TOLERANCE[dtype])
        ours, torchs = ops.selu_backward(g, x), reference_backward(g, x)
        torch.testing.assert_close(ours, torchs, **TOLERANCE[dtype])
        assert ours.stride() == torchs.stride()
        y = x.detach().clone(memory_format=torch.preserve_format)
        assert F.selu(y, inplace=True) is y
        torch.testing.assert_close(y, TF.selu(x), **TOLERANCE[dtype])


def test_zero_is_on_the_negative_branch() -> None:
    result = torch.tensor([0.0, -0.0, 1e-30, -SCALE * ALPHA, float("nan")])
    gradient = ops.selu_backward(torch.ones(5), result)
    torch.testing.assert_close(gradient, torch.tensor([1.7580993, 1.7580993, 1.0507010, 0.0, 1.0507010]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 2, 19, 20, -1, -2, -100], dtype=dtype)
    # 20 * 1.05... passes 21; every negative number gives a fraction above -2.
    assert ops.selu(x).tolist() == [0, 1, 2, 19, 21, -1, -1, -1]
    g = torch.tensor([1, 2, 3, 10, 0, 4, 5, 0], dtype=dtype)
    y = torch.tensor([1, 0, -1, 5, 7, -1, 0, 3], dtype=dtype)
    # g * 1.0507 or g * (y + 1.7581), to the nearest integer.
    assert ops.selu_backward(g, y).tolist() == [1, 4, 2, 11, 0, 3, 9, 0]


def test_inplace_follows_autograds_rules() -> None:
    leaf = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.selu(leaf, inplace=True)
    x = leaf * 1
    version = x._version
    F.selu(x, inplace=True)
    assert x._version == version + 1
    x.add_(1)  # overwrites the result that the backward needs
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()
    torch._dynamo.reset()
    compiled = torch.compile(lambda t: F.selu(t.sin(), inplace=True) + 1, fullgraph=True)
    value = torch.randn(5)
    torch.testing.assert_close(compiled(value), TF.selu(value.sin()) + 1)


def test_second_use_of_the_graph_is_refused_as_torchs() -> None:
    x = torch.randn(3, requires_grad=True)
    y = F.selu(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_selu_alone_as_torchs(dtype: torch.dtype) -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        assert F.selu(x).dtype == TF.selu(x).dtype == torch.float32
        assert F.selu(x @ x).dtype == TF.selu(x @ x).dtype == dtype


def test_module() -> None:
    for arguments in ((), (True,)):
        ours, torchs = aclnn_torch.nn.SELU(*arguments), torch.nn.SELU(*arguments)
        assert repr(ours) == repr(torchs)
        x = torch.randn(3, 5)
        torch.testing.assert_close(ours(x.clone()), torchs(x.clone()), **TOLERANCE[torch.float32])
        y = x.clone()
        assert (ours(y) is y) == (torchs(x) is x)
        assert pickle.loads(pickle.dumps(ours)).inplace == ours.inplace


BAD_CALLS = {
    "float64 on Ascend910B": (
        lambda: ops.selu(torch.ones(2).double()),
        ["aclnnSelu", "self", "DOUBLE", "FLOAT, FLOAT16, INT32, INT8, BFLOAT16", "Ascend910B", "host product"],
    ),
    "unsigned bytes": (lambda: ops.selu(torch.ones(2, dtype=torch.uint8)), ["self", "UINT8", "cast"]),
    "dtype mismatch": (
        lambda: ops.selu_backward(torch.ones(2), torch.ones(2).half()),
        ["aclnnSeluBackward", "result", "Half", "gradOutput", "cast"],
    ),
    "shape mismatch": (
        lambda: ops.selu_backward(torch.ones(2, 3), torch.ones(3, 2)),
        ["result", "[3, 2]", "[2, 3]", "expand"],
    ),
    "tensors on different devices": (
        lambda: ops.selu_backward(torch.ones(2, device="meta"), torch.ones(2)),
        ["result", "cpu", "meta", "gradOutput"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])


def test_bfloat16_before_atlas_a2() -> None:
    with aclnn_torch.product("Ascend310P"):
        operator_checks.check_error(
            lambda: ops.selu(torch.ones(2).bfloat16()), ["BFLOAT16", "Ascend310P", "FLOAT, FLOAT16", "Ascend910B"]
        )
