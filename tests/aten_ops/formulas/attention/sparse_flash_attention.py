"""Attention to selected keys (ops-transformer: aclnnSparseFlashAttention.md and aclnnSparseFlashAttentionV2.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, Attention, Tokens, by_name, call_of

NAME = "aclnnSparseFlashAttention"
LAST = {"pre_tokens": 2**63 - 1, "next_tokens": 2**63 - 1}
INPUTS = {
    "query": f"FLOAT16[1,2,1,512]:{QUERY}",
    "key": f"FLOAT16[1,4,1,512]:{KEY}",
    "value": f"FLOAT16[1,4,1,512]:{VALUE}",
    "scale_value": 0.125,
    "attention_mode": 2,
    "attention_out_out": "FLOAT16[1,2,1,512]",
} | LAST
SOFTMAX = {name: "FLOAT[1,1,2,1]" for name in ("softmax_max_out", "softmax_sum_out")}


def hidden(listed, block, keys):
    """The keys of which a query has no block; a list ends with its first negative number."""
    seen = np.zeros(keys, bool)
    for number in listed:
        if number < 0:
            break
        seen[number * block : (number + 1) * block] = True
    return ~seen


# The error is that of sums of 512 products, in FLOAT.
@by_name(
    NAME,
    NAME + "V2",
    calls=[
        call_of(
            NAME,
            **INPUTS | SOFTMAX,
            sparse_indices="INT32[1,2,1,2]:1,0,1,-1",
            sparse_block_size=2,
            layout_query='"BSND"',
            layout_kv='"BSND"',
            sparse_mode=3,
            return_softmax_lse="true",
        ),
        call_of(
            NAME + "V2",
            **INPUTS | SOFTMAX,
            sparse_indices="INT32[1,2,1,2]:1,-1,0,1",
            sparse_block_size=2,
            layout_query='"BSND"',
            layout_kv='"BSND"',
            sparse_mode=3,
            return_softmax_lse="true",
        ),
        call_of(
            NAME + "V2",
            **INPUTS
            | {
                "query": f"FLOAT16[3,2,512]:{QUERY}",
                "key": f"FLOAT16[7,1,512]:{KEY}",
                "value": f"FLOAT16[7,1,512]:{VALUE}",
                "attention_out_out": "FLOAT16[3,2,512]",
            },
            actual_seq_lengths_query="INT32[2]:1,3",
            actual_seq_lengths_kv="INT32[2]:3,7",
            sparse_indices="INT32[3,1,3]:2,0,-1,1,0,3,0,-1,2",
            sparse_block_size=1,
            layout_query='"TND"',
            layout_kv='"TND"',
            return_softmax_lse="true",
            softmax_max_out="FLOAT[1,3,2]",
            softmax_sum_out="FLOAT[1,3,2]",
        ),
    ],
    error=2e-6,
)
def sparse_attention(a):
    block_table = a.block_table
    queries = Tokens(a.query, a.layout_query, a.actual_seq_lengths_query)
    keys = Tokens(a.key, a.layout_kv, a.actual_seq_lengths_kv, block_table)
    result, (largest, total) = np.zeros(queries.flat(a.query).shape), np.zeros((2, *queries.flat(a.query).shape[:2]))
    for i, (rows, columns) in enumerate(zip(queries.lengths, keys.lengths, strict=True)):
        query, key = queries.read(a.query, i), keys.read(a.key, i)
        if a.query_rope is not None:
            query = np.concatenate([query, queries.read(a.query_rope, i)], -1)
            key = np.concatenate([key, keys.read(a.key_rope, i)], -1)
        lists = queries.read(a.sparse_indices, i)[:, 0]
        mask = np.array([hidden(each, a.sparse_block_size, columns) for each in lists]).reshape(rows, columns)
        if a.sparse_mode == 3:
            mask |= np.arange(columns) - np.arange(rows)[:, None] > columns - rows
        by_head = [each.swapaxes(0, 1) for each in (query, key, keys.read(a.value, i))]
        attention = Attention(a, *by_head, 0, mask, 1, None, None)
        where = queries.spans[i]
        result[where] = attention.result().swapaxes(0, 1)
        largest[where], total[where] = attention.largest[..., 0].T, attention.total[..., 0].T
    result = result.reshape(a.query.shape)
    if not a.return_softmax_lse:
        return result
    shape = (1, *largest.shape) if queries.packed else (len(a.query), 1, *a.query.shape[1:3])
    return result, largest.reshape(shape), total.reshape(shape)
