from __future__ import annotations

from itertools import accumulate

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.nsa import QUERY, attend, block_scores, most_important


def paged(cache, table, heads, page):
    """The keys or values of each sequence as (heads, tokens, elements)."""
    pages = cache.reshape(len(cache), page, heads, -1)
    return [np.concatenate([pages[i] for i in row]).swapaxes(0, 1) for row in table]


def queries_of(a, lengths):
    """Tokens as (tokens, heads, elements), and for each sequence its number, length and first token."""
    tokens = a.query.reshape(*a.query.shape[: 1 if a.layout == "TND" else 2], a.num_heads, -1)
    firsts = [0, *accumulate(lengths)] if a.layout == "TND" else np.arange(len(lengths)) * a.query.shape[1]
    return tokens.reshape(-1, *tokens.shape[-2:]), [(b, n, int(firsts[b])) for b, n in enumerate(lengths)]


COMPRESSED = {
    "key": f"FLOAT[4,16,16]:{KEY}",
    "value": f"FLOAT[4,16,8]:{VALUE}",
    "block_table": "INT32[2,2]:2,0,1,3",
    "actual_cmp_kv_seq_len": "[20,13]",
    "num_heads": 4,
    "num_key_value_heads": 2,
    "select_block_size": 64,
    "select_block_count": 4,
    "compress_block_size": 32,
    "compress_block_stride": 16,
    "page_block_size": 16,
}
ONE = COMPRESSED | {
    "query": f"FLOAT[2,4,8]:{QUERY}",
    "layout": '"TND"',
    "output": "FLOAT[2,4,4]",
    "top_koutput": "INT32[2,2,4]",
}
SEVERAL = COMPRESSED | {
    "query": f"FLOAT[2,2,4,8]:{QUERY}",
    "attention_mask": "BOOL[4,4]",
    "actual_qseq_len": "[2,2]",
    "actual_sel_kv_seq_len": "[336,229]",
    "layout": '"BSND"',
    "output": "FLOAT[2,2,4,4]",
    "top_koutput": "INT32[2,2,2,4]",
}


