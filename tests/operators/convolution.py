"""Convolution; its differentiable calls are those of tests/test_convolution.py, in every geometry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import aclnn_torch.functional as F

from ._info import FunctionCase, ModuleCase, OperatorInfo, Run, noise, with_gradients

aclnn = torch.ops.aclnn


def image(dims: int) -> Tensor:
    """An image of two channels."""
    return torch.linspace(-1, 1, 2 * 5**dims).reshape(1, 2, *[5] * dims)


def filters(dims: int) -> Tensor:
    """Two filters of two channels."""
    return torch.linspace(-1, 1, 4 * 3**dims).reshape(2, 2, *[3] * dims)


def gradients(
    x: Tensor, weight: Tensor, out: Tensor, *, mask: list[bool], stride: int = 1, groups: int = 1
) -> tuple[Tensor, ...]:
    two = [stride, stride]
    return aclnn.convolution_backward(out, x, weight, [out.shape[1]], two, [0, 0], [1, 1], False, [0, 0], groups, mask)


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """In direct loops and by matrix products, forward and backward."""
    shapes = {"direct": ((2, 2, 7, 7), (2, 2, 3, 3)), "products": ((2, 16, 19, 19), (32, 16, 3, 3))}
    for name, (images, weights) in shapes.items():
        args = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        tensors = (noise(*shape, dtype=dtype) for shape in (images, weights, weights[:1]))
        run = with_gradients(lambda x, w, b, args=args: aclnn.convolution(x, w, b, *args), *tensors)
        yield f"convolution ({name})", run


def npu(dtype: torch.dtype) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """Forward and backward, with and without a bias, and some of the gradients."""
    image, kernel, bias = (noise(*shape, dtype=dtype) for shape in ((2, 4, 9, 8), (6, 2, 3, 3), (6,)))
    parameters = ([2, 1], [1, 0], [1, 2], False, [0, 0], 2)
    forward, backward = (
        partial(operator, cube_math_type=0) for operator in (aclnn.convolution, aclnn.convolution_backward)
    )
    gradient = forward(image, kernel, bias, *parameters)
    yield "convolution", forward, (image, kernel, bias, *parameters)
    yield "convolution-no-bias", forward, (image, kernel, None, *parameters)
    yield "convolution_backward", backward, (gradient, image, kernel, [6], *parameters, [True] * 3)
    masked = (gradient, image, kernel, None, *parameters, [False, True, False])
    yield "convolution_backward-masked", backward, masked


DIMS = (1, 2, 3)

INFO = OperatorInfo(
    functions=[
        FunctionCase(
            name=f"conv{kind}{dims}d", tensors=(image(dims), filters(dims)), options=(torch.ones(2),), direct=False
        )
        for kind in ("", "_transpose")
        for dims in DIMS
    ],
    modules=[
        *(
            ModuleCase(
                name=f"Conv{dims}d", arguments=(2, 4, 3), keywords=keywords, inputs=(image(dims),), least_samples=3
            )
            for dims, keywords in zip(DIMS, ({}, {"bias": False}, {"groups": 2}), strict=True)
        ),
        *(
            ModuleCase(name=f"ConvTranspose{dims}d", arguments=(2, 4, 3), inputs=(image(dims),), least_samples=2)
            for dims in DIMS
        ),
    ],
    memory={
        "convolution": lambda: aclnn.convolution(
            noise(2, 4, 90, 90), noise(4, 2, 3, 3), noise(4), [2, 1], [1, 1], [1, 2], False, [0, 0], 2
        ),
        "convolution, transposed": lambda: aclnn.convolution(
            noise(2, 4, 60, 60), noise(4, 2, 2, 2), None, [3, 3], [0, 0], [1, 1], True, [1, 1], 2
        ),
        "convolution_backward, wide stride": lambda: gradients(
            noise(2, 4, 90, 90), noise(6, 4, 2, 2), noise(2, 6, 23, 23), stride=4, mask=[True, True, True]
        ),
        "convolution_backward, some gradients": lambda: gradients(
            noise(2, 4, 90, 90), noise(6, 2, 3, 3), noise(2, 6, 88, 88), groups=2, mask=[True, False, True]
        ),
        "convolution_backward, no images": lambda: gradients(
            noise(0, 128, 8, 8), noise(128, 128, 3, 3), noise(0, 128, 6, 6), mask=[True, True, True]
        ),
    },
    runs=runs,
    npu=npu,
    npu_functions={
        "conv2d": (
            lambda x, w, b: F.conv2d(x, w, b, padding=1, cube_math_type=0),
            [(2, 3, 5, 5), (4, 3, 3, 3), (4,)],
        )
    },
)
