from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import bfloat16, half, to_integers
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of
from tests.cabi import Dtype

KEY, ROPE = 512, 64
JOINED, SPLIT, FRACTAL_INT8, FRACTAL = range(4)
# Numbers of both signs, in lists whose lengths do not fit the sizes.
_X = "0.5,-1.25,2,0.25,-3,1.5,-0.75"
_GAMMA = "1,-0.5,1.5,0.75,-1.25"
_INTEGERS = "3,-5,7,2,-4,9,-8,6,1,-7,5"
# A scale of 2^-9 as a parameter of aclnnTransQuantParam: the bits of FLOAT.
_SCALES = {"BFLOAT16": "FLOAT[{}]:0.001953125,0.00390625", "FLOAT16": "INT64[{}]:989855744"}


def _call(name, mode, dtype="BFLOAT16", norm=True, tokens=3, **changed):
    """A call of tokens, of which the second is not written to the caches of two blocks."""
    hidden, low, heads, size = 2048, 32, 2, 16
    columns, query = low + KEY + ROPE, heads * (size + ROPE)
    is_int8, block = mode == FRACTAL_INT8, 16 if mode >= FRACTAL_INT8 else 2
    key_dtype, part = ("INT8", 32) if is_int8 else (dtype, 16)
    caches = {
        JOINED: (f"[2,{block},1,{KEY + ROPE}]", None),
        SPLIT: (f"[2,{block},1,{KEY}]", f"[2,{block},1,{ROPE}]"),
    }
    fractal = f"[2,{KEY // part},{block},{part}]", f"[2,{ROPE // 16},{block},16]"
    cache, rope_cache = caches.get(mode, fractal)
    arguments = {
        "input": f"{dtype}[{tokens},{hidden}]:{_X}",
        "gamma0": f"{dtype}[{hidden}]:{_GAMMA}",
        "beta0": f"{dtype}[{hidden}]:0.25,-0.125,0",
        "quantScale0": f"{dtype}[1]:0.03125",
        "quantOffset0": "INT8[1]:3",
        "wdqkv": f"INT8@NZ[{columns},{hidden}]:{_INTEGERS}",
        "deScale0": _SCALES[dtype].format(columns),
        "bias0": f"INT32[{columns}]:100,-200,50",
        "gamma1": f"{dtype}[{low}]:{_GAMMA}",
        "beta1": f"{dtype}[{low}]:-0.5,0.25,0.125",
        "quantScale1": f"{dtype}[1]:0.0625",
        "quantOffset1": "INT8[1]:-2",
        "wuq": f"INT8@NZ[{query},{low}]:{_INTEGERS}",
        "deScale1": _SCALES[dtype].format(query),
        "bias1": f"INT32[{query}]:-10,20,5",
        "gamma2": f"{dtype}[{KEY}]:{_GAMMA}",
        "cos": f"{dtype}[{tokens},{ROPE}]:0.25,-0.5,0.875",
        "sin": f"{dtype}[{tokens},{ROPE}]:-0.875,0.625,0.5,1",
        "wuk": f"{dtype}[{heads},{size},{KEY}]:{_X}",
        "kvCache": f"{key_dtype}{cache}",
        "kvCacheRope": f"{dtype}{rope_cache}" if rope_cache else "null",
        "slotMapping": "INT32[3]:3,-1,0" if tokens else "INT32[0]",
        "ctkvScale": f"{dtype}[1]:0.0625" if is_int8 else "null",
        "qNopeScale": f"{dtype}[{heads}]:0.5,0.25" if is_int8 else "null",
        "wdqDim": 1536,
        "qRopeDim": ROPE,
        "kRopeDim": ROPE,
        "epsilon": 0.25,
        "qRotaryCoeff": 2,
        "kRotaryCoeff": 2,
        "transposeWdq": "true",
        "transposeWuq": "true",
        "transposeWuk": "true",
        "cacheMode": mode,
        "quantMode": 0,
        "doRmsNorm": str(norm).lower(),
        "wdkvSplitCount": 1,
    }
    if name.endswith("V2"):
        arguments["qDownOutFlag"] = "true"
    arguments |= {
        "qOut": f"{key_dtype}[{tokens},{heads},{KEY + (0 if rope_cache else ROPE)}]",
        "kvCacheOut": f"{key_dtype}{cache}:7,-3,2",
        "qRopeOut": f"{dtype}[{tokens},{heads},{ROPE}]" if rope_cache else "null",
        "krCacheOut": f"{dtype}{rope_cache}:0.5,-2" if rope_cache else "null",
    }
    if name.endswith("V2"):
        arguments["qDownOut"] = f"{dtype}[{tokens},{low}]"
    return f"{name} " + " ".join(f"{key}={value}" for key, value in (arguments | changed).items())


