from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import KEY, VALUE, by_name, call_of
from tests.aten_ops.formula_helpers.types import to_integers

# Small numbers of both signs, in lists whose lengths do not fit the sizes of heads.
QUERY = "0.5,-0.75,0.25,1,-0.375,-1,0.625,0.125,-0.875,0.75,-0.25"
# Tokens of 3 elements, two heads of 3 elements and 2 of the rotary part, keys of 4 and 2.
PLAIN = {
    "token_x": f"FLOAT[2,2,3]:{QUERY}",
    "weight_dq": "FLOAT[3,5]:0.5,0.25,-0.75,1,0.375,-0.625,0.875",
    "weight_uq_qr": f"FLOAT[5,10]:{KEY}",
    "weight_uk": f"FLOAT[2,3,4]:{VALUE}",
    "weight_dkv_kr": "FLOAT[3,6]:0.5,-0.25,0.75,-1,0.375,-0.625,0.875",
    "rmsnorm_gamma_cq": "FLOAT[5]:1,-0.5,1.5,0.75,-1.25",
    "rmsnorm_gamma_ckv": "FLOAT[4]:0.5,-0.75,1.25,1",
    "rope_sin": "FLOAT[2,2,2]:0.25,-0.5,0.875,0.375,-0.625,0.75,1",
    "rope_cos": "FLOAT[2,2,2]:-0.875,0.625,0.5,1,0.125,-0.25,0.375",
    "cache_index": "INT64[2,2]:5,0,-1,7",
    "kv_cache_ref": f"FLOAT[2,4,1,4]:{KEY}",
    "kr_cache_ref": f"FLOAT[2,4,1,2]:{VALUE}",
    "rmsnorm_epsilon_cq": 0.5,
    "rmsnorm_epsilon_ckv": 0.25,
    "cache_mode": '"PA_BSND"',
    "query_out": "FLOAT[2,2,2,4]",
    "query_rope_out": "FLOAT[2,2,2,2]",
}
# The tokens of all sequences side by side.
FLAT = PLAIN | {
    "token_x": f"FLOAT[4,3]:{QUERY}",
    "rope_sin": PLAIN["rope_sin"].replace("2,2,2", "4,2"),
    "rope_cos": PLAIN["rope_cos"].replace("2,2,2", "4,2"),
    "cache_index": "INT64[4]:5,0,-1,7",
    "query_out": "FLOAT[4,2,4]",
    "query_rope_out": "FLOAT[4,2,2]",
}
QUANTISED = {
    "weight_uq_qr": "INT8[5,10]:-5,6,3,8,-7,-8,4,2,-9,-3,7,5,1",
    "dequant_scale_wuq_qr": "FLOAT[1,10]:0.046875,0.078125,0.125,0.0703125,0.1015625",
}
QUANTISED_CACHES = {
    "kv_cache_ref": "INT8[2,4,1,4]:8,-9,7,2,-6,4,-5,-2,3,1,-3",
    "kr_cache_ref": "INT8[2,4,1,2]:-8,1,-6,-3,4,2,9,-2,6,7,5",
    "quant_scale_ckv": "FLOAT[1,4]:35.5,23.25,41.75,17.125",
    "quant_scale_ckr": "FLOAT[1,2]:29.375,33.625",
}
SMOOTH = {"smooth_scales_cq": "FLOAT[1,5]:0.0859375,0.0234375,0.0625,0.046875,0.109375"}
# All inputs are INT8. The keys' cache has one scale, the first.
ALL_QUANTISED = QUANTISED | {
    "token_x": "INT8[2,2,3]:5,-3,7,2,-8,4,-6,1,9,-5,3",
    "weight_dq": "INT8[3,5]:3,-5,7,2,-4,9,-8,6,1,-7,5",
    "weight_dkv_kr": "INT8[3,6]:-4,7,3,-6,8,5,-9,2,1,-3,6",
    "dequant_scale_x": "FLOAT[4,1]:0.25,0.125,0.1875,0.3125",
    "dequant_scale_wdq": "FLOAT[1,5]:0.03125,0.0625,0.046875,0.0390625,0.0546875",
    "dequant_scale_wdkv_kr": "FLOAT[1,6]:0.0234375,0.09375,0.03125,0.046875,0.0390625,0.0546875",
}
QUANTISED_QUERY = {
    "kv_cache_ref": QUANTISED_CACHES["kv_cache_ref"],
    "quant_scale_ckv": "FLOAT[1,4]:37.25,1,2,3",
    "query_out": "INT8[2,2,2,4]",
    "dequant_scale_qnope_out": "FLOAT[4,2,1]",
}
FRACTAL = {
    "token_x": f"BFLOAT16[2,3]:{QUERY}",
    "weight_dq": "BFLOAT16[3,2]:0.5,-0.25,0.75,1,0.375",
    "weight_uq_qr": f"BFLOAT16[2,18]:{KEY}",
    "weight_uk": f"BFLOAT16[1,2,32]:{VALUE}",
    "weight_dkv_kr": f"BFLOAT16[3,48]:{QUERY}",
    "rmsnorm_gamma_cq": "BFLOAT16[2]:1,-0.5",
    "rmsnorm_gamma_ckv": f"BFLOAT16[32]:{KEY}",
    "rope_sin": f"BFLOAT16[2,16]:{VALUE}",
    "rope_cos": f"BFLOAT16[2,16]:{QUERY}",
    "cache_index": "INT64[2]:6,1",
    "kv_cache_ref": f"BFLOAT16[2,4,1,32]:{KEY}",
    "kr_cache_ref": f"BFLOAT16[2,4,1,16]:{VALUE}",
    "cache_mode": '"PA_NZ"',
    "query_out": "BFLOAT16[2,1,32]",
    "query_rope_out": "BFLOAT16[2,1,16]",
}
FRACTAL_QUANTISED = FRACTAL | {
    "weight_uq_qr": "INT8[2,34]:-5,6,3,8,-7,-8,4,2,-9,-3,7,5,1",
    "weight_uk": f"BFLOAT16[1,2,64]:{VALUE}",
    "weight_dkv_kr": f"BFLOAT16[3,96]:{QUERY}",
    "rmsnorm_gamma_ckv": f"BFLOAT16[64]:{KEY}",
    "rope_sin": f"BFLOAT16[2,32]:{VALUE}",
    "rope_cos": f"BFLOAT16[2,32]:{QUERY}",
    "kv_cache_ref": "INT8[2,4,1,64]:8,-9,7,2,-6,4,-5,-2,3,1,-3",
    "kr_cache_ref": "INT8[2,4,1,32]:-8,1,-6,-3,4,2,9,-2,6,7,5",
    "dequant_scale_wuq_qr": "FLOAT[1,34]:0.046875,0.078125,0.125,0.0703125,0.1015625",
    "quant_scale_ckv": "FLOAT[1,64]:35.5,23.25,41.75,17.125",
    "quant_scale_ckr": "FLOAT[1,32]:29.375,33.625,24.25",
    "query_out": "BFLOAT16[2,1,64]",
    "query_rope_out": "BFLOAT16[2,1,32]",
}
VERSION_3 = {"tile_size": 128, "qc_qr_scale": 0.5, "kc_scale": 2}
SOME_BY_MODE = VERSION_3 | QUANTISED | {"weight_quant_mode": 1}
CACHES_BY_MODE = SOME_BY_MODE | QUANTISED_CACHES | {"kv_cache_quant_mode": 2}
ALL_BY_MODE = VERSION_3 | ALL_QUANTISED | {"weight_quant_mode": 2}
QUERY_BY_MODE = ALL_BY_MODE | QUANTISED_QUERY | {"kv_cache_quant_mode": 1, "query_quant_mode": 1}
QUERY_BY_MODE |= {"quant_scale_ckv": "FLOAT[1]:37.25"}


