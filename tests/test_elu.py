"""torch.ops.aclnn.elu, elu_, elu_backward and the faces over them, against torch's own ELU and CELU."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

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
    Call(F.elu, [(3, 4)], [None, 1.3], "elu"),
    Call(F.celu, [(5,)], [None, 0.7], "celu"),
    Call(ops.elu, [(2, 3)], [None, 1.2, 0.8, 1.5], "elu with scales"),
    Call(lambda x: F.elu(x * 1, 1.3, inplace=True), [(3, 4)], [None], "elu in place"),
    Call(ops.elu_backward, [(4, 3), (4, 3)], [None, 1.2, 0.8, 1.5, False, None], "elu_backward of the input"),
    Call(ops.elu_backward, [(4, 3), (4, 3)], [None, 1.2, 0.8, 1.5, True, None], "elu_backward of the result"),
    Call(ops.elu, [()], [None], "elu of a number"),
]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def test_schemas_are_atens() -> None:
    for name in ("elu", "elu_", "elu_backward"):
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
        torch.library.opcheck(ops.elu.default, (x, 1.5, 0.5, 2.0), test_utils=operator_checks.OPCHECK_TESTS)
        g = torch.randn_like(x).requires_grad_(requires_grad)
        for is_result in (False, True):
            arguments = (g, 1.5, 0.5, 2.0, is_result, x)
            torch.library.opcheck(ops.elu_backward.default, arguments, test_utils=operator_checks.OPCHECK_TESTS)
    torch.library.opcheck(ops.elu_.default, (tensor(3, 4).detach(), 1.5))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
@pytest.mark.parametrize("name", ["elu", "celu"])
def test_agrees_with_torch_on_its_samples(name: str, dtype: torch.dtype) -> None:
    with aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B"):
        operator_checks.check_samples(name, F, TF, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strides(dtype: torch.dtype) -> None:
    gradients = views((2, 3, 5, 7), dtype)
    inputs = views((2, 3, 5, 7), dtype)
    gradients["expanded"] = torch.randn(1, 3, 1, 7).to(dtype).expand(2, 3, 5, 7)
    for (layout, g), x in itertools.product(gradients.items(), inputs.values()):
        torch.testing.assert_close(ops.elu(x, 1.5), TF.elu(x, 1.5), **TOLERANCE[dtype])
        for is_result in (False, True):
            ours = ops.elu_backward(g, 1.5, 1.0, 1.0, is_result, x)
            torchs = torch.ops.aten.elu_backward(g, 1.5, 1.0, 1.0, is_result, x)
            torch.testing.assert_close(ours, torchs, **TOLERANCE[dtype])
            # For an expanded gradient and an input with gaps, ATen lays the result out like the input.
            if layout != "expanded" or x.is_contiguous():
                assert ours.stride() == torchs.stride()
    for x in inputs.values():
        y = x.detach().clone(memory_format=torch.preserve_format)
        assert F.elu(y, 1.5, inplace=True) is y
        torch.testing.assert_close(y, TF.elu(x, 1.5), **TOLERANCE[dtype])


def test_inplace_on_a_view_writes_only_the_view() -> None:
    base = torch.full((6, 6), -1.0)
    F.elu(base[1:5:2, ::3], inplace=True)
    expected = torch.full((6, 6), -1.0)
    TF.elu(expected[1:5:2, ::3], inplace=True)
    torch.testing.assert_close(base, expected)


def test_inplace_follows_autograds_rules() -> None:
    leaf = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.elu(leaf, inplace=True)
    x = leaf * 1
    version = x._version
    F.elu(x, inplace=True)
    assert x._version == version + 1
    y = leaf.exp()
    F.elu(y, inplace=True)  # overwrites what exp saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    # A view of a base: the gradient reaches the base.
    results = []
    for functional in (F, TF):
        w = torch.arange(-3.0, 3.0, requires_grad=True)
        base = w * 1
        functional.elu(base[:4], 1.5, inplace=True)
        results.append(torch.autograd.grad(base.square().sum(), w)[0])
    torch.testing.assert_close(*results)
    torch._dynamo.reset()
    compiled = torch.compile(lambda t: F.elu(t.sin(), 1.5, inplace=True) + 1, fullgraph=True)
    x = torch.randn(5)
    torch.testing.assert_close(compiled(x), TF.elu(x.sin(), 1.5) + 1)
    with torch.inference_mode():
        x = torch.full((2,), -1.0)
        torch.testing.assert_close(F.elu(x, inplace=True), torch.expm1(torch.full((2,), -1.0)))


def test_a_change_in_inference_mode_is_seen() -> None:
    leaf = torch.tensor([-1.0, 2.0], requires_grad=True)
    saved = leaf.clone()
    product = saved * saved
    with torch.inference_mode():
        F.elu(saved, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    with torch.inference_mode():
        inference = torch.tensor([-1.0])
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        F.elu(inference, inplace=True)


def test_inplace_on_memory_shared_until_written() -> None:
    x = torch.tensor([-1.0, 2.0])
    y = torch._lazy_clone(x)
    F.elu(y, inplace=True)
    assert x.tolist() == [-1.0, 2.0] and y[0] < -0.6
    z = torch._lazy_clone(x)
    F.elu(z)
    assert torch._C._is_cow_tensor(z)  # reading does not copy


def test_elements_that_straddle_their_size() -> None:
    """Above the size from which the kernels bypass the caches, at an address that is no multiple of the element's."""
    count = 1 << 22
    x = torch.frombuffer(bytearray(4 * count + 8), dtype=torch.float32, offset=1, count=count)
    x.fill_(-1.0)
    F.elu(x, inplace=True)
    assert torch.equal(x, TF.elu(torch.full((count,), -1.0)))


