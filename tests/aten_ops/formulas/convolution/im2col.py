"""From the documents of ops-cv and ops-math that have the functions' names, such as aclnnIm2colBackward.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

VALUES = "1.5,-2,3.25,4,-5,6,0.5,8,-9,10,11"


@formula(
    "aclnnIm2colBackward",
    calls=[
        f"aclnnIm2colBackward gradOutput=FLOAT[2,12,6]:{VALUES} inputSize=[4,5] kernelSize=[2,3] dilation=[2,1]"
        " padding=[1,0] stride=[2,1] out=FLOAT[2,2,4,5]"
    ],
)
def im2col_backward(grad, input_size, kernel, dilation, padding, stride):
    height, width = input_size
    counts = [(input_size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    columns = grad.reshape(len(grad), -1, *kernel, *counts)
    result = np.zeros((len(grad), columns.shape[1], height, width))
    for a, b, i, j in np.ndindex(columns.shape[2:]):
        row = i * stride[0] - padding[0] + a * dilation[0]
        column = j * stride[1] - padding[1] + b * dilation[1]
        if 0 <= row < height and 0 <= column < width:
            result[:, :, row, column] += columns[:, :, a, b, i, j]
    return result


@formula(
    "aclnnUnfoldGrad",
    calls=[
        f"aclnnUnfoldGrad gradOut=FLOAT[2,3,4]:{VALUES} inputSizes=[2,9] dim=1 size=4 step=2 gradIn=FLOAT[2,9]",
        f"aclnnUnfoldGrad gradOut=FLOAT[4,3,2]:{VALUES} inputSizes=[5,3] dim=0 size=2 step=1 gradIn=FLOAT[5,3]",
    ],
)
def unfold_grad(grad, input_sizes, dim, size, step):
    result = np.zeros(input_sizes)
    along = np.moveaxis(result, dim, -1)
    pieces = np.moveaxis(grad, dim, -2)
    for i in range(pieces.shape[-2]):
        along[..., i * step : i * step + size] += pieces[..., i, :]
    return result


@formula(
    "aclnnIm2col",
    calls=[
        f"aclnnIm2col self=FLOAT[2,2,4,5]:{VALUES} kernelSize=[2,3] dilation=[2,1] padding=[1,0] stride=[2,1] "
        "out=FLOAT[2,12,6]",
        f"aclnnIm2col self=FLOAT[1,3,3]:{VALUES} kernelSize=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1] "
        "out=FLOAT[4,4]",
    ],
)
def im2col(self, kernel, dilation, padding, stride):
    size = self.shape[-2:]
    counts = [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    columns = np.zeros((*self.shape[:-2], *kernel, *counts))
    for a, b, i, j in np.ndindex(*kernel, *counts):
        row = i * stride[0] - padding[0] + a * dilation[0]
        column = j * stride[1] - padding[1] + b * dilation[1]
        if 0 <= row < size[0] and 0 <= column < size[1]:
            columns[..., a, b, i, j] = self[..., row, column]
    return columns.reshape(*self.shape[:-3], self.shape[-3] * kernel[0] * kernel[1], counts[0] * counts[1])
