"""The distribution of work to cores (ops-transformer: aclnnSparseFlashMlaMetadata.md,
aclnnMixedQuantSparseFlashMlaMetadata.md, aclnnSparseFlashMlaGradMetadata.md; the documents say what the numbers are
for, and the published AI CPU kernels what they are)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of, seen_keys
from tests.aten_ops.formula_helpers.schedules import CORES, blocks_of, lengths_of, schedule_of

GRAD, NAME = "aclnnSparseFlashMlaGradMetadata", "aclnnSparseFlashMlaMetadata"
MIXED = "aclnnMixedQuantSparseFlashMlaMetadata"


def call_of_metadata(name=GRAD, **given):
    defaults = {
        "num_heads_q": 16,
        "num_heads_kv": 1,
        "head_dim": 512,
        "cmp_ratio": 1,
        "ori_win_left": -1,
        "ori_win_right": -1,
        "layout_q": '"BSND"',
        "layout_kv": '"BSND"',
        "has_ori_kv": "true",
        "has_cmp_kv": "true",
    }
    if name == MIXED:
        defaults |= {"quant_mode": 1, "rope_head_dim": 64}
    return call_of(name, **defaults | given | {"meta_data" if name == NAME else "metadata": "INT32[1024]:3,1,4"})


PACKED = {"layout_q": '"TND"', "layout_kv": '"TND"', "cu_seqlens_q": "INT32[4]:0,3,3,40"}
PACKED |= {"cu_seqlens_ori_kv": "INT32[4]:0,9,200,240", "cu_seqlens_cmp_kv": "INT32[4]:0,2,40,49"}


@by_name(
    GRAD,
    calls=[
        call_of_metadata(batch_size=2, max_seqlen_q=5, max_seqlen_ori_kv=9, max_seqlen_cmp_kv=7),
        call_of_metadata(
            **PACKED,
            ori_mask_mode=4,
            ori_win_left=5,
            ori_win_right=0,
            cmp_mask_mode=3,
            cmp_ratio=4,
            cmp_residual_kv="INT32[3]:1,0,3",
        ),
        call_of_metadata(**PACKED, ori_mask_mode=3, has_cmp_kv="false", seqused_q="INT32[3]:2,0,30"),
        call_of_metadata(
            batch_size=1, max_seqlen_q=3, cmp_topk=6, cmp_topk_length="INT32[1,3,1]:2,5,4", has_ori_kv="false"
        ),
        call_of_metadata(
            batch_size=1,
            max_seqlen_q=30,
            max_seqlen_ori_kv=20,
            max_seqlen_cmp_kv=20,
            cmp_topk=6,
            cmp_mask_mode=3,
            ori_topk=8,
            ori_mask_mode=4,
            ori_win_right=2,
        ),
        # The query that sees the most keys is neither the first nor the last.
        call_of_metadata(
            batch_size=2,
            max_seqlen_q=20,
            max_seqlen_ori_kv=9,
            max_seqlen_cmp_kv=7,
            ori_mask_mode=4,
            ori_win_left=3,
            ori_win_right=2,
        ),
        call_of_metadata(
            batch_size=2,
            max_seqlen_q=20,
            max_seqlen_ori_kv=40,
            ori_mask_mode=4,
            ori_win_left=30,
            ori_win_right=15,
            cu_seqlens_q="INT32[3]:0,1,2",
            cu_seqlens_cmp_kv="INT32[2]:0,1",
            has_cmp_kv="false",
        ),
        call_of_metadata(seqused_q="INT32[2]:0", seqused_ori_kv="INT32[2]:4,3", seqused_cmp_kv="INT32[2]:1"),
    ],
)
def metadata(a):
    """Seven numbers; the other elements keep their values."""
    queries, keys, rests = sequences(a)
    most = {"ori": 0, "cmp": 0}
    for kind, listed, lengths in (("ori", a.ori_topk, a.ori_topk_length), ("cmp", a.cmp_topk, a.cmp_topk_length)):
        number = 0
        for own, length, rest in zip(queries, keys[kind], rests, strict=True):
            for query in range(own):
                first, end = seen(a, kind, query, own, length, rest)
                attended = max(end - first, 0)
                if listed:
                    attended = min(attended, listed if lengths is None else lengths.reshape(-1)[number])
                most[kind] = max(most[kind], attended)
                number += 1
    total = sum(queries)
    each = -(-total // CORES)
    numbers = [total, each, each - 1, each * CORES - total, min(total, CORES), most["ori"], most["cmp"]]
    return np.concatenate([numbers, a.metadata[7:]]).astype(int)


def sequences(a):
    """The lengths of queries and keys, and the tokens after the last key. A tensor without elements counts as null."""
    for name, value in list(vars(a).items()):
        if isinstance(value, np.ndarray) and not value.size:
            setattr(a, name, None)
    count = len(a.seqused_q) if a.seqused_q is not None else a.batch_size
    if a.seqused_q is None and a.layout_q == "TND":
        count = len(a.cu_seqlens_q) - 1
    keys = {"ori": [0] * count, "cmp": [0] * count}
    original = a.has_ori_kv, a.ori_topk, a.max_seqlen_ori_kv, a.cu_seqlens_ori_kv, a.seqused_ori_kv
    compressed = a.has_cmp_kv, a.cmp_topk, a.max_seqlen_cmp_kv, a.cu_seqlens_cmp_kv, a.seqused_cmp_kv
    for kind, (is_given, listed, longest, ends, used) in (("ori", original), ("cmp", compressed)):
        if is_given:
            any_length = 2**32 - 1 if listed and not longest else longest
            keys[kind] = lengths_of(ends, used, a.layout_kv, count, any_length)
    queries = lengths_of(a.cu_seqlens_q, a.seqused_q, a.layout_q, count, a.max_seqlen_q)
    return queries, keys, [0] * count if a.cmp_residual_kv is None else list(a.cmp_residual_kv)


def seen(a, kind, query, own, keys, rest):
    """The first key that a query sees, and the end of those that it sees."""
    if kind == "cmp":
        return 0, seen_keys(query, own, keys, a.cmp_ratio, rest) if a.cmp_mask_mode == 3 else keys
    if not a.ori_mask_mode:
        return 0, keys
    place = keys - own + query  # of the query among the keys, where both end together
    is_band = a.ori_mask_mode == 4
    right = 0 if not is_band else keys + own if a.ori_win_right == -1 else a.ori_win_right
    left = a.ori_win_left if is_band and a.ori_win_left != -1 else keys + own
    return max(place - left, 0), min(place + right, keys - 1) + 1


BAND = {"ori_mask_mode": 4, "ori_win_left": 127, "ori_win_right": 0}
SCHEDULES = (
    {"batch_size": 3, "max_seqlen_q": 50, "max_seqlen_ori_kv": 5000, "has_cmp_kv": "false", "num_heads_q": 64, **BAND},
    {**PACKED, **BAND, "cmp_mask_mode": 3, "cmp_ratio": 128, "cmp_residual_kv": "INT32[3]:1,0,127", "num_heads_q": 32},
    {
        "cu_seqlens_q": "INT32[4]:0,100,205,230",
        "seqused_q": "INT32[3]:90,102,9",
        "seqused_ori_kv": "INT32[3]:100,9000,700",
        "seqused_cmp_kv": "INT32[3]:25,2250,100",
        "layout_q": '"TND"',
        "layout_kv": '"PA_BBND"',
        "cmp_mask_mode": 3,
        "cmp_ratio": 4,
        "cmp_topk": 512,
        "cmp_residual_kv": "INT32[3]:3,0,2",
        **BAND,
    },
    # Lists of keys whose number is not known, and windows that end on one side only.
    {
        "batch_size": 2,
        "max_seqlen_q": 300,
        "ori_topk": 700,
        "cmp_topk": 5,
        "cmp_mask_mode": 3,
        "ori_mask_mode": 4,
        "ori_win_left": 90,
        "num_heads_q": 3,
    },
    {
        "batch_size": 2,
        "max_seqlen_q": 300,
        "max_seqlen_ori_kv": 900,
        "max_seqlen_cmp_kv": 30,
        "ori_topk": 600,
        "ori_topk_length": "INT32[2,300,1]",
        "num_heads_q": 1,
    },
    # The first queries see no keys.
    {"batch_size": 3, "max_seqlen_q": 2000, "max_seqlen_ori_kv": 600, "ori_mask_mode": 3, "max_seqlen_cmp_kv": 1},
    {"batch_size": 2, "max_seqlen_q": 5, "has_cmp_kv": "false"},
    {"batch_size": 2, "max_seqlen_ori_kv": 5, "has_ori_kv": "false", "max_seqlen_cmp_kv": 5},
    # A sequence of queries alone, and one of keys alone.
    {"seqused_q": "INT32[4]:70,0,40,9", "seqused_ori_kv": "INT32[4]:0,600,300,20", "has_cmp_kv": "false"},
)


@by_name(NAME, MIXED, calls=[call_of_metadata(name, **given) for name in (NAME, MIXED) for given in SCHEDULES])
def schedule(a):
    """Rows of blocks have one query, or as many as have 256 heads where there are no lists of compressed keys."""
    is_mixed = a.quant_mode is not None
    in_row = 1 if is_mixed or (a.has_cmp_kv and a.cmp_topk) else 256 // a.num_heads_q
    queries, keys, rests = sequences(a)
    costs = []
    for i, own in enumerate(queries):
        costs.append([])
        for first in range(0, own, in_row):
            row = range(first, min(first + in_row, own))
            blocks = []
            for kind, listed in (("ori", a.ori_topk), ("cmp", a.cmp_topk)):
                firsts, ends = zip(*(seen(a, kind, query, own, keys[kind][i], rests[i]) for query in row), strict=True)
                attended = max(max(ends) - min(firsts), 0)
                attended = min(attended, listed) if listed else attended
                blocks += blocks_of(len(row) * a.num_heads_q, attended, 128 if is_mixed else 512)
            costs[-1].append(blocks)
    is_empty = not any(own and (keys["ori"][i] or keys["cmp"][i]) for i, own in enumerate(queries))
    return schedule_of(costs, is_empty, 9)
