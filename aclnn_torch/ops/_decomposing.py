"""What the decompositions of operators that sum up share."""

from __future__ import annotations

import torch


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype that is computed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
