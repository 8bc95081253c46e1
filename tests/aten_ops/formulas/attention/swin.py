"""Attention of INT8 within windows (ops-transformer: aclnnSwinAttentionScoreQuant.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.attention import by_name, call_of
from tests.aten_ops.formula_helpers.types import decoded, to_integers

QUERY = "3,-5,7,1,-2,0,4,-6,2,5,-1"
KEY = "-4,2,6,-3,1,5,-7,0,3,-2,4,-1,7"
VALUE = "9,-8,5,-3,7,1,-6,4,-2,8,-9,3,6,-7,2,-4,-1"
# The bits of 0.0078125, 0.01171875 and 0.0625, 0.09375 in FLOAT.
SCALE1, SCALE2 = "1006632960,1010827264,1002438656", "1031798784,1035993088,1027604480"


def call(shape, **given):
    _, heads, tokens, elements = shape
    qkv = {
        name: f"INT8[{','.join(map(str, shape))}]:{numbers}"
        for name, numbers in (("query", QUERY), ("key", KEY), ("value", VALUE))
    }
    parameters = {
        "scale_quant": f"FLOAT16[1,{tokens}]:90.5,110.25,100",
        "scale_dequant1": f"UINT64[1,{tokens}]:{SCALE1}",
        "scale_dequant2": f"UINT64[1,{elements}]:{SCALE2}",
        "bias_quant": f"FLOAT16[1,{tokens}]:3.125,-8.75,60.5",
        "bias_dequant1": f"INT32[1,{tokens}]:12,-30,7",
        "bias_dequant2": f"INT32[1,{elements}]:100,-50,25",
        "padding_mask1": f"FLOAT16[1,{heads},{tokens},{tokens}]:0.5,-1.25,0.75,-2,0.25",
    }
    outputs = {"softmax_axes": -1, "out": f"FLOAT16[{','.join(map(str, shape))}]"}
    return call_of("aclnnSwinAttentionScoreQuant", **qkv | parameters | outputs | given)


@by_name("aclnnSwinAttentionScoreQuant", calls=[call((2, 3, 4, 32)), call((1, 2, 5, 64), padding_mask1="null")])
def swin_attention(a):
    scores = (a.query @ a.key.swapaxes(2, 3) + a.bias_dequant1) * decoded(a.scale_dequant1)
    if a.padding_mask1 is not None:
        scores = scores + a.padding_mask1
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    p = to_integers(powers / powers.sum(-1, keepdims=True) * a.scale_quant + a.bias_quant)
    return (p @ a.value + a.bias_dequant2) * decoded(a.scale_dequant2)
