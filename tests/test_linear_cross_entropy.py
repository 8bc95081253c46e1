"""The cross entropy of a linear layer: the function, its operator, and CANN's three functions.

Values are compared with torch's in float64 on the same inputs. U is the unit roundoff of the compute type, float32 or,
for float64, float64. A logit, a sum of D products and a bias, has an error of at most (D + 2) U times the sum of their
magnitudes, E in the worst class of a row; so has the log of the sum of their exponentials, in addition to the few U of
exponentials, logarithm and sums. Probabilities then have a relative error of 2.2 E and a few U, and products with them
add as many U as they have terms.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as fwad
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from aclnn_torch.ops.linear_cross_entropy import _LossOfALinearLayer
from benchmarks import memory
from tests import LONGEST, inductor, operator_checks
from tests.operator_checks import FLOATS, MULTIPLIES_BFLOAT16
from tests.operators.linear_cross_entropy import in_three

ops = torch.ops.aclnn

ROOT = Path(__file__).resolve().parents[1]
DTYPES = (*FLOATS, torch.float64)
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=str)
IGNORED = -100

# Rows, classes, width: around the blocks of 512 classes (128 for rows longer than 4096), and of 512 and 2048 rows.
SIZES = (
    (1, 1, 1),
    (7, 5, 3),
    (511, 513, 9),
    (513, 1025, 16),
    (2049, 700, 8),
    (130, 257, 4097),
    (3, 5000, 64),
    (40, 20, 0),
)


def a_few(dtype: torch.dtype) -> float:
    """The relative error from exponentials, logarithm and short sums."""
    return 24 * unit(dtype)


def unit(dtype: torch.dtype) -> float:
    """The unit roundoff of the compute type."""
    return torch.finfo(torch.promote_types(dtype, torch.float32)).eps / 2


def inputs(rows: int, classes: int, depth: int, dtype: torch.dtype, ignored: bool = True) -> tuple[Tensor, ...]:
    """Rows, matrix, bias and targets, some of them ignored; logits are about 1."""
    generator = torch.Generator().manual_seed(rows + classes + depth)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x, w, b = noise(rows, depth), noise(classes, depth) / max(depth, 1) ** 0.5, noise(classes) / 2
    target = torch.randint(classes, (rows,), generator=generator)
    if ignored and rows > 1:
        target[1::5] = IGNORED
    return x.to(dtype), w.to(dtype), b.to(dtype), target


def weights_of(classes: int, dtype: torch.dtype) -> Tensor:
    return torch.linspace(0.5, 2, classes, dtype=torch.promote_types(dtype, torch.float32))


def outcome(
    function: Callable[..., Tensor],
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    target: Tensor,
    **keywords: Any,
) -> tuple[Tensor, list[Tensor]]:
    """The loss, and the gradients of a weighted sum of the rows' losses."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (x, w, *([] if b is None else [b]))]
    loss = function(leaves[0], leaves[1], target, linear_bias=leaves[2] if len(leaves) > 2 else None, **keywords)
    return loss.detach(), list(
        torch.autograd.grad(loss, leaves, incoming_of(loss.numel()).to(loss).reshape(loss.shape))
    )


def incoming_of(rows: int) -> Tensor:
    """The incoming gradients of this many losses, exact in every dtype."""
    return torch.linspace(-1, 2, rows).bfloat16().half().double()


def in_torch(x: Tensor, w: Tensor, target: Tensor, linear_bias: Tensor | None = None, **keywords: Any) -> Tensor:
    """The reference in torch."""
    return TF.cross_entropy(TF.linear(x, w, linear_bias), target, **keywords)


def assert_within(got: Tensor, exact: Tensor, bound: Tensor | float) -> None:
    """Exact up to a bound and one rounding to the dtype."""
    info = torch.finfo(got.dtype)
    allowed = bound + (exact.abs() + bound) * info.eps / 2 + info.smallest_normal * info.eps
    difference = (got.double() - exact).abs()
    assert got.shape == exact.shape
    assert torch.all((difference <= allowed) | (got.double().isnan() & exact.isnan())), (
        f"{float((difference / allowed).nan_to_num().max())} times the bound"
    )


OPTIONS: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum, weights": {"reduction": "sum", "weight": True},
    "none": {"reduction": "none"},
    "mean, everything": {"weight": True, "label_smoothing": 0.2, "bias": True},
    "none, everything": {"reduction": "none", "weight": True, "label_smoothing": 0.2, "bias": True},
}


