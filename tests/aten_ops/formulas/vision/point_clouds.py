"""Point clouds: ops-nn: aclnnChamferDistanceBackward.md, ops-cv: aclnnThreeInterpolateBackward.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


def add_gradients(points, others, nearest, grad, of_points, of_others):
    """Adds the gradients of the squared distances to the points and, with the other sign, to the nearest others."""
    for n, i in np.ndindex(nearest.shape):
        j = nearest[n, i]
        if 0 <= j < others.shape[1]:  # an index out of range has no gradient
            of_points[n, i] += 2 * grad[n, i] * (points[n, i] - others[n, j])
            of_others[n, j] -= 2 * grad[n, i] * (points[n, i] - others[n, j])


@formula(
    "aclnnChamferDistanceBackward",
    calls=[
        f"aclnnChamferDistanceBackward xyz1={signed('2,3,2', 1)} xyz2={signed('2,4,2', 2)} "
        f"idx1=INT32[2,3]:1,0,3,1,{outside},3 idx2=INT32[2,4]:1,1,2,1,0,2,1,2 gradDist1={signed('2,3', 3)} "
        f"gradDist2={signed('2,4', 4)} gradXyz1=FLOAT[2,3,2] gradXyz2=FLOAT[2,4,2]"
        for outside in (0, 4)
    ],
)
def chamfer_distance_backward(xyz1, xyz2, idx1, idx2, grad1, grad2):
    of_xyz1, of_xyz2 = np.zeros(xyz1.shape), np.zeros(xyz2.shape)
    add_gradients(xyz1, xyz2, idx1, grad1, of_xyz1, of_xyz2)
    add_gradients(xyz2, xyz1, idx2, grad2, of_xyz2, of_xyz1)
    return of_xyz1, of_xyz2


# Each gradient, times its three weights, is added at its three places. A fourth dimension has the size 1.
@formula(
    "aclnnThreeInterpolateBackward",
    calls=[
        f"aclnnThreeInterpolateBackward grad_x={signed('2,2,2,1', 1)} idx=INT64[2,2,3]:0,1,2,0,3,3,3,2,1,2,2,0 "
        f"weight={signed('2,2,3', 2)} m=4 grad_y=FLOAT[2,2,4,1]",
        f"aclnnThreeInterpolateBackward grad_x={signed('1,2,2', 1)} idx=INT32[1,2,3]:0,1,2,0,3,3 "
        f"weight={signed('1,2,3', 2)} m=5 grad_y=FLOAT[1,2,5]",
    ],
)
def three_interpolate_backward(grad, idx, weight, m):
    result = np.zeros((*grad.shape[:2], m, *grad.shape[3:]))
    for n, i, k in np.ndindex(idx.shape):
        result[n, :, idx[n, i, k]] += grad[n, :, i] * weight[n, i, k]
    return result
