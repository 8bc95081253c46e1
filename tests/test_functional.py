"""aclnn_torch.functional compared with torch.nn.functional: PyTorch's own samples, and refusals.

Values and gradients are compared with torch's in float64 on the same inputs. The bounds on rounding errors follow from
the numbers of each sample: u is the dtype's unit roundoff, U that of the compute type, float32 (for float64, its own);
a sum of n terms in any order has an error below n U times the sum of their magnitudes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch
import aclnn_torch.functional as F
from tests import inductor
from tests.operator_checks import check_error

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def roundoff(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next number."""
    return torch.finfo(dtype).eps / 2


def working(dtype: torch.dtype) -> torch.dtype:
    """The operators' compute dtype."""
    return torch.promote_types(dtype, torch.float32)


def product_for(dtype: torch.dtype) -> Any:
    """A product that supports the dtype."""
    return aclnn_torch.product("host" if dtype == torch.float64 else "Ascend910B")


@dataclass
class Outcome:
    """A function's result and its gradients with respect to the tensors that require one."""

    value: Tensor
    gradients: list[Tensor]


def differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad


def run(function: Callable[..., Tensor], sample: SampleInput, change: Callable[[Tensor], Tensor]) -> Outcome:
    """The function on a sample with transformed tensors, and its gradients for fixed incoming ones, transformed."""

    def apply(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        changed = change(value.detach()) if value.is_floating_point() else value
        return changed.clone().requires_grad_() if differentiable(value) else changed

    arguments = [apply(value) for value in (sample.input, *sample.args)]
    keywords = {name: apply(value) for name, value in sample.kwargs.items()}
    value = function(*arguments, **keywords)
    incoming = torch.linspace(-2, 1.5, value.numel(), dtype=torch.float64).reshape(value.shape)
    leaves = [x for x in (*arguments, *keywords.values()) if differentiable(x)]
    gradients = torch.autograd.grad(value, leaves, change(incoming.to(sample.input.dtype)).to(value.dtype))
    return Outcome(value.detach(), list(gradients))


def samples(name: str, dtype: torch.dtype) -> list[SampleInput]:
    info = next(op for op in op_db if op.name == f"nn.functional.{name}")
    return list(info.sample_inputs("cpu", dtype, requires_grad=True))


def assert_within(got: Tensor, exact: Tensor, bound: Tensor, dtype: torch.dtype) -> None:
    """The result is exact up to `bound` and one rounding to the dtype."""
    info = torch.finfo(dtype)
    rounding = (exact.abs() + bound) * roundoff(dtype) + info.smallest_normal * info.eps
    difference = (got.double() - exact).abs()
    assert got.dtype == dtype
    assert got.shape == exact.shape
    assert torch.all((difference <= bound + rounding) | (got.double().isnan() & exact.isnan())), (
        f"{float((difference - bound - rounding).max())} beyond the bound"
    )


def exceeds_stride(sample: SampleInput) -> bool:
    """True if output_padding is at least stride: CANN's 3-D gradient refuses it, though the forward accepts it with a
    larger dilation."""

    def numbers(name: str, default: int) -> list[int]:
        value = sample.kwargs.get(name, default)
        return [value] * 3 if isinstance(value, int) else list(value)

    return any(a >= b for a, b in zip(numbers("output_padding", 0), numbers("stride", 1), strict=True))


@EACH_DTYPE
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_on_torchs_samples(name: str, dtype: torch.dtype) -> None:
    """Sums of products: their magnitudes are the same convolution of the absolute values, and its gradients."""
    ours, torchs = getattr(F, name), getattr(TF, name)
    # Other products do not transpose 3-D convolutions whose padding exceeds the kernel's reach.
    wide = torch.float64 if name == "conv_transpose3d" else dtype
    count = 0
    for sample in samples(name, dtype):
        if name == "conv_transpose3d" and exceeds_stride(sample):
            with pytest.raises(aclnn_torch.AclnnError, match=r"outputPadding .* less than stride"), product_for(wide):
                run(ours, sample, lambda tensor: tensor)
            continue
        with product_for(wide):
            got = run(ours, sample, lambda tensor: tensor)
        exact = run(torchs, sample, Tensor.double)
        magnitude = run(torchs, sample, lambda tensor: tensor.double().abs())
        # No sum has more terms than input, weight and result have elements; the largest of these bounds all.
        terms = max(sample.input.numel(), sample.args[0].numel(), exact.value.numel())
        for one, reference, size in zip(
            (got.value, *got.gradients),
            (exact.value, *exact.gradients),
            (magnitude.value, *magnitude.gradients),
            strict=True,
        ):
            assert_within(one, reference, size * terms * roundoff(working(dtype)), dtype)
        assert got.value.stride() == torchs(sample.input, *sample.args, **sample.kwargs).stride()
        count += 1
    assert count >= 4


@EACH_DTYPE
def test_rms_norm_on_torchs_samples(dtype: torch.dtype) -> None:
    count = 0
    for sample in samples("rms_norm", dtype):
        if sample.input.numel() == 0 or (sample.kwargs.get("eps") or 0.0) < 0:
            continue  # refused, see below
        normalized_shape = sample.args[0] if sample.args else sample.kwargs["normalized_shape"]
        # The default eps is that of the compute dtype, which differs for the reference.
        sample.kwargs = {"weight": None, "eps": None} | sample.kwargs
        if len(sample.args) > 1:
            sample.args, sample.kwargs["weight"] = sample.args[:1], sample.args[1]
        with product_for(dtype):
            got = run(F.rms_norm, sample, lambda tensor: tensor)
        if sample.kwargs["eps"] is None:
            sample.kwargs["eps"] = torch.finfo(working(dtype)).eps
        exact = run(TF.rms_norm, sample, Tensor.double)

        x = sample.input.detach().double()
        weight = sample.kwargs["weight"]
        gamma = torch.ones(normalized_shape, dtype=torch.float64) if weight is None else weight.detach().double()
        dims = tuple(range(-len(normalized_shape), 0))
        rstd = (x.square().mean(dims, keepdim=True) + sample.kwargs["eps"]).rsqrt()
        dy = torch.linspace(-2, 1.5, x.numel(), dtype=torch.float64).reshape(x.shape).to(dtype).double()
        xhat, a = (x * rstd).abs(), (dy * gamma).abs()
        relative = (gamma.numel() + 8) * roundoff(working(dtype))
        assert_within(got.value, exact.value, exact.value.abs() * relative, dtype)
        sizes = [rstd * (a + xhat * (a * xhat).mean(dims, keepdim=True))]
        if weight is not None:
            sizes.append(
                (dy.abs() * xhat).flatten(0, -len(dims) - 1).sum(0) if x.dim() > len(dims) else dy.abs() * xhat
            )
        rows = x.numel() // gamma.numel()
        for one, reference, size in zip(got.gradients, exact.gradients, sizes, strict=True):
            assert_within(one, reference, size * 2 * (relative + rows * roundoff(working(dtype))), dtype)
        count += 1
    assert count >= 4


@EACH_DTYPE
def test_cross_entropy_on_torchs_samples(dtype: torch.dtype) -> None:
    """log_prob has an error of a few U times the logits' magnitude, and is stored in the dtype; the gradient is its
    softmax - one_hot, times factors of at most the incoming gradient and the largest weight."""
    count = refused = 0
    for sample in samples("cross_entropy", dtype):
        target = sample.args[0]
        if target.is_floating_point():
            with pytest.raises(NotImplementedError, match="class probabilities"):
                F.cross_entropy(sample.input, *sample.args, **sample.kwargs)
            refused += 1
            continue
        if isinstance(sample.kwargs.get("weight"), Tensor):
            sample.kwargs["weight"] = sample.kwargs["weight"].detach()
        with product_for(dtype):
            got = run(F.cross_entropy, sample, lambda tensor: tensor)
        exact = run(TF.cross_entropy, sample, Tensor.double)
        x = sample.input.detach().double()
        classes = x.shape[min(x.dim() - 1, 1)]
        size = float(x.abs().max()) * 2 + 4 if x.numel() else 1.0
        weight = sample.kwargs.get("weight")
        largest = 1.0 if weight is None else float(weight.abs().max())
        smallest = 1.0 if weight is None else max(float(weight.abs().min()), 1e-3)
        terms = classes + max(target.numel(), 1) + 8
        log_prob_error = terms * roundoff(working(dtype)) * size + roundoff(dtype) * size
        reduced = sample.kwargs.get("reduction", "mean") == "sum"
        factor = target.numel() if reduced else 1.0
        per_row = largest / smallest if sample.kwargs.get("reduction", "mean") == "mean" else largest
        bound = torch.full_like(exact.value, log_prob_error * per_row * factor)
        assert_within(got.value, exact.value, bound, dtype)
        for one, reference in zip(got.gradients, exact.gradients, strict=True):
            assert_within(one, reference, torch.full_like(reference, 2 * 4 * per_row * log_prob_error), dtype)
        count += 1
    assert count >= 6
    assert refused >= 1


def test_linear_cross_entropy_on_torchs_samples(host_product: None) -> None:
    """In float64; tests/test_linear_cross_entropy.py has the rounding bounds for every dtype."""
    if not hasattr(TF, "linear_cross_entropy"):
        pytest.skip("this torch has no such function to compare with")
    count = refused = 0
    for sample in samples("linear_cross_entropy", torch.float64):
        if sample.args[1].is_floating_point():
            with pytest.raises(NotImplementedError, match="class probabilities"):
                F.linear_cross_entropy(sample.input, *sample.args, **sample.kwargs)
            refused += 1
            continue
        got, exact = (run(f.linear_cross_entropy, sample, lambda tensor: tensor) for f in (F, TF))
        torch.testing.assert_close(got.value, exact.value)
        torch.testing.assert_close(got.gradients, exact.gradients)
        count += 1
    assert count >= 20
    assert refused >= 20


@pytest.mark.parametrize("product", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_label_smoothing_on_products_with_and_without_it(product: str, reduction: str, weighted: bool) -> None:
    """The same smoothed loss, from the operator or composed from log_prob."""
    torch.manual_seed(0)
    x = torch.randn(6, 5, 3)
    target = torch.randint(5, (6, 3))
    target[1, 1] = 2
    arguments = {
        "weight": torch.rand(5) + 0.5 if weighted else None,
        "ignore_index": 2,
        "reduction": reduction,
        "label_smoothing": 0.3,
    }
    results = []
    for function in (F.cross_entropy, TF.cross_entropy):
        leaf = x.clone().requires_grad_()
        with aclnn_torch.product(product):
            loss = function(leaf, target, **arguments)  # type: ignore[arg-type]
            loss.square().sum().backward()
        results.append((loss.detach(), leaf.grad))
    torch.testing.assert_close(results[0], results[1], rtol=2e-6, atol=2e-6)


def test_label_smoothing_compiles_on_any_product() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(F.cross_entropy, fullgraph=True, backend=inductor.BACKEND)
    x, target = torch.randn(4, 5), torch.tensor([0, 1, 2, 3])
    expected = TF.cross_entropy(x, target, label_smoothing=0.1)
    for product in ("Ascend910B", "Ascend950"):
        with aclnn_torch.product(product):
            torch.testing.assert_close(compiled(x, target, label_smoothing=0.1), expected)


def test_cross_entropy_of_one_example_and_of_none() -> None:
    x = torch.randn(5, requires_grad=True)
    torch.testing.assert_close(F.cross_entropy(x, torch.tensor(3)), TF.cross_entropy(x, torch.tensor(3)))
    empty, target = torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64)
    assert F.cross_entropy(empty, target).isnan()
    assert F.cross_entropy(empty, target, reduction="sum") == 0
    assert F.cross_entropy(empty, target, reduction="none").shape == (0,)


def test_cross_entropy_when_every_target_is_ignored() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    loss = F.cross_entropy(x, torch.full((3,), -100))
    assert loss.isnan()
    (gradient,) = torch.autograd.grad(loss, x)
    assert torch.equal(gradient, torch.zeros(3, 4))


def test_targets_of_other_kinds_that_torch_takes() -> None:
    x = torch.randn(4, 5)
    labels = torch.tensor([4, 0, 1, 2])
    assert torch.equal(F.cross_entropy(x, labels.to(torch.uint8)), F.cross_entropy(x, labels))
    for reduction in ("mean", "sum", "none"):
        got = F.cross_entropy(x[0], labels[:1], reduction=reduction)
        # torch takes a list of one label for a row since 2.9.
        torch.testing.assert_close(got, TF.cross_entropy(x[0], labels[0], reduction=reduction))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_reduction_is_compared_by_its_letters(reduction: str) -> None:
    """A word read from a file equals the word in the source, and is another object."""
    read = "".join(reduction)
    x, weight, labels = torch.randn(4, 3), torch.randn(5, 3), torch.tensor([4, 0, 1, 2])
    calls = [lambda word: F.linear_cross_entropy(x, weight, labels, reduction=word)]
    for shape in ((4, 3), (4, 3, 2)):
        logits = torch.randn(shape)
        target = labels.reshape(4, *[1] * (len(shape) - 2)).expand(4, *shape[2:]) % 3
        calls.append(lambda word, logits=logits, target=target: F.cross_entropy(logits, target, reduction=word))
    for call in calls:
        assert torch.equal(call(read), call(reduction))


@pytest.mark.parametrize(
    "call",
    [F.elu, lambda x: F.layer_norm(x, (4,)), lambda x: F.rms_norm(x, (4,)), lambda x: F.conv1d(x, torch.ones(2, 3, 2))],
    ids=["elementwise", "layer_norm", "rms_norm", "convolution"],
)
def test_vmap_over_inputs_is_one_call(call: Callable[[Tensor], Tensor]) -> None:
    calls = []

    class Called(TorchDispatchMode):
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.extend([operator.name()] * (operator.namespace == "aclnn"))
            return operator(*args, **kwargs or {})

    with Called():
        torch.vmap(call)(torch.ones(5, 2, 3, 4))
    assert len(calls) == 1


def test_deprecated_arguments_of_cross_entropy() -> None:
    x, target = torch.randn(3, 4), torch.tensor([0, 1, 2])
    with pytest.warns(UserWarning, match="deprecated"):
        got = F.cross_entropy(x, target, size_average=False)
    torch.testing.assert_close(got, TF.cross_entropy(x, target, reduction="sum"))


@EACH_DTYPE
def test_rms_norm_without_weight_or_eps(dtype: torch.dtype) -> None:
    """eps matters for small inputs: float32's for 16-bit ones, as in torch."""
    x = torch.full((2, 4), 1e-4, dtype=dtype)
    with product_for(dtype):
        torch.testing.assert_close(F.rms_norm(x, [4]), TF.rms_norm(x, [4]))


def test_rms_norm_widens_a_narrower_weight() -> None:
    x, weight = torch.randn(2, 4), torch.randn(4).bfloat16().requires_grad_()
    y = F.rms_norm(x, (4,), weight)
    torch.testing.assert_close(y, TF.rms_norm(x, (4,), weight.float()))
    (gradient,) = torch.autograd.grad(y.sum(), weight)
    assert gradient.dtype == torch.bfloat16


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(("kernel", "dilation"), [((3, 5), 1), ((2, 3), 1), ((2, 4), 3)])
def test_padding_by_name(padding: str, kernel: tuple[int, int], dilation: int) -> None:
    x, weight = torch.randn(2, 3, 9, 11), torch.randn(4, 3, *kernel)
    for ours, torchs, dims in ((F.conv2d, TF.conv2d, 2), (F.conv1d, TF.conv1d, 1)):
        arguments = (x, weight) if dims == 2 else (x[..., 0], weight[..., 0])
        got = ours(*arguments, padding=padding, dilation=dilation)
        torch.testing.assert_close(got, torchs(*arguments, padding=padding, dilation=dilation), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stride", [np.int64(2), torch.tensor(2), [2], (2, 2), torch.Size([2, 2])], ids=repr)
def test_numbers_of_other_kinds_that_torch_takes(stride: Any) -> None:
    torch.testing.assert_close(F.conv2d(x2, w2, stride=stride), TF.conv2d(x2, w2, stride=2), rtol=1e-5, atol=1e-5)
    same = F.conv2d(x2, w2, padding="same", dilation=[1])
    torch.testing.assert_close(same, TF.conv2d(x2, w2, padding="same"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_one_example_without_a_batch(name: str) -> None:
    dims = int(name[-2])
    x, weight = torch.randn(4, *[6] * dims), torch.randn(4, 4, *[3] * dims)
    torch.testing.assert_close(getattr(F, name)(x, weight), getattr(TF, name)(x, weight), rtol=1e-5, atol=1e-5)


def test_cube_math_type() -> None:
    """1 + 2^-11 keeps its last bit in HFLOAT32 of Ascend910B (11 bits), and loses it to nearest even on Ascend950."""
    x, weight = torch.full((1, 1, 1, 1), 1 + 2.0**-11), torch.ones(1, 1, 1, 1)
    for product, expected in (("Ascend910B", 1 + 2.0**-11), ("Ascend950", 1.0)):
        with aclnn_torch.product(product):
            assert F.conv2d(x, weight).item() == 1 + 2.0**-11
            assert F.conv2d(x, weight, cube_math_type=3).item() == expected
    with aclnn_torch.product("Ascend310P"):
        assert F.conv2d(x, weight, cube_math_type=1).item() == 1.0  # FLOAT16: 10 bits


x2, w2 = torch.randn(1, 2, 4, 4), torch.randn(2, 2, 3, 3)
logits, labels = torch.randn(3, 4), torch.tensor([0, 1, 2])

REFUSED_BY_CANN: dict[str, tuple[str, Callable[[], Any], list[str], int]] = {
    "convolution in float32 on Ascend310P": (
        "Ascend310P",
        lambda: F.conv2d(x2, w2),
        ["aclnnConvolution", "cubeMathType", "Ascend310P"],
        161002,
    ),
    "groups that are not the weight's": (
        "Ascend910B",
        lambda: F.conv2d(x2, w2, groups=2),
        ["input", "1, 2, 4, 4", "4 channels", "2 groups"],
        161002,
    ),
    "groups that do not divide": (
        "Ascend910B",
        lambda: F.conv2d(torch.ones(1, 3, 4, 4), torch.ones(4, 1, 3, 3), groups=3),
        ["groups is 3", "4, 1, 3, 3"],
        161002,
    ),
    "stride 0": ("Ascend910B", lambda: F.conv2d(x2, w2, stride=0), ["stride", "0"], 161002),
    "conv3d on Ascend910": (
        "Ascend910",
        lambda: F.conv3d(torch.ones(1, 1, 2, 2, 2).half(), torch.ones(1, 1, 1, 1, 1).half()),
        ["Ascend910"],
        161002,
    ),
    "a label that is no class": (
        "Ascend910B",
        lambda: F.cross_entropy(logits, torch.tensor([0, 7, 2])),
        ["target", "7", "4"],
        507015,
    ),
    "another number of labels": (
        "Ascend910B",
        lambda: F.cross_entropy(logits, labels[:2]),
        ["target", "2", "3"],
        561002,
    ),
    "int32 labels": (
        "Ascend910B",
        lambda: F.cross_entropy(logits, labels.int()),
        ["target has dtype INT32, expected INT64"],
        161002,
    ),
    "cross entropy on Ascend310P": ("Ascend310P", lambda: F.cross_entropy(logits, labels), ["Ascend310P"], 561003),
    "an unknown reduction": ("Ascend910B", lambda: F.cross_entropy(logits, labels, reduction="avg"), ["avg"], 561002),
    "class weights of another length": (
        "Ascend910B",
        lambda: F.cross_entropy(logits, labels, torch.ones(3)),
        ["weight"],
        561002,
    ),
    "a negative eps": (
        "Ascend910B",
        lambda: F.rms_norm(logits, (4,), eps=-1.0),
        ["aclnnRmsNorm", "epsilon", "-1"],
        561002,
    ),
    "rows of nothing normalised": ("Ascend910B", lambda: F.rms_norm(torch.ones(2, 0), (0,)), ["aclnnRmsNorm"], 561002),
    "a shape that is not the input's last": ("Ascend910B", lambda: F.rms_norm(logits, (3,)), ["gamma", "3"], 561002),
}
STATUS_NAMES = {
    161002: "ACLNN_ERR_PARAM_INVALID",
    561002: "ACLNN_ERR_INNER_TILING_ERROR",
    561003: "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
    507015: "ACL_ERROR_RT_AICORE_EXCEPTION",
}


@pytest.mark.parametrize("name", REFUSED_BY_CANN)
def test_what_cann_refuses(name: str, nothing_leaked: None) -> None:
    product, call, words, status = REFUSED_BY_CANN[name]
    with aclnn_torch.product(product):
        check_error(call, words, status, STATUS_NAMES[status])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.cross_entropy(logits, logits), NotImplementedError, "probabilities"),
        (lambda: F.cross_entropy(logits[0], labels[:2]), ValueError, r"target has shape \[2\], expected \[\]"),
        (lambda: F.cross_entropy(logits.unsqueeze(2), labels), ValueError, r"expected \[3, 1\]"),
        (lambda: F.cross_entropy(torch.tensor(1.0), torch.tensor(0)), ValueError, "no dimension"),
        (lambda: F.cross_entropy(logits, labels, label_smoothing=-0.5), ValueError, "label_smoothing is -0.5"),
        (lambda: F.cross_entropy(logits, labels, label_smoothing=1.5), ValueError, "label_smoothing is 1.5"),
        (
            lambda: F.conv2d(torch.ones(4, 4), w2),
            RuntimeError,
            r"conv2d: input has shape \[4, 4\], expected 3 dimensions \(one example\) or 4 \(a batch\)",
        ),
        (lambda: F.conv2d(x2, w2, stride=2, padding="same"), RuntimeError, "expected stride 1"),
        (lambda: F.conv2d(x2, w2, padding="full"), RuntimeError, "'full'"),
        (lambda: F.conv2d(x2, w2, stride=1.5), TypeError, "stride is 1.5, expected"),  # type: ignore[arg-type]
        (lambda: F.conv_transpose2d(x2, w2, padding="same"), TypeError, "padding is 'same'"),  # type: ignore[arg-type]
        (lambda: F.rms_norm(logits, (4,), torch.ones(3)), RuntimeError, r"weight has shape \[3\]"),
        (lambda: F.rms_norm(logits, (4,), torch.ones(5)), RuntimeError, r"weight has shape \[5\]"),
        (
            lambda: F.linear_cross_entropy(logits, torch.ones(5, 4), labels, linear_bias=1.0),  # type: ignore[arg-type]
            TypeError,
            "linear_cross_entropy: linear_bias is 1.0, expected a tensor or None",
        ),
        (
            lambda: F.linear_cross_entropy(logits, torch.ones(5, 4), labels, weight=[1.0]),  # type: ignore[arg-type]
            TypeError,
            r"linear_cross_entropy: weight is \[1.0\], expected a tensor or None",
        ),
    ],
)
def test_what_the_faces_refuse(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def arguments_of(name: str) -> dict[str, Any]:
    """A call of a function with keyword arguments, those that torch's has too and does not deprecate."""
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    given: dict[str, Any] = {"input": x, "normalized_shape": (4,), "target": torch.tensor([0, 1, 2])}
    if name == "linear_cross_entropy":
        given |= {"linear_weight": torch.ones(5, 4), "weight": None}
    if name in CONVOLUTIONS:
        dims = int(name[-2])
        given |= {"input": torch.ones(1, 2, *[4] * dims), "weight": torch.ones(2, 2, *[3] * dims)}
    parameters = inspect.signature(getattr(F, name)).parameters
    other = ("cube_math_type", "size_average", "reduce", "options")  # the last ones have no effect
    return {key: given.get(key, value.default) for key, value in parameters.items() if key not in other}


# Functions that an older torch lacks have no counterpart.
PARAMETERS = [(name, parameter) for name in F.__all__ if hasattr(TF, name) for parameter in arguments_of(name)]
EACH_PARAMETER = pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=str)


@EACH_PARAMETER
def test_what_has_the_wrong_kind_is_named(name: str, parameter: str) -> None:
    """Where torch raises a TypeError, or fails otherwise, ours raises one with function, argument, value and
    expectation."""
    refused = 0
    values = [None, "text", object(), 1.5, [None], {}, torch.ones(2, 2)]
    for value in [*values, torch.tensor(1.5, requires_grad=True)] if parameter == "alpha" else values:
        changed = arguments_of(name) | {parameter: value}
        try:
            getattr(TF, name)(**changed)
        except (TypeError, AttributeError):
            with pytest.raises(TypeError) as caught:
                getattr(F, name)(**changed)
            assert str(caught.value).startswith(f"{name}: {parameter} is ")
            assert ", expected " in str(caught.value)
            refused += 1
        except (RuntimeError, ValueError, IndexError):
            pass
    assert refused >= 2 or parameter in ("inplace", "reduction")


@pytest.mark.parametrize(
    ("name", "parameter"),
    [pair for pair in PARAMETERS if pair[1] == "eps" or type(arguments_of(pair[0])[pair[1]]) in (int, float)],
    ids=str,
)
def test_a_tensor_without_dimensions_is_a_number(name: str, parameter: str) -> None:
    """Wherever torch accepts one."""
    number = arguments_of(name)[parameter]
    value = {"alpha": 1.25, "eps": 0.5, "label_smoothing": 0.25, "ignore_index": 1}.get(parameter, number)
    tensor = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
    given = arguments_of(name) | {parameter: tensor}
    result = getattr(F, name)(**given)
    assert torch.equal(result, getattr(F, name)(**given | {parameter: value}))
    try:
        expected = getattr(TF, name)(**given)
    except RuntimeError as error:
        if f"expected {parameter} to be a single integer" not in str(error):
            raise
        pytest.skip("torch took a tensor as a convolution's number only since 2.10")
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", [1, "same", "valid"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 2), (2, 2, 3), (2, 2, 3, 3, 3)], ids=str)
def test_a_weight_of_another_rank(shape: tuple[int, ...], padding: Any, nothing_leaked: None) -> None:
    words = ["aclnnConvolution", f"weight has shape {list(shape)}", "expected as many dimensions as input"]
    check_error(lambda: F.conv2d(x2, torch.ones(shape), padding=padding), words, 161002, STATUS_NAMES[161002])


@pytest.mark.parametrize("padding", [1, "same", "valid"])
@pytest.mark.parametrize("argument", ["stride", "dilation"])
def test_another_count_of_numbers(argument: str, padding: Any, nothing_leaked: None) -> None:
    named: Any = {argument: (1, 1, 1), "padding": padding}
    check_error(lambda: F.conv2d(x2, w2, **named), [argument, "3"], 161002, STATUS_NAMES[161002])


@pytest.mark.parametrize(
    "alpha", [np.float32(1.5), np.float64(1.5), np.int64(2), Fraction(3, 2)], ids=lambda a: type(a).__name__
)
def test_numbers_of_other_libraries_are_numbers(alpha: Any) -> None:
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(F.elu(x, alpha), F.elu(x, float(alpha)))
