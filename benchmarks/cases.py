"""What is measured, against what, and how good it must be.

A new operator adds a row to KERNELS; everything else follows from the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import aclnn_torch

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805

# Small enough that only the cost of calling counts, and large enough that only the memory's speed does.
CALL_SIZE = 16
KERNEL_SIZE = 2**24

aten = torch.ops.aten


@dataclass(frozen=True)
class Kernel:
    """One operator, with one choice of its numbers."""

    operator: str  # in torch.ops.aclnn; CANN's name in snake_case
    reads: int  # tensors read; one is written
    arguments: Callable[..., tuple[Tensor | float | bool, ...]]  # the operator's and aclnn's, of the tensors read
    peer: torch._ops.OpOverloadPacket  # ATen's operator that computes the same
    peer_arguments: Callable[..., tuple[Tensor | float | bool, ...]]
    out_name: str = "out"  # what the peer calls a tensor to write to
    functions: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] | None = None  # ours and torch's
    variant: str = ""

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.operator}:{self.variant}" if self.variant else self.operator


KERNELS = (
    Kernel(
        "elu",
        reads=1,
        arguments=lambda x: (x, 1.0, 1.0, 1.0),
        peer=aten.elu,
        peer_arguments=lambda x: (x, 1.0, 1.0, 1.0),
        functions=(aclnn_torch.functional.elu, torch.nn.functional.elu),
    ),
    Kernel(
        "elu_backward",
        reads=2,
        arguments=lambda g, x: (g, 1.0, 1.0, 1.0, False, x),
        peer=aten.elu_backward,
        peer_arguments=lambda g, x: (g, 1.0, 1.0, 1.0, False, x),
        out_name="grad_input",
    ),
    Kernel(
        "elu_backward",
        variant="is_result",
        reads=2,
        arguments=lambda g, y: (g, 1.0, 1.0, 1.0, True, y),
        peer=aten.elu_backward,
        peer_arguments=lambda g, y: (g, 1.0, 1.0, 1.0, True, y),
        out_name="grad_input",
    ),
    Kernel(
        "selu",
        reads=1,
        arguments=lambda x: (x,),
        peer=aten.elu,
        peer_arguments=lambda x: (x, SELU_ALPHA, SELU_SCALE, 1.0),
        functions=(aclnn_torch.functional.selu, torch.nn.functional.selu),
    ),
    Kernel(
        "selu_backward",
        reads=2,
        arguments=lambda g, y: (g, y),
        peer=aten.elu_backward,
        peer_arguments=lambda g, y: (g, SELU_ALPHA, SELU_SCALE, 1.0, True, y),
        out_name="grad_input",
    ),
)


@dataclass(frozen=True)
class Bar:
    """What a mode measures of each provider, and the least good ratio of ours to the peer that will do."""

    metric: str
    limit: float
    at_least: bool  # whether more is better

    def met(self, ratio: float) -> bool:
        """Whether a ratio is good enough."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit}"


BARS = {
    # One operator called, without autograd: our time over ATen's.
    "call": Bar("us", 1.25, at_least=False),
    # A function called on a tensor that requires grad, and its backward pass: our time over torch's.
    "forward+backward": Bar("us", 1.15, at_least=False),
    # Stage 2 of the C ABI into an output that is there already: our bandwidth over the best one for the same traffic.
    "kernel": Bar("GB/s", 0.85, at_least=True),
}


@dataclass(frozen=True)
class Case:
    """One measurement."""

    kernel: Kernel
    mode: str
    dtype: torch.dtype
    size: int

    @property
    def bar(self) -> Bar:
        """What it must reach."""
        return BARS[self.mode]

    @property
    def dtype_name(self) -> str:
        """The dtype without its module."""
        return str(self.dtype).removeprefix("torch.")

    def __str__(self) -> str:
        return f"{self.kernel.name}/{self.mode}/{self.dtype_name}/{self.size}"


CASES = (
    *(Case(kernel, "call", torch.float32, CALL_SIZE) for kernel in KERNELS),
    *(Case(kernel, "forward+backward", torch.float32, CALL_SIZE) for kernel in KERNELS if kernel.functions),
    *(
        Case(kernel, "kernel", dtype, KERNEL_SIZE)
        for kernel in KERNELS
        for dtype in (torch.float32, torch.bfloat16, torch.float16)
    ),
)
