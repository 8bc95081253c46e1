"""SiLU."""

from __future__ import annotations

import numpy as np
import torch

from ._exact import Array, sigmoid
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def exact_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """The gradient."""
    return g * sigmoid(x) * (1 + x * sigmoid(-x))


def magnitude_of_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """The magnitudes of its terms."""
    return np.abs(g) * sigmoid(x) * (1 + np.abs(x) * sigmoid(-x))


KERNELS = (
    Kernel(operator="silu", reads=1, peer=aten.silu, exact=lambda dtype, x: x * sigmoid(x)),
    Kernel(
        operator="silu_backward",
        reads=2,
        peer=aten.silu_backward,
        exact=exact_backward,
        magnitude=magnitude_of_backward,
        # Where 1 + x (1 - s) cancels, a gradient of up to 5 has rounding errors of its terms.
        atol=lambda dtype: 8 * torch.finfo(dtype).eps,
    ),
)
FUNCTIONS = (FunctionCase(name="silu", in_place=True),)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="SiLU", other_arguments=[(True,)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"silu": "silu", "silu_backward": "silu_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.silu(torch.ones(2).double()),
            ["aclnnSilu", "self", "DOUBLE", "FLOAT16, FLOAT, BFLOAT16", "Ascend910B", "host product"],
        ),
        "integers": (lambda: aclnn.silu(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
        "dtype mismatch": (
            lambda: aclnn.silu_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnSiluBackward", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.silu_backward(torch.ones(2, 3), torch.ones(3, 2)),
            ["self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "9 dimensions": (
            lambda: aclnn.silu_backward(torch.ones([1] * 9), torch.ones([1] * 9)),
            ["gradOutput", "9 dimensions", "at most 8", "reshape"],
        ),
        "tensors on different devices": (
            lambda: aclnn.silu_backward(torch.ones(2, device="meta"), torch.ones(2)),
            ["self", "cpu", "meta", "gradOutput"],
        ),
    },
    later=True,
)
