"""aclnnGroupedMatmulActivationQuantWeightNz.md (ops-transformer)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import groups_of
from tests.aten_ops.formula_helpers.functions import gelu
from tests.aten_ops.formula_helpers.mx import mx, of_elements
from tests.aten_ops.formula_helpers.types import bfloat16
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

FLOATS = "1,-0.5,2,0.25,-1.5,3,-4"
SCALES = "0.25,1,0.5,0.125,2"


def call(rows, k, n, groups, x="FLOAT8_E4M3FN", y="FLOAT8_E4M3FN", bias="null", **others):
    """A call; groups are the contents of groupList."""
    experts, pairs = groups.count(",") + 1, -(-k // 64)
    attributes = {"groupListType": 0, "tuningConfig": "null", "quantMode": '"mx"', "roundMode": '"rint"', "scaleAlg": 0}
    given = " ".join(f"{name}={value}" for name, value in (attributes | others).items())
    return (
        f"aclnnGroupedMatmulActivationQuantWeightNz x={x}[{rows},{k}]:{FLOATS},0.5 groupList=INT64[{experts}]:{groups} "
        f"weight={{FLOAT8_E4M3FN@NZ[{experts},{k},{n}]:0.5,{FLOATS},-0.75,2.5}} "
        f"weightScale={{FLOAT8_E8M0[{experts},{pairs},{n},2]:{SCALES},0.0625}} bias={bias} "
        f'xScaleOptional=FLOAT8_E8M0[{rows},{pairs},2]:{SCALES} activationType="gelu_tanh" {given} dstTypeMax=0 '
        f"y={y}[{rows},{n}] yScale=FLOAT8_E8M0[{rows},{n // 64},2]"
    )


# As in the golden code, quantisation is from BFLOAT16, in blocks of 32, and rows without a group are 0.
@formula(
    "aclnnGroupedMatmulActivationQuantWeightNz",
    calls=[
        call(4, 34, 64, "1,3", bias="{FLOAT[0]}"),
        call(3, 70, 128, "0,2", x="FLOAT8_E5M2", y="FLOAT8_E5M2", groupListType=1, scaleAlg=1, quantMode='""'),
        call(2, 2, 64, "2", tuningConfig="[1]", scaleAlg=1, roundMode='""'),
    ],
)
def grouped_matmul_activation_quant(x, group_list, weight, weight_scale, bias, x_scale, *attributes, outputs):
    _, list_type, _, _, _, algorithm, _ = attributes
    k = x.shape[1]
    result = np.zeros((len(x), weight[0].shape[2]))
    for i, rows in groups_of(group_list, list_type):
        scaled = weight[0][i] * of_elements(weight_scale[0][i], 0, k)
        result[rows] = gelu((x * of_elements(x_scale, 1, k))[rows] @ scaled, approximates=True)
    return mx(bfloat16(result), 1, dtype_of(outputs["y"]), algorithm=algorithm)