@EACH_DTYPE
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_values(size: tuple[int, int, int], name: str, dtype: torch.dtype) -> None:
    rows, classes, depth = size
    x, w, b, target = inputs(*size, dtype)
    keywords = dict(OPTIONS[name])
    bias = b if keywords.pop("bias", False) else None
    if keywords.get("weight"):
        keywords["weight"] = weights_of(classes, dtype)
    got, gradients = outcome(F.linear_cross_entropy, x, w, bias, target, **keywords)
    assert got.dtype == dtype

    wide = [None if tensor is None else tensor.double() for tensor in (x, w, bias)]
    exact_keywords = keywords | ({"weight": keywords["weight"].double()} if "weight" in keywords else {})
    exact, exact_gradients = outcome(in_torch, *wide, target, **exact_keywords)  # type: ignore[arg-type]

    u, few = unit(dtype), a_few(dtype)
    sizes = wide[0].abs() @ wide[1].abs().t() + (0 if bias is None else wide[2].abs())
    logits = TF.linear(*wide)  # type: ignore[arg-type]
    errors = (depth + 2) * u * sizes.amax(1)  # of a row's logits
    weights = exact_keywords.get("weight", torch.ones(classes, dtype=torch.float64))
    smoothing = keywords.get("label_smoothing", 0.0)
    counts = target != IGNORED
    of_label = weights[target.where(counts, 0)] * counts
    largest = of_label * (1 - smoothing) + counts * smoothing * weights.mean()
    reach = logits.logsumexp(1).abs() + logits.abs().amax(1) + 1
    of_losses = largest * (2 * errors + few * reach)
    reduction = keywords.get("reduction", "mean")
    share = 1 / of_label.sum() if reduction == "mean" else 1.0
    bound = of_losses if reduction == "none" else of_losses.sum() * share + (rows + 4) * u * exact.abs()
    assert_within(got, exact, bound)

    # A reduced loss has one incoming gradient, -1; a mean distributes it, rounded to U.
    factor = incoming_of(rows).abs() if reduction == "none" else torch.full((rows,), float(share)).double()
    probabilities = logits.softmax(1)
    one_hot = TF.one_hot(target.where(counts, 0), classes) * of_label[:, None]
    terms = factor[:, None] * (
        probabilities * largest[:, None] + (1 - smoothing) * one_hot + smoothing / classes * counts[:, None] * weights
    )
    of_logits = (factor * largest)[:, None] * probabilities * (2.2 * errors + few)[:, None] + (rows + 8) * u * terms
    if dtype == torch.bfloat16 and MULTIPLIES_BFLOAT16:
        of_logits += terms * torch.finfo(dtype).eps / 2
    bounds = [
        of_logits @ wide[1].abs() + (classes + 8) * u * terms @ wide[1].abs(),
        of_logits.t() @ wide[0].abs() + (rows + 8) * u * terms.t() @ wide[0].abs(),
        of_logits.sum(0) + (rows + 8) * u * terms.sum(0),
    ]
    for one, reference, allowed in zip(gradients, exact_gradients, bounds, strict=False):
        assert one.dtype == dtype
        assert_within(one, reference, allowed)


@EACH_DTYPE
def test_strides(dtype: torch.dtype) -> None:
    """The same bits as for contiguous tensors."""
    x, w, b, target = inputs(70, 530, 24, dtype)
    every = torch.full((140,), 7)
    every[::2] = target
    keywords = {"weight": weights_of(530, dtype), "label_smoothing": 0.1}
    expected = outcome(F.linear_cross_entropy, x, w, b, target, **keywords)

    def spread(tensor: Tensor) -> Tensor:
        wider = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 3, dtype=tensor.dtype)
        wider[..., 3::2] = tensor
        return wider[..., 3::2]

    for changed in (spread, lambda tensor: tensor.t().contiguous().t()):
        leaves = [changed(tensor).detach().requires_grad_() for tensor in (x, w, b)]
        assert not leaves[0].is_contiguous()
        loss = F.linear_cross_entropy(leaves[0], leaves[1], every[::2], linear_bias=leaves[2], **keywords)  # type: ignore[arg-type]
        assert torch.equal(loss, expected[0])
        incoming = torch.full_like(loss, -1)
        for got, one in zip(torch.autograd.grad(loss, leaves, incoming), expected[1], strict=True):
            assert torch.equal(got, one)


