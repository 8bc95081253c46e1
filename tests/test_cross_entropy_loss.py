"""torch.ops.aclnn.cross_entropy_loss, its gradient and _cross_entropy, against their formulas and torch's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as fwad
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch
from tests import operator_checks
from tests.operator_checks import FLOATS
from tests.operators.cross_entropy_loss import IGNORED, REDUCTIONS, weights_of

ops = torch.ops.aclnn

RESULTS = ("loss", "log_prob", "zloss", "lse")


def reference(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    label_smoothing: float = 0.0,
    scale: float = 0.0,
) -> dict[str, Tensor]:
    """The formulas of aclnnCrossEntropyLoss's document in float64."""
    x = x.double()
    weight = torch.ones(x.shape[1], dtype=torch.float64) if weight is None else weight.double()
    counts = target != ignore_index
    label = torch.where(counts, target, 0).long()
    lse = x.logsumexp(1)
    log_prob = x - lse[:, None]
    of_label = -weight[label] * log_prob.gather(1, label[:, None])[:, 0]
    of_all = -(log_prob * weight).sum(1)
    rows = torch.where(counts, (1 - label_smoothing) * of_label + label_smoothing / x.shape[1] * of_all, 0)
    z = torch.where(counts, scale * lse**2, 0)
    if reduction == "none":
        loss, zloss = rows, z
    else:
        loss, zloss = rows.sum()[None], z.sum()[None]
    if reduction == "mean":
        loss, zloss = loss / torch.where(counts, weight[label], 0).sum(), zloss / counts.sum()
    return {"loss": loss, "log_prob": log_prob, "zloss": zloss, "lse": lse}


def reference_grad(
    grad: Tensor,
    log_prob: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    grad_zloss: Tensor | None = None,
    lse: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    label_smoothing: float = 0.0,
    scale: float = 0.0,
) -> Tensor:
    """The formulas of aclnnCrossEntropyLossGrad's document in float64, term by term."""
    log_prob = log_prob.double()
    rows, classes = log_prob.shape
    w = torch.ones(classes, dtype=torch.float64) if weight is None else weight.double()
    counts = target != ignore_index
    label = torch.where(counts, target, 0).long()
    m = counts.double()
    total = (m * w[label]).sum() if reduction == "mean" else 1
    nll = m * grad.double() * (1 - label_smoothing) / total * w[label]
    smoothing = m * grad.double() * label_smoothing / classes / total
    z = torch.zeros(rows, dtype=torch.float64)
    if grad_zloss is not None and lse is not None:
        z = m * grad_zloss.double() / (m.sum() if reduction == "mean" else 1) * 2 * scale * lse.double()
    at_label = TF.one_hot(label, classes)
    out = log_prob.exp() * nll[:, None] - at_label * nll[:, None]
    out = out + log_prob.exp() * (smoothing * w.sum())[:, None] - smoothing[:, None] * w
    return torch.where(counts[:, None], out + log_prob.exp() * z[:, None], 0)


def rounding(dtype: torch.dtype, terms: float = 1.0) -> dict[str, float]:
    """The error bound of a result computed in FP32 from terms up to a magnitude, and rounded once.

    The result's own half unit in the last place; for its terms 2^-22 of their magnitude, the error of an exponential
    and of the operations around it (2^-20 for 16-bit elements, which use a coarser exponential).
    """
    inner = 2**-22 if dtype == torch.float32 else 2**-20
    info = torch.finfo(dtype)
    subnormal = info.smallest_normal * info.eps
    return {"rtol": info.eps / 2 + inner, "atol": inner * terms + subnormal / 2}


