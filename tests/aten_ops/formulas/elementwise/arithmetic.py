from __future__ import annotations

import functools

import numpy as np

from tests.aten_ops.formulas import formula
from tests.aten_ops.formulas_helpers_elementwise import calls_of, calls_on

SELF = "1,-2.5,3,-0.5,4.25,7,-6,2"
OTHER = "-2,1.5,3.25,-4,0.75,-5,8,0.5"
FLOATS = f"self=FLOAT[2,4]:{SELF} other=FLOAT[2,4]:{OTHER}"
ROW = f"self=FLOAT[2,4]:{SELF} other=FLOAT[4]:{OTHER}"
NUMBER = f"self=FLOAT[2,4]:{SELF} other=DOUBLE(-0.75)"
INTEGERS = "self=INT32[2,4]:1,-2,3,-5,4,7,-6,2 other=INT32[2,4]:-2,1,3,-4,6,-5,8,9"
INTEGER = "self=INT32[2,4]:1,-2,3,-5,4,7,-6,2 other=INT64(-3)"


@formula(
    "aclnnAdd",
    "aclnnInplaceAdd",
    "aclnnAdds",
    "aclnnInplaceAdds",
    "aclnnAddV3",
    "aclnnInplaceAddV3",
    calls=[
        *calls_of("Add", f"{FLOATS} alpha=FLOAT(-1.5)"),
        *calls_of("Add", f"{ROW} alpha=INT64(2)"),
        *calls_of("Add", f"{INTEGERS} alpha=INT64(-3)", "INT32[2,4]"),
        *calls_of("Adds", f"{NUMBER} alpha=DOUBLE(1.5)"),
        *calls_of("Adds", f"{INTEGER} alpha=INT64(2)", "INT32[2,4]"),
        f"aclnnAddV3 self=FLOAT(-0.75) other=FLOAT[2,4]:{OTHER} alpha=DOUBLE(1.5) out=FLOAT[2,4]",
        "aclnnAddV3 self=INT64(-7) other=INT32[2,4]:1,-2,3,-5,4,7,-6,2 alpha=INT64(-2) out=INT32[2,4]",
        f"aclnnInplaceAddV3 selfRef=FLOAT(-0.75) other=FLOAT[2,4]:{OTHER} alpha=DOUBLE(1.5)",
    ],
)
def add(self, other, alpha):
    return self + alpha * other


@formula(
    "aclnnAddRelu",
    "aclnnInplaceAddRelu",
    calls=[
        *calls_of("AddRelu", f"{FLOATS} alpha=FLOAT(1.5)"),
        *calls_of("AddRelu", f"{FLOATS} alpha=INT64(-2)"),
        *calls_of("AddRelu", f"{INTEGERS} alpha=INT64(-2)", "INT32[2,4]"),
    ],
)
def add_relu(self, other, alpha):
    return np.maximum(self + alpha * other, 0)


@formula(
    "aclnnSub",
    "aclnnInplaceSub",
    "aclnnSubs",
    "aclnnInplaceSubs",
    calls=[
        *calls_of("Sub", f"{FLOATS} alpha=FLOAT(-1.5)"),
        *calls_of("Sub", f"{ROW} alpha=INT64(2)"),
        *calls_of("Sub", f"{INTEGERS} alpha=INT64(-3)", "INT32[2,4]"),
        *calls_of("Subs", f"{NUMBER} alpha=DOUBLE(1.5)"),
        *calls_of("Subs", f"{INTEGER} alpha=INT64(2)", "INT32[2,4]"),
    ],
)
def sub(self, other, alpha):
    return self - alpha * other


@formula(
    "aclnnRsub",
    "aclnnRsubs",
    calls=[
        *calls_of("Rsub", f"{FLOATS} alpha=FLOAT(-1.5)"),
        *calls_of("Rsub", f"{INTEGERS} alpha=INT64(-3)", "INT32[2,4]"),
        *calls_of("Rsubs", f"{NUMBER} alpha=DOUBLE(1.5)"),
        *calls_of("Rsubs", f"{INTEGER} alpha=INT64(2)", "INT32[2,4]"),
    ],
)
def rsub(self, other, alpha):
    return other - alpha * self