@pytest.mark.test_all
def test_plain_code_multiplies_bfloat16() -> None:
    """As on CPUs with a BF16 unit, which this one may lack."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    command += ["-k", "bfloat16 and (values or strides or bits or rows or ignored)"]
    environment = os.environ | {"ACLNN_TORCH_CPU_CAPABILITY": "reference"}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stdout
    assert " passed" in result.stdout


SIZES_OF_THREADS = [(3000, 70, 40), (70, 3000, 40), (600, 1100, 16), (50000, 3, 2), (2048, 5200, 16)]


@EACH_DTYPE
@pytest.mark.parametrize("size", SIZES_OF_THREADS, ids=str)
def test_the_same_bits_for_any_number_of_threads(size: tuple[int, int, int], dtype: torch.dtype) -> None:
    x, w, b, target = inputs(*size, dtype)
    before = torch.get_num_threads()
    runs = []
    try:
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            loss, gradients = outcome(F.linear_cross_entropy, x, w, b, target, label_smoothing=0.1)
            runs.append((loss, *gradients))
    finally:
        torch.set_num_threads(before)
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))


@EACH_DTYPE
def test_a_class_weight_that_no_label_has_counts_for_nothing(dtype: torch.dtype) -> None:
    x, w, _, _ = inputs(2, 4, 3, dtype)
    weight = torch.tensor([1, 0.5, 1, torch.inf]).to(torch.promote_types(dtype, torch.float32))
    results = [
        outcome(function, x, w, None, torch.tensor([0, 1]), weight=some, reduction="sum")
        for function, some in ((F.linear_cross_entropy, weight), (F.linear_cross_entropy, weight.clamp(max=1)))
    ]
    assert torch.equal(results[0][0], results[1][0])
    for got, expected in zip(results[0][1], results[1][1], strict=True):
        assert torch.equal(got, expected) and got.isfinite().all()


@EACH_DTYPE
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_no_rows(reduction: str, dtype: torch.dtype) -> None:
    x, w, b, target = inputs(0, 5, 3, dtype)
    ours, torchs = (outcome(f, x, w, b, target, reduction=reduction) for f in (F.linear_cross_entropy, in_torch))
    torch.testing.assert_close(ours[0], torchs[0], equal_nan=True)
    for gradient, leaf in zip(ours[1], (x, w, b), strict=True):
        assert torch.equal(gradient, torch.zeros_like(leaf))


@EACH_DTYPE
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_every_row_ignored(reduction: str, dtype: torch.dtype) -> None:
    x, w, _, target = inputs(4, 5, 3, dtype)
    x[2] = float("nan")  # whatever the ignored rows contain
    target[:] = 2
    keywords = {"reduction": reduction, "ignore_index": 2}
    loss, gradients = outcome(F.linear_cross_entropy, x, w, None, target, **keywords)
    torch.testing.assert_close(loss, in_torch(x, w, target, **keywords), equal_nan=True)
    assert torch.equal(gradients[0], torch.zeros_like(x))
    assert torch.equal(torch.where(gradients[1].isnan(), 0, gradients[1]), torch.zeros_like(w))


def test_logits_that_are_not_finite_or_large() -> None:
    x = torch.tensor([[1e19, 1.0], [float("inf"), 1.0], [float("nan"), 1.0], [1.0, 2.0], [0.0, -1e30]])
    w = torch.tensor([[1e19, 1.0], [-1.0, 0.5], [2.0, -1.0]])
    target = torch.tensor([0, 1, 2, 2, 1])
    got = F.linear_cross_entropy(x, w, target, reduction="none")
    torch.testing.assert_close(got, in_torch(x.double(), w.double(), target, reduction="none").float(), equal_nan=True)


# ---- The gradient that comes with the loss ---------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [(9, 7, 5), (64, 600, 128)], ids=["torch's memory", "the pool's"])
def test_a_graph_that_is_kept_can_be_run_again(size: tuple[int, int, int], dtype: torch.dtype) -> None:
    """The returned gradient is not the saved one: writing to it does not change the next."""
    x, w, _, target = inputs(*size, dtype)
    x.requires_grad_(), w.requires_grad_()
    loss = F.linear_cross_entropy(x, w, target)
    expected = [one.clone() for one in torch.autograd.grad(loss, (x, w), retain_graph=True)]
    for retain in (True, True, False):
        found = torch.autograd.grad(loss, (x, w), retain_graph=retain)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        for one in found:
            one.zero_()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, (x, w))


@pytest.mark.parametrize("size", [(9, 7, 5), (64, 600, 128)], ids=["torch's memory", "the pool's"])
def test_gradients_add_up(size: tuple[int, int, int]) -> None:
    x, w, b, target = inputs(*size, torch.float32)
    parameters = [tensor.requires_grad_() for tensor in (x, w, b)]
    expected = torch.autograd.grad(F.linear_cross_entropy(x, w, target, linear_bias=b), parameters)
    loss = F.linear_cross_entropy(x, w, target, linear_bias=b)
    loss.backward(retain_graph=True)
    loss.backward()
    F.linear_cross_entropy(x, w, target, linear_bias=b).backward()
    for parameter, one in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, 3 * one, rtol=2**-21, atol=0)  # two sums, each rounded
    # Both losses share the matrix.
    (F.linear_cross_entropy(x, w, target) + F.linear_cross_entropy(2 * x, w, target)).backward()


@pytest.mark.parametrize("size", [(9, 7, 5), (64, 600, 128)], ids=["torch's memory", "the pool's"])
@pytest.mark.parametrize("scale", [2.0, 65536.0, -0.5, 0.0])
def test_a_scaled_loss(scale: float, size: tuple[int, int, int]) -> None:
    """Scaled by powers of two, which are exact."""
    x, w, b, target = inputs(*size, torch.float32)
    parameters = [tensor.requires_grad_() for tensor in (x, w, b)]
    once = torch.autograd.grad(F.linear_cross_entropy(x, w, target, linear_bias=b), parameters)
    for retain in (False, True):
        loss = F.linear_cross_entropy(x, w, target, linear_bias=b) * scale
        found = torch.autograd.grad(loss, parameters, retain_graph=retain)
        assert all(torch.equal(one * scale, other) for one, other in zip(once, found, strict=True))


def test_small_gradients_of_a_scaled_loss_in_16_bits() -> None:
    """The purpose of a scaler: gradients are computed from the scaled loss, not rounded before."""
    x, w, _, target = inputs(64, 40, 8, torch.float16, ignored=False)
    x = (x * 2**-14).requires_grad_()
    w.requires_grad_()
    scale = 2.0**14
    got = torch.autograd.grad(F.linear_cross_entropy(x, w, target).float() * scale, w)[0].double() / scale
    wide = w.detach().double().requires_grad_()
    (exact,) = torch.autograd.grad(in_torch(x.detach().double(), wide, target), wide)
    assert exact.abs().min() < 2**-24  # less than float16's smallest number
    torch.testing.assert_close(got, exact, rtol=2**-10, atol=float(2**-24 / scale))


def test_memory_that_a_hook_brings_is_not_written() -> None:
    """The memory may belong to something else: a file, an immutable object."""
    x, w, _, target = inputs(64, 600, 128, torch.float32)
    parameters = [x.requires_grad_(), w.requires_grad_()]
    arrays = []

    def pack(tensor: Tensor) -> int:
        arrays.append(tensor.detach().numpy().copy())
        return len(arrays) - 1

    expected = torch.autograd.grad(F.linear_cross_entropy(x, w, target) * 2, parameters)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda index: torch.from_numpy(arrays[index])):
        loss = F.linear_cross_entropy(x, w, target) * 2
    before = [array.copy() for array in arrays]
    found = torch.autograd.grad(loss, parameters)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
        one.zero_()
    assert all((array == copied).all() for array, copied in zip(arrays, before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_tangent_through_the_gradient(dtype: torch.dtype) -> None:
    """Forward over reverse: the tangent of the gradient is the Hessian times the input's tangent."""
    x, w, _, target = inputs(6, 5, 4, dtype)
    x.requires_grad_()
    direction = torch.randn(6, 4).to(dtype)

    def tangent(function: Callable[..., Tensor]) -> Tensor:
        with fwad.dual_level():
            dual = fwad.make_dual(x, direction)
            found = fwad.unpack_dual(torch.autograd.grad(function(dual, w, target), dual)[0]).tangent
            assert found is not None
            return found

    torch.testing.assert_close(tangent(F.linear_cross_entropy), tangent(in_torch))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_second_derivatives(dtype: torch.dtype) -> None:
    x, w, b, target = inputs(6, 5, 4, dtype)
    results = []
    for function in (F.linear_cross_entropy, in_torch):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in (x, w, b)]
        wide = leaves if function is F.linear_cross_entropy else [leaf.double() for leaf in leaves]
        loss = function(wide[0], wide[1], target, linear_bias=wide[2], label_smoothing=0.1)
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        results.append([one.double() for one in torch.autograd.grad(sum(g.square().sum() for g in first), leaves)])
    tolerance = 2**-18 if dtype == torch.float32 else 2**-5
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)


