from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# ops-math: aclnnPrecisionCompare.md: 0 is success, and 503 a difference.
@formula(
    "aclnnPrecisionCompare",
    calls=[
        "aclnnPrecisionCompare golden=FLOAT16[3]:1,2,3 realdata=FLOAT16[3]:1,2,4 out=UINT32[]",
        "aclnnPrecisionCompare golden=FLOAT[3]:1,2,3 realdata=FLOAT[3]:1.5,2,3 out=UINT32[]",
    ],
)
def precision_compare(golden, real):
    return 0 if np.array_equal(golden, real) else 503