def labels(rows: int, classes: int, seed: int = 0) -> Tensor:
    """Random labels; every fifth row is ignored."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, classes, (rows,), generator=generator)
    target[2::5] = IGNORED
    return target


def test_schemas() -> None:
    assert str(ops.cross_entropy_loss.default._schema) == (
        'aclnn::cross_entropy_loss(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean", '
        "int ignore_index=-100, float label_smoothing=0., float lse_square_scale_for_zloss=0., "
        "bool return_zloss=False) -> (Tensor loss, Tensor log_prob, Tensor zloss, Tensor lse_for_zloss)"
    )
    assert str(ops.cross_entropy_loss_grad.default._schema) == (
        "aclnn::cross_entropy_loss_grad(Tensor grad_loss, Tensor log_prob, Tensor target, Tensor? weight=None, "
        'Tensor? grad_zloss=None, Tensor? lse_for_zloss=None, str reduction="mean", int ignore_index=-100, '
        "float label_smoothing=0., float lse_square_scale_for_zloss=0.) -> Tensor"
    )
    assert str(ops._cross_entropy.default._schema) == (
        'aclnn::_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean", '
        "int ignore_index=-100, float label_smoothing=0.) -> Tensor"
    )


# ---- Derivatives, transforms, compilers


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(dtype: torch.dtype, requires_grad: bool, host_product: None) -> None:
    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape).to(dtype).requires_grad_(requires_grad)

    # No rows and "mean" give nan, which opcheck regards as a difference.
    cases = [(3, "mean", True), (3, "sum", False), (3, "none", True), (1, "mean", False), (0, "sum", True)]
    for rows, reduction, weighted in cases:
        weight = torch.rand(4) if weighted else None
        target = labels(rows, 4)
        for keywords in ({}, {"label_smoothing": 0.1, "lse_square_scale_for_zloss": 0.2, "return_zloss": True}):
            arguments = (tensor(rows, 4), target, weight, reduction)
            operator_checks.opcheck(ops.cross_entropy_loss.default, arguments, keywords)
        operator_checks.opcheck(ops._cross_entropy.default, (tensor(rows, 4), target, weight, reduction, IGNORED, 0.1))
        size = rows if reduction == "none" else 1
        arguments = (tensor(size), tensor(rows, 4), target, weight, tensor(size), tensor(rows), reduction, IGNORED, 0.1)
        operator_checks.opcheck(ops.cross_entropy_loss_grad.default, (*arguments, 0.2))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("results", [c for n in range(1, 5) for c in itertools.combinations(RESULTS, n)], ids="+".join)
def test_a_gradient_may_arrive_at_any_of_the_results(
    results: tuple[str, ...], reduction: str, host_product: None
) -> None:
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    target, weight = labels(6, 5), weights_of(x)
    ours = ops.cross_entropy_loss(x, target, weight, reduction, IGNORED, 0.1, 0.3, True)
    expected = reference(x, target, weight, reduction, IGNORED, 0.1, 0.3)
    got = dict(zip(RESULTS, ours, strict=True))
    gradients = []
    for values in (got, expected):
        total = torch.stack([values[name].square().sum() for name in results]).sum()
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.square().sum(), x)
        gradients.append((gradient, second))
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_16_bit_results_add_up_in_fp32(dtype: torch.dtype, host_product: None) -> None:
    x = torch.randn(6, 5).to(dtype).requires_grad_()
    target = labels(6, 5)
    results = ops.cross_entropy_loss(x, target, None, "sum", IGNORED, 0.0, 0.3, True)
    weights = [torch.randn(result.shape).to(dtype) for result in results]
    (gradient,) = torch.autograd.grad(results, x, weights)
    assert gradient.dtype == dtype
    exact = x.detach().double().requires_grad_()
    expected = torch.autograd.grad(
        list(reference(exact, target, None, "sum", IGNORED, 0.0, 0.3).values()), exact, [w.double() for w in weights]
    )
    # The gradient uses a rounded log_prob of up to 8; it is a sum of up to 5 terms of up to 4 each.
    torch.testing.assert_close(gradient.double(), expected[0], rtol=0, atol=8 * 4 * torch.finfo(dtype).eps)


def test_an_unused_zloss_has_gradient_zero(host_product: None) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    zloss = ops.cross_entropy_loss(x, labels(3, 4), return_zloss=True)[2]
    assert zloss.tolist() == [0.0]
    (gradient,) = torch.autograd.grad(zloss, x)
    assert torch.equal(gradient, torch.zeros(3, 4))


def test_forward_gradients_of_a_float32_call() -> None:
    x, tangent, target = torch.randn(4, 5), torch.randn(4, 5), labels(4, 5)
    _, tangents = torch.func.jvp(lambda v: ops.cross_entropy_loss(v, target)[:2], (x,), (tangent,))
    _, expected = torch.func.jvp(lambda v: (TF.cross_entropy(v, target)[None], TF.log_softmax(v, 1)), (x,), (tangent,))
    torch.testing.assert_close(tangents, expected)


@pytest.mark.parametrize("name", ["cross_entropy_loss", "cross_entropy_loss_grad", "_cross_entropy"])
def test_weights_have_no_derivative(name: str) -> None:
    x, target, weight = torch.randn(3, 4), labels(3, 4), torch.rand(4)
    arguments = (torch.ones(1), x, target) if name == "cross_entropy_loss_grad" else (x, target)

    def call(w: Tensor) -> Any:
        return getattr(ops, name)(*arguments, w)

    for attempt in (
        lambda: call(weight.clone().requires_grad_()),
        lambda: torch.func.grad(lambda w: operator_checks.total_of(call(w)))(weight),
        lambda: torch.func.jvp(call, (weight,), (weight,)),
    ):
        with pytest.raises(RuntimeError, match="weight requires a gradient"):
            attempt()
    with torch.no_grad():
        call(weight.clone().requires_grad_())


def test_vmap_over_any_argument(host_product: None) -> None:
    x, weight = torch.randn(3, 4, 5), torch.rand(3, 5)
    target = torch.stack([labels(4, 5, seed) for seed in range(3)])
    grad, gz, lse = torch.randn(3, 1), torch.randn(3, 1), torch.randn(3, 4)
    z = ("mean", IGNORED, 0.1, 0.3)

    def forward(x: Tensor, target: Tensor, weight: Tensor) -> Any:
        return ops.cross_entropy_loss(x, target, weight, *z, True)

    def backward(g: Tensor, x: Tensor, target: Tensor, weight: Tensor, gz: Tensor, lse: Tensor) -> Any:
        return (ops.cross_entropy_loss_grad(g, x, target, weight, gz, lse, *z),)

    def number(x: Tensor, target: Tensor, weight: Tensor) -> Any:
        return (ops._cross_entropy(x, target, weight),)

    cases: list[tuple[Callable[..., Any], list[Tensor]]] = [
        (forward, [x, target, weight]),
        (number, [x, target, weight]),
        (backward, [grad, x, target, weight, gz, lse]),
    ]
    for function, full in cases:
        for chosen in itertools.product((None, 0, -1), repeat=len(full)):
            if all(dim is None for dim in chosen):
                continue
            args = [t[0] if dim is None else t.movedim(0, dim) for t, dim in zip(full, chosen, strict=True)]
            each = [[t[0 if dim is None else k] for t, dim in zip(full, chosen, strict=True)] for k in range(3)]
            expected = tuple(torch.stack(parts) for parts in zip(*[function(*one) for one in each], strict=True))
            torch.testing.assert_close(torch.vmap(function, chosen)(*args), expected, rtol=0, atol=0)


@pytest.mark.parametrize("autocast_dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", FLOATS)
def test_autocast_computes_the_loss_in_fp32_as_torchs(dtype: torch.dtype, autocast_dtype: torch.dtype) -> None:
    x, target = torch.randn(4, 5).to(dtype).requires_grad_(), labels(4, 5)
    with torch.autocast("cpu", dtype=autocast_dtype):
        loss, log_prob, _, _ = ops.cross_entropy_loss(x, target, torch.ones(5).to(dtype))
        number = ops._cross_entropy(x, target, torch.ones(5).to(dtype))
        assert loss.dtype == log_prob.dtype == number.dtype == TF.cross_entropy(x, target).dtype == torch.float32
    (loss.sum() + number).backward()
    assert x.grad is not None and x.grad.dtype == dtype


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_loss_alone_is_that_of_the_other_operator(reduction: str) -> None:
    x, target = torch.randn(4, 5), labels(4, 5)
    expected = ops.cross_entropy_loss(x, target, reduction=reduction)[0]
    leaf = x.clone().requires_grad_()
    with torch.inference_mode():
        inferred = ops._cross_entropy(x, target, reduction=reduction)
    for loss in (ops._cross_entropy(x, target, reduction=reduction), ops._cross_entropy(leaf, target, None, reduction)):
        assert loss.shape == inferred.shape == (target.shape if reduction == "none" else ())
        assert torch.equal(loss.reshape(-1), expected) and torch.equal(inferred, loss)
        assert not loss._is_view()


# ---- Values

SHAPES = [(1, 1), (7, 1), (5, 3), (12, 10), (6, 31), (6, 33), (6, 64), (5, 257), (3, 4097), (9, 9000), (2, 40000)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: tuple[int, int], dtype: torch.dtype, host_product: None) -> None:
    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(shape, generator=generator) * 3).to(dtype)
    target, weight = labels(*shape), torch.rand(shape[1], generator=generator) + 0.5
    for reduction, w, smoothing, scale in itertools.product(REDUCTIONS, (None, weight), (0.0, 0.1), (0.0, 0.3)):
        results = ops.cross_entropy_loss(x, target, w, reduction, IGNORED, smoothing, scale, scale != 0)
        expected = reference(x, target, w, reduction, IGNORED, smoothing, scale)
        if scale == 0:
            assert results[2].shape == results[3].shape == (0,)
        for name, got in zip(RESULTS, results, strict=True):
            assert got.dtype == dtype
            if got.numel() > 0 or name in ("loss", "log_prob"):
                # The terms of the smoothed loss have one sign, and sum up to log(C) + 2 * 3 * 5 each.
                torch.testing.assert_close(got.double(), expected[name], **rounding(dtype, terms=4))

        log_prob, lse = results[1], results[3] if scale else None
        size = (shape[0],) if reduction == "none" else (1,)
        grad = torch.randn(size, generator=generator).to(dtype)
        gz = torch.randn(size, generator=generator).to(dtype) if scale else None
        arguments = (grad, log_prob, target, w, gz, lse, reduction, IGNORED, smoothing, scale)
        gradient = ops.cross_entropy_loss_grad(*arguments)
        assert gradient.dtype == dtype and gradient.shape == shape
        wanted = reference_grad(*arguments)
        # exp(logProb), up to 1, times the sum of a row's terms.
        largest = float(weight.max() * grad.abs().max()) + (float(gz.abs().max() * lse.abs().max()) if scale else 0)
        torch.testing.assert_close(gradient.double(), wanted, **rounding(dtype, terms=largest))
        assert torch.equal(gradient[target == IGNORED], torch.zeros_like(gradient[target == IGNORED]))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_agrees_with_torchs_cross_entropy(reduction: str, dtype: torch.dtype, host_product: None) -> None:
    widened = torch.float64 if dtype == torch.float64 else torch.float32
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if dtype == torch.float64 else rounding(dtype, terms=4)
    for ignore_index, smoothing in itertools.product((IGNORED, 3, -1), (0.0, 0.2)):
        x = torch.randn(8, 6).to(dtype)
        target, weight = torch.randint(0, 6, (8,)), torch.rand(6, dtype=widened) + 0.5
        target[5] = ignore_index
        gradients = []
        leaves = [x.clone().requires_grad_(), x.to(widened).requires_grad_()]
        ours = ops.cross_entropy_loss(leaves[0], target, weight, reduction, ignore_index, smoothing)[0]
        torchs = TF.cross_entropy(leaves[1], target, weight, None, ignore_index, None, reduction, smoothing)
        torch.testing.assert_close(ours.to(widened), torchs.reshape(ours.shape), **tolerance)
        for leaf, loss in zip(leaves, (ours, torchs), strict=True):
            gradients.append(torch.autograd.grad(loss.sum(), leaf)[0].to(widened))
        # A 16-bit gradient starts from a rounded logProb of up to 8.
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(gradients[0], gradients[1], rtol=eps, atol=max(8 * eps, tolerance["atol"]))


def test_answer_of_the_published_example() -> None:
    """The gradient given in the example of aclnnCrossEntropyLossGrad's document."""
    for grad in (torch.tensor(0.1), torch.tensor([0.1])):
        out = ops.cross_entropy_loss_grad(grad, torch.full((2, 3), -0.2), torch.tensor([0, 0]), torch.ones(3))
        expected = torch.tensor([[-0.00906, 0.04094, 0.04094]] * 2)
        torch.testing.assert_close(out, expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize("product", ["Ascend950", "host"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_int32_labels(dtype: torch.dtype, product: str) -> None:
    x, target = torch.randn(7, 5).to(dtype), labels(7, 5)
    with aclnn_torch.product(product):
        for first, second in zip(
            ops.cross_entropy_loss(x, target), ops.cross_entropy_loss(x, target.int()), strict=True
        ):
            assert torch.equal(first, second)
        grads = [ops.cross_entropy_loss_grad(torch.ones(1).to(dtype), x, t) for t in (target, target.int())]
        assert torch.equal(*grads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3000, 7), (300, 9000), (3, 70000), (1, 50001)], ids=str)
def test_the_same_bits_for_any_number_of_threads(
    shape: tuple[int, int], dtype: torch.dtype, host_product: None
) -> None:
    x, target, weight = torch.randn(shape).to(dtype), labels(*shape), torch.rand(shape[1])
    before = torch.get_num_threads()
    try:
        runs = []
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            results = ops.cross_entropy_loss(x, target, weight, "mean", IGNORED, 0.1, 0.3, True)
            loss, log_prob, zloss, lse = results
            gradient = ops.cross_entropy_loss_grad(
                loss, log_prob, target, weight, zloss, lse, "mean", IGNORED, 0.1, 0.3
            )
            runs.append((*results, gradient))
    finally:
        torch.set_num_threads(before)
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))


