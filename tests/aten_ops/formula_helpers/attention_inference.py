"""Attention of inference, for the formulas of formulas/attention/fused_infer.py, prompt.py and incremental.py.

By ops-transformer: aclnnFusedInferAttentionScoreV4.md, aclnnPromptFlashAttentionV3.md, aclnnIncreFlashAttentionV4.md
and docs/zh/context/sparse_mode_introduction.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tests.aten_ops.formula_helpers.attention import Arguments, from_heads, hidden_scores, to_heads
from tests.aten_ops.formula_helpers.types import decoded, to_integers

TRIANGLE = 2048  # the size of a mask from which the modes 2 to 4 are made


def without_empty(a: Arguments) -> Arguments:
    """The arguments: an empty tensor or list is the same as none."""
    given = {"query", "key", "value"}
    return Arguments(**{name: value for name, value in vars(a).items() if name in given or np.size(value)})


def read(tensor: Any, layout: str, heads: int) -> Any:
    """A tensor as (batch, heads, sequence, elements); packed sequences are one batch."""
    if layout in ("TND", "NTD"):
        return (tensor.swapaxes(0, 1) if layout == "TND" else tensor)[None]
    return to_heads(tensor, layout, heads)


def write(result: Any, layout: str) -> Any:
    """The inverse for the layout of the result."""
    if layout in ("TND", "NTD"):
        return result[0].swapaxes(0, 1) if layout == "TND" else result[0]
    return result.swapaxes(0, 1) if layout == "NBSD" else from_heads(result, layout)


class Cache:
    """The keys, values or rotary parts of the sequences."""

    def __init__(self, tensors: Any, a: Arguments, layout: str, heads: int) -> None:
        self.is_list = len(tensors) > 1
        self.table = a.blocktable if a.block_table is None else a.block_table
        if self.table is None:
            self.tensors = [read(each, layout, heads) for each in tensors]
            return
        cache = tensors[0]  # in blocks
        if cache.ndim == 3:
            cache = to_heads(cache, "BSH", heads)
        elif cache.ndim == 5:  # block, heads, parts of an element's 32 bytes, tokens, elements of a part
            cache = cache.swapaxes(2, 3).reshape(*cache.shape[:2], cache.shape[3], cache.shape[2] * cache.shape[4])
        self.tensors = [cache]

    def capacity(self, batch: int) -> int:
        if self.table is not None:
            return self.table.shape[1] * self.tensors[0].shape[2]
        return self.tensors[batch if self.is_list else 0].shape[2]

    def read(self, batch: int, start: int, stop: int) -> Any:
        """(heads, tokens, elements)."""
        if self.table is None:
            return (self.tensors[batch][0] if self.is_list else self.tensors[0][batch])[:, start:stop]
        size = self.tensors[0].shape[2]
        blocks = [self.tensors[0][i] for i in self.table[batch, : -(-stop // size)]]
        return np.concatenate([self.tensors[0][0][:, :0], *blocks], 1)[:, :stop]


def antiquantized(x: Any, scale: Any, offset: Any, mode: int, batch: int, batches: int, start: int) -> Any:
    """Keys or values of INT8: scales for the tensor or channels (0), tokens (1), heads (2), or tokens of heads (3)."""
    heads, tokens, elements = x.shape

    def shaped(parameters: Any) -> Any:
        if mode == 0:
            return parameters.reshape(1, 1, 1) if parameters.size == 1 else parameters.reshape(heads, 1, elements)
        if mode == 2:
            return parameters.reshape(heads, 1, 1)
        by_batch = parameters.reshape(batches, 1 if mode == 1 else heads, parameters.shape[-1], 1)
        return by_batch[batch, :, start : start + tokens]

    return (x + (0 if offset is None else shaped(offset))) * shaped(scale)


def spans(lengths: Any, batches: int, sizes: list[int]) -> list[tuple[int, int, int]]:
    """The batch, the start and the stop of each sequence; one length counts for all."""
    if lengths is None:
        lengths = sizes
    return [(b, 0, int(lengths[b if len(lengths) > 1 else 0])) for b in range(batches)]


def packed_spans(ends: Any) -> list[tuple[int, int, int]]:
    return [(0, int(start), int(stop)) for start, stop in pairwise([0, *ends])]


def padded(found: Any, padding: Any, size: int, empties: bool) -> Any:
    """Sequences at the end of their dimension, before the padding; one that does not fit may become empty."""
    result = []
    for b, start, stop in found:
        length = stop - start
        own = int(padding.reshape(-1)[b if padding.size > 1 else 0])
        begin = size - length - min(max(own, 0), size)
        length = 0 if begin < 0 and empties else length
        result.append((b, max(begin, 0), max(begin, 0) + length))
    return result


def mask_rows(a: Arguments, batches: int, queries: int, sees_all: bool) -> Any:
    """A mask as (batch, queries, keys); None without one, or if a mode makes it."""
    mask = a.atten_mask
    if mask is None or ((a.sparse_mode or 0) >= 2 and mask.shape[-2:] == (TRIANGLE, TRIANGLE)):
        return None
    if mask.ndim == 4:
        mask = mask[:, 0]
    if mask.ndim == 2:
        mask = mask[:, None] if sees_all and len(mask) == batches else mask[None]
    return mask != 0


def listed_blocks(a: Arguments, lists: Any, queries: int, keys: int) -> Any:
    """Flags of the scores in blocks that aclnnBlitzSparseAttention lists, with 65535 after the last index."""
    x, y = a.block_shape or (128, 128)
    flags = (lists[..., None] == np.arange(lists.shape[-1])).any(2)
    return flags[:, np.arange(queries) // x][:, :, np.arange(keys) // y]


def infer(a: Arguments, one_sees_all: bool = False, **other: Any) -> Any:
    """The result, and the logarithms of the sums of exponentials, with other arguments than those of the call.

    With one_sees_all, a single query of each sequence is its last token, so that no mode hides a key.
    """
    a = without_empty(Arguments(**vars(a) | other))
    query_lengths, key_lengths, shift = a.actual_seq_lengths, a.actual_seq_lengths_kv, a.shift
    layout, _, target = (a.input_layout or "BSH").partition("_")
    packed = layout in ("TND", "NTD")
    heads, key_heads = a.num_heads, a.num_key_value_heads or a.num_heads
    query = read(a.query, layout, heads)
    batches, _, size, _ = query.shape
    has_rope = a.query_rope is not None
    sees_all = one_sees_all and not packed and size == 1 and not has_rope
    key_list, value_list = (each if isinstance(each, list) else [each] for each in (a.key, a.value))
    keys, values = Cache(key_list, a, layout, key_heads), Cache(value_list, a, layout, key_heads)
    if has_rope:
        query = np.concatenate([query, read(a.query_rope, layout, heads)], -1)
        ropes = Cache([a.key_rope], a, layout, key_heads)

    if packed:
        of_queries = packed_spans(query_lengths)
        paged = keys.table is not None
        of_keys = spans(key_lengths, len(of_queries), []) if paged else packed_spans(key_lengths)
    else:
        of_queries = spans(None if size == 1 and one_sees_all else query_lengths, batches, [size] * batches)
        of_keys = spans(key_lengths, batches, [keys.capacity(b) for b in range(batches)])
    pads_queries = a.query_padding_size is not None and query_lengths is not None and size > 1
    pads_keys = a.kv_padding_size is not None and key_lengths is not None
    if pads_queries:
        of_queries = padded(of_queries, a.query_padding_size, size, False)
    if pads_keys:
        of_keys = padded(of_keys, a.kv_padding_size, keys.capacity(0), sees_all)

    prefix = []
    if a.key_shared_prefix is not None:
        length = spans(a.actual_shared_prefix_len, 1, [read(a.key_shared_prefix, layout, key_heads).shape[2]])[0][2]
        prefix = [read(each, layout, key_heads)[0, :, :length] for each in (a.key_shared_prefix, a.value_shared_prefix)]

    def of_sequence(cache: Cache, which: int, b: int, start: int, stop: int) -> Any:
        parts = [cache.read(b, start, stop)]
        starts = [start]
        if prefix:
            parts, starts = [prefix[which], *parts], [0, start]
        scale = (a.key_antiquant_scale, a.value_antiquant_scale)[which]
        offset = (a.key_antiquant_offset, a.value_antiquant_offset)[which]
        mode = (a.key_antiquant_mode, a.value_antiquant_mode)[which]
        if scale is None and a.antiquant_scale is not None:
            scale, mode = a.antiquant_scale[which], 0 if size > 1 else a.antiquant_mode or 0
            offset = None if a.antiquant_offset is None else a.antiquant_offset[which]
        if parts[0].dtype.kind == "i" and query.dtype.kind != "i":
            parts = [
                antiquantized(x, scale, offset, mode, b, len(of_keys), s) for x, s in zip(parts, starts, strict=True)
            ]
        return np.repeat(np.concatenate(parts, 1), heads // key_heads, 0)

    mask = mask_rows(a, batches, size, sees_all)
    mode = a.sparse_mode or 0
    if sees_all or (mode == 0 and (pads_queries or pads_keys)):
        mode = 1  # which has no window
    result = np.zeros((batches, heads, size, values.tensors[0].shape[3]))
    sums = np.full((batches, heads, size, 1), np.inf)
    for (b, first, last), (of_key, start, stop) in zip(of_queries, of_keys, strict=True):
        count = stop - start + (prefix[0].shape[1] if prefix else 0)
        if first == last or count == 0:
            continue
        key, value = of_sequence(keys, 0, of_key, start, stop), of_sequence(values, 1, of_key, start, stop)
        if has_rope:
            rope = ropes.read(of_key, start, stop)
            key = np.concatenate([key, np.repeat(rope, heads // key_heads, 0)], -1)
        part = np.s_[first:last, start : start + count]
        scores = query[b, :, first:last] @ key.swapaxes(1, 2)
        if query.dtype.kind == "i":
            scores = scores * decoded(a.deq_scale1).item()
        scores = scores * a.scale_value
        if shift is not None:
            scores = scores + shift[b if len(shift) > 1 else 0][(..., *part)]
        own_mask = None if mask is None else mask[b if len(mask) > 1 else 0][part]
        if own_mask is not None or mode != 1:
            scores = np.where(hidden_scores(a, mode, own_mask, 0, last - first, count), -np.inf, scores)
        if a.sabi is not None:
            scores = np.where(listed_blocks(a, a.sabi[b], last - first, count), scores, -np.inf)
        largest = scores.max(-1, keepdims=True)
        weights = np.nan_to_num(np.exp(scores - largest))  # 0 for a query that sees no key
        total = weights.sum(-1, keepdims=True)
        if query.dtype.kind == "i":
            weights = to_integers(weights * decoded(a.quant_scale1).item()) * decoded(a.deq_scale2).item()
        result[b, :, first:last] = weights @ value / np.where(total, total, 1)
        sums[b, :, first:last] = np.where(total, np.log(total) + largest, np.inf)
    if a.quant_scale2 is not None:
        scale, offset = a.quant_scale2, np.zeros(1) if a.quant_offset2 is None else a.quant_offset2
        scale, offset = (x if x.size == 1 else x.reshape(heads, 1, -1) for x in (scale, offset))
        result = to_integers(result * scale + offset)
    return write(result, target or layout), sums[0].swapaxes(0, 1) if packed else sums
