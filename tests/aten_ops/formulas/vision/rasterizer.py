from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VERTICES = (
    "-0.95,-0.9,0.3,1,0.93,-0.87,0.1,1.25,0.1,0.97,0.2,1.5,-0.9,0.8,0.05,1.1,0.8,0.85,0.4,0.9,-0.5,-1.2,0.375,1.3"
)
# The last ones are the first again, behind and from the other side, and one without area.
FACES = "0,1,2,3,4,0,1,1,2,2,4,3,0,1,2,5,4,3,1,0,5"


def area(a, b, c):
    """Twice the signed area of a triangle."""
    return (c[0] - a[0]) * (b[1] - a[1]) - (b[0] - a[0]) * (c[1] - a[1])


def weights_of(corners, x, y):
    """The barycentric weights of the centre of a pixel; all -1 in a triangle without area."""
    whole, point = area(*corners), (x + 0.5, y + 0.5)
    if whole == 0:
        return np.full(3, -1.0)
    beta, gamma = area(corners[0], point, corners[2]) / whole, area(corners[0], corners[1], point) / whole
    return np.array([1 - beta - gamma, beta, gamma])


# ops-cv: aclnnRasterizer.md. Faces are counted from 1; a pixel without a face has 0, and the weights 0.
@formula(
    "aclnnRasterizer",
    calls=[
        f"aclnnRasterizer v=FLOAT[6,4]:{VERTICES} f=INT32[7,3]:{FACES} dOptional=null width={width} height={height} "
        f"occlusionTruncation=0.0 useDepthPrior=0 findicesOut=INT32[{height},{width}] "
        f"barycentricOut=FLOAT[{height},{width},3]"
        for width, height in ((7, 6), (5, 9))
    ],
)
def rasterizer(v, f, _depth, width, height, _truncation, _use_prior):
    x, y, z, w = v.T
    screen = np.stack(
        [(x / w / 2 + 0.5) * (width - 1) + 0.5, (0.5 + y / w / 2) * (height - 1) + 0.5, z / w * 0.49999 + 0.5], -1
    )
    indices, result = np.zeros((height, width), int), np.zeros((height, width, 3))
    for row, column in np.ndindex(height, width):
        nearest = np.inf
        for number, face in enumerate(f, 1):
            weights = weights_of(screen[face], column, row)
            depth = weights @ screen[face, 2]
            if (weights >= 0).all() and depth < nearest:
                nearest, indices[row, column] = depth, number
                result[row, column] = weights / w[face] / (weights / w[face]).sum()
    return indices, result