@formula(
    "aclnnMul",
    "aclnnInplaceMul",
    "aclnnMuls",
    "aclnnInplaceMuls",
    calls=[
        *calls_of("Mul", FLOATS),
        *calls_of("Mul", ROW),
        *calls_of("Mul", INTEGERS, "INT32[2,4]"),
        *calls_of("Muls", NUMBER),
        *calls_of("Muls", INTEGER, "INT32[2,4]"),
    ],
)
def mul(self, other):
    return self * other


@formula(
    "aclnnAbs",
    calls=[
        *calls_on("Abs", SELF, "-inf,0,-0.0,1,nan,inf,-3,2"),
        *calls_on("Abs", "1,-2,3,-5,0,7,-6,2", dtype="INT32", out="INT32"),
    ],
)
def absolute(self):
    return np.where(self < 0, -self, self)


@formula(
    "aclnnNeg",
    "aclnnInplaceNeg",
    calls=[*calls_on("Neg", SELF), *calls_on("Neg", "1,-2,3,-5,0,7,-6,2", dtype="INT32", out="INT32")],
)
def negative(self):
    return -self


PRODUCT = f"self=FLOAT[2,4]:{SELF} tensor1=FLOAT[2,4]:{OTHER} tensor2=FLOAT[4]:3,-0.5,1.25,-2 value=FLOAT(-1.5)"
INTEGER_PRODUCT = "self=INT32[4]:1,-2,3,-5 tensor1=INT32[4]:-2,1,3,-4 tensor2=INT32[4]:3,5,-4,-1 value=INT64(-3)"


@formula(
    "aclnnAddcmul",
    "aclnnInplaceAddcmul",
    calls=[*calls_of("Addcmul", PRODUCT), *calls_of("Addcmul", INTEGER_PRODUCT, "INT32[4]")],
)
def addcmul(self, tensor1, tensor2, value):
    return self + value * tensor1 * tensor2


@formula("aclnnAddcdiv", "aclnnInplaceAddcdiv", calls=calls_of("Addcdiv", PRODUCT))
def addcdiv(self, tensor1, tensor2, value):
    return self + value * tensor1 / tensor2


ENDS = f"self=FLOAT[2,4]:{SELF} end=FLOAT[2,4]:{OTHER}"


@formula(
    "aclnnLerp",
    "aclnnInplaceLerp",
    "aclnnLerps",
    "aclnnInplaceLerps",
    calls=[
        *calls_of("Lerp", f"{ENDS} weight=FLOAT[4]:-0.5,0.25,0.5,1.5"),
        *calls_of("Lerps", f"{ENDS} weight=DOUBLE(0.75)"),
        *calls_of("Lerps", f"{ENDS} weight=DOUBLE(-0.25)"),
    ],
)
def lerp(self, end, weight):
    return self + weight * (end - self)


# Zeros of y win over all x (ops-math: MulNoNan/README.md).
@formula(
    "aclnnMulNoNan",
    calls=[
        f"aclnnMulNoNan x=FLOAT[2,4]:{SELF} y=FLOAT[2,4]:{OTHER} z=FLOAT[2,4]",
        "aclnnMulNoNan x=FLOAT[2,4]:inf,-2.5,nan,-0.5,4.25,nan,-6,2 y=FLOAT[4]:0,1.5,0,-4 z=FLOAT[2,4]",
    ],
)
def mul_no_nan(x, y):
    return np.where(y == 0, 0, x * y)


LISTS = {
    "FLOAT": "{FLOAT[2,3]:-2.5,0.75,-0.5,1.5,3,-4 FLOAT[2,3]:0.625,-1.25,7,0.25,-5,9.5 FLOAT[2,3]:-8,2,0.125,6,11,-7}",
    "INT32": "{INT32[2,3]:-2,7,-5,1,3,-4 INT32[2,3]:6,-1,8,2,-5,9 INT32[2,3]:-8,2,1,6,11,-7}",
}


def calls_on_lists(operator):
    return [f"aclnn{operator} tensors={tensors} out={dtype}[2,3]" for dtype, tensors in LISTS.items()]


@formula("aclnnAddN", calls=calls_on_lists("AddN"))
def add_n(tensors):
    return sum(tensors)


@formula("aclnnMaxN", calls=calls_on_lists("MaxN"))
def max_n(tensors):
    return functools.reduce(np.maximum, tensors)


@formula("aclnnMinN", calls=calls_on_lists("MinN"))
def min_n(tensors):
    return functools.reduce(np.minimum, tensors)
