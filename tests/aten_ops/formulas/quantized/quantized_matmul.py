from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import gelu
from tests.aten_ops.formula_helpers.quantized import bits_of, call
from tests.aten_ops.formula_helpers.quantized_matmul import OF_256, product, transposed
from tests.aten_ops.formula_helpers.types import INT8, INT32, decoded, decoded_offset, to_integers
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

LEFT = "INT8[3,5]:-9,38,96,20,44,-35,39,14,120,-102,-47,90,22,-62,-126"
RIGHT = "INT8[5,4]:63,-68,1,51,-38,-59,-24,-18,-31,29,-22,24,123,-66,-121,120,43,-95,-5,-49"
LEFT_T = "INT8[5,3]:-9,-35,-47,38,39,90,96,14,22,20,120,-62,44,-102,-126"
RIGHT_T = "INT8[4,5]:63,-38,-31,123,43,-68,-59,29,-66,-95,1,-24,-22,-121,-5,51,-18,24,120,-49"
BATCH = "INT8[2,3,5]:33,-4,-43,-77,-38,79,-36,-117,118,105,124,-111,51,-57,-115,-33,68,127,94,-65,-87"
INT4S = ":-8,-3,-4,6,-7,1,7,6,-4,4,-1,-2,5"
PACKED_LEFT = "INT32[2,1]:-1433892989,-2032830221"
PACKED_RIGHT = "INT32[8,2]:1252301973,-499630036,10326984,-141457313,-2010366204,145966276,-899966214,1824499625"
INT8S = ":87,125,-103,-13,-102,78,101,22,-52,-117,-98,97,-49,117,3,-58,-82,-81,120,14,-53"
INT32S = ":472831724,271239263,2049983348,79823440,1674653640,887905812,1942601355,-1324754586,1295042888"
E4M3 = ":0.5,-1,1.75,2,-0.125,3.5,0,-448,0.25"
E5M2 = ":1,-0.5,4,0,7,-1.25,3,-0.875,2.5,0.375,-6"
E2M1 = ":0.5,-1,1.5,2,-3,6,0,-4,1"
CHANNELS = "FLOAT[4]:0.11,-0.02,1,0.003"
TOKENS = "FLOAT[3]:0.5,1.25,2"
BITS = f"UINT64[4]:{bits_of(0.01, -0.5, 0.03125, 0.001)}"
INT32_BIAS = "INT32[4]:5,-7,100,3"
FLOAT_BIAS = "FLOAT[4]:1.5,2,-3,0.25"
# The sizes of groups along m, n and k, in 16 bits each.
MX, GROUPS_AND_BLOCKS, BLOCKS = (m << 32 | n << 16 | k for m, n, k in ((1, 1, 32), (1, 128, 128), (128, 128, 128)))


V5 = "x1 x2 x1Scale x2Scale yScale x1Offset x2Offset yOffset bias transposeX1=false transposeX2=false groupSize=0 out"


