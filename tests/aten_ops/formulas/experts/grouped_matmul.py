from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# Rows of x up to each number of the list meet a weight of their own (ops-transformer: aclnnGroupedMatmulWeightNz.md).
@formula(
    "aclnnGroupedMatmulWeightNz",
    calls=[
        "aclnnGroupedMatmulWeightNz x={BFLOAT16[5,32]:-2.5,0.75,-0.5,1.5,3,-4,0.25} "
        "weight={BFLOAT16@NZ[2,32,48]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375} biasOptional=null "
        "scaleOptional=null offsetOptional=null antiquantScaleOptional=null antiquantOffsetOptional=null "
        "perTokenScaleOptional=null groupListOptional=INT64[2]:2,3 activationInputOptional=null "
        "activationQuantScaleOptional=null activationQuantOffsetOptional=null splitItem=3 groupType=0 groupListType=1 "
        "actType=0 tuningConfigOptional=null quantGroupSize=0 out={BFLOAT16[5,48]} activationFeatureOutOptional=null "
        "dynQuantScaleOutOptional=null"
    ],
)
def grouped_matmul_weight_nz(x, weight, *others):
    groups, list_type = others[6], others[12]
    ends = np.cumsum(groups) if list_type == 1 else groups
    result = np.zeros((len(x[0]), weight[0].shape[-1]))
    for start, end, matrix in zip([0, *ends], ends, weight[0], strict=False):
        result[start:end] = x[0][start:end] @ matrix
    return result
