"""Recurrent layers under torch_npu, compared with the CPU's: csrc/cann/rows/recurrent."""

from __future__ import annotations

from typing import Any

import pytest
import torch

# Sums of a few products in FLOAT, in another order.
TOLERANCE = {"rtol": 2**-19, "atol": 2**-19}


def outcome(layer: torch.nn.RNNBase, x: torch.Tensor, device: str, uses_state: bool) -> list[torch.Tensor]:
    """The output, the states, and the gradients of the input and of every parameter."""
    there = type(layer)(3, 4, num_layers=layer.num_layers, bidirectional=layer.bidirectional)
    there.load_state_dict(layer.state_dict())
    there = there.to(device)
    given = x.detach().to(device).requires_grad_()
    output, state = there(given)
    states = state if isinstance(state, tuple) else (state,)
    loss = output.square().sum()
    if uses_state:
        loss = loss + sum(each.sum() for each in states)
    loss.backward()
    gradients = [given.grad, *(parameter.grad for parameter in there.parameters())]
    return [each.detach().cpu() for each in (output, *states, *gradients)]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (torch.nn.LSTM, {}),
        (torch.nn.GRU, {}),
        (torch.nn.GRU, {"num_layers": 2, "bidirectional": True}),
    ],
)
@pytest.mark.parametrize("uses_state", [False, True])
def test_a_layer_and_its_gradients(kind: Any, settings: dict[str, Any], uses_state: bool) -> None:
    torch.manual_seed(0)
    layer = kind(3, 4, **settings)
    x = torch.randn(5, 2, 3)
    pairs = zip(outcome(layer, x, "npu", uses_state), outcome(layer, x, "cpu", uses_state), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, **TOLERANCE)


def test_rrelu_with_noise() -> None:
    """Negative numbers are multiplied by slopes between the bounds, others are unchanged."""
    x = torch.linspace(-2, 2, 101)
    y = torch.nn.functional.rrelu(x.npu(), 0.1, 0.3, training=True).cpu()
    assert torch.equal(y[x >= 0], x[x >= 0])
    slopes = y[x < 0] / x[x < 0]
    assert slopes.min() >= 0.1 and slopes.max() <= 0.3 and slopes.unique().numel() > 10
