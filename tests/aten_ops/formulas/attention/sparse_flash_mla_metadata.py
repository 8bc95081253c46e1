"""The distribution of queries to cores (ops-transformer: aclnnSparseFlashMlaGradMetadata.md; the document says what the
numbers are for, and the published AI CPU kernel what they are)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of, seen_keys
from tests.aten_ops.formulas.attention.lightning_indexer_metadata import CORES, lengths_of

NAME = "aclnnSparseFlashMlaGradMetadata"


def call_of_metadata(**given):
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
        "metadata": "INT32[1024]:3,1,4",
    }
    return call_of(NAME, **defaults | given)


PACKED = {"layout_q": '"TND"', "layout_kv": '"TND"', "cu_seqlens_q": "INT32[4]:0,3,3,40"}
PACKED |= {"cu_seqlens_ori_kv": "INT32[4]:0,9,200,240", "cu_seqlens_cmp_kv": "INT32[4]:0,2,40,49"}


@by_name(
    NAME,
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
    """Seven numbers; the other elements keep their values. A tensor without elements counts as null."""
    for name, value in list(vars(a).items()):
        if isinstance(value, np.ndarray) and not value.size:
            setattr(a, name, None)
    count = len(a.seqused_q) if a.seqused_q is not None else a.batch_size
    if a.seqused_q is None and a.layout_q == "TND":
        count = len(a.cu_seqlens_q) - 1
    queries = lengths_of(a.cu_seqlens_q, a.seqused_q, a.layout_q, count, a.max_seqlen_q)
    rests = [0] * count if a.cmp_residual_kv is None else a.cmp_residual_kv
    most = {"ori": 0, "cmp": 0}
    original = a.has_ori_kv, a.ori_topk, a.ori_topk_length, a.max_seqlen_ori_kv, a.cu_seqlens_ori_kv, a.seqused_ori_kv
    compressed = a.has_cmp_kv, a.cmp_topk, a.cmp_topk_length, a.max_seqlen_cmp_kv, a.cu_seqlens_cmp_kv, a.seqused_cmp_kv
    for kind, (is_given, listed, lengths, longest, ends, used) in (("ori", original), ("cmp", compressed)):
        if not is_given:
            continue
        number = 0
        any_length = 2**32 - 1 if listed and not longest else longest
        for own, keys, rest in zip(queries, lengths_of(ends, used, a.layout_kv, count, any_length), rests, strict=True):
            for query in range(own):
                seen = keys
                if kind == "cmp" and a.cmp_mask_mode == 3:
                    seen = seen_keys(query, own, keys, a.cmp_ratio, rest)
                if kind == "ori" and a.ori_mask_mode:
                    # The position of the query among the keys, where both end together.
                    place = keys - own + query
                    is_band = a.ori_mask_mode == 4
                    right = 0 if not is_band else keys + own if a.ori_win_right == -1 else a.ori_win_right
                    left = a.ori_win_left if is_band and a.ori_win_left != -1 else keys + own
                    seen = max(min(place + right, keys - 1) - max(place - left, 0) + 1, 0)
                if listed:
                    seen = min(seen, listed if lengths is None else lengths.reshape(-1)[number])
                most[kind] = max(most[kind], seen)
                number += 1
    total = sum(queries)
    each = -(-total // CORES)
    numbers = [total, each, each - 1, each * CORES - total, min(total, CORES), most["ori"], most["cmp"]]
    return np.concatenate([numbers, a.metadata[7:]]).astype(int)
