from __future__ import annotations

import itertools

import numpy as np

from tests.aten_ops.formula_helpers.quantized import bits_of, call
from tests.aten_ops.formula_helpers.types import decoded, quantised
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

IMAGES = "INT8[1,4,3,3]:-20,-36,47,113,68,-28,-43,-5,57,84,1,125,64,-42,111,74,11,46,-28,19,89,-108,68"
FILTERS = "INT8[2,2,2,2]:-39,-84,-127,42,87,4,-42,112,75,-34,-62,6,-125,15,55,47"
VOLUMES = "INT8[1,2,2,4,3]:-114,18,99,-2,21,83,-39,19,61,114,33,75,29,3,-3,55,-95,40,94,-32,-96,-60"
KERNELS = "[3,2,1,2,2]:95,-33,-128,-37,-115,-125,-124,-82,39,32,-47,-54,29,95,-128,-91,-75,-77,106,36,-44,-34,100,40"
PARAMETERS = "input weight bias scale offset stride=[1,1] padding=[1,0,0,1] dilation=[1,1] transposed=false "
PARAMETERS += "outputPadding groups=1 offsetx=0 roundMode output"


def calls_of_both():
    name, volumes = "aclnnQuantConvolution", {"bias": "FLOAT[3]:1,-2,3", "scale": "FLOAT[3]:0.5,0.25,0.125"}
    volumes |= {"input": VOLUMES, "stride": "[1,2,1]", "padding": "[0,1,0]", "dilation": "[1,1,2]"}
    yield call(name, PARAMETERS, **volumes, weight=f"INT8{KERNELS}", output="BFLOAT16[1,3,2,3,1]")
    weight, output = f"INT8@FRACTAL_Z_3D{KERNELS}", "FLOAT16[1,3,2,3,1]"
    yield call(f"{name}WeightNz", PARAMETERS, **volumes, weight=weight, output=output)
    images = {"input": IMAGES, "weight": FILTERS, "bias": "INT32[2]:100,-50", "groups": 2, "offsetx": 5}
    images["scale"] = f"UINT64[2]:{bits_of(0.015625, 0.03)}"
    yield call(name, PARAMETERS, **images, output="FLOAT16[1,2,3,3]")
    float8 = {"input": "FLOAT8_E4M3FN[1,2,3,3]:0.5,-1,1.75,2,-0.125,3.5,0,-4.5", "bias": "FLOAT[2]:0.25,-3"}
    float8 |= {"weight": "FLOAT8_E4M3FN[2,2,2,2]:1,-2,0.5,1.5,-0.75", "scale": f"INT64[2]:{bits_of(0.75, 64)}"}
    yield call(name, PARAMETERS, **float8, roundMode='"rint"', output="FLOAT8_E4M3FN[1,2,3,3]")


# offsetx is the value of the padding. An INT32 bias is scaled, too. FLOAT8 saturates (ops-nn: aclnnQuantConvolution.md,
# aclnnQuantConvolutionWeightNz.md).
@formula("aclnnQuantConvolution", "aclnnQuantConvolutionWeightNz", calls=[*calls_of_both()])
def quant_convolution(
    x, weight, bias, scale, _offset, strides, padding, dilations, _transposed, _out, groups, *others, outputs
):
    value, _mode = others
    dims = x.ndim - 2
    sides = [tuple(padding[2 * i : 2 * i + 2]) if len(padding) == 2 * dims else (padding[i],) * 2 for i in range(dims)]
    padded = np.pad(x, [(0, 0), (0, 0), *sides], constant_values=value)
    kernel = weight.shape[2:]
    steps = list(zip(padded.shape[2:], kernel, strides, dilations, strict=True))
    sizes = [(size - dilation * (k - 1) - 1) // stride + 1 for size, k, stride, dilation in steps]
    inputs = padded.reshape(len(x), groups, -1, *padded.shape[2:])
    filters = weight.reshape(groups, -1, *weight.shape[1:])
    result = np.zeros((len(x), groups, filters.shape[1], *sizes))
    for place in itertools.product(*map(range, kernel)):
        window = [
            slice(i * dilation, i * dilation + (size - 1) * stride + 1, stride)
            for i, size, (_, _, stride, dilation) in zip(place, sizes, steps, strict=True)
        ]
        result += np.einsum("ngc...,goc->ngo...", inputs[(..., *window)], filters[(..., *place)])
    result = result.reshape(len(x), -1, *sizes)

    def of_channels(numbers):
        return numbers.reshape(-1, *[1] * dims)

    is_first = bias is not None and bias.dtype == np.int64
    result = (result + (of_channels(bias) if is_first else 0)) * of_channels(decoded(scale))
    result = result + (0 if is_first or bias is None else of_channels(bias))
    return quantised(result, dtype_of(outputs["output"]))