def test_a_gradient_that_is_all_zeros() -> None:
    """A tensor without memory, as autograd makes them, is materialised for the operator."""
    x, w, _, target = inputs(6, 5, 4, torch.float32)
    loss = F.linear_cross_entropy(x.requires_grad_(), w, target)
    assert not torch.autograd.grad(loss, x, torch._efficientzerotensor(()))[0].any()


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_gradients_of_some(dtype: torch.dtype, wanted: tuple[int, ...]) -> None:
    """Frozen inputs cost nothing and do not change the other gradients."""
    x, w, b, target = inputs(9, 7, 5, dtype)
    every = [tensor.clone().requires_grad_() for tensor in (x, w, b)]
    some = [tensor.clone().requires_grad_(i in wanted) for i, tensor in enumerate((x, w, b))]
    expected = torch.autograd.grad(F.linear_cross_entropy(every[0], every[1], target, linear_bias=every[2]), every)
    loss = F.linear_cross_entropy(some[0], some[1], target, linear_bias=some[2])
    for i, found in zip(wanted, torch.autograd.grad(loss, [some[i] for i in wanted]), strict=True):
        torch.testing.assert_close(found, expected[i])


# ---- CANN's three functions ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("with_logits", [False, True])
@pytest.mark.parametrize("product", ["Ascend910B", "Ascend910_93", "host"])
def test_a_vocabulary_of_two_devices(product: Any, with_logits: bool, dtype: torch.dtype) -> None:
    """Maxima, sums and labels' logits, combined between the stages as in CANN's documents, give one device's result."""
    rows, classes, cut = 37, 700, 300
    x, w, _, target = inputs(rows, classes, 24, dtype, ignored=False)
    grad = torch.linspace(-1, 2, rows)
    with aclnn_torch.product(product):
        parts = [
            ops.fused_linear_online_max_sum(x, shard, target, begin, end, with_logits)
            for shard, begin, end in ((w[:cut], 0, cut), (w[cut:], cut, classes))
        ]
        largest = torch.maximum(parts[0][0], parts[1][0])
        total, predicted = torch.zeros(rows), torch.zeros(rows)
        for i, (own, sums, label_logit, _, masked, _) in enumerate(parts):
            total += sums * (own - largest).exp()
            is_here = (target < cut) == (i == 0)
            assert torch.equal(masked, torch.where(is_here, target - i * cut, 0))
            assert not label_logit[~is_here].any()
            predicted += torch.where(is_here, label_logit + own - largest, 0)
        results = []
        for shard, (_, _, _, mask, masked, logits) in zip((w[:cut], w[cut:]), parts, strict=True):
            loss, softmax = ops.fused_cross_entropy_loss_with_max_sum(
                largest, total, predicted, 0.0, logits if with_logits else None
            )
            known = (None, None, softmax) if with_logits else (largest, total)
            results.append((loss, *ops.fused_linear_cross_entropy_loss_grad(grad, x, shard, mask, masked, 0.0, *known)))
    assert torch.equal(results[0][0], results[1][0])
    leaves = [tensor.double().requires_grad_() for tensor in (x, w)]
    exact = in_torch(*leaves, target, reduction="none")
    gradients = torch.autograd.grad(exact, leaves, grad.double())
    # Logits of up to 8 are rounded to 16 bits, as are their gradients (except on the host) and the results.
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(results[0][0].double(), exact.detach(), rtol=eps, atol=8 * eps)
    of_rows = results[0][1].double() + results[1][1].double()
    torch.testing.assert_close(of_rows, gradients[0], rtol=4 * eps, atol=16 * eps)
    of_matrix = torch.cat([results[0][2], results[1][2]]).double()
    torch.testing.assert_close(of_matrix, gradients[1], rtol=4 * eps, atol=16 * eps)


def test_the_mask() -> None:
    """One bit per row, lowest first, 1 if the target is outside the half-open range; then the bits for target 0."""
    x, w = torch.ones(11, 2).half(), torch.ones(4, 2).half()
    target = torch.tensor([3, 2, 6, 7, 0, 4, -1, 5, 2, 3, 9])
    _, _, _, mask, masked, logits = ops.fused_linear_online_max_sum(x, w, target, 3, 7)
    assert mask.tolist() == [0b01011010, 0b11111101]
    assert masked.tolist() == [0, 0, 3, 0, 0, 1, 0, 2, 0, 0, 0]
    assert logits.shape == (0,)
    assert ops.fused_linear_online_max_sum(x, w, target, 0, 4)[3].tolist()[1] == 0b00000100


