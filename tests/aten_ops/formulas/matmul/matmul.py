from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import wrapped
from tests.aten_ops.formulas import formula

# Matrices of 2 by 3 and 3 by 2, in batches of one or two; numbers to be added to their products; and vectors.
LEFT = ":-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125,0.625"
RIGHT = ":0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375,1.125"
ADDED = ":1.25,-3,0.375,2,-0.75,4.5"


@formula(
    "aclnnAddmm",
    "aclnnInplaceAddmm",
    "aclnnAddmmWeightNz",
    "aclnnBaddbmm",
    "aclnnInplaceBaddbmm",
    calls=[
        f"aclnnAddmm self=FLOAT[2,2]{ADDED} mat1=FLOAT[2,3]{LEFT} mat2=FLOAT[3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2] cubeMathType=0",
        f"aclnnInplaceAddmm selfRef=FLOAT[2,2]{ADDED} mat1=FLOAT[2,3]{LEFT} mat2=FLOAT[3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) cubeMathType=0",
        f"aclnnBaddbmm self=FLOAT[2,2]{ADDED} batch1=FLOAT[2,2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2,2] cubeMathType=0",
        f"aclnnInplaceBaddbmm selfRef=FLOAT[2,2,2]{ADDED} batch1=FLOAT[2,2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} "
        "beta=FLOAT(-1.5) alpha=INT64(2) cubeMathType=4",
        f"aclnnAddmmWeightNz self=FLOAT16[2,17]{ADDED},2.5 mat1=FLOAT16[2,3]{LEFT} mat2=FLOAT16@NZ[3,17]{RIGHT},-2.25 "
        "beta=FLOAT(2) alpha=FLOAT(3) out=FLOAT16[2,17] cubeMathType=0",
    ],
)
def addmm(self, left, right, beta, alpha, _cube_math_type):
    return beta * self + alpha * (left @ right)


# A term with a factor of 0 is ignored, also if it is nan.
@formula(
    "aclnnAddbmm",
    "aclnnInplaceAddbmm",
    calls=[
        f"aclnnAddbmm self=FLOAT[2,2]{ADDED} batch1=FLOAT[2,2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} beta=FLOAT(-1.5) "
        "alpha=FLOAT(0.75) out=FLOAT[2,2] cubeMathType=0",
        *(
            f"aclnnInplaceAddbmm selfRef=FLOAT[2,2]{ADDED} batch1=FLOAT[{batch},2,3]{LEFT} batch2=FLOAT[2,3,2]{RIGHT} "
            f"beta=FLOAT(0.5) alpha=INT64(2) cubeMathType={math_type}"
            for batch, math_type in ((2, 0), (1, 1))
        ),
        "aclnnInplaceAddbmm selfRef=FLOAT[1,1]:3 batch1=FLOAT[1,1,1]:inf batch2=FLOAT[1,1,1]:1 beta=FLOAT(2) "
        "alpha=FLOAT(0) cubeMathType=0",
        "aclnnInplaceAddbmm selfRef=FLOAT[1,1]:nan batch1=FLOAT[1,1,1]:3 batch2=FLOAT[1,1,1]:2 beta=FLOAT(0) "
        "alpha=FLOAT(1) cubeMathType=0",
    ],
)
def addbmm(self, left, right, beta, alpha, _cube_math_type):
    product = alpha * (left @ right).sum(0) if alpha else 0
    return beta * self + product if beta else product


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


# Without beta or alpha it is 1 (ops-math: aclnnAddrV2.md).
@formula(
    "aclnnAddrV2",
    "aclnnInplaceAddrV2",
    calls=[
        "aclnnAddrV2 self=FLOAT[2]:1,2 vec1=FLOAT[2]:3,4 vec2=FLOAT[2]:5,6 betaOptional=null alphaOptional=null "
        "out=FLOAT[2,2]",
        "aclnnAddrV2 self=INT32[2,2]:1,2,3,4 vec1=INT32[2]:3,4 vec2=INT32[2]:5,6 betaOptional=INT64(10) "
        "alphaOptional=INT64(2) out=INT32[2,2]",
        "aclnnInplaceAddrV2 selfRef=FLOAT[2,2]:1,2,3,4 vec1=FLOAT[2]:3,4 vec2=FLOAT[2]:5,6 betaOptional=FLOAT(0) "
        "alphaOptional=FLOAT(0.5)",
        "aclnnInplaceAddrV2 selfRef=FLOAT[2,2]:1,2,3,4 vec1=FLOAT[2]:3,4 vec2=FLOAT[2]:5,6 betaOptional=FLOAT(-1.5) "
        "alphaOptional=null",
    ],
)
def addr_v2(self, vec1, vec2, beta, alpha):
    return addr(self, vec1, vec2, *(1 if factor is None else factor for factor in (beta, alpha)))


