from __future__ import annotations

import functools

import numpy as np

from tests.aten_ops.formula_helpers.elementwise import calls_of, calls_on
from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formula_helpers.types import wrapped
from tests.aten_ops.formulas import formula

X = signed("2,3,2", 1)
SELF = "1,-2.5,3,-0.5,4.25,7,-6,2"
OTHER = "-2,1.5,3.25,-4,0.75,-5,8,0.5"
FLOATS = f"self=FLOAT[2,4]:{SELF} other=FLOAT[2,4]:{OTHER}"
ROW = f"self=FLOAT[2,4]:{SELF} other=FLOAT[4]:{OTHER}"
NUMBER = f"self=FLOAT[2,4]:{SELF} other=DOUBLE(-0.75)"
INTEGERS = "self=INT32[2,4]:1,-2,3,-5,4,7,-6,2 other=INT32[2,4]:-2,1,3,-4,6,-5,8,9"
FLAGS = "BOOL[2,4]:1,0,1,0,0,1,1,0"
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
        "aclnnInplaceAddV3 selfRef=INT64(2) other=INT32[2]:1,-4 alpha=INT64(3)",
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
        f"aclnnSub self={FLAGS} other=FLOAT16[4]:0.3,-1,2,0 alpha=FLOAT(1.1) out=FLOAT16[2,4]",
        f"aclnnSub self=INT16[4]:3,-4,0,5 other={FLAGS} alpha=INT64(2) out=INT16[2,4]",
        f"aclnnSubs self={FLAGS} other=INT64(3) alpha=INT64(2) out=INT64[2,4]",
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
    calls=[
        *calls_on("Neg", SELF),
        *calls_on("Neg", "1,-2,3,-5,0,7,-6,2", dtype="INT32", out="INT32"),
        "aclnnInplaceNeg selfRef=INT8[2]:-128,5",
    ],
)
def negative(self, outputs):
    [output] = outputs.values()
    return wrapped(-self, output)


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
        "aclnnMulNoNan x=FLOAT[3]:2,inf,nan y=FLOAT[3]:4,0,0 z=FLOAT[3]",
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


# ops-math: aclnnSum.md; aclnnSumV2 has no document of its own. FLOAT16 is summed in FLOAT.
@formula(
    "aclnnAddN",
    "aclnnSum",
    "aclnnSumV2",
    calls=[
        *[call for operator in ("AddN", "Sum", "SumV2") for call in calls_on_lists(operator)],
        "aclnnSum tensors={FLOAT16[2]:2048,1 FLOAT16[1]:1 FLOAT16[1]:1} out=FLOAT16[2]",
        "aclnnSumV2 tensors={FLOAT[2,2]:1,2,3,4 FLOAT[2]:10,20 FLOAT[2,1]:100,700} out=FLOAT[2,2]",
        "aclnnSumV2 tensors={FLOAT[0,2] FLOAT[2]} out=FLOAT[0,2]",
        "aclnnSum tensors={INT8[2]:100,1 INT8[1]:100} out=INT8[2]",
        "aclnnAddN tensors={INT64[2]:1,2 INT64[2]:10,20 INT64[2]:100,200} out=INT64[2]",
    ],
)
def add_n(tensors, outputs):
    return wrapped(sum(tensors), outputs["out"])


@formula(
    "aclnnMaxN",
    calls=[*calls_on_lists("MaxN"), "aclnnMaxN tensors={INT32[2]:1,5 INT32[2]:3,2 INT32[1]:2} out=INT32[2]"],
)
def max_n(tensors):
    return functools.reduce(np.maximum, tensors)


@formula(
    "aclnnMinN",
    calls=[*calls_on_lists("MinN"), "aclnnMinN tensors={INT32[2]:1,5 INT32[2]:3,2 INT32[1]:4} out=INT32[2]"],
)
def min_n(tensors):
    return functools.reduce(np.minimum, tensors)


# ops-math: aclnnScale.md. scale and bias are for the dimensions of x from axis on.
@formula(
    "aclnnScale",
    calls=[
        f"aclnnScale x={X} scale={scale} bias={bias} axis={axis} numAxes={count} scaleFromBlob={flag} y=FLOAT[2,3,2]"
        for scale, bias, axis, count, flag in (
            (signed("3,2", 2), "null", 1, -1, "true"),
            (signed("3", 2), signed("3", 3), -2, 1, "true"),
            (signed("2", 2), signed("2", 3), 0, 7, "false"),
            (signed("1", 2), "null", 0, 0, "true"),
        )
    ],
)
def scale(x, scale, bias, axis, _count, _from_blob):
    def placed(each):
        if each.shape == (1,):
            return each
        return each.reshape(each.shape + (1,) * (x.ndim - axis % x.ndim - each.ndim))

    return x * placed(scale) + (0 if bias is None else placed(bias))


