from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import (
    INT4_VALUES,
    INT8_VALUES,
    PACKED_VALUES,
    SCALE_BITS,
    SCALES,
    groups_of,
    of_rows,
    unblocked,
)
from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.mx import mx, of_elements
from tests.aten_ops.formula_helpers.types import LARGEST, bfloat16, cast, decoded, half, unpacked_to, unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of


def calls_of(name, is_blocked):
    """Calls of a version; with `is_blocked`, of the one that takes each weight as blocks."""
    x = f"x=INT8[4,6]:{INT8_VALUES} xScale=FLOAT[4]:0.5,0.25,0.375,0.75"
    results = "output=INT8[4,4] outputScale=FLOAT[4] outputOffset=null"
    of_int8 = f"weight=INT8@NZ[2,6,8]:{INT8_VALUES},-10,12"
    of_int4 = (
        f"weight={'INT4@NZ' if is_blocked else 'INT4'}[2,6,8]:{INT4_VALUES} bias=FLOAT[2,8]:3,-5,9,1.5 offset=null"
    )
    weights = [
        (f"{of_int8} bias=null offset=null weightScale=FLOAT[2,8]:{SCALES}", "INT64[2]:1,4"),
        (f"{of_int8} bias=null offset=null weightScale=FLOAT16[2,8]:{SCALES}", "INT64[2]:0,4"),
        # Neither the bias nor the offset has an effect; the rows of the expert without a group are not written.
        (f"{of_int8} bias=INT32[2,8] offset=FLOAT[2,8] weightScale=BFLOAT16[2,8]:{SCALES}", "INT64[1]:3"),
        (f"{of_int4} weightScale=UINT64[2,2,8]:{SCALE_BITS}", "INT64[2]:2,4"),
        (f"{of_int4} weightScale=UINT64[2,8]:{SCALE_BITS}", "INT64[2]:1,4"),
    ]
    if is_blocked:
        blocks = f"weight=INT8[2,1,1,16,32]:{INT8_VALUES},-10,12"
        yield (
            f"{name} x=INT8[2,16]:{INT8_VALUES} xScale=FLOAT[2]:0.5,0.25 {blocks} bias=null offset=null "
            f"weightScale=FLOAT[2,32]:{SCALES} groupList=INT64[2]:1,2 output=INT8[2,16] outputScale=FLOAT[2] "
            "outputOffset=null"
        )
    else:
        packed = f"weight=INT32[2,6,1]:{PACKED_VALUES} bias=FLOAT[2,8]:3,-5,9,1.5 offset=null"
        weights.append((f"{packed} weightScale=UINT64[2,3,8]:{SCALE_BITS}", "INT64[2]:1,4"))
    for weight, groups in weights:
        yield f"{name} {x} {weight} groupList={groups} {results}"


