"""aclnnSwigluGatedMlp.md and aclnnMatmulSwiglu.md (ops-transformer, experimental/ffn)."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of
from tests.cabi import Dtype


def swiglu(x):
    gate, up = np.split(x, 2, -1)
    return gate * sigmoid(gate) * up


def hf32(values):
    """Rounded to HF32 of Atlas A2 and A3, which has 11 bits after the point."""
    unit = 2.0 ** (np.frexp(values)[1] - 12)
    return np.rint(values / unit) * unit


# cubeMathType 1 lets products of FLOAT read HF32. Sums of products of products lose more bits than others.
@formula(
    "aclnnSwigluGatedMlp",
    calls=[
        "aclnnSwigluGatedMlp x=FLOAT[2,1,3,2]:0.5,-1.25,2 gateUpWeight=FLOAT[2,6]:1,-0.5,0.75,2,-1.5 "
        "downWeight=FLOAT[3,1]:-1,0.5,2 cubeMathType=1 y=FLOAT[2,1,3,1]",
        "aclnnSwigluGatedMlp x=BFLOAT16[3,4]:0.5,-1.25,2 gateUpWeight=BFLOAT16[4,2]:1,-0.5,0.75,2,-1.5 "
        "downWeight=BFLOAT16[1,3]:-1,0.5,2 cubeMathType=0 y=BFLOAT16[3,3]",
    ],
)
def swiglu_gated_mlp(x, gate_up, down, cube_math_type, outputs):
    is_hf32 = cube_math_type == 1 and dtype_of(outputs["y"]) == Dtype.FLOAT
    read = hf32 if is_hf32 else lambda values: values
    return read(swiglu(read(x) @ read(gate_up))) @ read(down)


@formula(
    "aclnnMatmulSwiglu",
    calls=[
        "aclnnMatmulSwiglu x=FLOAT16[3,2]:0.5,-1.25,2 weight=FLOAT16[6,2]:1,-0.5,0.75,2,-1.5 bias=FLOAT[6]:0.375,-1,2 "
        "transposeWeight=true out=FLOAT16[3,3]",
        "aclnnMatmulSwiglu x=BFLOAT16[2,3]:0.5,-1.25,2 weight=BFLOAT16[3,4]:1,-0.5,0.75,2,-1.5 bias=FLOAT[4]:0 "
        "transposeWeight=false out=BFLOAT16[2,2]",
    ],
)
def matmul_swiglu(x, weight, bias, is_transposed):
    return swiglu(x @ (weight.T if is_transposed else weight) + bias)
