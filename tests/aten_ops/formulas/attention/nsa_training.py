from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.nsa import GRADIENT, HIDDEN, QUERY, attend, block_scores, most_important, spans

COMPRESSED = {
    "query": f"FLOAT[5,4,8]:{QUERY}",
    "key": f"FLOAT[22,2,8]:{KEY}",
    "value": f"FLOAT[22,2,4]:{VALUE}",
    "actual_seq_qlen": "[3,5]",
    "actual_cmp_seq_kv_len": "[10,22]",
    "actual_sel_seq_kv_len": "[3,6]",
    "head_num": 4,
    "input_layout": '"TND"',
    "compress_block_size": 32,
    "compress_stride": 16,
    "select_block_size": 64,
    "select_block_count": 2,
    "softmax_max_out": "FLOAT[5,4,8]",
    "softmax_sum_out": "FLOAT[5,4,8]",
    "attention_out_out": "FLOAT[5,4,4]",
    "topk_indices_out": "INT32[5,2,2]",
}
WINDOWS_MASK = "UINT8[3,12]:0,0,0,0,0,1,1,1,1,1,1,1,0,0,0,0,0,0,0,0,1,1,1,1,0,1,0,1,0,0,1,0,0,0,0,1"


# Blocks in topkMask are always selected. The maxima and sums of a head are together in each sequence, as in op-plugin's
# test_npu_nsa_compress_attention.py (ops-transformer: aclnnNsaCompressAttention.md).
@by_name(
    "aclnnNsaCompressAttention",
    calls=[
        call_of("aclnnNsaCompressAttention", **COMPRESSED),
        call_of(
            "aclnnNsaCompressAttention",
            **COMPRESSED,
            atten_mask=WINDOWS_MASK,
            topk_mask="UINT8[3,3]:0,0,0,0,1,0,1,0,0",
            sparse_mode=1,
        ),
        call_of(
            "aclnnNsaCompressAttention",
            **COMPRESSED | {"compress_stride": 32, "actual_sel_seq_kv_len": "[5,11]", "select_block_count": 5}
            | {"topk_indices_out": "INT32[5,2,5]"},
            atten_mask=WINDOWS_MASK.replace("UINT8", "BOOL"),
        ),
    ],
)  # fmt: skip
def nsa_compress_attention(a):
    heads, key_heads = a.query.shape[1], a.key.shape[1]
    group = heads // key_heads
    largest, total = (np.zeros((*a.query.shape[:2], 8)) for _ in range(2))
    result = np.zeros((*a.query.shape[:2], a.value.shape[2]))
    blocks = np.zeros((len(a.query), key_heads, a.select_block_count), int)
    places = [spans(ends) for ends in (a.actual_seq_qlen, a.actual_cmp_seq_kv_len, a.actual_sel_seq_kv_len)]
    for queries, keys, selected in zip(*places, strict=True):
        count, windows = (each.stop - each.start for each in (queries, keys))
        if count == 0:
            continue
        query = a.query[queries].swapaxes(0, 1)
        key, value = (np.repeat(each[keys].swapaxes(0, 1), group, 0) for each in (a.key, a.value))
        hidden = False if a.atten_mask is None else a.atten_mask[:count, :windows] != 0
        own, p, *softmax = attend(query, key, value, a.scale_value, hidden)
        result[queries] = own.swapaxes(0, 1)
        largest[queries], total[queries] = (each.reshape(count, heads, 1) for each in softmax)
        block_count = selected.stop - selected.start
        scores = block_scores(p, a, a.compress_stride, block_count).reshape(key_heads, group, count, -1).sum(1)
        if a.topk_mask is not None:
            scores[:, a.topk_mask[:count, :block_count] != 0] = np.inf
        blocks[queries] = most_important(scores, a.select_block_count).swapaxes(0, 1)
    return largest, total, result, blocks


SELECTED = {
    "query": f"FLOAT[5,4,8]:{QUERY}",
    "key": f"FLOAT[96,2,8]:{KEY}",
    "value": f"FLOAT[96,2,4]:{VALUE}",
    # A block may be selected twice, and in any order.
    "topk_indices": "INT32[5,2,2]:0,2,1,0,0,0,2,1,0,1,0,2,0,1,1,0,1,1,0,1",
    "actual_seq_qlen": "[3,5]",
    "actual_seq_kv_len": "[48,96]",
    "head_num": 4,
    "input_layout": '"TND"',
    "selected_block_size": 16,
    "selected_block_count": 2,
}
# The third query of a sequence sees no key of the first block.
KEYS_MASK = "UINT8[3,48]:" + ",".join(str(int(q == 2 or (q + k) % 3 == 0)) for q in range(3) for k in range(48))