def activated(x, weight, assist, weight_scale, x_scale, smooth, groups, of_product=lambda product: product):
    """The rows of the groups after SwiGLU; the other rows are 0."""
    is_mx = weight_scale.ndim == 4
    n = weight_scale.shape[2 if is_mx else -1]
    weight = unblocked(weight)[:, : x.shape[1]] if weight.ndim == 5 else weight
    k = weight.shape[1]
    weight, x = (weight, x) if x.dtype == float else (unpacked_to(weight, n), unpacked_to(x, k))
    result = np.zeros((len(x), n // 2))
    for i, rows in groups:
        if is_mx:
            product = (x * of_elements(x_scale, 1, k))[rows] @ (weight[i] * of_elements(weight_scale[i], 0, k))
        elif weight_scale.dtype != np.int64:  # A8W8, FLOAT8
            product = x[rows] @ weight[i] * weight_scale[i]
        else:
            dequantized = weight[i] * of_rows(decoded(weight_scale[i]), k)
            if assist is None:  # A4W4
                product = x[rows] @ dequantized
            else:  # A8W4: the upper and the lower halves of x
                high, low = x[rows] // 16, (x[rows] & 15) - 8
                product = (high @ dequantized) * 16 + low @ dequantized + assist[i]
        act, gate = np.split(of_product(product if is_mx else product * x_scale[rows, None]), 2, 1)
        result[rows] = act * sigmoid(act) * gate * (1 if smooth is None else smooth[i])
    return result


def to_int8(values, groups, outputs):
    """INT8 and a scale for each row; the rows after the groups are not written."""
    written = slice(groups[-1][1].stop)
    result, scale = unwritten(outputs["output"]), unwritten(outputs["outputScale"])
    scale[written] = np.abs(values[written]).max(1, initial=0) / 127
    result[written] = np.nan_to_num(np.rint(values[written] / scale[written, None]))  # a row of zeros has results 0
    return result, scale


# ops-transformer: aclnnGroupedMatmulSwigluQuant.md, aclnnGroupedMatmulSwigluQuantWeightNZ.md. outputOffset is reserved.
@formula(
    "aclnnGroupedMatmulSwigluQuant",
    "aclnnGroupedMatmulSwigluQuantWeightNZ",
    calls=[
        *calls_of("aclnnGroupedMatmulSwigluQuant", is_blocked=False),
        *calls_of("aclnnGroupedMatmulSwigluQuantWeightNZ", is_blocked=True),
        "aclnnGroupedMatmulSwigluQuant x=INT8[2,6] weight=INT8@NZ[2,6,4]:1,-2,3,4,-5 bias=null offset=null "
        "weightScale=FLOAT[2,4]:0.5,0.25 xScale=FLOAT[2]:0.5,0.25 groupList=INT64[2]:1,2 output=INT8[2,2] "
        "outputScale=FLOAT[2] outputOffset=FLOAT[2]",
        "aclnnGroupedMatmulSwigluQuantWeightNZ x=INT8[2,6] weight=INT8@NZ[2,6,4]:1,-2,3,4,-5 bias=null "
        "offset=null weightScale=FLOAT[2,4]:0.5,0.25 xScale=FLOAT[2]:0.5,0.25 groupList=INT64[2]:1,2 "
        "output=INT8[2,2] outputScale=FLOAT[2] outputOffset=FLOAT[2]",
    ],
)
def grouped_matmul_swiglu_quant(x, weight, bias, offset, weight_scale, x_scale, group_list, outputs):
    groups = groups_of(group_list, 0)
    result = to_int8(activated(x, weight, bias, weight_scale, x_scale, None, groups), groups, outputs)
    offset = outputs["outputOffset"]
    return result if offset is None else (*result, unwritten(offset))


DEFAULTS = (
    "weightAssistMatrix=null bias=null xScale=FLOAT[3]:0.5,0.25,0.375 smoothScale=null groupList=INT64[2]:1,3 "
    "dequantMode=0 dequantDtype=0 quantMode=0 groupListType=0 tuningConfig=null outputScale=FLOAT[3]"
)


def call(version, x, weight, weight_scale, output, **others):
    arguments = {"x": x, "weight": f"{{{weight}}}", "weightScale": f"{{{weight_scale}}}", "output": output}
    arguments |= dict(each.split("=") for each in DEFAULTS.split()) | others
    return f"aclnnGroupedMatmulSwigluQuant{version} " + " ".join(f"{name}={arguments[name]}" for name in arguments)


FLOATS = "1,-0.5,2,0.25,-1.5,3,-4"


def calls_of_v2():
    sizes = {"groupList": "INT64[2]:1,2", "groupListType": 1}
    x, out = f"INT8[3,6]:{INT8_VALUES}", "INT8[3,4]"
    of_all, scale = f"INT8@NZ[2,6,8]:{INT8_VALUES}", f"FLOAT[2,8]:{SCALES}"
    lists = f"INT8@NZ[6,8]:{INT8_VALUES} INT8@NZ[6,8]:5,{INT8_VALUES}", f"FLOAT[8]:{SCALES} FLOAT[8]:0.375,{SCALES}"
    for version in ("V2", "WeightNzV2"):
        yield call(version, x, of_all, scale, out, **sizes)
        yield call(version, x, of_all, scale, out, groupList="INT64[2]:1,2")  # the last row is not written
        yield call(version, x, *lists, out)
    yield call("V2", x, of_all, scale, out, bias="FLOAT[2,8]")  # without effect
    # INT8 by INT4, and INT4 by INT4
    assist = "{FLOAT[2,8]:3,-5,9,1.5,2}"
    weight = f"INT4[2,6,8]:{INT4_VALUES}"
    by_columns, by_groups = f"UINT64[2,8]:{SCALE_BITS}", f"UINT64[2,3,8]:{SCALE_BITS}"
    yield call("V2", x, weight, by_columns, out, weightAssistMatrix=assist, **sizes)
    yield call("V2", x, weight, by_groups, out, weightAssistMatrix=assist, dequantMode=1)
    lists = f"INT4[6,8]:{INT4_VALUES} INT4[6,8]:5,{INT4_VALUES}", f"UINT64[8]:{SCALE_BITS} UINT64[8]:{SCALE_BITS}"
    yield call("V2", x, *lists, out, weightAssistMatrix="{FLOAT[8]:3,-5,9,1.5 FLOAT[8]:2,-3,7}")
    x = f"INT4[3,6]:{INT4_VALUES},1"
    yield call("V2", x, weight, by_columns, out, smoothScale="FLOAT[2,4]:0.5,2,-1,0.75")
    yield call("V2", x, weight, by_groups, out, dequantMode=1, smoothScale="FLOAT[2]:0.5,-2", **sizes)
    scale = f"UINT64[2,8]:{SCALE_BITS}"
    yield call("V2", f"INT32[3,1]:{PACKED_VALUES}", f"INT32[2,8,1]:{PACKED_VALUES}", scale, out)
    # FLOAT8 with FLOAT scales: the product is rounded to FLOAT, FLOAT16 or BFLOAT16
    weight, scale = f"FLOAT8_E5M2[2,5,8]:0.5,{FLOATS},-0.75", f"BFLOAT16[2,8]:{SCALES}"
    for dtype in (0, 1, 27):
        yield call("V2", f"FLOAT8_E4M3FN[3,5]:{FLOATS}", weight, scale, "FLOAT8_E4M3FN[3,4]", dequantDtype=dtype)
    x = f"FLOAT8_E4M3FN[3,5]:{FLOATS}"
    yield call("V2", x, weight, scale, "FLOAT8_E4M3FN[3,4]", groupList="INT64[2]:1,2")  # the last row is 0
    # MX
    for x, weight in (("FLOAT8_E5M2", "FLOAT8_E4M3FN"), ("FLOAT4_E2M1", "FLOAT4_E2M1")):
        yield call(
            "V2",
            f"{x}[3,70]:{FLOATS},0.5,2,3",
            f"{weight}[2,70,72]:0.5,{FLOATS},-1,4,-3,6,1.5",
            "FLOAT8_E8M0[2,2,72,2]:0.25,1,0.5,0.125,2",
            "FLOAT8_E4M3FN[3,36]",
            **{"xScale": "FLOAT8_E8M0[3,2,2]:1,2,0.5,4,0.25", "dequantMode": 2, "quantMode": 2},
            outputScale="FLOAT8_E8M0[3,1,2]",
        )


# ops-transformer: aclnnGroupedMatmulSwigluQuantV2.md, aclnnGroupedMatmulSwigluQuantWeightNzV2.md. The exponent of an MX
# scale is the floor of the logarithm, as in ops-nn: aclnnDynamicMxQuantV3.md.
@formula(
    "aclnnGroupedMatmulSwigluQuantV2",
    "aclnnGroupedMatmulSwigluQuantWeightNzV2",
    calls=[*calls_of_v2()],
)
def grouped_matmul_swiglu_quant_v2(
    x, weight, weight_scale, assist, bias, x_scale, smooth, group_list, *attributes, outputs
):
    _, of_dtype, quant_mode, list_type, _ = attributes
    groups = groups_of(group_list, list_type)
    if weight[0].ndim % 2:  # one tensor has the matrices of all experts
        weight, weight_scale = weight[0], weight_scale[0]
        assist = assist and assist[0]
    of_product = {0: lambda product: product, 1: half, 27: bfloat16}[of_dtype]
    values = activated(x, np.asarray(weight), assist, np.asarray(weight_scale), x_scale, smooth, groups, of_product)
    if quant_mode == 2:
        return mx(values, 1, dtype_of(outputs["output"]))
    if x.dtype == np.int64:
        return to_int8(values, groups, outputs)
    dtype = dtype_of(outputs["output"])
    scale = np.abs(values).max(1, initial=0) / LARGEST[dtype]
    quotient = values / scale[:, None]
    quotient[groups[-1][1].stop :] = 0
    return cast(quotient, dtype), scale
