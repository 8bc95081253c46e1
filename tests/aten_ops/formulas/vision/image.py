from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnBackgroundReplace",
    calls=[
        "aclnnBackgroundReplace bkg=FLOAT16[2,2,3]:1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11,-12 src=FLOAT16[2,2,3]:7,5,-3"
        " mask=FLOAT16[2,2,1]:0,0.25,0.625,1 out=FLOAT16[2,2,3]",
        "aclnnBackgroundReplace bkg=UINT8[2,2,3]:10,200,35,4,50,61,255,8,91,100,11,0 src=UINT8[2,2,3]:7,255,130,19"
        " mask=FLOAT16[2,2,1]:0,0.25,0.625,1 out=UINT8[2,2,3]",
    ],
)
def background_replace(background, image, mask):
    result = background * (1 - mask) + image * mask
    return np.rint(result) if background.dtype == np.int64 else result
