"""Caches of keys and values, and the vocabulary."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor


@operator("npu_scatter_nd_update_v2(Tensor(a!) var, Tensor indices, Tensor update) -> ()")
def npu_scatter_nd_update_v2(var: Tensor, indices: Tensor, update: Tensor) -> None:
    """Writes slices of var, which may have any strides; an index out of range is skipped."""
    update = update.reshape(indices.shape[:-1] + var.shape[indices.size(-1) :])
    call("aclnnScatterNdUpdate", var, indices, update)


@operator(
    "get_masked_input_and_mask(Tensor input, int org_vocab_start_index, int org_vocab_end_index,"
    " int num_org_vocab_padding, int added_vocab_start_index, int added_vocab_end_index)"
    " -> (Tensor masked_input, Tensor mask)"
)
def get_masked_input_and_mask(
    input: Tensor,
    org_vocab_start_index: int,
    org_vocab_end_index: int,
    num_org_vocab_padding: int,
    added_vocab_start_index: int,
    added_vocab_end_index: int,
) -> tuple[Tensor, Tensor]:
    """Numbers of tokens within this rank's part of the vocabulary, 0 for others, and the mask of the others."""
    is_original = (input >= org_vocab_start_index) & (input < org_vocab_end_index)
    is_added = (input >= added_vocab_start_index) & (input < added_vocab_end_index)
    originals = org_vocab_end_index - org_vocab_start_index
    of_added = added_vocab_start_index - originals - num_org_vocab_padding
    shifted = torch.where(is_original, input - org_vocab_start_index, input - of_added)
    mask = ~(is_original | is_added)
    return shifted.masked_fill(mask, 0), mask
