from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula

FLOATS = "predictedLogitsOut=FLOAT[{0}] sumExpLogitsOut=FLOAT[{0}] expLogitsOut=FLOAT[{0},16]"
INTEGERS = "targetOffsetOut=INT32[{0}] targetMaskOut=INT32[{0}]"


# ops-nn: aclnnCrossEntropySumExpAndIndexLogit.md.
@formula(
    "aclnnCrossEntropySumExpAndIndexLogit",
    calls=[
        f"aclnnCrossEntropySumExpAndIndexLogit vocabParallelLogits={signed('2,2,16', 1, dtype)} "
        f"target=INT32[2,2]:{targets} globalLogitsMax={dtype}[2,2]:2,2.25,1.875,2.5 vocabStartIndex={start} "
        f"vocabEndIndex={start + 16} {FLOATS.format('2,2')} {INTEGERS.format('2,2')}"
        for dtype, start, targets in (
            ("FLOAT", 0, "2,5,10,15"),
            ("FLOAT", 8, "7,8,23,24"),
            ("BFLOAT16", 8, "9,12,21,24"),
        )
    ],
)
def cross_entropy_of_shard(logits, target, largest, start, end):
    mask = (target < start) | (target >= end)
    offset = np.where(mask, 0, target - start)
    shifted = logits - largest[..., None]
    predicted = np.where(mask, 0, np.take_along_axis(shifted, offset[..., None], -1)[..., 0])
    return predicted, np.exp(shifted).sum(-1), np.exp(shifted), offset, mask
