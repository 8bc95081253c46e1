from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import wrapped
from tests.aten_ops.formulas import formula

A = "{FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,-4,3}"
B = "{FLOAT[2,2]:1.25,-0.625,-3,2 FLOAT[3]:0.625,1.75,-5}"
C = "{FLOAT[2,2]:0.5,-1.5,2.5,-0.25 FLOAT[3]:1.125,0.75,-2}"
POSITIVE = "{FLOAT[2,2]:2.5,0.75,0.5,1.5 FLOAT[3]:0.25,4,3}"
OUT = "out={FLOAT[2,2] FLOAT[3]}"
INTEGERS = "{INT32[3]:-7,2,5 INT32[2]:4,-3}"
OTHERS = "{INT32[3]:2,-5,3 INT32[2]:-4,6}"


RANKS = "{FLOAT[0] FLOAT[]:2.5 FLOAT[3]:0.5,0.0625,0.125}"
INPLACE = {"Sub": ("Scalar",), "Mul": ("List", "Scalar"), "Div": ("List",)}


def declare(name, function):
    """Declares the operation of two lists, of a list and a number, and of a list and a number for each tensor.

    The first version takes the number as a tensor (ops-nn: aclnnForeachAddScalar.md and the others).
    """
    of_lists, of_tensor, of_scalar = (f"aclnnForeach{name}{form}" for form in ("List", "Scalar", "ScalarV2"))
    of_numbers, inplace = (
        f"aclnnForeach{name}ScalarList",
        [f"aclnnForeach{name}{form}Inplace" for form in INPLACE.get(name, ())],
    )
    a = POSITIVE if name == "Pow" else A

    def each_tensor(first, second):
        number = second.item() if isinstance(second, np.ndarray) else second
        seconds = second if isinstance(second, list) else [number] * len(first)
        return [function(x, y) for x, y in zip(first, seconds, strict=True)]

    each_tensor.__module__ = __name__
    one, two = (0.125, 0.1875) if name in ("Maximum", "Minimum") else (-0.75, 1.5)
    calls = [
        f"{of_tensor} x={a} scalar=FLOAT[1]:{one} {OUT}",
        f"{of_tensor} x={RANKS} scalar=FLOAT[1]:{two} out={{FLOAT[0] FLOAT[] FLOAT[3]}}",
        f"{of_scalar} x={a} scalar=DOUBLE({one}) {OUT}",
        f"{of_numbers} x={a} scalars={{DOUBLE({one}) DOUBLE({two})}} {OUT}",
        *[f"{each} x1={a} x2={B}" if "List" in each else f"{each} x={a} scalar=FLOAT[1]:{one}" for each in inplace],
    ]
    if name != "Div":
        calls.append(f"{of_tensor} x={INTEGERS} scalar=INT32[1]:3 out={{INT32[3] INT32[2]}}")
    if name not in ("Add", "Sub"):
        inplace.append(of_lists)
        calls.append(f"{of_lists} x1={a} x2={B} {OUT}")
    formula(of_tensor, of_scalar, of_numbers, *inplace, calls=calls)(each_tensor)


declare("Add", lambda x, y: x + y)
declare("Sub", lambda x, y: x - y)
declare("Mul", lambda x, y: x * y)
declare("Div", lambda x, y: x / y)
declare("Pow", lambda x, y: x**y)
declare("Maximum", np.maximum)
declare("Minimum", np.minimum)


@formula(
    "aclnnForeachAddList",
    "aclnnForeachAddListInplace",
    "aclnnForeachAddListV2",
    calls=[
        f"aclnnForeachAddList x1={A} x2={B} alpha=FLOAT[1]:-1.5 {OUT}",
        f"aclnnForeachAddList x1={INTEGERS} x2={OTHERS} alpha=INT32[1]:-3 out={{INT32[3] INT32[2]}}",
        # alpha keeps the precision of FLOAT.
        "aclnnForeachAddList x1={BFLOAT16[2]:1,2} x2={BFLOAT16[2]:-1,-2} alpha=FLOAT[1]:1.0039 out={BFLOAT16[2]}",
        "aclnnForeachAddList x1={INT8[2]:1,100} x2={INT8[2]:2,20} alpha=INT32[1]:3 out={INT8[2]}",
        f"aclnnForeachAddListInplace x1={A} x2={B} alpha=FLOAT[]:-1.5",
        f"aclnnForeachAddListV2 x1={A} x2={B} alpha=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachAddListV2 x1={INTEGERS} x2={OTHERS} alpha=INT64(-3) out={{INT32[3] INT32[2]}}",
    ],
)
def add_list(first, second, alpha, outputs):
    [out] = outputs.values()
    number = np.asarray(alpha).item()
    return [wrapped(x + number * y, each) for x, y, each in zip(first, second, out, strict=True)]


