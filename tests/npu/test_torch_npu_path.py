"""torch_npu's own operators for the same mathematics also run on the host CANN, and agree with ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_npu
from torch import Tensor
from torch.nn import functional as F

from aclnn_torch import functional as ours
from tests.operators import ELEMENTWISE, FunctionCase

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


pytestmark = pytest.mark.usefixtures("products_of_float32")


def values_and_gradients(function: Callable[..., Tensor], *arguments: Tensor) -> list[Tensor]:
    """The result and the gradients of all floating-point arguments, with each result weighted by its position."""
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in arguments]
    y = function(*leaves)
    y.backward(torch.linspace(-1, 1, y.numel(), device="cpu").to(y.dtype).view_as(y).to(y.device))
    return [y.detach().cpu(), *(x.grad.cpu() for x in leaves if x.requires_grad)]


def agree(
    theirs: Callable[..., Tensor], own: Callable[..., Tensor], *arguments: Tensor, rtol: float = 0, atol: float = 0
) -> None:
    """By default bitwise equal: both call the same functions of the same host CANN."""
    arguments = tuple(x.npu() for x in arguments)
    found, expected = (values_and_gradients(function, *arguments) for function in (own, theirs))
    for ours_, theirs_ in zip(found, expected, strict=True):
        torch.testing.assert_close(ours_, theirs_, rtol=rtol, atol=atol)


# Functions whose paths differ; each has its own test.
OTHERS = ("celu", "gelu", "selu")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "case", [case for info in ELEMENTWISE.values() for case in info.functions if case.name not in OTHERS], ids=str
)
def test_elementwise_functions(case: FunctionCase, dtype: torch.dtype) -> None:
    x = torch.randn(5, 7, 3).to(dtype)
    for (_, theirs), (_, own) in zip(case.variants(F), case.variants(ours), strict=True):
        agree(theirs, own, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_celu(dtype: torch.dtype) -> None:
    """aclnnCelu is another function than aclnnElu: each is within 3 ULP of the exact result (docs/precision.md)."""
    x = torch.randn(5, 7, 3).to(dtype)
    agree(lambda x: F.celu(x, 1.5), lambda x: ours.celu(x, 1.5), x, rtol=6 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_selu(dtype: torch.dtype) -> None:
    """torch differentiates F.selu from its input, aclnnSeluBackward from the stored result y.

    The derivative y + alpha * scale then has the error of y's rounding. With the roundings of both results, this makes
    four errors of half an ULP, each at most that of the largest derivative.
    """
    largest = 1.6732632423543772 * 1.0507009873554805
    agree(F.selu, ours.selu, torch.randn(5, 7, 3).to(dtype), atol=4 * largest * torch.finfo(dtype).eps / 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str, dtype: torch.dtype) -> None:
    """Before Ascend950, torch_npu calls aclnnGelu, the hyperbolic tangent's formula, for every F.gelu; npu_gelu calls
    aclnnGeluV2."""
    x = torch.randn(5, 7, 3).to(dtype)
    agree(lambda x: torch_npu.npu_gelu(x, approximate=approximate), lambda x: ours.gelu(x, approximate=approximate), x)
    got = approximate if "950" in torch.npu.get_device_name(0) else "tanh"
    agree(lambda x: F.gelu(x, approximate=approximate), lambda x: ours.gelu(x, approximate=got), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("function", "shape", "weight", "options"),
    [
        ("conv1d", (2, 4, 9), (6, 2, 3), {"groups": 2, "padding": 1}),
        ("conv2d", (2, 3, 9, 8), (4, 3, 3, 2), {"stride": 2, "dilation": (1, 2)}),
        ("conv3d", (1, 2, 4, 5, 6), (3, 2, 2, 2, 2), {}),
        ("conv_transpose2d", (2, 3, 4, 5), (3, 4, 3, 3), {"stride": 2, "output_padding": 1}),
    ],
)
def test_convolution(
    function: str, shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, int], dtype: torch.dtype
) -> None:
    channels = weight[1] if "transpose" in function else weight[0]
    arguments = [torch.randn(size).to(dtype) for size in (shape, weight, (channels,))]

    def call(library: object) -> Callable[..., Tensor]:
        return lambda x, w, b: getattr(library, function)(x, w, b, **options)

    agree(call(F), call(ours), *arguments)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", [0, 1, 2])
def test_layer_norm(weights: int, dtype: torch.dtype) -> None:
    arguments = [torch.randn(size).to(dtype) for size in ((3, 5, 4, 6), (4, 6), (4, 6))[: 1 + weights]]
    agree(
        lambda x, *weights: F.layer_norm(x, (4, 6), *weights),
        lambda x, *weights: ours.layer_norm(x, (4, 6), *weights),
        *arguments,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(dtype: torch.dtype) -> None:
    x, gamma = torch.randn(3, 5, 64).to(dtype), torch.randn(64).to(dtype)
    agree(
        lambda x, gamma: torch_npu.npu_rms_norm(x, gamma, 1e-5)[0],
        lambda x, gamma: ours.rms_norm(x, (64,), gamma, 1e-5),
        x,
        gamma,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction: str, dtype: torch.dtype) -> None:
    logits, target = torch.randn(9, 17).to(dtype), torch.randint(17, (9,))
    weight = torch.rand(17) + 0.5

    def theirs(logits: Tensor, target: Tensor) -> Tensor:
        return torch_npu.npu_cross_entropy_loss(logits, target, weight.npu(), reduction)[0]

    agree(
        lambda logits, target: (
            theirs(logits, target).squeeze(0 if reduction != "none" else -1)
            if reduction != "none"
            else theirs(logits, target)
        ),
        lambda logits, target: ours.cross_entropy(logits, target, weight.npu(), reduction=reduction),
        logits,
        target,
    )