def test_sizes_known_only_at_run_time() -> None:
    torch._dynamo.reset()
    x = torch.randn(20, requires_grad=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(lambda a: F.elu(a[a > 0] - 0.5).sum(), backend="aot_eager", fullgraph=True)
        compiled(x).backward()
    expected = torch.autograd.grad(TF.elu(x[x > 0] - 0.5).sum(), x)[0]
    torch.testing.assert_close(x.grad, expected)


def test_vmap_over_tensors_of_the_highest_rank() -> None:
    x = torch.randn(3, 1, 1, 2, 1, 2, 1, 1, 2)
    torch.testing.assert_close(torch.vmap(F.elu)(x), TF.elu(x), **TOLERANCE[torch.float32])


def test_forward_mode_in_place_with_a_negative_alpha(host_product: None) -> None:
    x, t = torch.randn(5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    ours = torch.func.jvp(lambda a: F.elu(a * 1, -1.3, inplace=True), (x,), (t,))
    torch.testing.assert_close(ours, torch.func.jvp(lambda a: TF.elu(a, -1.3), (x,), (t,)))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_meta_tensors_are_checked_too(device: str) -> None:
    with pytest.raises(aclnn_torch.AclnnError, match="has shape"):
        ops.elu_backward(torch.ones(2, device=device), 1, 1, 1, False, torch.ones(3, device=device))
    with pytest.raises(aclnn_torch.AclnnError, match="has dtype"):
        ops.elu_backward(torch.ones(2, device=device), 1, 1, 1, False, torch.ones(2, device=device).half())
    with pytest.raises(aclnn_torch.AclnnError, match="elements that alias one another"):
        F.elu(torch.ones(1, device=device).expand(4), inplace=True)


def test_third_derivative(host_product: None) -> None:
    x = torch.tensor([-1.5, 0.7], dtype=torch.float64, requires_grad=True)
    value = F.elu(x, 1.3)
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    torch.testing.assert_close(value, torch.where(x < 0, 1.3 * x.exp(), 0.0))


def test_a_gradient_through_the_raw_backward_is_not_dropped() -> None:
    g, y = (torch.randn(4, requires_grad=True) for _ in range(2))
    ops.elu_backward(g, 1.0, 1.0, 1.0, False, y).sum().backward()
    assert g.grad is not None and y.grad is not None
    g2, y2 = (tensor.detach().clone().requires_grad_() for tensor in (g, y))
    torch.ops.aten.elu_backward(g2, 1.0, 1.0, 1.0, False, y2).sum().backward()
    torch.testing.assert_close((g.grad, y.grad), (g2.grad, y2.grad))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_elu_alone_as_torchs(dtype: torch.dtype) -> None:
    x = torch.randn(4, 4, requires_grad=True)
    w = torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=dtype):
        assert F.elu(x).dtype == TF.elu(x).dtype == torch.float32
        product = F.elu(x @ w)
        assert product.dtype == TF.elu(x @ w).dtype == dtype
    product.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32


@pytest.mark.parametrize("ours, torchs", [(aclnn_torch.nn.ELU, torch.nn.ELU), (aclnn_torch.nn.CELU, torch.nn.CELU)])
def test_modules(ours: type, torchs: type) -> None:
    for arguments in ((), (1.7,), (0.5, True)):
        a, b = ours(*arguments), torchs(*arguments)
        assert repr(a) == repr(b)
        assert a.state_dict() == b.state_dict() == {}
        x = torch.randn(3, 5)
        torch.testing.assert_close(a(x.clone()), b(x.clone()), **TOLERANCE[torch.float32])
        y = x.clone()
        assert (a(y) is y) == (b(x) is x)
    assert pickle.loads(pickle.dumps(ours(1.5))).alpha == 1.5


def test_celu_of_alpha_0() -> None:
    with pytest.raises(RuntimeError, match="alpha is 0"):
        F.celu(torch.ones(2), 0.0)


BAD_CALLS = {
    "float64 on Ascend910B": (
        lambda: ops.elu_backward(torch.ones(2).double(), 1, 1, 1, False, torch.ones(2).double()),
        ["aclnnEluBackward", "gradOutput", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
    ),
    "dtype mismatch": (
        lambda: ops.elu_backward(torch.ones(2), 1, 1, 1, False, torch.ones(2).half()),
        ["selfOrResult", "Half", "expected Float", "gradOutput", "cast", "Ascend910B"],
    ),
    "shape mismatch": (
        lambda: ops.elu_backward(torch.ones(2, 3), 1, 1, 1, False, torch.ones(3)),
        ["selfOrResult", "[3]", "[2, 3]", "expand"],
    ),
    "isResult with alpha < 0": (
        lambda: ops.elu_backward(torch.ones(2), -1.5, 1, 1, True, torch.ones(2)),
        ["alpha is -1.5", "isResult", "alpha >= 0"],
    ),
    "9 dimensions": (lambda: ops.elu(torch.ones([1] * 9)), ["self", "9 dimensions", "at most 8", "reshape"]),
    "complex scalar": (lambda: ops.elu(torch.ones(2), 1 + 2j), ["alpha", "COMPLEX128", "FLOAT", "real"]),
    "integer tensor": (lambda: ops.elu(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
    "tensors on different devices": (
        lambda: ops.elu_backward(torch.ones(2), 1, 1, 1, False, torch.ones(2, device="meta")),
        ["selfOrResult", "meta", "cpu", "gradOutput", "Ascend910B"],
    ),
    "negative alpha in place, in the backward": (
        lambda: F.elu(torch.ones(2, requires_grad=True) * 1, -1.0, inplace=True).sum().backward(),
        ["alpha is -1", "alpha >= 0"],
    ),
    "in place on an expanded tensor": (
        lambda: F.elu(torch.ones(1).expand(4), inplace=True),
        ["aclnnInplaceElu", "selfRef", "alias one another", "clone"],
    ),
    "a type that CANN lacks": (
        lambda: ops.elu(torch.ones(2).to(torch.float8_e4m3fnuz)),
        ["self", "Float8_e4m3fnuz", "cast"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])


def test_sparse_tensors_are_refused_by_the_dispatcher() -> None:
    with pytest.raises(NotImplementedError, match="SparseCPU"):
        ops.elu(torch.eye(3).to_sparse())


def test_an_error_in_a_thread_of_the_autograd_engine(nothing_leaked: None) -> None:
    def fails() -> None:
        y = F.elu(torch.ones(2, requires_grad=True) * 1, -1.0, inplace=True)
        with pytest.raises(aclnn_torch.AclnnError):
            y.sum().backward()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fails(), range(50)))


def test_threads_agree() -> None:
    x = torch.randn(1000, 33)
    expected = F.elu(x, 1.5)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: F.elu(x, 1.5), range(100)):
            assert torch.equal(result, expected)


def test_the_same_bits_for_any_number_of_threads() -> None:
    x = torch.randn(300_001)
    g = torch.randn(300_001)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 5, 8):
            torch.set_num_threads(threads)
            results.append(torch.cat([F.elu(x, 1.5), ops.elu_backward(g, 1.5, 1.0, 1.0, False, x)]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_same_bits_at_any_alignment(dtype: torch.dtype) -> None:
    x, g = (torch.randn(1000).to(dtype) for _ in range(2))
    expected = ops.elu_backward(g, 1.5, 1.0, 1.0, False, x)
    storage = torch.zeros(1100, dtype=dtype)
    for offset in range(70):
        window = storage[offset : offset + 1000]
        window.copy_(x)
        assert torch.equal(ops.elu_backward(g, 1.5, 1.0, 1.0, False, window), expected)
        assert torch.equal(F.elu(window, 1.5, inplace=True), ops.elu(x, 1.5))


def test_large_tensors() -> None:
    """Above the size from which the kernels bypass the caches."""
    for dtype in FLOATS:
        x = torch.randn(1 << 23).to(dtype)[3:]
        g = torch.randn(x.shape).to(dtype)
        ours = ops.elu_backward(g, 1.5, 1.0, 1.0, False, x)
        torch.testing.assert_close(ours, torch.ops.aten.elu_backward(g, 1.5, 1.0, 1.0, False, x), **TOLERANCE[dtype])


def test_a_backward_that_failed_can_be_tried_again(host_product: None) -> None:
    """The graph is kept until the gradient is there, as torch keeps it."""
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = F.elu(x)
    with aclnn_torch.product("Ascend910B"), pytest.raises(aclnn_torch.AclnnError):
        y.sum().backward()
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(TF.elu(x).sum(), x)[0])


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
@pytest.mark.parametrize("input_scale", [1.0, 5e-7, 0.0, -1.0])
def test_zeros_keep_their_signs(input_scale: float, dtype: torch.dtype, host_product: None) -> None:
    zeros = torch.tensor([0.0, -0.0] * 20, dtype=dtype)
    result = ops.elu(zeros, 1.0, 1.0, input_scale)
    assert torch.equal(result, zeros)
    assert torch.equal(result.signbit(), zeros.signbit())


@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64], ids=str)
def test_the_gradient_at_a_nan(dtype: torch.dtype, is_result: bool, host_product: None) -> None:
    """The incoming gradient times scale, wherever the element stands; ATen's is NaN where it computes in vectors."""
    for count in (1, 7, 64, 100):
        arguments = (torch.full((2 * count,), 3.0, dtype=dtype), 1.5, 2.0, 0.5, is_result)
        nan = torch.full((2 * count,), torch.nan, dtype=dtype)
        for step in (1, 2):
            gradient, value = arguments[0][::step], nan[::step]
            assert set(ops.elu_backward(gradient, *arguments[1:], value).tolist()) == {6.0}
        # As docs/emulation.md has it: ATen's scalar loop, and its vectorised one.
        aten = torch.ops.aten.elu_backward
        assert set(aten(gradient, *arguments[1:], value).tolist()) == {6.0}
    gradient, nan = torch.full((64,), 3.0, dtype=dtype), torch.full((64,), torch.nan, dtype=dtype)
    assert torch.ops.aten.elu_backward(gradient, 1.5, 2.0, 0.5, is_result, nan).isnan().all()
