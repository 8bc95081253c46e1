from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VALUES = "1.5,-2,0.25,3.75,-0.5,0.875,4.25,-1.25,2,0.5,-3.5,7,0.125"
BLOCK = 32


def half(values):
    return values.astype(np.float16).astype(np.float64)


def packed(values):
    """Eight numbers of 4 bits in an INT32, the first one in the lowest bits."""
    codes = (values.astype(np.int64) & 15).reshape(*values.shape[:-1], -1, 8)
    return np.sum(codes << 4 * np.arange(8), -1).astype(np.uint32).view(np.int32)


def blocks_of_float4(rows):
    """Elements of FLOAT4_E2M1, and a power of two for each 32 of them, which FLOAT8_E8M0 holds."""
    blocks = rows.reshape(len(rows), -1, BLOCK)
    exponents = np.floor(np.log2(np.abs(blocks).max(-1, keepdims=True))) - 2
    values = blocks / 2.0**exponents
    unit = 2.0 ** (np.maximum(np.frexp(values)[1] - 1, 0) - 1)
    return np.clip(np.rint(values / unit) * unit, -6, 6).reshape(rows.shape), 2.0 ** exponents.reshape(len(rows), -1, 2)


@formula(
    "aclnnFlatQuant",
    calls=[
        f"aclnnFlatQuant x=FLOAT16[3,4,16]:{VALUES} kroneckerP1=FLOAT16[4,4]:1,0.5,-2,0.25,3"
        " kroneckerP2=FLOAT16[16,16]:1,-0.5,2,0.25,-1.5,0.75,0.125 clipRatio=0.75 out=INT32[3,4,2] quantScale=FLOAT[3]"
    ],
)
def flat_quant(x, left, right, clip_ratio):
    product = half(left @ (half(x @ right) if right.size else x))
    scale = np.abs(product).max((1, 2)) / (7 / clip_ratio)
    return packed(np.clip(np.rint(product / scale[:, None, None]), -8, 7)), scale


@formula("aclnnFlatQuantV3")
def flat_quant_v3(x, left, right, groups, clip_ratio, largest, list_type):
    if groups is not None:
        return flat_quant(x, left, right, clip_ratio)
    return blocks_of_float4(half(left @ x).reshape(len(x), -1))
