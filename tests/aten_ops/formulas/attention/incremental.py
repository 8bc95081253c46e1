"""Attention of one query of each sequence (ops-transformer: aclnnIncreFlashAttention.md and those of V2 to V4)."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.attention_inference import infer

NAME = "aclnnIncreFlashAttention"
LISTS = {
    "query": f"FLOAT[2,2,1,4]:{QUERY}",
    "key": f"{{FLOAT[1,1,3,4]:{KEY} FLOAT[1,1,4,4]:{QUERY}}}",
    "value": f"{{FLOAT[1,1,3,4]:{VALUE} FLOAT[1,1,4,4]:{KEY}}}",
    "num_heads": 2,
    "num_key_value_heads": 1,
    "attention_out": "FLOAT[2,2,1,4]",
}
MASK = "[2,4]:0,1,0,0,0,0,1,0"
PADDED = {
    "query": f"FLOAT[2,1,1,4]:{QUERY}",
    "key": f"{{FLOAT[2,1,5,4]:{KEY}}}",
    "value": f"{{FLOAT[2,1,5,4]:{VALUE}}}",
    "actual_seq_lengths": "[2,3]",
    "num_heads": 1,
    "attention_out": "FLOAT[2,1,1,4]",
}


@by_name(
    NAME,
    NAME + "V2",
    calls=[
        call_of(NAME, **LISTS, shift="FLOAT[1,1,1,1]", atten_mask=f"BOOL{MASK}", actual_seq_lengths="[3,4]"),
        call_of(NAME, **LISTS, atten_mask=f"INT8{MASK}", actual_seq_lengths="[0,4]"),
        call_of(NAME, **LISTS, atten_mask=f"UINT8{MASK}"),
        # Several heads of the query share one of the keys.
        call_of(
            NAME + "V2",
            query=f"FLOAT16[2,4,1,16]:{QUERY}",
            key=f"{{FLOAT16[2,2,5,16]:{KEY}}}",
            value=f"{{FLOAT16[2,2,5,16]:{VALUE}}}",
            atten_mask="BOOL[2,5]:0,0,1,0,0,0,1,0,0,0",
            actual_seq_lengths="[5,3]",
            num_heads=4,
            num_key_value_heads=2,
            attention_out="FLOAT16[2,4,1,16]",
        ),
    ],
)
def incremental_attention(a):
    """The shift is reserved in these versions."""
    return infer(a, True, shift=None, actual_seq_lengths=None, actual_seq_lengths_kv=a.actual_seq_lengths)[0]


@by_name(
    NAME + "V3",
    NAME + "V4",
    calls=[
        call_of(NAME + "V3", **LISTS, shift="FLOAT[1,2,1,4]:0.75,-0.5,0.25,-0.875,0.625,1,-0.375"),
        call_of(
            NAME + "V3",
            query=f"FLOAT[2,1,2,4]:{QUERY}",
            key="{INT8[3,2,4]:-1,3,-3,5,-7,9,-5,2,7,-2,4}",
            value="{INT8[3,2,4]:5,3,0,-5,4,2,-3,1,-6,8,-9,7,-4}",
            actual_seq_lengths="[3,1]",
            antiquant_scale="FLOAT[2,1,4]:0.01171875,0.046875,0.0546875,0.03515625,0.0078125,0.0625,0.015625,0.0234375",
            antiquant_offset="FLOAT[2,1,4]:0,-5,-2,-1,4,7,1,-3",
            blocktable="INT32[2,2]:2,0,1,7",
            num_heads=2,
            input_layout='"BSND"',
            num_key_value_heads=1,
            block_size=2,
            attention_out="FLOAT[2,1,2,4]",
        ),
        call_of(NAME + "V4", **PADDED, kv_padding_size="INT64[1]:2"),
        # The second sequence would begin before its tensor: the result is 0.
        call_of(NAME + "V4", **PADDED, kv_padding_size="INT64[1]:3"),
    ],
)
def incremental_attention_in_blocks(a):
    return infer(a, True, actual_seq_lengths=None, actual_seq_lengths_kv=a.actual_seq_lengths)[0]
