from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnMaxUnpool2d",
    calls=[
        "aclnnMaxUnpool2d self=FLOAT[2,2,2]:1.5,-2,3.25,-4,5,6,-7,8.5 indices=INT64[2,2,2]:0,5,7,11,10,3,2,11 "
        "outputSize=[3,4] out=FLOAT[2,3,4]",
        "aclnnMaxUnpool2d self=INT32[1,2,1,2]:1,-2,3,-4 indices=INT64[1,2,1,2]:3,0,1,2 outputSize=[2,2] "
        "out=INT32[1,2,2,2]",
    ],
)
def max_unpool_2d(self, indices, output_size):
    result = np.zeros((*self.shape[:-2], output_size[0] * output_size[1]), self.dtype)
    for place in np.ndindex(self.shape):
        result[(*place[:-2], indices[place])] = self[place]
    return result.reshape(*self.shape[:-2], *output_size)
