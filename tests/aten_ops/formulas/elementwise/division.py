from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formula_helpers.types import saturated, wrapped
from tests.aten_ops.formulas import formula

FLOATS = "self=FLOAT[2,4]:7,-7,9.5,-10,5.5,-5.5,1.5,-41 other=FLOAT[2,4]:4,4,-4,-4,0.75,3,5,3"
NUMBERS = [f"self=FLOAT[2,4]:7,-7,9.5,-10,5.5,-5.5,1.5,-41 other=DOUBLE({number})" for number in (2.5, -4)]
INTEGERS = "self=INT32[2,4]:7,-7,9,-10,5,-5,2,-41 other=INT32[2,4]:4,4,-4,-4,2,3,5,3"
INTEGER = "self=INT32[2,4]:7,-7,9,-10,5,-5,2,-41 other=INT64(-4)"
ZEROS = "self=FLOAT[2,2]:1,-2,0,3 other=FLOAT[2,2]:0,0,0,2"


@formula(
    "aclnnDiv",
    "aclnnInplaceDiv",
    "aclnnDivs",
    "aclnnInplaceDivs",
    calls=[
        *calls_of("Div", FLOATS),
        *calls_of("Div", ZEROS, "FLOAT[2,2]"),
        f"aclnnDiv {INTEGERS} out=FLOAT[2,4]",
        *[call for number in NUMBERS for call in calls_of("Divs", number)],
        f"aclnnDivs {INTEGER} out=FLOAT[2,4]",
    ],
)
def divide(self, other):
    return self / other


@formula(
    "aclnnFloorDivide",
    "aclnnInplaceFloorDivide",
    "aclnnFloorDivides",
    "aclnnInplaceFloorDivides",
    calls=[
        *calls_of("FloorDivide", FLOATS),
        *calls_of("FloorDivide", INTEGERS, "INT32[2,4]"),
        *[call for number in NUMBERS for call in calls_of("FloorDivides", number)],
        *calls_of("FloorDivides", INTEGER, "INT32[2,4]"),
    ],
)
def floor_divide(self, other):
    return np.floor(self / other)


ROUNDED = [lambda x: x, np.trunc, np.floor]


@formula(
    "aclnnDivMod",
    "aclnnInplaceDivMod",
    "aclnnDivMods",
    "aclnnInplaceDivMods",
    calls=[
        *[call for mode in (0, 1, 2) for call in calls_of("DivMod", f"{FLOATS} mode={mode}")],
        *[call for mode in (1, 2) for call in calls_of("DivMod", f"{INTEGERS} mode={mode}", "INT32[2,4]")],
        f"aclnnDivMod {INTEGERS} mode=0 out=FLOAT[2,4]",
        *[call for x in NUMBERS for mode in (0, 1, 2) for call in calls_of("DivMods", f"{x} mode={mode}")],
        *[call for mode in (1, 2) for call in calls_of("DivMods", f"{INTEGER} mode={mode}", "INT32[2,4]")],
        "aclnnDivMod self=INT32[3]:-2147483648,5,-7 other=INT32[3]:-1,-1,2 mode=1 out=INT32[3]",
        "aclnnDivMods self=INT64[2]:-9223372036854775808,5 other=INT64(-1) mode=1 out=INT64[2]",
        "aclnnInplaceDivMod selfRef=UINT8[3]:10,255,7 other=UINT8[3]:255,255,2 mode=1",
    ],
)
def divide_and_round(self, other, mode, outputs):
    [output] = outputs.values()
    return wrapped(ROUNDED[mode](self / other), output)


# ops-math: aclnnDivV3.md, whose quotients of integers are rounded in mode 0, too (towards 0), and saturate.
@formula(
    "aclnnDivV3",
    calls=[
        *[f"aclnnDivV3 {FLOATS} mode={mode} out=FLOAT[2,4]" for mode in (0, 1, 2)],
        *[f"aclnnDivV3 {INTEGERS} mode={mode} out=INT32[2,4]" for mode in (1, 2)],
        "aclnnDivV3 self=INT16[2]:7,-7 other=INT16[2]:2,2 mode=0 out=INT16[2]",
        "aclnnDivV3 self=INT32[4]:7,-7,-2147483648,5 other=INT32[4]:2,2,-1,0 mode=2 out=INT32[4]",
    ],
)
def divide_v3(self, other, mode, outputs):
    is_whole = self.dtype == other.dtype == np.int64
    return saturated(ROUNDED[mode or int(is_whole)](self / other), outputs["out"])


# The sign is that of self.
@formula(
    "aclnnFmodTensor",
    "aclnnInplaceFmodTensor",
    "aclnnFmodScalar",
    "aclnnInplaceFmodScalar",
    calls=[
        *calls_of("FmodTensor", FLOATS),
        *calls_of("FmodTensor", ZEROS, "FLOAT[2,2]"),
        *calls_of("FmodTensor", INTEGERS, "INT32[2,4]"),
        *[call for number in NUMBERS for call in calls_of("FmodScalar", number)],
        *calls_of("FmodScalar", INTEGER, "INT32[2,4]"),
    ],
)
def remainder(self, other):
    return self - other * np.trunc(self / other)


def pair(names, values):
    first, second = names.split()
    return f"{first}={values.removeprefix('self=').replace('other', second)}"


# ops-math: aclnnFloorDiv.md. Integers saturate.
@formula(
    "aclnnFloorDiv",
    calls=[
        f"aclnnFloorDiv {pair('self_x self_y', values)} out={out}"
        for values, out in ((FLOATS, "FLOAT[2,4]"), (ZEROS, "FLOAT[2,2]"), (INTEGERS, "INT32[2,4]"))
    ]
    + [
        "aclnnFloorDiv self_x=INT8[4]:7,-7,3,-128 self_y=INT8[4]:2,2,-2,-1 out=INT8[4]",
        "aclnnFloorDiv self_x=UINT8[3]:7,7,0 self_y=UINT8[3]:2,0,0 out=UINT8[3]",
    ],
)
def floor_div(x, y, outputs):
    return saturated(np.floor(x / y), outputs["out"])


