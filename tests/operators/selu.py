"""SELU, whose gradient starts from the result."""

from __future__ import annotations

import torch

from . import _exact
from ._info import FunctionCase, Kernel, ModuleCase, OperatorInfo, elementwise_calls

aclnn, aten = torch.ops.aclnn, torch.ops.aten

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805
SCALARS = (ALPHA, SCALE, 1.0)

KERNELS = (
    Kernel(
        operator="selu",
        reads=1,
        peer=aten.elu,
        peer_arguments=lambda x: (x, *SCALARS),
        exact=lambda dtype, x: _exact.elu(dtype, x, *SCALARS),
        in_place="selu_",
    ),
    Kernel(
        operator="selu_backward",
        reads=2,
        peer=aten.elu_backward,
        peer_arguments=lambda g, y: (g, *SCALARS, True, y),
        exact=lambda dtype, g, y: _exact.elu_backward(dtype, g, *SCALARS, True, y),
    ),
)
FUNCTIONS = (
    # CANN's gradient starts from the rounded result, torch's from the input: half a unit in the last place of a result
    # in (-2, -1], times the incoming gradient of at most 2.
    FunctionCase(name="selu", in_place=True, gradient_atol=lambda dtype: torch.finfo(dtype).eps),
)

INFO = OperatorInfo(
    functions=FUNCTIONS,
    modules=[ModuleCase(name="SELU", other_arguments=[(True,)])],
    kernels=KERNELS,
    calls=elementwise_calls(KERNELS, FUNCTIONS),
    schemas={
        "selu": "selu(Tensor self) -> Tensor",
        "selu_backward": "selu_backward(Tensor grad_output, Tensor result) -> Tensor",
    },
    errors={
        "float64 on Ascend910B": (
            lambda: aclnn.selu(torch.ones(2).double()),
            ["aclnnSelu", "self", "DOUBLE", "FLOAT, FLOAT16, INT32, INT8, BFLOAT16", "Ascend910B", "host product"],
        ),
        "unsigned bytes": (lambda: aclnn.selu(torch.ones(2, dtype=torch.uint8)), ["self", "UINT8", "cast"]),
        "dtype mismatch": (
            lambda: aclnn.selu_backward(torch.ones(2), torch.ones(2).half()),
            ["aclnnSeluBackward", "result", "Half", "gradOutput", "cast"],
        ),
        "shape mismatch": (
            lambda: aclnn.selu_backward(torch.ones(2, 3), torch.ones(3, 2)),
            ["result", "[3, 2]", "[2, 3]", "expand"],
        ),
        "tensors on different devices": (
            lambda: aclnn.selu_backward(torch.ones(2, device="meta"), torch.ones(2)),
            ["result", "cpu", "meta", "gradOutput"],
        ),
    },
    memory={"selu of integers": lambda: aclnn.selu(torch.arange(-128, 128, dtype=torch.int8).repeat(1000))},
)