# ops-math: aclnnBiasAdd.md. The channels are the last dimension, or the second one.
@formula(
    "aclnnBiasAdd",
    calls=[
        f"aclnnBiasAdd x={X} bias=FLOAT[2]:-1.5,0.625 dataFormatOptional={form} out=FLOAT[2,3,2]"
        for form in ('"NHWC"', "null")
    ]
    + [
        f'aclnnBiasAdd x={signed("1,3,2,2", 1)} bias={signed("3", 2)} dataFormatOptional="NCHW" out=FLOAT[1,3,2,2]',
        'aclnnBiasAdd x=INT32[1,2,2,2]:1,2,3,4,5,6,7,8 bias=INT32[2]:10,-20 dataFormatOptional="NCHW" '
        "out=INT32[1,2,2,2]",
    ],
)
def bias_add(x, bias, form):
    return x + (bias if form in (None, "NHWC", "NDHWC") else bias.reshape(-1, *(1,) * (x.ndim - 2)))


# ops-math: aclnnFusedMulAddN.md
@formula(
    "aclnnFusedMulAddN",
    calls=[
        f"aclnnFusedMulAddN x1={X} x2={signed('2,3,2', 2)} x3=FLOAT[1]:-1.75 y=FLOAT[2,3,2]",
        "aclnnFusedMulAddN x1=INT16[2]:200,2 x2=INT16[2]:1,-8 x3=INT16[1,1]:-3 y=INT16[2]",
        "aclnnFusedMulAddN x1=INT16[2]:20000,2 x2=INT16[2]:1,1 x3=INT16[1,1]:2 y=INT16[2]",
    ],
)
def fused_mul_add(x1, x2, x3, outputs):
    return wrapped(x1 * x3.item() + x2, outputs["y"])


# ops-math: aclnnAxpyV2.md
@formula(
    "aclnnAxpyV2",
    calls=[
        f"aclnnAxpyV2 self={X} other={signed('2,3,2', 2)} alpha=FLOAT[1]:-1.2 out=FLOAT[2,3,2]",
        "aclnnAxpyV2 self=INT32[2]:1,2 other=INT32[2]:3,-4 alpha=INT32[]:5 out=INT32[2]",
    ],
)
def axpy(x, y, alpha):
    return x + alpha.item() * y


# ops-math: experimental/math/add_mat_mat_elements/README.md, add_mat_mat_elements_plus/README.md
@formula(
    "aclnnAddMatMatElements",
    calls=[
        f"aclnnAddMatMatElements a={X} b={signed('2,3,2', 2)} c={signed('2,3,2', 3)} alpha=FLOAT(-0.75) "
        "beta=FLOAT(3.5) cOut=FLOAT[2,3,2]"
    ],
)
def add_mat_mat_elements(a, b, c, alpha, beta):
    return c * beta + alpha * a * b


@formula(
    "aclnnAddMatMatElementsPlus",
    calls=[
        f"aclnnAddMatMatElementsPlus c={signed('3', 1)} a={signed('2,1', 2)} b=FLOAT[1]:1.75 beta=FLOAT[1]:-3 "
        "alpha=FLOAT[1,1]:0.625 cOut=FLOAT[2,3]"
    ],
)
def add_mat_mat_elements_plus(c, a, b, beta, alpha):
    return add_mat_mat_elements(a, b, c, alpha.item(), beta.item())


# ops-math: aclnnMaskedScale.md
@formula(
    "aclnnMaskedScale",
    calls=[
        f"aclnnMaskedScale self={X} mask={mask} scale=-1.5 out=FLOAT[2,3,2]"
        for mask in ("INT8[2,3,2]:1,0,2,1,-1,1,0,1,1,3,1,1", signed("2,3,2", 4))
    ],
)
def masked_scale(x, mask, scale):
    return x * mask * scale


# ops-math: aclnnAssignSub.md
@formula(
    "aclnnAssignSub",
    calls=[
        f"aclnnAssignSub var={X} value={signed('2,3,2', 2)} varOut=FLOAT[2,3,2]",
        "aclnnAssignSub var=INT8[3]:5,-18,7 value=INT8[3]:3,1,70 varOut=INT8[3]",
        "aclnnAssignSub var=INT8[3]:5,-128,7 value=INT8[3]:3,1,7 varOut=INT8[3]",
    ],
)
def assign_sub(var, value, outputs):
    return wrapped(var - value, outputs["varOut"])