# ops-nn: aclnnMm.md, aclnnMatmulWeightNz.md, aclnnBatchMatMulWeightNz.md.
@formula(
    "aclnnMm",
    "aclnnMatmulWeightNz",
    "aclnnBatchMatMulWeightNz",
    calls=[
        f"aclnnMm self=FLOAT16@NZ[2,3]{LEFT} mat2=FLOAT16@NZ[3,2]{RIGHT} out=FLOAT16[2,2] cubeMathType=0",
        f"aclnnMm self=FLOAT[2,3]{LEFT} mat2=FLOAT[3,2]{RIGHT} out=FLOAT[2,2] cubeMathType=0",
        f"aclnnMatmulWeightNz self=FLOAT16[2,3]{LEFT} mat2=FLOAT16@NZ[3,17]{RIGHT},-2.25 out=FLOAT16[2,17] "
        "cubeMathType=0",
        f"aclnnBatchMatMulWeightNz self=FLOAT16[2,2,3]{LEFT} mat2=FLOAT16@NZ[2,3,17]{RIGHT},-2.25 out=FLOAT16[2,2,17] "
        "cubeMathType=0",
    ],
)
def mm(self, other, _cube_math_type):
    return self @ other


# The two equations of ops-nn: aclnnEinsum.md, with any letters.
@formula(
    "aclnnEinsum",
    calls=[
        f'aclnnEinsum tensors={{FLOAT[2,1,3,2]{LEFT} FLOAT[2,1,3,4,2]{RIGHT},0.25}} equation="abcd,abced->abce" '
        "output=FLOAT[2,1,3,4]",
        'aclnnEinsum tensors={UINT32[2]:3,429496729 UINT32[2]:2,5} equation="x,y->xy" output=UINT32[2,2]',
        'aclnnEinsum tensors={INT16[1,1,1,2]:200,300 INT16[1,1,1,1,2]:200,3} equation="abcd,abced->abce" '
        "output=INT16[1,1,1,1]",
        'aclnnEinsum tensors={UINT32[2]:3,4294967295 UINT32[2]:2,5} equation="a,b->ab" output=UINT32[2,2]',
    ],
)
def einsum(tensors, equation, outputs):
    return wrapped(np.einsum(equation, *tensors), outputs["output"])


# ops-nn: aclnnGemm.md.
@formula(
    "aclnnGemm",
    calls=[
        f"aclnnGemm A=FLOAT[2,3]{LEFT} B=FLOAT[3,4]{RIGHT} C=FLOAT[2,4]{ADDED} alpha=2 beta=0.5 transA=0 transB=0 "
        "out=FLOAT[2,4] cubeMathType=0",
        f"aclnnGemm A=FLOAT[3,2]{LEFT} B=FLOAT[4,3]{RIGHT} C=FLOAT[1,4]{ADDED} alpha=2 beta=0.5 transA=1 transB=-1 "
        "out=FLOAT[2,4] cubeMathType=4",
        # 0 times an infinity
        "aclnnGemm A=FLOAT[2,2]:1,2,3,inf B=FLOAT[2,1]:4,5 C=FLOAT[1]:6 alpha=0 beta=0.5 transA=0 transB=0 "
        "out=FLOAT[2,1] cubeMathType=0",
    ],
)
def gemm(a, b, c, alpha, beta, transposes_a, transposes_b, _cube_math_type):
    return alpha * (a.T if transposes_a else a) @ (b.T if transposes_b else b) + beta * c


@formula(
    "aclnnGer",
    calls=[
        "aclnnGer self=FLOAT[3]:-2.5,0.75,4 vec2=FLOAT[2]:0.5,-1.25 out=FLOAT[3,2]",
        "aclnnGer self=INT32[2]:-2,3 vec2=INT32[3]:4,-5,7 out=INT32[2,3]",
        "aclnnGer self=INT32[2]:1,2 vec2=INT32[3]:3,4,5 out=INT32[2,3]",
    ],
)
def ger(self, vec2):
    return np.multiply.outer(self, vec2)


# ops-nn: aclnnMatmul.md and aclnnBatchMatMul.md, with the broadcasting of numpy.matmul.
@formula(
    "aclnnMatmul",
    calls=[
        f"aclnnMatmul self=FLOAT[{a}]{LEFT} mat2=FLOAT[{b}]{RIGHT} out=FLOAT[{out}] cubeMathType=0"
        for a, b, out in (
            *(("2,3", "3,2", "2,2"), ("3", "3,2", "2"), ("2,3", "3", "2"), ("3", "3", "")),
            *(("2,2,3", "3,2", "2,2,2"), ("2,1,2,3", "2,3,2", "2,2,2,2"), ("3", "2,3,2", "2,2")),
        )
    ],
)
def matmul(self, other, _cube_math_type):
    return self @ other


@formula(
    "aclnnBatchMatMul",
    calls=[
        f"aclnnBatchMatMul self=FLOAT[{a},2,3]{LEFT} mat2=FLOAT[{b},3,2]{RIGHT} out=FLOAT[2,2,2] cubeMathType=0"
        for a, b in ((2, 2), (1, 2), (2, 1))
    ],
)
def batch_matmul(self, other, _cube_math_type):
    return self @ other
