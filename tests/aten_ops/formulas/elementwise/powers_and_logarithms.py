from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formulas import formula

EXPONENTS = ["-2,-0.5,0,0.25,1,2,3,4.5", "inf,-inf,nan,-1,1.5,0.75,-3,2.5"]
POSITIVE = ["0.25,0.5,0.1,2,3,10,100,7.5", "4,1,0,-1,inf,-inf,nan,1000"]


@formula("aclnnExp", "aclnnInplaceExp", calls=calls_on("Exp", *EXPONENTS))
def exp(self):
    return np.exp(self)


@formula("aclnnExp2", "aclnnInplaceExp2", calls=calls_on("Exp2", *EXPONENTS))
def exp2(self):
    return 2.0**self


@formula("aclnnExpm1", "aclnnInplaceExpm1", calls=calls_on("Expm1", *EXPONENTS))
def expm1(self):
    return np.expm1(self)


@formula("aclnnLog", "aclnnInplaceLog", calls=calls_on("Log", *POSITIVE))
def log(self):
    return np.log(self)


@formula("aclnnLog10", "aclnnInplaceLog10", calls=calls_on("Log10", *POSITIVE))
def log10(self):
    return np.log10(self)


@formula("aclnnLog2", "aclnnInplaceLog2", calls=calls_on("Log2", *POSITIVE))
def log2(self):
    return np.log2(self)


@formula(
    "aclnnLog1p",
    "aclnnInplaceLog1p",
    calls=calls_on("Log1p", "-0.75,-0.5,-0.25,0.5,1,3,10,100", "4,-1,-1.5,0,inf,-inf,nan,2"),
)
def log1p(self):
    return np.log1p(self)


@formula("aclnnSqrt", "aclnnInplaceSqrt", calls=calls_on("Sqrt", *POSITIVE))
def sqrt(self):
    return self**0.5


@formula("aclnnRsqrt", "aclnnInplaceRsqrt", calls=calls_on("Rsqrt", *POSITIVE))
def rsqrt(self):
    return 1 / np.sqrt(self)


@formula(
    "aclnnPowTensorTensor",
    "aclnnInplacePowTensorTensor",
    "aclnnPowTensorScalar",
    "aclnnInplacePowTensorScalar",
    "aclnnPowScalarTensor",
    calls=[
        *calls_of(
            "PowTensorTensor",
            "self=FLOAT[2,4]:2,-2,0.5,-3,6,7,9,-1.5 exponent=FLOAT[2,4]:3,2,-1,3,0.5,0,1.5,-2",
        ),
        *calls_of("PowTensorTensor", "self=FLOAT[2,4]:0,0,-2,4,3,-1.5,2,5 exponent=FLOAT[4]:0,-1,0.5,2"),
        *calls_of("PowTensorTensor", "self=INT32[8]:2,-3,5,-2,1,0,-1,3 exponent=INT32[8]:3,3,2,5,7,4,8,4", "INT32[8]"),
        *calls_of("PowTensorScalar", "self=FLOAT[2,4]:2,-2.5,0.5,-3,6,7,9,-1.5 exponent=INT64(3)"),
        *calls_of("PowTensorScalar", "self=FLOAT[2,4]:2,2.5,0.5,3,6,7,9,1.5 exponent=DOUBLE(-1.25)"),
        *calls_of("PowTensorScalar", "self=INT32[2,4]:2,-3,5,-2,1,0,-1,4 exponent=INT64(3)", "INT32[2,4]"),
        "aclnnPowScalarTensor self=DOUBLE(2.5) exponent=FLOAT[2,4]:3,2,-1,-0.5,0.5,0,1.5,-2 out=FLOAT[2,4]",
        "aclnnPowScalarTensor self=FLOAT(-2) exponent=FLOAT[2,4]:3,2,-1,0.5,5,0,1,-2 out=FLOAT[2,4]",
        "aclnnPowScalarTensor self=INT64(-3) exponent=INT32[2,4]:3,2,1,4,5,0,6,7 out=INT32[2,4]",
    ],
)
def power(self, exponent):
    return np.power(np.asarray(self, np.float64), exponent)


