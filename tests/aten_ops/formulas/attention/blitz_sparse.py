"""Attention of a prompt to listed blocks of keys (ops-transformer: aclnnBlitzSparseAttention.md)."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.attention_inference import infer

NONE = 65535


def call(query, key, value, out, heads, layout, **given):
    inputs = {
        "query": f"FLOAT16[{query}]:{QUERY}",
        "key": f"FLOAT16[{key}]:{KEY}",
        "value": f"FLOAT16[{value}]:{VALUE}",
    }
    others = {"num_heads": heads, "input_layout": f'"{layout}"', "attention_out": f"FLOAT16[{out}]"}
    return call_of("aclnnBlitzSparseAttention", **inputs | others | given)


LSE = {"softmax_lse_flag": "true", "softmax_lse": "FLOAT[2,2,130]"}


@by_name(
    "aclnnBlitzSparseAttention",
    calls=[
        call(
            *("2,2,130,4", "2,1,260,4", "2,1,260,4", "2,2,130,4", 2, "BNSD"),
            sabi=f"UINT16[2,2,2,3]:0,1,2,{NONE},{NONE},{NONE},2,{NONE},{NONE},1,0,{NONE},1",
            num_key_value_heads=1,
            actual_seq_lengths_kv="[200,260]",
            actual_seq_lengths="[130,129]",
            **LSE,
        ),
        call(
            *("1,130,8", "1,260,8", "1,260,8", "1,130,8", 2, "BSH"),
            sabi=f"UINT16[1,2,2,2]:1,{NONE},0,1",
            block_shape="[128,256]",
            sparse_mode=2,
            atten_mask="BOOL[2048,2048]:0",
        ),
        call("1,2,3,4", "1,2,3,4", "1,2,3,4", "1,3,2,4", 2, "BNSD_BSND", shift="FLOAT16[1,2,3,3]:0.75,-0.5,0.25"),
        call(
            *("5,2,4", "6,2,4", "6,2,4", "5,2,4", 2, "TND"),
            actual_seq_lengths="[1,5]",
            actual_seq_lengths_kv="[2,6]",
        ),
    ],
)
def blitz_sparse(a):
    result, sums = infer(a)
    return (result, sums[..., 0]) if a.softmax_lse_flag else result
