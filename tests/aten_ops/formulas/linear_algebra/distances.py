from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive, signed
from tests.aten_ops.formulas import formula


@formula(
    "aclnnCdist",
    calls=[
        "aclnnCdist x1=FLOAT[3,4]:1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11,-12 x2=FLOAT[2,4]:7,5,-3,2,1.5,-2,3.5,-9"
        f" p={p} computeMode={mode} out=FLOAT[3,2]"
        for p, mode in ((0, 0), (1, 0), (2, 0), (2, 1), (3.5, 0), ("Infinity", 0))
    ]
    + [
        "aclnnCdist x1=FLOAT[2,2,3]:1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11,-12 x2=FLOAT[2,1,3]:7,5,-3,2,1.5,-2.5"
        " p=2 computeMode=2 out=FLOAT[2,2,1]"
    ],
)
def cdist(x1, x2, p, compute_mode):
    difference = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0:
        return np.sum(difference != 0, -1)
    if np.isinf(p):
        return np.max(difference, -1, initial=0)
    return np.sum(difference**p, -1) ** (1 / p)


# ops-math: aclnnCdistBackward.md. A distance of 0 has no gradient; a maximum has that of the largest differences.
@formula(
    "aclnnCdistBackward",
    calls=[
        f"aclnnCdistBackward grad={positive('2,3', 1)} x1={positive('2,2', 2)} x2={x2} cdist={positive('2,3', 4)} "
        f"p={p} out=FLOAT[2,2]"
        for x2, p in (
            *((positive("3,2", 3), p) for p in (0, 1)),
            *(("FLOAT[3,2]:0,-0.25,-0.125,-1", p) for p in (0.5, 1.5, 2, 3)),
        )
    ]
    + [
        f"aclnnCdistBackward grad={positive('2,3', 1)} x1={signed('2,2', 2)} x2=FLOAT[3,2]:0 "
        f"cdist={positive('2,3', 4)} p=3 out=FLOAT[2,2]",
        f"aclnnCdistBackward grad={signed('2,3', 1)} x1=FLOAT[2,2]:1,0.25,-3,2 x2=FLOAT[3,2]:-0.5,4,1,-2,0.5,0.125 "
        "cdist=FLOAT[2,3]:3.75,2.25,0.5,2.5,4,3.5 p=Infinity out=FLOAT[2,2]",
    ]
    + [
        "aclnnCdistBackward grad=BFLOAT16[2,2]:1,2,3,4 x1=BFLOAT16[2,1]:1,2 x2=BFLOAT16[2,1]:0,2 "
        f"cdist=BFLOAT16[2,2]:1,1,2,0 p={p} out=BFLOAT16[2,1]"
        for p in (2, "Infinity")
    ]
    + [
        "aclnnCdistBackward grad=FLOAT16[1,1]:2 x1=FLOAT16[1,2]:1,0.25 x2=FLOAT16[1,2]:-0.50048828125,0 "
        "cdist=FLOAT16[1,1]:1.5 p=Infinity out=FLOAT16[1,2]"
    ],
)
def cdist_backward(grad, x1, x2, distances, p):
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    size, distances = np.abs(difference), distances[..., None]
    if p == 0:
        shares = np.zeros(size.shape)
    elif np.isinf(p):
        shares = np.sign(difference) * (size == size.max(-1, keepdims=True, initial=0))
    else:
        powers = np.sign(difference) * np.where(size == 0, 0, size ** (p - 1))
        shares = np.where(distances == 0, 0, powers / distances ** (p - 1))
    return (grad[..., None] * shares).sum(-2)


# ops-math: aclnnPdist.md, aclnnPdistForward.md. The pairs are those above the diagonal, row by row.
@formula(
    "aclnnPdist",
    "aclnnPdistForward",
    calls=[
        call
        for p in (0, 1, 2, 3.5, "Infinity")
        for call in (
            f"aclnnPdist self={signed('4,3', 1)} p={p} out=FLOAT[6]",
            f"aclnnPdistForward self={signed('4,3', 2)} pScalar=FLOAT({p}) out=FLOAT[6]",
        )
    ],
)
def pdist(self, p):
    return cdist(self, self, p, 0)[np.triu_indices(len(self), 1)]
