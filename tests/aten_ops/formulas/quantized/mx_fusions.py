"""By ops-nn: aclnnRmsNormDynamicMxQuant.md, aclnnAddRmsNormDynamicMxQuant.md, aclnnSwigluMxQuant.md and
aclnnDynamicDualLevelMxQuant.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formula_helpers.mx import halves, mx, numbers
from tests.aten_ops.formula_helpers.types import E2M1, bfloat16, half, single
from tests.aten_ops.formulas import formula

GAMMA = "0.875,-1.5,0.625,2.25,-0.40625,1.125,3.5"


def normalized(x, gamma, beta, epsilon, algorithm, mode, dtype):
    """The norm, quantised as FLOAT16, the type of x in the calls, and 1 / rms."""
    rstd = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon)
    return *mx(half(x * rstd * gamma + (0 if beta is None else beta)), -1, dtype, mode, algorithm), rstd


@formula(
    "aclnnRmsNormDynamicMxQuant",
    calls=[
        f"aclnnRmsNormDynamicMxQuant x=FLOAT16[2,70]:{numbers()} gamma={gamma}[70]:{GAMMA} beta={beta}"
        f' epsilon={epsilon} scaleAlg={algorithm} roundMode="{mode}" dstType={dtype}'
        f" outputRstd={'false' if rstd == 'null' else 'true'} yOut={out}[2,70] mxscaleOut=FLOAT8_E8M0[2,2,2]"
        f" rstdOut={rstd}"
        for gamma, beta, epsilon, algorithm, mode, dtype, out, rstd in (
            ("FLOAT", "FLOAT[70]:0.25,-0.125,0.5", 1e-06, 0, "rint", 36, "FLOAT8_E4M3FN", "FLOAT[2,1]"),
            ("FLOAT16", "null", 25.0, 1, "rint", 35, "FLOAT8_E5M2", "FLOAT[2,1]"),
            ("FLOAT16", "null", 1e-06, 0, "round", 40, "FLOAT4_E2M1", "null"),
        )
    ],
)
def rms_norm_dynamic_mx_quant(x, gamma, beta, epsilon, algorithm, mode, dtype, has_rstd):
    y, scale, rstd = normalized(x, gamma, beta, epsilon, algorithm, mode, dtype)
    return (y, scale, rstd) if has_rstd else (y, scale)


@formula(
    "aclnnAddRmsNormDynamicMxQuant",
    calls=[
        f"aclnnAddRmsNormDynamicMxQuant x1=FLOAT16[2,40]:{numbers(67)} x2=FLOAT16[2,40]:{numbers(37)}"
        f' gamma=FLOAT16[40]:{GAMMA} beta={beta} epsilon=1e-06 scaleAlg={algorithm} roundMode="{mode}" dstType={dtype}'
        f" outputRstd=true yOut={out}[2,40] xOut=FLOAT16[2,40] mxscaleOut=FLOAT8_E8M0[2,1,2] rstdOut=FLOAT[2,1]"
        for beta, algorithm, mode, dtype, out in (
            ("null", 0, "floor", 40, "FLOAT4_E2M1"),
            ("FLOAT16[40]:0.25,-0.125,0.5", 1, "rint", 36, "FLOAT8_E4M3FN"),
        )
    ],
)
def add_rms_norm_dynamic_mx_quant(x1, x2, gamma, beta, epsilon, algorithm, mode, dtype, has_rstd):
    y, scale, rstd = normalized(x1 + x2, gamma, beta, epsilon, algorithm, mode, dtype)
    return (y, x1 + x2, scale, rstd) if has_rstd else (y, x1 + x2, scale)


SWIGLU = (
    # groups, activateDim, activateLeft, swigluMode, clampLimit, axis, dstType, mode, scaleAlg, the results' shapes
    ("INT64[2]:2,2", -1, "true", 1, 30.5, -1, 40, "round", 0, "FLOAT4_E2M1[4,40]", "4,1,2"),
    ("null", 1, "false", 0, 7.0, -2, 36, "rint", 1, "FLOAT8_E4M3FN[4,40]", "1,40,2"),
    ("null", -2, "true", 0, 7.0, 1, 35, "rint", 0, "FLOAT8_E5M2[2,80]", "2,2,2"),
)


@formula(
    "aclnnSwigluMxQuant",
    calls=[
        f"aclnnSwigluMxQuant x=BFLOAT16[4,80]:{numbers()} groupIndexOptional={groups} activateDim={dim}"
        f" activateLeft={left} swigluMode={swiglu} clampLimit={limit} gluAlpha=0.0625 gluBias=0.5 groupMode=0"
        f' axis={axis} dstType={dtype} roundModeOptional="{mode}" scaleAlg={algorithm} maxDtypeValue=0.0 yOut={out}'
        f" mxscaleOut=FLOAT8_E8M0[{scale}]"
        for groups, dim, left, swiglu, limit, axis, dtype, mode, algorithm, out, scale in SWIGLU
    ],
)
def swiglu_mx_quant(
    x, groups, dim, gate_is_left, swiglu, limit, alpha, bias, group_mode, axis, dtype, mode, algorithm, largest
):
    if swiglu == 0:
        gate, up = halves(x, gate_is_left, dim)
        result = gate * sigmoid(gate) * up
    else:
        gate, up = np.minimum(x[..., ::2], limit), np.clip(x[..., 1::2], -limit, limit)
        result = gate * sigmoid(alpha * gate) * (up + bias)
    return mx(bfloat16(result), axis, dtype, mode, algorithm)  # as BFLOAT16, the type of x in the calls


LEVELS = "level0BlockSize=512 level1BlockSize=32 yOut=FLOAT4_E2M1[2,520] level0ScaleOut=FLOAT[2,2]"


@formula(
    "aclnnDynamicDualLevelMxQuant",
    calls=[
        f"aclnnDynamicDualLevelMxQuant x=BFLOAT16[2,520]:{x} smoothScaleOptional={smooth} roundModeOptional={mode}"
        f" {LEVELS} level1ScaleOut=FLOAT8_E8M0[2,9,2]"
        for x, smooth, mode in (
            (numbers(401), f"BFLOAT16[520]:{numbers(13)}", '"rint"'),
            (f"inf,0,{numbers(100)},nan,{numbers(201)}", "null", '"round"'),
            (f"{numbers(511)},-inf,2,3,1.5,-1.5,0.75,1,-4,2.5,0", "null", '"floor"'),
        )
    ],
)
def dynamic_dual_level_mx_quant(x, smooth, mode, first_size, second_size):
    x = x if smooth is None else bfloat16(x * smooth)
    size = x.shape[-1]
    blocks = -(-size // first_size)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, blocks * first_size - size)]
    parts = np.pad(x, padding).reshape(*x.shape[:-1], blocks, first_size)
    # inf and nan do not count, and an element that is 0 stays 0.
    scale = single(np.where(np.isfinite(parts), np.abs(parts), 0).max(-1) / 6)
    divided = np.where(parts == 0, 0, bfloat16(single(parts / scale[..., None])))
    first = divided.reshape(*x.shape[:-1], blocks * first_size)[..., :size]
    y, second = mx(first, -1, E2M1, mode, block=second_size)
    return y, scale, second
