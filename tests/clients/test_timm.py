"""timm's models, losses, optimizers and weight averages."""

from __future__ import annotations

import copy

import pytest
import timm
import timm.optim
import timm.utils
import torch
from timm.loss import LabelSmoothingCrossEntropy
from torch import Tensor, nn

from tests.clients.training import Training, expect_alike, flat

CLASSES = 5


def train(start: nn.Module, device: str, images: Tensor, labels: Tensor, steps: int = 5) -> tuple[Training, nn.Module]:
    """Five steps of SGD on the device, and the average of the weights."""
    model = copy.deepcopy(start).to(device).train()
    optimizer = timm.optim.create_optimizer_v2(model, "sgd", lr=0.05, momentum=0.9, weight_decay=0.05)
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    criterion = LabelSmoothingCrossEntropy(0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(images.to(device)), labels.to(device))
        loss.backward()
        timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
        optimizer.step()
        average.update(model)
        losses.append(loss.item())
    return Training(losses, flat(model)), average.module


@pytest.mark.parametrize("name", ["test_resnet", "test_convnext", "test_efficientnet"])
def test_a_model_learns_as_on_the_cpu(name: str) -> None:
    start = timm.create_model(name, pretrained=False, num_classes=CLASSES)
    images, labels = torch.randn(8, 3, 64, 64), torch.randint(CLASSES, (8,))
    expected, average = train(start, "cpu", images, labels)
    found, average_on_npu = train(start, "npu", images, labels)
    expect_alike(found, expected, flat(start))
    with torch.inference_mode():
        expected_logits = average.eval()(images)
        logits = average_on_npu.eval()(images.npu()).cpu()
    torch.testing.assert_close(logits, expected_logits, rtol=0, atol=1e-5)
