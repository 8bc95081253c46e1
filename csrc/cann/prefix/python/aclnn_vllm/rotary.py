"""Rotary position embeddings."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

MODES = {"half": 0, "interleave": 1, "quarter": 2, "interleave-half": 3}


@operator("inplace_partial_rotary_mul(Tensor(a!) x, Tensor r1, Tensor r2, str rotary_mode, int[] partial_slice) -> ()")
def inplace_partial_rotary_mul(
    x: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, rotary_mode: str, partial_slice: list[int]
) -> None:
    """Turns pairs of a part of the last dimension by angles with the cosines r1 and sines r2."""
    if rotary_mode not in MODES:
        raise ValueError(f"inplace_partial_rotary_mul: rotary_mode is {rotary_mode!r}, expected one of {list(MODES)}")
    call("aclnnInplacePartialRotaryMul", x, r1, r2, MODES[rotary_mode], list(partial_slice))
