"""RMSNorm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import aclnn_torch.functional as F

from ._info import Call, FunctionCase, ModuleCase, OperatorInfo, Run, noise, with_gradients

aclnn = torch.ops.aclnn

CALLS = [
    Call(aclnn.rms_norm, [(3, 4), (4,)], [None, None], "rms_norm", (True, False)),
    Call(aclnn.rms_norm, [(3, 2, 4), (2, 4)], [None, None, 0.1], "rms_norm over two dimensions", (True, False)),
    Call(aclnn.rms_norm, [(5,), (5,)], [None, None], "rms_norm of a single row", (False, False)),
    Call(lambda x, gamma: aclnn.rms_norm(x, gamma)[0], [(3, 4), (4,)], [None, None], "y alone", (True, False)),
    Call(aclnn.rms_norm_grad, [(3, 4), (3, 4), (3, 1), (4,)], [None] * 4, "rms_norm_grad", (True, True, True, False)),
    Call(
        aclnn.rms_norm_grad,
        [(2, 3, 4), (2, 3, 4), (2,), (3, 4)],
        [None] * 4,
        "rms_norm_grad, rstd of fewer dimensions",
        (True, True, True, False),
    ),
]


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Forward and backward."""
    x, gamma, ones = noise(256, 160, dtype=dtype), noise(160, dtype=dtype), torch.ones(160, dtype=dtype)
    rstd = torch.rand(256, 1)
    yield "rms_norm", with_gradients(aclnn.rms_norm, x, gamma)
    yield "rms_norm_grad", lambda: aclnn.rms_norm_grad(x, x, rstd, ones)


def npu(dtype: torch.dtype) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """Forward and backward, with several layouts."""
    x, gamma, dy = (noise(*shape, dtype=dtype) for shape in ((6, 4, 10), (10,), (6, 4, 10)))
    rstd = aclnn.rms_norm(x, gamma)[1]
    yield "rms_norm", aclnn.rms_norm, (x, gamma, 1e-5)
    yield "rms_norm-strided", aclnn.rms_norm, (x.transpose(0, 1), gamma)
    yield "rms_norm-offset", aclnn.rms_norm, (x[1:, 2:], gamma)
    yield "rms_norm_grad", aclnn.rms_norm_grad, (dy, x, rstd, gamma)
    yield "rms_norm_grad-strided", aclnn.rms_norm_grad, (dy[::2], x[::2], rstd[::2], gamma)


INFO = OperatorInfo(
    calls=CALLS,
    functions=[FunctionCase(name="rms_norm", options=((4,), torch.linspace(0, 1, 4)))],
    modules=[ModuleCase(name="RMSNorm", arguments=(4,), keywords={"eps": 1e-3}, least_samples=3)],
    memory={
        "rms_norm, long rows": lambda: aclnn.rms_norm(noise(3, 40000), noise(40000)),
        "rms_norm, short rows": lambda: aclnn.rms_norm(noise(40000, 3), noise(3)),
        "rms_norm_grad, long rows": lambda: aclnn.rms_norm_grad(
            noise(3, 40000), noise(3, 40000), noise(3, 1), noise(40000)
        ),
        "rms_norm_grad, short rows": lambda: aclnn.rms_norm_grad(
            noise(40000, 3), noise(40000, 3), noise(40000, 1), noise(3)
        ),
        "rms_norm_grad, no rows": lambda: aclnn.rms_norm_grad(
            noise(0, 40000), noise(0, 40000), noise(0, 1), noise(40000)
        ),
    },
    runs=runs,
    npu=npu,
    npu_functions={"rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), [(5, 4), (4,)])},
)
