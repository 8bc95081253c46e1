from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula

CENTROIDS = "-0.125,-0.109375,-0.09375,-0.078125,-0.0625,-0.046875,-0.03125,-0.015625"
CENTROIDS += "," + ",".join(number[1:] for number in reversed(CENTROIDS.split(",")))
BYTES = 320
ONES = ",1" * 511


# A row has the 4-bit codes, even places in the low bits, the norm in FLOAT16, and zeros (ops-nn:
# aclnnTurboQuantCompressLatent.md). A tie takes the larger code: 0 here.
@formula(
    "aclnnTurboQuantCompressLatent",
    calls=[
        f"aclnnTurboQuantCompressLatent latent={latent} centroids=FLOAT[{shape}]:{CENTROIDS} out=UINT8[{rows},320]"
        for latent, shape, rows in (
            (signed("3,512", 1), "16", 3),
            ("FLOAT[1,512]:3,-4,0,12,0.25", "2,8", 1),
            (f"FLOAT[2,512]:nan{ONES},1,inf{ONES[2:]}", "16", 2),
            (f"FLOAT[2,512]:0{',0' * 511},60000{ONES.replace('1', '60000')}", "16", 2),
            ("FLOAT[0,512]", "16", 0),
        )
    ],
)
def compress_latent(latent, centroids):
    norm = np.sqrt((latent**2).sum(1, keepdims=True) + 1e-16)
    middles = (centroids.reshape(-1)[:-1] + centroids.reshape(-1)[1:]) / 2
    codes = ((latent * (1 / norm))[..., None] >= middles).sum(-1)
    length = norm.astype(np.float16).view(np.uint8)
    packed = np.concatenate([codes[:, ::2] | codes[:, 1::2] << 4, length], 1)
    return np.pad(packed, ((0, 0), (0, BYTES - packed.shape[1])))
