from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formulas import formula

FLOATS = "self=FLOAT[2,4]:0.5,0,-3,0,2,0,-0.25,0 other=FLOAT[2,4]:-2,0,0,0.125,5,3,-7,0"
ROW = "self=INT32[2,4]:-1,3,0,2,0,0,-4,0 other=INT32[4]:-5,0,3,6"


@formula(
    "aclnnLogicalAnd",
    "aclnnInplaceLogicalAnd",
    calls=[*calls_of("LogicalAnd", FLOATS, "BOOL[2,4]"), *calls_of("LogicalAnd", ROW, "BOOL[2,4]")],
)
def logical_and(self, other):
    return (self != 0) & (other != 0)


@formula(
    "aclnnLogicalOr",
    "aclnnInplaceLogicalOr",
    calls=[*calls_of("LogicalOr", FLOATS, "BOOL[2,4]"), *calls_of("LogicalOr", ROW, "BOOL[2,4]")],
)
def logical_or(self, other):
    return (self != 0) | (other != 0)


@formula(
    "aclnnLogicalXor", calls=[*calls_of("LogicalXor", FLOATS, "BOOL[2,4]"), *calls_of("LogicalXor", ROW, "BOOL[2,4]")]
)
def logical_xor(self, other):
    return (self != 0) ^ (other != 0)


@formula(
    "aclnnLogicalNot",
    "aclnnInplaceLogicalNot",
    calls=[
        *calls_on("LogicalNot", "0,0.25,-3,0,5,nan,-0.0,7", out="BOOL"),
        *calls_on("LogicalNot", "0,2,-3,0,5,-4,0,7", dtype="INT32", out="BOOL"),
    ],
)
def logical_not(self):
    return self == 0


BITS = "self=INT32[2,4]:12,-7,5,-1,0,9,-16,6 other=INT32[2,4]:10,6,-3,4,-8,12,7,-2"
NUMBERS = [f"self=INT32[2,4]:12,-7,5,-1,0,9,-16,6 other=INT64({number})" for number in (6, -6)]
TRUTHS = "self=BOOL[2,4]:1,0,0,1,1,0,1,0 other=BOOL[2,4]:1,1,0,0,1,1,0,0"


def calls(operator):
    """The calls of an operator on bits: on integers, with a number, and on BOOL."""
    return [
        *calls_of(f"{operator}Tensor", BITS, "INT32[2,4]"),
        *calls_of(f"{operator}Tensor", TRUTHS, "BOOL[2,4]"),
        *[call for number in NUMBERS for call in calls_of(f"{operator}Scalar", number, "INT32[2,4]")],
        *calls_of(f"{operator}Scalar", "self=BOOL[2,4]:1,0,0,1,1,0,1,0 other=BOOL(0)", "BOOL[2,4]"),
    ]


def bits(other):
    """A number or a tensor as integers."""
    return np.asarray(other).astype(np.int64)


# ops-math: aclnnBitwiseAndTensorOut&aclnnInplaceBitwiseAndTensorOut.md
@formula(
    "aclnnBitwiseAndTensorOut",
    "aclnnInplaceBitwiseAndTensorOut",
    calls=[
        f"aclnnBitwiseAndTensorOut {BITS} out=INT32[2,4]",
        f"aclnnBitwiseAndTensorOut {TRUTHS} out=BOOL[2,4]",
        "aclnnBitwiseAndTensorOut self=INT16[2]:6,5 other=INT64[2]:3,4 out=INT64[2]",
        f"aclnnInplaceBitwiseAndTensorOut {BITS}",
        f"aclnnInplaceBitwiseAndTensorOut {TRUTHS}",
        "aclnnInplaceBitwiseAndTensorOut self=INT8[2]:6,5 other=INT8[1]:3",
    ],
)
def bitwise_and_out(self, other):
    return self & other


@formula(
    "aclnnBitwiseAndTensor",
    "aclnnInplaceBitwiseAndTensor",
    "aclnnBitwiseAndScalar",
    "aclnnInplaceBitwiseAndScalar",
    calls=calls("BitwiseAnd"),
)
def bitwise_and(self, other):
    return self & bits(other)


@formula(
    "aclnnBitwiseOrTensor",
    "aclnnInplaceBitwiseOrTensor",
    "aclnnBitwiseOrScalar",
    "aclnnInplaceBitwiseOrScalar",
    calls=[
        *calls("BitwiseOr"),
        "aclnnInplaceBitwiseOrScalar selfRef=UINT16[2]:1,6 other=INT64(8)",
        "aclnnInplaceBitwiseOrTensor selfRef=INT32[2,2]:1,2,4,8 other=INT32[2]:1,16",
    ],
)
def bitwise_or(self, other):
    return self | bits(other)


@formula(
    "aclnnBitwiseXorTensor",
    "aclnnInplaceBitwiseXorTensor",
    "aclnnBitwiseXorScalar",
    "aclnnInplaceBitwiseXorScalar",
    calls=calls("BitwiseXor"),
)
def bitwise_xor(self, other):
    return self ^ bits(other)


# A tensor of BOOL, here one of zeros and ones only, is negated; another has each of its bits inverted.
@formula(
    "aclnnBitwiseNot",
    calls=[
        *calls_on("BitwiseNot", "12,-7,5,-1,0,9,-16,6", dtype="INT32", out="INT32"),
        *calls_on("BitwiseNot", "1,0,0,1,1,0,1,0", dtype="BOOL", out="BOOL"),
    ],
)
def bitwise_not(self):
    return 1 - self if set(self.flat) <= {0, 1} else -self - 1


@formula(
    "aclnnLeftShift",
    "aclnnLeftShifts",
    calls=[
        *calls_of("LeftShift", "self=INT32[2,4]:12,-7,5,-1,3,9,-16,6 other=INT32[2,4]:1,3,0,2,4,5,1,2", "INT32[2,4]"),
        *calls_of("LeftShifts", "self=INT32[2,4]:12,-7,5,-1,3,9,-16,6 other=INT64(2)", "INT32[2,4]"),
    ],
)
def left_shift(self, other):
    return self * 2 ** bits(other)


# Negative numbers keep their sign: the quotient is rounded down.
@formula(
    "aclnnRightShift",
    calls=calls_of(
        "RightShift", "self=INT32[2,4]:12,-7,5,-1,35,90,-16,66 other=INT32[2,4]:1,1,0,2,4,5,2,3", "INT32[2,4]"
    ),
)
def right_shift(self, other):
    return np.floor(self / 2**other)
