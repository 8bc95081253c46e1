"""The keys with the largest scores, and the gradients of the scores (ops-transformer: aclnnLightningIndexer*.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import (
    GRADIENT,
    KEY,
    QUERY,
    Tokens,
    by_name,
    call_of,
    seen_keys,
    tokens_used,
)

NAME = "aclnnLightningIndexer"
INPUTS = {
    "query": f"FLOAT16[1,3,2,128]:{QUERY}",
    "key": f"FLOAT16[1,4,1,128]:{KEY}",
    "weights": "FLOAT[1,3,2]:0.5,-0.25,1,0.75,0.625",
    "pre_tokens": 2**63 - 1,
    "next_tokens": 2**63 - 1,
    "layout_query": '"BSND"',
    "layout_key": '"BSND"',
    "sparse_indices_out": "INT32[1,3,1,3]",
    "sparse_count": 3,
}


@by_name(
    NAME,
    calls=[
        call_of(NAME, **INPUTS, sparse_mode=3),
        call_of(NAME, **INPUTS, sparse_mode=3, return_values="true", sparse_values_out="FLOAT16[1,3,1,3]"),
        call_of(NAME, **INPUTS, return_values="true", sparse_values_out="FLOAT16[1,3,1,3]"),
    ],
)
def lightning_indexer(a):
    """By descending scores; without more keys the indices are -1 and the scores -inf."""
    queries = Tokens(a.query, a.layout_query, a.actual_seq_lengths_query)
    keys = Tokens(a.key, a.layout_key, a.actual_seq_lengths_key, a.block_table)
    count = a.sparse_count
    tokens = len(queries.flat(a.weights))
    indices, values = np.full((tokens, count), -1), np.full((tokens, count), -np.inf)
    for i, (rows, columns) in enumerate(zip(queries.lengths, keys.lengths, strict=True)):
        products = np.einsum("the,ke->tkh", queries.read(a.query, i), keys.read(a.key, i)[:, 0])
        scores = np.einsum("tkh,th->tk", np.maximum(products, 0), queries.read(a.weights, i))
        for row in range(rows):
            seen = min(columns, columns - rows + row + 1) if a.sparse_mode == 3 else columns
            order = np.argsort(-scores[row, : max(seen, 0)], kind="stable")[:count]
            where = queries.spans[i].start + row
            indices[where, : len(order)], values[where, : len(order)] = order, scores[row, order]
    shape = (*a.query.shape[:-2], 1, count)
    return (indices.reshape(shape), values.reshape(shape)) if a.return_values else indices.reshape(shape)


V2 = "aclnnLightningIndexerV2"


def call_of_v2(dtype, layouts, queries, keys, count, **others):
    """`queries` and `keys` are the sizes of the tokens, such as "2,3"."""
    layout_q, layout_k = layouts
    return call_of(
        V2,
        q=f"{dtype}[{queries},2,128]:{QUERY}",
        k=f"{dtype}[{keys},1,128]:{KEY}",
        w=f"FLOAT[{queries},2]:0.5,-0.25,1,0.75,0.625",
        topk=count,
        max_seqlen_q=-1,
        layout_q=f'"{layout_q}"',
        layout_k=f'"{layout_k}"',
        sparse_indices=f"INT32[{queries},1,{count}]",
        **{"return_value": 1, "cmp_ratio": 1, "sparse_values": f"FLOAT[{queries},1,{count}]"} | others,
    )


PACKED = {"cu_seqlens_q": "INT32[3]:0,2,7", "cu_seqlens_k": "INT32[3]:0,2,5"}


@by_name(
    V2,
    calls=[
        call_of_v2("FLOAT16", ("BSND", "BSND"), "2,3", "2,4", 3, mask_mode=3),
        call_of_v2("FLOAT16", ("BSND", "BSND"), "2,3", "2,4", 3, seqused_k="INT32[2]:2,4"),
        call_of_v2(
            *("BFLOAT16", ("BSND", "BSND"), "2,3", "2,2", 3),
            mask_mode=3,
            cmp_ratio=4,
            cmp_residual_k="INT32[2]:3,0",
            seqused_q="INT32[2]:3,2",
            output_idx_offset="INT32[2]:5,70",
        ),
        call_of_v2(
            *("BFLOAT16", ("TND", "TND"), "7", "5", 2),
            **PACKED,
            mask_mode=3,
            cmp_ratio=4,
            cmp_residual_k="INT32[2]:1,2",
            seqused_q="INT32[2]:1,5",
            output_idx_offset="INT32[7,1]:1,2,3,4,5,6,7",
        ),
        call_of_v2(
            *("FLOAT16", ("TND", "PA_BBND"), "7", "3,5", 4),
            cu_seqlens_q="INT32[3]:0,2,7",
            seqused_k="INT32[2]:9,4",
            block_table="INT32[2,2]:2,0,1",
            mask_mode=3,
        ),
        call_of_v2("FLOAT16", ("BSND", "BSND"), "1,2", "1,3", 2, cmp_ratio=128, return_value=0, sparse_values="null"),
    ],
)
def lightning_indexer_v2(a):
    """An offset is added to the positions of a sequence, or to those of a token, but not to -1."""
    queries = tokens_used(a.q, a.layout_q, a.cu_seqlens_q, a.seqused_q)
    keys = tokens_used(a.k, a.layout_k, a.cu_seqlens_k, a.seqused_k, a.block_table)
    tokens = len(queries.flat(a.w))
    indices, values = np.full((tokens, a.topk), -1), np.full((tokens, a.topk), -np.inf)
    for i, (rows, columns) in enumerate(zip(queries.lengths, keys.lengths, strict=True)):
        products = np.einsum("the,ke->tkh", queries.read(a.q, i), keys.read(a.k, i)[:, 0])
        scores = np.einsum("tkh,th->tk", np.maximum(products, 0), queries.read(a.w, i))
        rest = 0 if a.cmp_residual_k is None else a.cmp_residual_k[i]
        for row in range(rows):
            seen = seen_keys(row, rows, columns, a.cmp_ratio, rest) if a.mask_mode == 3 else columns
            order = np.argsort(-scores[row, :seen], kind="stable")[: a.topk]
            where = queries.spans[i].start + row
            offset = a.output_idx_offset
            own = 0 if offset is None else offset[i] if offset.ndim == 1 else offset.reshape(-1)[where]
            indices[where, : len(order)], values[where, : len(order)] = order + own, scores[row, order]
    shape = (*a.q.shape[:-2], 1, a.topk)
    return (indices.reshape(shape), values.reshape(shape)) if a.return_value else indices.reshape(shape)


GRAD = "aclnnLightningIndexerGrad"


def call_of_grad(dtype, layout, queries, keys, count, lists, **others):
    """`queries` and `keys` are the sizes of the tokens, such as "2,3"."""
    return call_of(
        GRAD,
        query=f"{dtype}[{queries},3,128]:{QUERY}",
        key=f"{dtype}[{keys},1,128]:{KEY}",
        dy=f"{dtype}[{queries},{count}]:{GRADIENT}",
        spare_indices=f"INT32[{queries},{count}]:{lists}",
        weights=f"{dtype}[{queries},3]:0.5,-0.25,1,0.75,0.625",
        layout=f'"{layout}"',
        d_query=f"{dtype}[{queries},3,128]",
        d_key=f"{dtype}[{keys},1,128]",
        d_weights=f"{dtype}[{queries},3]",
        **others,
    )


LENGTHS = {"actual_seq_lengths_query": "INT32[2]:2,5", "actual_seq_lengths_key": "INT32[2]:4,7"}


@by_name(
    GRAD,
    calls=[
        call_of_grad("FLOAT16", "BSND", "2,2", "2,4", 3, "2,0,1,3,1,-1,0,2,-1,1,3,0", sparse_mode=3),
        call_of_grad("BFLOAT16", "BSND", "2,2", "2,4", "2", "3,0,-1,1,2,1,0,-1"),
        call_of_grad("FLOAT16", "TND", "5", "7", "1,2", "0,2,3,1,0,2,1,0,2,0", sparse_mode=3, **LENGTHS),
        call_of_grad("BFLOAT16", "TND", "5", "7", "2", "3,1,2,0,1,2,-1,0,2,1", **LENGTHS),
    ],
)
def lightning_indexer_grad(a):
    """A list of keys ends with its first negative number, in mode 3 after as many as the query sees."""
    queries = Tokens(a.query, a.layout, a.actual_seq_lengths_query)
    keys = Tokens(a.key, a.layout, a.actual_seq_lengths_key)
    of_query, of_key, of_weights = (
        np.zeros(each.shape) for each in (queries.flat(a.query), keys.flat(a.key), queries.flat(a.weights))
    )
    lists, gradients = (each.reshape(len(of_query), -1) for each in (a.spare_indices, a.dy))
    for i, (rows, columns) in enumerate(zip(queries.lengths, keys.lengths, strict=True)):
        query, key, weights = queries.read(a.query, i), keys.read(a.key, i)[:, 0], queries.read(a.weights, i)
        for row in range(rows):
            where = queries.spans[i].start + row
            listed = lists[where][: max(columns - rows + row + 1, 0)] if a.sparse_mode == 3 else lists[where]
            listed = listed[np.cumsum(listed < 0) == 0]
            dots = query[row] @ key[listed].T
            dy = gradients[where, : len(listed)]
            of_dots = np.outer(weights[row], dy) * (dots > 0)
            of_query[where] = of_dots @ key[listed]
            of_weights[where] = np.maximum(dots, 0) @ dy
            np.add.at(of_key[keys.spans[i], 0], listed, of_dots.T @ query[row])
    results = (of_query, a.query), (of_key, a.key), (of_weights, a.weights)
    return tuple(result.reshape(given.shape) for result, given in results)
