"""Shared by the decompositions of operators that sum."""

from __future__ import annotations

import torch


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The compute dtype."""
    return torch.float64 if dtype == torch.float64 else torch.float32
