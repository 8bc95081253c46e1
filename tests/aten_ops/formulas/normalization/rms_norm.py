from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


@formula(
    "aclnnAddRmsNormCast",
    calls=[
        "aclnnAddRmsNormCast x1=FLOAT16[1,1]:8 x2=FLOAT16[1,1]:0.00390625 gamma=FLOAT16[1]:1 epsilon=0.0 "
        "y1Out=FLOAT[1,1] y2Out=FLOAT16[1,1] rstdOut=FLOAT[1,1] xOut=FLOAT16[1,1]",
        "aclnnAddRmsNormCast x1=FLOAT16[2,4]:-2.5,0.75,-0.5,1.5,3,-4,0.25,7 "
        "x2=FLOAT16[2,4]:0.5,-1.25,3,2,-5,1.5,-0.75,4 gamma=FLOAT16[4]:1,-0.5,2,0.75 epsilon=0.25 y1Out=FLOAT[2,4] "
        "y2Out=FLOAT16[2,4] rstdOut=FLOAT[2,1] xOut=FLOAT16[2,4]",
    ],
)
def add_rms_norm_cast(x1, x2, gamma, epsilon):
    x = x1 + x2
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    y = x * rstd * gamma
    return y, y, rstd, x


def rms_norm(x, gamma, epsilon):
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


@formula(
    "aclnnFusedAddRmsNorm",
    calls=[
        f"aclnnFusedAddRmsNorm x1={signed('2,3', 1)} x2={signed('2,3', 2)} gamma={signed('3', 3)} epsilon=0.25 "
        "scale=0.5 yOut=FLOAT[2,3] rstdOut=FLOAT[2,1] xOut=FLOAT[2,3]"
    ],
)
def fused_add_rms_norm(x1, x2, gamma, epsilon, scale):
    """ops-nn: aclnnFusedAddRmsNorm.md."""
    x = x1 * scale + x2
    return *rms_norm(x, gamma, epsilon), x


@formula(
    "aclnnInplaceAddRmsNorm",
    calls=[
        f"aclnnInplaceAddRmsNorm x1Ref={signed('2,2,3', 1)} x2Ref={signed('2,2,3', 2)} gamma={signed('2,3', 3)} "
        "epsilon=12.5 rstdOut=FLOAT[2,1,1]"
    ],
)
def inplace_add_rms_norm(x1, x2, gamma, epsilon):
    """ops-nn: aclnnInplaceAddRmsNorm.md, whose sum goes to x2Ref."""
    y, rstd = rms_norm(x1 + x2, gamma, epsilon)
    return y, x1 + x2, rstd


@formula(
    "aclnnGemmaRmsNorm",
    calls=[
        f"aclnnGemmaRmsNorm x={signed('2,3', 1)} gamma={signed('3', 2)} epsilon=12.5 yOut=FLOAT[2,3] rstdOut=FLOAT[2,1]"
    ],
)
def gemma_rms_norm(x, gamma, epsilon):
    """ops-nn: aclnnGemmaRmsNorm.md."""
    return rms_norm(x, 1 + gamma, epsilon)


# ops-nn: aclnnAddRmsNorm.md.
@formula(
    "aclnnAddRmsNorm",
    calls=[
        f"aclnnAddRmsNorm x1={signed('2,2,3', 1)} x2={signed('2,2,3', 2)} gamma={signed(shape, 3)} epsilon=12.5 "
        f"yOut=FLOAT[2,2,3] rstdOut=FLOAT[2,{rows},1] xOut=FLOAT[2,2,3]"
        for shape, rows in (("3", 2), ("2,3", 1))
    ],
)
def add_rms_norm(x1, x2, gamma, epsilon):
    return *rms_norm(x1 + x2, gamma, epsilon), x1 + x2
