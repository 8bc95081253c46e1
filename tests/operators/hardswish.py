"""Hardswish."""

from __future__ import annotations

import numpy as np
import torch

import aclnn_torch.functional as F

from ._exact import Array
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def exact(dtype: torch.dtype, x: Array) -> Array:
    """The result."""
    return np.where(x <= -3, -0.0, np.where(x >= 3, x, x * (x + 3) / 6))


def exact_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """The gradient; for nan, too."""
    return g * np.where(x <= -3, 0, np.where(x < 3, (x + 1.5) / 3, 1))


KERNELS = (
    Kernel(operator="hardswish", reads=1, peer=aten.hardswish, exact=exact, in_place="hardswish_"),
    Kernel(
        operator="hardswish_backward",
        reads=2,
        peer=aten.hardswish_backward,
        exact=exact_backward,
        peer_is_exact_in_double=True,  # x / 3 + 0.5 cancels near -1.5
        cann_name="hardswish_backward_v2",
    ),
)
FUNCTIONS = (FunctionCase(name="hardswish", in_place=True, nested_in_torch=False),)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="Hardswish", other_arguments=[(True,)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"hardswish": "hardswish", "hardswish_": "hardswish_", "hardswish_backward": "hardswish_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.hardswish(torch.ones(2).double()),
            ["aclnnHardswish", "self", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
        ),
        "integers": (lambda: aclnn.hardswish(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
        "dtype mismatch": (
            lambda: aclnn.hardswish_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnHardswishBackwardV2", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.hardswish_backward(torch.ones(2, 3), torch.ones(3, 2)),
            ["self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "9 dimensions": (
            lambda: aclnn.hardswish_backward(torch.ones([1] * 9), torch.ones([1] * 9)),
            ["gradOutput", "9 dimensions", "at most 8", "reshape"],
        ),
        "tensors on different devices": (
            lambda: aclnn.hardswish_backward(torch.ones(2, device="meta"), torch.ones(2)),
            ["self", "cpu", "meta", "gradOutput"],
        ),
        "in place on an expanded tensor": (
            lambda: F.hardswish(torch.ones(1).expand(4), inplace=True),
            ["aclnnInplaceHardswish", "self", "alias one another", "clone"],
        ),
    },
    later=True,
)
