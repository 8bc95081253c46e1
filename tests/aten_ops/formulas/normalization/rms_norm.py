from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnAddRmsNormCast",
    calls=[
        "aclnnAddRmsNormCast x1=FLOAT16[2,4]:-2.5,0.75,-0.5,1.5,3,-4,0.25,7 "
        "x2=FLOAT16[2,4]:0.5,-1.25,3,2,-5,1.5,-0.75,4 gamma=FLOAT16[4]:1,-0.5,2,0.75 epsilon=0.25 y1Out=FLOAT[2,4] "
        "y2Out=FLOAT16[2,4] rstdOut=FLOAT[2,1] xOut=FLOAT16[2,4]"
    ],
)
def add_rms_norm_cast(x1, x2, gamma, epsilon):
    x = x1 + x2
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    y = x * rstd * gamma
    return y, y, rstd, x