@formula(
    "aclnnForeachSubList",
    "aclnnForeachSubListInplace",
    "aclnnForeachSubListV2",
    calls=[
        f"aclnnForeachSubList x1={A} x2={B} alpha=FLOAT[1]:-1.5 {OUT}",
        f"aclnnForeachSubList x1={INTEGERS} x2={OTHERS} alpha=INT32[1]:-3 out={{INT32[3] INT32[2]}}",
        # alpha keeps the precision of FLOAT.
        "aclnnForeachSubList x1={BFLOAT16[2]:1,2} x2={BFLOAT16[2]:1,2} alpha=FLOAT[1]:1.0039 out={BFLOAT16[2]}",
        f"aclnnForeachSubListInplace x1={A} x2={B} alpha=FLOAT[]:-1.5",
        f"aclnnForeachSubListV2 x1={A} x2={B} alpha=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachSubListV2 x1={INTEGERS} x2={OTHERS} alpha=INT64(-3) out={{INT32[3] INT32[2]}}",
    ],
)
def sub_list(first, second, alpha):
    return [x - np.asarray(alpha).item() * y for x, y in zip(first, second, strict=True)]


# A number for all, or for each triple of tensors (ops-nn: aclnnForeachAddcmulScalar.md, ...List.md, ...ScalarList.md).
@formula(
    *(f"aclnnForeachAddcmul{form}" for form in ("List", "Scalar", "ScalarList", "ScalarV2")),
    calls=[
        f"aclnnForeachAddcmulScalarV2 x1={A} x2={B} x3={C} scalar=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachAddcmulScalar x1={A} x2={B} x3={C} scalar=FLOAT[1]:-1.5 {OUT}",
        f"aclnnForeachAddcmulList x1={A} x2={B} x3={C} scalars=FLOAT[2]:-1.5,0.75 {OUT}",
        f"aclnnForeachAddcmulScalarList x1={A} x2={B} x3={C} scalars=FLOAT[2]:-1.5,0.75 {OUT}",
    ],
)
def addcmul(first, second, third, scale):
    scales = np.broadcast_to(scale, len(first))
    return [x + s * y * z for x, y, z, s in zip(first, second, third, scales, strict=True)]


# A number for all, or for each triple of tensors (ops-nn: aclnnForeachAddcdivScalar.md, ...List.md, ...ScalarList.md).
@formula(
    *(f"aclnnForeachAddcdiv{form}" for form in ("List", "Scalar", "ScalarList", "ScalarV2")),
    calls=[
        f"aclnnForeachAddcdivScalarV2 x1={A} x2={B} x3={C} scalar=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachAddcdivScalar x1={A} x2={B} x3={C} scalar=FLOAT[1]:-1.5 {OUT}",
        f"aclnnForeachAddcdivList x1={A} x2={B} x3={C} scalars=FLOAT[2]:-1.5,0.75 {OUT}",
        f"aclnnForeachAddcdivScalarList x1={A} x2={B} x3={C} scalars=FLOAT[2]:-1.5,0.75 {OUT}",
    ],
)
def addcdiv(first, second, third, scale):
    scales = np.broadcast_to(scale, len(first))
    return [x + s * y / z for x, y, z, s in zip(first, second, third, scales, strict=True)]


@formula(
    "aclnnForeachLerpList",
    "aclnnForeachLerpScalar",
    calls=[
        f"aclnnForeachLerpList x1={A} x2={B} weight={C} {OUT}",
        f"aclnnForeachLerpScalar x1={A} x2={B} weight=DOUBLE(0.375) {OUT}",
        f"aclnnForeachLerpScalar x1={A} x2={B} weight=DOUBLE(-1.75) {OUT}",
    ],
)
def lerp(first, second, weight):
    weights = weight if isinstance(weight, list) else [weight] * len(first)
    return [x + w * (y - x) for x, y, w in zip(first, second, weights, strict=True)]


@formula("aclnnForeachPowScalarAndTensor", calls=[f"aclnnForeachPowScalarAndTensor scalar=DOUBLE(1.75) x={A} {OUT}"])
def pow_of_scalar(scalar, exponents):
    return [scalar**x for x in exponents]
