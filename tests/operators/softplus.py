"""Softplus."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from ._exact import Array, Exact, sigmoid
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def exponent(dtype: torch.dtype, x: Array, beta: float, threshold: float) -> tuple[Array, Array]:
    """beta * x, and where it exceeds the threshold, after rounding."""
    real = np.float64 if dtype == torch.float64 else np.float32
    v = Exact(real(beta)) * x
    return v, v.astype(real) > real(threshold)


def exact(dtype: torch.dtype, x: Array, beta: float, threshold: float) -> Array:
    """The result."""
    v, linear = exponent(dtype, x, beta, threshold)
    real = np.float64 if dtype == torch.float64 else np.float32
    return np.where(linear, x, (np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v)))) / Exact(real(beta)))


def exact_backward(dtype: torch.dtype, g: Array, x: Array, beta: float, threshold: float) -> Array:
    """The gradient."""
    v, linear = exponent(dtype, x, beta, threshold)
    return np.where(linear, g, g * sigmoid(v))


def kernels(beta: float, threshold: float, variant: str = "", *, used_by: Iterable[str]) -> list[Kernel]:
    """Softplus with these numbers, and its gradient."""
    users = tuple(used_by)
    return [
        Kernel(
            operator="softplus",
            reads=1,
            arguments=lambda x: (x, beta, threshold),
            peer=aten.softplus,
            exact=exact,
            variant=variant,
            used_by=users,
        ),
        Kernel(
            operator="softplus_backward",
            reads=2,
            arguments=lambda g, x: (g, x, beta, threshold),
            peer=aten.softplus_backward,
            exact=exact_backward,
            variant=variant,
            used_by=users,
        ),
    ]


FUNCTIONS = (
    FunctionCase(name="softplus", keywords={"beta": 2.0, "threshold": 3.0}, other_keywords=[{}, {"beta": 0.7}]),
)
KERNELS = (
    *kernels(1.0, 20.0, used_by=["speed", "precision", "torture"]),
    *kernels(0.7, 20.0, "beta 0.7", used_by=["precision"]),
    *kernels(1.3, 1.5, "beta 1.3, threshold 1.5", used_by=["tests"]),
)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="Softplus", arguments=(2.0, 3.0), other_arguments=[(), (0.7,)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"softplus": "softplus", "softplus_backward": "softplus_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.softplus(torch.ones(2).double()),
            ["aclnnSoftplus", "self", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
        ),
        "integers": (lambda: aclnn.softplus(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
        "complex beta": (lambda: aclnn.softplus(torch.ones(2), 1 + 2j), ["beta", "COMPLEX128", "FLOAT", "real"]),
        "9 dimensions": (lambda: aclnn.softplus(torch.ones([1] * 9)), ["self", "9 dimensions", "at most 8", "reshape"]),
        "dtype mismatch": (
            lambda: aclnn.softplus_backward(torch.ones(2), torch.ones(2).half(), 1, 20),
            ["aclnnSoftplusBackward", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.softplus_backward(torch.ones(2, 3), torch.ones(3, 2), 1, 20),
            ["self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "tensors on different devices": (
            lambda: aclnn.softplus_backward(torch.ones(2, device="meta"), torch.ones(2), 1, 20),
            ["self", "cpu", "meta", "gradOutput"],
        ),
    },
    later=True,
)