# ops-math: aclnnTruncateDiv.md, aclnnTruncateMod.md. Integers wrap around, and those divided by 0 are 0.
@formula(
    "aclnnTruncateDiv",
    calls=[
        f"aclnnTruncateDiv {pair('x1 x2', values)} out={out}"
        for values, out in ((FLOATS, "FLOAT[2,4]"), (ZEROS, "FLOAT[2,2]"), (INTEGERS, "INT32[2,4]"))
    ]
    + [
        "aclnnTruncateDiv x1=INT32[3]:7,-7,-2147483648 x2=FLOAT[3]:2,2,1 out=FLOAT[3]",
        "aclnnTruncateDiv x1=INT64[0] x2=INT64[0] out=INT64[0]",
        "aclnnTruncateDiv x1=INT32[3]:-2147483648,-7,7 x2=INT32[3]:-1,2,0 out=INT32[3]",
        "aclnnTruncateDiv x1=INT64[4]:7,-7,-9223372036854775808,4 x2=INT64[4]:2,2,-1,0 out=INT64[4]",
        "aclnnTruncateDiv x1=UINT8[3]:10,255,7 x2=UINT8[3]:255,255,0 out=UINT8[3]",
    ],
)
def truncate_div(x, y, outputs):
    quotients = np.trunc(x / y)
    return wrapped(np.where(y == 0, 0, quotients), outputs["out"]) if x.dtype == y.dtype == np.int64 else quotients


@formula(
    "aclnnTruncateMod",
    calls=[
        f"aclnnTruncateMod {pair('x1 x2', values)} out={out}"
        for values, out in ((FLOATS, "FLOAT[2,4]"), (INTEGERS, "INT32[2,4]"))
    ]
    + ["aclnnTruncateMod x1=INT32[4]:7,-7,-2147483648,5 x2=INT32[4]:2,2,-1,0 out=INT32[4]"],
)
def truncate_mod(x, y):
    return np.where(y == 0, 0, remainder(x, y)) if x.dtype == y.dtype == np.int64 else remainder(x, y)


# ops-math: aclnnRealDiv.md. Integers are truncated, and saturate.
@formula(
    "aclnnRealDiv",
    calls=[
        f"aclnnRealDiv {FLOATS} out=FLOAT[2,4]",
        f"aclnnRealDiv {ZEROS} out=FLOAT[2,2]",
        f"aclnnRealDiv {INTEGERS} out=INT32[2,4]",
        "aclnnRealDiv self=BOOL[2]:1,0 other=BOOL[2]:1,1 out=FLOAT[2]",
        "aclnnRealDiv self=INT32[3]:7,-7,1 other=INT32[3]:2,2,0 out=INT32[3]",
    ],
)
def real_div(x, y, outputs):
    return saturated(np.trunc(x / y) if x.dtype == np.int64 else x / y, outputs["out"])


@formula(
    "aclnnGcd",
    calls=calls_of("Gcd", "self=INT32[8]:12,-18,7,0,-20,9,0,-35 other=INT32[8]:8,27,-5,6,-50,0,0,14", "INT32[8]"),
)
def gcd(self, other):
    return np.gcd(self, other)


@formula(
    "aclnnReciprocal",
    "aclnnInplaceReciprocal",
    calls=calls_on("Reciprocal", "1,-2.5,3,-0.5,4.25,7,-6,0.125", "3,0,inf,-7,-inf,9,nan,-1.5"),
)
def reciprocal(self):
    return 1 / self


# The sign is that of other (ops-math: aclnnRemainderTensorScalar&aclnnInplaceRemainderTensorScalar.md).
@formula(
    *("aclnnRemainderTensorScalar", "aclnnInplaceRemainderTensorScalar", "aclnnRemainderScalarTensor"),
    calls=[
        *[call for number in NUMBERS for call in calls_of("RemainderTensorScalar", number)],
        *calls_of("RemainderTensorScalar", INTEGER, "INT32[2,4]"),
        "aclnnRemainderScalarTensor self=DOUBLE(-41.5) other=FLOAT[2,4]:4,-4,2.25,-7,0.75,-3,50,-60 out=FLOAT[2,4]",
        "aclnnRemainderScalarTensor self=INT64(41) other=INT32[2,4]:4,-4,11,-7,9,-15,50,-60 out=INT32[2,4]",
    ],
)
def remainder_of_floor(self, other):
    return self - other * np.floor(self / other)


# ops-math: aclnnRemainderTensorTensor&aclnnInplaceRemainderTensorTensor.md. An integer's remainder by 0 is the integer.
@formula(
    "aclnnRemainderTensorTensor",
    "aclnnInplaceRemainderTensorTensor",
    calls=[
        f"aclnn{name}RemainderTensorTensor {self}={dtype}[2,4]:7,-7,5,-5,9,-9,4,6 "
        f"other={dtype}[{shape}]:3,-4,2,-2,{last}{out.format(dtype)}"
        for name, self, out in (("", "self", " out={}[2,4]"), ("Inplace", "selfRef", ""))
        for dtype, last in (("FLOAT", "-2.5,4,8,-5"), ("INT32", "0,4,-5,0"))
        for shape in ("2,4", "1,4")
    ],
)
def remainder_of_tensors(self, other):
    return np.where(other == 0, self if other.dtype == np.int64 else np.nan, np.mod(self, other))
