from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


# ops-nn: aclnnConvDepthwise2d.md. Output channel j is of input channel j // (output channels / input channels).
@formula(
    "aclnnConvDepthwise2d",
    calls=[
        f"aclnnConvDepthwise2d self={signed('2,2,3,4', 1)} weight={signed('4,1,2,2', 2)} kernelSize=[2,2] bias={bias} "
        f"stride={stride} padding={padding} dilation={dilation} out=FLOAT[2,4,{out}] cubeMathType=0"
        for bias, stride, padding, dilation, out in (
            (signed("4", 3), "[1,2]", "[1,0]", "[1,2]", "4,1"),
            ("null", "[1,1]", "[0,0]", "[1,1]", "2,3"),
            ("null", "[2,1]", "[0,2]", "[2,1]", "1,7"),
        )
    ]
    + [
        "aclnnConvDepthwise2d self=FLOAT[0,2,3,4] weight=FLOAT[4,1,2,2] kernelSize=[2,2] bias=FLOAT[4] stride=[1,1] "
        "padding=[0,0] dilation=[1,1] out=FLOAT[0,4,2,3] cubeMathType=0"
    ],
)
def depthwise(x, weight, kernel, bias, stride, padding, dilation, _cube_math_type):
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    inputs = np.repeat(padded, len(weight) // x.shape[1], 1)
    height, width = (
        (padded.shape[dim] - dilation[dim - 2] * (kernel[dim - 2] - 1) - 1) // stride[dim - 2] + 1 for dim in (2, 3)
    )
    result = np.zeros((len(x), len(weight), height, width))
    for i, j in np.ndindex(*kernel):
        rows = i * dilation[0] + stride[0] * np.arange(height)
        columns = j * dilation[1] + stride[1] * np.arange(width)
        result += weight[:, 0, i, j, None, None] * inputs[:, :, rows][..., columns]
    return result if bias is None else result + bias[:, None, None]


def padded_times(x, pad):
    return np.pad(x, ((pad, pad), (0, 0), (0, 0)))


# ops-nn: aclnnConvTbc.md. The layouts are (time, batch, channels) and (kernel, input channels, output channels).
@formula(
    "aclnnConvTbc",
    calls=[
        f"aclnnConvTbc self={signed('3,2,2', 1)} weight={signed('2,2,3', 2)} bias={signed('3', 3)} pad={pad} "
        f"output=FLOAT[{times},2,3] cubeMathType=0"
        for pad, times in ((0, 2), (1, 4), (2, 6))
    ]
    + [
        "aclnnConvTbc self=FLOAT[3,2,0] weight=FLOAT[2,0,3] bias=FLOAT[3]:-4,-2,2 pad=1 output=FLOAT[4,2,3] "
        "cubeMathType=0"
    ],
)
def over_time(x, weight, bias, pad, _cube_math_type):
    times = padded_times(x, pad)
    count = len(times) - len(weight) + 1
    return sum((times[k : k + count] @ each for k, each in enumerate(weight)), bias)


# ops-nn: aclnnConvTbcBackward.md
@formula(
    "aclnnConvTbcBackward",
    calls=[
        f"aclnnConvTbcBackward self={signed(f'{times},2,3', 4)} input={signed('3,2,2', 1)} weight={signed('2,2,3', 2)} "
        f"bias=FLOAT[3] pad={pad} cubeMathType=0 gradInput=FLOAT[3,2,2] gradWeight=FLOAT[2,2,3] gradBias=FLOAT[3]"
        for pad, times in ((0, 2), (1, 4), (2, 6))
    ],
)
def over_time_backward(gradient, x, weight, _bias, pad, _cube_math_type):
    times, count = padded_times(x, pad), len(gradient)
    of_times = np.zeros(times.shape)
    of_weight = np.zeros(weight.shape)
    for k, each in enumerate(weight):
        of_times[k : k + count] += gradient @ each.T
        of_weight[k] = np.einsum("tbi,tbo->io", times[k : k + count], gradient)
    return of_times[pad : pad + len(x)], of_weight, gradient.sum((0, 1))