def test_a_mask_of_booleans_is_one_of_bits() -> None:
    x, w, _, target = inputs(11, 130, 8, torch.float16, ignored=False)
    largest, total, _, mask, masked, _ = ops.fused_linear_online_max_sum(x, w, target, 20, 130)
    expected = ops.fused_linear_cross_entropy_loss_grad(torch.ones(11), x, w, mask, masked, 0.0, largest, total)
    booleans = (target < 20) | (target >= 130)
    found = ops.fused_linear_cross_entropy_loss_grad(torch.ones(11), x, w, booleans, masked, 0.0, largest, total)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("with_logits", [False, True])
def test_the_three_without_rows(with_logits: bool) -> None:
    x, w = torch.zeros(0, 8).half(), torch.ones(130, 8).half()
    results = in_three(x, w, torch.zeros(0, dtype=torch.int64), with_logits)
    assert [tuple(one.shape) for one in results[-2:]] == [(0, 8), (130, 8)]
    assert not results[-1].any()


def three_calls() -> dict[str, tuple[torch._ops.OpOverload, tuple[Any, ...]]]:
    """A call of each in FLOAT, which the product host accepts."""
    x, w, _, target = inputs(11, 7, 4, torch.float32, ignored=False)
    largest, total, predicted, mask, masked, logits = ops.fused_linear_online_max_sum(x, w, target, 1, 6, True)
    return {
        "fused_linear_online_max_sum": (ops.fused_linear_online_max_sum.default, (x, w, target, 1, 6, True)),
        "fused_cross_entropy_loss_with_max_sum": (
            ops.fused_cross_entropy_loss_with_max_sum.default,
            (largest, total, predicted, 0.0, logits),
        ),
        "fused_linear_cross_entropy_loss_grad": (
            ops.fused_linear_cross_entropy_loss_grad.default,
            (torch.randn(11), x, w, mask, masked, 0.0, largest, total),
        ),
        "_linear_cross_entropy": (
            ops._linear_cross_entropy.default,
            (x, w, target, torch.randn(7), torch.rand(7), torch.rand(11), None, 2, 0.2, [True, True, True]),
        ),
    }


THREE = (
    "fused_linear_online_max_sum",
    "fused_cross_entropy_loss_with_max_sum",
    "fused_linear_cross_entropy_loss_grad",
)
EACH = pytest.mark.parametrize("name", [*THREE, "_linear_cross_entropy"])


@EACH
def test_opcheck(name: str, host_product: None) -> None:
    operator, arguments = three_calls()[name]
    operator_checks.opcheck(operator, arguments)


@EACH
def test_decompositions(name: str, host_product: None) -> None:
    operator, arguments = three_calls()[name]
    torch.testing.assert_close(aclnn_torch.decompositions()[operator](*arguments), operator(*arguments))


def test_an_infinite_weight_of_another_class_in_the_decomposition() -> None:
    """Without label smoothing only the labels' weights count: 0 times the others is not computed."""
    x, w, b, _ = inputs(2, 4, 3, torch.float32)
    target, weight = torch.tensor([0, 1]), torch.tensor([1, 1, 1, math.inf])
    decomposed = aclnn_torch.decompositions()[ops._linear_cross_entropy.default]
    losses, _, *found = decomposed(x, w, target, b, weight, output_mask=[True, True, True])
    leaves = [tensor.requires_grad_() for tensor in (x, w, b)]
    exact = in_torch(x, w, target, b, weight=weight, reduction="none")
    torch.testing.assert_close(losses, exact.detach())
    torch.testing.assert_close(found, list(torch.autograd.grad(exact.sum(), leaves)))


@EACH
def test_vmap(name: str, host_product: None) -> None:
    operator, arguments = three_calls()[name]
    expected = operator(*arguments)
    dims = tuple(0 if isinstance(argument, Tensor) else None for argument in arguments)
    stacked = [
        torch.stack([argument, argument.flip(0)]) if isinstance(argument, Tensor) else argument
        for argument in arguments
    ]
    found = torch.vmap(lambda *tensors: operator(*tensors), dims)(*stacked)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == (2, *other.shape)
        assert torch.equal(one[0], other)


@EACH
def test_no_derivative(name: str, host_product: None) -> None:
    """An error with a text, instead of a silent None."""
    operator, arguments = three_calls()[name]
    leaf = arguments[0].detach().clone().requires_grad_()
    with pytest.raises(RuntimeError, match=rf"aclnn::{name} has no derivative"):
        operator(leaf, *arguments[1:])
    with fwad.dual_level(), pytest.raises(RuntimeError, match="has no derivative"):
        operator(fwad.make_dual(arguments[0], torch.ones_like(arguments[0])), *arguments[1:])
    with torch.no_grad():
        operator(leaf, *arguments[1:])


# ---- The function and the module -------------------------------------------------------------------


