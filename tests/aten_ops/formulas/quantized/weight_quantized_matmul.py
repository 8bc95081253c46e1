from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import bits_of, call
from tests.aten_ops.formula_helpers.quantized_matmul import transposed, unpacked
from tests.aten_ops.formula_helpers.types import decoded, decoded_offset, to_integers, unpacked_float4
from tests.aten_ops.formulas import formula

X = "FLOAT16[3,64]:0.5,-1,2,0.25,3"
INT8_WEIGHT = "INT8[64,6]:88,21,-12,-21,12,13,-51,-10,-75,55,87,74,-99,119,33,-77,-66"
FLOAT4S = ":0.5,-1,1.5,2,-3,6,0,-4,1"
PACKED = ":-1825521263,1490247002,-778779544,1174354422,219429007,-94444590,-741292784,-534204260,483763006"
PACKED_FLOAT4 = ":7.572484077574102e-16,-3.1e-05,1234.5678,-0.00091,2.7e12"


def unpacked_weight(weight, k, columns):
    """INT32 and FLOAT hold eight elements of 4 bits, along the dimension that then fits."""
    if weight.dtype == np.int64:
        return unpacked(weight, k)
    if weight.shape[-2] != k:
        return transposed(unpacked_float4(transposed(weight)))
    return unpacked_float4(weight) if columns == 8 * weight.shape[-1] else weight


# ops-nn: aclnnWeightQuantBatchMatmulV2.md, aclnnWeightQuantBatchMatmulV3.md, aclnnWeightQuantBatchMatmulNz.md.
def matmul(x, weight, scale, offset, y_scale, y_offset, bias, group_size, *_precise):
    weight = unpacked_weight(weight, x.shape[-1], scale.shape[-1])

    def of_weight(numbers):
        return numbers.repeat(group_size, 0)[: x.shape[-1]] if group_size else numbers.reshape(-1)

    values = (weight + (0 if offset is None else of_weight(offset))) * of_weight(decoded(scale))
    result = x @ values + (0 if bias is None else bias)
    if y_scale is None:
        return result
    # aclnnTransQuantParam, which makes quantScale, rounds an offset on its own.
    added = decoded_offset(y_scale) if y_offset is None else np.rint(y_offset)
    return to_integers(np.rint(result * decoded(y_scale)) + added)


PARAMETERS = "x weight antiquantScale antiquantOffsetOptional quantScaleOptional quantOffsetOptional biasOptional "
PARAMETERS += "antiquantGroupSize=0 y"
V3_PARAMETERS = PARAMETERS.replace(" y", " innerPrecise=0 y")


def calls_of_versions():
    v2, v3, nz = (f"aclnnWeightQuantBatchMatmul{version}" for version in ("V2", "V3", "Nz"))
    of_columns, y = "FLOAT16[6]:0.5,0.125,0.25", "FLOAT16[3,6]"
    yield call(v2, PARAMETERS, x=X, weight=f"INT32[8,3]{PACKED}", antiquantScale="FLOAT16[1]:0.5", y="FLOAT16[3,3]")
    operands = {"x": X, "weight": INT8_WEIGHT, "antiquantScale": of_columns}
    added = {"antiquantOffsetOptional": "FLOAT16[6]:1,-2,0.5", "biasOptional": "FLOAT16[6]:2,-3,40"}
    yield call(v2, PARAMETERS, **operands, **added, y=y)
    scales = [(0.0625, 3), (-0.125, 0), (0.25, -9), (0.03125, 1), (0.5, 17), (0.015625, -30)]
    bits = "UINT64[6]:" + ",".join(bits_of(scale, offset=offset) for scale, offset in scales)
    yield call(v2, PARAMETERS, **operands, quantScaleOptional=bits, y="INT8[3,6]")
    quantised = {"quantScaleOptional": bits, "quantOffsetOptional": "FLOAT[6]:5,-7,20", "y": "INT8[3,6]"}
    yield call(v2, PARAMETERS, **operands, **quantised)
    operands["antiquantScale"] = "FLOAT16[2,6]:0.5,0.125,0.25,1,0.75"
    yield call(v3, V3_PARAMETERS, **operands, antiquantGroupSize=32, y=y)
    mx = {"antiquantScale": "FLOAT8_E8M0[2,8]:1,0.5,2", "antiquantGroupSize": 32, "y": "FLOAT16[3,8]"}
    for version, weight in (
        (nz, f"FLOAT4_E2M1@NZ[64,8]{FLOAT4S}"),
        (v2, f"FLOAT[64,1]{PACKED_FLOAT4}"),
        (v2, f"FLOAT[8,8]{PACKED_FLOAT4}"),
    ):
        yield call(version, PARAMETERS, x=X, weight=weight, **mx)
    groups = {"antiquantScale": "FLOAT16[2,8]:1,0.5,0.75,0.25", "antiquantOffsetOptional": "FLOAT16[2,8]:1,-2,0.5"}
    groups |= {"weight": f"INT32@NZ[64,1]{PACKED}", "antiquantGroupSize": 32, "y": "FLOAT16[3,8]"}
    yield call(nz, PARAMETERS, x=X, **groups)


