from __future__ import annotations

import re

import numpy as np

from tests.aten_ops.formula_helpers.functions import gelu
from tests.aten_ops.formula_helpers.quantized import bits_of, call, rows_of
from tests.aten_ops.formula_helpers.types import decoded, to_integers
from tests.aten_ops.formulas import formula

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: gelu(x, approximates=True),
    "fastgelu": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def of_rows(numbers, rows):
    """Numbers of columns, or of columns in each group of as many rows."""
    numbers = np.atleast_2d(numbers)
    return np.repeat(numbers, rows // len(numbers), 0)


def one_layer(x, pairs, activation):
    """Each pair has the operands of the first and the second product, or those of the quantisation between them."""

    def product(left, i):
        weight, bias, dequantisation, scale, offset = (pair[i] for pair in (*pairs[:2], *pairs[3:]))
        if scale is not None:
            rows = len(weight)
            weight = (weight + (0 if offset is None else of_rows(offset, rows))) * of_rows(scale, rows)
        sums = left @ weight + (0 if bias is None else bias)
        return sums if dequantisation is None else sums * decoded(dequantisation)

    between, (scale, offset) = activation(product(x, 0)), pairs[2]
    return product(between if scale is None else to_integers(between * scale + offset), 1)


V1 = "x weight1 weight2 expertTokens bias1 bias2 scale offset deqScale1 deqScale2 antiquantScale1 antiquantScale2 "
V1 += "antiquantOffset1 antiquantOffset2 activation innerPrecise=0 y"
X = "FLOAT[3,2]:0.25,-0.125,-0.25,0.875,-0.25,-0.5"
WEIGHT1 = "FLOAT[2,4]:0.75,-0.875,-0.125,-0.375,-1.0,0.5,1.0,0.625"
WEIGHT2 = "FLOAT[4,2]:-0.375,0.125,0.75,-0.375,-0.125,0.875,-0.625"
BIASES = {"bias1": "FLOAT[4]:0.375,-0.125,0.625,-0.25", "bias2": "FLOAT[2]:-0.25,0.25"}
OF_EXPERTS = {
    "x": "FLOAT[5,2]:0.875,0.5,0.375,0.25,0.75,-0.125,0.5,-0.125,0.25",
    "weight1": "FLOAT[3,2,4]:-0.25,0.875,-0.5,-1.0,0.5,-0.875,0.125,0.75,-0.125,0.375,0.625,0.0",
    "weight2": "FLOAT[3,4,2]:-0.5,-0.875,0.0,-0.75,0.25,0.625,0.375,-0.625,-0.125,0.75,-1.0",
    "bias1": "FLOAT[3,4]:0.875,0.125,0.25,0.0,0.0,-1.0,0.75",
    "bias2": "FLOAT[3,2]:0.625,0.75,0.125,-0.75,-0.125,0.5",
    "y": "FLOAT[5,2]",
}
INT8 = {"x": "INT8[2,2]:10,-20,-7,16", "weight1": "INT8[2,3]:1,2,3,-4,6,-3", "weight2": "INT8[3,2]:1,-1,2,3,-5,4"}
HALVES = {"x": "FLOAT16[2,2]:1,2,-3,0.5", "y": "FLOAT16[2,2]"}


def call_of(name, activation="relu", **given):
    parameters = V1 if name == "aclnnFFN" else V1.replace(" y", " tokensIndexFlag=false y")
    line = call(name, parameters, **given, activation=f'"{activation}"')
    optional = r"\b(expertTokens|bias\d|scale|offset|deqScale\d|antiquant\w+)="
    return re.sub(optional, r"\1Optional=", line) if name == "aclnnFFNV3" else line


def calls_of(name, tokens):
    def of_integers(scale, bits, **given):
        first, second = (0.5, 0.1, 0.25), (0.5, 0.3)
        scales = {
            f"deqScale{i}": f"{bits}[{len(x)}]:{bits_of(*x) if bits == 'UINT64' else ','.join(map(str, x))}"
            for i, x in ((1, first), (2, second))
        }
        return call_of(name, **INT8, scale=scale, offset="FLOAT[1]:1", **scales, innerPrecise=1, **given)

    for activation in ("SiLU", "fastgelu", "gelu", "relu"):
        yield call_of(name, activation, x=X, weight1=WEIGHT1, weight2=WEIGHT2, **BIASES, y="FLOAT[3,2]")
    for numbers in tokens:
        yield call_of(name, **OF_EXPERTS, **numbers)
    biases = {"bias1": "INT32[3]:0,10,-8", "bias2": "INT32[2]:3,-8"}
    yield of_integers("FLOAT[1]:2", "FLOAT", **biases, y="FLOAT16[2,2]")
    yield of_integers("FLOAT[3]:2,3,0.7", "BFLOAT16", y="BFLOAT16[2,2]")
    yield of_integers("FLOAT[1]:2", "UINT64", bias1=biases["bias1"], y="FLOAT16[2,2]")
    scales = {"antiquantScale1": "FLOAT16[2]:0.5,2", "antiquantScale2": "FLOAT16[2]:1,0.5"}
    matrices = "[2,2]:1,-2,3,4", "[2,2]:1,-1,2,3"
    int4 = {f"weight{i + 1}": f"INT4{matrix}" for i, matrix in enumerate(matrices)}
    yield call_of(name, **HALVES, **int4, **scales, antiquantOffset1="FLOAT16[2]:1,0")
    scales = {"antiquantScale1": "FLOAT16[2,2]:0.5,2,1,1.5", "antiquantScale2": "FLOAT16[1,2]:1,0.5"}
    int8 = {f"weight{i + 1}": f"INT8{matrix}" for i, matrix in enumerate(matrices)}
    yield call_of(name, **HALVES, **int8, **scales)
    if name == "aclnnFFNV3":
        quantised = {"x": "INT8[3,2]:10,-20,11,-20,-9,30", "weight1": "INT8[2,2,2]:1,2,3,-4,2,-1"}
        quantised |= {"weight2": "INT8[2,2,2]:1,-1,2,3,4", "bias1": "INT32[2,2]:0,10,-3", "y": "FLOAT16[3,2]"}
        scales = {"scale": "FLOAT[2]:2,1", "offset": "FLOAT[2]:1,0", "deqScale1": "FLOAT[2,2]:0.5,0.1,0.2"}
        yield call_of(name, **quantised, **scales, deqScale2="FLOAT[2,2]:0.5,0.25,0.7", expertTokens="INT64[2]:1,2")


SIZES, ENDS = "2,0,3", "2,2,5"
V2_TOKENS = [{"expertTokens": f"[{SIZES}]"}, {"expertTokens": f"[{ENDS}]", "tokensIndexFlag": "true"}]
V3_TOKENS = [{"expertTokens": f"INT64[3]:{SIZES}"}, {"expertTokens": f"INT64[3]:{ENDS}", "tokensIndexFlag": "true"}]


# ops-transformer: aclnnFFN.md, aclnnFFNV2.md, aclnnFFNV3.md.
@formula(
    "aclnnFFN",
    "aclnnFFNV2",
    "aclnnFFNV3",
    calls=[
        *calls_of("aclnnFFN", V2_TOKENS[:1]),
        *calls_of("aclnnFFNV2", V2_TOKENS),
        *calls_of("aclnnFFNV3", V3_TOKENS),
    ],
)
def feed_forward(x, weight1, weight2, tokens, *arguments):
    """Versions after the first one have a flag: the tokens are ends of ranges of rows."""
    pairs = [(weight1, weight2), *(arguments[i : i + 2] for i in (0, 2, 4, 6, 8))]
    activation, are_ends = ACTIVATIONS[arguments[10].lower()], arguments[12:] == (True,)
    rows = rows_of(x)
    if tokens is None or len(tokens) == 0:
        return one_layer(rows, pairs, activation).reshape(x.shape)
    ends = tokens if are_ends else np.cumsum(tokens)
    results = []
    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        own = [[None if each is None else each[i] for each in pair] for pair in pairs]
        results.append(one_layer(rows[start:end], own, activation))
    return np.concatenate(results).reshape(x.shape)


# ops-nn: aclnnFusedMatmulGelu.md.
@formula(
    "aclnnFusedMatmulGelu",
    calls=[
        "aclnnFusedMatmulGelu x=FLOAT[2,2]:1,2,-1,0.5 weight=FLOAT[3,2]:1,0.5,-1,1,2,0 bias=FLOAT[3]:0.25,0,-1 "
        "approximate=1 y=FLOAT[2,3]",
        "aclnnFusedMatmulGelu x=FLOAT[0,8] weight=FLOAT[3,8] bias=null approximate=1 y=FLOAT[0,3]",
    ],
)
def fused_matmul_gelu(x, weight, bias, _approximate):
    return gelu(x @ weight.T + (0 if bias is None else bias), approximates=True)


QUARTERS = ":-0.5,0.25,0,0.25,0.375,-0.375,0.375,-0.5,0,-0.5,-0.25,0.5,-0.125,0.125,0.5,0.5,0.75"


# The last layer's, large enough that its sums do not cancel.
BIASES = f"{QUARTERS},{','.join(['-1', '0.25'] * 7 + ['-0.5'])},{','.join(['8', '9.5'] * 16)}"


# The matrices are stored transposed: (inputs, outputs) (ops-nn: aclnnFusedPatchMlp.md).
@formula(
    "aclnnFusedPatchMlp",
    calls=[
        f"aclnnFusedPatchMlp x={dtype}[2,16]{QUARTERS} weights={dtype}[{32 * 16 + 32 * 32}]{QUARTERS},0.3125,-0.0625 "
        f"biases=FLOAT[64]{BIASES} numLayers=2 out={dtype}[2,32]"
        for dtype in ("FLOAT", "BFLOAT16")
    ]
    + ["aclnnFusedPatchMlp x=FLOAT[0,16] weights=FLOAT[256] biases=FLOAT[16] numLayers=1 out=FLOAT[0,16]"],
)
def fused_patch_mlp(x, weights, biases, layers):
    values, outputs, begin = x, len(biases) // layers, 0
    for layer in range(layers):
        values = gelu(values, approximates=True) if layer else values
        end = begin + values.shape[-1] * outputs
        values = values @ weights[begin:end].reshape(-1, outputs) + biases[layer * outputs : (layer + 1) * outputs]
        begin = end
    return values
