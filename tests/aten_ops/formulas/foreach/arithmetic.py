from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

A = "{FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,-4,3}"
B = "{FLOAT[2,2]:1.25,-0.625,-3,2 FLOAT[3]:0.625,1.75,-5}"
C = "{FLOAT[2,2]:0.5,-1.5,2.5,-0.25 FLOAT[3]:1.125,0.75,-2}"
POSITIVE = "{FLOAT[2,2]:2.5,0.75,0.5,1.5 FLOAT[3]:0.25,4,3}"
OUT = "out={FLOAT[2,2] FLOAT[3]}"
INTEGERS = "{INT32[3]:-7,2,5 INT32[2]:4,-3}"
OTHERS = "{INT32[3]:2,-5,3 INT32[2]:-4,6}"


def declare(name, function):
    """Declares the operation of two lists, of a list and a number, and of a list and a number for each tensor."""
    of_lists, of_scalar = f"aclnnForeach{name}List", f"aclnnForeach{name}ScalarV2"
    of_numbers = f"aclnnForeach{name}ScalarList"
    a = POSITIVE if name == "Pow" else A

    def each_tensor(first, second):
        seconds = second if isinstance(second, list) else [second] * len(first)
        return [function(x, y) for x, y in zip(first, seconds, strict=True)]

    each_tensor.__module__ = __name__
    one, two = (0.125, 0.1875) if name in ("Maximum", "Minimum") else (-0.75, 1.5)
    calls = [
        f"{of_scalar} x={a} scalar=DOUBLE({one}) {OUT}",
        f"{of_numbers} x={a} scalars={{DOUBLE({one}) DOUBLE({two})}} {OUT}",
    ]
    if name in ("Add", "Sub"):
        formula(of_scalar, of_numbers, calls=calls)(each_tensor)
    else:
        formula(of_lists, of_scalar, of_numbers, calls=[f"{of_lists} x1={a} x2={B} {OUT}", *calls])(each_tensor)


declare("Add", lambda x, y: x + y)
declare("Sub", lambda x, y: x - y)
declare("Mul", lambda x, y: x * y)
declare("Div", lambda x, y: x / y)
declare("Pow", lambda x, y: x**y)
declare("Maximum", np.maximum)
declare("Minimum", np.minimum)


@formula(
    "aclnnForeachAddListV2",
    calls=[
        f"aclnnForeachAddListV2 x1={A} x2={B} alpha=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachAddListV2 x1={INTEGERS} x2={OTHERS} alpha=INT64(-3) out={{INT32[3] INT32[2]}}",
    ],
)
def add_list(first, second, alpha):
    return [x + alpha * y for x, y in zip(first, second, strict=True)]


@formula(
    "aclnnForeachSubListV2",
    calls=[
        f"aclnnForeachSubListV2 x1={A} x2={B} alpha=DOUBLE(-1.5) {OUT}",
        f"aclnnForeachSubListV2 x1={INTEGERS} x2={OTHERS} alpha=INT64(-3) out={{INT32[3] INT32[2]}}",
    ],
)
def sub_list(first, second, alpha):
    return [x - alpha * y for x, y in zip(first, second, strict=True)]


@formula(
    "aclnnForeachAddcmulScalarV2", calls=[f"aclnnForeachAddcmulScalarV2 x1={A} x2={B} x3={C} scalar=DOUBLE(-1.5) {OUT}"]
)
def addcmul(first, second, third, scalar):
    return [x + scalar * y * z for x, y, z in zip(first, second, third, strict=True)]


@formula(
    "aclnnForeachAddcdivScalarV2", calls=[f"aclnnForeachAddcdivScalarV2 x1={A} x2={B} x3={C} scalar=DOUBLE(-1.5) {OUT}"]
)
def addcdiv(first, second, third, scalar):
    return [x + scalar * y / z for x, y, z in zip(first, second, third, strict=True)]


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
