"""Attention of training over packed sequences (ops-transformer: aclnnFlashAttentionVarLenScore*.md), its gradients."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import GRADIENT, KEY, QUERY, VALUE, Packed, by_name, call_of, eight

SCORE, GRAD = "aclnnFlashAttentionVarLenScore", "aclnnFlashAttentionUnpaddingScoreGrad"
LENGTHS = {"actual_seq_qlen": "[2,2,5]", "actual_seq_kv_len": "[3,3,6]"}
EQUAL = {"actual_seq_qlen": "[2,5]", "actual_seq_kv_len": "[2,5]"}
TRIANGLE = {"atten_mask": "UINT8[2048,2048]"}
MASK = {"atten_mask": "UINT8[3,3]:0,0,1,0,0,1,0,0,0"}
DROPPED = {"drop_mask": "UINT8[8]:194,152,208,148,111,64,120,4", "keep_prob": 0.5}
ROPE = {"query_rope": f"FLOAT[5,4,6]:{VALUE}", "key_rope": f"FLOAT[6,2,6]:{QUERY}"}
SINK = "FLOAT[4]:0.5,-0.25,1.5,0.75"
SHIFT = "0.75,-0.5,0.25,-0.875,0.625,1,-0.375"
SOFTMAX = {
    "softmax_max": f"FLOAT[5,4,8]:{eight(0.25, 0.5, -0.125, 0.75, 1, 0.375, 0.625)}",
    "softmax_sum": f"FLOAT[5,4,8]:{eight(2, 3.5, 2.5, 3, 1.75, 4, 2.25, 1.5, 2.75)}",
    "attention_in": f"FLOAT[5,4,4]:{KEY}",
}


def call(name, given, outputs):
    keys = 5 if "actual_seq_qlen" not in given else 6
    inputs = {"key": f"FLOAT[{keys},2,8]:{KEY}", "value": f"FLOAT[{keys},2,4]:{VALUE}"}
    others = {"query": f"FLOAT[5,4,8]:{QUERY}", "head_num": 4, "input_layout": '"TND"'}
    return call_of(name, **EQUAL | inputs | others | outputs | given)


def score(version="", **given):
    softmax = {name: "FLOAT[5,4,8]" for name in ("softmax_max_out", "softmax_sum_out")}
    return call(SCORE + version, given, softmax | {"attention_out_out": "FLOAT[5,4,4]"})


def grad(version="", **given):
    keys = 5 if "actual_seq_qlen" not in given else 6
    outputs = {"dq_out": "FLOAT[5,4,8]", "dk_out": f"FLOAT[{keys},2,8]", "dv_out": f"FLOAT[{keys},2,4]"}
    return call(GRAD + version, given, outputs | {"dy": f"FLOAT[5,4,4]:{GRADIENT}"})


@by_name(
    *(SCORE + version for version in ("", "V2", "V3", "V4", "V5")),
    calls=[
        score(**LENGTHS, **MASK, shift=f"FLOAT[60]:{SHIFT}"),
        score(**LENGTHS, shift=f"FLOAT[24]:{SHIFT}"),  # one for each key
        score(**LENGTHS, **DROPPED),
        score(**LENGTHS, **TRIANGLE, sparse_mode=4, pre_tokens=1, next_tokens=1),
        score(**LENGTHS, **TRIANGLE, sparse_mode=8, pre_tokens=1, next_tokens=1),
        score(**LENGTHS, **TRIANGLE, sparse_mode=2, pre_tokens=3, next_tokens=0),
        score(**LENGTHS, **TRIANGLE, sparse_mode=3, pre_tokens=3, next_tokens=0),
        score(**LENGTHS, **TRIANGLE, sparse_mode=7, pre_tokens=3, next_tokens=-1),
        score(**LENGTHS, atten_mask="UINT8[3072,2048]", prefix="[2,0,2]", sparse_mode=6),
        score(**LENGTHS, atten_mask="UINT8[5,6]:0,1,0,0,1", sparse_mode=1),  # of all tokens
        score(actual_seq_qlen="[2,4]", actual_seq_kv_len="[3,6]"),  # the last token belongs to no sequence
        score(**MASK, pre_tokens=1, next_tokens=0),
        score("V2", shift=f"FLOAT[2,4,3,3]:{SHIFT}", pse_type=0),
        score("V2", shift=f"FLOAT[1,4,1,3]:{SHIFT}", pse_type=1),
        *(
            score("V2", shift="FLOAT[4]:0.5,0.25,1,0.125", pse_type=made, q_start_idx="[1]", kv_start_idx="[3]")
            for made in (2, 3)
        ),
        score("V2", shift="FLOAT[2,4]:0.5,0.25,1,0.125,0.75", pse_type=2),
        score("V3", **LENGTHS, **ROPE, **TRIANGLE, sparse_mode=3),
        score("V4", **LENGTHS),
        score("V4", **LENGTHS, softmax_out_layout='"same_as_input"'),
        score("V5", **LENGTHS, sink=SINK, softmax_out_layout='"same_as_input"'),
    ],
)
def attention(a):
    return Packed(a).forward()


@by_name(
    *(GRAD + version for version in ("", "V2", "V3", "V4", "V5")),
    calls=[
        grad(**LENGTHS, **MASK, **DROPPED, **SOFTMAX),
        grad(**LENGTHS, **DROPPED),
        grad("V2", shift=f"FLOAT[2,4,3,3]:{SHIFT}", pse_type=0, **SOFTMAX),
        grad("V2", shift=f"FLOAT[4]:{SHIFT}", pse_type=3),
        grad(
            "V3",
            **(LENGTHS | ROPE | TRIANGLE | SOFTMAX),
            **{"sparse_mode": 3, "dq_rope_out": "FLOAT[5,4,6]", "dk_rope_out": "FLOAT[6,2,6]"},
        ),
        grad("V4", **LENGTHS, **SOFTMAX, softmax_in_layout='"same_as_input"'),
        grad("V4", **LENGTHS, **SOFTMAX),
        grad("V5", **LENGTHS, sink_in=SINK, dsink_out="FLOAT[4]"),
        grad("V5", **LENGTHS, **SOFTMAX, sink_in=SINK, dsink_out="FLOAT[4]", softmax_in_layout='"same_as_input"'),
    ],
)
def gradients(a):
    of_query, of_key, of_value, of_sink = Packed(a).gradients()
    size = a.query.shape[2]
    results = [of_query[..., :size], of_key[..., :size], of_value]
    if a.query_rope is not None:
        results = [of_query[..., :size], of_query[..., size:], of_key[..., :size], of_key[..., size:], of_value]
    return results if a.sink_in is None else [*results, of_sink]
