"""ELU and CELU."""

from __future__ import annotations

from collections.abc import Iterable

import torch

import aclnn_torch.functional as F

from . import _exact
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def kernels(
    alpha: float, scale: float, input_scale: float, variant: str = "", *, used_by: Iterable[str]
) -> list[Kernel]:
    """ELU with these numbers, and its gradient from the input and from the result."""
    users = tuple(used_by)
    scalars = (alpha, scale, input_scale)
    forward = Kernel(
        operator="elu",
        reads=1,
        arguments=lambda x: (x, *scalars),
        peer=aten.elu,
        exact=_exact.elu,
        variant=variant,
        in_place="elu_",
        used_by=users,
    )

    def backward(is_result: bool, variant: str, users: tuple[str, ...]) -> Kernel:
        return Kernel(
            operator="elu_backward",
            reads=2,
            arguments=lambda g, v: (g, *scalars, is_result, v),
            peer=aten.elu_backward,
            exact=_exact.elu_backward,
            variant=variant,
            used_by=users,
        )

    without_torture = tuple(user for user in users if user != "torture")  # SELU covers the gradient from the result
    by_result = "is_result" if not variant else f"{variant}, is_result"
    return [
        forward,
        backward(False, variant, users),
        *([backward(True, by_result, without_torture)] if users != ("precision",) else []),
    ]


FUNCTIONS = (
    FunctionCase(name="elu", keywords={"alpha": 1.3}, in_place=True, other_keywords=[{}]),
    # torch's own gradient rounds 1 / alpha to float32, which does not matter for these values.
    FunctionCase(name="celu", keywords={"alpha": 0.5}, in_place=True),
)
# Alpha, scale and input scale that exercise every rounding of the formulas, in addition to ordinary ones.
KERNELS = (
    *kernels(1.0, 1.0, 1.0, used_by=["speed", "precision", "torture"]),
    *kernels(1.3, 1.1, 1.0, "scaled", used_by=["precision"]),
    *kernels(0.7, 1.0, 1 / 0.7, "celu", used_by=["precision"]),
    *kernels(1.2, 0.8, 1.5, "all scales", used_by=["tests"]),
)


def elu_backward(
    gradient: torch.Tensor, value: torch.Tensor, alpha: float = 1, is_result: bool = False
) -> torch.Tensor:
    """Without the two other scales."""
    return aclnn.elu_backward(gradient, alpha, 1, 1, is_result, value)


INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[
        ModuleCase(name="ELU", arguments=(0.5,), other_arguments=[(), (1.7,), (0.5, True)]),
        ModuleCase(name="CELU", other_arguments=[(1.7,), (0.5, True)]),
    ],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={"elu": "elu", "elu_": "elu_", "elu_backward": "elu_backward"},
    errors={
        "float64 on Ascend910B": (
            lambda: elu_backward(torch.ones(2).double(), torch.ones(2).double()),
            ["aclnnEluBackward", "gradOutput", "DOUBLE", "FLOAT, FLOAT16, BFLOAT16", "Ascend910B", "host product"],
        ),
        "dtype mismatch": (
            lambda: elu_backward(torch.ones(2), torch.ones(2).half()),
            ["selfOrResult", "Half", "expected Float", "gradOutput", "cast", "Ascend910B"],
        ),
        "shape mismatch": (
            lambda: elu_backward(torch.ones(2, 3), torch.ones(3)),
            ["selfOrResult", "[3]", "[2, 3]", "expand"],
        ),
        "isResult with alpha < 0": (
            lambda: elu_backward(torch.ones(2), torch.ones(2), alpha=-1.5, is_result=True),
            ["alpha is -1.5", "isResult", "alpha >= 0"],
        ),
        "9 dimensions": (lambda: aclnn.elu(torch.ones([1] * 9)), ["self", "9 dimensions", "at most 8", "reshape"]),
        "complex scalar": (lambda: aclnn.elu(torch.ones(2), 1 + 2j), ["alpha", "COMPLEX128", "FLOAT", "real"]),
        "integer tensor": (lambda: aclnn.elu(torch.ones(2, dtype=torch.int32)), ["self", "INT32", "cast"]),
        "tensors on different devices": (
            lambda: elu_backward(torch.ones(2), torch.ones(2, device="meta")),
            ["selfOrResult", "meta", "cpu", "gradOutput", "Ascend910B"],
        ),
        "negative alpha in place, in the backward": (
            lambda: F.elu(torch.ones(2, requires_grad=True) * 1, -1.0, inplace=True).sum().backward(),
            ["alpha is -1", "alpha >= 0"],
        ),
        "in place on an expanded tensor": (
            lambda: F.elu(torch.ones(1).expand(4), inplace=True),
            ["aclnnInplaceElu", "selfRef", "alias one another", "clone"],
        ),
        "a type that CANN lacks": (
            lambda: aclnn.elu(torch.ones(2).to(torch.float8_e4m3fnuz)),
            ["self", "Float8_e4m3fnuz", "cast"],
        ),
    },
)
