from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import away_from_zero
from tests.aten_ops.formulas import formula


# Ties are rounded away from zero (ops-nn: aclnnQuantizedBatchNorm.md).
@formula(
    "aclnnQuantizedBatchNorm",
    calls=[
        f"aclnnQuantizedBatchNorm input={dtype}[2,2,1,4]:10,1,72,3,4,50,6,107,85,3,0,41 mean=FLOAT[2]:0.5,-2 "
        "var=FLOAT[2]:1.5,4 inputScale=FLOAT(1.0) inputZeroPoint=INT32(1) outputScale=FLOAT(2.0) "
        f"outputZeroPoint=INT32(10) weight={weight} bias=FLOAT[2]:0.25,1 epsilon=0.5 output={dtype}[2,2,1,4]"
        for dtype, weight in (("INT32", "FLOAT[2]:10,-0.75"), ("INT8", "null"), ("UINT8", "null"))
    ]
    + [
        "aclnnQuantizedBatchNorm input=INT8[1,1,1,4]:-128,0,3,127 mean=FLOAT[1]:0 var=FLOAT[1]:1 "
        "inputScale=FLOAT(0.5) inputZeroPoint=INT32(0) outputScale=FLOAT(0.25) outputZeroPoint=INT32(1) "
        "weight=null bias=FLOAT[1]:1 epsilon=0 output=INT8[1,1,1,4]",
    ],
)
def quantized_batch_norm(x, mean, var, in_scale, in_zero, out_scale, out_zero, weight, bias, epsilon, outputs):
    def of_channels(numbers):
        return numbers.reshape(-1, 1, 1)

    y = ((x - in_zero) * in_scale - of_channels(mean)) / np.sqrt(of_channels(var) + epsilon)
    y = y * (1 if weight is None else of_channels(weight)) + (0 if bias is None else of_channels(bias))
    result = y / out_scale + out_zero
    limits = np.iinfo(outputs["output"].dtype.lower())
    return np.clip(away_from_zero(result), limits.min, limits.max)
