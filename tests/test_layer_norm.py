"""torch.ops.aclnn.layer_norm, layer_norm_backward and their functions and modules, against torch's own LayerNorm."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import aclnn_torch
import aclnn_torch.functional as F
from tests import operator_checks
from tests.operator_checks import FLOATS

ops = torch.ops.aclnn

ALL = [True] * 3


def test_schemas_are_atens() -> None:
    for ours, atens in (("layer_norm", "native_layer_norm"), ("layer_norm_backward", "native_layer_norm_backward")):
        schema = str(getattr(ops, ours).default._schema).replace(f"aclnn::{ours}", f"aten::{atens}")
        assert schema == str(getattr(torch.ops.aten, atens).default._schema)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(dtype: torch.dtype, requires_grad: bool) -> None:
    for rows, norm in (((3,), (2, 4)), ((), (6,))):

        def tensor(*shape: int, dtype: torch.dtype = dtype) -> Tensor:
            return torch.randn(shape).to(dtype).requires_grad_(requires_grad)

        x, g, weight, bias = tensor(*rows, *norm), tensor(*rows, *norm), tensor(*norm), tensor(*norm)
        mean, rstd = (tensor(*rows, *[1] * len(norm), dtype=torch.float32) for _ in range(2))
        for operator, arguments in (
            (ops.layer_norm, (x, norm, weight, bias, 1e-5)),
            (ops.layer_norm_backward, (g, x, norm, mean, rstd, weight, bias, ALL)),
        ):
            operator_checks.opcheck(operator.default, arguments)


def results(function: Any, x: Tensor, arguments: Any, keywords: Any) -> list[Tensor]:
    """The value, and the gradients with respect to all tensors."""
    leaves = [x.detach().requires_grad_()]
    given = [tensor.detach().requires_grad_() if isinstance(tensor, Tensor) else tensor for tensor in arguments]
    leaves += [tensor for tensor in given if isinstance(tensor, Tensor)]
    named = {k: v.detach().requires_grad_() if isinstance(v, Tensor) else v for k, v in keywords.items()}
    leaves += [tensor for tensor in named.values() if isinstance(tensor, Tensor)]
    y = function(leaves[0], *given, **named)
    weight = torch.linspace(-2, 2, y.numel(), dtype=torch.float64).reshape(y.shape)
    return [y, *torch.autograd.grad((y.double() * weight).sum(), leaves)]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_agrees_with_torch_on_its_samples(dtype: torch.dtype) -> None:
    """Computed in double by torch: the bound is a few roundings of the largest number, and one of the result."""
    info = next(op for op in op_db if op.name == "nn.functional.layer_norm")
    count = 0
    with aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B"):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):

            def wide(value: Any) -> Any:
                return value.double() if isinstance(value, Tensor) else value

            got = results(F.layer_norm, sample.input, sample.args, sample.kwargs)
            keywords = {key: wide(value) for key, value in sample.kwargs.items()}
            expected = results(TF.layer_norm, sample.input.double(), [wide(v) for v in sample.args], keywords)
            for ours, torchs in zip(got, expected, strict=True):
                assert ours.shape == torchs.shape and ours.dtype == dtype
                largest = max([1.0, *torchs.detach().abs().flatten().tolist()])
                # Incoming gradients are rounded to the dtype; up to 64 of them are summed.
                atol = 64 * largest * min(torch.finfo(dtype).eps, 2**-23) + largest * torch.finfo(dtype).eps
                torch.testing.assert_close(ours.double(), torchs, rtol=torch.finfo(dtype).eps, atol=atol)
            count += 1
    assert count >= 6


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 1000), (4, 10_000), (70_000, 3), (1, 300_000)])
def test_sizes(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Rows of several segments, and of few elements; compared with torch's float64."""
    x, g = (torch.randn(shape).to(dtype) for _ in range(2))
    weight, bias = torch.randn(shape[-1:]), torch.randn(shape[-1:])
    y, mean, rstd = ops.layer_norm(x, shape[-1:], weight, bias, 1e-5)
    dx, dgamma, dbeta = ops.layer_norm_backward(g, x, shape[-1:], mean, rstd, weight, bias, ALL)
    wide = [tensor.double() for tensor in (x, weight, bias)]
    exact = torch.ops.aten.native_layer_norm(wide[0], shape[-1:], *wide[1:], 1e-5)
    for got, expected in zip((y, mean, rstd), exact, strict=True):
        eps = torch.finfo(got.dtype).eps
        # For three nearly equal numbers, rstd, here up to 300, amplifies the rounding of their mean.
        torch.testing.assert_close(got.double(), expected, rtol=eps, atol=eps + 300 * 2**-24)
    kept = (mean.double(), rstd.double())
    gradients = torch.ops.aten.native_layer_norm_backward(g.double(), wide[0], shape[-1:], *kept, *wide[1:], ALL)
    for got, expected in zip((dx, dgamma, dbeta), gradients, strict=True):
        eps, largest = torch.finfo(got.dtype).eps, float(expected.abs().max())
        torch.testing.assert_close(got.double(), expected, rtol=eps, atol=2**-20 * largest)


