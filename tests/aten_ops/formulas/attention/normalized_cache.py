from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import E4M3, bfloat16, cast, to_integers
from tests.aten_ops.formulas import formula

SIZE = 128  # of a head


def normalized_and_rotated(heads, gamma, cos, sin, epsilon):
    """Heads (tokens, heads, elements), divided by their root mean square, and rotated."""
    x = heads / np.sqrt(np.mean(heads**2, -1, keepdims=True) + epsilon) * gamma
    turned = np.concatenate([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
    return x * cos[:, None] + turned * sin[:, None]


def with_tokens(cache, index, heads, scale, offset):
    """The cache of (pages, parts of all heads, tokens of a page, elements of a part) with the tokens written."""
    values = heads if scale is None else to_integers(heads / scale + (0 if offset is None else offset))
    result = cache.copy()
    page, width = cache.shape[2:]
    for place, token in zip(index, values, strict=True):
        if place >= 0:
            result[place // page, :, place % page] = token.reshape(-1, width)
    return result


@formula(
    "aclnnQkvRmsNormRopeCache",
    calls=[
        "aclnnQkvRmsNormRopeCache qkv=FLOAT16[2,512]:0.5,-1,2,0.25,-3,1.5,-0.75 qGamma=FLOAT16[128]:1,-0.5,2"
        " kGamma=FLOAT16[128]:1,2,-0.5,0.25,1.5 cos=FLOAT16[2,128] sin=FLOAT16[2,128]:0.25,-0.5,0.75,1,-0.125"
        " index=INT64[2]:0,31 qOut=FLOAT16[2,256] kCache=INT8[1,4,32,32] vCache=INT8[1,4,32,32]"
        " kScaleOptional=FLOAT[128]:0.0625,0.03125,0.046875 vScaleOptional=FLOAT[1]:0.01171875 kOffsetOptional=null"
        " vOffsetOptional=FLOAT[128]:0.25,3.25,-2.25,5 qkvSize=[2,1,4,128] headNums=[2,1,1] epsilon=0.5"
        ' cacheModeOptional="PA_NZ" qOutBeforeQuant=FLOAT16[2,256] kOutBeforeQuant=FLOAT16[2,128]'
        " vOutBeforeQuant=FLOAT16[2,128]"
    ],
)
def qkv_rms_norm_rope_cache(
    qkv, q_gamma, k_gamma, cos, sin, index, _q_out, k_cache, v_cache, k_scale, v_scale, k_offset, v_offset,
    _sizes, head_counts, epsilon, _mode,
):  # fmt: skip
    tokens = len(qkv)
    parts = np.split(qkv.reshape(tokens, -1, SIZE), np.cumsum(head_counts)[:2], 1)
    q = normalized_and_rotated(parts[0], q_gamma, cos, sin, epsilon)
    k = normalized_and_rotated(parts[1], k_gamma, cos, sin, epsilon)
    caches = (
        with_tokens(k_cache, index, k, k_scale, k_offset),
        with_tokens(v_cache, index, parts[2], v_scale, v_offset),
    )
    q, k, v = (each.reshape(tokens, -1) for each in (q, k, parts[2]))
    return q, *caches, q, k, v


_SCALED_CACHES = (
    "kCacheRef=FLOAT8_E4M3FN[2,2,3,128]:0.25,-6 vCacheRef=FLOAT8_E4M3FN[2,2,3,128]:-0.25,14 "
    "kScaleCacheRef=FLOAT[2,2,3,1]:0.5,2"
)


# ops-transformer: aclnnQkvRmsNormRopeCacheWithKScale.md; the product with the matrix is of BFLOAT16, as in the kernel.
@formula(
    "aclnnQkvRmsNormRopeCacheWithKScale",
    calls=[
        f"aclnnQkvRmsNormRopeCacheWithKScale qkv=BFLOAT16[{shape},128]:0.5,-1,2,0.25,-3,1.5,-0.75 "
        "qGamma=FLOAT[128]:64,-32,128 kGamma=FLOAT[128]:1,2,-0.5,0.25,1.5 cosSin=FLOAT[7,128]:0.25,-0.5,0.75,1,-0.125 "
        f"slotMapping=INT32[4]:5,0,2,1 {_SCALED_CACHES} queryStartLoc=INT32[4]:0,1,1,4 seqLens=INT32[3]:7,2,5 "
        "rotationOptional=BFLOAT16[128,128]:0.5,-0.25,0.125,1,-0.75,0.375,0.0625 vScaleOptional=FLOAT[2]:0.75,300 "
        f"headNums=[3,2,2] layoutQkv={layout} layoutQOut={layout_out} epsilon=0.5 qOut=FLOAT8_E4M3FN[{out},128] "
        f"qScale=FLOAT[{out}]"
        for shape, layout, layout_out, out in (
            ("4,7", '"TND"', '"TND"', "4,3"),
            ("4,7", "null", "null", "3,4"),
            ("7,4", '"NTD"', '"NTD"', "3,4"),
        )
    ],
)
def qkv_with_scales_of_keys(
    qkv, q_gamma, k_gamma, cos_sin, slots, k_cache, v_cache, scale_cache, starts, lengths, rotation, v_scale,
    head_counts, layout, layout_out, epsilon,
):  # fmt: skip
    by_token = qkv.swapaxes(0, 1) if layout == "NTD" else qkv
    positions = [
        lengths[b] - (starts[b + 1] - starts[b]) + i
        for b in range(len(lengths))
        for i in range(starts[b + 1] - starts[b])
    ]
    cos, sin = (np.tile(half, 2) for half in np.split(cos_sin[positions], 2, -1))
    parts = np.split(by_token, np.cumsum(head_counts)[:2], 1)

    def quantised(heads, gamma):
        turned = bfloat16(normalized_and_rotated(heads, gamma, cos, sin, epsilon)) @ rotation
        scale = np.abs(turned).max(-1, keepdims=True) / 448
        return cast(turned / scale, E4M3), scale

    def in_slots(cache, heads):
        result = cache.copy()
        for slot, token in zip(slots, heads, strict=True):
            result[slot // cache.shape[2], :, slot % cache.shape[2]] = token
        return result

    (q, q_scale), (k, k_scale) = quantised(parts[0], q_gamma), quantised(parts[1], k_gamma)
    v = cast(parts[2] * v_scale[:, None], E4M3)
    caches = in_slots(k_cache, k), in_slots(v_cache, v), in_slots(scale_cache, k_scale)
    if layout_out != "TND":
        q, q_scale = q.swapaxes(0, 1), q_scale.swapaxes(0, 1)
    return *caches, q, q_scale[..., 0]


# Values come first in kv. Keys are rotated after their elements at even places are put before the others
# (KvRmsNormRopeCache/README.md).
@formula(
    "aclnnKvRmsNormRopeCache",
    calls=[
        "aclnnKvRmsNormRopeCache kv=FLOAT16[2,1,2,64]:0.5,-1,2,0.25,-3,1.5,-0.75 gamma=FLOAT16[32]:1,-0.5,2 "
        "cos=FLOAT16[2,1,2,32]:0.5,-0.75,1,0.125,0.25 sin=FLOAT16[2,1,2,32]:0.25,-0.5,0.75,1,-0.125,-0.25 "
        "index=INT64[4]:31,-1,2,15 kCacheRef=FLOAT16[2,16,1,32] ckvCacheRef=FLOAT16[2,16,1,32] kRopeScaleOptional=null "
        "cKvScaleOptional=null kRopeOffsetOptional=null cKvOffsetOptional=null epsilon=0.5 "
        'cacheModeOptional="PA_NZ" isOutputKv=true kRopeOut=FLOAT16[2,1,2,32] cKvOut=FLOAT16[2,1,2,32]',
        "aclnnKvRmsNormRopeCache kv=FLOAT16[2,1,2,6]:4,-1.625,-1.125,3.625,-3,2.5,-3.5,1.375,2.25,-2.25,-1.25 "
        "gamma=FLOAT16[4]:1,1.125,-0.125,-1.25 cos=FLOAT16[2,1,1,2]:1.625,-0.25,1.5,0.5 "
        "sin=FLOAT16[2,1,1,2]:-0.75,2,-0.625,0.625 index=INT64[2,2]:2,-1,0,1 "
        "kCacheRef=FLOAT16[3,1,3,2]:0.625,1.625,0.75 "
        "ckvCacheRef=FLOAT16[3,1,3,4]:-1.5,-0.75,1.5,1.625,-2 kRopeScaleOptional=null cKvScaleOptional=null "
        'kRopeOffsetOptional=null cKvOffsetOptional=null epsilon=1e-05 cacheModeOptional="Norm" isOutputKv=false '
        "kRopeOut=null cKvOut=null",
    ],
)
def kv_rms_norm_rope_cache(kv, gamma, cos, sin, index, k_cache, v_cache, *others):
    epsilon, mode, returns_tokens = others[4:]
    values, x = np.split(kv, [gamma.size], -1)
    even, odd = x[..., ::2], x[..., 1::2]
    keys = np.concatenate([even, odd], -1) * cos + np.concatenate([-odd, even], -1) * sin
    values = values / np.sqrt(np.mean(values**2, -1, keepdims=True) + epsilon) * gamma

    def written(cache, tokens):
        if mode == "Norm":  # a cache for each sequence
            result = cache.copy()
            for (b, s), place in np.ndenumerate(index):
                if place >= 0:
                    result[b, :, place] = tokens[b, :, s]
            return result
        pages, page, _, size = cache.shape
        parts = cache.reshape(pages, size // 16, page, 16)  # of 32 bytes
        return with_tokens(parts, index, tokens.reshape(-1, size), None, None).reshape(cache.shape)

    caches = written(k_cache, keys), written(v_cache, values)
    return (*caches, keys, values) if returns_tokens else caches


# Heads of 8 elements, of which 4 are rotated, beside values of 6.
BESIDE = (
    "kv=FLOAT16[2,2,3,8]:0.5,-1,2,0.25,-3,1.5,-0.75,0.875,-0.375,1.25,-2 "
    "gamma=FLOAT16[8]:1,-0.5,2,0.75,1.5,-1.25,0.25 cos=FLOAT16[2,2,3,4]:0.5,-0.75,1,0.125,0.25,-0.375,0.875 "
    "sin=FLOAT16[2,2,3,4]:0.25,-0.5,0.75,1,-0.125,-0.25,0.625"
)
VALUES = "vOptional=FLOAT16[2,2,3,6]:0.5,-1.25,3,0.75,-2,1.5,-0.375,2.25,-0.625"
FACTORS = (
    "kRopeScaleOptional=FLOAT[2,8]:13.1,25.3,31.7,44.7,57.1,29.3,38.9 "
    "cKvScaleOptional=FLOAT[2,6]:21.7,8.3,37.3,19.1,43.9"
)
OFFSETS = "kRopeOffsetOptional=FLOAT[2,8]:7,-3.25,5,0.75,-6 cKvOffsetOptional=FLOAT[2,6]:-7.25,4,1.25,-1"
NONE = "kRopeScaleOptional=null cKvScaleOptional=null kRopeOffsetOptional=null cKvOffsetOptional=null"
NO_OFFSETS = "kRopeOffsetOptional=null cKvOffsetOptional=null"
OUTPUTS = "kRopeOut=FLOAT16[2,2,3,8] cKvOut=FLOAT16[2,2,3,6]"


def v2_calls():
    paged = "index=INT64[6]:33,-1,5,0,60,31 kCacheRef={}[2,32,2,8]:5,-3,2 ckvCacheRef={}[2,32,2,6]:1,-4,3"
    by_sequence = "index=INT64[2,3]:1,0,-1,4,3,2 kCacheRef={}[3,2,5,8]:5,-3,2 ckvCacheRef={}[3,2,5,6]:1,-4,3"
    modes = 'epsilon=0.5 cacheModeOptional="{}" isOutputKv={}'
    calls = [
        f"{BESIDE} {paged} {FACTORS} {OFFSETS} {VALUES} {modes} {OUTPUTS}".format("INT8", "INT8", "PA", "true"),
        f"{BESIDE} {by_sequence} {FACTORS} {NO_OFFSETS} {VALUES} {modes} kRopeOut=null cKvOut=null".format(
            "INT8", "INT8", "Norm", "false"
        ),
        f"{BESIDE} {by_sequence} {NONE} {VALUES} {modes} {OUTPUTS}".format("FLOAT16", "FLOAT16", "Norm", "true"),
        # Values and keys side by side in one head, whose angles are those of all tokens of a sequence.
        "kv=FLOAT16[2,1,3,14]:0.5,-1,2,0.25,-3,1.5,-0.75,0.875,-0.375,1.25,-2 gamma=FLOAT16[6]:1,-0.5,2,0.75,1.5,-1.25 "
        "cos=FLOAT16[2,1,1,8]:0.5,-0.75,1,0.125,0.25,-0.375,0.875 sin=FLOAT16[2,1,1,8]:0.25,-0.5,0.75,1,-0.125 "
        "index=INT64[6]:33,-1,5,0,60,31 kCacheRef=INT8[2,32,1,8]:5,-3,2 ckvCacheRef=INT8[2,32,1,6]:1,-4,3 "
        "kRopeScaleOptional=FLOAT[8]:13.1,25.3,31.7,44.7,57.1 cKvScaleOptional=FLOAT[1]:21.7 "
        "kRopeOffsetOptional=null cKvOffsetOptional=FLOAT[6]:-7.25,4,1.25 vOptional=null epsilon=0.5 "
        'cacheModeOptional="PA_BNSD" isOutputKv=true kRopeOut=FLOAT16[2,1,3,8] cKvOut=FLOAT16[2,1,3,6]',
    ]
    return [f"aclnnKvRmsNormRopeCacheV2 {call}" for call in calls]


def normalized(x, gamma, epsilon):
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + epsilon) * gamma


# Without vOptional, kv has values and keys (ops-transformer: aclnnKvRmsNormRopeCacheV2.md).
@formula("aclnnKvRmsNormRopeCacheV2", calls=v2_calls())
def kv_rms_norm_rope_cache_v2(
    kv, gamma, cos, sin, index, k_cache, v_cache, k_scale, v_scale, k_offset, v_offset, values,
    epsilon, mode, is_output,
):  # fmt: skip
    if values is None:
        rotary, keys = kv[..., gamma.size :], kv[..., :0]
        values = normalized(kv[..., : gamma.size], gamma, epsilon)
    else:
        rotary, keys = np.split(normalized(kv, gamma, epsilon), [cos.shape[3]], -1)
    even, odd = rotary[..., ::2], rotary[..., 1::2]
    rotated = np.concatenate([even, odd], -1) * cos + np.concatenate([-odd, even], -1) * sin
    keys = np.concatenate([rotated, keys], -1)

    def written(cache, elements, scale, offset):
        tokens = elements.swapaxes(1, 2)  # (batch, sequence, heads, elements)
        if scale is not None:
            tokens = to_integers(tokens * scale + (0 if offset is None else offset))
        result = cache.copy()
        for (b, s), place in np.ndenumerate(index.reshape(tokens.shape[:2])):
            if place >= 0 and mode == "Norm":
                result[b, :, place] = tokens[b, s]
            elif place >= 0:
                result[place // cache.shape[1], place % cache.shape[1]] = tokens[b, s]
        return result

    caches = written(k_cache, keys, k_scale, k_offset), written(v_cache, values, v_scale, v_offset)
    return (*caches, keys, values) if is_output else caches
