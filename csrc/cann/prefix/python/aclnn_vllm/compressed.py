"""Keys that are compressed, as in DeepSeek-V4."""

from __future__ import annotations

import torch

from .definitions import operator

Tensor = torch.Tensor
BLOCK_AND_OFFSET = 2  # the format of slots that has both numbers; 1 has one


def metadata(
    rope_cos: Tensor,
    rope_sin: Tensor,
    cu_seqlens: Tensor,
    start_pos: Tensor,
    kv_block_table: Tensor,
    kv_block_size: int,
    slot_mapping_format: int,
    compress_ratio: int,
    rows: int,
    requests: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines, sines and slots of compressed tokens: those that the new tokens of each request complete.

    A row without such a token has the cosine 1, the sine 0 and no slot.
    """
    starts, bounds = start_pos[:requests].long(), cu_seqlens[: requests + 1].long()
    lengths = bounds[1:] - bounds[:-1]
    completed = (starts + lengths) // compress_ratio - starts // compress_ratio
    completed = torch.where((starts >= 0) & (lengths > 0), completed, 0)
    ends = completed.cumsum(0)
    places = torch.arange(rows, device=ends.device)
    of_request = (places.unsqueeze(1) >= ends).sum(1)
    request = of_request.clamp_max(requests - 1)
    position = starts[request] // compress_ratio + places - (ends - completed)[request]
    column, angle = position // kv_block_size, position * compress_ratio
    is_valid = (of_request < requests) & (column < kv_block_table.size(1)) & (angle < rope_cos.size(0))
    block = kv_block_table[request, column.clamp(0, kv_block_table.size(1) - 1)]
    is_valid = is_valid & (block >= 0)
    angle = angle.clamp(0, rope_cos.size(0) - 1)
    is_turned = is_valid.unsqueeze(1)
    cosines, sines = torch.where(is_turned, rope_cos[angle], 1), torch.where(is_turned, rope_sin[angle], 0)
    offset = position % kv_block_size
    if slot_mapping_format == BLOCK_AND_OFFSET:
        slots = torch.stack([torch.where(is_valid, block, -1), torch.where(is_valid, offset, kv_block_size - 1)], 1)
    else:
        slots = torch.where(is_valid, block * kv_block_size + offset, -1)
    return cosines.to(rope_cos.dtype), sines.to(rope_sin.dtype), slots.int()


INPUTS = (
    "Tensor rope_cos, Tensor rope_sin, Tensor cu_seqlens, Tensor start_pos, Tensor kv_block_table, int kv_block_size,"
    " int slot_mapping_format, int compress_ratio"
)


@operator(f"compressor_metadata({INPUTS}, int num_compressed_tokens, int num_reqs_actual) -> (Tensor, Tensor, Tensor)")
def compressor_metadata(
    rope_cos: Tensor,
    rope_sin: Tensor,
    cu_seqlens: Tensor,
    start_pos: Tensor,
    kv_block_table: Tensor,
    kv_block_size: int,
    slot_mapping_format: int,
    compress_ratio: int,
    num_compressed_tokens: int,
    num_reqs_actual: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines and sines, (tokens, 1, 1, size), and slots of compressed tokens."""
    cosines, sines, slots = metadata(
        *(rope_cos, rope_sin, cu_seqlens, start_pos, kv_block_table, kv_block_size, slot_mapping_format),
        *(compress_ratio, num_compressed_tokens, num_reqs_actual),
    )
    return cosines.view(-1, 1, 1, rope_cos.size(1)), sines.view(-1, 1, 1, rope_sin.size(1)), slots


@operator(
    f"compressor_metadata_out({INPUTS}, int num_reqs_actual, Tensor(a!) compress_cos, Tensor(b!) compress_sin,"
    " Tensor(c!) slot_mapping) -> (Tensor(a!), Tensor(b!), Tensor(c!))"
)
def compressor_metadata_out(
    rope_cos: Tensor,
    rope_sin: Tensor,
    cu_seqlens: Tensor,
    start_pos: Tensor,
    kv_block_table: Tensor,
    kv_block_size: int,
    slot_mapping_format: int,
    compress_ratio: int,
    num_reqs_actual: int,
    compress_cos: Tensor,
    compress_sin: Tensor,
    slot_mapping: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """compressor_metadata in memory of the caller."""
    results = metadata(
        *(rope_cos, rope_sin, cu_seqlens, start_pos, kv_block_table, kv_block_size, slot_mapping_format),
        *(compress_ratio, compress_cos.size(0), num_reqs_actual),
    )
    outputs = (compress_cos, compress_sin, slot_mapping)
    for output, result in zip(outputs, results, strict=True):
        output.copy_(result.view(output.shape))
    return outputs
