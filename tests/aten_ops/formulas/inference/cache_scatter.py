from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import E4M3, cast, to_integers
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
        "aclnnScatterList varRef={INT8[2,3]:1,2,3,4,5,6 INT8[2,3]:1,2,3,4,5,6} indice=INT64[2,2]:1,1,0,2 "
        "updates=INT8[2,2,2]:10,11,12,13,20,21,22,23 maskOptional=null reduceOptional=null axis=-1",
        "aclnnScatterList varRef={UINT8[2,2]:1 UINT8[2,2]:1 UINT8[2,2]:1} indice=INT32[3]:0 "
        'updates=UINT8[3,1,2]:5,6,7,8,9,10 maskOptional=UINT8[3]:2,0,1 reduceOptional="update" axis=-2',
        "aclnnScatterList varRef={UINT16[2,1]:1,2 UINT16[2,1]:1,2} indice=INT32[2]:1,0 updates=UINT16[2,1,1]:7,8 "
        'maskOptional=UINT8[2]:1,0 reduceOptional="update" axis=-2',
    ],
)
def scatter_list(variables, indices, updates, mask, _reduce, axis):
    results = [variable.copy() for variable in variables]
    for k, result in enumerate(results):
        if mask is None or mask[k] != 0:
            update = np.moveaxis(updates[k], axis % updates.ndim - 1, 0)
            start, length = indices[k] if indices.ndim == 2 else (indices[k], len(update))
            np.moveaxis(result, axis % updates.ndim - 1, 0)[start : start + length] = update[:length]
    return results


# ops-nn: aclnnInplaceQuantScatter.md, aclnnInplaceQuantScatterV2.md. An index is the start of updates[k] in selfRef[k]
# along axis; a pair is the number of the sequence and the start.
@formula(
    "aclnnInplaceQuantScatter",
    "aclnnInplaceQuantScatterV2",
    calls=[
        "aclnnInplaceQuantScatter selfRef=INT8[2,3,2]:1,2,3,4,5,6,7,8,9,10,11,12 indices=INT32[2]:1,2 "
        "updates=FLOAT16[2,1,2]:5,1000,-31,17 quantScales=FLOAT[2]:2,4 quantZeroPoints=INT32[2]:1,-3 axis=-2 "
        "quantAxis=-1 reduction=1",
        "aclnnInplaceQuantScatterV2 selfRef=FLOAT8_E4M3FN[2,2,2]:1,2,3,4 indices=INT32[2]:0,1 "
        "updates=FLOAT16[2,1,2]:1000,-3.5,2.25,7.3 quantScales=FLOAT[2]:1,2 quantZeroPoints=INT32[2]:0,1 axis=-2 "
        'quantAxis=-1 reduction=1 roundMode="rint"',
    ]
    + [
        "aclnnInplaceQuantScatterV2 selfRef=INT8[3,4,2]:1,2,3,4,5,6,7,8,9,10,11,12 indices=INT64[2,2]:2,2,0,1 "
        f"updates=BFLOAT16[2,2,2]:5,-7,21,37,-40,12,300,-9 quantScales=BFLOAT16[2]:2,4 quantZeroPoints={zero} axis=1 "
        'quantAxis=2 reduction=1 roundMode="rint"'
        for zero in ("null", "BFLOAT16[2]:1,-3")
    ],
)
def quant_scatter(self, indices, updates, scales, zero_points, axis, _quant_axis, _reduction, _mode="rint"):
    zeros = 0 if zero_points is None else zero_points.reshape(-1)
    steps = updates / scales.reshape(-1) + zeros
    quantised = cast(steps, E4M3) if self.dtype == float else to_integers(steps)
    result = self.copy()
    for k, update in enumerate(quantised):
        sequence, start = indices[k] if indices.ndim == 2 else (k, indices[k])
        part = np.moveaxis(update, axis % updates.ndim - 1, 0)
        np.moveaxis(result[sequence], axis % updates.ndim - 1, 0)[start : start + len(part)] = part
    return result
