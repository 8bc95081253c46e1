from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers import types
from tests.aten_ops.formula_helpers.functions import gelu
from tests.aten_ops.formula_helpers.mx import mx
from tests.aten_ops.formula_helpers.quantized import bits_of, call
from tests.aten_ops.formula_helpers.quantized_matmul import product, transposed
from tests.aten_ops.formula_helpers.types import decoded, decoded_offset, to_integers, unpacked_float4
from tests.aten_ops.formulas import formula

INT8S = ":72,-54,-74,126,57,-86,113,-121,37,110,66,-66,125,0,-75,-16,78,25,45,-22,94,19,-73"
MORE_INT8S = ":111,7,122,-6,-13,-10,-96,50,60,3,-87,-101,-29,27,-93,25,-21,-5,-28"
E4M3 = ":0.5,-1,1.75,2,-0.125,3.5,0,-2.5,0.75"
# Pairs of different positions in four, of which each byte holds two.
CODES = ":80,164,9,72,148,5,40,130,73,89,10,84,153"


def matrix_of_blocks(blocks, rows):
    """Rows of a matrix in blocks of 16 rows and 8 columns, whatever shape they have."""
    return blocks.reshape(-1, -(-rows // 16) * 16, 8).swapaxes(0, 1).reshape(-(-rows // 16) * 16, -1)[:rows]


def dense(values, index, columns):
    """Two of each four elements. Four bits have their positions: two of the first, two of the second minus 1."""
    codes = np.stack([index & 15, index >> 4], -1).reshape(len(index), -1)[:, : values.shape[1] // 2]
    positions = np.stack([codes & 3, (codes >> 2) + 1], -1)
    pairs = values.reshape(len(values), -1, 2)
    return np.sum((positions[..., None] == np.arange(4)) * pairs[..., None], 2).reshape(len(values), -1)[:, :columns]


SPARSE = "x sparseWeight index xScale sparseWeightScale biasOptional out=BFLOAT16[3,16]"


# ops-nn: aclnnSparse4to2QuantMatmulWeightNz.md.
@formula(
    "aclnnSparse4to2QuantMatmulWeightNz",
    calls=[
        call(
            "aclnnSparse4to2QuantMatmulWeightNz",
            SPARSE,
            x=f"INT8[3,64]{INT8S}",
            sparseWeight=f"{weight}[16,32]{MORE_INT8S}",
            index=f"UINT8[16,8]{CODES}",
            xScale="FLOAT[3]:0.5,0.25,1",
            sparseWeightScale="FLOAT[16]:0.5,0.25,-0.125,2,0.75",
            biasOptional=bias,
        )
        for weight, bias in (("INT8", "null"), ("INT8@NZ", "BFLOAT16[16]:100,-200,300"))
    ],
)
def sparse_matmul(x, values, index, x_scale, scale, bias):
    weight = dense(values, matrix_of_blocks(index, len(values)), x.shape[1])
    return x @ weight.T * scale * x_scale[:, None] + (0 if bias is None else bias)


ACTIVATED = "x1 x2 x1ScaleOptional x2Scale biasOptional transposeX1=false transposeX2=true groupSize=0 activationType "
ACTIVATED += 'quantMode="mx" roundMode scaleAlg=0 dstTypeMax=0.0 yOut yScaleOut'


# ops-nn: aclnnQuantMatmulActivationQuantWeightNz.md.
@formula(
    "aclnnQuantMatmulActivationQuantWeightNz",
    calls=[
        call(
            "aclnnQuantMatmulActivationQuantWeightNz",
            ACTIVATED,
            x1=f"FLOAT8_E4M3FN[2,64]{E4M3}",
            x2="FLOAT8_E4M3FN@NZ[40,64]:1,-2,0.5,0.25,1.5,-0.75,-1,2,0.125,-0.5,1.25",
            x1ScaleOptional="FLOAT8_E8M0[2,1,2]:0.25,0.125",
            x2Scale="FLOAT8_E8M0[40,1,2]:1,0.5,0.25",
            activationType=f'"{activation}"',
            scaleAlg=algorithm,
            yOut="FLOAT8_E4M3FN[2,40]",
            yScaleOut="FLOAT8_E8M0[2,1,2]",
            **others,
        )
        for activation, algorithm, others in (
            ("gelu_erf", 0, {}),
            ("gelu_erf", 1, {"biasOptional": "FLOAT[40]:0.5,-1.75,3"}),
            ("gelu_tanh", 1, {"roundMode": '"rint"'}),
        )
    ],
)
def quant_matmul_activation_quant(x1, x2, x1_scale, x2_scale, bias, transposes1, transposes2, group_size, *others):
    activation, _mode, _round, algorithm, _largest = others
    values = product(x1, x2, x1_scale, x2_scale, None, None, None, bias, transposes1, transposes2, group_size)
    return mx(gelu(values, activation == "gelu_tanh"), -1, types.E4M3, algorithm=algorithm)


DEQUANT = "x weight weightScale biasOptional xScaleOptional xOffsetOptional smoothScaleOptional xQuantMode "
DEQUANT += "transposeWeight=true out=FLOAT16[2,16]"


def calls_of_dequant():
    name, x = "aclnnQuantMatmulDequant", "FLOAT16[2,16]:0.5,-1,2,0.25,3,-2.5,1"
    scales, smooth = "FLOAT[16]:0.5,0.25,1", "FLOAT16[16]:1,2,0.5"
    of_all = {"xScaleOptional": "FLOAT16[1]:0.0625", "xQuantMode": '"pertensor"'}
    bits = f"INT64[16]:{bits_of(0.03125, 0.5, 0.01)}"
    weight = f"[16,16]{INT8S}"
    yield call(name, DEQUANT, x=x, weight=f"INT8@NZ{weight}", weightScale=bits, **of_all)
    of_rows = {"weight": f"INT8{weight}", "weightScale": scales, "xQuantMode": '"pertoken"'}
    yield call(name, DEQUANT, x=x, **of_rows, smoothScaleOptional=smooth)
    yield call(name, DEQUANT, x=x, **of_rows, xScaleOptional="FLOAT[2]:0.0625,0.03")


# ops-nn: aclnnQuantMatmulDequant.md.
@formula("aclnnQuantMatmulDequant", calls=[*calls_of_dequant()])
def quant_matmul_dequant(x, weight, weight_scale, _bias, x_scale, _x_offset, smooth, _mode, _transposes):
    x = x if smooth is None else x * smooth
    of_rows = np.abs(x).max(1) / 127 if x_scale is None else x_scale
    result = to_integers(x / of_rows[:, None]) @ weight.T * decoded(weight_scale)
    return result if weight_scale.dtype == np.int64 else result * of_rows[:, None]


# ops-nn: aclnnQuantMatmulReduceSumWeightNz.md.
@formula(
    "aclnnQuantMatmulReduceSumWeightNz",
    calls=[
        f"aclnnQuantMatmulReduceSumWeightNz x1=INT8[2,3,5]{INT8S} x2=INT8@NZ[2,5,4]{MORE_INT8S} "
        "x1Scale=FLOAT[2,3]:0.5,1,0.25,2 x2Scale=BFLOAT16[4]:1,0.5,2 yScale=null x1Offset=null x2Offset=null "
        "yOffset=null bias=null transposeX1=false transposeX2=false groupSize=0 dims=[0] keepDims=false "
        "out=BFLOAT16[3,4]"
    ],
)
def quant_matmul_reduce_sum(x1, x2, x1_scale, x2_scale, *_others):
    return np.sum(x1 @ x2 * x1_scale[..., None] * x2_scale, 0)


PERMUTED = "x1 x2 bias x1Scale x2Scale dtype=27 groupSize=32 permX1=[1,0,2] permX2=[0,1,2] permY=[1,0,2] "
PERMUTED += "batchSplitFactor=1 out"


def calls_of_permuted():
    x1 = {"x1": f"FLOAT8_E4M3FN[3,2,64]{E4M3}", "x1Scale": "FLOAT8_E8M0[3,2,1,2]:1,2,4"}
    values, scales = ":1,-2,0.5,1.5,-0.25,3,-0.75", ":1,0.5,0.25"
    name = "aclnnTransposeQuantBatchMatMul"
    of_rows = {"x2": f"FLOAT8_E4M3FN[2,5,64]{values}", "x2Scale": f"FLOAT8_E8M0[2,5,1,2]{scales}"}
    yield call(name, PERMUTED, **x1, **of_rows, permX2="[0,2,1]", out="BFLOAT16[3,2,5]")
    of_rows = {"x1": f"FLOAT8_E5M2[3,1,512]{E4M3}", "x2": f"FLOAT8_E4M3FN[1,512,128]{values}", "groupSize": 0}
    scales_of_rows = {"x1Scale": "FLOAT[3]:0.5,1.25,2", "x2Scale": "FLOAT[128]:0.5,1,2"}
    yield call(name, PERMUTED, **of_rows, **scales_of_rows, dtype=1, out="FLOAT16[3,1,128]")
    of_columns = {"x2": f"FLOAT8_E4M3FN@NZ[2,64,5]{values}", "x2Scale": f"FLOAT8_E8M0[2,1,5,2]{scales}"}
    yield call(f"{name}WeightNz", PERMUTED, **x1, **of_columns, out="BFLOAT16[3,2,5]")


# ops-nn: aclnnTransposeQuantBatchMatMul.md, aclnnTransposeQuantBatchMatMulWeightNz.md.
@formula("aclnnTransposeQuantBatchMatMul", "aclnnTransposeQuantBatchMatMulWeightNz", calls=[*calls_of_permuted()])
def transpose_quant_batch_matmul(x1, x2, _bias, x1_scale, x2_scale, _dtype, group_size, _perm1, perm2, *_others):
    of_x1 = x1_scale.swapaxes(0, 1) if x1_scale.ndim == 4 else x1_scale
    operands = x1.swapaxes(0, 1), x2, of_x1, x2_scale, None, None, None, None, False, perm2 == [0, 2, 1], group_size
    return product(*operands).swapaxes(0, 1)


# ops-nn: aclnnDualLevelQuantMatmulWeightNz.md.
@formula(
    "aclnnDualLevelQuantMatmulWeightNz",
    calls=[
        "aclnnDualLevelQuantMatmulWeightNz x1=FLOAT4_E2M1[2,576]:0.5,-1,1.5,2,-3,6,0,-4,1 "
        "x2=FLOAT4_E2M1@NZ[4,576]:1,-0.5,4,0,6,-1.5,3 x1Level0Scale=FLOAT[2,2]:0.5,1,2 "
        "x2Level0Scale=FLOAT[2,4]:1,0.25,0.5 x1Level1Scale=FLOAT8_E8M0[2,9,2]:1,2,0.5,1,0.25 "
        "x2Level1Scale=FLOAT8_E8M0[4,9,2]:1,0.5,2 optionalBias=FLOAT[4]:2,-30,400,5 transposeX1=false transposeX2=true "
        "level0GroupSize=512 level1GroupSize=32 out=FLOAT16[2,4]"
    ],
)
def dual_level_quant_matmul(x1, x2, of_x1, of_x2, blocks_of_x1, blocks_of_x2, bias, *_others):
    k = x1.shape[1]

    def scaled(x, level0, level1):
        return x * level0.repeat(512, 1)[:, :k] * level1.reshape(len(x), -1).repeat(32, 1)[:, :k]

    if x2.dtype == np.int64:  # an INT8 holds two elements, the first one in the lower bits
        pairs = np.stack([x2 & 15, x2 >> 4 & 15], -1).reshape(len(x2), -1, 8)
        x2 = unpacked_float4(np.sum(pairs << 4 * np.arange(8), -1))
    return scaled(x1, of_x1, blocks_of_x1) @ scaled(x2, of_x2.T, blocks_of_x2).T + (0 if bias is None else bias)


def calls_of_batch_matmul_quant():
    scales = [(0.5, 3), (2, -5), (-12, 7), (1.25, 0), (-0.75, 255), *[(1, 0)] * 11]
    parameters = ",".join(bits_of(scale, offset=offset) for scale, offset in scales)
    operands = "x1=FLOAT16[3,2]:1.5,2,-3,0.5,0.25,-1 x2=FLOAT16[3,5]:2,-1,4,10"
    for param, bias in ((f"UINT64[16]:{parameters}", "FLOAT16[5]:1,-2"), (f"UINT64[1]:{bits_of(-1.5)}", "null")):
        flags = "transposeX1=true transposeX2=false out=INT8[2,5]"
        yield f"aclnnBatchMatmulQuant {operands} quantParam={param} bias={bias} {flags}"


# ops-nn: aclnnBatchMatmulQuant.md, and aclnnTransQuantParam.md for quantParam.
@formula("aclnnBatchMatmulQuant", calls=[*calls_of_batch_matmul_quant()])
def batch_matmul_quant(x1, x2, parameters, bias, transposes1, transposes2):
    sums = (transposed(x1) if transposes1 else x1) @ (transposed(x2) if transposes2 else x2)
    own = parameters[: sums.shape[-1]]
    return to_integers(np.rint((sums + (0 if bias is None else bias)) * decoded(own)) + decoded_offset(own))
