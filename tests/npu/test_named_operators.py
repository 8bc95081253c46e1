"""Operators that torch_npu still calls by name (aclop): results compared with torch's on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch_npu
from torch import Tensor, nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def not_on_ascend950() -> None:
    if torch.npu.get_device_name(0).startswith("Ascend950"):
        pytest.skip("torch_npu calls nothing by name there")


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got.cpu(), expected, rtol=2e-5, atol=2e-5)


def test_mish_and_silu_with_their_gradients() -> None:
    for on_npu, on_cpu in ((torch_npu.npu_mish, F.mish), (torch_npu.npu_silu, F.silu)):
        x = torch.randn(5, 7, requires_grad=True)
        y = x.detach().npu().requires_grad_()
        expected, result = on_cpu(x), on_npu(y)
        close(result.detach(), expected.detach())
        expected.sum().backward()
        result.sum().backward()
        close(y.grad, x.grad)


def test_a_number_of_the_host_compared_with_a_tensor() -> None:
    assert torch.ge(torch.tensor(1), torch.tensor([0, 1, 2]).npu()).tolist() == [True, True, False]


def test_the_gradient_of_a_largest_difference_in_16_bits() -> None:
    # The distance, 1.50048828125, is rounded to 1.5.
    x = torch.tensor([[1.0, 0.25]], dtype=torch.float16, device="npu", requires_grad=True)
    y = torch.tensor([[-0.50048828125, 0.0]], dtype=torch.float16, device="npu")
    torch.cdist(x, y, p=float("inf")).backward(torch.tensor([[2.0]], dtype=torch.float16, device="npu"))
    assert x.grad.tolist() == [[2.0, 0.0]]


def test_products_with_their_gradients() -> None:
    a, b = (torch.randn(2, *shape, requires_grad=True) for shape in ((3, 5), (5, 4)))
    x, y = (t.detach().npu().requires_grad_() for t in (a, b))
    result = torch_npu.npu_bmmV2(x, y, [])
    close(result.detach(), (a @ b).detach())
    (a @ b).sum().backward()
    result.sum().backward()
    close(x.grad, a.grad)
    close(y.grad, b.grad)


@pytest.mark.parametrize("bias", [True, False])
def test_an_lstm_cell_with_its_gradients(bias: bool) -> None:
    on_cpu = nn.LSTMCell(6, 4, bias=bias)
    on_npu = nn.LSTMCell(6, 4, bias=bias)
    on_npu.load_state_dict(on_cpu.state_dict())
    on_npu = on_npu.npu()
    x = torch.randn(3, 6, requires_grad=True)
    y = x.detach().npu().requires_grad_()
    for got, expected in zip(on_npu(y), on_cpu(x), strict=True):
        close(got.detach(), expected.detach())
    h, c = on_cpu(x)
    (h.sum() + 2 * c.sum()).backward()
    h, c = on_npu(y)
    (h.sum() + 2 * c.sum()).backward()
    close(y.grad, x.grad)
    for got, expected in zip(on_npu.parameters(), on_cpu.parameters(), strict=True):
        close(got.grad, expected.grad)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_an_lstm_of_two_layers_in_training(bidirectional: bool) -> None:
    on_cpu = nn.LSTM(6, 4, num_layers=2, bidirectional=bidirectional)
    on_npu = nn.LSTM(6, 4, num_layers=2, bidirectional=bidirectional)
    on_npu.load_state_dict(on_cpu.state_dict())
    on_npu = on_npu.npu()
    x = torch.randn(5, 3, 6)
    result, expected = on_npu(x.npu())[0], on_cpu(x)[0]
    close(result.detach(), expected.detach())
    result.square().sum().backward()
    expected.square().sum().backward()
    for got, wanted in zip(on_npu.parameters(), on_cpu.parameters(), strict=True):
        torch.testing.assert_close(got.grad.cpu(), wanted.grad, rtol=1e-4, atol=1e-4)


def test_dropout_keeps_what_its_mask_says() -> None:
    x = torch.ones(64, 64).npu().requires_grad_()
    y = torch_npu.dropout_with_byte_mask(x, p=0.25, train=True)
    y.sum().backward()
    kept = y.detach().cpu() != 0
    assert 0.7 < kept.float().mean() < 0.8
    close(y.detach(), kept / 0.75)
    close(x.grad, kept / 0.75)


def test_boxes() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]])
    truths = torch.tensor([[0.0, 0, 10, 20], [10, 10, 20, 20]])
    result = torch_npu.npu_iou(boxes.half().npu(), truths.half().npu(), 0).cpu()
    torch.testing.assert_close(result.float(), torch.tensor([[0.5, 0, 0], [0, 1, 0]]), rtol=0, atol=5e-3)
    scores = torch.tensor([0.5, 0.9, 0.7])
    numbers = (torch.tensor(0.5).npu(), torch.tensor(0.1).npu())
    places, count = torch_npu.npu_nms_v4(boxes.npu(), scores.npu(), 5, *numbers)
    assert places.cpu()[: count.item()].tolist() == [1, 2, 0]
    encoded = torch_npu.npu_bounding_box_encode(boxes.npu(), boxes.npu(), 0, 0, 0, 0, 1, 1, 1, 1)
    assert not encoded.cpu().any()
    decoded = torch_npu.npu_bounding_box_decode(
        boxes.npu(), torch.zeros(3, 4).npu(), 0, 0, 0, 0, 1, 1, 1, 1, (99, 99), 0.1
    )
    close(decoded, boxes)


def test_masked_fill_range() -> None:
    x = torch.zeros(2, 3, 6)
    start, end = torch.tensor([[0, 2]], dtype=torch.int32), torch.tensor([[2, 3]], dtype=torch.int32)
    result = torch_npu.npu_masked_fill_range(x.npu(), start.npu(), end.npu(), torch.tensor([5.0]).npu(), 2)
    x[0, :, 0:2], x[1, :, 2:3] = 5, 5
    assert torch.equal(result.cpu(), x)


@pytest.fixture
def compiled_operators(products_of_float32: None) -> Iterator[None]:
    """torch_npu calls most operators by name if compilation is enabled."""
    torch.npu.set_compile_mode(jit_compile=True)
    yield
    torch.npu.set_compile_mode(jit_compile=False)


IMAGE, VOLUME, SIGNAL = (2, 4, 6, 7), (1, 2, 4, 5, 6), (2, 4, 9)
COMPILED: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "bicubic": (IMAGE, lambda x: F.interpolate(x, (9, 5), mode="bicubic")),
    "bicubic, corners aligned": (IMAGE, lambda x: F.interpolate(x, (9, 5), mode="bicubic", align_corners=True)),
    "bilinear": (IMAGE, lambda x: F.interpolate(x, (9, 5), mode="bilinear")),
    "bilinear, corners aligned": (IMAGE, lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True)),
    "nearest": (IMAGE, lambda x: F.interpolate(x, (9, 5), mode="nearest")),
    "nearest of a signal": (SIGNAL, lambda x: F.interpolate(x, 5, mode="nearest")),
    "trilinear": (VOLUME, lambda x: F.interpolate(x, (3, 7, 6), mode="trilinear")),
    "average pool": (IMAGE, lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "average pool of volumes": (VOLUME, lambda x: F.avg_pool3d(x, 2, 2)),
    "adaptive average pool": (IMAGE, lambda x: F.adaptive_avg_pool2d(x, 2)),
    "max pool": (IMAGE, lambda x: F.max_pool2d(x, 2)),
    "convolution": (IMAGE, lambda x: F.conv2d(x, torch.ones(3, 4, 3, 3, device=x.device), padding=1)),
    "convolution of volumes": (VOLUME, lambda x: F.conv3d(x, torch.ones(3, 2, 2, 2, 2, device=x.device))),
    "softmax": (IMAGE, lambda x: F.softmax(x, 1).square()),
    "log_softmax": (IMAGE, lambda x: F.log_softmax(x, -1)),
    "group norm": (IMAGE, lambda x: F.group_norm(x, 2)),
    "reflection": (IMAGE, lambda x: F.pad(x, (1, 2, 2, 1), "reflect").square()),
    "replication": (IMAGE, lambda x: F.pad(x, (1, 2, 2, 1), "replicate").square()),
    "mean and variance": (IMAGE, lambda x: x.mean((2, 3)) + x.std((2, 3))),
    "hardsigmoid": (IMAGE, F.hardsigmoid),
    "smooth loss": (IMAGE, lambda x: F.smooth_l1_loss(x, torch.zeros_like(x), reduction="none")),
}


@pytest.mark.parametrize("name", COMPILED)
def test_operators_that_are_to_be_compiled(name: str, compiled_operators: None) -> None:
    shape, function = COMPILED[name]
    x = torch.randn(shape, requires_grad=True)
    y = x.detach().npu().requires_grad_()
    expected, result = function(x), function(y)
    close(result.detach(), expected.detach())
    grad = torch.randn(expected.shape)
    expected.backward(grad)
    result.backward(grad.npu())
    close(y.grad, x.grad)
