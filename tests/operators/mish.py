"""Mish."""

from __future__ import annotations

import numpy as np
import torch

import aclnn_torch.functional as F

from ._exact import Array, sigmoid
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def tanh_of_softplus(x: Array) -> tuple[Array, Array]:
    """The number, and what is missing to 1."""
    e = np.exp(-np.abs(x))
    lower, upper = e * (e + 2), 1 + 2 * e
    d = np.where(x > 0, upper + 2 * e * e, lower + 2)
    return np.where(x > 0, upper, lower) / d, np.where(x > 0, 2 * e * e, 2) / d


def exact(dtype: torch.dtype, x: Array) -> Array:
    """The result."""
    return x * tanh_of_softplus(x)[0]


def slope(x: Array) -> tuple[Array, Array]:
    """The two numbers whose sum is its derivative."""
    t, rest = tanh_of_softplus(x)
    return t, x * (rest * (1 + t) * sigmoid(x))


def exact_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """The gradient."""
    return g * sum(slope(x))


def magnitude_of_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """What its sum adds up."""
    a, b = slope(x)
    return np.abs(g) * (a + np.abs(b))


KERNELS = (
    Kernel(operator="mish", reads=1, peer=aten.mish, exact=exact, in_place="mish_"),
    Kernel(
        operator="mish_backward",
        reads=2,
        peer=aten.mish_backward,
        exact=exact_backward,
        magnitude=magnitude_of_backward,
        # Where the two parts of the derivative cancel, a gradient of up to 5 has roundings of either.
        atol=lambda dtype: 8 * torch.finfo(dtype).eps,
    ),
)
FUNCTIONS = (FunctionCase(name="mish", in_place=True, nested_in_torch=False),)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="Mish", other_arguments=[(True,)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"mish": "mish", "mish_": "mish_", "mish_backward": "mish_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.mish(torch.ones(2).double()),
            ["aclnnMish", "self", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
        ),
        "integers": (lambda: aclnn.mish(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
        "dtype mismatch": (
            lambda: aclnn.mish_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnMishBackward", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.mish_backward(torch.ones(2, 3), torch.ones(3, 2)),
            ["self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "9 dimensions": (
            lambda: aclnn.mish(torch.ones([1] * 9)),
            ["self", "9 dimensions", "at most 8", "reshape"],
        ),
        "tensors on different devices": (
            lambda: aclnn.mish_backward(torch.ones(2, device="meta"), torch.ones(2)),
            ["self", "cpu", "meta", "gradOutput"],
        ),
        "in place on an expanded tensor": (
            lambda: F.mish(torch.ones(1).expand(4), inplace=True),
            ["aclnnInplaceMish", "selfRef", "alias one another", "clone"],
        ),
    },
    later=True,
)
