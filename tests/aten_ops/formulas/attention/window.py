"""Steps of attention (ops-nn: aclnnMaskedSoftmaxWithRelPosBias.md, ops-math: aclnnTransformBiasRescaleQkv.md)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnMaskedSoftmaxWithRelPosBias",
    calls=[
        "aclnnMaskedSoftmaxWithRelPosBias x=FLOAT[2,2,1,2]:1,2,3,4,5,6,8,7 attenMaskOptional=FLOAT[2,1,2]:0,1,1,0 "
        "relativePosBias=FLOAT[2,1,2]:0,0.5,1,0 scaleValue=0.5 innerPrecisionMode=0 out=FLOAT[2,2,1,2]",
        "aclnnMaskedSoftmaxWithRelPosBias x=FLOAT[2,3,2,2,4]:1,-2,3,0.5,-1,2.5,-0.75 "
        "attenMaskOptional=FLOAT[1,3,1,2,4]:0,1,-0.5,0.25,-1 relativePosBias=FLOAT[1,2,2,4]:0,0.5,1,-0.25 "
        "scaleValue=0.5 innerPrecisionMode=1 out=FLOAT[2,3,2,2,4]",
        "aclnnMaskedSoftmaxWithRelPosBias x=FLOAT[2,2,3,2]:1,2,3,4,-5,6,8,7,0.5 attenMaskOptional=null "
        "relativePosBias=FLOAT[2,3,2]:0,0.5,1,-0.25,2 scaleValue=0.25 innerPrecisionMode=0 out=FLOAT[2,2,3,2]",
    ],
)
def masked_softmax(x, mask, bias, scale, _precision):
    heads, rows, columns = x.shape[-3:]
    scores = x * scale + bias.reshape(heads, rows, columns)
    if mask is not None:  # one for each window
        masks = mask.reshape(-1, 1, rows, columns)
        scores = (scores.reshape(-1, len(masks), heads, rows, columns) + masks).reshape(x.shape)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@formula(
    "aclnnTransformBiasRescaleQkv",
    calls=[
        "aclnnTransformBiasRescaleQkv qkv=FLOAT[2,3,24]:0.5,-1,2,0.25,-3,1.5,-0.75 qkvBias=FLOAT[24]:1,-0.5,0.25,2,3 "
        "numHeads=2 qOut=FLOAT[2,2,3,4] kOut=FLOAT[2,2,3,4] vOut=FLOAT[2,2,3,4]"
    ],
)
def transform_qkv(qkv, bias, heads):
    size = qkv.shape[2] // 3 // heads
    q, k, v = (qkv + bias).reshape(*qkv.shape[:2], 3, heads, size).transpose(2, 0, 3, 1, 4)
    return q / np.sqrt(size), k, v
