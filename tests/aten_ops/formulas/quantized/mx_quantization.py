"""By ops-nn: aclnnDynamicMxQuantV3.md, aclnnDynamicMxQuantWithDualAxisV2.md, aclnnDynamicBlockMxQuant.md,
aclnnGroupedDynamicMxQuantV2.md and aclnnAntiMxQuant.md."""

from __future__ import annotations

from tests.aten_ops.formula_helpers.mx import mx, mx_groups, mx_squares, numbers, of_elements
from tests.aten_ops.formulas import formula

X = f"x=BFLOAT16[3,70]:{numbers()} axis=-1"
TO_ROWS = "FLOAT8_E4M3FN[3,70] mxscaleOut=FLOAT8_E8M0[3,2,2]"
# Blocks with tiny numbers, whose exact scale is no normal number of FLOAT, with inf and nan, and with nothing but 0.
SPECIAL = ",".join(
    ["1.5,-2.75,448,3", *["-7"] * 28, "6.2e-36,-3e-36,1e-36,4.5e-36", *["2e-36"] * 28, "-inf,2", *["3"] * 30]
    + ["0"] * 32
    + ["1e-36,-4e-36,2.5e-36,5e-37", *["-2e-36"] * 28, "nan,2", *["3"] * 30, "0.5,-1", *["0.25"] * 30, *["0"] * 32]
)
TO_FLOAT4 = (
    ("floor", 2, 7.0),
    ("rint", 0, 6.0),
    ("rint", 2, 0.0),
    ("round", 2, 6.0),
    ("floor", 0, 0.0),
    ("round", 2, 10.5),
)


@formula(
    "aclnnDynamicMxQuant",
    "aclnnDynamicMxQuantV2",
    "aclnnDynamicMxQuantV3",
    calls=[
        f'aclnnDynamicMxQuant {X} roundModeOptional="rint" dstType=36 blocksize=32 scaleAlg=0 yOut={TO_ROWS}',
        f'aclnnDynamicMxQuant {X} roundModeOptional="rint" dstType=36 blocksize=32 scaleAlg=1 yOut={TO_ROWS}',
        f'aclnnDynamicMxQuant x=FLOAT[70,3]:{numbers()} axis=0 roundModeOptional="rint" dstType=35 blocksize=32'
        " scaleAlg=1 yOut=FLOAT8_E5M2[70,3] mxscaleOut=FLOAT8_E8M0[2,3,2]",
        f'aclnnDynamicMxQuant x=FLOAT16[135,2]:{numbers()} axis=0 roundModeOptional="round" dstType=40 blocksize=64'
        " scaleAlg=0 yOut=FLOAT4_E2M1[135,2] mxscaleOut=FLOAT8_E8M0[2,2,2]",
        f'aclnnDynamicMxQuant x=FLOAT16[2,2,35,2]:{numbers()} axis=2 roundModeOptional="" dstType=35 blocksize=32'
        " scaleAlg=0 yOut=FLOAT8_E5M2[2,2,35,2] mxscaleOut=FLOAT8_E8M0[2,2,1,2,2]",
        'aclnnDynamicMxQuant x=BFLOAT16[2,0] axis=1 roundModeOptional="rint" dstType=36 blocksize=32 scaleAlg=0'
        " yOut=FLOAT8_E4M3FN[2,0] mxscaleOut=FLOAT8_E8M0[2,0,2]",
        *(
            f'aclnnDynamicMxQuantV2 x=BFLOAT16[2,128]:{SPECIAL} axis=1 roundModeOptional="rint" dstType={dtype}'
            f" blocksize=32 scaleAlg={algorithm} dstTypeMax=0.0 yOut={out}[2,128] mxscaleOut=FLOAT8_E8M0[2,2,2]"
            for dtype, out, algorithm in (
                (36, "FLOAT8_E4M3FN", 0),
                (36, "FLOAT8_E4M3FN", 1),
                (35, "FLOAT8_E5M2", 1),
                (40, "FLOAT4_E2M1", 2),
            )
        ),
        *(
            f'aclnnDynamicMxQuantV2 x=BFLOAT16[2,32]:{x} axis=1 roundModeOptional="rint" dstType={dtype} blocksize=32'
            f" scaleAlg={algorithm} dstTypeMax=0.0 yOut={out}[2,32] mxscaleOut=FLOAT8_E8M0[2,1,2]"
            for x, dtype, out, algorithm in (
                ("2.4e-36,-1e-36,5e-37,3e-37,1.5e-36", 36, "FLOAT8_E4M3FN", 1),
                ("5e-38,2e-38,-1.5e-38,3e-38,-4e-38", 40, "FLOAT4_E2M1", 2),
            )
        ),
        *(
            f'aclnnDynamicMxQuantV2 {X} roundModeOptional="{mode}" dstType=40 blocksize=32 scaleAlg={algorithm}'
            f" dstTypeMax={largest} yOut=FLOAT4_E2M1[3,70] mxscaleOut=FLOAT8_E8M0[3,2,2]"
            for mode, algorithm, largest in TO_FLOAT4
        ),
        f'aclnnDynamicMxQuantV3 {X} roundModeOptional="rint" dstType=36 blocksize=32 scaleAlg=1 dstTypeMax=0.0'
        f" maxLowBound=60.0 yOut={TO_ROWS}",
        f'aclnnDynamicMxQuantV3 {X} roundModeOptional="rint" dstType=40 blocksize=32 scaleAlg=2 dstTypeMax=7.5'
        " maxLowBound=0.0 yOut=FLOAT4_E2M1[3,70] mxscaleOut=FLOAT8_E8M0[3,2,2]",
    ],
)
def dynamic_mx_quant(x, axis, mode, dtype, block, algorithm, largest=0, least=0):
    return mx(x, axis, dtype, mode, algorithm, largest, least, block)


