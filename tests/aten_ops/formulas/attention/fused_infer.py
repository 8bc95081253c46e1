"""Attention of prompts and of single queries (ops-transformer: aclnnFusedInferAttentionScore*.md)."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.attention_inference import infer
from tests.aten_ops.formula_helpers.types import unwritten

NAME, INNER = "aclnnFusedInferAttentionScore", "aclnnInnerFusedInferAttentionScore"


def call(name, shapes, **given):
    """The shapes of the query, of keys, of values and of the result."""
    query, key, value, out = shapes
    inputs = {"query": f"FLOAT[{query}]:{QUERY}", "key": f"{{FLOAT[{key}]:{KEY}}}"}
    others = {"value": f"{{FLOAT[{value}]:{VALUE}}}", "attention_out": f"FLOAT[{out}]"}
    return call_of(name, **{"num_heads": 2} | inputs | others | given)


def in_blocks(name, lengths="[{}]", **given):
    """Packed sequences, of which keys and their rotary parts are in blocks of two tokens."""
    shapes = "4,2,4", "3,1,2,2,2", "3,1,2,2,2", "2,4,4"
    rope = {"query_rope": f"FLOAT[4,2,2]:{VALUE}", "key_rope": f"FLOAT[3,1,1,2,2]:{VALUE}"}
    blocks = {"block_table": "INT32[2,2]:1,2,0,-1", "block_size": 2, "input_layout": '"TND_NTD"'}
    seen = {"atten_mask": "BOOL[2048,2048]:0", "sparse_mode": 3, "num_key_value_heads": 1}
    ends = {"actual_seq_lengths": lengths.format("3,4"), "actual_seq_lengths_kv": lengths.format("3,2")}
    given |= {"softmax_lse_flag": "true", "softmax_lse": "FLOAT[4,2,1]"}
    return call(name, shapes, **rope, **blocks, **seen, **ends, **given)


NO_KEYS = "1,2,2,2", "1,0,2,2", "1,0,2,2", "1,2,2,2"
OTHER_LAYOUT = "1,2,2,2", "1,3,2,2", "1,3,2,2", "2,1,2,2"


@by_name(
    *(NAME + version for version in ("", "V2", "V3", "V4", "V5")),
    *(INNER + version for version in ("", "Tensor")),
    calls=[
        call(
            *(NAME, ("1,1,4,2", "1,1,4,2", "1,1,4,2", "1,1,4,2")),
            atten_mask="BOOL[4,4]:0,0,0,0,1,0,1,1,1,1,0,0,0,1,1,1",
            actual_seq_lengths="[2]",
            actual_seq_lengths_kv="[3]",
            query_padding_size="INT64[1]:1",
            kv_padding_size="INT64[1]:0",
            pre_tokens=0,
            next_tokens=0,
            num_heads=1,
            softmax_lse_flag="true",
            softmax_lse="FLOAT[1,1,4,1]",
        ),
        call(
            *(NAME + "V2", ("1,2,2,2", "1,2,2,2", "1,2,2,2", "1,2,2,2")),
            atten_mask="BOOL[2,4]:0,1,0,0,0,0,0,1",
            key_shared_prefix=f"FLOAT[1,2,3,2]:{VALUE}",
            value_shared_prefix=f"FLOAT[1,2,3,2]:{QUERY}",
            actual_shared_prefix_len="[2]",
            sparse_mode=1,
        ),
        call(
            *(NAME + "V2", ("2,1,1,4", "", "", "2,1,1,4")),
            key="{INT8[2,1,3,4]:4,-8,-7,-4,3,5,1,-6,7,2,-3}",
            value="{INT8[2,1,3,4]:-7,-1,6,2,4,-6,8,-3,3,-5,7,1,-2}",
            key_antiquant_scale="FLOAT[1,4]:0.0546875,0.03125,0.05078125,0.0078125",
            value_antiquant_scale="FLOAT[1,2,4]:0.05078125,0.0078125,0.05859375,0.01171875,0.015625,0.03515625,0.02734375",
            value_antiquant_mode=1,
            num_heads=1,
        ),
        call(
            *(NAME + "V2", ("2,2,1,4", "", "", "2,2,1,4")),
            key="{INT8[2,2,3,4]:4,-8,-7,-4,3,5,1,-6,7,2,-3}",
            value="{INT8[2,2,3,4]:-7,-1,6,2,4,-6,8,-3,3,-5,7,1,-2}",
            key_antiquant_scale="FLOAT[2]:0.0546875,0.03125",
            key_antiquant_offset="FLOAT[2]:1.5,-2",
            value_antiquant_scale="FLOAT[2]:0.05078125,0.015625",
            key_antiquant_mode=2,
            value_antiquant_mode=2,
        ),
        in_blocks(NAME + "V3"),
        in_blocks(NAME + "V4"),
        call(NAME + "V4", NO_KEYS, input_layout='"BSND"'),
        call(NAME + "V5", NO_KEYS, input_layout='"BSND"', pse_type=0),
        call(NAME + "V4", OTHER_LAYOUT, input_layout='"BSND_NBSD"', softmax_lse="FLOAT[0]"),
        call(NAME + "V5", OTHER_LAYOUT, input_layout='"BSND_NBSD"', pse_type=0),
        call(
            *(NAME + "V5", ("2,2,3,4", "2,2,5,4", "2,2,5,4", "2,2,3,4")),
            shift="FLOAT[1,2,3,5]:0.75,-0.5,0.25,-0.875,0.625,1,-0.375",
            actual_seq_lengths="[3,2]",
            actual_seq_lengths_kv="[4]",
            pse_type=0,
            softmax_lse_flag="true",
            softmax_lse="FLOAT[2,2,3,1]",
        ),
        in_blocks(INNER, pse_type=0),
        in_blocks(INNER + "Tensor", "INT64[2]:{}", pse_type=0),
    ],
)
def fused_attention(a):
    result, sums = infer(a, True)
    lse = a.outputs["softmaxLse"]
    if lse is None:
        return result
    return result, sums if a.softmax_lse_flag else unwritten(lse)
