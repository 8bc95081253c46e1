"""Results over parts of the keys, merged (ops-transformer: aclnnRingAttentionUpdate.md, aclnnRingAttentionUpdateV2.md,
aclnnAttentionUpdate.md)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, QUERY, VALUE, by_name, call_of, eight
from tests.aten_ops.formulas import formula

LARGEST = (0.5, -1.25, 2, 0.75, -0.375, 1.5, 0.125), (1.25, 0.25, -0.5, 2.5, 0.625, -1, -0.125, 0.875)
SUMS = (1.5, 2.25, 3, 1.125, 2.75), (2, 1.25, 3.5, 1.75, 2.5, 1, 3.25)


def call(layout, of_softmax, version="", **given):
    softmax = {
        f"{part}_softmax_{name}": f"FLOAT[{of_softmax}]:{eight(*values[i])}"
        for i, part in enumerate(("prev", "cur"))
        for name, values in (("max", LARGEST), ("sum", SUMS))
    }
    results = {"prev_attn_out": f"FLOAT[3,2,4]:{VALUE}", "cur_attn_out": f"FLOAT[3,2,4]:{KEY}"}
    outputs = {f"softmax_{name}_out": f"FLOAT[{of_softmax}]" for name in ("max", "sum")}
    layouts = {"input_layout": layout, "attn_out_out": "FLOAT[3,2,4]"}
    return call_of("aclnnRingAttentionUpdate" + version, **softmax | results | outputs | layouts | given)


STARTS = {"actual_seq_qlen": "INT64[4]:0,2,2,3"}


@by_name(
    "aclnnRingAttentionUpdate",
    "aclnnRingAttentionUpdateV2",
    calls=[
        call('"TND"', "3,2,8", **STARTS),
        call('"SBH"', "2,2,3,8"),
        call('"TND"', "3,2,8", "V2", **STARTS, input_softmax_layout='"TND"'),
        call('"TND"', "3,2,8", "V2", **STARTS, input_softmax_layout='"SBH"'),
        call('"TND"', "3,2,8", "V2", **STARTS, input_softmax_layout='""'),
        call('"SBH"', "2,2,3,8", "V2", input_softmax_layout='""'),
    ],
)
def ring_attention(a):
    largest = np.maximum(a.prev_softmax_max, a.cur_softmax_max)
    before = a.prev_softmax_sum * np.exp(a.prev_softmax_max - largest)
    now = a.cur_softmax_sum * np.exp(a.cur_softmax_max - largest)
    total = before + now
    by_head = a.input_layout == "TND" and a.input_softmax_layout != "TND"

    def weighted(result, part):
        share = (part / total)[..., :1]
        if a.input_layout == "SBH":
            share = share.transpose(2, 0, 1, 3)  # as the results: sequence, batch, heads
        if by_head:  # those of a head are together in each sequence
            heads = share.shape[1]
            own = [share[i:j].reshape(heads, j - i, 1).swapaxes(0, 1) for i, j in pairwise(a.actual_seq_qlen)]
            share = np.concatenate(own) if own else share
        elements = result.shape[2] if a.input_layout == "TND" else result.shape[2] // share.shape[2]
        return (result.reshape(*share.shape[:-1], elements) * share).reshape(result.shape)

    result = weighted(a.prev_attn_out, before) + weighted(a.cur_attn_out, now)
    return result, largest, total


@formula(
    "aclnnAttentionUpdate",
    calls=[
        f"aclnnAttentionUpdate lse={{FLOAT[3]:-1.25,0.625,0.5 FLOAT[3]:0,-0.625,-1.375}} localOut={{FLOAT[3,4]:{QUERY} "
        f"FLOAT[3,4]:{KEY}}} updateType={kind} out=FLOAT[3,4] lseOut={logarithm}"
        for kind, logarithm in ((0, "null"), (1, "FLOAT[3]"))
    ]
    # The second token has no keys in the first part, whose attention then has a logarithm of +inf (decode_update.h).
    + [
        f"aclnnAttentionUpdate lse={{FLOAT[3]:-1.25,inf,0.5 FLOAT[3]:0,-0.625,-1.375}} localOut={{FLOAT[3,4]:{QUERY} "
        f"FLOAT[3,4]:{KEY}}} updateType=1 out=FLOAT[3,4] lseOut=FLOAT[3]"
    ],
)
def attention_update(logarithms, results, kind):
    logarithms = [np.where(own == np.inf, -np.inf, own) for own in logarithms]
    largest = np.max(logarithms, 0)
    merged = largest + np.log(np.sum(np.exp(np.array(logarithms) - largest), 0))
    result = sum(result * np.exp(own - merged)[:, None] for own, result in zip(logarithms, results, strict=True))
    return (result, merged) if kind == 1 else result
