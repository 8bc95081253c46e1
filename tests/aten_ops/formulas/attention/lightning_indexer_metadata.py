"""Schedules of cores (ops-transformer: aclnnLightningIndexerV2Metadata.md, aclnnQuantLightningIndexerV2Metadata.md).

The documents say what the numbers are for; their rule is that of the published AI CPU kernels.
"""

from __future__ import annotations

from tests.aten_ops.formula_helpers.attention import by_name, call_of
from tests.aten_ops.formula_helpers.schedules import blocks_of, lengths_of, schedule_of

NAME, QUANT = "aclnnLightningIndexerV2Metadata", "aclnnQuantLightningIndexerV2Metadata"
QUERIES, KEYS = 4, 2048  # of a block


def rows_of(a, queries, keys, rest):
    """The times of the blocks of each row of a sequence."""
    rows = []
    for first in range(0, queries, QUERIES):
        height = min(QUERIES, queries - first)
        tokens = keys * a.cmp_ratio + rest
        seen = tokens
        if a.mask_mode == 3:
            seen = min(max(first + height - 1 + tokens - queries, 0), tokens - 1) + 1
        rows.append(blocks_of(height * a.num_heads_q, seen // a.cmp_ratio if keys else 0, KEYS))
    return rows


def call_of_schedule(name, **given):
    defaults = {
        "num_heads_q": 64,
        "num_heads_k": 1,
        "head_dim": 128,
        "topk": 512,
        "cmp_ratio": 1,
        "layout_q": '"BSND"',
        "layout_k": '"BSND"',
        "metadata": "INT32[1024]",
    }
    return call_of(name, **defaults | ({"quant_mode": 2} if name == QUANT else {}) | given)


GIVEN = (
    {"batch_size": 3, "max_seqlen_q": 50, "max_seqlen_k": 5000},
    {"batch_size": 2, "max_seqlen_q": 203, "max_seqlen_k": 4097, "mask_mode": 3, "num_heads_q": 32},
    {
        "cu_seqlens_q": "INT32[5]:0,7,7,300,320",
        "cu_seqlens_k": "INT32[5]:0,100,3000,6001,6001",
        "layout_q": '"TND"',
        "layout_k": '"TND"',
        "mask_mode": 3,
        "max_seqlen_q": -1,
    },
    {
        "cu_seqlens_q": "INT32[4]:0,100,205,230",
        "seqused_q": "INT32[3]:90,102,9",
        "seqused_k": "INT32[3]:10,2500,700",
        "layout_q": '"TND"',
        "layout_k": '"PA_BBND"',
        "mask_mode": 3,
        "cmp_ratio": 4,
        "cmp_residual_k": "INT32[3]:3,0,2",
        "max_seqlen_k": -1,
    },
    {"batch_size": 2, "max_seqlen_q": 5, "max_seqlen_k": 0},
    {"batch_size": 2, "max_seqlen_q": 500, "max_seqlen_k": 900, "num_heads_q": 1},
    # The ends say how many sequences there are, and not how long they are.
    {"cu_seqlens_q": "INT32[4]:0,2,3,9", "cu_seqlens_k": "INT32[4]", "max_seqlen_q": 50, "max_seqlen_k": 5000},
    {
        "batch_size": 2,
        "max_seqlen_q": 3,
        "max_seqlen_k": 1,
        "mask_mode": 3,
        "cmp_ratio": 4,
        "cmp_residual_k": "INT32[2]",
    },
    {"seqused_q": "INT32[0]", "batch_size": 1, "max_seqlen_q": 1, "max_seqlen_k": 9, "cmp_ratio": 128},
)


@by_name(NAME, QUANT, calls=[call_of_schedule(name, **given) for name in (NAME, QUANT) for given in GIVEN])
def schedule(a):
    counts = [
        len(each) if each is not None and each.size else None for each in (a.seqused_q, a.seqused_k, a.cu_seqlens_q)
    ]
    count = counts[0] or counts[1] or (counts[2] - 1 if counts[2] else a.batch_size)
    queries = lengths_of(a.cu_seqlens_q, a.seqused_q, a.layout_q, count, a.max_seqlen_q)
    keys = lengths_of(a.cu_seqlens_k, a.seqused_k, a.layout_k, count, a.max_seqlen_k)
    rests = [0] * count if a.cmp_residual_k is None or not a.cmp_residual_k.size else list(a.cmp_residual_k)
    is_empty = all(q == 0 or k == 0 for q, k in zip(queries, keys, strict=True))
    return schedule_of([rows_of(a, *each) for each in zip(queries, keys, rests, strict=True)], is_empty, 8)
