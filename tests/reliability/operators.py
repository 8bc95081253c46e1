"""Every operator of torch.ops.aclnn, forward and backward, as a repeatable call."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tests.operators import ELEMENTWISE, OPERATORS
from tests.operators._info import Run, with_gradients

aclnn = torch.ops.aclnn


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Every operator, on tensors that are large enough for the memory pool if that is cheap."""
    torch.manual_seed(0)
    x = torch.randn(256, 160).to(dtype)
    for info in ELEMENTWISE.values():
        for kernel in info.kernels_for("tests"):
            yield kernel.name, with_gradients(kernel, *(x + i for i in range(kernel.reads)))
            if kernel.in_place:
                yield kernel.in_place, lambda kernel=kernel: (kernel.run_in_place(x.clone()),)
    for info in OPERATORS.values():
        yield from info.runs(dtype)
