"""Hardsigmoid."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch.functional as F

from ._exact import Array
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def exact(dtype: torch.dtype, x: Array) -> Array:
    """The result."""
    return np.where(x <= -3, 0, np.where(x >= 3, 1, (x + 3) / 6))


def exact_backward(dtype: torch.dtype, g: Array, x: Array) -> Array:
    """The gradient; of nan too."""
    return np.where((x > -3) & (x < 3), g / 6, 0)


def by_relu6(x: Tensor, inplace: bool = False) -> Tensor:
    """torch's own has no second derivative, and in double a first one by a sixth in float."""
    y = (TF.relu6(x.to(torch.promote_types(x.dtype, torch.float32)) + 3) / 6).to(x.dtype)
    return x.copy_(y) if inplace else y


KERNELS = (
    Kernel(operator="hardsigmoid", reads=1, peer=aten.hardsigmoid, exact=exact, in_place="hardsigmoid_"),
    Kernel(operator="hardsigmoid_backward", reads=2, peer=aten.hardsigmoid_backward, exact=exact_backward),
)
FUNCTIONS = (FunctionCase(name="hardsigmoid", in_place=True, nested_in_torch=False, reference=by_relu6),)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="Hardsigmoid", other_arguments=[(True,)], least_samples=0)],  # torch has none
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={
        "hardsigmoid": "hardsigmoid",
        "hardsigmoid_": "hardsigmoid_",
        "hardsigmoid_backward": "hardsigmoid_backward",
    },
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.hardsigmoid(torch.ones(2).double()),
            ["aclnnHardsigmoid", "self", "DOUBLE", "FLOAT, FLOAT16, INT32, BFLOAT16", "Ascend910B", "host product"],
        ),
        "long integers": (lambda: aclnn.hardsigmoid(torch.ones(2, dtype=torch.int64)), ["self", "INT64", "cast"]),
        "dtype mismatch": (
            lambda: aclnn.hardsigmoid_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnHardsigmoidBackward", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.hardsigmoid_backward(torch.ones(2, 3), torch.ones(3, 2)),
            ["self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "9 dimensions": (
            lambda: aclnn.hardsigmoid(torch.ones([1] * 9)),
            ["self", "9 dimensions", "at most 8", "reshape"],
        ),
        "tensors on different devices": (
            lambda: aclnn.hardsigmoid_backward(torch.ones(2, device="meta"), torch.ones(2)),
            ["self", "cpu", "meta", "gradOutput"],
        ),
        "in place on an expanded tensor": (
            lambda: F.hardsigmoid(torch.ones(1).expand(4), inplace=True),
            ["aclnnInplaceHardsigmoid", "self", "alias one another", "clone"],
        ),
    },
    later=True,
)
