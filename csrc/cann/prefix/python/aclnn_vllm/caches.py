"""Caches of keys and values, and the vocabulary."""

from __future__ import annotations

import torch

from .calls import call, copy
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


@operator(
    "npu_reshape_and_cache_bnsd(Tensor q, Tensor k_comp, Tensor slot_mapping, Tensor seq_len, Tensor k_out) -> Tensor"
)
def npu_reshape_and_cache_bnsd(
    q: Tensor, k_comp: Tensor, slot_mapping: Tensor, seq_len: Tensor, k_out: Tensor
) -> Tensor:
    """Writes rows of (head, token) into a cache of (block, head, place in the block)."""
    _, heads, size, width = k_out.shape
    slots = slot_mapping.long().view(1, -1)
    head = torch.arange(heads, device=slots.device).view(-1, 1).expand(-1, slots.size(1))
    # A slot that is none is behind the cache, where it is skipped.
    block = torch.where(slots < 0, k_out.size(0), slots // size).expand(heads, -1)
    places = torch.stack([block, head, (slots % size).expand(heads, -1)], -1)
    call("aclnnScatterNdUpdate", k_out, places, q.view(heads, -1, width))
    return k_out


@operator(
    "transpose_kv_cache_by_block(Tensor[] kCache, Tensor[] vCache, Tensor blockIDs, int blockSize, int headNum,"
    " int headDim, int splitNum, int layerNum) -> ()"
)
def transpose_kv_cache_by_block(
    kCache: list[Tensor],
    vCache: list[Tensor],
    blockIDs: Tensor,
    blockSize: int,
    headNum: int,
    headDim: int,
    splitNum: int,
    layerNum: int,
) -> None:
    """Turns blocks of (part of the heads, token, head of the part) into blocks of (token, head)."""
    parts = (-1, splitNum, blockSize, headNum // splitNum * headDim)
    for cache in [*kCache, *vCache]:
        blocks = cache.index_select(0, blockIDs)
        cache.index_copy_(0, blockIDs.long(), blocks.view(parts).transpose(1, 2).reshape(blocks.shape))


@operator(
    "store_kv_block_metadata(Tensor slot_mapping_npu, Tensor group_len, Tensor group_key_idx,"
    " Tensor group_key_cache_idx, int block_size=0) -> ()"
)
def store_kv_block_metadata(
    slot_mapping_npu: Tensor, group_len: Tensor, group_key_idx: Tensor, group_key_cache_idx: Tensor, block_size: int = 0
) -> None:
    """Describes for store_kv_block where keys go: each is a group of its own here, of length 0 if it goes nowhere."""
    slots = slot_mapping_npu[: group_len.size(0)]
    group_len.zero_().narrow(0, 0, slots.size(0)).copy_(slots >= 0)
    group_key_idx.copy_(torch.arange(group_key_idx.size(0), device=slots.device))
    group_key_cache_idx.zero_().narrow(0, 0, slots.size(0)).copy_(slots)


@operator(
    "store_kv_block(Tensor key_in, Tensor key_cache_in, Tensor group_len, Tensor group_key_idx,"
    " Tensor group_key_cache_idx, int block_size=0) -> ()"
)
def store_kv_block(
    key_in: Tensor,
    key_cache_in: Tensor,
    group_len: Tensor,
    group_key_idx: Tensor,
    group_key_cache_idx: Tensor,
    block_size: int = 0,
) -> None:
    """Writes keys into a cache of (block, place in the block, ...)."""
    cache = key_cache_in.view(-1, key_in.numel() // key_in.size(0))
    groups = min(group_len.size(0), key_in.size(0))
    slots = torch.where(group_len[:groups] > 0, group_key_cache_idx[:groups], -1)
    keys = key_in.reshape(-1, cache.size(1)).index_select(0, group_key_idx[:groups])
    call("aclnnScatterNdUpdate", cache, slots.unsqueeze(1), keys)


@operator("swap_blocks(Tensor! x, Tensor! y, Tensor z) -> ()")
def swap_blocks(x: Tensor, y: Tensor, z: Tensor) -> None:
    """Copies blocks of x to blocks of y; the rows of z, which is on the CPU, are their numbers."""
    if x.is_meta or y.is_meta:
        return
    for source, target in z.tolist():
        y[target].copy_(x[source], non_blocking=True)


@operator("swap_blocks_batch(Tensor x, Tensor y, Tensor z, int direction) -> ()", "CPU")
def swap_blocks_batch(x: Tensor, y: Tensor, z: Tensor, direction: int) -> None:
    """Copies z bytes from the addresses x to y on the current stream; direction 0 is to a device, 1 to the host."""
    if direction not in (0, 1, 2):
        raise ValueError(f"swap_blocks_batch: direction is {direction}, expected 0, 1 or 2")
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        if tensor.dtype != torch.int64 or tensor.shape != x.shape:
            found = f"{tensor.dtype} of {list(tensor.shape)}"
            raise ValueError(f"swap_blocks_batch: {name} is {found}, expected torch.int64 of {list(x.shape)}")
    if x.is_meta:
        return
    for source, target, size in zip(x.tolist(), y.tolist(), z.tolist(), strict=True):
        copy(target, source, size, direction + 1)  # aclrtMemcpyKind


@operator("npu_sign_bits_pack(Tensor input, int size) -> Tensor")
def npu_sign_bits_pack(input: Tensor, size: int) -> Tensor:
    """Packs signs into bits, in `size` rows."""
    packed = input.new_empty(size, (input.size(0) + 7) // 8 // size, dtype=torch.uint8)
    call("aclnnSignBitsPack", input, size, packed)
    return packed
