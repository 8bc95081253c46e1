"""torch.compile of a library's model, with backends that do not need a device's code generator."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from tests.clients.llama import llama, sentences
from tests.clients.training import Training, expect_alike, flat


def train(start: nn.Module, tokens: Tensor, device: str, backend: str | None = None) -> Training:
    """Steps of AdamW on one batch, with a compiled or plain model."""
    model = copy.deepcopy(start).to(device).train()
    forward = model if backend is None else torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = tokens.to(device)
    losses = []
    for _ in range(5):
        loss = forward(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return Training(losses, flat(model))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "npugraphs"])
def test_a_compiled_llama_learns_as_an_eager_one_on_the_cpu(backend: str) -> None:
    torch.compiler.reset()
    start, tokens = llama(), sentences(4)
    expected = train(start, tokens, "cpu")
    expect_alike(train(start, tokens, "npu", backend), expected, flat(start))