formula(
    "aclnnWeightQuantBatchMatmulV2",
    "aclnnWeightQuantBatchMatmulV3",
    "aclnnWeightQuantBatchMatmulNz",
    calls=[*calls_of_versions()],
)(matmul)


V1_PARAMETERS = "x1 x2 diagonalMatrix deqOffset deqScale addOffset mulScale bias transposeX1=false transposeX2=false "
V1_PARAMETERS += "antiquantScale=1.0 antiquantOffset=0.0 out"


def calls_of_first():
    name, left = "aclnnWeightQuantBatchMatmul", ":0.5,-1,2,3,1"
    right = "INT8[3,4]:35,13,-67,-23,-19,123,-94,-120,-105,-56,82,75"
    few = {"x1": f"FLOAT16[4,2]{left}", "diagonalMatrix": f"INT8[32,32]:{','.join(['1'] + ['0'] * 32)}"}
    few |= {"deqOffset": "INT32[3]:1,-2,3", "deqScale": f"UINT64[3]:{bits_of(0.5, 2, 0.25)}"}
    flags = {"x2": right, "transposeX2": "true"}
    yield call(name, V1_PARAMETERS, **few, **flags, bias="FLOAT[3]:1,2,3", transposeX1="true", out="FLOAT16[2,3]")
    many = {"addOffset": "FLOAT16[3,1]:1,0.5,2", "mulScale": "FLOAT16[1]:0.5", "antiquantScale": 0.5}
    many |= {"antiquantOffset": 2.0, "out": "FLOAT16[65,3]"}
    yield call(name, V1_PARAMETERS, x1=f"FLOAT16[65,4]{left}", **flags, **many)


# Up to 64 rows, the weight has the scales and offsets of columns; else those for the "high performance" of many rows
# (ops-nn: aclnnWeightQuantBatchMatmul.md).
@formula("aclnnWeightQuantBatchMatmul", calls=[*calls_of_first()])
def weight_quant_batch_matmul(x1, x2, _diagonal, offset, scale, added, factor, bias, transposes1, transposes2, *all_of):
    a = x1.T if transposes1 else x1
    if len(a) <= 64:
        b = ((x2.T if transposes2 else x2) + offset.reshape(-1)) * decoded(scale).reshape(-1)
    else:
        b = (x2 + all_of[1]) * all_of[0]
        b = (b + (0 if added is None else added)) * (1 if factor is None else factor)
        b = b.T if transposes2 else b
    return a @ b + (0 if bias is None else bias)


# ops-nn: aclnnMatmulEmuSplitWeight.md.
@formula(
    "aclnnMatmulEmuSplitWeight",
    calls=[
        "aclnnMatmulEmuSplitWeight x=BFLOAT16[2,3]:1,-2,0.5,4 wHigh=BFLOAT16[3,4]:1,2,-0.5,1.5,0.75 "
        "wLow=BFLOAT16[3,4]:0.5,1,3,-1.25 y=FLOAT[2,4] wLowScale=0.00390625 yDtype=0"
    ],
)
def matmul_emu_split_weight(x, high, low, scale, _dtype):
    return x @ high + scale * (x @ low)
