"""GELU, with either formula."""

from __future__ import annotations

import ctypes

import numpy as np
import torch

import aclnn_torch.functional as F

from ._exact import Array, Exact, sigmoid
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten

PI = np.arccos(Exact(-1))


def normal(x: Array) -> tuple[Array, Array]:
    """The normal distribution function, and its density."""
    z = np.abs(x)
    # Powers of a number whose square is exact, and of the remainder.
    upper = np.where(z < 1e4, z.astype(np.float32), z)
    rest = np.where(z < 1e4, (z - upper) * (z + upper), 0)
    density = np.exp(-upper * upper / 2) * np.exp(-rest / 2) / np.sqrt(2 * PI)
    # The tail is the density over a continued fraction, which converges slowly near 0, where 1/2 minus a series is
    # used.
    near, far = np.minimum(z, 2), np.maximum(z, 2)
    fraction = far
    for k in range(200, 0, -1):
        fraction = far + k / fraction
    term = series = near
    for k in range(3, 81, 2):
        term = term * near * near / k
        series = series + term
    tail = np.where(z < 2, 0.5 - density * series, density / fraction)
    return np.where(x < 0, tail, 1 - tail), density


def exponent(x: Array) -> tuple[Array, Array]:
    """For the approximation x sigmoid(v): v, and its derivative."""
    linear = np.sqrt(8 / PI)
    cubic = Exact(0.044715) * linear
    return x * (linear + cubic * x * x), linear + 3 * cubic * x * x


def exact(dtype: torch.dtype, x: Array, approximate: str = "none") -> Array:
    """The exact result of either formula."""
    return x * (normal(x)[0] if approximate == "none" else sigmoid(exponent(x)[0]))


def slope(x: Array, approximate: str = "none") -> tuple[Array, Array]:
    """The two terms whose sum is its derivative."""
    if approximate == "none":
        below, density = normal(x)
        return below, x * density
    v, derivative = exponent(x)
    return sigmoid(v), sigmoid(v) * sigmoid(-v) * x * derivative


def exact_backward(dtype: torch.dtype, g: Array, x: Array, approximate: str = "none") -> Array:
    """The gradient."""
    return g * sum(slope(x, approximate))


def magnitude_of_backward(dtype: torch.dtype, g: Array, x: Array, approximate: str = "none") -> Array:
    """The magnitudes of its terms."""
    a, b = slope(x, approximate)
    return np.abs(g) * (a + np.abs(b))


def kernels(approximate: str) -> list[Kernel]:
    """GELU with a formula, for each of which CANN has a function, and its gradient."""
    is_default = approximate == "none"
    named = {} if is_default else {"approximate": approximate}
    variant = "" if is_default else approximate
    return [
        Kernel(
            operator="gelu",
            reads=1,
            peer=aten.gelu,
            exact=exact,
            variant=variant,
            named=named,
            peer_is_exact_in_double=True,
            cann_name="gelu_v2" if is_default else "",
            cann=(lambda x: (x, ctypes.c_int64(0))) if is_default else None,
        ),
        Kernel(
            operator="gelu_backward",
            reads=2,
            peer=aten.gelu_backward,
            exact=exact_backward,
            magnitude=magnitude_of_backward,
            variant=variant,
            named=named,
            peer_is_exact_in_double=True,
            # Where the two terms of the derivative cancel, a gradient of up to 5 has rounding errors of either.
            atol=lambda dtype: 8 * torch.finfo(torch.float32).eps,
            cann_name="gelu_backward_v2" if is_default else "",
            cann=(lambda g, x: (g, x, ctypes.c_char_p(b"none"))) if is_default else None,
        ),
    ]


FUNCTIONS = (
    FunctionCase(
        name="gelu", keywords={"approximate": "tanh"}, other_keywords=[{}], direct=False, peer_is_exact_in_double=True
    ),
)
KERNELS = (*kernels("none"), *kernels("tanh"))

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="GELU", arguments=("tanh",), other_arguments=[(), ("none",)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"gelu": "gelu", "gelu_backward": "gelu_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.gelu(torch.ones(2).double()),
            ["aclnnGeluV2", "x", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
        ),
        "integers": (
            lambda: aclnn.gelu(torch.ones(2, dtype=torch.int32), approximate="tanh"),
            ["aclnnGelu", "self", "INT32", "cast"],
        ),
        "another formula": (lambda: F.gelu(torch.ones(2), "erf"), ["approximate", '"erf"', '"none"', '"tanh"']),
        "dtype mismatch": (
            lambda: aclnn.gelu_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnGeluBackwardV2", "self", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.gelu_backward(torch.ones(2, 3), torch.ones(3, 2), approximate="tanh"),
            ["aclnnGeluBackward", "self", "[3, 2]", "[2, 3]", "expand"],
        ),
        "9 dimensions": (
            lambda: aclnn.gelu(torch.ones([1] * 9), approximate="tanh"),
            ["self", "9 dimensions", "at most 8", "reshape"],
        ),
    },
    later=True,
)
