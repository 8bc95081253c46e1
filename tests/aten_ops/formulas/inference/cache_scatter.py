from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

UPDATES = "-1.5,2.25,-3,4,-5,6,-7,8,-9,10,-11,12,-13,14,-15,16,-17,18.5"


# An index is the start of updates[k] in varRef[k] along axis; a pair is the start and the length that is written.
@formula(
    "aclnnScatterList",
    calls=[
        f"aclnnScatterList varRef={{FLOAT[3,5] FLOAT[3,5]}} indice=INT64[2]:0,2 updates=FLOAT[2,3,3]:{UPDATES} "
        'maskOptional=UINT8[2]:1,1 reduceOptional="update" axis=-1',
        f"aclnnScatterList varRef={{FLOAT[2,4,2] FLOAT[2,4,2]}} indice=INT64[2,2]:1,1,2,2 "
        f"updates=FLOAT[2,2,3,2]:{UPDATES} "
        'maskOptional=null reduceOptional="update" axis=2',
    ],
)
def scatter_list(variables, indices, updates, mask, _reduce, axis):
    results = [variable.copy() for variable in variables]
    for k, result in enumerate(results):
        if mask is None or mask[k] == 1:
            update = np.moveaxis(updates[k], axis % updates.ndim - 1, 0)
            start, length = indices[k] if indices.ndim == 2 else (indices[k], len(update))
            np.moveaxis(result, axis % updates.ndim - 1, 0)[start : start + length] = update[:length]
    return results
