"""From the documents of ops-math that have the functions' names, such as aclnnCeil.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formulas import formula

HALVES = "-2.5,-1.25,-0.5,0.75,1.5,2.5,3.25,-4"
FRACTIONS = "-2.75,-1.25,6.5,0.75,1.625,2.875,3.0625,-4.375"
INTEGERS = "-2,7,3,-1,5,-8,4,6"


def calls(operator):
    """The calls of a rounding."""
    return [
        *calls_on(operator, HALVES, FRACTIONS, "5,-inf,inf,nan,8.5,-7.5,0.25,-0.75"),
        *calls_on(operator, INTEGERS, dtype="INT32", out="INT32"),
    ]


@formula("aclnnCeil", "aclnnInplaceCeil", calls=calls("Ceil"))
def ceil(self):
    return np.ceil(self)


@formula("aclnnFloor", "aclnnInplaceFloor", calls=calls("Floor"))
def floor(self):
    return np.floor(self)


@formula(
    "aclnnTrunc",
    "aclnnInplaceTrunc",
    calls=[*calls("Trunc"), "aclnnInplaceTrunc selfRef=FLOAT[3]:-1.7,0.9,2.5"],
)
def trunc(self):
    return np.trunc(self)


@formula(
    "aclnnFrac",
    "aclnnInplaceFrac",
    calls=[*calls_on("Frac", FRACTIONS), *calls_on("Frac", INTEGERS, dtype="INT32", out="INT32")],
)
def frac(self):
    return self - np.trunc(self)


# Halves are rounded to even.
@formula(
    "aclnnRound",
    "aclnnInplaceRound",
    calls=[*calls("Round"), "aclnnInplaceRound selfRef=FLOAT[4]:0.5,1.5,-2.5,2.6"],
)
def round_to_integer(self):
    return np.rint(self)


@formula(
    "aclnnRoundDecimals",
    "aclnnInplaceRoundDecimals",
    calls=[
        *calls_of("RoundDecimals", "self=FLOAT[2,4]:0.125,-0.375,1.234,-5.678,3.14159,2.5,-7.77,9.996 decimals=2"),
        *calls_of("RoundDecimals", "self=FLOAT[2,4]:15,25,-15,-26.5,123.4,-87,44,1005 decimals=-1"),
        *calls_of("RoundDecimals", f"self=FLOAT[2,4]:{HALVES} decimals=0"),
        *calls_of("RoundDecimals", f"self=INT32[2,4]:{INTEGERS} decimals=1", "INT32[2,4]"),
    ],
)
def round_to_decimals(self, decimals):
    return np.rint(self * 10.0**decimals) / 10.0**decimals


def clamped(self, least, most):
    """First at least the one, then at most the other; a null is no limit."""
    result = self if least is None else np.where(self < least, least, self)
    return result if most is None else np.where(result > most, most, result)


# Where the least is above the most, CANN's kernel and PyTorch give the most; the document's formula gives the least.
CLAMPED = "-3,0.5,2,-1.25,7,1.5,-0.75,4"


@formula(
    "aclnnClamp",
    "aclnnClampTensor",
    calls=[
        *[
            call
            for limits in ("null DOUBLE(1.25)", "DOUBLE(-0.5) null", "DOUBLE(-1.25) DOUBLE(2.5)", "DOUBLE(3) DOUBLE(1)")
            for least, most in [limits.split()]
            for call in calls_of("Clamp", f"self=FLOAT[2,4]:{CLAMPED} clipValueMin={least} clipValueMax={most}")
        ],
        *calls_of(
            "Clamp", f"self=INT32[2,4]:{INTEGERS} clipValueMin=INT64(-1) clipValueMax=INT64(4)", out="INT32[2,4]"
        ),
        *[
            call
            for limits in (
                "null FLOAT[2,4]:1,0.25,3,-2,5,2,-1,6",
                "FLOAT[4]:-1,1,3,-2 null",
                "FLOAT[4]:-1,0.25,1,-1.5 FLOAT[2,4]:1,0.75,0.5,-2,5,2,-1.5,3",
            )
            for least, most in [limits.split()]
            for call in calls_of("ClampTensor", f"self=FLOAT[2,4]:{CLAMPED} clipValueMin={least} clipValueMax={most}")
        ],
    ],
)
def clamp(self, least, most):
    return clamped(self, least, most)


PAIRS = f"self=FLOAT[2,4]:{CLAMPED} other=FLOAT[2,4]:1,0.25,3,-2,5,2,-1,6"
INTEGER_PAIRS = f"self=INT32[2,4]:{INTEGERS} other=INT32[2,4]:-3,8,1,2,-4,-5,9,0"


@formula(
    "aclnnClampMin",
    "aclnnClampMinTensor",
    "aclnnInplaceClampMinTensor",
    calls=[
        *calls_of("ClampMin", f"self=FLOAT[2,4]:{CLAMPED} other=DOUBLE(-0.75)"),
        *calls_of("ClampMin", f"self=INT32[2,4]:{INTEGERS} other=INT64(-1)", "INT32[2,4]"),
        *calls_of("ClampMinTensor", PAIRS),
        *calls_of("ClampMinTensor", INTEGER_PAIRS, "INT32[2,4]"),
    ],
)
def clamp_min(self, other):
    return clamped(self, other, None)


@formula(
    "aclnnClampMax",
    "aclnnInplaceClampMax",
    "aclnnClampMaxTensor",
    "aclnnInplaceClampMaxTensor",
    calls=[
        *calls_of("ClampMax", f"self=FLOAT[2,4]:{CLAMPED} other=DOUBLE(1.5)"),
        *calls_of("ClampMax", f"self=INT32[2,4]:{INTEGERS} other=INT64(4)", "INT32[2,4]"),
        *calls_of("ClampMaxTensor", PAIRS),
        *calls_of("ClampMaxTensor", INTEGER_PAIRS, "INT32[2,4]"),
    ],
)
def clamp_max(self, other):
    return clamped(self, None, other)


NANS = "self=FLOAT[2,4]:nan,1,-inf,2,3,nan,inf,-4 other=FLOAT[2,4]:1,nan,2,inf,-inf,nan,-5,0.5"


@formula(
    "aclnnMaximum",
    calls=[
        *calls_of("Maximum", PAIRS),
        *calls_of("Maximum", NANS),
        *calls_of("Maximum", INTEGER_PAIRS, "INT32[2,4]"),
    ],
)
def maximum(self, other):
    return np.where(np.isnan(self) | np.isnan(other), np.nan, np.where(self > other, self, other))


@formula(
    "aclnnMinimum",
    calls=[
        *calls_of("Minimum", PAIRS),
        *calls_of("Minimum", NANS),
        *calls_of("Minimum", INTEGER_PAIRS, "INT32[2,4]"),
    ],
)
def minimum(self, other):
    return np.where(np.isnan(self) | np.isnan(other), np.nan, np.where(self < other, self, other))


@formula(
    "aclnnNanToNum",
    "aclnnInplaceNanToNum",
    calls=calls_of("NanToNum", "self=FLOAT[2,4]:nan,1.5,-inf,-2,inf,0.25,nan,-inf nan=0.5 posinf=8 neginf=-9"),
)
def nan_to_num(self, nan, posinf, neginf):
    result = np.where(np.isnan(self), nan, self)
    return np.where(self == np.inf, posinf, np.where(self == -np.inf, neginf, result))
