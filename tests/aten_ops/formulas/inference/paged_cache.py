from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula

UNCOMPRESSED = "compressLensOptional=null compressSeqOffsetOptional=null seqLensOptional=null"
KEYS = f"key={signed('3,2,2', 1, 'FLOAT16')} keyCacheRef={signed('2,2,2,2', 2, 'FLOAT16')}"
VALUES = f"value={signed('3,2,3', 3, 'FLOAT16')} valueCacheRef={signed('2,2,2,3', 4, 'FLOAT16')}"
NZ = f"key={signed('3,2,8', 1)} keyCacheRef={signed('2,2,2,8', 2)}"


def written(cache, tokens, slots):
    """The cache (blocks, block, ...) with a token in each slot; a negative slot is not written."""
    result = cache.copy()
    for token, slot in zip(tokens, slots, strict=True):
        if slot >= 0:
            result[slot // cache.shape[1], slot % cache.shape[1]] = token
    return result


# ops-transformer: aclnnScatterPaCache.md, case 1
@formula(
    "aclnnScatterPaCache",
    calls=[f"aclnnScatterPaCache {KEYS} slotMapping=INT32[3]:3,-1,2 {UNCOMPRESSED} cacheMode=null"],
)
def scatter(key, cache, slots, *_):
    return written(cache, key, slots)


# ops-transformer: aclnnScatterPaKvCache.md, cases 1 (PA_NZ), 2 and 6 (no value). In PA_NZ a block has pieces of 32
# bytes: (pieces, tokens, size of a piece).
@formula(
    "aclnnScatterPaKvCache",
    calls=[
        f"aclnnScatterPaKvCache {keys} slotMapping=INT64[3]:{slots} {values} {UNCOMPRESSED} cacheModeOptional={mode} "
        f'scatterModeOptional="None" stridesOptional=[1,1] offsetsOptional=[0,0]'
        for keys, slots, values, mode in (
            (KEYS, "3,0,2", VALUES, '"Norm"'),
            (KEYS, "3,-1,1", VALUES, "null"),
            (KEYS, "3,0,2", "value=FLOAT16[0] valueCacheRef=FLOAT16[0]", '"Norm"'),
            (NZ, "3,0,-1", f"value={signed('3,2,4', 3)} valueCacheRef={signed('2,1,2,8', 4)}", '"PA_NZ"'),
        )
    ],
)
def scatter_both(key, key_cache, slots, value, value_cache, *rest):
    is_in_pieces = rest[3] == "PA_NZ"

    def result(cache, tokens):
        if tokens.size == 0 or not is_in_pieces:
            return written(cache, tokens, slots) if tokens.size else cache
        pieces = tokens.reshape(len(tokens), cache.shape[1], cache.shape[3])
        return written(cache.swapaxes(1, 2), pieces, slots).swapaxes(1, 2)

    return result(key_cache, key), result(value_cache, value)


# ops-transformer: aclnnGatherPaKvCache.md. Where the tables have no block, or one that does not exist, a token is 0;
# what does not fit in the outputs is left out, and rows without a token keep their values.
@formula(
    "aclnnGatherPaKvCache",
    calls=[
        f"aclnnGatherPaKvCache keyCache={signed('3,2,2,2', 1, 'FLOAT16')} valueCache={signed('3,2,2,3', 2, 'FLOAT16')} "
        f"blockTables=INT32[2,2]:2,0,1,5 seqLens=INT32{lengths} keyRef={signed('6,2,2', 3, 'FLOAT16')} "
        f'valueRef={signed("6,2,3", 4, "FLOAT16")} seqOffsetOptional={offset} cacheMode="Norm" isSeqLensCumsum={flag}'
        for lengths, offset, flag in (
            ("[2]:3,2", "null", "false"),
            ("[2]:3,9", "INT32[2]:2,0", "false"),
            ("[3]:0,3,6", "null", "true"),
            ("[3]:0,4,6", "null", "true"),
        )
    ],
)
def gather(key_cache, value_cache, tables, lengths, key, value, offsets, _mode, is_cumulative):
    counts = np.diff(lengths) if is_cumulative else lengths
    block = key_cache.shape[1]
    places = []
    for i, count in enumerate(counts):
        first = 0 if offsets is None else offsets[i] // block
        for token in range(count):
            column = first + token // block
            places.append((tables[i, column] if column < tables.shape[1] else -1, token % block))
    results = key.copy(), value.copy()
    for result, cache in zip(results, (key_cache, value_cache), strict=True):
        for row, (number, token) in enumerate(places[: len(result)]):
            result[row] = cache[number, token] if 0 <= number < len(cache) else 0
    return results


# ops-transformer: aclnnScatterPaKvCacheWithKScale.md. A slot outside the caches is not written.
@formula(
    "aclnnScatterPaKvCacheWithKScale",
    calls=[
        f"aclnnScatterPaKvCacheWithKScale key={dtype}[3,2,4]:1,-2,3,0.5,8 value={dtype}[3,2,3]:4,-1.5,2,16 "
        f"keyCacheRef={dtype}[2,2,2,4]:0.25,12,-6 valueCacheRef={dtype}[2,2,2,3]:-0.25,14 "
        f"slotMapping=INT64[3]:{slots} keyScale=FLOAT[3,2] keyScaleCacheRef=FLOAT[2,2,2,1]:0.75,3 "
        f"cacheLayoutOptional={layout}"
        for dtype, slots, layout in (("FLOAT8_E5M2", "1,-1,2", "null"), ("FLOAT8_E4M3FN", "0,3,4", '"BNBD"'))
    ],
)
def scatter_with_scales(key, value, key_cache, value_cache, slots, scale, scale_cache, _layout):
    inside = [i for i, slot in enumerate(slots) if slot < key_cache.shape[0] * key_cache.shape[2]]

    def result(cache, tokens):
        return written(cache.swapaxes(1, 2), tokens[inside], slots[inside]).swapaxes(1, 2)

    return result(key_cache, key), result(value_cache, value), result(scale_cache, scale[..., None])
