from __future__ import annotations

import numpy as np

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
