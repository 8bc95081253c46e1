from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import positive
from tests.aten_ops.formulas import formula


# Without a tolerance it is 0.0001 (ops-math: aclnnSinkhorn.md).
@formula(
    "aclnnSinkhorn",
    calls=[
        "aclnnSinkhorn cost=FLOAT[3,2]:0.1,0.9,0.4,0.2,0.8,0.5 tol=FLOAT(0.0001) p=FLOAT[3,2]",
        f"aclnnSinkhorn cost={positive('2,4', 1)} tol=null p=FLOAT[2,4]",
        f"aclnnSinkhorn cost={positive('3,3', 2)} tol=FLOAT(0.25) p=FLOAT[3,3]",
    ],
)
def sinkhorn(cost, tolerance):
    cost, (rows, columns) = np.exp(cost), cost.shape
    tolerance = 0.0001 if tolerance is None else tolerance
    of_columns, error = np.ones(columns), np.inf
    while error > tolerance:
        of_rows = 1 / (rows * ((of_columns * cost).sum(1) + 1e-8))
        new = 1 / (columns * ((of_rows[:, None] * cost).sum(0) + 1e-8))
        of_columns, error = new, np.abs(of_columns - new).mean()
    return of_columns * cost * of_rows[:, None]
