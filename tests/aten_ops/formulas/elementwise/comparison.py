from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formulas import formula

# Both orders: the first pair is equal, and the second and the last are greater in one and less in the other.
ONE = "2,3,-1,0.5,-4,5,-2,1"
TWO = "2,1,3,0.5,-3,-5,-2,0.25"


def calls(relation):
    """The calls of the four forms of a comparison."""
    return [
        *calls_of(f"{relation}Tensor", f"self=FLOAT[2,4]:{ONE} other=FLOAT[2,4]:{TWO}", "BOOL[2,4]"),
        *calls_of(f"{relation}Tensor", f"self=FLOAT[2,4]:{TWO} other=FLOAT[2,4]:{ONE}", "BOOL[2,4]"),
        *calls_of(f"{relation}Tensor", "self=FLOAT[2,4]:nan,inf,1,-inf,3,nan,-1,2 other=FLOAT[4]:nan,1,inf,2"),
        *calls_of(f"{relation}Tensor", "self=INT32[2,4]:-2,-1,3,-2,5,-4,-2,3 other=INT32[4]:-2,-3,3,4", "BOOL[2,4]"),
        *calls_of(f"{relation}Scalar", "self=FLOAT[2,4]:2,3,1,2,1.5,5,2,4 other=DOUBLE(2)", "BOOL[2,4]"),
        *calls_of(f"{relation}Scalar", "self=FLOAT[2,4]:2,1,3,2,4,0.5,2,1.5 other=DOUBLE(2)", "BOOL[2,4]"),
        *calls_of(f"{relation}Scalar", "self=INT32[2,4]:-2,-1,-3,-2,-5,4,-2,3 other=INT64(-2)", "BOOL[2,4]"),
    ]


@formula("aclnnEqTensor", "aclnnEqScalar", "aclnnInplaceEqTensor", "aclnnInplaceEqScalar", calls=calls("Eq"))
def equal(self, other):
    return self == other


@formula("aclnnNeTensor", "aclnnNeScalar", "aclnnInplaceNeTensor", "aclnnInplaceNeScalar", calls=calls("Ne"))
def not_equal(self, other):
    return self != other


@formula("aclnnGtTensor", "aclnnGtScalar", "aclnnInplaceGtTensor", "aclnnInplaceGtScalar", calls=calls("Gt"))
def greater(self, other):
    return self > other


@formula("aclnnGeTensor", "aclnnGeScalar", "aclnnInplaceGeTensor", "aclnnInplaceGeScalar", calls=calls("Ge"))
def greater_or_equal(self, other):
    return self >= other


@formula("aclnnLtTensor", "aclnnLtScalar", "aclnnInplaceLtTensor", "aclnnInplaceLtScalar", calls=calls("Lt"))
def less(self, other):
    return self < other


@formula("aclnnLeTensor", "aclnnLeScalar", "aclnnInplaceLeTensor", "aclnnInplaceLeScalar", calls=calls("Le"))
def less_or_equal(self, other):
    return self <= other


@formula(
    "aclnnEqual",
    calls=[
        *calls_of("Equal", "self=FLOAT[2,2]:1,-2,3,4 other=FLOAT[2,2]:1,-2,3,4", "BOOL[1]"),
        *calls_of("Equal", "self=FLOAT[2,2]:1,-2,3,4 other=FLOAT[2,2]:1,-2,3,4.25", "BOOL[1]"),
        *calls_of("Equal", "self=FLOAT[2,2]:-1,-2,3,4 other=FLOAT[2,2]:1,-2,3,4", "BOOL[1]"),
        *calls_of("Equal", "self=FLOAT[2,2]:1,-2,1,-2 other=FLOAT[2]:1,-2", "BOOL[1]"),
        *calls_of("Equal", "self=INT32[4]:1,-2,3,4 other=INT32[2,2]:1,-2,3,4", "BOOL[1]"),
    ],
)
def equal_tensors(self, other):
    return np.array([self.shape == other.shape and np.all(self == other)])


# At the limits: |3 - 2| and |2.5 - 4| are allowed, |4 - 2.5| is not.
CLOSE = (
    "self=FLOAT[2,5]:3,3.5,-1.25,4,2.5,-3.5,nan,inf,inf,nan other=FLOAT[2,5]:2,2,-2,2.5,4,-2,nan,-inf,inf,1 "
    "rtol=0.25 atol=0.5"
)


