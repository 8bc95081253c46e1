"""aclnnSwinTransformerLnQkvQuant.md (ops-transformer)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import decoded, half, to_integers
from tests.aten_ops.formulas import formula

NUMBERS = "0.5,-1.25,2,0.75,-0.375,1.5,-3,0.25,1,-2.5,0.125"
INTEGERS = "3,-5,7,11,-2,1,-9,4,6,-8,2,5,-1"
SCALE_BITS = "1031798784,1023410176,1015021568"  # FLOAT: 0.0625, 0.03125, 0.015625


def call(height, width, window_height, window_width, heads, head_size):
    size, window = heads * head_size, window_height * window_width
    out = f"FLOAT16[{height * width // window},{heads},{window},{head_size}]"
    return (
        f"aclnnSwinTransformerLnQkvQuant x=FLOAT16[1,{height * width},{size}]:{NUMBERS} "
        f"gamma=FLOAT16[{size}]:1,0.5,-1.5 beta=FLOAT16[{size}]:0.25,-0.5,0,1,0.125 "
        f"weight=INT8[{3 * size},{size}]:{INTEGERS} bias=INT32[{3 * size}]:10,-20,35,7 "
        f"quantScale=FLOAT16[{size}]:8,16,4,10 quantOffset=FLOAT16[{size}]:3,-7,0.5 "
        f"dequantScale=UINT64[{3 * size}]:{SCALE_BITS} headNum={heads} seqLength={head_size} epsilon=0.0001 "
        f"oriHeight={height} oriWeight={width} hWinSize={window_height} wWinSize={window_width} weightTranspose=true "
        f"queryOutputOut={out} keyOutputOut={out} valueOutputOut={out}"
    )


# The kernel quantises FLOAT16 in FLOAT16.
@formula(
    "aclnnSwinTransformerLnQkvQuant",
    calls=[call(14, 16, 7, 8, 2, 32), call(7, 14, 7, 7, 1, 64)],
)
def swin_transformer_ln_qkv_quant(x, gamma, beta, weight, bias, scale, offset, dequantisation, *attributes):
    heads, head_size, epsilon, height, width, window_height, window_width, _ = attributes
    centred = x - x.mean(-1, keepdims=True)
    norm = half(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta)
    integers = to_integers(half(half(norm * scale) + offset))
    products = (integers @ weight.T + bias) * decoded(dequantisation)
    windows = (len(x), height // window_height, window_height, width // window_width, window_width)
    parts = products.reshape(*windows, 3, heads, head_size).transpose(5, 0, 1, 3, 6, 2, 4, 7)
    return [part.reshape(-1, heads, window_height * window_width, head_size) for part in parts]