def calls_of(name, *givens):
    """The calls; the names of functions tell which format the weights have."""
    is_nz = name == "aclnnMlaProlog" or name.endswith("WeightNz")
    weights = ("weight_dq", "weight_uq_qr", "weight_dkv_kr")
    return [
        call_of(name, **given | {weight: given[weight].replace("[", "@NZ[" if is_nz else "[", 1) for weight in weights})
        for given in givens
    ]


def normalised(x, gamma, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gamma


def rotated(x, cos, sin):
    """The elements at even places, then the others: formula 15 of ops-transformer's design of MlaProlog."""
    even, odd = x[..., ::2], x[..., 1::2]
    return np.concatenate([even, odd], -1) * cos + np.concatenate([-odd, even], -1) * sin


def matrix(weight):
    """A matrix that may be given by the sizes of its blocks in FRACTAL_NZ."""
    if weight.ndim == 2:
        return weight
    columns, rows, height, width = weight.shape
    return weight.transpose(1, 2, 0, 3).reshape(rows * height, columns * width)


def by_rows(x):
    """Each row in INT8, and its scale."""
    scale = abs(x).max(-1, keepdims=True) / 127
    return np.rint(x / scale), scale


def with_tokens(a, cache, tokens):
    """The cache with the tokens at the places that are not negative."""
    pages, page, _, size = cache.shape
    if cache.size == 0:
        return cache
    width = 32 if cache.dtype.kind == "i" else 16  # elements in 32 bytes, of INT8 or BFLOAT16
    parts = cache.reshape(pages, size // width, page, width).swapaxes(1, 2) if a.cache_mode == "PA_NZ" else cache
    rows = parts.reshape(pages * page, size).copy()
    for place, token in zip(a.cache_index.reshape(-1), tokens, strict=True):
        if place >= 0:
            rows[place] = token if cache.dtype.kind == "f" else to_integers(token)
    if a.cache_mode == "PA_NZ":
        return rows.reshape(pages, page, size // width, width).swapaxes(1, 2).reshape(cache.shape)
    return rows.reshape(cache.shape)


# With tokens and caches of INT8, the query has INT8, and the rotary part of the query is divided by the scale of the
# other part, times that of the cache (op_kernel/arch22/service_dynamic_quant_qn_mul_qr_arch22.h). The third version
# scales the norms (ops-transformer: aclnnMlaProlog.md, aclnnMlaPrologV2WeightNz.md, aclnnMlaPrologV3WeightNz.md).
@by_name(
    "aclnnMlaProlog",
    "aclnnMlaPrologV2",
    "aclnnMlaPrologV2WeightNz",
    "aclnnMlaPrologV3",
    "aclnnMlaPrologV3WeightNz",
    calls=calls_of("aclnnMlaProlog", PLAIN, PLAIN | QUANTISED, PLAIN | QUANTISED | QUANTISED_CACHES | SMOOTH)
    + calls_of("aclnnMlaPrologV2", FLAT, FLAT | FRACTAL, FLAT | FRACTAL_QUANTISED)
    + calls_of(
        "aclnnMlaPrologV2WeightNz",
        FLAT,
        FLAT | FRACTAL,
        PLAIN | ALL_QUANTISED | SMOOTH,
        PLAIN | ALL_QUANTISED | QUANTISED_QUERY,
        PLAIN | ALL_QUANTISED | QUANTISED_QUERY | SMOOTH,
    )
    + calls_of("aclnnMlaPrologV3", PLAIN | VERSION_3, PLAIN | SOME_BY_MODE)
    + calls_of(
        "aclnnMlaPrologV3WeightNz",
        PLAIN | VERSION_3,
        PLAIN | CACHES_BY_MODE,
        PLAIN | ALL_BY_MODE,
        PLAIN | QUERY_BY_MODE | SMOOTH,
    ),
)
def mla_prolog(a):
    leading = a.token_x.shape[:-1]
    tokens = int(np.prod(leading))
    heads, size, key_size = a.weight_uk.shape
    x, sin, cos = (each.reshape(tokens, each.shape[-1]) for each in (a.token_x, a.rope_sin, a.rope_cos))
    has_quantised_tokens, has_quantised_cache = (each.dtype.kind == "i" for each in (a.token_x, a.kv_cache_ref))
    if tokens == 0:
        empty = np.zeros((*leading, heads, key_size)), np.zeros((*leading, heads, sin.shape[1]))
        return a.kv_cache_ref, a.kr_cache_ref, *empty

    def projected(weight, scale):
        return x @ matrix(weight) * (a.dequant_scale_x * scale if has_quantised_tokens else 1)

    c = normalised(projected(a.weight_dq, a.dequant_scale_wdq), a.rmsnorm_gamma_cq, a.rmsnorm_epsilon_cq)
    c = c * (a.qc_qr_scale or 1)
    if a.weight_uq_qr.dtype.kind == "i":
        integers, scale = by_rows(c if a.smooth_scales_cq is None else c * a.smooth_scales_cq)
        q = integers @ matrix(a.weight_uq_qr) * scale * a.dequant_scale_wuq_qr
    else:
        q = c @ matrix(a.weight_uq_qr)
    q = q.reshape(tokens, heads, -1)
    query = np.einsum("tnd,ndk->tnk", q[..., :size], a.weight_uk)
    rope = rotated(q[..., size:], cos[:, None], sin[:, None])

    both = projected(a.weight_dkv_kr, a.dequant_scale_wdkv_kr)
    key = normalised(both[:, :key_size], a.rmsnorm_gamma_ckv, a.rmsnorm_epsilon_ckv) * (a.kc_scale or 1)
    key_rope = rotated(both[:, key_size:], cos, sin)
    scales = ()
    if has_quantised_cache and has_quantised_tokens:
        query, query_scale = by_rows(query)
        first = a.quant_scale_ckv.reshape(-1)[0]
        rope, key, scales = rope * first / query_scale, key * first, (query_scale,)
    elif has_quantised_cache:
        key, key_rope = key * a.quant_scale_ckv, key_rope * a.quant_scale_ckr
    caches = with_tokens(a, a.kv_cache_ref, key), with_tokens(a, a.kr_cache_ref, key_rope)
    return *caches, *(each.reshape(*leading, heads, -1) for each in (query, rope)), *scales
