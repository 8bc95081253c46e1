"""The distribution of queries to cores (ops-transformer: aclnnSparseLightningIndexerKLLossGradMetadata.md has the
layout for products before Ascend950, and the published AI CPU kernel for Atlas A2 the rule)."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of, seen_keys
from tests.aten_ops.formula_helpers.schedules import CORES

NAME = "aclnnSparseLightningIndexerKLLossGradMetadata"


def call_of_metadata(**given):
    defaults = {"num_heads_q": 64, "num_heads_k": 1, "head_dim": 128, "topk": 512, "cmp_ratio": 1}
    defaults |= {"layout_q": '"BSND"', "layout_k": '"BSND"', "metadata": "INT32[64]:3,1,4"}
    return call_of(NAME, **defaults | given)


PACKED = {"layout_q": '"TND"', "layout_k": '"TND"', "cu_seq_lens_q": "INT32[4]:0,7,40,90"}
PACKED |= {"cu_seq_lens_k": "INT32[4]:0,100,110,700"}


@by_name(
    NAME,
    calls=[
        call_of_metadata(batch_size=2, max_seq_len_q=50, max_seq_len_k=300, mask_mode=3),
        call_of_metadata(batch_size=1, max_seq_len_q=50, max_seq_len_k=3000, mask_mode=3, topk=2048),
        call_of_metadata(**PACKED, mask_mode=3, cmp_ratio=4, topk=8),
        call_of_metadata(**PACKED, mask_mode=3, cmp_ratio=4, cmp_residual_k="INT32[3]:3,0,1", topk=200),
        # Queries without keys, first and last; fewer queries than cores; queries that are not counted; no keys.
        call_of_metadata(**PACKED | {"cu_seq_lens_k": "INT32[4]:0,3,20,28"}, mask_mode=3, topk=4096),
        call_of_metadata(batch_size=1, max_seq_len_q=7, max_seq_len_k=100, topk=60),
        call_of_metadata(**PACKED, batch_size=2, cmp_residual_k="INT32[2]:0", topk=8192),
        call_of_metadata(**PACKED | {"cu_seq_lens_k": "INT32[4]:0"}),
        call_of_metadata(**PACKED | {"cu_seq_lens_k": "INT32[4]:0,90,90,90"}, batch_size=1, topk=16),
    ],
)
def metadata(a):
    """The longest part is as short as can be; each core then takes the share of the rest that is closest to its own."""
    count = a.batch_size or len(a.cu_seq_lens_q) - 1
    queries, keys = [a.max_seq_len_q] * count, [a.max_seq_len_k] * count
    if a.layout_q == "TND":
        queries, keys = np.diff(a.cu_seq_lens_q)[:count], np.diff(a.cu_seq_lens_k)[:count]
    rests = a.cmp_residual_k if a.cmp_residual_k is not None and a.cmp_residual_k.size else [0] * count
    own = min(256, a.topk, max(64, a.topk // 4))
    times = []
    for rows, columns, rest in zip(queries, keys, rests, strict=True):
        for row in range(rows):
            seen = seen_keys(row, rows, columns, a.cmp_ratio, rest) if a.mask_mode == 3 else columns
            times.append(int(min(seen, a.topk) + own if seen else 0))

    total, cores = len(times), min(len(times), CORES, 25)
    before = [0, *accumulate(times)]

    def fits(begin, parts, most):
        """Whether the queries from `begin` on fit into parts that each take no longer than `most`."""
        used = 0
        for time in times[begin:]:
            if parts and used + time > most:
                parts, used = parts - 1, 0
            used += time
        return parts > 0

    begins = []
    if any(times):
        begins = [next(i for i, time in enumerate(times) if time)]
        parts = min(cores, total - begins[0])
        most = next(each for each in range(max(times), sum(times) + 1) if fits(begins[0], parts, each))
        for left in range(parts - 1, 0, -1):
            begin = begins[-1]
            possible = range(begin + 1, total - left + 1)
            possible = [i for i in possible if before[i] - before[begin] <= most and fits(i, left, most)]
            share = before[begin] + -(-(before[-1] - before[begin]) // (left + 1))
            chosen = next((i for i in possible if before[i] >= share), possible[-1])
            if chosen > possible[0] and share - before[chosen - 1] <= abs(before[chosen] - share):
                chosen -= 1
            begins.append(chosen)
    numbers = [cores, total, -(-total // cores), *[0] * 5, *begins, *[total] * (25 - len(begins))]
    return np.array(numbers + [0] * (64 - len(numbers)))
