from __future__ import annotations

import math

import numpy as np

from tests.aten_ops.formula_helpers.functions import erf, sigmoid
from tests.aten_ops.formula_helpers.types import away_from_zero
from tests.aten_ops.formulas import formula

VALUES = "{FLOAT[2,2]:-2.5,0.75,-0.5,1.5 FLOAT[3]:0.25,-3.75,3}"
FRACTIONS = "{FLOAT[2,2]:-0.875,0.75,-0.5,0.125 FLOAT[3]:0.25,-0.375,0.625}"
POSITIVE = "{FLOAT[2,2]:2.5,0.75,0.5,1.5 FLOAT[3]:0.25,4,3}"
OUT = "out={FLOAT[2,2] FLOAT[3]}"
INTEGERS = "INT32[5]:-3,2,0,5,-1"


# ops-nn: aclnnForeachACosInplace.md, aclnnForeachLogInplace.md
INPLACE = {"Acos": "ACos", "Log": "Log"}


def declare(name, function, values=VALUES, integers=False):
    """Declares the function of every tensor of a list."""

    def each_tensor(tensors):
        return [function(x) for x in tensors]

    each_tensor.__module__ = __name__
    calls = [f"aclnnForeach{name} x={values} {OUT}"]
    if integers:
        calls.append(f"aclnnForeach{name} x={{{INTEGERS}}} out={{INT32[5]}}")
    inplace = [f"aclnnForeach{INPLACE[name]}Inplace"] if name in INPLACE else []
    calls += [f"{each} x={values}" for each in inplace]
    formula(f"aclnnForeach{name}", *inplace, calls=calls)(each_tensor)


declare("Abs", np.abs, integers=True)
declare("Acos", np.arccos, FRACTIONS)
declare("Asin", np.arcsin, FRACTIONS)
declare("Atan", np.arctan)
declare("Copy", lambda x: x, integers=True)
declare("Cos", np.cos)
declare("Cosh", np.cosh)
declare("Erf", erf)
declare("Erfc", np.vectorize(math.erfc, [float]))
declare("Exp", np.exp)
declare("Expm1", np.expm1)
declare("Log", np.log, POSITIVE)
declare("Log10", np.log10, POSITIVE)
declare("Log1p", np.log1p, FRACTIONS)
declare("Log2", np.log2, POSITIVE)
declare("Neg", np.negative, integers=True)
declare("Reciprocal", lambda x: 1 / x)
declare("Sigmoid", sigmoid)
declare("Sign", np.sign)
declare("Sin", np.sin)
declare("Sinh", np.sinh)
declare("Sqrt", np.sqrt, POSITIVE)
declare("Tan", np.tan)
declare("Tanh", np.tanh)


@formula("aclnnForeachZeroInplace", calls=[f"aclnnForeachZeroInplace x={VALUES}"])
def zero(tensors):
    return [np.zeros(x.shape) for x in tensors]


HALVES = "{FLOAT[2,2]:-2.5,-1.5,0.49999997,0.75 FLOAT[5]:-0.5,0.5,1.5,2.5,-6.25}"


# ops-nn: aclnnForeachRoundOffNumber.md; mode 7 as in the row's note
@formula(
    "aclnnForeachRoundOffNumber",
    "aclnnForeachRoundOffNumberV2",
    calls=[
        *[f"aclnnForeachRoundOffNumberV2 x={VALUES} roundMode=INT64({mode}) {OUT}" for mode in (1, 2, 3, 4, 5, 7)],
        *[
            f"aclnnForeachRoundOffNumber x={HALVES} roundMode=INT8[1]:{mode} out={{FLOAT[2,2] FLOAT[5]}}"
            for mode in (0, 1, 2, 3, 4, 5, 7)
        ],
        "aclnnForeachRoundOffNumber x={INT16[3]:3,-4,7} roundMode=INT8[1]:2 out={INT16[3]}",
    ],
)
def round_off_number(tensors, mode):
    functions = {
        0: np.round,  # halves to even
        1: np.round,
        2: np.floor,
        3: np.ceil,
        4: away_from_zero,
        5: np.trunc,
        7: lambda x: x - np.trunc(x),
    }
    return [functions[int(np.asarray(mode).item())](x) for x in tensors]


# ops-nn: aclnnForeachNorm.md. The norm of nothing is 0.
@formula(
    "aclnnForeachNorm",
    calls=[
        f"aclnnForeachNorm x={VALUES} scalar={order} out={{FLOAT[] FLOAT[1]}}"
        for order in ("INT64(1)", "INT64(2)", "FLOAT(Infinity)", "FLOAT(3)")
    ]
    + ["aclnnForeachNorm x={FLOAT[3]:1,-2,3 FLOAT[0]} scalar=FLOAT(2) out={FLOAT[] FLOAT[]}"],
)
def norm(tensors, order, outputs):
    def of(x):
        return np.abs(x).max(initial=0) if order == np.inf else np.sum(np.abs(x) ** order) ** (1 / order)

    return [of(x).reshape(out.shape) for x, out in zip(tensors, outputs["out"], strict=True)]
