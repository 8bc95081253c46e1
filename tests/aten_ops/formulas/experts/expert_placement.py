from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

TABLE = "INT32[4,4]:1,7,0,0,2,3,4,0,3,5,6,1,1,2,0,0"


@formula(
    "aclnnMoeUpdateExpert",
    calls=[
        f"aclnnMoeUpdateExpert expertIds={kind}[5,2]:0,1,1,2,2,3,2,1,2,0 eplbTable={TABLE} "
        f"expertScalesOptional={dtype}[5,2]:0.75,0.25,0.5,0.125,0.5,0.5,1,0.1875,0.5,0.0625 "
        f"pruningThresholdOptional=FLOAT{threshold}:0.25,0.1875 activeMaskOptional={mask} localRankId={rank} "
        f"worldSize={ranks} balanceMode={mode} balancedExpertIds={kind}[5,2] balancedActiveMask=BOOL[5,2]"
        for kind, dtype, threshold, mask, rank, ranks, mode in (
            ("INT32", "FLOAT16", "[2]", "BOOL[5]:1,1,1,1,0", 3, 8, 0),
            ("INT64", "FLOAT", "[1,2]", "null", 7, 8, 0),
            ("INT32", "BFLOAT16", "[2]", "BOOL[5]:1,1,1,0,0", 0, 0, 1),
        )
    ],
)
def moe_update_expert(ids, table, scales, threshold, active, rank, ranks, mode):
    """ops-transformer: aclnnMoeUpdateExpert.md.

    Where the code in it and the text differ, the text and the kernel hold: tokens take the instances in turn, and an
    expert is left out if its scale is below its threshold times the sum of the token's scales.
    """
    instances = table[ids, 0]
    place = rank // -(-ranks // instances) if mode == 0 else np.arange(len(ids))[:, None] % instances
    balanced = table[ids, np.where(instances == 1, 0, place) + 1]
    mask = scales >= scales.sum(1, keepdims=True) * threshold.reshape(1, -1)
    return balanced, mask if active is None else mask & (active[:, None] != 0)
