from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# ops-nn: aclnnExpandIntoJaggedPermute.md
@formula(
    "aclnnExpandIntoJaggedPermute",
    calls=[
        "aclnnExpandIntoJaggedPermute permute=INT32[4]:1,3,0,2 inputOffset=INT32[5]:0,3,5,9,15 "
        "outputOffset=INT32[5]:0,2,5,5,9 outputSize=9 outputPermuteOut=INT32[9]"
    ],
)
def expand(permute, input_offset, output_offset, _size):
    starts = input_offset[permute]
    return np.concatenate([np.arange(i, i + count) for i, count in zip(starts, np.diff(output_offset), strict=True)])
