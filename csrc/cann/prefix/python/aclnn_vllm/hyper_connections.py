"""Hyper-connections: parallel residual streams (batch, [tokens,] streams, size), mixed before and after a layer."""

from __future__ import annotations

import ctypes

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor
Three = tuple[Tensor, Tensor, Tensor]


@operator("npu_hc_pre_inv_rms(Tensor x, float epsilon=1e-20) -> (Tensor out)")
def npu_hc_pre_inv_rms(x: Tensor, epsilon: float = 1e-20) -> Tensor:
    """1 / the root mean square of all streams."""
    return torch.rsqrt(x.float().flatten(-2).square().mean(-1, keepdim=True) + epsilon)


@operator(
    "npu_hc_pre_sinkhorn(Tensor mixes, Tensor rsqrt, Tensor hc_scale, Tensor hc_base, Tensor x, int hc_mult,"
    " int hc_sinkhorn_iters, float hc_eps) -> (Tensor out0, Tensor out1, Tensor out2)"
)
def npu_hc_pre_sinkhorn(
    mixes: Tensor,
    rsqrt: Tensor,
    hc_scale: Tensor,
    hc_base: Tensor,
    x: Tensor,
    hc_mult: int,
    hc_sinkhorn_iters: int,
    hc_eps: float,
) -> Three:
    """The layer's input, and the weights of its result and of the streams, a doubly stochastic matrix."""
    sizes = [hc_mult, hc_mult, hc_mult * hc_mult]
    parts = zip((mixes * rsqrt).split(sizes, -1), hc_scale, hc_base.split(sizes), strict=True)
    pre, post, comb = (part * scale + base for part, scale, base in parts)
    mixed = ((pre.sigmoid() + hc_eps).unsqueeze(-1) * x.float()).sum(-2)
    matrices = comb.unflatten(-1, (hc_mult, hc_mult)).contiguous()
    stochastic = torch.empty_like(matrices)
    call("aclnnMhcSinkhorn", matrices, ctypes.c_float(hc_eps), hc_sinkhorn_iters, stochastic, None, None)
    return mixed.to(torch.bfloat16), 2 * post.sigmoid(), stochastic


PRE = (
    "(Tensor x, Tensor hc_fn, Tensor hc_scale, Tensor hc_base, int hc_mult, int hc_sinkhorn_iters, float norm_eps,"
    " float hc_eps) -> (Tensor out0, Tensor out1, Tensor out2)"
)


@operator(f"npu_hc_pre{PRE}")
@operator(f"npu_hc_pre_v2{PRE}")
def npu_hc_pre(
    x: Tensor,
    hc_fn: Tensor,
    hc_scale: Tensor,
    hc_base: Tensor,
    hc_mult: int,
    hc_sinkhorn_iters: int,
    norm_eps: float,
    hc_eps: float,
) -> Three:
    """npu_hc_pre_sinkhorn of the product of all streams with hc_fn."""
    mixes = torch.nn.functional.linear(x.float().flatten(-2), hc_fn)
    inverse = npu_hc_pre_inv_rms(x, norm_eps)
    result: Three = npu_hc_pre_sinkhorn(mixes, inverse, hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)
    return result


@operator("npu_hc_post(Tensor x, Tensor residual, Tensor post, Tensor comb) -> (Tensor out)")
def npu_hc_post(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """The streams after a layer with the result x: comb^T residual + post x."""
    mixed = torch.matmul(comb.float().transpose(-1, -2), residual.float())
    return torch.addcmul(mixed, post.float().unsqueeze(-1), x.float().unsqueeze(-2)).to(residual.dtype)
