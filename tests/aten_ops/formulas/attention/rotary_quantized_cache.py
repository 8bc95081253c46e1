from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of

# Small numbers of both signs, in lists whose lengths do not fit the sizes of heads.
QUERY = "0.5,-0.75,0.25,1,-0.375,-1,0.625,0.125,-0.875,0.75,-0.25"
KEY = "-0.25,1,-0.5,0.75,0.375,-1,-0.625,0.875,0.25,-0.125,0.5,-0.875,0.625"
VALUE = "0.5,-1,0.75,-0.375,0.25,-0.5,1,-0.75,0.875,-0.125,-0.625,0.375,0.125,-0.25,0.625,-0.875,1.25"
# Heads of 8 elements: four of queries, two of keys and of values.
PARAMETERS = {
    "k_cache_ref": "INT8[3,4,2,8]:-5,8,-4,1,7,-6,-7,2,-9,3,0",
    "v_cache_ref": "INT8[3,4,2,8]:5,-3,2,6,1,-6,9,-8,4,-1,-2,7,0",
    "scale_k": "FLOAT[2,8]:0.0131,0.0253,0.0317,0.0447,0.0571,0.0293,0.0389",
    "scale_v": "FLOAT[16]:0.0617,0.0083,0.0373,0.0191,0.0541",
    "size_splits": "[32,16,16]",
    "quant_mode": '"static"',
    "layout": '"BSND"',
    "q_out": "FLOAT16[2,2,4,8]",
}
ANGLES = {"cos": f"FLOAT16[2,2,1,8]:{KEY}", "sin": f"FLOAT16[2,2,1,8]:{VALUE}"}
OUTPUTS = {"kv_output": "true", "k_out": "FLOAT16[2,2,2,8]", "v_out": "FLOAT16[2,2,2,8]"}
FLAT = {
    "x": f"FLOAT16[3,64]:{QUERY}",
    "cos": f"FLOAT16[3,8]:{KEY}",
    "sin": f"FLOAT16[3,8]:{VALUE}",
    "q_out": "FLOAT16[3,4,8]",
    "k_out": "FLOAT16[3,2,8]",
    "v_out": "FLOAT16[3,2,8]",
}
INTEGERS = {
    "x": "INT32[2,2,64]:-5,5,3,-3,-1,2,-2,-8,0,4,-6,-7,7,1,6,-4,9",
    "offset_k": "FLOAT[2,8]:7,-3.25,5,6.75,1,-6,-4.75",
    "offset_v": "FLOAT[16]:-7.25,-4,1.25,4,-1",
    "weight_scale": "FLOAT[64]:0.0625,0.125,0.03125,0.21875,0.3125,0.15625,0.09375",
    "activation_scale": "FLOAT[4]:0.75,1,2,0.375",
    "indices": "INT32[2]:1,2",
}


# In a cache of pages, a token with a negative index is not written (ops-transformer: aclnnDequantRopeQuantKvcache.md).
@by_name(
    "aclnnDequantRopeQuantKvcache",
    calls=[
        call_of("aclnnDequantRopeQuantKvcache", **PARAMETERS | given)
        for given in (
            {"x": f"FLOAT16[2,2,64]:{QUERY}", "indices": "INT32[4]:11,0,-1,7", "cache_mode": '"page"'} | ANGLES,
            FLAT | {"indices": "INT32[3]:2,1,3", "kv_output": "true", "cache_mode": '"contiguous"'},
            FLAT | {"indices": "INT32[3]:9,2,4", "kv_output": "true", "cache_mode": '"page"'},
            INTEGERS | ANGLES | OUTPUTS | {"bias": "FLOAT[64]:-1.5,2,3.5,-2.25,0.625", "cache_mode": '"contiguous"'},
            INTEGERS | ANGLES | OUTPUTS | {"bias": "FLOAT16[64]:-1.5,2,3.5,-2.25,0.625"},
            INTEGERS | ANGLES | OUTPUTS | {"bias": "INT32[64]:-3,4,7,-5,6", "offset_k": "null"},
            INTEGERS | ANGLES | OUTPUTS | {"activation_scale": "null", "offset_v": "null"},
        )
    ],
)
def dequant_rope_quant_kvcache(a):
    batch, length = a.x.shape[0], a.x.shape[1] if a.x.ndim == 3 else 1
    x, size = a.x.reshape(batch * length, a.x.shape[-1]), a.k_cache_ref.shape[3]
    count, width = x.shape
    if x.dtype.kind == "i":  # dequantised; only then there are scales and a bias
        bias = 0 if a.bias is None else a.bias[:width]
        is_early = a.bias is not None and a.bias.dtype.kind == "i"
        x = (x + bias if is_early else x) * a.weight_scale[:width]
        if a.activation_scale is not None:
            x = x * a.activation_scale[:count, None]
        x = x if is_early else x + bias
    parts = np.split(x, np.cumsum(a.size_splits)[:2], 1)
    q, k, v = (part.reshape(count, part.shape[1] // size, size) for part in parts)
    cos, sin = (each.reshape(count, 1, size) for each in (a.cos, a.sin))
    q, k = (each * cos + np.concatenate([-each[..., size // 2 :], each[..., : size // 2]], -1) * sin for each in (q, k))
    places = a.indices.reshape(-1)
    if a.cache_mode != "page":
        rows = np.arange(batch) * a.k_cache_ref.shape[1] + places
        places = (rows[:, None] + np.arange(length)).reshape(-1)

    def written(cache, heads, scale, offset):
        rows = cache.reshape(-1, *cache.shape[2:]).copy()
        values = heads / scale.reshape(heads.shape[1:])
        values = np.rint(values if offset is None else values + offset.reshape(heads.shape[1:]))
        rows[places[places >= 0]] = np.clip(values, -128, 127)[places >= 0]
        return rows.reshape(cache.shape)

    caches = written(a.k_cache_ref, k, a.scale_k, a.offset_k), written(a.v_cache_ref, v, a.scale_v, a.offset_v)
    outputs = (q, k, v) if a.kv_output else (q,)
    return *caches, *(each.reshape(*a.x.shape[:-1], *each.shape[1:]) for each in outputs)
