from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# A mask other than 0 leaves a position out; several heads of the query share one of the keys (ops-transformer:
# aclnnIncreFlashAttentionV2.md).
@formula(
    "aclnnIncreFlashAttentionV2",
    calls=[
        "aclnnIncreFlashAttentionV2 query=FLOAT16[2,4,1,16]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,0.125 "
        "key={FLOAT16[2,2,5,16]:-2.5,0.75,-0.5,1.5,3,-4,0.25,1,-1.75,2.25,-0.125} "
        "value={FLOAT16[2,2,5,16]:1.25,-3,0.375,2,-0.75,4.5,-1,2.5,-2.25,0.5,3.5,-0.625,1.75} pseShift=null "
        "attenMask=BOOL[2,5]:0,0,1,0,0,0,1,0,0,0 actualSeqLengths=[5,3] dequantScale1=null quantScale1=null "
        "dequantScale2=null quantScale2=null quantOffset2=null numHeads=4 scaleValue=0.0625 "
        'inputLayout="BNSD" numKeyValueHeads=2 attentionOut=FLOAT16[2,4,1,16]'
    ],
)
def incremental_attention(query, key, value, _shift, mask, lengths, *others):
    heads, scale, _layout, key_heads = others[5:9]
    result = np.zeros(query.shape)
    for b, n in np.ndindex(query.shape[:2]):
        count = lengths[b] if len(lengths) > 1 else lengths[0]
        if count == 0:
            continue
        of_key = n // (heads // (key_heads or heads))
        k, v = (each[0][b, of_key, :count] for each in (key, value))
        scores = scale * (query[b, n, 0] @ k.T)
        if mask is not None:
            scores = np.where(mask[b].reshape(-1)[:count] != 0, -np.inf, scores)
        weights = np.exp(scores - scores.max())
        result[b, n, 0] = weights / weights.sum() @ v
    return result