def dual_calls(name, more=""):
    return [
        f'{name} x=FLOAT16[{shape}]:{numbers()} roundModeOptional="{mode}" dstType={dtype} scaleAlg={algorithm}{more}'
        f" y1Out={out}[{shape}] mxscale1Out=FLOAT8_E8M0[{scale1}] y2Out={out}[{shape}]"
        f" mxscale2Out=FLOAT8_E8M0[{scale2}]"
        for shape, scale1, scale2, mode, dtype, out, algorithm in (
            ("34,6", "34,1,2", "1,6,2", "rint", 35, "FLOAT8_E5M2", 1),
            ("2,6,34", "2,6,1,2", "2,1,34,2", "floor", 40, "FLOAT4_E2M1", 0),
        )
    ]


@formula(
    "aclnnDynamicMxQuantWithDualAxis",
    "aclnnDynamicMxQuantWithDualAxisV2",
    calls=[
        *dual_calls("aclnnDynamicMxQuantWithDualAxis"),
        *dual_calls("aclnnDynamicMxQuantWithDualAxisV2", " dstTypeMax=0.0"),
        f'aclnnDynamicMxQuantWithDualAxisV2 x=BFLOAT16[66,6]:{numbers()} roundModeOptional="round" dstType=40'
        " scaleAlg=2 dstTypeMax=7.0 y1Out=FLOAT4_E2M1[66,6] mxscale1Out=FLOAT8_E8M0[66,1,2] y2Out=FLOAT4_E2M1[66,6]"
        " mxscale2Out=FLOAT8_E8M0[2,6,2]",
    ],
)
def dynamic_mx_quant_with_dual_axis(x, mode, dtype, algorithm, largest=0):
    return sum((mx(x, axis, dtype, mode, algorithm, largest) for axis in (-1, -2)), ())


@formula(
    "aclnnDynamicBlockMxQuant",
    calls=[
        f'aclnnDynamicBlockMxQuant x=BFLOAT16[2,34,36]:{numbers(499)} roundModeOptional="{mode}" dstType={dtype}'
        f" scaleAlg={algorithm} dstTypeMax={largest} yOut={out}[2,34,36] scale1Out=FLOAT8_E8M0[2,34,1,2]"
        " scale2Out=FLOAT8_E8M0[2,1,36,2]"
        for mode, dtype, out, algorithm, largest in (
            ("rint", 40, "FLOAT4_E2M1", 2, 7.0),
            ("round", 40, "FLOAT4_E2M1", 2, 0.0),
            ("rint", 36, "FLOAT8_E4M3FN", 0, 0.0),
        )
    ],
)
def dynamic_block_mx_quant(x, mode, dtype, algorithm, largest):
    return mx_squares(x, dtype, mode, algorithm, largest)


GROUPS = f"x=BFLOAT16[70,2]:{numbers()} groupIndex=INT32[3]:3,3,70"


@formula(
    "aclnnGroupedDynamicMxQuant",
    "aclnnGroupedDynamicMxQuantV2",
    calls=[
        f'aclnnGroupedDynamicMxQuant {GROUPS} roundMode="rint" dstType=36 blocksize=32 y=FLOAT8_E4M3FN[70,2]'
        " mxscale=FLOAT8_E8M0[4,2,2]",
        f'aclnnGroupedDynamicMxQuantV2 {GROUPS} roundMode="rint" dstType=35 blocksize=32 scaleAlg=1 dstTypeMax=0.0'
        " y=FLOAT8_E5M2[70,2] mxscale=FLOAT8_E8M0[4,2,2]",
        f'aclnnGroupedDynamicMxQuantV2 {GROUPS} roundMode="floor" dstType=40 blocksize=32 scaleAlg=2 dstTypeMax=7.0'
        " y=FLOAT4_E2M1[70,2] mxscale=FLOAT8_E8M0[4,2,2]",
        f"aclnnGroupedDynamicMxQuantV2 x=FLOAT16[135,2]:{numbers()} groupIndex=INT32[3]:3,70,135"
        ' roundMode="rint" dstType=36 blocksize=32 scaleAlg=0 dstTypeMax=0.0 y=FLOAT8_E4M3FN[135,2]'
        " mxscale=FLOAT8_E8M0[5,2,2]",
    ],
)
def grouped_dynamic_mx_quant(x, ends, mode, dtype, block, algorithm=0, largest=0):
    return mx_groups(x, ends, dtype, mode, algorithm, largest)


@formula(
    "aclnnAntiMxQuant",
    calls=[
        f"aclnnAntiMxQuant x=FLOAT8_E4M3FN[2,40]:{numbers()} mxscale=FLOAT8_E8M0[2,1,2]:1,2,0.25,8 axis=-1 dstType=0"
        " y=FLOAT[2,40]",
        f"aclnnAntiMxQuant x=FLOAT8_E5M2[70,2]:{numbers()} mxscale=FLOAT8_E8M0[2,2,2]:1,2,0.25,8,0.5,32,4,16 axis=0"
        " dstType=27 y=BFLOAT16[70,2]",
        "aclnnAntiMxQuant x=FLOAT4_E2M1[2,34]:6,0.5,-0,3,-1.5,4,1,-2 mxscale=FLOAT8_E8M0[2,1,2]:1,2,0.25,8 axis=1"
        " dstType=1 y=FLOAT16[2,34]",
        "aclnnAntiMxQuant x=FLOAT8_E5M2[0,34] mxscale=FLOAT8_E8M0[0,1,2] axis=1 dstType=1 y=FLOAT16[0,34]",
    ],
)
def anti_mx_quant(x, scale, axis, dtype):
    at = axis % x.ndim
    return x * of_elements(scale, at, x.shape[at])