@formula(
    "aclnnLogAddExp2",
    calls=[
        *calls_of("LogAddExp2", "self=FLOAT[2,4]:1,-2.5,3,-7,40,5.5,-6,200 other=FLOAT[4]:2,-3,4.5,-6"),
        *calls_of("LogAddExp2", "self=FLOAT[4]:inf,-inf,-inf,nan other=FLOAT[4]:1,2.5,-inf,1", "FLOAT[4]"),
    ],
)
def logaddexp2(self, other):
    most = np.maximum(self, other)
    least = np.where(self == other, most, np.minimum(self, other))
    return np.where(np.isinf(most), most, most + np.log2(1 + 2 ** (least - most)))


FACTORS = "0,2,-1.5,0,3,-4,0.5,6"
ARGUMENTS = "0,3,0.5,nan,0.25,10,-1,2.5"


@formula(
    "aclnnXLogYTensor",
    "aclnnInplaceXLogYTensor",
    "aclnnXLogYScalarOther",
    "aclnnInplaceXLogYScalarOther",
    "aclnnXLogYScalarSelf",
    calls=[
        *calls_of("XLogYTensor", f"self=FLOAT[2,4]:{FACTORS} other=FLOAT[2,4]:{ARGUMENTS}"),
        *calls_of("XLogYScalarOther", f"self=FLOAT[2,4]:{FACTORS} other=DOUBLE(2.5)"),
        *calls_of("XLogYScalarOther", "self=FLOAT[2,2]:0,2,-1.5,-3 other=DOUBLE(0)", "FLOAT[2,2]"),
        f"aclnnXLogYScalarSelf self=DOUBLE(-1.5) other=FLOAT[2,4]:{ARGUMENTS} out=FLOAT[2,4]",
        f"aclnnXLogYScalarSelf self=DOUBLE(0) other=FLOAT[2,4]:{ARGUMENTS} out=FLOAT[2,4]",
        "aclnnInplaceXLogYTensor selfRef=FLOAT[2,2]:0,1,2,3 other=FLOAT[2]:0,4",
    ],
)
def xlogy(self, other):
    return np.where(np.isnan(other), np.nan, np.where(np.asarray(self) == 0, 0, self * np.log(other)))


PAIRS = "-2.5,0.75,-0.5,1.5,3,-4,0.25,7", "0.5,1.25,-3,2,100,-4.5,0.625,9"


@formula(
    "aclnnLogAddExp",
    calls=[
        f"aclnnLogAddExp self=FLOAT[2,4]:{PAIRS[0]} other=FLOAT[2,4]:{PAIRS[1]} out=FLOAT[2,4]",
        "aclnnLogAddExp self=FLOAT[2,2]:-inf,1.5,-inf,2 other=FLOAT[2,2]:-inf,-inf,3,inf out=FLOAT[2,2]",
    ],
)
def logaddexp(self, other):
    return np.logaddexp(self, other)


@formula(
    "aclnnXlog1py",
    calls=[
        "aclnnXlog1py x=FLOAT[2,4]:-2.5,0.75,0,1.5,3,0,0.25,7 y=FLOAT[2,4]:0.5,1.25,-1,2,100,-5,-0.625,9 z=FLOAT[2,4]",
        "aclnnXlog1py x=FLOAT[3]:0,2,1 y=FLOAT[3]:-1,1,0 z=FLOAT[3]",
    ],
)
def xlog1py(x, y):
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y))


@formula(
    "aclnnSquare",
    calls=[
        "aclnnSquare self=FLOAT[2,4]:1,-2.5,3,-0.5,4.25,7,-6,0.1 out=FLOAT[2,4]",
        "aclnnSquare self=INT32[2,4]:1,-2,3,-5,4,7,-6,9 out=INT32[2,4]",
        "aclnnSquare self=INT32[2]:-3,4 out=INT32[2]",
    ],
)
def square(self):
    return self**2


# ops-math: aclnnSqrtBackward.md
@formula(
    "aclnnSqrtBackward",
    calls=["aclnnSqrtBackward y=FLOAT[2,3]:2,0,0.5,0,3,7 dy=FLOAT[2,3]:8,0,1,-2,-0.75,nan z=FLOAT[2,3]"],
)
def sqrt_backward(y, dy):
    return np.where(dy == 0, 0, dy / 2 / y)
