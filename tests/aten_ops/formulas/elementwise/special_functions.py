from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas_helpers_elementwise import calls_on

ARGUMENTS = ["-1.5,-0.5,0.25,-0.125,0.75,1,1.25,2", "inf,-inf,nan,-2.5,0,0.5,-1,-0.25"]


@formula("aclnnErf", "aclnnInplaceErf", calls=calls_on("Erf", *ARGUMENTS))
def erf(self):
    return np.vectorize(math.erf, [float])(self)


@formula("aclnnErfc", "aclnnInplaceErfc", calls=calls_on("Erfc", *ARGUMENTS))
def erfc(self):
    return np.vectorize(math.erfc, [float])(self)


def inverse_erf(y):
    """By Newton's method from 0, from which it converges because erf is concave for x > 0."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    x = 0.0
    for _ in range(200):
        x += (abs(y) - math.erf(x)) * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.copysign(x, y)


@formula(
    "aclnnErfinv",
    "aclnnInplaceErfinv",
    calls=calls_on("Erfinv", "-0.875,-0.5,0.25,-0.125,0.75,0.95,0.375,0.625", "1,-1,nan,0,2,-1.5,0.5,-0.25"),
)
def erfinv(self):
    return np.vectorize(inverse_erf, [float])(self)


PROBABILITIES = ["0.25,0.75,0.125,0.375,0.875,0.625,0.9,0.03125", "0.2,0.3,0,1,-0.5,1.5,0.7,nan"]


# A negative eps limits nothing.
@formula(
    "aclnnLogit",
    calls=[
        f"aclnnLogit input=FLOAT[2,4]:{values} eps={eps} out=FLOAT[2,4]"
        for values in PROBABILITIES
        for eps in (-1, 0.0625, 0.25)
    ],
)
def logit(x, eps):
    limited = x if eps < 0 else np.where(x < eps, eps, np.where(x > 1 - eps, 1 - eps, x))
    return np.log(limited / (1 - limited))


# Outside eps and 1 - eps the result of logit is constant; without eps it is undefined outside 0 and 1.
@formula(
    "aclnnLogitGrad",
    calls=[
        f"aclnnLogitGrad x=FLOAT[2,4]:{values} dy=FLOAT[2,4]:1,-2.5,3,-0.5,4.25,7,-6,2 eps={eps} dx=FLOAT[2,4]"
        for values in PROBABILITIES
        for eps in (-1, 0.0625, 0.25)
    ],
)
def logit_grad(x, dy, eps):
    least, outside = (0, np.nan) if eps < 0 else (eps, 0)
    gradient = np.where((x < least) | (x > 1 - least), outside, dy / (x * (1 - x)))
    return np.where(np.isnan(x), np.nan, gradient)
