"""Schedules of cores (ops-transformer: aclnnLightningIndexerV2Metadata.md, aclnnQuantLightningIndexerV2Metadata.md).

The documents say what the numbers are for; their rule is that of the published AI CPU kernels. Here the time of each
row of blocks is written down first, and cores then take rows from one list.
"""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of

NAME, QUANT = "aclnnLightningIndexerV2Metadata", "aclnnQuantLightningIndexerV2Metadata"
CORES, QUERIES, KEYS = 24, 4, 2048  # of the tests' product, and of a block


def lengths_of(ends, used, layout, count, length):
    """The lengths of the sequences; an empty tensor stands for a null one."""
    if used is not None and used.size:
        return list(used)
    if layout == "TND":
        return list(np.diff(ends))
    return [length] * count


def cost(height, width):
    return 6 * -(-height // 16) + 10 * -(-width // 64)


def costs_of_rows(a, queries, keys, rest):
    """The times of the rows of blocks of a sequence, and those of their last blocks."""
    rows = []
    for first in range(0, queries, QUERIES):
        height = min(QUERIES, queries - first)
        tokens = keys * a.cmp_ratio + rest
        seen = tokens
        if a.mask_mode == 3:
            seen = min(max(first + height - 1 + tokens - queries, 0), tokens - 1) + 1
        seen //= a.cmp_ratio
        widths = [min(KEYS, seen - start) for start in range(0, seen, KEYS)] if keys else []
        blocks = [cost(height * a.num_heads_q, width) for width in widths]
        rows.append((sum(blocks), blocks[-1] if blocks else 0))
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
    """Each core takes an equal share of the time that is left, and up to half a block more."""
    counts = [
        len(each) if each is not None and each.size else None for each in (a.seqused_q, a.seqused_k, a.cu_seqlens_q)
    ]
    count = counts[0] or counts[1] or (counts[2] - 1 if counts[2] else a.batch_size)
    queries = lengths_of(a.cu_seqlens_q, a.seqused_q, a.layout_q, count, a.max_seqlen_q)
    keys = lengths_of(a.cu_seqlens_k, a.seqused_k, a.layout_k, count, a.max_seqlen_k)
    rests = [0] * count if a.cmp_residual_k is None or not a.cmp_residual_k.size else list(a.cmp_residual_k)
    costs = [costs_of_rows(a, *each) for each in zip(queries, keys, rests, strict=True)]
    totals = [sum(total for total, _ in rows) for rows in costs]
    lasts = [([last for total, last in rows if total] or [0])[-1] for rows in costs]
    left, largest = sum(totals), max((total for rows in costs for total, _ in rows), default=0)
    ends, i, row = [], 0, 0
    while left and i < count and len(ends) < CORES:
        share, taken = max(largest, left // (CORES - len(ends))), 0
        # Whole sequences, or what is left of one.
        while i < count and taken + sum(total for total, _ in costs[i][row:]) <= share + lasts[i] // 2:
            taken += sum(total for total, _ in costs[i][row:])
            i, row = i + 1, 0
        while i < count and taken + costs[i][row][0] <= share + costs[i][row][1] // 2:
            taken += costs[i][row][0]
            row += 1
            while not costs[i][row][0]:
                row += 1
        ends.append((i, row))
        left -= taken
    if not ends:
        is_empty = all(q == 0 or k == 0 for q, k in zip(queries, keys, strict=True))
        ends.append((count if is_empty else 0, 0))
    result = np.zeros((128, 8), int)
    for core, (begin, end) in enumerate(zip([(0, 0), *ends], ends, strict=False)):
        result[core] = [1, *begin, 0, *end, 0, 0]
    return result.reshape(-1)
