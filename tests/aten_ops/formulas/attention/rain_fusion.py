"""Attention to listed blocks of keys (ops-transformer: aclnnRainFusionAttention.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of
from tests.aten_ops.formulas.attention.block_sparse import (
    PACKED,
    SHAPES,
    SHORTER,
    attend,
    by_head,
    parts,
    scores_of,
    seen_in,
)

RAIN = {"select_idx": "INT64[3,4,2]:0,1,1,-1,-1,-1,0,-1,1,0", "select_num_idx": "INT64[3,4]:2,1,0,1,2"}


def rain(**given):
    layout = given.get("q_input_layout", '"BNSD"')
    query, key, _ = SHAPES[layout]
    inputs = {"query": f"FLOAT16[{query}]:{QUERY}", "key": f"FLOAT16[{key}]:{KEY}", "value": f"FLOAT16[{key}]:{VALUE}"}
    layouts = {"q_input_layout": layout, "kv_input_layout": layout, "num_key_value_heads": 2, "block_shape": "[2,128]"}
    return call_of("aclnnRainFusionAttention", **inputs | layouts | {"attention_out": f"FLOAT16[{query}]"} | given)


@by_name(
    "aclnnRainFusionAttention",
    calls=[
        rain(select_idx="INT64[4,4,2]:0,1,1,-1,-1,-1,0,-1", select_num_idx="INT64[4,4]:2,1,0,1"),
        rain(q_input_layout='"TND"', **PACKED, select_idx="INT64[3,4,2]:0,-1", select_num_idx="INT64[3,4]:1,1,0,1"),
        rain(**SHORTER, select_idx="INT64[3,4,1]:0", select_num_idx="INT64[3,4]:1,1,0,1,1"),
    ],
)
def rain_fusion(a):
    result, first = np.zeros(a.query.shape), 0
    for queries, keys in parts(a):
        query, key, value = by_head(a, a.query[queries]), by_head(a, a.key[keys]), by_head(a, a.value[keys])
        x, y = a.block_shape
        blocks = -(-query.shape[1] // x)
        mask = np.zeros((len(query), blocks, -(-key.shape[1] // y)))
        for block in range(blocks):
            for head in range(len(query)):
                count = a.select_num_idx[first + block, head]
                mask[head, block, a.select_idx[first + block, head, :count]] = 1
        first += blocks
        seen = seen_in(a, mask, query.shape[1], key.shape[1])
        result[queries] = by_head(a, attend(scores_of(a, query, key, seen), value)[0])
    return result
