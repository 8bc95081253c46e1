"""Attention to selected blocks of keys, and its gradients (ops-transformer: aclnnBlockSparseAttention.md,
aclnnBlockSparseAttentionV2.md, aclnnBlockSparseAttentionGrad.md)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.aten_ops.formula_helpers.attention import GRADIENT, KEY, QUERY, VALUE, by_name, call_of

MASK = "1,0,0,1,1,1,0,0,0,1"
LOG_SUMS = "4.5,5,5.25,4.75,5.5,4.25"
SHAPES = {
    '"BNSD"': ("2,4,3,64", "2,2,130,64", "2,4,3,1"),
    '"BSND"': ("2,3,4,64", "2,130,2,64", "2,3,4,1"),
    '"TND"': ("5,4,64", "140,2,64", "5,4,1"),
}
PACKED = {"actual_seq_lengths": "[2,3]", "actual_seq_lengths_kv": "[130,10]"}
SHORTER = {"actual_seq_lengths": "[3,1]", "actual_seq_lengths_kv": "[5,129]"}


def parts(a):
    """Places of the sequences in queries and in keys, whose parts are (heads, tokens, elements)."""
    packed = a.q_input_layout == "TND"

    def places(tensor, lengths):
        if packed:
            ends = np.cumsum([0, *lengths])
            return [(slice(start, stop),) for start, stop in pairwise(ends)]
        axis = 2 if a.q_input_layout == "BNSD" else 1
        lengths = [tensor.shape[axis]] * len(tensor) if lengths is None else lengths
        after = (slice(None),) * (axis - 1)
        return [(b, *after, slice(0, n)) for b, n in enumerate(lengths)]

    return list(
        zip(places(a.query, a.actual_seq_lengths), places(a.key, a.actual_seq_lengths_kv), strict=True),
    )


def by_head(a, part):
    """Exchanges heads and tokens where the layout has tokens first."""
    return part if a.q_input_layout == "BNSD" else part.swapaxes(0, 1)


def scores_of(a, query, key, seen):
    """The scores, without those of keys in other blocks than the selected ones."""
    scores = a.scale_value * query @ np.repeat(key, len(query) // len(key), 0).swapaxes(1, 2)
    return np.where(seen, scores, -np.inf)


def attend(scores, value):
    largest = np.max(scores, -1, keepdims=True, initial=-np.inf)
    largest = np.where(np.isneginf(largest), 0, largest)
    powers = np.exp(scores - largest)
    total = powers.sum(-1, keepdims=True)
    none = total == 0
    total = np.where(none, 1, total)
    result = powers / total @ np.repeat(value, len(scores) // len(value), 0)
    return result, np.where(none, 0, largest + np.log(total))


def seen_in(a, mask, queries, keys):
    x, y = (a.block_shape or (128, 128))[:2]
    return mask[:, np.arange(queries) // x][:, :, np.arange(keys) // y] != 0


def sparse(version="", **given):
    layout = given.get("q_input_layout", '"BNSD"')
    query, key, lse = SHAPES[layout]
    dtype = given.pop("dtype", "FLOAT16")
    inputs = {"query": f"{dtype}[{query}]:{QUERY}", "key": f"{dtype}[{key}]:{KEY}", "value": f"{dtype}[{key}]:{VALUE}"}
    blocks = {"block_shape": "[2,128]", "block_sparse_mask": f"INT8[2,4,2,2]:{MASK}", "num_key_value_heads": 2}
    layouts = {"q_input_layout": layout, "kv_input_layout": layout}
    outputs = {"attention_out": f"FLOAT16[{query}]", "softmax_lse": f"FLOAT[{lse}]", "softmax_lse_flag": 1}
    return call_of("aclnnBlockSparseAttention" + version, **inputs | blocks | layouts | outputs | given)


SCALES = {
    "q_dequant_scale": "FLOAT[2,4,1,1]:0.5,2,1.5,1",
    "k_dequant_scale": "FLOAT[2,2,1,1]:1.25,0.75",
    "v_dequant_scale": "FLOAT[2,2,1,1]:2,0.5",
    "block_shape": "[128,256]",
    "block_sparse_mask": "INT8[2,4,1,1]:1,1,0,1",
}


@by_name(
    "aclnnBlockSparseAttention",
    "aclnnBlockSparseAttentionV2",
    calls=[
        sparse(),
        sparse(q_input_layout='"BSND"', **SHORTER, inner_precise=1),
        sparse(q_input_layout='"TND"', **PACKED, block_shape="[2,128,5]"),
        sparse(block_shape="null", block_sparse_mask="INT8[2,4,1,2]:1,0,1,1", softmax_lse_flag=0, softmax_lse="null"),
        sparse("V2", q_input_layout='"TND"', **PACKED, dtype="BFLOAT16", attention_out="BFLOAT16[5,4,64]"),
        sparse("V2", **SCALES, dtype="FLOAT8_E4M3FN"),
    ],
)
def block_sparse(a):
    result, log_sums = np.zeros(a.query.shape), np.zeros((*a.query.shape[:-1], 1))
    for i, (queries, keys) in enumerate(parts(a)):
        query, key, value = by_head(a, a.query[queries]), by_head(a, a.key[keys]), by_head(a, a.value[keys])
        if a.q_dequant_scale is not None:
            x, y = (np.arange(each.shape[1]) // size for each, size in zip((query, key), a.block_shape, strict=True))
            query = query * a.q_dequant_scale[i][:, x]
            key, value = key * a.k_dequant_scale[i][:, y], value * a.v_dequant_scale[i][:, y]
        seen = seen_in(a, a.block_sparse_mask[i], query.shape[1], key.shape[1])
        own, own_sums = attend(scores_of(a, query, key, seen), value)
        result[queries], log_sums[queries] = by_head(a, own), by_head(a, own_sums)
    return (result, log_sums) if a.softmax_lse_flag else result


def grad(**given):
    layout = given.get("q_input_layout", '"BNSD"')
    query, key, _ = (each.replace("64", "128") for each in SHAPES[layout])
    lse = {'"BNSD"': "2,4,3", '"BSND"': "2,4,3,1", '"TND"': "5,4,1"}[layout]
    inputs = {"query": f"FLOAT16[{query}]:{QUERY}", "key": f"FLOAT16[{key}]:{KEY}", "value": f"FLOAT16[{key}]:{VALUE}"}
    forward = {"attention_out": f"FLOAT16[{query}]:{KEY}", "softmax_lse": f"FLOAT[{lse}]:{LOG_SUMS}"}
    blocks = {"block_shape": "[2,128]", "block_sparse_mask": f"BOOL[2,4,2,2]:{MASK}", "num_key_value_heads": 2}
    layouts = {"q_input_layout": layout, "kv_input_layout": layout, "scale_value": 0.125}
    outputs = {"dq": f"FLOAT16[{query}]", "dk": f"FLOAT16[{key}]", "dv": f"FLOAT16[{key}]"}
    others = inputs | forward | blocks | layouts | outputs | {"dout": f"FLOAT16[{query}]:{GRADIENT}"}
    return call_of("aclnnBlockSparseAttentionGrad", **others | given)


@by_name(
    "aclnnBlockSparseAttentionGrad",
    calls=[grad(), grad(q_input_layout='"BSND"', **SHORTER), grad(q_input_layout='"TND"', **PACKED)],
)
def block_sparse_grad(a):
    dq, dk, dv = (np.zeros(each.shape) for each in (a.query, a.key, a.value))
    for i, (queries, keys) in enumerate(parts(a)):
        query, dy, result = (by_head(a, each[queries]) for each in (a.query, a.dout, a.attention_out))
        key, value = by_head(a, a.key[keys]), by_head(a, a.value[keys])
        if a.q_input_layout == "TND":
            log_sums = a.softmax_lse[queries].swapaxes(0, 1)
        else:
            log_sums = a.softmax_lse.reshape(*a.softmax_lse.shape[:3], 1)[i, :, : query.shape[1]]
        group = len(query) // len(key)
        seen = seen_in(a, a.block_sparse_mask[i], query.shape[1], key.shape[1])
        p = np.exp(scores_of(a, query, key, seen) - log_sums)
        of_result = np.sum(dy * result, -1, keepdims=True)
        ds = p * (dy @ np.repeat(value, group, 0).swapaxes(1, 2) - of_result) * a.scale_value
        dq[queries] = by_head(a, ds @ np.repeat(key, group, 0))
        for where, each in ((dk, ds.swapaxes(1, 2) @ query), (dv, p.swapaxes(1, 2) @ dy)):
            where[keys] = by_head(a, each.reshape(len(key), group, *each.shape[1:]).sum(1))
    return dq, dk, dv