@formula(
    "aclnnIsClose",
    calls=[
        *calls_of("IsClose", f"{CLOSE} equalNan=true", "BOOL[2,5]"),
        *calls_of("IsClose", f"{CLOSE} equalNan=false", "BOOL[2,5]"),
    ],
)
def is_close(self, other, rtol, atol, equal_nan):
    both_nan = np.isnan(self) & np.isnan(other)
    near = np.isfinite(other) & (np.abs(self - other) <= atol + rtol * np.abs(other))
    return near | (self == other) | (both_nan & equal_nan)


@formula(
    "aclnnIsInTensorScalar",
    calls=[
        f"aclnnIsInTensorScalar elements={dtype}[2,4]:{values} testElement={element} assumeUnique={unique} "
        f"invert={invert} out=BOOL[2,4]"
        for dtype, values, element in [
            ("FLOAT", "-2.5,1,2.5,-2.5,0,-2.5,3,4", "DOUBLE(-2.5)"),
            ("INT32", "-2,1,2,-2,0,-2,3,4", "INT64(-2)"),
        ]
        for unique, invert in [("false", "false"), ("true", "true")]
    ],
)
def is_in(elements, test_element, assume_unique, invert):
    return (elements == test_element) ^ invert


@formula("aclnnIsFinite", calls=calls_on("IsFinite", "1,inf,-inf,0,-2,nan,3e38,nan", out="BOOL"))
def is_finite(self):
    return ~(np.isnan(self) | np.isinf(self))


@formula("aclnnIsNegInf", calls=calls_on("IsNegInf", "-inf,inf,1,-inf,nan,-1,-inf,0", out="BOOL"))
def is_negative_infinity(self):
    return self == -np.inf


@formula("aclnnIsPosInf", calls=calls_on("IsPosInf", "inf,-inf,1,inf,nan,-1,inf,0", out="BOOL"))
def is_positive_infinity(self):
    return self == np.inf


@formula(
    "aclnnSign",
    calls=[
        *calls_on("Sign", "-2,3,0,-0.5,-7,0.25,inf,1", "2.5,-inf,-3,0.125,0,1,2,-1"),
        *calls_on("Sign", "-2,3,0,-5,-7,4,9,1", dtype="INT32", out="INT32"),
    ],
)
def sign(self):
    return np.where(self > 0, 1, np.where(self < 0, -1, 0))


@formula(
    "aclnnSignbit",
    calls=[
        *calls_on("Signbit", "-1,0.5,-0.0,-2,0,inf,-inf,3", out="BOOL"),
        *calls_on("Signbit", "-1,5,-3,-2,0,4,-6,3", dtype="INT32", out="BOOL"),
    ],
)
def signbit(self):
    return np.signbit(np.asarray(self, np.float64))


# ops-math: experimental/math/approximate_equal/README.md
@formula(
    "aclnnApproximateEqual",
    calls=[
        "aclnnApproximateEqual x1=FLOAT[5]:1,1,1,2,3 x2=FLOAT[5]:1.25,1.5,0.25,2,4 tolerance=0.5 y=BOOL[5]",
        "aclnnApproximateEqual x1=FLOAT[2]:1,2 x2=FLOAT[2]:1,3 tolerance=0 y=BOOL[2]",
    ],
)
def approximate_equal(x, y, tolerance):
    return np.abs(x - y) < tolerance


# ops-math: aclnnIsInf.md
@formula(
    "aclnnIsInf",
    calls=[
        "aclnnIsInf x=FLOAT[2,4]:inf,0,nan,-3.4e38,-2,1e-45,-inf,inf out=BOOL[2,4]",
        "aclnnIsInf x=INT32[2]:1,2 out=BOOL[2]",
    ],
)
def is_inf(x):
    return np.abs(x) == np.inf


@formula(
    "aclnnIsInScalarTensor",
    calls=[
        f"aclnnIsInScalarTensor element=INT64({element}) testElements=INT64[2,2]:3,-1,4,1 assumeUnique=true "
        f"invert={invert} out=BOOL[]"
        for element, invert in ((3, "false"), (3, "true"), (2, "false"), (2, "true"))
    ],
)
def is_in_scalar_tensor(element, test_elements, assume_unique, invert):
    return np.any(test_elements == element) ^ invert