def test_a_loss_of_several_outputs() -> None:
    x, target = torch.randn(4, 6), torch.randint(5, (4, 2, 3))
    w, b = torch.randn(5, 2, 3, 6), torch.randn(5, 2, 3)
    for reduction in ("mean", "sum", "none"):
        got = F.linear_cross_entropy(x, w, target, linear_bias=b, reduction=reduction)
        logits = torch.einsum("nd,cijd->ncij", x, w) + b
        torch.testing.assert_close(got, TF.cross_entropy(logits, target, reduction=reduction))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_one_row(reduction: str) -> None:
    x, w = torch.randn(6), torch.randn(5, 6)
    expected = TF.cross_entropy(w @ x, torch.tensor(3), reduction=reduction)
    for target in (torch.tensor(3), torch.tensor([3])):
        torch.testing.assert_close(F.linear_cross_entropy(x, w, target, reduction=reduction), expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_targets_of_other_kinds(dtype: torch.dtype) -> None:
    x, w, _, target = inputs(9, 7, 5, torch.float32, ignored=False)
    got = F.linear_cross_entropy(x, w, target.to(dtype), weight=weights_of(7, torch.float32))
    assert torch.equal(got, F.linear_cross_entropy(x, w, target, weight=weights_of(7, torch.float32)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("product", ["Ascend910B", "Ascend950"])
def test_targets_of_other_kinds_of_several_outputs(product: Any, dtype: torch.dtype) -> None:
    x, w, target = torch.randn(4, 6), torch.randn(5, 2, 6), torch.randint(5, (4, 2))
    with aclnn_torch.product(product):
        assert torch.equal(F.linear_cross_entropy(x, w, target.to(dtype)), F.linear_cross_entropy(x, w, target))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64], ids=str)
def test_weights_of_classes_of_another_dtype(dtype: torch.dtype) -> None:
    x, w, _, target = inputs(9, 7, 5, torch.float32)
    weight = torch.arange(1, 8)
    assert torch.equal(
        F.linear_cross_entropy(x, w, target, weight=weight.to(dtype)),
        F.linear_cross_entropy(x, w, target, weight=weight.float()),
    )


@pytest.mark.parametrize("product", ["Ascend310P", "Ascend910", "Ascend910B", "Ascend950"])
def test_on_a_cpu_every_product_has_it(product: Any) -> None:
    x, w, b, target = inputs(9, 7, 5, torch.float32)
    expected = in_torch(x, w, target, b, label_smoothing=0.1)
    with aclnn_torch.product(product):
        torch.testing.assert_close(
            F.linear_cross_entropy(x, w, target, linear_bias=b, label_smoothing=0.1, options=object()), expected
        )


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_autocast(dtype: torch.dtype, narrow: torch.dtype) -> None:
    """Products of rounded numbers, and the loss in float32, as with torch's two functions."""
    x, w, b, target = inputs(20, 30, 16, dtype)
    results = []
    for function in (F.linear_cross_entropy, in_torch):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in (x, w, b)]
        with torch.autocast("cpu", dtype=narrow):
            loss = function(leaves[0], leaves[1], target, linear_bias=leaves[2])
        results.append((loss.detach(), *torch.autograd.grad(loss, leaves)))
    assert [one.dtype for one in results[0]] == [one.dtype for one in results[1]]
    if dtype == torch.float64:
        torch.testing.assert_close(*results)
        return
    # torch rounds the logits, of up to 8, and their gradients, of up to 1/16.
    eps = torch.finfo(narrow).eps
    torch.testing.assert_close(results[0], results[1], rtol=4 * eps, atol=8 * eps)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("autocast", [False, True])
def test_meta_tensors(autocast: bool, reduction: str) -> None:
    """Shapes and dtypes of the loss and its gradients; the CPU's autocast does not affect them."""
    x, w, b, target = inputs(9, 7, 5, torch.bfloat16)
    keywords = {"weight": weights_of(7, torch.float32).to("meta"), "label_smoothing": 0.1, "reduction": reduction}
    leaves = [tensor.to("meta").requires_grad_() for tensor in (x, w, b)]
    with torch.autocast("cpu", dtype=torch.float16, enabled=autocast):
        loss = F.linear_cross_entropy(leaves[0], leaves[1], target.to("meta"), linear_bias=leaves[2], **keywords)  # type: ignore[arg-type]
    assert (loss.device.type, loss.dtype) == ("meta", torch.bfloat16)
    assert loss.shape == ((9,) if reduction == "none" else ())
    for gradient, leaf in zip(torch.autograd.grad(loss, leaves, torch.ones_like(loss)), leaves, strict=True):
        assert (gradient.device.type, gradient.dtype, gradient.shape) == ("meta", leaf.dtype, leaf.shape)


def test_a_compiled_step() -> None:
    """For a module, in a graph without breaks, also for other numbers of rows."""
    torch._dynamo.reset()
    module = aclnn_torch.nn.LinearCrossEntropyLoss(6, 5, bias=True, label_smoothing=0.1)
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=inductor.BACKEND)
    for rows in (4, 9):
        x, target = torch.randn(rows, 6), torch.randint(5, (rows,))
        results = []
        for run in (module, compiled):
            leaf = x.clone().requires_grad_()
            loss = run(leaf, target)
            results.append((loss.detach(), *torch.autograd.grad(loss, (leaf, *module.parameters()))))
        torch.testing.assert_close(*results)


def test_what_an_older_torch_makes_the_module_of() -> None:
    """The same attributes and parameters as torch.nn's own class, and the same initial values."""
    torchs = getattr(torch.nn, "LinearCrossEntropyLoss", None)
    if torchs is None:
        pytest.skip("this torch has no class to compare with")
    for arguments, keywords in (
        ((4, 5), {}),
        ((4, 5), {"bias": True, "out_features": (2, 3), "weight": torch.ones(5), "ignore_index": 2}),
        ((4, 5), {"dtype": torch.float64, "reduction": "sum", "label_smoothing": 0.5}),
    ):
        made = []
        for cls in (torchs, _LossOfALinearLayer):
            torch.manual_seed(0)
            made.append(cls(*arguments, **keywords))
        states = [module.state_dict() for module in made]
        assert list(states[0]) == list(states[1])
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
        plain = [{name: value for name, value in vars(module).items() if not name.startswith("_")} for module in made]
        assert plain[0] == plain[1]


