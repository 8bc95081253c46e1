"""By ops-nn: aclnnGroupedDynamicMxQuantWithDualAxis.md, aclnnSwigluMxQuantWithDualAxis.md,
aclnnSwigluBackwardMxQuantWithDualAxis.md, aclnnSituMxQuant.md and aclnnMxToBlockMxQuant.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.mx import BLOCK, broadcast_squares, halves, mx, mx_groups, numbers, of_elements
from tests.aten_ops.formula_helpers.types import E4M3, E5M2, bfloat16
from tests.aten_ops.formulas import formula

# Activations are quantised as BFLOAT16, the type of x in the calls.


def along_both(x, ends, dtype, mode, algorithm):
    rows = mx(x, -2, dtype, mode, algorithm) if ends is None else mx_groups(x, ends, dtype, mode, algorithm)
    return *mx(x, -1, dtype, mode, algorithm), *rows


@formula(
    "aclnnGroupedDynamicMxQuantWithDualAxis",
    calls=[
        f"aclnnGroupedDynamicMxQuantWithDualAxis x=BFLOAT16[70,64]:{numbers(499)} groupIndex=INT64[3]:3,3,70"
        f' roundModeOptional="rint" scaleAlg=1 dstDtype={dtype} maxDtypeValue=0.0 y1Out={out}[70,64]'
        f" y1ScaleOut=FLOAT8_E8M0[70,1,2] y2Out={out}[70,64] y2ScaleOut=FLOAT8_E8M0[4,64,2]"
        for dtype, out in ((36, "FLOAT8_E4M3FN"), (35, "FLOAT8_E5M2"))
    ],
)
def grouped_dynamic_mx_quant_with_dual_axis(x, ends, mode, algorithm, dtype, largest):
    return along_both(x, ends, dtype, mode, algorithm)


@formula(
    "aclnnSwigluMxQuantWithDualAxis",
    calls=[
        f"aclnnSwigluMxQuantWithDualAxis x=BFLOAT16[40,12]:{numbers()} groupIndexOptional={groups} activateLeft={left}"
        f' roundModeOptional="{mode}" scaleAlg={algorithm} dstType={dtype} maxDtypeValue=0.0 y1Out={out}[40,6]'
        f" mxscale1Out=FLOAT8_E8M0[40,1,2] y2Out={out}[40,6] mxscale2Out=FLOAT8_E8M0[{pairs},6,2]"
        for groups, pairs, left, mode, algorithm, dtype, out in (
            ("null", 1, "true", "rint", 0, 40, "FLOAT4_E2M1"),
            ("null", 1, "false", "floor", 0, 40, "FLOAT4_E2M1"),
            ("INT64[2]:3,40", 2, "false", "rint", 1, 36, "FLOAT8_E4M3FN"),
        )
    ],
)
def swiglu_mx_quant_with_dual_axis(x, ends, gate_is_left, mode, algorithm, dtype, largest):
    gate, up = halves(x, gate_is_left)
    return along_both(bfloat16(gate * sigmoid(gate) * up), ends, dtype, mode, algorithm)


@formula(
    "aclnnSwigluBackwardMxQuantWithDualAxis",
    calls=[
        f"aclnnSwigluBackwardMxQuantWithDualAxis x=BFLOAT16[34,64]:{numbers()} yGrad=BFLOAT16[34,32]:{numbers(101)}"
        f' groupIndexOptional={groups} activateLeft={left} roundModeOptional="rint" scaleAlg=1 dstDtype=36'
        " maxDtypeValue=0.0 y1Out=FLOAT8_E4M3FN[34,64] mxscale1Out=FLOAT8_E8M0[34,1,2] y2Out=FLOAT8_E4M3FN[34,64]"
        f" mxscale2Out=FLOAT8_E8M0[{pairs},64,2]"
        for groups, pairs, left in (("INT64[2]:1,34", 2, "false"), ("null", 1, "true"))
    ],
)
def swiglu_backward_mx_quant_with_dual_axis(x, grad, ends, gate_is_left, mode, algorithm, dtype, largest):
    gate, up = halves(x, gate_is_left)
    s = sigmoid(gate)
    gradients = np.concatenate([grad * up * s * (1 + gate - gate * s), grad * gate * s], -1)
    return along_both(bfloat16(gradients), ends, dtype, mode, algorithm)


@formula(
    "aclnnSituMxQuant",
    calls=[
        f"aclnnSituMxQuant x=BFLOAT16[{shape},136]:{numbers(131)} beta={beta} linearBeta={linear} activateLeft={left}"
        f' axis=-1 dstType={dtype} roundModeOptional="rint" yOut={out}[{shape},68] yScaleOut=FLOAT8_E8M0[{shape},2,2]'
        for shape, beta, linear, left, dtype, out in (
            ("2,3", 1.5, 2.0, "true", 35, "FLOAT8_E5M2"),
            ("4", -4.0, 0.0, "false", 36, "FLOAT8_E4M3FN"),
        )
    ],
)
def situ_mx_quant(x, beta, linear_beta, gate_is_left, axis, dtype, mode):
    gate, up = halves(x, gate_is_left)
    bounded = linear_beta * np.tanh(up / linear_beta) if linear_beta > 0 else up
    return mx(bfloat16(beta * np.tanh(gate / beta) * sigmoid(gate) * bounded), axis, dtype, mode)


@formula(
    "aclnnMxToBlockMxQuant",
    calls=[
        f"aclnnMxToBlockMxQuant x=FLOAT4_E2M1[{shape}]:1,-0.5,6,3,-4,1.5,0 mxscale=FLOAT8_E8M0[{scale1}]:"
        f"0.5,0.25,4,8,1,2,0.0625,128,{more} dstType={dtype} y={out}[{shape}] scale1=FLOAT8_E8M0[{scale1}]"
        f" scale2=FLOAT8_E8M0[{scale2}]"
        for shape, scale1, scale2, more, dtype, out in (
            ("34,2", "34,1,2", "1,2,2", 16, 36, "FLOAT8_E4M3FN"),
            ("2,34,36", "2,34,1,2", "2,1,36,2", "0.03125,1024", 36, "FLOAT8_E4M3FN"),
            ("2,66,34", "2,66,1,2", "2,2,34,2", "16384,32,1048576", 35, "FLOAT8_E5M2"),
        )
    ],
)
def mx_to_block_mx_quant(x, scale, dtype):
    rows, columns = x.shape[-2:]
    # One scale for every block of a row.
    blocks = scale.reshape(*x.shape[:-1], 2 * scale.shape[-2])[..., : -(-columns // BLOCK)]
    down = -(-rows // BLOCK)
    padding = [(0, 0)] * (x.ndim - 2) + [(0, down * BLOCK - rows), (0, 0)]
    most = np.pad(blocks, padding).reshape(*x.shape[:-2], down, BLOCK, blocks.shape[-1]).max(-2)
    square = np.maximum(most / 2.0 ** {E5M2: 13, E4M3: 6}[dtype], 2.0**-127)
    return broadcast_squares(square, x * of_elements(scale, x.ndim - 1, columns), dtype)
