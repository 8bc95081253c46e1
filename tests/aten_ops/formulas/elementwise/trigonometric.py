from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formulas import formula

ANGLES = "-3,-1.25,-0.5,0.75,1,2,2.5,5"
LIMITS = "0,inf,-inf,nan,-2,0.25,1.5,-0.75"
# In and outside of [-1, 1].
SINES = ["-0.875,-0.5,-0.3,0.125,0.25,0.6,0.75,0.95", "1,-1,0,1.5,-2,nan,0.5,-0.25"]


def calls(operator, *values):
    """The calls of a function: on FLOAT, and on integers with a FLOAT result."""
    return [*calls_on(operator, *values), f"aclnn{operator} self=INT32[2,4]:2,-1,3,0,-2,4,1,5 out=FLOAT[2,4]"]


@formula("aclnnSin", "aclnnInplaceSin", calls=calls("Sin", ANGLES, LIMITS))
def sin(self):
    return np.sin(self)


@formula("aclnnCos", "aclnnInplaceCos", calls=calls("Cos", ANGLES, LIMITS))
def cos(self):
    return np.cos(self)


@formula("aclnnTan", "aclnnInplaceTan", calls=calls("Tan", ANGLES, LIMITS))
def tan(self):
    return np.sin(self) / np.cos(self)


@formula(
    "aclnnSinc",
    "aclnnInplaceSinc",
    calls=calls("Sinc", "-1.25,-0.5,0.25,0.375,0.75,1.5,2.25,-1.75", "0,1,-2,nan,0.5,0.25,-0.75,1.25"),
)
def sinc(self):
    return np.where(self == 0, 1, np.sin(np.pi * self) / (np.pi * self))


def calls_xy(operator, names, *values):
    """The calls of a gradient: the names are those of the given gradient, of the other input and of the output."""
    dy, x, out = names.split()
    gradient = f"{dy}=FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"
    return [f"aclnn{operator} {gradient} {x}=FLOAT[2,4]:{each} {out}=FLOAT[2,4]" for each in values]


# ops-math: experimental/math/asin_with_agent/README.md
@formula(
    *("aclnnAsin", "aclnnInplaceAsin", "aclnnAsinWithAgent"),
    calls=[
        *calls("Asin", *SINES),
        *[f"aclnnAsinWithAgent x=FLOAT[2,4]:{values} y=FLOAT[2,4]" for values in SINES],
        "aclnnAsinWithAgent x=INT8[3]:0,1,-1 y=FLOAT[3]",
    ],
)
def asin(self):
    return np.arcsin(self)


@formula("aclnnAcos", "aclnnInplaceAcos", calls=calls("Acos", *SINES))
def acos(self):
    return np.arccos(self)


# ops-math: math/acos_grad/README.md, experimental/math/acos_grad_v2/README.md, aclnnAsinGrad.md
@formula(
    "aclnnAcosGrad",
    calls=[
        *calls_xy("AcosGrad", "y_grad x x_grad", *SINES),
        "aclnnAcosGrad y_grad=FLOAT[0] x=FLOAT[0] x_grad=FLOAT[0]",
    ],
)
def acos_grad(dy, x):
    return -dy / np.sqrt(1 - x**2)


@formula("aclnnAcosGradV2", calls=calls_xy("AcosGradV2", "dy y z", *SINES))
def acos_grad_v2(x, dy):
    return acos_grad(dy, x)


@formula("aclnnAsinGrad", calls=calls_xy("AsinGrad", "dy y z", *SINES))
def asin_grad(x, dy):
    return dy / np.sqrt(1 - x**2)


# ops-math: aclnnAcoshGrad.md, experimental/math/asinh_grad/README.md, of the functions' results
@formula("aclnnAcoshGrad", calls=calls_xy("AcoshGrad", "dy y dx", ANGLES))
def acosh_grad(y, dy):
    return dy / np.sinh(y)


@formula("aclnnAsinhGrad", calls=calls_xy("AsinhGrad", "dy y z", ANGLES))
def asinh_grad(y, dy):
    return dy / np.cosh(y)


# ops-math: experimental/math/atan_grad/README.md
@formula("aclnnAtanGrad", calls=calls_xy("AtanGrad", "dy x dx", ANGLES))
def atan_grad(x, dy):
    return dy / (1 + x**2)


# ops-math: experimental/math/asinh_v2/README.md
@formula("aclnnAsinhV2", calls=[f"aclnnAsinhV2 x=FLOAT[2,4]:{values} out=FLOAT[2,4]" for values in (ANGLES, LIMITS)])
def asinh_v2(x):
    return np.arcsinh(x)


@formula("aclnnAtan", "aclnnInplaceAtan", calls=calls("Atan", ANGLES, LIMITS))
def atan(self):
    return np.arctan(self)


# In each quadrant and on the axes.
@formula(
    "aclnnAtan2",
    "aclnnInplaceAtan2",
    calls=[
        *calls_of(
            "Atan2", "self=FLOAT[2,4]:1,-2,3,-4,0.5,0,-0.25,0 other=FLOAT[2,4]:2,1,-1.5,-3,0,-2,0,3", "FLOAT[2,4]"
        ),
        *calls_of("Atan2", "self=FLOAT[2,4]:1,-2,3,-4,0.5,7,-0.25,6 other=FLOAT[4]:2,1,-1.5,-3", "FLOAT[2,4]"),
    ],
)
def atan2(self, other):
    return np.arctan2(self, other)


@formula("aclnnSinh", "aclnnInplaceSinh", calls=calls("Sinh", ANGLES, LIMITS))
def sinh(self):
    return np.sinh(self)


@formula("aclnnCosh", "aclnnInplaceCosh", calls=calls("Cosh", ANGLES, LIMITS))
def cosh(self):
    return np.cosh(self)


@formula("aclnnAsinh", "aclnnInplaceAsinh", calls=calls("Asinh", ANGLES, LIMITS))
def asinh(self):
    return np.arcsinh(self)


@formula(
    "aclnnAcosh",
    "aclnnInplaceAcosh",
    calls=calls("Acosh", "1.5,2,3,1.25,10,4.5,7,20", "2.5,1,0.5,-2,inf,nan,1.75,6"),
)
def acosh(self):
    return np.arccosh(self)


@formula("aclnnAtanh", "aclnnInplaceAtanh", calls=calls("Atanh", *SINES))
def atanh(self):
    return np.arctanh(self)


@formula(
    "aclnnAsinhWithAgent",
    calls=[
        "aclnnAsinhWithAgent x=FLOAT[2,4]:1,-2.5,3,-0.5,4.25,7,-6,0.125 out=FLOAT[2,4]",
        "aclnnAsinhWithAgent x=DOUBLE[2]:0.75,0 out=FLOAT[2]",
    ],
)
def asinh_with_agent(x):
    return np.arcsinh(x)
