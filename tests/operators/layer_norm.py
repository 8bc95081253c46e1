"""LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

import aclnn_torch.functional as F

from ._info import Call, FunctionCase, ModuleCase, OperatorInfo, Run, noise, with_gradients

aclnn = torch.ops.aclnn

ALL = [True] * 3


def backward(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    """The gradients of input, weight and bias over the last dimension, with or without a weight."""
    weight = weights[0] if weights else None
    return aclnn.layer_norm_backward(g, x, x.shape[-1:], mean, rstd, weight, None, ALL)


CALLS = [
    Call(aclnn.layer_norm, [(3, 4), (4,), (4,)], [None, [4], None, None, 1e-5], "layer_norm", (True, False, False)),
    Call(
        lambda x, w, b: aclnn.layer_norm(x, [2, 4], w, b, 0.1),
        [(3, 2, 4), (2, 4), (2, 4)],
        [None] * 3,
        "layer_norm over two dimensions",
        (True, False, False),
    ),
    Call(lambda x: F.layer_norm(x, x.shape[-1:]), [(3, 4)], [None], "layer_norm without weights"),
    Call(lambda x, b: F.layer_norm(x, [4], None, b), [(3, 4), (4,)], [None] * 2, "layer_norm, bias", (True, False)),
    Call(backward, [(3, 4), (3, 4), (3, 1), (3, 1), (4,)], [None] * 5, "layer_norm_backward", (*[True] * 4, False)),
    Call(backward, [(3, 4), (3, 4), (3, 1), (3, 1)], [None] * 4, "layer_norm_backward without weights"),
]


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Forward and backward."""
    x, weight, bias = (noise(*shape, dtype=dtype) for shape in ((256, 160), (160,), (160,)))
    yield "layer_norm", with_gradients(lambda x, w, b: aclnn.layer_norm(x, [160], w, b, 1e-5), x, weight, bias)


def npu(dtype: torch.dtype) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """Forward and backward."""
    x, gamma, dy = (noise(*shape, dtype=dtype) for shape in ((6, 4, 10), (10,), (6, 4, 10)))
    rstd = aclnn.rms_norm(x, gamma)[1]
    yield "layer_norm", aclnn.layer_norm, (x, [10], gamma, gamma, 1e-5)
    yield "layer_norm_backward", aclnn.layer_norm_backward, (dy, x, [10], rstd, rstd, gamma, None, ALL)


INFO = OperatorInfo(
    calls=CALLS,
    functions=[FunctionCase(name="layer_norm", options=((4,), torch.linspace(0, 1, 4), torch.linspace(1, 2, 4)))],
    modules=[ModuleCase(name="LayerNorm", arguments=(4,), keywords={"eps": 1e-3, "bias": False}, least_samples=3)],
    memory={
        "layer_norm, long rows": lambda: aclnn.layer_norm(noise(3, 40000), [40000], noise(40000), None, 1e-5),
        "layer_norm, no columns": lambda: aclnn.layer_norm(noise(40000, 0), [0], None, None, 1e-5),
        "layer_norm_backward, short rows": lambda: aclnn.layer_norm_backward(
            *(noise(40000, 3), noise(40000, 3), [3], noise(40000, 1), noise(40000, 1), noise(3), None, ALL)
        ),
        "layer_norm_backward, no rows": lambda: aclnn.layer_norm_backward(
            *(noise(0, 40000), noise(0, 40000), [40000], noise(0, 1), noise(0, 1), None, None, ALL)
        ),
    },
    runs=runs,
    npu=npu,
    npu_functions={"layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [(5, 4), (4,), (4,)])},
    later=True,
)