def test_weights_of_classes_have_no_derivative() -> None:
    x, w, _, target = inputs(9, 7, 5, torch.float32)
    weight = torch.ones(7, requires_grad=True)
    for reduction in ("mean", "sum", "none"):
        with pytest.raises(RuntimeError, match="class_weights requires a gradient"):
            F.linear_cross_entropy(x, w, target, weight=weight, reduction=reduction)


# ---- Bad input -------------------------------------------------------------------------------------

X, W, T, B = torch.randn(2, 3), torch.randn(4, 3), torch.tensor([0, 3]), torch.ones(4)
INVALID = (161002, "ACLNN_ERR_PARAM_INVALID")
RUNTIME = (507015, "ACL_ERROR_RT_AICORE_EXCEPTION")

BAD_CALLS: dict[str, tuple[Callable[[], Any], list[str], tuple[int, str]]] = {
    "a label too large": (
        lambda: F.linear_cross_entropy(X, W, torch.tensor([0, 4])),
        ["target[1] is 4", "[0, 4)", "ignoreIndex (-100)"],
        RUNTIME,
    ),
    "a label far outside": (
        lambda: F.linear_cross_entropy(X, W, torch.tensor([2**61, 0]), weight=torch.ones(4)),
        ["target[0] is 2305843009213693952", "[0, 4)"],
        RUNTIME,
    ),
    "a negative label": (
        lambda: F.linear_cross_entropy(X, W, torch.tensor([0, -1]), ignore_index=-2),
        ["target[1] is -1", "ignoreIndex (-2)"],
        RUNTIME,
    ),
    "a weight of another width": (
        lambda: F.linear_cross_entropy(X, W[:, :2], T),
        ["linear_weight has shape [4, 2]", "expected [4, 3]", "input [2, 3]"],
        INVALID,
    ),
    "a weight of another width, of one row": (
        lambda: F.linear_cross_entropy(X[0], W[:, :2], T[0]),
        ["linear_weight has shape [4, 2]", "expected [4, 3]"],
        INVALID,
    ),
    "a weight of another width, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:, None, :2], T[:, None]),
        ["linear_weight has shape [4, 1, 2]", "expected [4, 1, 3]"],
        INVALID,
    ),
    "no classes": (
        lambda: F.linear_cross_entropy(X, W[:0], T),
        ["linear_weight has shape [0, 3]", "at least one"],
        INVALID,
    ),
    "no classes, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:0, None], T[:, None]),
        ["linear_weight has shape [0, 1, 3]", "at least one"],
        INVALID,
    ),
    "a weight of another width, on meta": (
        lambda: F.linear_cross_entropy(X.to("meta"), W[:, :2].to("meta"), T.to("meta")),
        ["linear_weight has shape [4, 2]", "[2, 3]"],
        INVALID,
    ),
    "another number of labels": (
        lambda: F.linear_cross_entropy(X, W, T[:1]),
        ["target has shape [1]", "expected [2]"],
        INVALID,
    ),
    "another number of labels, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:, None], T[:, None].expand(2, 3)),
        ["target has shape [2, 3]", "expected [2, 1]"],
        INVALID,
    ),
    "two dtypes": (
        lambda: F.linear_cross_entropy(X, W.half(), T),
        ["linear_weight has dtype torch.float16", "torch.float32"],
        INVALID,
    ),
    "two dtypes, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:, None].half(), T[:, None]),
        ["linear_weight has dtype torch.float16", "torch.float32"],
        INVALID,
    ),
    "a bias of another dtype": (
        lambda: F.linear_cross_entropy(X, W, T, linear_bias=B.double()),
        ["linear_bias has dtype torch.float64"],
        INVALID,
    ),
    "a bias of another dtype, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:, None], T[:, None], linear_bias=B[:, None].double()),
        ["linear_bias has dtype torch.float64"],
        INVALID,
    ),
    "a bias of another shape": (
        lambda: F.linear_cross_entropy(X, W, T, linear_bias=B[:3]),
        ["linear_bias has shape [3]", "expected [4]"],
        INVALID,
    ),
    "a bias in a matrix": (
        lambda: F.linear_cross_entropy(X, W, T, linear_bias=B[None]),
        ["linear_bias has shape [1, 4]", "expected [4]"],
        INVALID,
    ),
    "class weights of another length": (
        lambda: F.linear_cross_entropy(X, W, T, weight=torch.ones(3)),
        [": weight has shape [3]", "expected [4]"],
        INVALID,
    ),
    "class weights of another length, of several outputs": (
        lambda: F.linear_cross_entropy(X, W[:, None], T[:, None], weight=torch.ones(3)),
        [": weight has shape [3]", "expected [4]"],
        INVALID,
    ),
    "class weights elsewhere": (
        lambda: F.linear_cross_entropy(X, W, T, weight=torch.ones(4, device="meta")),
        [": weight is on meta, expected cpu as input is; move one with .to()"],
        INVALID,
    ),
    "labels elsewhere": (
        lambda: F.linear_cross_entropy(X, W, T.to("meta")),
        [": target is on meta, expected cpu as input is; move one with .to()"],
        INVALID,
    ),
    "a matrix elsewhere": (
        lambda: F.linear_cross_entropy(X, W.to("meta"), T),
        [": linear_weight is on meta, expected cpu as input is; move one with .to()"],
        INVALID,
    ),
    "a matrix of another width": (
        lambda: ops.linear_cross_entropy(X, W[:, :2], T),
        ["weight has shape [4, 2]", "expected [4, 3]"],
        INVALID,
    ),
    "a matrix of another width, on meta": (
        lambda: ops.linear_cross_entropy(X.to("meta"), W[:, :2].to("meta"), T.to("meta")),
        ["weight has shape [4, 2]", "[2, 3]"],
        INVALID,
    ),
    "a matrix without rows": (
        lambda: ops.linear_cross_entropy(X, W[:0], T),
        ["weight has shape [0, 3]", "at least one"],
        INVALID,
    ),
    "a matrix of another dtype": (
        lambda: ops.linear_cross_entropy(X, W.half(), T),
        ["weight has dtype FLOAT16", "FLOAT"],
        INVALID,
    ),
    "another number of labels for the operator": (
        lambda: ops.linear_cross_entropy(X, W, T[:1]),
        ["target has shape [1]", "expected [2]"],
        INVALID,
    ),
    "the operator's bias of another dtype": (
        lambda: ops.linear_cross_entropy(X, W, T, B.double()),
        ["bias has dtype DOUBLE"],
        INVALID,
    ),
    "the operator's bias in a matrix": (
        lambda: ops.linear_cross_entropy(X, W, T, B[None]),
        ["bias has shape [1, 4]", "expected [4]"],
        INVALID,
    ),
    "the operator's class weights of another length": (
        lambda: ops.linear_cross_entropy(X, W, T, None, torch.ones(3)),
        ["classWeights has shape [3]", "expected [4]"],
        INVALID,
    ),
    "labels of another dtype": (
        lambda: F.linear_cross_entropy(X, W, T.short()),
        ["target has dtype INT16", "INT64"],
        INVALID,
    ),
    "integers": (lambda: F.linear_cross_entropy(X.int(), W.int(), T), ["input has dtype INT32"], INVALID),
    "a weight elsewhere": (
        lambda: ops.linear_cross_entropy(X, W.to("meta"), T),
        ["weight", "meta", "cpu"],
        INVALID,
    ),
    "smoothing above 1": (
        lambda: ops.linear_cross_entropy(X, W, T, label_smoothing=1.5),
        ["labelSmoothing is 1.5", "from 0 to 1"],
        INVALID,
    ),
    "three dimensions": (lambda: ops.linear_cross_entropy(X[None], W, T), ["input has shape [1, 2, 3]"], INVALID),
    "a range that is none": (
        lambda: ops.fused_linear_online_max_sum(X.half(), W.half(), T, 3, 2),
        ["vocabEndIndex is 2", "vocabStartIndex (3)"],
        INVALID,
    ),
    "FLOAT in CANN's function": (
        lambda: ops.fused_linear_online_max_sum(X, W, T, 0, 4),
        ["input", "FLOAT", "host"],
        INVALID,
    ),
    "smoothing in CANN's function": (
        lambda: ops.fused_cross_entropy_loss_with_max_sum(X[:, 0], X[:, 0], X[:, 0], 0.1),
        ["labelSmoothing is 0.1", "expected 0"],
        INVALID,
    ),
    "nothing to compute a softmax from": (
        lambda: ops.fused_linear_cross_entropy_loss_grad(X[:, 0], X.half(), W.half(), T > 1, T),
        ["softmaxOptional", "logitsMaxOptional"],
        (161001, "ACLNN_ERR_PARAM_NULLPTR"),
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    call, words, (status, status_name) = BAD_CALLS[name]
    operator_checks.check_error(call, words, status, status_name)


def test_products_without_the_three(nothing_leaked: None) -> None:
    for product in ("Ascend310P", "Ascend910"):
        with aclnn_torch.product(product), pytest.raises(aclnn_torch.AclnnError, match=product):
            ops.fused_linear_online_max_sum(X.half(), W.half(), T, 0, 4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.linear_cross_entropy(X, W, torch.rand(2, 4)), NotImplementedError, "class probabilities"),
        (lambda: F.linear_cross_entropy(X, W, T, reduction="avg"), ValueError, "reduction is 'avg', expected"),
        (lambda: F.linear_cross_entropy(X, W, T, label_smoothing=-0.5), ValueError, "label_smoothing is -0.5"),
        (lambda: F.linear_cross_entropy(X, W, T, label_smoothing=1.5), ValueError, "label_smoothing is 1.5"),
        (lambda: F.linear_cross_entropy(X[None], W, T), ValueError, r"input has shape \[1, 2, 3\], expected \(D\) or"),
        (lambda: F.linear_cross_entropy(X, W[0], T), ValueError, r"linear_weight has shape \[3\], expected \(C, D\)"),
        (lambda: F.linear_cross_entropy(X[0], W[:, None], T), ValueError, "several outputs"),
        (lambda: F.linear_cross_entropy(X[0], W, T), ValueError, r"target has shape \[2\], expected \[\] or \[1\]"),
        (lambda: F.linear_cross_entropy(X, W, T[None]), ValueError, r"target has shape \[1, 2\], expected \[2\]"),
        (
            lambda: F.linear_cross_entropy(X, W[:, None], T[:, None], linear_bias=B),
            ValueError,
            r"linear_bias has shape \[4\], expected \[4, 1\]",
        ),
    ],
)
def test_what_the_function_refuses(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_failed_run_leaves_the_thread_as_it_was() -> None:
    with pytest.raises(aclnn_torch.AclnnError, match="target"):
        F.linear_cross_entropy(X, W, torch.tensor([0, 7]))
    torch.testing.assert_close(F.linear_cross_entropy(X, W, T), in_torch(X, W, T))


# ---- Memory ----------------------------------------------------------------------------------------


@pytest.mark.test_all
def test_a_quarter_of_the_memory() -> None:
    """The peak of a separate process beyond the inputs, including gradients."""
    shape = (1009, 344, 26003)
    assert memory.peak("aclnn", shape, 2) <= 0.25 * memory.peak("eager", shape, 2)
