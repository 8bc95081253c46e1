"""Attention of a whole prompt (ops-transformer: aclnnPromptFlashAttention.md to aclnnPromptFlashAttentionV3.md)."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.attention_inference import infer

NAME = "aclnnPromptFlashAttention"


def call(version, query, key, value, out, heads, layout, **given):
    inputs = {"query": f"FLOAT[{query}]:{QUERY}", "key": f"FLOAT[{key}]:{KEY}", "value": f"FLOAT[{value}]:{VALUE}"}
    others = {"num_heads": heads, "input_layout": f'"{layout}"', "attention_out": f"FLOAT[{out}]"}
    return call_of(NAME + version, **inputs | others | given)


def compressed(mode, length, mask="UINT8[2048,2048]"):
    window = {"sparse_mode": mode, "pre_tokens": 1, "next_tokens": -1, "atten_mask": f"{mask}:0"}
    return call("V2", "1,3,1,2", "1,5,1,2", "1,5,1,3", "1,3,1,3", 1, "BSND", actual_seq_lengths_kv=length, **window)


def quantized(**given):
    inputs = {
        "query": "INT8[1,2,2,4]:-6,6,-8,-3,0,-5,-2,3,3,6,-7,-4,5,3,8,-1",
        "key": "INT8[1,2,3,4]:5,-3,7,2,-8,6,-1,4,-6,8,3",
        "value": "INT8[1,2,3,4]:4,-7,2,8,-5,6,-3,1,7,-2,5,-8,3",
        "quant_scale1": "FLOAT[1]:127",
    }
    return call_of(NAME + "V2", num_heads=2, **inputs | given)


@by_name(
    NAME,
    NAME + "V2",
    calls=[
        call(
            *("", "2,3,4", "2,4,2", "2,4,2", "2,3,4", 2, "BSH"),
            atten_mask="BOOL[2,3,4]:0,0,1,0,0,0,0",
            actual_seq_lengths="[3,2]",
            pre_tokens=1,
            next_tokens=2,
            num_key_value_heads=1,
        ),
        compressed(4, "[4]", "BOOL[1,1,2048,2048]"),
        compressed(3, "[2]"),
        compressed(3, "[5]"),
        compressed(2, "[4]"),
        quantized(deq_scale1="FLOAT[1]:0.0625", deq_scale2="FLOAT[1]:0.03125", attention_out="FLOAT16[1,2,2,4]"),
        quantized(
            deq_scale1="FLOAT[1]:0.0625",
            deq_scale2="UINT64[1]:70369767587840",
            quant_scale2="FLOAT[1,2,1,4]:4,4.25,4.5,4.75,5,5.25,5.5,5.75",
            quant_offset2="FLOAT[1,2,1,4]:0,0.5,1,1.5,2,2.5,3,3.5",
            attention_out="INT8[1,2,2,4]",
        ),
    ],
)
def prompt(a):
    """The shift is reserved in these versions."""
    return infer(a, shift=None)[0]


@by_name(
    NAME + "V3",
    calls=[
        call(
            *("V3", "2,2,3,4", "2,2,3,4", "2,2,3,4", "2,3,2,4", 2, "BNSD_BSND"),
            shift="FLOAT[1,2,4,5]:0.75,-0.5,0.25,-0.875,0.625,1,-0.375",
            actual_seq_lengths_kv="[2]",
            inner_precise=2,
        ),
        call(
            *("V3", "5,2,4", "6,2,4", "6,2,3", "5,2,3", 2, "TND"),
            atten_mask="BOOL[2048,2048]:0",
            actual_seq_lengths="[1,4]",
            actual_seq_lengths_kv="[2,6]",
            sparse_mode=3,
        ),
    ],
)
def prompt_with_shift(a):
    return infer(a)[0]
