"""Attention to selected keys (ops-transformer: aclnnSparseFlashAttention.md, ...V2.md, ...Grad.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import GRADIENT, KEY, QUERY, VALUE, Attention, Tokens, by_name, call_of

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


def attention_of(a, queries, keys, i, largest=None, total=None):
    """The attention of a sequence, with the maxima and sums if they are given."""
    rows, columns = queries.lengths[i], keys.lengths[i]
    query, key = queries.read(a.query, i), keys.read(a.key, i)
    if a.query_rope is not None:
        query = np.concatenate([query, queries.read(a.query_rope, i)], -1)
        key = np.concatenate([key, keys.read(a.key_rope, i)], -1)
    lists = queries.read(a.sparse_indices, i)[:, 0]
    mask = np.array([hidden(each, a.sparse_block_size, columns) for each in lists]).reshape(rows, columns)
    if a.sparse_mode == 3:
        mask |= np.arange(columns) - np.arange(rows)[:, None] > columns - rows
    value = keys.read(a.key if a.value is None else a.value, i)
    by_head = [each.swapaxes(0, 1) for each in (query, key, value)]
    return Attention(a, *by_head, 0, mask, 1, largest, total)


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
    for i, where in enumerate(queries.spans):
        attention = attention_of(a, queries, keys, i)
        result[where] = attention.result().swapaxes(0, 1)
        largest[where], total[where] = attention.largest[..., 0].T, attention.total[..., 0].T
    result = result.reshape(a.query.shape)
    if not a.return_softmax_lse:
        return result
    shape = (1, *largest.shape) if queries.packed else (len(a.query), 1, *a.query.shape[1:3])
    return result, largest.reshape(shape), total.reshape(shape)


GRAD = NAME + "Grad"


def call_of_grad(dtype, layout, queries, keys, softmax, has_value, has_rope, lists, **others):
    """`queries` and `keys` are the sizes of the tokens and their heads, such as "2,3,1"."""
    given = {
        "query": f"{dtype}[{queries},512]:{QUERY}",
        "key": f"{dtype}[{keys},512]:{KEY}",
        "sparse_indices": f"INT32[{queries[:-1]}1,{lists}",
        "d_out": f"{dtype}[{queries},512]:{GRADIENT}",
        "out": f"{dtype}[{queries},512]:{VALUE}",
        "softmax_max": f"FLOAT[{softmax}]:0.5,0.25,0.75,-0.125",
        "softmax_sum": f"FLOAT[{softmax}]:1.25,2.5,1.75",
        "layout": f'"{layout}"',
        "scale_value": 0.125,
        "d_query_out": f"{dtype}[{queries},512]",
        "d_key_out": f"{dtype}[{keys},512]",
    }
    if has_value:
        given |= {"value": f"{dtype}[{keys},512]:{VALUE}", "d_value_out": f"{dtype}[{keys},512]"}
    if has_rope:
        given |= {"query_rope": f"{dtype}[{queries},64]:{VALUE}", "key_rope": f"{dtype}[{keys},64]:{QUERY}"}
        given |= {"d_query_rope_out": f"{dtype}[{queries},64]", "d_key_rope_out": f"{dtype}[{keys},64]"}
    return call_of(GRAD, **given, **others)


LENGTHS = {"actual_seq_lengths_query": "INT32[2]:1,3"}


# Without value, the keys are the values. The maxima and sums are those of the result, which may be of more keys.
@by_name(
    GRAD,
    calls=[
        call_of_grad(
            *("FLOAT16", "BSND", "1,2,2", "1,4,1", "1,1,2,2", True, True, "3]:2,0,3,1,-1,2"),
            sparse_block_size=1,
            sparse_mode=3,
        ),
        call_of_grad(
            *("FLOAT16", "TND", "3,1", "12,1", "1,3,1", False, False, "2]:0,-1,1,0,-1,0"),
            **LENGTHS,
            actual_seq_lengthskv="INT32[2]:3,12",
            sparse_block_size=8,
        ),
        call_of_grad(
            *("BFLOAT16", "TND", "3,2", "7,1", "1,3,2", True, True, "2]:1,0,3,1,0,2"),
            **LENGTHS,
            actual_seq_lengthskv="INT32[2]:3,7",
            sparse_block_size=1,
            sparse_mode=3,
        ),
        call_of_grad(
            *("BFLOAT16", "BSND", "2,1,2", "2,3,1", "2,1,1,2", False, True, "2]:1,2,2,-1"),
            sparse_block_size=1,
        ),
    ],
    error=2e-6,
)
def sparse_attention_grad(a):
    queries = Tokens(a.query, a.layout, a.actual_seq_lengths_query)
    keys = Tokens(a.key, a.layout, a.actual_seq_lengthskv)
    size, rope = a.query.shape[-1], 0 if a.query_rope is None else a.query_rope.shape[-1]
    heads, of_keys = queries.flat(a.query).shape[:2], keys.flat(a.key).shape[:2]
    of_query, of_key = (np.zeros((*each, size + rope)) for each in (heads, of_keys))
    of_value = np.zeros((*of_keys, size))
    given = [each.reshape(*heads, 1) for each in (a.softmax_max, a.softmax_sum)]
    for i, (where, of) in enumerate(zip(queries.spans, keys.spans, strict=True)):
        attention = attention_of(a, queries, keys, i, *(each[where].swapaxes(0, 1) for each in given))
        found = attention.gradients(*(queries.read(each, i).swapaxes(0, 1) for each in (a.d_out, a.out)))
        of_query[where], of_key[of], of_value[of] = (each.swapaxes(0, 1) for each in found[:3])
    (of_query, of_query_rope), (of_key, of_key_rope) = (np.split(each, [size], -1) for each in (of_query, of_key))
    results = [(of_query, a.query), (of_key if a.value is not None else of_key + of_value, a.key)]
    results += [(of_value, a.value)] if a.value is not None else []
    results += [(of_query_rope, a.query_rope), (of_key_rope, a.key_rope)] if rope else []
    return tuple(result.reshape(given.shape) for result, given in results)
