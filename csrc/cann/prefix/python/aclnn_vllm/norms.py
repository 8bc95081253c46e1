"""Norms."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor


@operator(
    "npu_add_rms_norm_bias(Tensor x1, Tensor x2, Tensor gamma, Tensor? beta=None, float epsilon=1e-6)"
    " -> (Tensor y, Tensor rstd, Tensor x)"
)
def npu_add_rms_norm_bias(
    x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor | None = None, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """The RMS norm of x = x1 + x2, which is rounded first, times gamma plus beta."""
    x = x1 + x2
    y, rstd = torch.ops.npu.npu_rms_norm(x, gamma, epsilon)
    if beta is not None:
        y = torch.addcmul(beta.float(), x.float() * rstd, gamma.float()).to(x.dtype)
    return y, rstd, x


@operator("npu_gemma_rms_norm(Tensor x, Tensor gamma, float epsilon=1e-6) -> (Tensor y, Tensor rstd)")
def npu_gemma_rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """The RMS norm of x times 1 + gamma."""
    y, rstd = torch.ops.npu.npu_gemma_rms_norm(x, gamma, epsilon)
    return y, rstd


@operator(
    "npu_rms_norm_dynamic_quant(Tensor x, Tensor gamma, Tensor? smooth_scale=None, Tensor? beta=None,"
    " float epsilon=1e-6) -> (Tensor y_out, Tensor scale_out)"
)
def npu_rms_norm_dynamic_quant(
    x: Tensor, gamma: Tensor, smooth_scale: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """The RMS norm of x, quantised to INT8 with a scale for each row."""
    y = x.new_empty(x.shape, dtype=torch.int8)
    scale = x.new_empty(x.shape[:-1], dtype=torch.float32)
    # 2 is aclDataType's INT8.
    call("aclnnRmsNormDynamicQuant", x, gamma, smooth_scale, beta, epsilon, 2, y, scale)
    return y, scale