def has_several(a):
    """Whether a sequence may have several queries; only then the mask counts."""
    lengths, windows, keys = a.actual_qseq_len, a.actual_cmp_kv_seq_len, a.actual_sel_kv_seq_len
    if lengths is None or len(lengths) != len(a.block_table) or not all(1 <= each <= 4 for each in lengths):
        return False
    of_keys = [(each - a.compress_block_size) // a.compress_block_stride + 1 for each in keys or []]
    return len(windows) == len(a.block_table) and (keys is None or of_keys == windows)


# The first block and the last two are always selected, as in op-plugin's test_npu_nsa_compress_attention_infer.py. With
# the mask, a query does not see a window that ends after it (ops-transformer: aclnnNsaCompressAttentionInfer.md).
@by_name(
    "aclnnNsaCompressAttentionInfer",
    calls=[
        call_of("aclnnNsaCompressAttentionInfer", **given)
        for given in (
            ONE,
            SEVERAL,
            SEVERAL | {"attention_mask": "null"},
            # The tokens before the compression do not fit the windows: one query for each sequence.
            ONE | {"actual_qseq_len": "[1,1]", "actual_sel_kv_seq_len": "[300,229]", "attention_mask": "BOOL[4,4]"},
            ONE
            | {"query": f"FLOAT[3,4,8]:{QUERY}", "actual_qseq_len": "[1,2]", "select_block_count": 3}
            | {"output": "FLOAT[3,4,4]", "top_koutput": "INT32[3,2,3]"},
        )
    ],
)
def nsa_compress_attention_infer(a):
    several, groups = has_several(a), (a.num_key_value_heads, a.num_heads // a.num_key_value_heads)
    tokens, sequences = queries_of(a, a.actual_qseq_len if several else [1] * len(a.block_table))
    keys, values = (paged(each, a.block_table, groups[0], a.page_block_size) for each in (a.key, a.value))
    result = np.zeros((*tokens.shape[:2], values[0].shape[2]))
    blocks = np.zeros((len(tokens), groups[0], a.select_block_count), int)
    for b, queries, first in sequences:
        windows = a.actual_cmp_kv_seq_len[b]
        ends = np.arange(windows) * a.compress_block_stride + a.compress_block_size
        count = -(-int(ends[-1]) // a.select_block_size)
        for i, token in enumerate(range(first, first + queries)):
            hidden = np.zeros(windows, bool)
            if several and a.attention_mask is not None and a.actual_sel_kv_seq_len is not None:
                hidden = ends > a.actual_sel_kv_seq_len[b] - queries + 1 + i
            query = tokens[token].reshape(*groups, -1)
            own, p, *_ = attend(query, keys[b][:, :windows], values[b][:, :windows], a.scale_value, hidden)
            result[token] = own.reshape(a.num_heads, -1)
            scores = block_scores(p, a, a.compress_block_stride, count).sum(1)
            scores[:, [0, *range(max(0, count - 2), count)]] = np.inf
            blocks[token] = most_important(scores, a.select_block_count)
    rows = a.query.shape[:-2]
    return result.reshape(*rows, *result.shape[1:]), blocks.reshape(*rows, *blocks.shape[1:])


# (ids of blocks for each token and head of keys) A block may be selected twice; -1 selects nothing.
TOPK = "0,6,-1,2,5,6,0,1,6,3,-1,-1,4,0,-1,1,4,2,4,3,0,0,2,2"
SELECTED = {
    "key": f"FLOAT[4,64,16]:{KEY}",
    "value": f"FLOAT[4,64,8]:{VALUE}",
    "topk_indices": f"INT32[2,2,2,3]:{TOPK}",
    "block_table": "INT32[2,2]:2,0,1,3",
    "actual_qseq_len": "[2,2]",
    "actual_kv_seq_len": "[100,70]",
    "num_heads": 4,
    "num_key_value_heads": 2,
    "select_block_size": 16,
    "select_block_count": 3,
    "page_block_size": 64,
}


# A query does not see the keys of later ones; the last query has the last key (ops-transformer:
# aclnnNsaSelectedAttentionInfer.md).
@by_name(
    "aclnnNsaSelectedAttentionInfer",
    calls=[
        call_of("aclnnNsaSelectedAttentionInfer", **SELECTED | given)
        for given in (
            {"query": f"FLOAT[2,2,32]:{QUERY}", "layout": '"BSH"', "output": "FLOAT[2,2,16]"},
            # The second query of the second sequence is not one.
            {"query": f"FLOAT[2,2,4,8]:{QUERY}", "layout": "null", "actual_qseq_len": "[2,1]"}
            | {"key": f"FLOAT[4,64,2,8]:{KEY}", "value": f"FLOAT[4,64,2,4]:{VALUE}", "output": "FLOAT[2,2,4,4]"},
            {"query": f"FLOAT[4,4,8]:{QUERY}", "layout": '"TND"', "actual_qseq_len": "[1,3]"}
            | {"topk_indices": f"INT32[4,2,3]:{TOPK}", "output": "FLOAT[4,4,4]"},
            {"query": f"FLOAT[2,4,8]:{QUERY}", "layout": '"TND"', "actual_qseq_len": "null"}
            | {"topk_indices": f"INT32[2,2,3]:{TOPK}", "output": "FLOAT[2,4,4]"},
            {"query": f"FLOAT[2,2,4,8]:{QUERY}", "layout": '"BSND"', "actual_qseq_len": "null"}
            | {"output": "FLOAT[2,2,4,4]"},
        )
    ],
)
def nsa_selected_attention_infer(a):
    a.layout = a.layout or "BSND"
    key_heads, group = a.num_key_value_heads, a.num_heads // a.num_key_value_heads
    of_all = 1 if a.layout == "TND" else a.query.shape[1]
    tokens, sequences = queries_of(a, a.actual_qseq_len or [of_all] * len(a.block_table))
    keys, values = (paged(each, a.block_table, key_heads, a.page_block_size) for each in (a.key, a.value))
    indices = a.topk_indices.reshape(len(tokens), key_heads, -1, 1)
    result = np.zeros((len(tokens), key_heads, group, values[0].shape[2]))
    for b, queries, first in sequences:
        for i, head in np.ndindex(queries, key_heads):
            positions = (indices[first + i, head] * a.select_block_size + np.arange(a.select_block_size)).reshape(-1)
            positions = positions[(positions >= 0) & (positions <= a.actual_kv_seq_len[b] - queries + i)]
            if positions.size:
                query = tokens[first + i].reshape(key_heads, group, -1)[head]
                own = keys[b][head, positions], values[b][head, positions]
                result[first + i, head] = attend(query, *own, a.scale_value)[0]
    if a.layout == "BSH":
        return result.reshape(*a.query.shape[:2], -1)
    return result.reshape(*a.query.shape[:-1], -1)
