from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

HALF, INTERLEAVE, QUARTER, INTERLEAVE_HALF = range(4)


# The elements that x is multiplied with cos and sin: x and its pairs turned (ops-transformer:
# aclnnRotaryPositionEmbedding.md; the modes with numbers are those of aclnnRotaryPositionEmbeddingGrad.md).
def _parts(x, mode):
    even, odd = x[..., ::2], x[..., 1::2]
    if mode == INTERLEAVE:
        return x, np.stack([-odd, even], -1).reshape(x.shape)
    if mode == INTERLEAVE_HALF:
        return np.concatenate([even, odd], -1), np.concatenate([-odd, even], -1)
    if mode == QUARTER:
        a, b, c, d = np.split(x, 4, -1)
        return x, np.concatenate([-b, a, -d, c], -1)
    a, b = np.split(x, 2, -1)
    return x, np.concatenate([-b, a], -1)


@formula(
    "aclnnRotaryPositionEmbedding",
    calls=[
        f"aclnnRotaryPositionEmbedding x=FLOAT[2,3,2,8] cos=FLOAT[{angles}] sin=FLOAT[{angles}] mode={mode} "
        "out=FLOAT[2,3,2,8]"
        for mode, angles in enumerate(("2,3,2,8", "1,1,1,8", "1,1,2,8", "2,1,1,8"))
    ]
    + [
        "aclnnRotaryPositionEmbedding x=FLOAT[0,1,1,4] cos=FLOAT[5] sin=FLOAT[7] mode=0 out=FLOAT[0,1,1,4]",
        "aclnnRotaryPositionEmbedding x=FLOAT[1,1,1,2] cos=FLOAT[1,1,1,2] sin=FLOAT[1,1,1,2] mode=0 out=FLOAT[1,1,1,2]",
    ],
)
def rotary(x, cos, sin, mode):
    if x.size == 0:  # whatever the shapes of cos and sin
        return x
    start, turned = _parts(x, mode)
    return start * cos + turned * sin


# The matrix replaces the mode (ops-transformer: aclnnRotaryPositionEmbeddingV2.md).
@formula(
    "aclnnRotaryPositionEmbeddingV2",
    calls=[
        "aclnnRotaryPositionEmbeddingV2 x=FLOAT[3,2,4] cos=FLOAT[3,1,4] sin=FLOAT[3,1,4] mode=1 "
        "rotate=FLOAT[4,4]:0,1,0,0,-1,0,0,0.5,0,0,0,-1,0.25,0,2,0 out=FLOAT[3,2,4]",
        "aclnnRotaryPositionEmbeddingV2 x=FLOAT[2,3,2,8] cos=FLOAT[2,3,1,8] sin=FLOAT[2,3,1,8] mode=2 rotate=null "
        "out=FLOAT[2,3,2,8]",
    ],
)
def rotary_by_matrix(x, cos, sin, mode, matrix):
    return rotary(x, cos, sin, mode) if matrix is None or x.size == 0 else x * cos + x @ matrix * sin


