"""Quantised tokens in caches in pages (ops-transformer: aclnnKvCompressEpilog.md, aclnnIndexerQuantCache.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of
from tests.aten_ops.formula_helpers.mx import elements, numbers, scales
from tests.aten_ops.formula_helpers.types import E4M3, TYPES, bfloat16, cast, single
from tests.aten_ops.sweep import dtype_of

LEAST = single(1e-4)  # of a group's largest magnitude, as in the published kernels


def written(cache, tokens, slots):
    """The cache (pages, tokens, 1, elements) with the first elements of a slot replaced; slot -1 is not written."""
    result = cache.copy()
    for token, slot in zip(tokens, slots.reshape(-1), strict=True):
        if slot >= 0:
            result[slot // cache.shape[1], slot % cache.shape[1], 0, : len(token)] = token
    return result


def rounded_up(number):
    """The power of two that is not less."""
    mantissa, exponent = np.frexp(number)
    return 2.0 ** (exponent - (mantissa == 0.5))


def quotient(rows, scale):
    """In FLOAT, as it is rounded again."""
    with np.errstate(all="ignore"):
        return single(rows / scale)


def float8_bytes(values):
    """The codes of FLOAT8_E4M3FN."""
    codes = np.arange(127)
    exponent, mantissa = codes >> 3, codes & 7
    table = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    rounded = cast(np.clip(values, -448, 448), E4M3)
    return np.searchsorted(table, np.abs(rounded)) + 128 * np.signbit(values)


def bfloat16_bytes(values):
    bits = np.asarray(values, np.float32).view(np.uint32) >> 16
    return np.stack([bits & 255, bits >> 8], -1).reshape(*bits.shape[:-1], -1)


COMPRESS = "aclnnKvCompressEpilog"


def call_of_compress(size, mode, rounds, **others):
    given = {"x": f"BFLOAT16[4,{size}]:{numbers()}", "slot_mapping": "INT32[4]:5,-1,0,3", "quant_group_size": 64}
    given |= {"cache_ref": "UINT8[2,3,1,384]:3,1,4,1,5,9,2,6", "x_scale": 1}
    return call_of(COMPRESS, **given | {"quant_mode": mode, "round_scale": rounds} | others)


@by_name(
    COMPRESS,
    calls=[
        call_of_compress(256, 1, "true"),
        call_of_compress(192, 1, "false", slot_mapping="INT64[4]:1,2,-1,4"),
        call_of_compress(256, 0, "true"),
        call_of_compress(128, 0, "false", cache_ref="UINT8[1,6,1,224]:7"),
        call_of_compress(128, 1, "true", x="BFLOAT16[2,2,128]:1e-6,2e-7,0", slot_mapping="INT32[2,2]:0,1,-1,2"),
        call_of_compress(128, 1, "true", x="BFLOAT16[4,128]:7,-7,3.5", cache_ref="UINT8[2,3,1,193]"),
    ],
)
def kv_compress_epilog(a):
    """The rotary part, the other elements in groups of 64, and the scales of the groups."""
    rows = a.x.reshape(-1, a.x.shape[-1])
    groups = rows[:, :-64].reshape(len(rows), -1, 64)
    scale = single(single(np.maximum(np.abs(groups).max(-1), LEAST)) * single(1 / 448))
    scale = rounded_up(scale) if a.round_scale else scale
    quantised = float8_bytes(quotient(groups, scale[..., None])).reshape(len(rows), -1)
    stored = bfloat16_bytes(bfloat16(scale)) if a.quant_mode == 0 else np.frexp(scale)[1] + 126
    tokens = np.concatenate([bfloat16_bytes(rows[:, -64:]), quantised, stored], 1)
    padding = -tokens.shape[1] % 32 if a.quant_mode == 0 else 0
    return written(a.cache_ref, np.pad(tokens, [(0, 0), (0, padding)]), a.slot_mapping)


INDEXER = "aclnnIndexerQuantCache"


def call_of_indexer(dtype, mode, rounds, scale, x=None, **others):
    return call_of(
        INDEXER,
        cache_ref=f"{dtype}[2,3,1,96]:0.5,-1,2",
        cache_scale_ref=f"{scale}",
        x=x or f"FLOAT16[4,64]:{numbers()}",
        slot_mapping="INT32[4]:5,-1,0,3",
        quant_mode=mode,
        round_scale=rounds,
        x_scale=1,
        **others,
    )


E8M0 = "FLOAT8_E8M0[2,3,1,3]:2,4,0.5"
SINGLE = "FLOAT[2,3,1,2]:2,4,0.5"


@by_name(
    INDEXER,
    calls=[
        call_of_indexer("FLOAT8_E4M3FN", 0, "true", E8M0),
        call_of_indexer("FLOAT8_E5M2", 0, "false", E8M0, x=f"BFLOAT16[4,96]:{numbers(seed=1)}"),
        call_of_indexer("FLOAT8_E4M3FN", 0, "true", E8M0, x="FLOAT16[4,64]:1e-6,-7,0"),
        call_of_indexer("FLOAT8_E4M3FN", 1, "true", SINGLE),
        call_of_indexer("FLOAT8_E4M3FN", 1, "false", SINGLE, x=f"BFLOAT16[4,96]:{numbers(seed=2)}"),
        call_of_indexer("FLOAT8_E5M2", 1, "false", SINGLE, x="FLOAT16[4,32]:0"),
        call_of_indexer("FLOAT8_E5M2", 1, "true", SINGLE, x="FLOAT16[4,32]:1,inf,-3,7,-inf,0.5"),
        call_of_indexer("FLOAT4_E2M1", 3, "false", E8M0),
        call_of_indexer("FLOAT4_E2M1", 3, "true", E8M0, x=f"BFLOAT16[4,96]:{numbers(seed=3)}"),
    ],
)
def indexer_quant_cache(a):
    """Blocks of 32 with a power of two as their scale, or rows with a scale in FLOAT."""
    dtype = dtype_of(a.outputs["cacheRef"])
    rows = a.x.reshape(-1, a.x.shape[-1])
    blocks = rows.reshape(len(rows), -1, 32)
    largest = np.abs(blocks).max(-1)
    if a.quant_mode == 3:
        scale = scales(largest, dtype, 0)
        quantised = elements(blocks, scale[..., None], dtype, "rint")
    elif a.quant_mode == 0:
        scale = rounded_up(single(np.maximum(largest, LEAST) * single(1 / TYPES[dtype][3])))
        quantised = cast(blocks / scale[..., None], dtype)
    else:
        finite = np.where(np.isfinite(rows), np.abs(rows), 0).max(-1, keepdims=True)
        scale = single(finite * single(1 / TYPES[dtype][3]))
        scale = np.where(scale == 0, 0, rounded_up(scale)) if a.round_scale else scale
        own = single(rows * quotient(1, scale))
        own = np.where(np.isfinite(own), own, rows)
        quantised = np.where(np.isfinite(own), cast(own, dtype), own)
    tokens = quantised.reshape(len(rows), -1)
    return written(a.cache_ref, tokens, a.slot_mapping), written(a.cache_scale_ref, scale, a.slot_mapping)
