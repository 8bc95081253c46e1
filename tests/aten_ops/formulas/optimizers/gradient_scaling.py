"""From the documents of ops-math and ops-nn that have the functions' names, such as aclnnAmpUpdateScale.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnAmpUpdateScale",
    calls=[
        f"aclnnAmpUpdateScale currentScale=FLOAT[1]:6.5 growthTracker=INT32[1]:{tracker} foundInf=FLOAT[1]:{found} "
        "growthFactor=1.75 backoffFactor=0.375 growthInterval=4 updatedScaleOut=FLOAT[1] "
        "updatedGrowthTrackerOut=INT32[1]"
        for tracker, found in ((1, 0), (3, 0), (2, 1))
    ],
)
def amp_update_scale(scale, tracker, found_inf, growth, backoff, interval):
    if found_inf.item() != 0:
        return scale * backoff, tracker * 0
    successes = tracker + 1
    return (scale * growth, successes * 0) if successes.item() == interval else (scale, successes)


@formula(
    "aclnnForeachNonFiniteCheckAndUnscale",
    calls=[
        f"aclnnForeachNonFiniteCheckAndUnscale scaledGrads={{FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,{last},3}} "
        f"foundInf=FLOAT[1]:{found} inScale=FLOAT[1]:0.375"
        for last, found in ((-4, 0), ("inf", 0), ("nan", 0), (-4, 1))
    ],
)
def check_and_unscale(grads, found_inf, scale):
    is_bad = any(not np.isfinite(grad).all() for grad in grads)
    return [*(grad * scale.item() for grad in grads), np.ones(1) if is_bad else found_inf]