def calls_of_v5():
    name, of_k, yes = "aclnnQuantMatmulV5", f"UINT64[1,4]:{bits_of(0.5, 1.5, -2, 0.25)}", "true"

    def of_float8(left, right, **others):
        return call(name, V5, x1=f"FLOAT8_E4M3FN{left}{E4M3}", x2=f"FLOAT8_E5M2{right}{E5M2}", **others)

    pair = {"x1Scale": "FLOAT8_E8M0[2,2,2]:1,2,0.5,4,8", "groupSize": MX}
    mx = {**pair, "x2Scale": "FLOAT8_E8M0[3,2,2]:1,0.25,2", "bias": "FLOAT[3]:1,2,3", "out": "FLOAT[2,3]"}
    float8, bias = {"transposeX2": yes, "out": "FLOAT[2,3]"}, "FLOAT[3]:100,-2,30"
    yield of_float8("[2,70]", "[3,70]", **mx, transposeX2=yes)
    mx |= {"bias": "null", "x2Scale": "FLOAT8_E8M0[2,3,2]:1,0.25,2"}
    yield of_float8("[70,2]", "[70,3]", **mx, transposeX1=yes)
    yield of_float8("[2,70]", "[3,70]", **float8, x1Scale="FLOAT[1]:3", x2Scale="FLOAT[1]:0.5", bias=bias)
    yield of_float8("[2,70]", "[3,70]", **float8, x2Scale=f"UINT64[1]:{bits_of(0.5)}", bias=bias)
    blocks = {"x1Scale": "FLOAT[2,1]:0.5,0.25", "x2Scale": "FLOAT[2,1]:1,3", "groupSize": BLOCKS}
    yield of_float8("[130,3]", "[130,5]", **blocks, transposeX1=yes, out="FLOAT[3,5]")
    pair["x2Scale"] = "FLOAT8_E8M0[4,2,2]:1,0.25,2"
    float4 = f"FLOAT4_E2M1[2,70]{E2M1}", "FLOAT4_E2M1[4,70]:1,-0.5,4,0,6,-1.5,3"
    yield call(name, V5, x1=float4[0], x2=float4[1], **pair, transposeX2=yes, out="FLOAT16[2,4]")
    of_columns = {"x2Scale": "BFLOAT16[4,2]:1,0.5,0.25,2", "yScale": of_k, "groupSize": 32, "transposeX2": yes}
    mixed = f"FLOAT8_E4M3FN[2,64]{E4M3}", f"FLOAT4_E2M1[4,64]{E2M1},-1.5,-2"
    yield call(name, V5, x1=mixed[0], x2=mixed[1], **of_columns, out="BFLOAT16[2,4]")
    int4 = f"INT4[2,1024]{INT4S}", f"INT4[256,1024]{INT4S},2,-6,3"
    of_256 = {"x1Scale": "FLOAT[2,1]:0.5,2", "x2Scale": "FLOAT[4,256]:0.5,1,0.25", "groupSize": OF_256}
    of_256 |= {"x2Offset": "FLOAT16[4,256]:1,-2,0.5,0", "transposeX2": yes, "out": "BFLOAT16[2,256]"}
    yield call(name, V5, x1=int4[0], x2=int4[1], **of_256)
    groups = {"x1Scale": "FLOAT[2,1]:0.5,2", "out": "FLOAT16[2,16]", "yOffset": "FLOAT[16]:100,-20,3,40"}
    halves = f"INT8[2,512]{INT8S}", f"INT32[512,2]{INT32S}"
    groups |= {"x2Scale": f"INT64[2,16]:{bits_of(0.01, 0.02, -0.005, 0.0025, 0.015)}", "groupSize": OF_256}
    yield call(name, V5, x1=halves[0], x2=halves[1], **groups)
    blocks = {"x1Scale": "FLOAT[3,4]:0.5,0.25,1,2,0.125", "x2Scale": "FLOAT[2,4]:1,0.5,0.25", "bias": "FLOAT[256]:3"}
    blocks |= {"groupSize": GROUPS_AND_BLOCKS, "transposeX2": yes, "out": "BFLOAT16[3,256]"}
    yield call(name, V5, x1="INT8[3,512]:1,-2,3,5,-7", x2="INT8[256,512]:2,3,-1,4,0,1,-6", **blocks)
    yield call(name, V5, x1=LEFT, x2=RIGHT, x1Scale=TOKENS, x2Scale=CHANNELS, out="BFLOAT16[3,4]")
    # INT8 by rows of INT32 with one scale for each column.
    columns = {"x1Scale": "FLOAT[2]:0.5,2", "x2Scale": f"INT64[16]:{bits_of(0.1, 0.02, -0.05, 0.025)}"}
    columns |= {"yOffset": "FLOAT[16]:100,-20,3,40", "out": "FLOAT16[2,16]"}
    yield call(name, V5, x1=f"INT8[2,4]{INT8S}", x2=f"INT32[4,2]{INT32S}", **columns)


def calls_of_weight_nz():
    name = "aclnnQuantMatmulWeightNz"
    packed = "FLOAT@NZ[64,2]:7.572484077574102e-16,-3.1e-05,1234.5678,-0.00091,2.7e12"
    columns = {"x2Scale": "BFLOAT16[2,16]:1,0.5,2", "yScale": f"UINT64[1,16]:{bits_of(0.5, 0.25, 2)}"}
    left = f"FLOAT8_E4M3FN[2,64]{E4M3.replace('-448', '-44')}"
    yield call(name, V5, x1=left, x2=packed, **columns, groupSize=32, out="BFLOAT16[2,16]")
    int8 = {"x2Scale": f"INT64[1]:{bits_of(0.5)}", "transposeX2": "true", "out": "BFLOAT16[3,20]"}
    yield call(name, V5, x1=f"INT8[3,40]{INT8S}", x2=f"INT8@NZ[20,40]{INT8S},-9,33", **int8)
    right = f"FLOAT4_E2M1@NZ[8,64]{E2M1},-1.5,-2"
    mx = {"x1Scale": "FLOAT8_E8M0[2,1,2]:1,2,0.5", "x2Scale": "FLOAT8_E8M0[8,1,2]:0.5,4,1", "groupSize": 32}
    yield call(name, V5, x1=left, x2=right, **mx, transposeX2="true", out="BFLOAT16[2,8]")


