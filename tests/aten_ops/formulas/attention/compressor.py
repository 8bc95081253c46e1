"""Compressed keys (ops-transformer: aclnnCompressor.md; for the state, the golden code of its tests)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import GRADIENT, KEY, QUERY, VALUE, by_name, call_of, tokens_used

NAME = "aclnnCompressor"


def call_of_compressor(dtype, tokens, results, pages, ratio, coff, mode=1, **others):
    """`tokens`, `results` and `pages` are sizes, such as "2,3"; heads have 128 elements."""
    width = 128 * coff
    return call_of(
        NAME,
        x=f"{dtype}[{tokens},1024]:{QUERY}",
        wkv=f"{dtype}[{width},1024]:{KEY}",
        wgate=f"{dtype}[{width},1024]:{GRADIENT}",
        state_cache_ref=f"FLOAT[{pages},{2 * width}]:{VALUE}",
        ape=f"FLOAT[{ratio},{width}]:{KEY}",
        cmp_ratio=ratio,
        coff=coff,
        cache_mode=mode,
        cmp_kv=f"{dtype}[{results},128]",
        **others,
    )


PACKED = {"cu_seqlens": "INT32[3]:0,3,8"}


# The error is that of sums of 1024 products, in FLOAT, and their exponentials.
@by_name(
    NAME,
    calls=[
        call_of_compressor("FLOAT16", "2,5", "2,3", "4,4", 2, 1, state_block_table="INT32[2,2]:1,2,3,0"),
        call_of_compressor(
            *("BFLOAT16", "2,5", "2,3", "6,4", 2, 2),
            state_block_table="INT32[2,3]:1,2,5,3,4,0",
            start_pos="INT32[2]:3,6",
            seqused="INT32[2]:5,4",
        ),
        call_of_compressor(
            *("FLOAT16", "8", "4", "4,5", 4, 2),
            **PACKED,
            state_block_table="INT32[2,2]:0,2,1,3",
            start_pos="INT32[2]:5,1",
        ),
        call_of_compressor(
            *("BFLOAT16", "8", "6", "2,9", 2, 2, 2),
            **PACKED,
            state_block_table="INT32[2]:1,0",
            start_pos="INT32[2]:3,20",
        ),
        call_of_compressor(
            *("FLOAT16", "1,5", "1,2", "2,8", 4, 1, 2), state_block_table="INT32[1]:1", start_pos="INT32[1]:6"
        ),
        call_of_compressor(
            *("FLOAT16", "1,1", "1,1", "2,8", 4, 2, 2), state_block_table="INT32[1]:1", start_pos="INT32[1]:2"
        ),
    ],
)
def compressor(a):
    """Whole groups become keys; the state of their tokens is in the cache, or that of the tokens that count later."""
    ratio, width = a.cmp_ratio, a.wkv.shape[0]
    size = width // a.coff
    layout = "TND" if a.x.ndim == 2 else "BSND"
    tokens = tokens_used(a.x, layout, a.cu_seqlens, a.seqused)
    cache, page = a.state_cache_ref.copy(), a.state_cache_ref.shape[1]
    shape = (
        (len(a.x), -(-a.x.shape[1] // ratio))
        if a.x.ndim == 3
        else (min(len(a.x), len(a.x) // ratio + len(tokens.lengths)),)
    )
    result, packed = np.zeros((*shape, size)), 0
    for i, count in enumerate(tokens.lengths):
        start = 0 if a.start_pos is None else int(a.start_pos[i])
        x = tokens.read(a.x, i)

        def place(position, i=i):
            own = a.state_block_table[i]
            return (own[position // page] if a.cache_mode == 1 else own), position % page

        new = {
            start + t: np.concatenate([a.wkv @ x[t], a.wgate @ x[t] + a.ape[(start + t) % ratio]]) for t in range(count)
        }
        whole = (start + count) // ratio
        for number, group in enumerate(range(start // ratio, whole)):
            # The preceding group with its first half, and this group with its last.
            parts = [(group, a.coff - 1)] if a.coff == 1 or group == 0 else [(group - 1, 0), (group, 1)]
            rows = []
            for each, half in parts:
                for position in range(each * ratio, (each + 1) * ratio):
                    row = new[position] if position >= start else a.state_cache_ref[place(position)]
                    rows.append(row.reshape(2, a.coff, size)[:, half])
            keys, scores = np.array(rows).swapaxes(0, 1)
            powers = np.exp(scores - scores.max(0))
            key = np.sum(keys * powers / powers.sum(0), 0)
            result[(i, number) if a.x.ndim == 3 else packed] = key
            packed += 1
        least = (whole - (a.coff - 1)) * ratio if a.cache_mode == 2 else 0
        for position, row in new.items():
            if position >= least and (a.cache_mode == 2 or place(position)[0] != 0):
                cache[place(position)] = row
    # In the order of the signature: the cache is updated in place.
    return cache, result
