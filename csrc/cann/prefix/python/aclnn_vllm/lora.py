"""Low-rank adapters (LoRA): products of each token with the matrix of its adapter.

A token with the adapter -1 has none, and its row stays as it is. Everything is computed in FLOAT and rounded once.
"""

from __future__ import annotations

import torch

from .definitions import operator

Tensor = torch.Tensor


def products(x: Tensor, weight: Tensor, adapters: Tensor) -> Tensor:
    """The product of each row with its adapter's matrix, (adapters, [1,] out, in), in FLOAT."""
    matrices = weight.flatten(0, -2).float()
    of_all = (x.float() @ matrices.t()).unflatten(1, (weight.size(0), -1))
    chosen = adapters.long().clamp_min(0).view(-1, 1, 1).expand(-1, 1, of_all.size(2))
    return of_all.gather(1, chosen).squeeze(1)


def adapters_of_tokens(x: Tensor, adapters: Tensor, lengths: Tensor) -> Tensor:
    """The adapter of each row, from those of sequences, which follow one another; -1 behind the last one."""
    ends = lengths.cumsum(0)
    sequence = (torch.arange(x.size(0), device=x.device).unsqueeze(1) >= ends).sum(1)
    return torch.cat([adapters, adapters.new_full((1,), -1)]).index_select(0, sequence)


def write(y: Tensor, rows: Tensor, adapters: Tensor) -> None:
    """Writes the rows of tokens that have an adapter."""
    y.copy_(torch.where((adapters >= 0).unsqueeze(1), rows, y))


def check_shrink(x: Tensor, y: Tensor) -> None:
    """The checks of the operators' own binding."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"x has dtype {x.dtype}, expected torch.float16 or torch.bfloat16")
    if x.size(1) <= y.size(1):
        raise ValueError(f"x has {x.size(1)} columns, expected more than y, which has {y.size(1)}")


def check_expand(x: Tensor, y: Tensor, offset: int, size: int) -> None:
    """The checks of the operators' own binding."""
    if y.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"y has dtype {y.dtype}, expected torch.float16 or torch.bfloat16")
    if not (offset >= 0 and x.size(1) <= size and offset + size <= y.size(1)):
        span = f"{x.size(1)} or more columns within the {y.size(1)} of y"
        raise ValueError(f"slice_offset is {offset} and slice_size {size}, expected {span}")


@operator("bgmv_shrink(Tensor! x, Tensor! weight, Tensor! indices, Tensor! y, float scale) -> ()")
def bgmv_shrink(x: Tensor, weight: Tensor, indices: Tensor, y: Tensor, scale: float) -> None:
    """Writes scale * x A^T to y, with the adapter of each token."""
    check_shrink(x, y)
    write(y, products(x, weight, indices) * scale, indices)


@operator(
    "bgmv_expand(Tensor! x, Tensor! weight, Tensor! indices, Tensor! y, int slice_offset, int slice_size) -> Tensor"
)
def bgmv_expand(x: Tensor, weight: Tensor, indices: Tensor, y: Tensor, slice_offset: int, slice_size: int) -> Tensor:
    """Adds x B^T to slice_size columns of y, with the adapter of each token."""
    check_expand(x, y, slice_offset, slice_size)
    part = y.narrow(1, slice_offset, slice_size)
    write(part, part + products(x, weight, indices), indices)
    return y


@operator("sgmv_shrink(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor! y, float scale) -> ()")
def sgmv_shrink(x: Tensor, weight: Tensor, lora_indices: Tensor, seq_len: Tensor, y: Tensor, scale: float) -> None:
    """bgmv_shrink with the adapter of each sequence."""
    bgmv_shrink(x, weight, adapters_of_tokens(x, lora_indices, seq_len), y, scale)


@operator(
    "sgmv_expand(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor! y, int slice_offset,"
    " int slice_size) -> Tensor"
)
def sgmv_expand(
    x: Tensor,
    weight: Tensor,
    lora_indices: Tensor,
    seq_len: Tensor,
    y: Tensor,
    slice_offset: int,
    slice_size: int,
) -> Tensor:
    """bgmv_expand with the adapter of each sequence."""
    return bgmv_expand(x, weight, adapters_of_tokens(x, lora_indices, seq_len), y, slice_offset, slice_size)