@formula("aclnnQuantMatmulV5", "aclnnQuantMatmulWeightNz", calls=[*calls_of_v5(), *calls_of_weight_nz()])
def quant_matmul_v5(x1, x2, x1_scale, x2_scale, y_scale, _x1_offset, x2_offset, y_offset, bias, *flags):
    return product(x1, x2, x1_scale, x2_scale, y_scale, x2_offset, y_offset, bias, *flags)


V4 = "x1 x2 scale offset pertokenScaleOptional bias transposeX1=false transposeX2=false out"


def calls_of_v4():
    name, tokens = "aclnnQuantMatmulV4", {"scale": CHANNELS, "pertokenScaleOptional": TOKENS}
    yield call(name, V4, x1=LEFT, x2=RIGHT, **tokens, bias=INT32_BIAS, out="FLOAT16[3,4]")
    yield call(name, V4, x1=BATCH, x2=RIGHT, **tokens, bias=FLOAT_BIAS, out="FLOAT16[2,3,4]")
    bias = "INT32[2,1,4]:1,2,3,4,-500,-6,-7,800"
    yield call(name, V4, x1=BATCH, x2=RIGHT, **tokens, bias=bias, out="BFLOAT16[2,3,4]")
    yield call(name, V4, x1=LEFT, x2=RIGHT, scale=CHANNELS, bias=FLOAT_BIAS, out="BFLOAT16[3,4]")


# ops-nn: aclnnQuantMatmulV4.md.
@formula("aclnnQuantMatmulV4", calls=[*calls_of_v4()])
def quant_matmul_v4(x1, x2, scale, offset, token_scale, bias, transposes1, transposes2):
    return product(x1, x2, token_scale, scale, None, offset, None, bias, transposes1, transposes2, 0)


V3 = "x1 x2 scale offset bias transposeX1=false transposeX2=false out"


def calls_of_v3():
    name, half = "aclnnQuantMatmulV3", f"INT64[1]:{bits_of(0.5)}"
    yield call(name, V3, x1=PACKED_LEFT, x2=PACKED_RIGHT, scale=half, out="FLOAT16[2,16]")
    int4 = f"INT4[3,4]{INT4S}", f"INT4[6,4]{INT4S},2,-6"
    yield call(name, V3, x1=int4[0], x2=int4[1], scale=half, transposeX2="true", out="FLOAT16[3,6]")
    yield call(name, V3, x1=LEFT, x2=RIGHT, scale=BITS, offset="FLOAT[4]:1,2,3,-4", out="INT8[3,4]")
    yield call(name, V3, x1=LEFT, x2=RIGHT, scale=BITS, bias=INT32_BIAS, out="FLOAT16[3,4]")
    yield call(name, V3, x1=LEFT, x2=RIGHT, scale=CHANNELS, bias=FLOAT_BIAS, out="BFLOAT16[3,4]")
    yield call(name, V3, x1=LEFT, x2=RIGHT, scale="FLOAT[1]:2", bias=INT32_BIAS, out="INT32[3,4]")
    large = {"x1": "INT8[2,2100]:-128", "x2": "INT8[3,2100]:-128", "transposeX2": "true"}  # sums beyond 2**24
    yield call(name, V3, **large, scale="FLOAT[1]:2", out="INT32[2,3]")
    bits = bits_of(0.0078125, 0.25, 0.0009765625, 0.0001, offset=3)
    yield call(name, V3, x1=LEFT, x2=RIGHT, scale=f"UINT64[4]:{bits}", out="INT8[3,4]")