def test_rows_of_a_million_classes() -> None:
    x = torch.randn(2, 2**20, generator=torch.Generator().manual_seed(0))
    x[0, 12345] = 20.0
    _, log_prob, _, _ = ops.cross_entropy_loss(x, torch.tensor([12345, 0]))
    # Values up to 26, whose half unit in the last place is 2^-20, are rounded twice; the logarithm, of up to 10, once.
    torch.testing.assert_close(log_prob.double(), TF.log_softmax(x.double(), 1), rtol=0, atol=2**-19 + 2**-21)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
@pytest.mark.parametrize("classes", [4, 40, 9000])
def test_rows_that_are_not_finite(classes: int, dtype: torch.dtype, host_product: None) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.randn(8, classes).to(dtype)
    x[0] = -inf
    x[1, 2] = -inf
    x[2, 1] = inf
    x[3, classes - 1] = nan
    x[4, : classes // 2 + 1] = -inf
    x[5, 0], x[5, 1] = inf, nan
    x[6] = nan
    x[7, 1:] = -inf
    target = torch.full((8,), classes - 1)
    loss, log_prob, _, _ = ops.cross_entropy_loss(x, target, reduction="none")
    expected = TF.log_softmax(x.double(), 1)
    torch.testing.assert_close(log_prob.double(), expected, equal_nan=True, **rounding(torch.bfloat16))
    torch.testing.assert_close(log_prob.isnan(), expected.isnan())
    torch.testing.assert_close(loss.isnan(), expected[:, -1].isnan())
    ignored = ops.cross_entropy_loss_grad(torch.ones(1).to(dtype), log_prob, target, ignore_index=classes - 1)
    assert torch.equal(ignored, torch.zeros_like(x))


def test_large_inputs_do_not_overflow() -> None:
    x = torch.tensor([[1e30, 1e30, -1e30], [-3e38, -3e38, -3e38], [10000.0, 10001.0, 10002.0]])
    _, log_prob, _, _ = ops.cross_entropy_loss(x, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(log_prob, TF.log_softmax(x, 1))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_row_ignored(reduction: str) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    target = torch.full((3,), IGNORED)
    loss = ops.cross_entropy_loss(x, target, reduction=reduction)[0]
    torchs = TF.cross_entropy(x, target, reduction=reduction)
    torch.testing.assert_close(loss, torchs.reshape(loss.shape), equal_nan=True)
    loss.sum().backward()
    assert torch.equal(x.grad, torch.zeros(3, 4))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_no_rows(reduction: str) -> None:
    x, target = torch.randn(0, 4, requires_grad=True), torch.zeros(0, dtype=torch.int64)
    loss, log_prob, zloss, lse = ops.cross_entropy_loss(x, target, reduction=reduction)
    torchs = TF.cross_entropy(x, target, reduction=reduction)
    torch.testing.assert_close(loss, torchs.reshape(loss.shape), equal_nan=True)
    assert log_prob.shape == (0, 4) and zloss.shape == lse.shape == (0,)
    loss.sum().backward()
    assert x.grad.shape == (0, 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strides(dtype: torch.dtype, host_product: None) -> None:
    base = torch.randn(6, 5).to(dtype)
    padded = torch.zeros(6, 13).to(dtype)
    padded[:, 3::2] = base
    every = torch.full((12,), 99)
    every[::2] = labels(6, 5)
    weight = torch.rand(5, 2)[:, 1]
    plain = (labels(6, 5), weight.contiguous())
    forward = ops.cross_entropy_loss(base, *plain, "none", IGNORED, 0.1, 0.2, True)
    for x in (padded[:, 3::2], base.t().contiguous().t(), base.flip(0).flip(0)):
        results = ops.cross_entropy_loss(x, every[::2], weight, "none", IGNORED, 0.1, 0.2, True)
        assert all(torch.equal(a, b) for a, b in zip(results, forward, strict=True))
        assert results[1].is_contiguous()
    grad = torch.randn(1).to(dtype)
    backward = ops.cross_entropy_loss_grad(grad.repeat(6), base, *plain, reduction="none")
    strided = base.t().contiguous().t()
    assert torch.equal(
        ops.cross_entropy_loss_grad(grad.expand(6), strided, every[::2], weight, reduction="none"), backward
    )


# ---- Bad input

X, T, W = torch.randn(2, 3), torch.tensor([0, 2]), torch.ones(3)
TILING = (561002, "ACLNN_ERR_INNER_TILING_ERROR")
INVALID = (161002, "ACLNN_ERR_PARAM_INVALID")
RUNTIME = (507015, "ACL_ERROR_RT_AICORE_EXCEPTION")

BAD_CALLS: dict[str, tuple[Callable[[], Any], list[str], tuple[int, str]]] = {
    "label too large": (
        lambda: ops.cross_entropy_loss(X, torch.tensor([0, 3])),
        ["aclnnCrossEntropyLoss", "target[1] is 3", "[0, 3)", "ignoreIndex"],
        RUNTIME,
    ),
    "label far outside": (
        lambda: ops.cross_entropy_loss(X, torch.tensor([2**61, 0]), W),
        ["target[0] is 2305843009213693952", "[0, 3)"],
        RUNTIME,
    ),
    "negative label": (lambda: ops.cross_entropy_loss(X, torch.tensor([0, -1]), W), ["target[1] is -1"], RUNTIME),
    "label outside in the gradient": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(1), X, torch.tensor([-(2**61), 0]), W),
        ["aclnnCrossEntropyLossGrad", "target[0] is -2305843009213693952"],
        RUNTIME,
    ),
    "int32 labels": (
        lambda: ops.cross_entropy_loss(X, T.int()),
        ["target INT32", "target INT64", "Ascend950"],
        INVALID,
    ),
    "int32 labels in the gradient": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(1), X, T.int()),
        ["target INT32", "target INT64", "Ascend950"],
        INVALID,
    ),
    "floating labels": (lambda: ops.cross_entropy_loss(X, T.float()), ["target FLOAT", "target INT64"], INVALID),
    "float64": (lambda: ops.cross_entropy_loss(X.double(), T), ["input DOUBLE", "host"], INVALID),
    "weights in 16 bits": (
        lambda: ops.cross_entropy_loss(X.half(), T, W.half()),
        ["weight FLOAT16", "weight FLOAT,"],
        INVALID,
    ),
    "too few labels": (lambda: ops.cross_entropy_loss(X, T[:1]), ["target", "[1]", "expected [2]"], TILING),
    "labels in a matrix": (lambda: ops.cross_entropy_loss(X, T[None]), ["target", "[1, 2]", "expected [2]"], TILING),
    "too few weights": (lambda: ops.cross_entropy_loss(X, T, W[:2]), ["weight", "[2]", "expected [3]"], TILING),
    "three dimensions": (lambda: ops.cross_entropy_loss(X[None], T), ["input", "[1, 2, 3]", "[N, C]"], TILING),
    "no dimension": (lambda: ops.cross_entropy_loss(X[0, 0], T), ["input", "[N, C]"], TILING),
    "no classes": (lambda: ops.cross_entropy_loss(X[:, :0], T), ["input", "[2, 0]", "C > 0"], TILING),
    "reduction": (
        lambda: ops.cross_entropy_loss(X, T, None, "average"),
        ["average", "none", "mean", "sum"],
        TILING,
    ),
    "smoothing": (
        lambda: ops.cross_entropy_loss(X, T, label_smoothing=0.1),
        ["labelSmoothing is 0.1", "Ascend950", "host"],
        TILING,
    ),
    "smoothing above 1": (
        lambda: ops.cross_entropy_loss(X, T, label_smoothing=1.5),
        ["labelSmoothing is 1.5", "from 0 to 1"],
        TILING,
    ),
    "z-loss scale": (
        lambda: ops.cross_entropy_loss(X, T, lse_square_scale_for_zloss=0.1),
        ["lseSquareScaleForZloss is 0.1", "Ascend950"],
        TILING,
    ),
    "z-loss": (lambda: ops.cross_entropy_loss(X, T, return_zloss=True), ["returnZloss", "Ascend950"], TILING),
    "z-loss gradient": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(1), X, T, None, torch.ones(1), torch.ones(2)),
        ["gradZloss", "Ascend950"],
        TILING,
    ),
    "gradient per row of a mean": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(2), X, T),
        ["gradLoss", "[2]", "[1]", "[]"],
        TILING,
    ),
    "one gradient without reduction": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(1), X, T, reduction="none"),
        ["gradLoss", "[1]", "expected [2]"],
        TILING,
    ),
    "gradient of another dtype": (
        lambda: ops.cross_entropy_loss_grad(torch.ones(1).half(), X, T),
        ["gradLoss FLOAT16", "logProb FLOAT"],
        INVALID,
    ),
    "tensors on different devices": (
        lambda: ops.cross_entropy_loss(X, T.to("meta")),
        ["target", "meta", "cpu"],
        INVALID,
    ),
    "a trace with too few labels": (
        lambda: ops.cross_entropy_loss(X.to("meta"), T[:1].to("meta")),
        ["target", "[1]", "[2, 3]"],
        TILING,
    ),
    "a trace of a vector": (lambda: ops.cross_entropy_loss(X[0].to("meta"), T.to("meta")), ["input", "[3]"], TILING),
    "a trace with another reduction": (
        lambda: ops.cross_entropy_loss(X.to("meta"), T.to("meta"), None, "average"),
        ["average", "mean"],
        TILING,
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    call, words, (status, status_name) = BAD_CALLS[name]
    operator_checks.check_error(call, words, status, status_name)


def test_the_gradient_of_the_zloss_needs_lse(host_product: None) -> None:
    operator_checks.check_error(
        lambda: ops.cross_entropy_loss_grad(
            torch.ones(1), X, T, grad_zloss=torch.ones(1), lse_square_scale_for_zloss=0.1
        ),
        ["gradZloss", "lseForZloss"],
        *TILING,
    )


@pytest.mark.parametrize("product", ["Ascend310P", "Ascend910"])
def test_products_without_the_operator(product: str, nothing_leaked: None) -> None:
    with aclnn_torch.product(product):
        for call in (
            lambda: ops.cross_entropy_loss(X, T),
            lambda: ops.cross_entropy_loss_grad(torch.ones(1), X, T),
        ):
            operator_checks.check_error(call, [product, "Ascend910B"], 561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR")


def test_a_failed_run_leaves_the_thread_as_it_was() -> None:
    with pytest.raises(aclnn_torch.AclnnError, match="target"):
        ops.cross_entropy_loss(X, torch.tensor([0, 7]))
    torch.testing.assert_close(ops.cross_entropy_loss(X, T)[0][0], TF.cross_entropy(X, T))


# If log_prob has no other owner, the gradient overwrites it, bypassing the dispatcher.


def test_a_gradient_with_a_lazy_sign() -> None:
    """Complex numbers around the loss give its gradient the negative bit."""
    x, target = torch.randn(2, 5, requires_grad=True), torch.tensor([1, 3])

    def gradient(function: Callable[..., Tensor]) -> Tensor:
        loss = function(x, target, reduction="sum")
        value = (torch.complex(torch.zeros(()), loss).conj() * (1 + 2j)).real
        return torch.autograd.grad(value, x)[0]

    torch.testing.assert_close(gradient(aclnn_torch.functional.cross_entropy), gradient(TF.cross_entropy))


def test_a_tangent_through_the_gradient() -> None:
    """Forward over reverse: the tangent of the gradient is the Hessian times the input's tangent."""
    x, target, direction = torch.randn(2, 5, requires_grad=True), torch.tensor([1, 3]), torch.randn(2, 5)

    def tangent(function: Callable[..., Tensor]) -> Tensor:
        with fwad.dual_level():
            dual = fwad.make_dual(x, direction)
            return fwad.unpack_dual(torch.autograd.grad(function(dual, target), dual)[0]).tangent

    torch.testing.assert_close(tangent(aclnn_torch.functional.cross_entropy), tangent(TF.cross_entropy))


def test_memory_that_a_hook_brings_is_not_written() -> None:
    """The memory may belong to something else: a file, an immutable object."""
    x, target = torch.randn(2, 5, requires_grad=True), torch.tensor([1, 3])
    arrays = []

    def pack(tensor: Tensor) -> int:
        arrays.append(tensor.detach().numpy().copy())
        return len(arrays) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda index: torch.from_numpy(arrays[index])):
        loss = aclnn_torch.functional.cross_entropy(x, target)
    before = [array.copy() for array in arrays]
    (gradient,) = torch.autograd.grad(loss, x)
    torch.testing.assert_close(gradient, torch.autograd.grad(TF.cross_entropy(x, target), x)[0])
    assert len(arrays) >= 2
    assert all((array == copied).all() for array, copied in zip(arrays, before, strict=True))


def test_a_gradient_that_is_all_zeros() -> None:
    """A tensor without memory, as autograd makes them, is materialised for the operator."""
    x, target = torch.randn(2, 5, requires_grad=True), torch.tensor([1, 3])
    loss = aclnn_torch.functional.cross_entropy(x, target)
    assert not torch.autograd.grad(loss, x, torch._efficientzerotensor(()))[0].any()