def test_a_large_mean_does_not_cancel() -> None:
    """The variance is that of the differences from the mean, not a difference of squares."""
    x = torch.randn(4, 1000) + 4096
    y, _, rstd = ops.layer_norm(x, [1000], None, None, 0.0)
    exact = TF.layer_norm(x.double(), [1000], eps=0.0)
    torch.testing.assert_close(y.double(), exact, rtol=0, atol=2e-3)  # limited by the mean's precision in float32
    torch.testing.assert_close(rstd.double(), x.double().var(1, correction=0, keepdim=True).rsqrt(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [2, 33, 5000])
def test_numbers_whose_sum_overflows_have_a_mean(columns: int, dtype: torch.dtype) -> None:
    x = torch.full((3, columns), torch.finfo(dtype).max, dtype=dtype)
    x[1] = -x[1]
    x[2, 0] = 0
    bias = torch.randn(columns)
    y, mean, rstd = ops.layer_norm(x, [columns], None, bias, 1e-5)
    torch.testing.assert_close(mean.double(), x.double().mean(1, keepdim=True), rtol=2**-23, atol=0)
    torch.testing.assert_close(rstd[:2], torch.full((2, 1), 1e-5).rsqrt())
    assert torch.equal(y[:2], bias.to(dtype).expand(2, -1))
    assert torch.equal(y[2], bias.to(dtype))  # the squares overflow, so rstd is 0


def test_the_same_bits_for_any_number_of_threads() -> None:
    x, g = torch.randn(3000, 129), torch.randn(3000, 129)
    before = torch.get_num_threads()
    seen = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            y, mean, rstd = ops.layer_norm(x, [129], None, None, 1e-5)
            gradients = ops.layer_norm_backward(g, x, [129], mean, rstd, None, None, ALL)
            seen.append(torch.cat([tensor.flatten() for tensor in (y, mean, rstd, *gradients)]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, seen[0]) for one in seen)


def test_only_what_the_mask_asks_for() -> None:
    x, statistics = torch.randn(3, 4), torch.rand(3, 1)
    every = ops.layer_norm_backward(x, x, [4], statistics, statistics, None, None, ALL)
    for i in range(3):
        mask = [j == i for j in range(3)]
        some = ops.layer_norm_backward(x, x, [4], statistics, statistics, None, None, mask)
        assert [tensor is None for tensor in some] == [not on for on in mask]
        decomposed = aclnn_torch.decompositions()[ops.layer_norm_backward.default]
        in_aten = decomposed(x, x, [4], statistics, statistics, None, None, mask)
        assert [tensor is None for tensor in in_aten] == [not on for on in mask]
        assert torch.equal(some[i], every[i])


def test_gradients_of_the_statistics(host_product: None) -> None:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    for i in (1, 2):
        torch.autograd.gradcheck(lambda x, i=i: ops.layer_norm(x, [5], None, None, 1e-3)[i], x)


def test_empty_tensors() -> None:
    y, mean, rstd = ops.layer_norm(torch.ones(2, 0), [0], None, None, 1e-5)
    assert y.shape == (2, 0) and mean.tolist() == [[0.0], [0.0]] and rstd.isnan().all()
    y, mean, rstd = ops.layer_norm(torch.ones(0, 3), [3], None, None, 1e-5)
    gradients = ops.layer_norm_backward(y, y, [3], mean, rstd, None, None, ALL)
    assert [tensor.tolist() for tensor in gradients] == [[], [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_layer_norm_alone_as_torchs(dtype: torch.dtype) -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        assert F.layer_norm(x, [4]).dtype == TF.layer_norm(x, [4]).dtype == torch.float32
        assert F.layer_norm(x @ x, [4]).dtype == TF.layer_norm(x @ x, [4]).dtype


@pytest.mark.parametrize("keywords", [{}, {"bias": False}, {"elementwise_affine": False}], ids=str)
def test_module(keywords: dict[str, bool]) -> None:
    ours, torchs = aclnn_torch.nn.LayerNorm(6, 1e-3, **keywords), torch.nn.LayerNorm(6, 1e-3, **keywords)
    assert repr(ours) == repr(torchs)
    x = torch.randn(3, 6)
    torch.testing.assert_close(ours(x), torchs(x))
    torch.testing.assert_close(pickle.loads(pickle.dumps(ours))(x), ours(x))


BAD_CALLS = {
    "float64 on Ascend910B": (
        lambda: F.layer_norm(torch.ones(2, 3).double(), [3]),
        ["aclnnLayerNorm", "input", "DOUBLE", "FLOAT16, FLOAT, BFLOAT16", "Ascend910B", "host product"],
    ),
    "another shape": (
        lambda: F.layer_norm(torch.ones(2, 3), [2]),
        ["input", "[2, 3]", "[2]", "normalizedShape"],
    ),
    "no shape": (
        lambda: F.layer_norm(torch.ones(2, 3), []),
        ["normalizedShape has 0 sizes, expected 1 to 2, the dimensions of input"],
    ),
    "a weight of another shape": (
        lambda: F.layer_norm(torch.ones(2, 3), [3], torch.ones(2)),
        ["weight has shape [2], expected [3], as normalizedShape has"],
    ),
    "a weight of another dtype": (
        lambda: F.layer_norm(torch.ones(2, 3), [3], torch.ones(3).half()),
        ["weight", "FLOAT16", "FLOAT", "input", "cast"],
    ),
    "a gradient of another shape": (
        lambda: ops.layer_norm_backward(
            torch.ones(3, 3), torch.ones(2, 3), [3], torch.ones(2, 1), torch.ones(2, 1), None, None, ALL
        ),
        ["aclnnLayerNormBackward", "gradOut", "[3, 3]", "[2, 3]"],
    ),
    "a statistic of other rows": (
        lambda: ops.layer_norm_backward(
            torch.ones(2, 3), torch.ones(2, 3), [3], torch.ones(3, 1), torch.ones(3, 1), None, None, ALL
        ),
        ["mean", "[3, 1]", "2 elements"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])
