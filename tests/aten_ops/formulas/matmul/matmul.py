from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

# Matrices of 2 by 3 and 3 by 2, in batches of one or two; numbers to be added to their products; and vectors.
LEFT = ":-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125,0.625"
RIGHT = ":0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375,1.125"
ADDED = ":1.25,-3,0.375,2,-0.75,4.5"


@formula(
    "aclnnAddmm",
    "aclnnInplaceAddmm",
    "aclnnBaddbmm",
    calls=[
        f"aclnnAddmm self=FLOAT[2,2]{ADDED} mat1=FLOAT[2,3]{LEFT} mat2=FLOAT[3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2] cubeMathType=0",
        f"aclnnInplaceAddmm selfRef=FLOAT[2,2]{ADDED} mat1=FLOAT[2,3]{LEFT} mat2=FLOAT[3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) cubeMathType=0",
        f"aclnnBaddbmm self=FLOAT[2,2]{ADDED} batch1=FLOAT[2,2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2,2] cubeMathType=0",
    ],
)
def addmm(self, left, right, beta, alpha, _cube_math_type):
    return beta * self + alpha * (left @ right)


@formula(
    "aclnnAddbmm",
    calls=[
        f"aclnnAddbmm self=FLOAT[2,2]{ADDED} batch1=FLOAT[2,2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2] cubeMathType=0",
    ],
)
def addbmm(self, left, right, beta, alpha, _cube_math_type):
    return beta * self + alpha * (left @ right).sum(0)


@formula(
    "aclnnAddmv",
    calls=[
        f"aclnnAddmv self=FLOAT[2]:1.25,-3 mat=FLOAT[2,3]{LEFT} vec=FLOAT[3]{RIGHT} alpha=FLOAT(0.75) "
        "beta=FLOAT(-1.5) out=FLOAT[2] cubeMathType=0",
        "aclnnAddmv self=INT32[2]:5,-3 mat=INT32[2,3]:-2,4,1,3,-5,2 vec=INT32[3]:2,-1,3 alpha=INT64(3) "
        "beta=INT64(-2) out=INT32[2] cubeMathType=0",
    ],
)
def addmv(self, mat, vec, alpha, beta, _cube_math_type):
    return beta * self + alpha * (mat @ vec)


@formula("aclnnMv", calls=[f"aclnnMv self=FLOAT[4,3]{LEFT} vec=FLOAT[3]{RIGHT} out=FLOAT[4] cubeMathType=0"])
def mv(self, vec, _cube_math_type):
    return self @ vec


@formula(
    "aclnnDot",
    calls=[
        f"aclnnDot self=FLOAT[6]{LEFT} tensor=FLOAT[6]{RIGHT} out=FLOAT[]",
        "aclnnDot self=INT32[3]:-2,4,1 tensor=INT32[3]:3,-5,2 out=INT32[]",
    ],
)
def dot(self, tensor):
    return (self * tensor).sum()


@formula(
    "aclnnAddr",
    "aclnnInplaceAddr",
    calls=[
        f"aclnnAddr self=FLOAT[2,3]{ADDED} vec1=FLOAT[2]:-2.5,0.75 vec2=FLOAT[3]:0.5,-1.25,2 beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,3]",
        "aclnnAddr self=INT32[2,2]:5,-3,2,7 vec1=INT32[2]:-2,3 vec2=INT32[2]:4,-5 beta=INT64(2) alpha=INT64(-3) "
        "out=INT32[2,2]",
        f"aclnnInplaceAddr selfRef=FLOAT[2,3]{ADDED} vec1=FLOAT[2]:-2.5,0.75 vec2=FLOAT[3]:0.5,-1.25,2 "
        "beta=FLOAT(-1.5) alpha=FLOAT(0.75)",
        "aclnnInplaceAddr selfRef=INT32[2,2]:5,-3,2,7 vec1=INT32[2]:-2,3 vec2=INT32[2]:4,-5 beta=INT64(2) "
        "alpha=INT64(-3)",
    ],
)
def addr(self, vec1, vec2, beta, alpha):
    return beta * self + alpha * np.multiply.outer(vec1, vec2)


@formula(
    "aclnnGer",
    calls=[
        "aclnnGer self=FLOAT[3]:-2.5,0.75,4 vec2=FLOAT[2]:0.5,-1.25 out=FLOAT[3,2]",
        "aclnnGer self=INT32[2]:-2,3 vec2=INT32[3]:4,-5,7 out=INT32[2,3]",
    ],
)
def ger(self, vec2):
    return np.multiply.outer(self, vec2)
