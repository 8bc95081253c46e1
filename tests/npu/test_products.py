"""A short run on every product: training with the scaler, each floating type, refusals; compared with the CPU."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest
import torch
import torch_npu
from torch import Tensor, nn
from torch.nn import functional as F

import aclnn_torch

PRODUCT = os.environ["ACLNN_TORCH_PRODUCT"]
HAS_BFLOAT16 = PRODUCT not in ("Ascend310P", "Ascend910")
# Those two have only saturation mode; Ascend910B and Ascend910_93 have it, too.
SATURATES = not HAS_BFLOAT16 or os.environ.get("INF_NAN_MODE_FORCE_DISABLE") == "1"
SCALE = 2.0**10

SCALERS: dict[str, Callable[[], torch.amp.GradScaler]] = {
    "torch": lambda: torch.amp.GradScaler("npu", init_scale=SCALE),
    "torch_npu": lambda: torch_npu.npu.amp.GradScaler(init_scale=SCALE),
}


def network() -> nn.Module:
    """Convolution, norms, activations and a masked attention whose mask fills with -inf."""

    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            scores = torch.matmul(x, x.transpose(-2, -1)).masked_fill(mask, -torch.inf)
            return torch.matmul(scores.softmax(-1), x).flatten(1)

    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(2), nn.LayerNorm(9), Attention(),
        nn.Linear(36, 16), nn.Tanh(), nn.Dropout(0.0), nn.Linear(16, 5),
    )  # fmt: skip


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten().cpu() for parameter in model.parameters()])


def train(device: str, scaler: torch.amp.GradScaler, overflowing: int) -> tuple[list[Tensor], list[float]]:
    """The weights and the scale after each of six steps; one multiplies the loss so much that it overflows.

    A step has two batches, so that one backward follows another's overflow.
    """
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(2)
    steps, scales = [], []
    for step in range(6):
        optimizer.zero_grad()
        for half in range(2):
            x = torch.randn(8, 1, 8, 8, generator=generator).to(device)
            y = torch.randint(5, (8,), generator=generator).to(device)
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * 1e37 if step == overflowing and half == 0 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        steps.append(weights(model))
        scales.append(scaler.get_scale())
    return steps, scales


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.usefixtures("products_of_float32")
def test_the_scaler_skips_the_step_that_overflows(name: str) -> None:
    expected, expected_scales = train("cpu", torch.amp.GradScaler("cpu", init_scale=SCALE), overflowing=3)
    found, scales = train("npu", SCALERS[name](), overflowing=3)
    assert scales == expected_scales == [SCALE] * 3 + [SCALE / 2] * 3
    assert torch.equal(found[3], found[2])
    assert not torch.equal(found[4], found[3])
    # FLOAT matrix products are computed in FLOAT16 on products without FP32 matrix units.
    tolerance = 1e-5 if HAS_BFLOAT16 else 1e-2
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_every_step_without_an_overflow_is_taken() -> None:
    found, scales = train("npu", SCALERS["torch_npu"](), overflowing=-1)
    assert scales == [SCALE] * 6
    assert all(not torch.equal(*pair) for pair in itertools.pairwise(found))


def computed(dtype: torch.dtype, device: str) -> list[Tensor]:
    """Results and a gradient in a dtype."""
    generator = torch.Generator().manual_seed(3)
    x, w = (torch.randn(6, 6, generator=generator).to(dtype).to(device).requires_grad_() for _ in range(2))
    y = x * w + x
    results = [y, y.abs(), y.sum(0), y[1:, ::2], torch.cat([x, w])]
    if dtype != torch.float64:
        results += [torch.matmul(x, w), F.gelu(x, approximate="tanh"), x.softmax(-1)]
        results.append(aclnn_torch.functional.rms_norm(x, [6], w[0]))
    results[0].sum().backward()
    assert x.grad is not None
    return [result.detach().cpu() for result in (*results, x.grad)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.bfloat16], ids=str)
def test_floating_types(dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and not HAS_BFLOAT16:
        pytest.skip("refused: test_bfloat16_is_refused_where_there_is_none")
    tolerance = 4 * torch.finfo(dtype).eps
    if dtype == torch.float32 and not HAS_BFLOAT16:
        tolerance = 4 * torch.finfo(torch.float16).eps  # the matrix products' dtype on these products
    torch.testing.assert_close(computed(dtype, "npu"), computed(dtype, "cpu"), rtol=tolerance, atol=tolerance)


def test_the_devices_are_of_the_product() -> None:
    names = {"Ascend310P": "Ascend310P3", "Ascend910": "Ascend910A", "Ascend950": "Ascend950PR_9589"}
    names |= {"Ascend910B": "Ascend910B2", "Ascend910_93": "Ascend910_9391"}
    assert torch.npu.get_device_name(0) == names[PRODUCT]
    assert torch.npu.utils.is_support_inf_nan() != SATURATES
    assert torch.npu.is_bf16_supported() == HAS_BFLOAT16


# In the other modes an error in torch_npu's queue ends the process's work: tests/npu/test_process.py.
at_once = pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") != "0", reason="errors come later")


@at_once
def test_shapes_that_do_not_fit_are_refused() -> None:
    x = torch.ones(2, 3).npu()
    with pytest.raises(aclnn_torch.AclnnError, match=rf"aclnnEluBackward: .* \({PRODUCT}\)|{PRODUCT}"):
        torch.ops.aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x[:, :2])
    assert torch.equal((x + 1).cpu(), torch.full((2, 3), 2.0))


@at_once
@pytest.mark.skipif(HAS_BFLOAT16, reason="the product has it")
def test_bfloat16_is_refused_where_there_is_none() -> None:
    x = torch.ones(3, dtype=torch.float32).npu()
    with pytest.raises(RuntimeError, match="BFLOAT16, which this product does not have; cast the tensor"):
        x.to(torch.bfloat16)
    assert torch.equal((x + 1).cpu(), torch.full((3,), 2.0))


@at_once
def test_the_float_status_is_that_of_the_product() -> None:
    x = torch.full((2,), 1e30).npu()
    if PRODUCT == "Ascend950":
        with pytest.raises(RuntimeError):
            torch_npu.npu_get_float_status(torch.zeros(8).npu())
    elif SATURATES:
        for overflows in (False, True, False):
            torch.npu.utils.clear_npu_overflow_flag()
            x * (x if overflows else 2.0)
            assert torch.npu.utils.get_npu_overflow_flag() == overflows
    else:
        with pytest.raises(RuntimeError, match=f"aclop NPUGetFloatStatusV2: {PRODUCT} is in infinity mode"):
            torch_npu.npu_get_float_status(torch.zeros(8).npu())
    assert torch.equal((x[:1] * 0 + 1).cpu(), torch.ones(1))
