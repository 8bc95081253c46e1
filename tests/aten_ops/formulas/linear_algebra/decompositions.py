from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

# Two matrices with small condition numbers; the determinant of the second one is negative.
MATRICES = "4,1,-1,0.5,5,2,1,-1.5,3,0.5,3,-1,4,1,0.5,-1,2,5"
SYMMETRIC = "4,1,-1,1,5,0.5,-1,0.5,3,6,-2,1.5,-2,5,1,1.5,1,7"
# Results are computed in FLOAT in several steps.
STEPS = 3e-6


@formula("aclnnInverse", calls=[f"aclnnInverse self=FLOAT[2,3,3]:{MATRICES} out=FLOAT[2,3,3]"], error=STEPS)
def inverse(self):
    return np.linalg.inv(self)


@formula(
    "aclnnLinalgCholesky",
    calls=[
        f"aclnnLinalgCholesky self=FLOAT[2,3,3]:{SYMMETRIC} upper={upper} out=FLOAT[2,3,3]"
        for upper in ("true", "false")
    ],
    error=STEPS,
)
def cholesky(self, upper):
    size = self.shape[-1]
    lower = np.zeros(self.shape)
    for i in range(size):
        for j in range(i + 1):
            rest = self[..., i, j] - np.sum(lower[..., i, :j] * lower[..., j, :j], -1)
            lower[..., i, j] = np.sqrt(rest) if i == j else rest / lower[..., j, j]
    return np.swapaxes(lower, -1, -2) if upper else lower


def householder(matrix, is_complete):
    """Q and R by reflections, which give R's diagonal the opposite sign of the column's first element."""
    rows, columns = matrix.shape
    q, r = np.eye(rows), matrix.copy()
    for i in range(min(rows - 1, columns)):
        column = r[i:, i].copy()
        column[0] += np.copysign(np.linalg.norm(column), column[0])
        reflection = np.eye(rows)
        reflection[i:, i:] -= 2 * np.outer(column, column) / (column @ column)
        q, r = q @ reflection, reflection @ r
    kept = rows if is_complete else min(rows, columns)
    return q[:, :kept], np.triu(r)[:kept]


@formula(
    "aclnnLinalgQr",
    calls=[
        f"aclnnLinalgQr self=FLOAT[2,3,3]:{MATRICES} mode=0 Q=FLOAT[2,3,3] R=FLOAT[2,3,3]",
        "aclnnLinalgQr self=FLOAT[4,2]:4,1,-1,3,5,2,1,-1.5 mode=0 Q=FLOAT[4,2] R=FLOAT[2,2]",
        "aclnnLinalgQr self=FLOAT[3,2]:4,1,-1,3,5,2 mode=1 Q=FLOAT[3,3] R=FLOAT[3,2]",
        "aclnnLinalgQr self=FLOAT[2,3]:4,1,-1,3,5,2 mode=0 Q=FLOAT[2,2] R=FLOAT[2,3]",
    ],
    error=STEPS,
)
def qr(self, mode):
    pairs = [householder(matrix, mode == 1) for matrix in self.reshape(-1, *self.shape[-2:])]
    return tuple(np.reshape(each, (*self.shape[:-2], *each[0].shape)) for each in zip(*pairs, strict=True))


@formula(
    "aclnnSlogdet",
    calls=[f"aclnnSlogdet self=FLOAT[2,3,3]:{MATRICES} signOut=FLOAT[2] logOut=FLOAT[2]"],
)
def slogdet(self):
    def determinant(matrix):
        if len(matrix) == 0:
            return 1
        minors = [np.delete(matrix[1:], j, 1) for j in range(len(matrix))]
        return sum((-1) ** j * matrix[0, j] * determinant(minor) for j, minor in enumerate(minors))

    values = np.array([determinant(matrix) for matrix in self])
    return np.sign(values), np.log(np.abs(values))


