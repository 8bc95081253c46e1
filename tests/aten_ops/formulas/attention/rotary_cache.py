from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

SECTIONS, INTERLEAVED = 0, 1


def calls_of(name, *positions, tail=""):
    """The calls in both styles; the heads have 32 elements, of which the first 16 are rotated."""
    return [
        f"{name} {given} queryIn=FLOAT[3,64] keyIn=FLOAT[3,32]:0.5,-1,0.75,-0.375,2,0.25,-1.5 "
        "cosSinCache=FLOAT[4,16]:-0.125,0.5,-0.625,0.875,0.25,-0.75,1,0.375,-0.875,0.0625,-0.5,0.9375,-1,0.6875,0.75 "
        f"headSize=32 isNeoxStyle={style} queryOut=FLOAT[3,64] keyOut=FLOAT[3,32]{tail}"
        for given in positions
        for style in ("true", "false")
    ]


ONE = "positions=INT64[3]:2,0,3 mropeSection=null"
THREE = "positions=INT64[3,3]:2,0,1,1,1,3,0,3,2 mropeSection=[2,3,3]"
FOUR = "positions=INT64[4,3]:2,0,1,1,1,3,0,3,2,3,2,0 mropeSection=[1,3,2,2]"


# Several rows of positions each give a section of the angles, or every third one (ops-transformer:
# aclnnRopeWithSinCosCache.md, aclnnRopeWithSinCosCacheV2.md).
@formula(
    "aclnnRopeWithSinCosCache",
    "aclnnRopeWithSinCosCacheV2",
    calls=calls_of("aclnnRopeWithSinCosCache", ONE, THREE, FOUR)
    + calls_of("aclnnRopeWithSinCosCacheV2", ONE, THREE, FOUR, tail=" cacheMode=0")
    + calls_of(
        "aclnnRopeWithSinCosCacheV2",
        THREE,
        # The angles from three times the second section on are those of the first row.
        THREE.replace("[2,3,3]", "[4,1,3]"),
        tail=" cacheMode=1",
    ),
)
def rope_with_sin_cos_cache(positions, query, key, cache, sections, head_size, is_neox, mode=SECTIONS):
    rotary_size = cache.shape[1]
    cos_sin = cache[positions].reshape(*positions.shape, 2, rotary_size // 2)
    if positions.ndim == 2 and mode == INTERLEAVED:
        rows, end = cos_sin, 3 * sections[1]
        cos_sin = rows[0].copy()
        for row in (1, 2):
            cos_sin[..., row:end:3] = rows[row, ..., row:end:3]
    elif positions.ndim == 2:
        parts = np.split(cos_sin, np.cumsum(sections)[:-1], -1)
        cos_sin = np.concatenate([part[row] for row, part in enumerate(parts)], -1)
    cos, sin = cos_sin[:, None, 0], cos_sin[:, None, 1]

    def rotated(tokens):
        result = tokens.reshape(len(tokens), tokens.shape[1] // head_size, head_size).copy()
        part = result[..., :rotary_size]  # a view
        half = rotary_size // 2
        first, second = (part[..., :half], part[..., half:]) if is_neox else (part[..., ::2], part[..., 1::2])
        first[...], second[...] = first * cos - second * sin, second * cos + first * sin
        return result.reshape(tokens.shape)

    return rotated(query), rotated(key)
