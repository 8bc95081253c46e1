from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import gelu
from tests.aten_ops.formula_helpers.quantized import bits_of, call
from tests.aten_ops.formula_helpers.types import decoded, decoded_offset, to_integers
from tests.aten_ops.formulas import formula

LEFT = ":0.5,-1,2,3,1,-2.5,0.75"
RIGHT = ":1,2,-0.5,0.25,-1.5,3,-0.75,1.25,-2"
FUSED = 'x1 x2 bias x3 fusedOpType="" cubeMathType=0 y'


def calls_of_fused():
    name = "aclnnFusedMatmul"
    matrices = {"x1": f"BFLOAT16[3,4]{LEFT}", "x2": f"BFLOAT16[4,5]{RIGHT}"}
    yield call(name, FUSED, **matrices, fusedOpType='"16cast32"', y="FLOAT[3,5]")
    for activation in ("gelu_erf", "gelu_tanh"):
        yield call(name, FUSED, **matrices, fusedOpType=f'"{activation}"', y="BFLOAT16[3,5]")
    batches = {"x1": f"FLOAT16[2,3,4]{LEFT}", "x2": f"FLOAT16[2,4,5]{RIGHT}", "bias": "FLOAT16[5]:1,2,3,-4,5"}
    batches["y"] = "FLOAT16[2,3,5]"
    x3 = "FLOAT16[3,5]:0.25,2,-1,0.75"
    yield call(name, FUSED, **batches, x3=x3, fusedOpType='"mul"', cubeMathType=4)
    yield call(name, FUSED, **batches, x3=x3.replace("[3,5]", "[2,3,5]"), fusedOpType='"add"')
    yield call(name, FUSED, **batches, fusedOpType='"relu"')
    yield call(name, FUSED, x1=f"FLOAT[3,4]{LEFT}", x2=f"FLOAT[4,5]{RIGHT}", y="FLOAT[3,5]", cubeMathType=3)


# ops-nn: aclnnFusedMatmul.md.
@formula("aclnnFusedMatmul", calls=[*calls_of_fused()])
def fused_matmul(x1, x2, bias, x3, kind, _cube_math_type):
    product = x1 @ x2 + (0 if bias is None else bias.reshape(-1))
    if kind in ("", "16cast32"):
        return product
    if kind.startswith("gelu"):
        return gelu(product, kind == "gelu_tanh")
    if kind == "relu":
        return np.maximum(product, 0)
    return product + x3 if kind == "add" else product * x3


PERMUTED = "x1 x2 bias scale permX1=[0,1,2] permX2=[0,1,2] permY=[1,0,2] cubeMathType=0 batchSplitFactor=1 out"


def calls_of_permuted(name, layout):
    operands = {"x1": f"FLOAT16[4,3,5]{LEFT}", "x2": f"FLOAT16{layout}[4,5,6]{RIGHT},0.125,-3"}
    scale = f"UINT64[24]:{bits_of(0.5, 1, -2, 0.25, 3)}"
    yield call(name, PERMUTED, **operands, scale=scale, out="INT8[3,1,24]")
    yield call(name, PERMUTED, **operands, out="FLOAT16[3,4,6]")
    yield call(name, PERMUTED, **operands, batchSplitFactor=2, out="FLOAT16[2,3,12]")
    if not layout:
        exchanged = {"x1": operands["x1"], "x2": f"FLOAT16[3,6,5]{RIGHT},0.125"}
        permutations = {"permX1": "[1,0,2]", "permX2": "[0,2,1]"}
        yield call(name, PERMUTED, **exchanged, **permutations, out="FLOAT16[4,3,6]")


# (M, B, N); or, quantised, (M, 1, B N); or (parts, M, B / parts N) (ops-nn: aclnnTransposeBatchMatMul.md).
@formula(
    "aclnnTransposeBatchMatMul",
    "aclnnTransposeBatchMatMulWeightNz",
    calls=[
        *calls_of_permuted("aclnnTransposeBatchMatMul", ""),
        *calls_of_permuted("aclnnTransposeBatchMatMulWeightNz", "@NZ"),
    ],
)
def transpose_batch_matmul(x1, x2, _bias, scale, perm1, perm2, _perm_y, _cube_math_type, parts):
    product = x1.transpose(perm1) @ x2.transpose(perm2)
    batch, m, n = product.shape
    if scale is not None:
        joined = product.swapaxes(0, 1).reshape(m, 1, batch * n)
        return to_integers(np.rint(joined * decoded(scale)) + decoded_offset(scale))
    if parts == 1:
        return product.swapaxes(0, 1)
    return product.reshape(parts, batch // parts, m, n).swapaxes(1, 2).reshape(parts, m, -1)
