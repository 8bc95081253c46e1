"""Sparse attention: indexers, and attention to the keys that they select."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor
ALL = 9223372036854775807  # tokens


def selected_shape(query: Tensor, key: Tensor, layout_query: str, layout_key: str, count: int) -> list[int]:
    """The shape of the selected keys' numbers: (batch, tokens, heads of keys, count) or (tokens, ...)."""
    heads = key.size(1) if layout_key == "TND" else key.size(2)
    return [*query.shape[: 2 if layout_query == "BSND" else 1], heads, count]


LENGTHS = "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, Tensor? block_table=None,"
LAYOUTS = "str layout_query='BSND', str layout_key='BSND', int sparse_count=2048, int sparse_mode=3"
TOKENS = f"int pre_tokens={ALL}, int next_tokens={ALL}"


@operator(
    f"npu_lightning_indexer(Tensor query, Tensor key, Tensor weights, *, {LENGTHS} {LAYOUTS}, {TOKENS},"
    " bool return_value=False) -> (Tensor sparse_indices, Tensor sparse_values)"
)
def npu_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = ALL,
    next_tokens: int = ALL,
    return_value: bool = False,
) -> tuple[Tensor, Tensor]:
    """The keys with the best scores for each query, and the scores if return_value is set."""
    shape = selected_shape(query, key, layout_query, layout_key, sparse_count)
    indices, values = query.new_empty(shape, dtype=torch.int32), query.new_empty(shape if return_value else [0])
    call(
        *("aclnnLightningIndexer", query, key, weights, actual_seq_lengths_query, actual_seq_lengths_key, block_table),
        *(layout_query, layout_key, sparse_count, sparse_mode, pre_tokens, next_tokens, return_value),
        *(indices, values),
    )
    return indices, values


@operator(
    "npu_lightning_indexer_quant(Tensor query, Tensor key, Tensor weights, Tensor query_dequant_scale,"
    f" Tensor key_dequant_scale, *, {LENGTHS} int query_quant_mode=0, int key_quant_mode=0, {LAYOUTS}) -> Tensor"
)
def npu_lightning_indexer_quant(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    query_quant_mode: int = 0,
    key_quant_mode: int = 0,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
) -> Tensor:
    """The keys with the best scores for each query, of quantised queries and keys."""
    shape = selected_shape(query, key, layout_query, layout_key, sparse_count)
    indices = query.new_empty(shape, dtype=torch.int32)
    call(
        *("aclnnQuantLightningIndexer", query, key, weights, query_dequant_scale, key_dequant_scale),
        *(actual_seq_lengths_query, actual_seq_lengths_key, block_table, query_quant_mode, key_quant_mode),
        *(layout_query, layout_key, sparse_count, sparse_mode, ALL, ALL, indices),
    )
    return indices


def softmax_outputs(query: Tensor, key: Tensor, layout_kv: str, is_wanted: bool) -> tuple[Tensor, Tensor]:
    """Room for the largest score and the sum of each query's softmax, or nothing."""
    shape = [0]
    if is_wanted and query.dim() == 3:
        heads = key.size(2) if layout_kv == "PA_BSND" else key.size(1)
        shape = [heads, query.size(0), query.size(1) // heads]
    elif is_wanted:
        shape = [query.size(0), key.size(2), query.size(1), query.size(2) // key.size(2)]
    return query.new_empty(shape, dtype=torch.float32), query.new_empty(shape, dtype=torch.float32)


LENGTHS_KV = "Tensor? block_table=None, Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_kv=None,"
KV = (
    "int sparse_block_size=1, str layout_query='BSND', str layout_kv='BSND', int sparse_mode=3,"
    f" {TOKENS}, int attention_mode=2"
)
RESULTS = "bool return_softmax_lse=False) -> (Tensor attention_out, Tensor softmax_max, Tensor softmax_sum)"


@operator(
    "npu_sparse_flash_attention(Tensor query, Tensor key, Tensor value, Tensor sparse_indices, float scale_value, *,"
    f" {LENGTHS_KV} Tensor? query_rope=None, Tensor? key_rope=None, {KV}, {RESULTS}"
)
def npu_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_indices: Tensor,
    scale_value: float,
    *,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = ALL,
    next_tokens: int = ALL,
    attention_mode: int = 2,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention to the selected keys."""
    out = query.new_empty(query.shape)
    largest, total = softmax_outputs(query, key, layout_kv, return_softmax_lse)
    call(
        *("aclnnSparseFlashAttention", query, key, value, sparse_indices, block_table, actual_seq_lengths_query),
        *(actual_seq_lengths_kv, query_rope, key_rope, scale_value, sparse_block_size, layout_query, layout_kv),
        *(sparse_mode, pre_tokens, next_tokens, attention_mode, return_softmax_lse, out, largest, total),
    )
    return out, largest, total


@operator(
    "npu_kv_quant_sparse_flash_attention(Tensor query, Tensor key, Tensor value, Tensor sparse_indices,"
    " float scale_value, *, int key_quant_mode=1, int value_quant_mode=1, Tensor? key_dequant_scale=None,"
    f" Tensor? value_dequant_scale=None, {LENGTHS_KV} {KV}, int quant_scale_repo_mode=1, int tile_size=128,"
    f" int rope_head_dim=64, {RESULTS}"
)
def npu_kv_quant_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_indices: Tensor,
    scale_value: float,
    *,
    key_quant_mode: int = 1,
    value_quant_mode: int = 1,
    key_dequant_scale: Tensor | None = None,
    value_dequant_scale: Tensor | None = None,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = ALL,
    next_tokens: int = ALL,
    attention_mode: int = 2,
    quant_scale_repo_mode: int = 1,
    tile_size: int = 128,
    rope_head_dim: int = 64,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention to the selected keys, which are INT8 with their rotary parts and scales in the same bytes."""
    if return_softmax_lse:
        name = "npu_kv_quant_sparse_flash_attention with return_softmax_lse"
        raise NotImplementedError(f"{name} is not computed on simulated NPUs: CANN's function has no such results")
    out = query.new_empty([*query.shape[:-1], query.size(-1) - rope_head_dim])
    # Values are parts of the keys (attention_mode 2); callers pass these parts, CANN's function expects the keys again.
    call(
        *("aclnnKvQuantSparseFlashAttention", query, key, key, sparse_indices, key_dequant_scale),
        *(value_dequant_scale, block_table, actual_seq_lengths_query, actual_seq_lengths_kv, scale_value),
        *(key_quant_mode, value_quant_mode, sparse_block_size, layout_query, layout_kv, sparse_mode, pre_tokens),
        *(next_tokens, attention_mode, quant_scale_repo_mode, tile_size, rope_head_dim, out),
    )
    return out, *softmax_outputs(query, key, layout_kv, is_wanted=False)


@operator(
    "batch_matmul_transpose(Tensor tensor_a, Tensor tensor_b, Tensor tensor_c, str? format_mode=None,"
    " str? quant_mode=None) -> ()"
)
def batch_matmul_transpose(
    tensor_a: Tensor,
    tensor_b: Tensor,
    tensor_c: Tensor,
    format_mode: str | None = None,
    quant_mode: str | None = None,
) -> None:
    """Products for each head, (tokens, heads, n) = (tokens, heads, k) (heads, k, n), which tensor_c gets."""
    products = torch.bmm(tensor_a.transpose(0, 1), tensor_b)
    tensor_c.view(tensor_a.size(0), tensor_a.size(1), -1).copy_(products.transpose(0, 1))
