from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import groups_of
from tests.aten_ops.formulas import formula

X, WEIGHT = "0.75,-0.875,-0.625,2,-0.5,1.875,1.75,1.625,-1.125", "-1.25,1.375,-0.375,2,0.5,-1.125,1"


def call(version, dtype, groups, y, list_type=""):
    return (
        f"aclnnGroupedMatmulAdd{version} x={dtype}[6,4]:{X} weight={dtype}[6,3]:{WEIGHT} groupList=INT64[2]:{groups} "
        f"yRef={y}:-0.875,-0.75,1.375,0.25 transposeX=true transposeWeight=false groupType=2{list_type}"
    )


# Groups of the rows of x, transposed, and of the weight (ops-transformer: aclnnGroupedMatmulAdd.md, ...AddV2.md).
@formula(
    "aclnnGroupedMatmulAdd",
    "aclnnGroupedMatmulAddV2",
    calls=[
        call("", "BFLOAT16", "2,6", "FLOAT[8,3]"),
        call("", "FLOAT16", "0,3", "FLOAT[2,4,3]"),
        call("V2", "FLOAT16", "2,6", "FLOAT[8,3]", " groupListType=0"),
        call("V2", "BFLOAT16", "3,2", "FLOAT[8,3]", " groupListType=1"),
    ],
)
def grouped_matmul_add(x, weight, group_list, y, transpose_x, transpose_weight, group_type, list_type=0):
    products = [x[rows].T @ weight[rows] for _, rows in groups_of(group_list, list_type)]
    return y + np.reshape(products, y.shape)