def selected_keys(a, ignores_mode):
    """For each query and head of keys: the places of the query, of its heads and of its keys, and which are hidden."""
    group = a.query.shape[1] // a.key.shape[1]
    for queries, keys in zip(spans(a.actual_seq_qlen), spans(a.actual_seq_kv_len), strict=True):
        for token, head in np.ndindex(queries.stop - queries.start, a.key.shape[1]):
            at = queries.start + token
            positions = a.topk_indices[at, head, :, None] * a.selected_block_size + np.arange(a.selected_block_size)
            positions = positions.reshape(-1)
            hidden = np.zeros(positions.shape, bool)
            if a.sparse_mode == 2 and not ignores_mode:
                hidden = positions > token
            elif a.sparse_mode == 0 and a.atten_mask is not None:
                hidden = a.atten_mask[token, positions] != 0
            heads = slice(head * group, (head + 1) * group)
            yield (at, heads), (keys.start + positions, head), hidden


# Without a mask the mode does not count (ops-transformer: aclnnNsaSelectedAttention.md).
@by_name(
    "aclnnNsaSelectedAttention",
    calls=[
        call_of(
            "aclnnNsaSelectedAttention", **SELECTED, atten_mask=mask, sparse_mode=mode,
            softmax_max_out="FLOAT[5,4,8]", softmax_sum_out="FLOAT[5,4,8]", attention_out="FLOAT[5,4,4]",
        )
        for mask, mode in (("null", 0), ("null", 2), (KEYS_MASK, 0), ("BOOL[2048,2048]:1", 2))
    ],
)  # fmt: skip
def nsa_selected_attention(a):
    largest, total = (np.zeros((*a.query.shape[:2], 8)) for _ in range(2))
    result = np.zeros((*a.query.shape[:2], a.value.shape[2]))
    for query, keys, hidden in selected_keys(a, a.atten_mask is None):
        result[query], _, largest[query], total[query] = attend(
            a.query[query], a.key[keys], a.value[keys], a.scale_value, hidden
        )
    return largest, total, result


# softmaxMax and softmaxSum are those of the forward pass; scaleValue is 1/sqrt(d) of the formulas (ops-transformer:
# aclnnNsaSelectedAttentionGrad.md).
@by_name(
    "aclnnNsaSelectedAttentionGrad",
    calls=[
        call_of(
            "aclnnNsaSelectedAttentionGrad", **SELECTED, atten_mask=mask, sparse_mode=mode,
            attention_out=f"FLOAT[5,4,4]:{VALUE}", attention_out_grad=f"FLOAT[5,4,4]:{GRADIENT}",
            softmax_max="FLOAT[5,4,8]", softmax_sum="FLOAT[5,4,8]:31,17,23.5,9,12.25,14,27,19.5,21",
            dq_out="FLOAT[5,4,8]", dk_out="FLOAT[96,2,8]", dv_out="FLOAT[96,2,4]",
        )
        for mask, mode in (("null", 0), ("null", 2), (KEYS_MASK, 0))
    ],
)  # fmt: skip
def nsa_selected_attention_grad(a):
    of_query, of_key, of_value = (np.zeros(each.shape) for each in (a.query, a.key, a.value))
    for query, keys, hidden in selected_keys(a, ignores_mode=False):
        q, k, v, dy = a.query[query], a.key[keys], a.value[keys], a.attention_out_grad[query]
        scores = np.where(hidden, HIDDEN, a.scale_value * (q @ k.T))
        p = np.exp(scores - a.softmax_max[query][:, :1]) / a.softmax_sum[query][:, :1]
        ds = p * (dy @ v.T - (dy * a.attention_out[query]).sum(-1, keepdims=True))
        of_query[query] = a.scale_value * (ds @ k)
        np.add.at(of_key, keys, a.scale_value * (ds.T @ q))
        np.add.at(of_value, keys, p.T @ dy)
    return of_query, of_key, of_value
