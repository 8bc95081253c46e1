from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

SIZE = 128  # of a head


def normalized_and_rotated(heads, gamma, cos, sin, epsilon):
    """Heads (tokens, heads, elements), divided by their root mean square, and rotated."""
    x = heads / np.sqrt(np.mean(heads**2, -1, keepdims=True) + epsilon) * gamma
    turned = np.concatenate([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
    return x * cos[:, None] + turned * sin[:, None]


def with_tokens(cache, index, heads, scale, offset):
    """The cache of (pages, parts of all heads, tokens of a page, elements of a part) with the tokens written."""
    values = heads if scale is None else np.clip(np.rint(heads / scale + (0 if offset is None else offset)), -128, 127)
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


# Values come first in kv. Keys are rotated after their elements at even places are put before the others
# (KvRmsNormRopeCache/README.md).
@formula(
    "aclnnKvRmsNormRopeCache",
    calls=[
        "aclnnKvRmsNormRopeCache kv=FLOAT16[2,1,2,64]:0.5,-1,2,0.25,-3,1.5,-0.75 gamma=FLOAT16[32]:1,-0.5,2 "
        "cos=FLOAT16[2,1,2,32]:0.5,-0.75,1,0.125,0.25 sin=FLOAT16[2,1,2,32]:0.25,-0.5,0.75,1,-0.125,-0.25 "
        "index=INT64[4]:31,-1,2,15 kCacheRef=FLOAT16[2,16,1,32] ckvCacheRef=FLOAT16[2,16,1,32] kRopeScaleOptional=null "
        "cKvScaleOptional=null kRopeOffsetOptional=null cKvOffsetOptional=null epsilon=0.5 "
        'cacheModeOptional="PA_NZ" isOutputKv=true kRopeOut=FLOAT16[2,1,2,32] cKvOut=FLOAT16[2,1,2,32]'
    ],
)
def kv_rms_norm_rope_cache(kv, gamma, cos, sin, index, k_cache, v_cache, *others):
    epsilon = others[4]
    values, x = np.split(kv, [gamma.size], -1)
    even, odd = x[..., ::2], x[..., 1::2]
    keys = np.concatenate([even, odd], -1) * cos + np.concatenate([-odd, even], -1) * sin
    values = values / np.sqrt(np.mean(values**2, -1, keepdims=True) + epsilon) * gamma

    def written(cache, tokens):
        pages, page, _, size = cache.shape
        parts = cache.reshape(pages, size // 16, page, 16)  # of 32 bytes
        return with_tokens(parts, index, tokens.reshape(-1, size), None, None).reshape(cache.shape)

    return written(k_cache, keys), written(v_cache, values), keys, values
