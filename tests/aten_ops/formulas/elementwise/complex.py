from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

PARTS = "FLOAT[2,4]:1,-2.5,3,-0.5,4.25,7,-6,2"


@formula(
    "aclnnComplex",
    calls=[f"aclnnComplex real={PARTS} imag=FLOAT[2,4]:-2,1.5,3.25,-4,0.75,-5,8,0.5 out=COMPLEX64[2,4]"],
)
def complex_number(real, imag):
    return real + 1j * imag


@formula(
    "aclnnPolar",
    calls=[f"aclnnPolar input={PARTS} angle=FLOAT[2,4]:-2,1.25,3.25,-4,0.75,-5.5,8,0.5 out=COMPLEX64[2,4]"],
)
def polar(magnitude, angle):
    return magnitude * np.cos(angle) + 1j * magnitude * np.sin(angle)


# Of a real number: 0, or pi if it is negative.
@formula(
    "aclnnAngleV2",
    calls=[
        "aclnnAngleV2 self=FLOAT[2,4]:-1,2,-inf,0,-0.25,-3,nan,5 out=FLOAT[2,4]",
        "aclnnAngleV2 self=INT32[2,4]:2,-1,0,-3,-4,5,-6,-7 out=FLOAT[2,4]",
    ],
)
def angle(self):
    return np.where(np.isnan(self), np.nan, np.where(self < 0, np.pi, 0))


# ops-math: aclnnReal.md
@formula(
    "aclnnReal",
    calls=["aclnnReal self=COMPLEX64[2,2]:1,-2,3.5,4 out=FLOAT[2,2]", "aclnnReal self=COMPLEX128[2]:1,2 out=DOUBLE[2]"],
)
def real(self):
    return self.real
