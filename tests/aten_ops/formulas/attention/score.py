"""Attention of training over sequences of one length (ops-transformer: aclnnFlashAttentionScore*.md), its gradients."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import (
    GRADIENT,
    KEY,
    QUERY,
    VALUE,
    Packed,
    batched,
    by_name,
    call_of,
    eight,
    from_heads,
)
from tests.aten_ops.formula_helpers.types import unwritten

SCORE, GRAD = "aclnnFlashAttentionScore", "aclnnFlashAttentionScoreGrad"
SHIFT = "0.75,-0.5,0.25,-0.875,0.625,1,-0.375"
SOFTMAX = {
    "softmax_max": f"FLOAT[2,2,3,8]:{eight(0.25, 0.5, -0.125, 0.75, 1, 0.375, 0.625)}",
    "softmax_sum": f"FLOAT[2,2,3,8]:{eight(2, 3.5, 2.5, 3, 1.75, 4, 2.25, 1.5, 2.75)}",
}
OF_EACH = {"atten_mask": "UINT8[2,1,3,4]:0,1,1,0,0,0,1", "prefix": "[1,2]", "sparse_mode": 5}
BAND = {"atten_mask": "UINT8[2048,2048]", "sparse_mode": 4, "pre_tokens": 1, "next_tokens": 0, "input_layout": '"SBH"'}
DROPPED = {"drop_mask": "UINT8[6]:194,152,208,148,111,64", "keep_prob": 0.5, "input_layout": '"BSH"'}
NONE_SEEN = {"atten_mask": "BOOL[3,4]:0,1,0,0,1,1,1,1,0,0,1", "input_layout": '"BSND"'}
SINK = "FLOAT[2]:-0.25,1.75"
# Two batches of three queries of two heads, and four keys of one head.
SHAPES = {
    '"BNSD"': {"query": "2,2,3,4", "key": "2,1,4,4", "value": "2,1,4,2", "dy": "2,2,3,2"},
    '"BSND"': {"query": "2,3,2,4", "key": "2,4,1,4", "value": "2,4,1,2", "dy": "2,3,2,2"},
    '"BSH"': {"query": "2,3,8", "key": "2,4,4", "value": "2,4,2", "dy": "2,3,4"},
    '"SBH"': {"query": "3,2,8", "key": "4,2,4", "value": "4,2,2", "dy": "3,2,4"},
    '"TND"': {"query": "5,2,4", "key": "7,1,4", "value": "7,1,2", "dy": "5,2,2"},
}
PACKED = {"input_layout": '"TND"', "actual_seq_qlen": "[2,5]", "actual_seq_kv_len": "[3,7]"}


# Heads of 128 elements with rotary parts of 64.
ROTARY = {
    '"BNSD"': {"query": "2,2,3,128", "key": "2,1,4,128", "query_rope": "2,2,3,64", "key_rope": "2,1,4,64"},
    '"SBH"': {"query": "3,2,256", "key": "4,2,128", "query_rope": "3,2,128", "key_rope": "4,2,64"},
    '"TND"': {"query": "5,2,128", "key": "7,1,128", "query_rope": "5,2,64", "key_rope": "7,1,64"},
}
SOFT = {"scale_value": 0.125}


def inputs(shapes, dtype):
    values = {"query": QUERY, "key": KEY, "value": VALUE}
    return {name: f"{dtype}[{shapes[name]}]:{values[name]}" for name in values} | {"head_num": 2}


def rotary(layout, *outputs):
    """Queries and keys with rotary parts of FLOAT16, and these outputs in the shapes of their inputs."""
    shapes = ROTARY[layout]
    values = {"query": QUERY, "key": KEY, "query_rope": KEY, "key_rope": VALUE}
    results = {"dq_out": "query", "dk_out": "key", "dq_rope_out": "query_rope", "dk_rope_out": "key_rope"}
    given = {name: f"FLOAT16[{shape}]:{values[name]}" for name, shape in shapes.items()}
    return given | {name: f"FLOAT16[{shapes[results[name]]}]" for name in outputs} | SOFT | {"input_layout": layout}


def score(version, dtype="FLOAT", **given):
    layout = given.get("input_layout", '"BNSD"')
    shapes = SHAPES[layout]
    softmax = "FLOAT[5,2,8]" if layout == '"TND"' else "FLOAT[2,2,3,8]"
    outputs = {"softmax_max_out": softmax, "softmax_sum_out": softmax, "attention_out_out": f"{dtype}[{shapes['dy']}]"}
    unused = {"softmax_out_out": "FLOAT[0]"} if version in ("", "V4") else {}
    return call_of(SCORE + version, **inputs(shapes, dtype) | outputs | unused | given)


def grad(version, dtype="FLOAT", **given):
    shapes = SHAPES[given.get("input_layout", '"BNSD"')]
    outputs = {f"d{name[0]}_out": f"{dtype}[{shapes[name]}]" for name in ("query", "key", "value")}
    unused = {"dsink_out": "FLOAT[0]"} if version == "V4" else {}
    dy = {"dy": f"{dtype}[{shapes['dy']}]:{GRADIENT}"}
    return call_of(GRAD + version, **inputs(shapes, dtype) | dy | outputs | unused | given)


def shifted(shape):
    return {"shift": f"FLOAT[{shape}]:{SHIFT}", "dpse_out": f"FLOAT[{shape}]"}


def slopes(pse_type):
    """A shift made from slopes, for as many queries as keys."""
    made = {"shift": "FLOAT[2]:0.5,0.25", "pse_type": pse_type, "q_start_idx": "[1]", "kv_start_idx": "[3]"}
    return made | {"key": f"FLOAT[2,1,3,4]:{KEY}", "value": f"FLOAT[2,1,3,2]:{VALUE}"}


def attend(a):
    if a.input_layout == "TND":
        return Packed(a).forward()
    found, _, _ = batched(a)
    if not found:
        return [np.zeros(0)] * 3
    largest, total = (np.stack([getattr(x, name) for x in found]).repeat(8, 3) for name in ("largest", "total"))
    return largest, total, from_heads(np.stack([x.result() for x in found]), a.input_layout)


def reserved(a, name):
    """An output of some versions, which is not written."""
    output = a.outputs.get(name)
    return [] if output is None else [unwritten(output)]


@by_name(
    *(SCORE + version for version in ("", "V2", "V3", "V4")),
    calls=[
        score("V2", shift=f"FLOAT[1,2,3,4]:{SHIFT}", pse_type=0),
        score("V2", shift=f"FLOAT[2,2,1,4]:{SHIFT}", pse_type=1),
        score("V2", **slopes(2)),
        score("V2", **slopes(3) | {"shift": "FLOAT[2,2]:0.5,0.25,1,0.125"}),
        score("V2", **OF_EACH),
        score("V2", **OF_EACH | {"atten_mask": "BOOL[3072,2048]", "sparse_mode": 6}),
        score("V2", **BAND),
        score("V2", **BAND | {"sparse_mode": 3}),
        score("V2", **DROPPED),
        score("V3", **NONE_SEEN, sink=SINK),
        score("V3", **NONE_SEEN, pre_tokens=0, next_tokens=2),
        score("", **OF_EACH),
        score("", **BAND),
        score("", **BAND | {"sparse_mode": 2}),
        score("", **NONE_SEEN | {"sparse_mode": 1}),
        score("", **DROPPED, shift=f"FLOAT[1,2,3,4]:{SHIFT}"),
        score("V4", shift=f"FLOAT[1,2,3,4]:{SHIFT}", pse_type=0),
        score("V4", **slopes(3)),
        score("V4", **OF_EACH),
        score("V4", **BAND),
        score("V4", **PACKED),
        score("V4", **PACKED, softmax_out_layout='"same_as_input"'),
        score("V4", **PACKED | {"actual_seq_qlen": "[2,4,0]", "actual_seq_kv_len": "[3,5,0]"}),
        score("V4", "FLOAT16", **NONE_SEEN, sink=SINK, actual_seq_qlen="[2]", softmax_out_layout='"same_as_input"'),
        score("V4", "FLOAT16", **PACKED, sink=SINK, out_dtype=1),
        score("V4", "FLOAT16", **rotary('"BNSD"')),
        score("V4", "FLOAT16", **rotary('"SBH"'), sink=SINK),
        score("V4", "FLOAT16", **rotary('"TND"') | PACKED),
    ],
)
def attention(a):
    largest, total, result = attend(a)
    return largest, total, *reserved(a, "softmaxOutOut"), result


def differentiate(a):
    size = a.query.shape[-1] if a.input_layout in ("TND", "BNSD", "BSND") else a.query.shape[-1] // a.head_num
    shift = []
    if a.input_layout == "TND":
        *of_inputs, of_sink = Packed(a).gradients()
    else:
        found, dy, result = batched(a)
        parts = [x.gradients(dy[b], None if result is None else result[b]) for b, x in enumerate(found)]
        *of_inputs, of_shift, of_sink = zip(*parts, strict=True) if parts else [()] * 5
        of_inputs = [np.stack(each) if each else np.zeros((0, 0, 0, 0)) for each in of_inputs]
        of_sink = sum(of_sink, np.zeros(a.head_num))
        if a.shift is not None and a.pse_type in (None, 0, 1):
            shift = [np.zeros(a.shift.shape)]
            for b, each in enumerate(of_shift):
                own = each.sum(1, keepdims=True) if a.shift.shape[2] == 1 else each
                shift[0][b if len(a.shift) > 1 else 0] += own
    *of_heads, of_value = of_inputs
    results = [each[..., :size] for each in of_heads] + [of_value]
    if a.query_rope is not None:
        results += [each[..., size:] for each in of_heads]
    if a.input_layout != "TND":
        results = [from_heads(each, a.input_layout) for each in results]
    return [*results, *shift, *(reserved(a, "dsinkOut") if a.sink_in is None else [of_sink])]


@by_name(
    *(GRAD + version for version in ("", "V2", "V3", "V4")),
    calls=[
        grad("", **DROPPED, **SOFTMAX, **shifted("2,2,3,4")),
        grad("", **BAND, **SOFTMAX, attention_in=f"FLOAT[3,2,4]:{KEY}"),
        grad("V2", **shifted("1,2,3,4"), **SOFTMAX, pse_type=0),
        grad("V2", **shifted("2,2,1,4"), pse_type=1),
        grad("V2", **slopes(2) | {"dk_out": "FLOAT[2,1,3,4]", "dv_out": "FLOAT[2,1,3,2]"}),
        grad("V3", **NONE_SEEN, sink_in=SINK, dsink_out="FLOAT[2]"),
        grad("V3", **NONE_SEEN),
        grad("V4", **shifted("1,2,3,4"), **SOFTMAX, pse_type=0),
        grad("V4", **OF_EACH, **SOFTMAX),
        grad("V4", **PACKED),
        grad("V4", "FLOAT16", **NONE_SEEN, sink_in=SINK, dsink_out="FLOAT[2]", softmax_in_layout='"same_as_input"'),
        grad("V4", "FLOAT16", **PACKED, sink_in=SINK, dsink_out="FLOAT[2]"),
        grad("V4", "FLOAT16", **rotary('"SBH"', "dq_out", "dk_out", "dq_rope_out", "dk_rope_out")),
        grad("V4", "FLOAT16", **rotary('"TND"', "dq_out", "dk_out", "dq_rope_out", "dk_rope_out") | PACKED),
    ],
)
def gradients(a):
    return differentiate(a)
