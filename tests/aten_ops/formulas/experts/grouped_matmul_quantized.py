from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import INT8_VALUES, SCALE_BITS, SCALES, groups_of, unblocked
from tests.aten_ops.formula_helpers.mx import of_elements
from tests.aten_ops.formula_helpers.types import decoded, to_integers, unwritten
from tests.aten_ops.formulas import formula

X = "0.5,-1.25,2,0.75,-0.625,1.375,-2.125,0.25,1,-0.875,3"


def calls_of(name, weights):
    for k, weight in weights:
        beginning = f"{name} x=FLOAT16[4,{k}]:{X} weight={weight}:{INT8_VALUES} biasOptional=null xOffsetOptional=null "
        smooth = f"smoothScaleOptional=FLOAT16[{k}]:1,2,0.5,0.75"
        for scale, x_scale, smoothing, mode in (
            (f"FLOAT[2,16]:{SCALES}", "null", "smoothScaleOptional=null", "pertoken"),
            (f"FLOAT[2,16]:{SCALES}", "FLOAT[4]:0.0713,0.1133,0.1297,0.0517", smooth, "pertoken"),
            (f"FLOAT[2,16]:{SCALES}", "FLOAT[1]:0.0713", smooth, "pertensor"),
            (f"INT64[2,16]:{SCALE_BITS}", "FLOAT16[1]:0.0625", "smoothScaleOptional=null", "pertensor"),
        ):
            for groups in ("1,4", "1,3"):
                yield (
                    f"{beginning}weightScale={scale} groupList=INT64[2]:{groups} xScaleOptional={x_scale} {smoothing} "
                    f'xQuantMode="{mode}" transposeWeight=true out=FLOAT16[4,16]'
                )


# ops-transformer: aclnnQuantGroupedMatmulDequant.md, aclnnQuantGroupedMatmulDequantWeightNZ.md. The bits of a scale of
# the weight include the scale of x.
@formula(
    "aclnnQuantGroupedMatmulDequant",
    "aclnnQuantGroupedMatmulDequantWeightNZ",
    calls=[
        *calls_of("aclnnQuantGroupedMatmulDequant", [(16, "INT8[2,16,16]"), (48, "INT8@NZ[2,16,48]")]),
        *calls_of("aclnnQuantGroupedMatmulDequantWeightNZ", [(48, "INT8@NZ[2,16,48]"), (48, "INT8[2,2,1,16,32]")]),
    ],
)
def quant_grouped_matmul_dequant(x, weight, scale, group_list, bias, x_scale, x_offset, smooth, *attributes, outputs):
    values = x if smooth is None else x * smooth
    x_scale = np.broadcast_to(np.abs(values).max(1) / 127 if x_scale is None else x_scale, len(x))
    quantized = to_integers(values / x_scale[:, None])
    weight = unblocked(weight)[..., : x.shape[1]]
    result = unwritten(outputs["out"])
    for i, rows in groups_of(group_list, 0):
        product = quantized[rows] @ weight[i].T * decoded(scale[i])
        result[rows] = product if scale.dtype == np.int64 else product * x_scale[rows, None]
    return result


def call_of_sums(groups, list_type, size):
    return (
        "aclnnQuantGroupedMatmulInplaceAdd x1=FLOAT8_E5M2[140,2]:1,-0.5,2,0.25,-1.5,3,0.75 "
        "x2=FLOAT8_E4M3FN[140,3]:0.5,-2,1,3,-0.625 scale1Optional=FLOAT8_E8M0[5,2,2]:1,2,0.5,0.25,4 "
        f"scale2=FLOAT8_E8M0[5,3,2]:0.25,1,4,2,0.5,8,0.125 groupList=INT64[3]:{groups} yRef=FLOAT[3,2,3]:1,-1.25,0.5,3 "
        f"groupListType={list_type} groupSize={size}"
    )


# ops-transformer: aclnnQuantGroupedMatmulInplaceAdd.md. The scales of a group begin in the row of pairs whose number is
# that of the rows before the group by 64, plus that of the groups before it.
@formula(
    "aclnnQuantGroupedMatmulInplaceAdd",
    calls=[
        call_of_sums("70,0,69", 1, 0),
        call_of_sums("40,105,140", 0, 32),
        call_of_sums("0,128,140", 0, 1 << 32 | 1 << 16 | 32),
    ],
)
def quant_grouped_matmul_inplace_add(x1, x2, scale1, scale2, group_list, y, list_type, group_size):
    result = y.copy()
    for i, rows in groups_of(group_list, list_type):
        first, size = rows.start // 64 + i, rows.stop - rows.start
        a, b = (
            x[rows] * of_elements(scale[first : first + -(-size // 64)], 0, size)
            for x, scale in ((x1, scale1), (x2, scale2))
        )
        result[i] += a.T @ b
    return result
