from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# Ties are rounded away from zero. The type of the integers is no argument: results within the range of any type do not
# saturate (ops-nn: aclnnQuantizedBatchNorm.md).
@formula(
    "aclnnQuantizedBatchNorm",
    calls=[
        f"aclnnQuantizedBatchNorm input={dtype}[2,2,1,4]:10,1,72,3,4,50,6,107,85,3,0,41 mean=FLOAT[2]:0.5,-2 "
        "var=FLOAT[2]:1.5,4 inputScale=FLOAT(1.0) inputZeroPoint=INT32(1) outputScale=FLOAT(2.0) "
        f"outputZeroPoint=INT32(10) weight={weight} bias=FLOAT[2]:0.25,1 epsilon=0.5 output={dtype}[2,2,1,4]"
        for dtype, weight in (("INT32", "FLOAT[2]:10,-0.75"), ("INT8", "null"), ("UINT8", "null"))
    ],
)
def quantized_batch_norm(x, mean, var, in_scale, in_zero, out_scale, out_zero, weight, bias, epsilon):
    def of_channels(numbers):
        return numbers.reshape(-1, 1, 1)

    y = ((x - in_zero) * in_scale - of_channels(mean)) / np.sqrt(of_channels(var) + epsilon)
    y = y * (1 if weight is None else of_channels(weight)) + (0 if bias is None else of_channels(bias))
    result = y / out_scale + out_zero
    return np.copysign(np.floor(np.abs(result) + 0.5), result)