# ops-transformer: aclnnRotaryPositionEmbeddingGrad.md
@formula(
    "aclnnRotaryPositionEmbeddingGrad",
    calls=[
        f"aclnnRotaryPositionEmbeddingGrad dy=FLOAT[2,3,2,8] cos=FLOAT[{angles}] sin=FLOAT[{angles}] "
        f"xOptional=FLOAT[2,3,2,8] mode={mode} dxOut=FLOAT[2,3,2,8] dcosOut=FLOAT[{angles}] dsinOut=FLOAT[{angles}]"
        for mode, angles in enumerate(("2,3,2,8", "1,1,1,8", "1,1,2,8", "2,1,1,8"))
    ],
)
def rotary_gradient(gradient, cos, sin, x, mode):
    dims = tuple(dim for dim, size in enumerate(cos.shape) if size != x.shape[dim])
    cos, sin = (np.broadcast_to(each, gradient.shape) for each in (cos, sin))
    size = gradient.shape[-1]

    def pairs(of):  # the elements of `of` that are the first and the second of each pair
        if mode == INTERLEAVE:
            return of[..., ::2], of[..., 1::2]
        if mode == QUARTER:
            quarters = np.reshape(of, (*of.shape[:-1], 2, 2, size // 4))
            return quarters[..., 0, :], quarters[..., 1, :]
        return of[..., : size // 2], of[..., size // 2 :]

    (dy1, dy2), (cos1, cos2), (sin1, sin2) = pairs(gradient), pairs(cos), pairs(sin)
    dx1, dx2 = cos1 * dy1 + sin2 * dy2, cos2 * dy2 - sin1 * dy1
    dx = np.stack([dx1, dx2], {HALF: -2, QUARTER: -2}.get(mode, -1)).reshape(gradient.shape)
    start, turned = _parts(x, mode)
    return dx, (gradient * start).sum(dims, keepdims=True), (gradient * turned).sum(dims, keepdims=True)


# ops-transformer: aclnnApplyRotaryPosEmb.md, aclnnApplyRotaryPosEmbV2.md
@formula(
    "aclnnApplyRotaryPosEmb",
    "aclnnApplyRotaryPosEmbV2",
    calls=[
        "aclnnApplyRotaryPosEmb queryRef=FLOAT[2,1,2,128] keyRef=FLOAT[2,1,1,128] cos=FLOAT[2,1,1,128] "
        "sin=FLOAT[2,1,1,128] layout=1"
    ]
    + [
        f"aclnnApplyRotaryPosEmbV2 queryRef=FLOAT[{query},128] keyRef=FLOAT[2,1,1,128] cos=FLOAT[2,1,1,128] "
        f'sin=FLOAT[2,1,1,128] layout={layout} rotaryMode="{mode}"'
        for query, layout, mode in (("2,1,2", 1, "half"), ("2,1,2", 2, "quarter"), ("2,2,1", 3, "interleave"))
    ],
)
def apply_rotary(query, key, cos, sin, _layout, mode="half"):
    number = {"half": HALF, "interleave": INTERLEAVE, "quarter": QUARTER}[mode]
    return tuple(start * cos + turned * sin for start, turned in (_parts(query, number), _parts(key, number)))


# ops-transformer: aclnnInterleaveRope.md
@formula(
    "aclnnInterleaveRope",
    calls=[
        "aclnnInterleaveRope x=FLOAT[2,2,3,64] cos=FLOAT[2,1,1,64] sin=FLOAT[2,1,1,64] out=FLOAT[2,2,3,64]",
    ],
)
def interleave_rope(x, cos, sin):
    return rotary(x, cos, sin, INTERLEAVE_HALF)


# ops-transformer: aclnnInplacePartialRotaryMul.md
@formula(
    "aclnnInplacePartialRotaryMul",
    calls=[
        f"aclnnInplacePartialRotaryMul xRef=FLOAT[2,3,2,8] cos=FLOAT[{angles}] sin=FLOAT[{angles}] rotary_mode=1 "
        f"partialSlice={part}"
        for part, angles in (("[2,6]", "2,3,1,4"), ("[1,3]", "1,1,1,2"), ("null", "2,1,2,8"), ("[]", "2,3,2,8"))
    ]
    + ["aclnnInplacePartialRotaryMul xRef=FLOAT[1,1,1,4] cos=FLOAT[1] sin=FLOAT[2] rotary_mode=1 partialSlice=[3,3]"],
)
def rotary_of_part(x, cos, sin, mode, part):
    start, end = part or (0, x.shape[-1])
    if start == end:  # whatever the shapes of cos and sin
        return x
    turned = x[..., start:end]
    straight, turned = _parts(turned, mode)
    return np.concatenate([x[..., :start], straight * cos + turned * sin, x[..., end:]], -1)


# ops-transformer: aclnnInplacePartialRotaryMulGrad.md
@formula(
    "aclnnInplacePartialRotaryMulGrad",
    calls=[
        f"aclnnInplacePartialRotaryMulGrad dyRef=FLOAT[2,3,2,8] cos={angles} sin={angles} rotaryMode=1 "
        f"partialSlice={part}"
        for part, angles in (("[0,8]", "FLOAT16[1,3,2,8]"), ("[3,7]", "FLOAT[1,3,1,4]"), ("[6,8]", "FLOAT[2,1,2,2]"))
    ],
)
def gradient_of_part(gradient, cos, sin, _mode, part):
    start, end = part
    even, odd = gradient[..., start:end:2], gradient[..., start + 1 : end : 2]
    of_even = cos[..., ::2] * even + sin[..., 1::2] * odd
    of_odd = cos[..., 1::2] * odd - sin[..., ::2] * even
    turned = np.stack([of_even, of_odd], -1).reshape(*gradient.shape[:-1], end - start)
    return np.concatenate([gradient[..., :start], turned, gradient[..., end:]], -1)
