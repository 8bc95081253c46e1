"""Properties specific to ELU and CELU, in addition to tests/test_operators.py."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as TF

import aclnn_torch
import aclnn_torch.functional as F
from tests.operator_checks import FLOATS, TOLERANCE

ops = torch.ops.aclnn


def test_the_gradient_of_a_view_changed_in_place_reaches_its_base() -> None:
    results = []
    for functional in (F, TF):
        w = torch.arange(-3.0, 3.0, requires_grad=True)
        base = w * 1
        functional.elu(base[:4], 1.5, inplace=True)
        results.append(torch.autograd.grad(base.square().sum(), w)[0])
    torch.testing.assert_close(*results)


def test_in_place_in_inference_mode() -> None:
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
    """Above the size at which kernels use streaming stores, at an address off the element size."""
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


def test_a_gradient_through_the_raw_backward_is_not_dropped() -> None:
    g, y = (torch.randn(4, requires_grad=True) for _ in range(2))
    ops.elu_backward(g, 1.0, 1.0, 1.0, False, y).sum().backward()
    assert g.grad is not None and y.grad is not None
    g2, y2 = (tensor.detach().clone().requires_grad_() for tensor in (g, y))
    torch.ops.aten.elu_backward(g2, 1.0, 1.0, 1.0, False, y2).sum().backward()
    torch.testing.assert_close((g.grad, y.grad), (g2.grad, y2.grad))


def test_celu_of_alpha_0() -> None:
    with pytest.raises(RuntimeError, match="alpha is 0"):
        F.celu(torch.ones(2), 0.0)


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
    """Above the size at which kernels use streaming stores."""
    for dtype in FLOATS:
        x = torch.randn(1 << 23).to(dtype)[3:]
        g = torch.randn(x.shape).to(dtype)
        ours = ops.elu_backward(g, 1.5, 1.0, 1.0, False, x)
        torch.testing.assert_close(ours, torch.ops.aten.elu_backward(g, 1.5, 1.0, 1.0, False, x), **TOLERANCE[dtype])


def test_a_backward_that_failed_can_be_tried_again(host_product: None) -> None:
    """The graph is kept until the gradient is computed, as in torch."""
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
    """The incoming gradient times scale, at any position; ATen's is NaN where it computes in vectors."""
    for count in (1, 7, 64, 100):
        arguments = (torch.full((2 * count,), 3.0, dtype=dtype), 1.5, 2.0, 0.5, is_result)
        nan = torch.full((2 * count,), torch.nan, dtype=dtype)
        for step in (1, 2):
            gradient, value = arguments[0][::step], nan[::step]
            assert set(ops.elu_backward(gradient, *arguments[1:], value).tolist()) == {6.0}
        # As in docs/emulation/operators.md: ATen's scalar loop, and its vectorised one.
        aten = torch.ops.aten.elu_backward
        assert set(aten(gradient, *arguments[1:], value).tolist()) == {6.0}
    gradient, nan = torch.full((64,), 3.0, dtype=dtype), torch.full((64,), torch.nan, dtype=dtype)
    assert torch.ops.aten.elu_backward(gradient, 1.5, 2.0, 0.5, is_result, nan).isnan().all()
