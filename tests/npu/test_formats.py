"""Tensors in private formats: casts in both directions, computation, training."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch
import torch_npu
from torch import nn

pytestmark = pytest.mark.usefixtures("internal_formats", "products_of_float32")

ND, NC1HWC0, FRACTAL_Z, FRACTAL_NZ, NDC1HWC0, FRACTAL_Z_3D = 2, 3, 4, 29, 32, 33
DTYPES = (torch.float32, torch.float16, torch.int8)


@pytest.fixture
def internal_formats() -> Iterator[None]:
    """torch_npu makes tensors in private formats only if enabled."""
    if torch.npu.get_device_name(0).startswith("Ascend950"):
        pytest.skip("torch_npu has no private formats in ordinary tensors there")
    torch.npu.config.allow_internal_format = True
    yield
    torch.npu.config.allow_internal_format = False


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(shape) * 10).to(dtype)


def cast(x: torch.Tensor, format: int) -> torch.Tensor:
    y = torch_npu.npu_format_cast(x.npu(), format)
    assert torch_npu.get_npu_format(y) == format
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("format", "shape"),
    [
        (FRACTAL_NZ, (20, 33)),
        (FRACTAL_NZ, (2, 3, 17, 5)),
        (NC1HWC0, (2, 20, 3, 4)),
        (NC1HWC0, (5, 7)),
        (FRACTAL_Z, (33, 20, 3, 3)),
        (FRACTAL_Z, (5,)),
        (NDC1HWC0, (2, 20, 3, 4, 5)),
        (FRACTAL_Z_3D, (17, 20, 3, 2, 2)),
    ],
)
def test_a_cast_there_and_back(format: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = numbers(*shape, dtype=dtype)
    y = cast(x, format)
    assert y.shape == x.shape
    assert torch.equal(y.cpu(), x)
    back = torch_npu.npu_format_cast(y, {4: 0, 5: 30}.get(len(shape), 2))
    assert torch.equal(back.cpu(), x)


def test_the_layout_is_that_of_the_document() -> None:
    x = torch.arange(6.0).view(2, 3)
    y = cast(x, FRACTAL_NZ)
    blocks = torch.zeros(16, 16)
    blocks[:2, :3] = x
    torch.npu.synchronize()
    raw = torch.empty(16, 16)
    to_host, size = 2, ctypes.c_size_t(raw.nbytes)
    copy = ctypes.CDLL("libascendcl.so").aclrtMemcpy
    assert copy(ctypes.c_void_p(raw.data_ptr()), size, ctypes.c_void_p(y.data_ptr()), size, to_host) == 0
    assert torch.equal(raw, blocks)


def test_operators_read_and_write_private_formats() -> None:
    a, b = numbers(20, 33), numbers(33, 17)
    x, y = cast(a, FRACTAL_NZ), cast(b, FRACTAL_NZ)
    for got, expected in (
        (x @ y, a @ b),
        (a.npu() @ y, a @ b),
        (x + x, a + a),
        (x * 2, a * 2),
        (torch.relu(x), torch.relu(a)),
        (x.sum(1), a.sum(1)),
        (x.softmax(1), a.softmax(1)),
        (x.t().contiguous(), a.t()),
        (x[3:9, 5:20] + 0, a[3:9, 5:20]),
        (torch.cat([x, x], 1), torch.cat([a, a], 1)),
        (x.to(torch.float16), a.to(torch.float16)),
    ):
        torch.testing.assert_close(got.cpu(), expected)


def test_a_layer_with_a_weight_in_blocks() -> None:
    on_cpu = nn.Linear(33, 17)
    on_npu = nn.Linear(33, 17)
    on_npu.load_state_dict(on_cpu.state_dict())
    on_npu = on_npu.npu()
    on_npu.weight.data = cast(on_npu.weight.data, FRACTAL_NZ)
    x = numbers(4, 33)
    result, expected = on_npu(x.npu()), on_cpu(x)
    torch.testing.assert_close(result.cpu(), expected)
    result.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(on_npu.weight.grad.cpu(), on_cpu.weight.grad)
    torch.testing.assert_close(on_npu.bias.grad.cpu(), on_cpu.bias.grad)


def test_a_convolution_of_images_and_weights_in_blocks() -> None:
    on_cpu = nn.Conv2d(20, 33, 3, padding=1)
    on_npu = nn.Conv2d(20, 33, 3, padding=1)
    on_npu.load_state_dict(on_cpu.state_dict())
    on_npu = on_npu.npu()
    on_npu.weight.data = cast(on_npu.weight.data, FRACTAL_Z)
    x = numbers(2, 20, 8, 9).requires_grad_()
    images = cast(x.detach(), NC1HWC0).requires_grad_()
    result, expected = on_npu(images), on_cpu(x)
    torch.testing.assert_close(result.cpu(), expected)
    result.sum().backward()
    expected.sum().backward()
    assert images.grad is not None
    torch.testing.assert_close(images.grad.cpu(), x.grad)
    torch.testing.assert_close(on_npu.weight.grad.cpu(), on_cpu.weight.grad)


def test_strided_copies_between_formats() -> None:
    x = numbers(20, 33)
    y = cast(x, FRACTAL_NZ)
    target = torch.zeros(33, 40).npu()
    target[:, 3:23].copy_(y.t())
    expected = torch.zeros(33, 40)
    expected[:, 3:23] = x.t()
    assert torch.equal(target.cpu(), expected)
    y.copy_(target.t()[:20])
    assert torch.equal(y.cpu(), expected.t()[:20])


def test_where_they_are_not_allowed_tensors_stay_in_order() -> None:
    torch.npu.config.allow_internal_format = False
    x = numbers(20, 33)
    y = torch_npu.npu_format_cast(x.npu(), FRACTAL_NZ)
    assert torch_npu.get_npu_format(y) == ND
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize("shape", [(64, 128), (48, 72), (64, 64), (32, 64), (64, 32)])
def test_a_view_in_another_type_keeps_its_blocks(shape: tuple[int, int]) -> None:
    """A block has 32 bytes a row, so that 32 INT8 are 8 INT32 in the same place (CANN's data formats, FRACTAL_NZ).

    vllm-ascend's weights of INT4 are such views. aclnnWeightQuantBatchMatmulV2: y = x @ (weight * antiquantScale), and
    an INT32 has 8 columns, the first in its lowest bits.
    """
    rows, columns = shape
    integers = torch.randint(-8, 8, (rows, columns))
    nibbles = (integers & 15).to(torch.uint8)
    packed = (nibbles[:, 0::2] | nibbles[:, 1::2] << 4).view(torch.int8)
    weight = cast(packed, FRACTAL_NZ).view(torch.int32)
    assert weight.shape == (rows, columns // 8)
    scale = torch.rand(columns).half()
    x = torch.randn(3, rows).half()
    y = torch_npu.npu_weight_quant_batchmatmul(x.npu(), weight, antiquant_scale=scale.npu())
    torch.testing.assert_close(y.cpu().double(), x.double() @ (integers * scale.double()), rtol=2**-9, atol=2**-5)
