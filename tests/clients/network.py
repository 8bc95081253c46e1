"""A small network with random weights, and its training data."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import TensorDataset

FEATURES, CLASSES, EXAMPLES = 16, 5, 48


def network() -> nn.Module:
    """A classifier, identical in every call and process."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.LayerNorm(64), nn.SiLU(), nn.Linear(64, CLASSES))


def examples() -> TensorDataset:
    """Rows, and their classes by a linear function; identical in every call and process."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(EXAMPLES, FEATURES, generator=generator)
    return TensorDataset(rows, (rows @ torch.randn(FEATURES, CLASSES, generator=generator)).argmax(1))
