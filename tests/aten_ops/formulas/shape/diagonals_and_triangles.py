from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula("aclnnEye", calls=["aclnnEye n=3 m=5 out=FLOAT[3,5]", "aclnnEye n=4 m=2 out=INT32[4,2]"])
def eye(n, m):
    return np.equal.outer(np.arange(n), np.arange(m))


@formula(
    "aclnnInplaceFillDiagonal",
    calls=[
        "aclnnInplaceFillDiagonal selfRef=FLOAT[7,3] fillValue=DOUBLE(-2.5) wrap=false",
        "aclnnInplaceFillDiagonal selfRef=FLOAT[3,5] fillValue=DOUBLE(-2.5) wrap=true",
        "aclnnInplaceFillDiagonal selfRef=FLOAT[3,3,3] fillValue=DOUBLE(-2.5) wrap=false",
        "aclnnInplaceFillDiagonal selfRef=INT32[3,3] fillValue=INT64(-7) wrap=false",
    ],
)
def fill_diagonal(self, fill_value, wrap):
    result = self.copy()
    rows, columns = self.shape[0], self.shape[-1]
    for i in range(rows if self.ndim == 2 else min(self.shape)):
        # With wrap, the diagonal starts again in each further part of a tall matrix, one row below the last.
        column = i % (columns + 1) if wrap else i
        if self.ndim > 2:
            result[(i,) * self.ndim] = fill_value
        elif column < columns:
            result[i, column] = fill_value
    return result


def triangle(self, diagonal, upper):
    offset = np.arange(self.shape[-1]) - np.arange(self.shape[-2])[:, None]
    return np.where(offset >= diagonal if upper else offset <= diagonal, self, 0)


@formula(
    "aclnnTril",
    "aclnnInplaceTril",
    calls=["aclnnTril self=INT32[5,3]:5,-4,3,-2,1,8,-9,4 diagonal=0 out=INT32[5,3]"],
)
def tril(self, diagonal):
    return triangle(self, diagonal, upper=False)


@formula(
    "aclnnTriu",
    "aclnnInplaceTriu",
    calls=[
        "aclnnTriu self=FLOAT[2,4,6] diagonal=-2 out=FLOAT[2,4,6]",
        "aclnnTriu self=INT32[5,3]:5,-4,3,-2,1,8,-9,4 diagonal=1 out=INT32[5,3]",
    ],
)
def triu(self, diagonal):
    return triangle(self, diagonal, upper=True)


@formula(
    "aclnnDiag",
    calls=[
        "aclnnDiag self=FLOAT[2]:1.5,-4.25 diagonal=2 out=FLOAT[4,4]",
        "aclnnDiag self=FLOAT[4,3]:5,-4,3,-2,1,8,-9,4.5,7,0.25,6,-3 diagonal=-1 out=FLOAT[3]",
        "aclnnDiag self=INT32[3,3]:5,-4,3,-2,1,8,-9,4,7 diagonal=0 out=INT32[3]",
        "aclnnDiag self=INT32[2,3]:1,2,3,4,5,6 diagonal=-1 out=INT32[1]",
        "aclnnDiag self=INT32[2]:1,2 diagonal=1 out=INT32[3,3]",
    ],
)
def diag(self, diagonal):
    return np.diag(self, diagonal)


@formula(
    "aclnnDiagFlat",
    calls=[
        "aclnnDiagFlat self=FLOAT[3]:1.5,-4.25,3 diagonal=0 out=FLOAT[3,3]",
        "aclnnDiagFlat self=INT32[3]:5,-4,3 diagonal=1 out=INT32[4,4]",
        "aclnnDiagFlat self=INT32[1,2]:1,2 diagonal=0 out=INT32[2,2]",
        "aclnnDiagFlat self=INT32[2]:1,2 diagonal=-1 out=INT32[3,3]",
    ],
)
def diag_flat(self, diagonal):
    return np.diag(self.reshape(-1), diagonal)


# ops-math: aclnnDiagPart.md
@formula(
    "aclnnDiagPart",
    calls=["aclnnDiagPart x=INT32[3,3]:5,-4,3,-2,1,8,-9,4,7 y=INT32[3]", "aclnnDiagPart x=INT32[0,0] y=INT32[0]"],
)
def diag_part(x):
    return np.array([x[i, i] for i in range(len(x))])
