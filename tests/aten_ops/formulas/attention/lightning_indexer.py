"""The keys with the largest scores (ops-transformer: aclnnLightningIndexer.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, Tokens, by_name, call_of

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