# ops-nn: aclnnQuantMatmulV3.md.
@formula("aclnnQuantMatmulV3", calls=[*calls_of_v3()])
def quant_matmul_v3(x1, x2, scale, offset, bias, transposes1, transposes2, outputs):
    dtype = dtype_of(outputs["out"])
    scale = np.ones(1) if dtype == INT32 else scale  # which has no effect
    result = product(x1, x2, None, scale, None, offset, None, bias, transposes1, transposes2, 0)
    if dtype != INT8:
        return result
    return to_integers(np.rint(result) + (decoded_offset(scale) if scale.dtype == np.int64 else 0))


# (x1 x2 + bias) * deqScale (ops-nn: aclnnQuantMatmul.md, aclnnQuantMatmulV2.md).
@formula(
    "aclnnQuantMatmul", calls=[f"aclnnQuantMatmul x1={LEFT} x2={RIGHT} bias={INT32_BIAS} deqScale=1.5 out=FLOAT16[3,4]"]
)
def quant_matmul(x1, x2, bias, scale):
    return (x1 @ x2 + (0 if bias is None else bias)) * np.float32(scale)


@formula(
    "aclnnQuantMatmulV2",
    calls=[
        f"aclnnQuantMatmulV2 x1={LEFT_T} x2={RIGHT_T} bias={bias} "
        f"deqScale=UINT64[16]:{bits_of(0.01, -0.5, 0.03125, 0.001, *[1] * 12)} adjX1=true adjX2=true out=FLOAT16[3,4]"
        for bias in ("null", INT32_BIAS)
    ],
)
def quant_matmul_v2(x1, x2, bias, scale, transposes1, transposes2):
    sums = (transposed(x1) if transposes1 else x1) @ (transposed(x2) if transposes2 else x2)
    return (sums + (0 if bias is None else bias)) * decoded(scale)[: sums.shape[-1]]


# ops-nn: aclnnQuantBatchMatmulInplaceAdd.md.
@formula(
    "aclnnQuantBatchMatmulInplaceAdd",
    calls=[
        f"aclnnQuantBatchMatmulInplaceAdd x1=FLOAT8_E4M3FN[70,2]{E4M3} x2=FLOAT8_E5M2[70,3]{E5M2} "
        "x1ScaleOptional=FLOAT8_E8M0[2,2,2]:1,2,0.5,4,8 x2Scale=FLOAT8_E8M0[2,3,2]:1,0.25,2 yRef=FLOAT[2,3]:100,2,-300 "
        "transposeX1=true transposeX2=false groupSize=32"
    ],
)
def quant_batch_matmul_inplace_add(x1, x2, x1_scale, x2_scale, y, *flags):
    return product(x1, x2, x1_scale, x2_scale, None, None, None, None, *flags) + y


FUSED = (
    "x1 x2 x1Scale x2Scale yScaleOptional x1OffsetOptional x2OffsetOptional yOffsetOptional biasOptional x3Optional "
)
FUSED += "fusedOpType groupSizeOptional=0 out"
SMALL_CHANNELS = "FLOAT[4]:0.0011,-0.0002,0.0001,0.0003"


# ops-nn: aclnnFusedQuantMatmul.md, aclnnFusedQuantMatmulWeightNz.md.
@formula(
    "aclnnFusedQuantMatmul",
    "aclnnFusedQuantMatmulWeightNz",
    calls=[
        call(name, FUSED, x1=LEFT, x2=right, x1Scale=TOKENS, x2Scale=SMALL_CHANNELS, fusedOpType=f'"{fused}"', **others)
        for name, right in (
            ("aclnnFusedQuantMatmul", RIGHT),
            ("aclnnFusedQuantMatmulWeightNz", RIGHT.replace("INT8", "INT8@NZ")),
        )
        for fused, others in (
            ("gelu_erf", {"biasOptional": "INT32[4]:500,-700,100,3", "out": "FLOAT16[3,4]"}),
            ("gelu_tanh", {"biasOptional": "FLOAT[4]:1.5,2,-0.3,0.25", "out": "BFLOAT16[3,4]"}),
        )
    ],
)
def fused_quant_matmul(x1, x2, x1_scale, x2_scale, _y, _x1, x2_offset, _y_offset, bias, _x3, fused_type, group_size):
    values = product(x1, x2, x1_scale, x2_scale, None, x2_offset, None, bias, False, False, group_size)
    return gelu(values, fused_type == "gelu_tanh")