# ops-transformer: aclnnMlaPreprocess.md, aclnnMlaPreprocessV2.md; the order of the columns and the roundings are those
# of the kernel, as the documents leave them open.
@formula(
    "aclnnMlaPreprocess",
    "aclnnMlaPreprocessV2",
    calls=[
        _call("aclnnMlaPreprocess", JOINED),
        _call("aclnnMlaPreprocess", SPLIT, "FLOAT16"),
        _call("aclnnMlaPreprocess", FRACTAL, norm=False, wdqkv=f"INT8@NZ[64,38,16,32]:{_INTEGERS}"),
        _call("aclnnMlaPreprocessV2", FRACTAL_INT8),
        _call("aclnnMlaPreprocessV2", JOINED, qDownOutFlag="false", qDownOut="null"),
        _call("aclnnMlaPreprocess", SPLIT, tokens=0),
        _call("aclnnMlaPreprocessV2", FRACTAL_INT8, tokens=0),
        _call("aclnnMlaPreprocess", JOINED, bias0="INT32[0]"),
    ],
)
def preprocess(
    x, gamma0, beta0, scale0, offset0, down, descale0, bias0, gamma1, beta1, scale1, offset1, up, descale1, bias1,
    gamma2, cos, sin, up_key, _cache, _rope_cache, slots, key_scale, query_scale, _wdq_dim, _q_rope_dim, _k_rope_dim,
    epsilon, _q_coefficient, _k_coefficient, _wdq, _wuq, _wuk, mode, _quant_mode, norms, _count, *rest, outputs,
):  # fmt: skip
    writes_low_rank, (cache, rope_cache) = (rest[0] if len(rest) == 3 else False), rest[-2:]
    is_half = dtype_of(outputs["kvCacheOut" if mode == JOINED else "qRopeOut"]) == Dtype.FLOAT16
    rounded = half if is_half else bfloat16

    def normalized(values, gamma, beta=0):
        return values / np.sqrt((values**2).mean(-1, keepdims=True) + epsilon) * gamma + beta

    def quantised(values):
        return to_integers(half(values))

    def scales(values):
        return values if not is_half else values.astype(np.uint32).view(np.float32).astype(np.float64)

    def rotated(values, cos, sin):
        first, second = np.split(values, 2, -1)
        return values * cos + np.concatenate([-second, first], -1) * sin

    def with_tokens(cache, tokens):
        by_token = cache if mode <= SPLIT else cache.swapaxes(1, 2)
        result = by_token.copy()
        for slot, token in zip(slots, tokens, strict=True):
            if slot >= 0:
                result[slot // result.shape[1], slot % result.shape[1]] = token.reshape(result.shape[2:])
        return result if mode <= SPLIT else result.swapaxes(1, 2)

    def matrix(weight):
        """A weight that may be described by its blocks (columns / 32, rows / 16, 16, 32)."""
        return weight if weight.ndim == 2 else np.concatenate(weight.reshape(len(weight), -1, 32), -1)

    start = normalized(x, gamma0, beta0) if norms else x
    columns = rounded(
        (quantised(start / scale0 + offset0) @ matrix(down).T + (bias0 if bias0.size else 0)) * scales(descale0)
    )
    key, key_rope, low = np.split(columns, [KEY, KEY + ROPE], -1)
    key, key_rope = normalized(key, gamma2), rotated(key_rope, cos, sin)
    low = normalized(low, gamma1, beta1)
    heads = rounded((quantised(low / scale1 + offset1) @ matrix(up).T + bias1) * scales(descale1))
    heads = heads.reshape(len(x), len(up_key), up_key.shape[1] + ROPE)
    query = np.einsum("thd,hdk->thk", heads[..., : up_key.shape[1]], up_key)
    query_rope = rotated(heads[..., up_key.shape[1] :], cos[:, None], sin[:, None])
    further = [low] if writes_low_rank else []
    if mode == JOINED:
        joined = np.concatenate([query, query_rope], -1)
        return joined, with_tokens(cache, np.concatenate([key, key_rope], -1)), *further
    if mode == FRACTAL_INT8:
        key, query = quantised(key / key_scale), quantised(rounded(query) * query_scale[:, None])
    return query, with_tokens(cache, key), query_rope, with_tokens(rope_cache, key_rope), *further
