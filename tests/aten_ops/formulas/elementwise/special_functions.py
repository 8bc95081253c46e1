from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formula_helpers import functions
from tests.aten_ops.formula_helpers.elementwise import calls_on
from tests.aten_ops.formulas import formula

ARGUMENTS = ["-1.5,-0.5,0.25,-0.125,0.75,1,1.25,2", "inf,-inf,nan,-2.5,0,0.5,-1,-0.25"]


@formula("aclnnErf", "aclnnInplaceErf", calls=calls_on("Erf", *ARGUMENTS))
def erf(self):
    return functions.erf(self)


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


# ops-math: experimental/math/ndtri/README.md
@formula(
    "aclnnNdtri",
    calls=[
        f"aclnnNdtri self=FLOAT[2,4]:{values} out=FLOAT[2,4]"
        for values in (*PROBABILITIES, "0,1,-1,2,inf,0.125,0.8,0.0625")
    ],
)
def ndtri(p):
    return np.sqrt(2) * np.vectorize(inverse_erf, [float])(2 * p - 1)


def fresnel(x):
    """The integrals of cos and of sin of pi / 2 * t**2 from 0 to x: by Gauss' rule, or by the series for large x."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t = np.abs(x)
    near, far = np.minimum(t, 6)[..., None] * (nodes + 1) / 2, np.maximum(t, 6)
    phase, square = np.pi / 2 * far**2, np.pi * far**2
    f = (1 - 3 / square**2 + 105 / square**4) / (np.pi * far)
    g = (1 - 15 / square**2 + 945 / square**4) / (np.pi * far * square)
    waves = np.stack([np.cos(phase), np.sin(phase)])
    waves[~np.isfinite(waves)] = 0
    series = 0.5 + f * waves[1] - g * waves[0], 0.5 - f * waves[0] - g * waves[1]
    sums = [(weights * wave(np.pi / 2 * near**2)).sum(-1) * t / 2 for wave in (np.cos, np.sin)]
    return [
        np.where(np.isnan(x), np.nan, np.copysign(np.where(t < 6, *pair), x)) for pair in zip(sums, series, strict=True)
    ]


FRESNEL = ["0.125,0.5,-1,1.5,2,-2.75,5,3.5", "0,inf,-inf,nan,1e30,-0.0,8.5,-100"]


# ops-math: experimental/math/fresnel_cos/README.md, fresnel_sin/README.md
@formula("aclnnFresnelCos", calls=[f"aclnnFresnelCos x=FLOAT[2,4]:{values} out=FLOAT[2,4]" for values in FRESNEL])
def fresnel_cos(x):
    return fresnel(x)[0]


@formula("aclnnFresnelSin", calls=[f"aclnnFresnelSin x=FLOAT[2,4]:{values} out=FLOAT[2,4]" for values in FRESNEL])
def fresnel_sin(x):
    return fresnel(x)[1]


# ops-math: aclnnLgamma.md, aclnnDigamma.md, for positive numbers
GAMMA = "0.5,1.5,5,0.125,3,10.5,70,2.25"


@formula("aclnnLgamma", calls=[f"aclnnLgamma self=FLOAT[2,4]:{GAMMA} out=FLOAT[2,4]"])
def lgamma(x):
    return np.vectorize(math.lgamma, [float])(x)


# By the recurrence to numbers above 10, where the asymptotic series has an error below 1e-15.
@formula("aclnnDigamma", calls=[f"aclnnDigamma self=FLOAT[2,4]:{GAMMA} out=FLOAT[2,4]"])
def digamma(x):
    steps = sum(1 / (x + k) for k in range(10))
    z = x + 10
    series = 1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - (1 / 132 - 691 / 32760 / z**2) / z**2) / z**2) / z**2) / z**2
    return np.log(z) - 1 / (2 * z) - series / z**2 - steps