# ops-math: aclnnQr.md. Its some is the reduced form.
@formula(
    "aclnnQr",
    calls=[
        f"aclnnQr self=FLOAT[2,3,3]:{MATRICES} some=true Q=FLOAT[2,3,3] R=FLOAT[2,3,3]",
        "aclnnQr self=FLOAT[3,2]:4,1,-1,3,5,2 some=false Q=FLOAT[3,3] R=FLOAT[3,2]",
        "aclnnQr self=FLOAT[3,2]:4,1,-1,3,5,2 some=true Q=FLOAT[3,2] R=FLOAT[2,2]",
        "aclnnQr self=FLOAT[2,2]:1,2,3,4 some=false Q=FLOAT[2,2] R=FLOAT[2,2]",
    ],
    error=STEPS,
)
def qr_of_some(self, some):
    return qr(self, 0 if some else 1)


# ops-math: aclnnLogdet.md. A negative determinant has no logarithm.
@formula(
    "aclnnLogdet",
    calls=[
        f"aclnnLogdet self=FLOAT[2,3,3]:{MATRICES} out=FLOAT[2]",
        "aclnnLogdet self=FLOAT[4,2,2]:2,0,0,3,1,2,2,4,4,0,0,1,1,2,3,4 out=FLOAT[4]",
    ],
    error=STEPS,
)
def logdet(self):
    sign, logarithm = slogdet(self.reshape(int(np.prod(self.shape[:-2])), *self.shape[-2:]))
    return (np.log(sign) + logarithm).reshape(self.shape[:-2])


# mOut is a copy of A, which may be the same for all batches (ops-math: aclnnTriangularSolve.md).
@formula(
    "aclnnTriangularSolve",
    calls=[
        f"aclnnTriangularSolve self=FLOAT[2,3,2]:4,6,-1,2,-3.5,1,7,-2.5,0.75,3,5,-4 A=FLOAT[{shape}]:{MATRICES} "
        f"upper={upper} transpose={transpose} unitriangular={unit} xOut=FLOAT[2,3,2] mOut=FLOAT[2,3,3]"
        for shape, upper, transpose, unit in (
            ("2,3,3", "true", "false", "false"),
            ("2,3,3", "true", "true", "false"),
            ("3,3", "false", "false", "true"),
            ("3,3", "false", "true", "false"),
        )
    ],
    error=STEPS,
)
def triangular_solve(self, a, upper, transpose, unit):
    batch = np.broadcast_shapes(self.shape[:-2], a.shape[:-2])
    size = a.shape[-1]
    matrices = np.triu(a) if upper else np.tril(a)
    if unit:
        matrices = np.where(np.eye(size) == 1, 1, matrices)
    matrices = np.swapaxes(matrices, -1, -2) if transpose else matrices
    matrices = np.broadcast_to(matrices, (*batch, size, size))
    x = np.broadcast_to(self, (*batch, *self.shape[-2:])).copy()
    # Rows without unknowns come first.
    for i in range(size)[:: -1 if upper != transpose else 1]:
        others = np.arange(size) > i if upper != transpose else np.arange(size) < i
        x[..., i, :] -= (matrices[..., i, others, None] * x[..., others, :]).sum(-2)
        x[..., i, :] /= matrices[..., i, i, None]
    return x, np.broadcast_to(a, (*batch, size, size))


# ops-math: aclnnLinalgCross.md. The tensors are broadcast; dim refers to self.
@formula(
    "aclnnLinalgCross",
    calls=[
        "aclnnLinalgCross self=FLOAT[2,3]:1,-2,3,0.5,4,-1 other=FLOAT[2,3]:2,5,-3,-1.5,1,6 dim=-1 out=FLOAT[2,3]",
        "aclnnLinalgCross self=FLOAT[3,2]:1,-2,3,0.5,4,-1 other=FLOAT[3,2]:2,5,-3,-1.5,1,6 dim=0 out=FLOAT[3,2]",
        "aclnnLinalgCross self=FLOAT[3]:1,-2,3 other=FLOAT[2,3]:2,5,-3,-1.5,1,6 dim=0 out=FLOAT[2,3]",
    ],
)
def linalg_cross(self, other, dim):
    axis = dim if dim < 0 else dim - self.ndim
    a, b = np.broadcast_arrays(self, other)
    return np.cross(a, b, axis=axis)
