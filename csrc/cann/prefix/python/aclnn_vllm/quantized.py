"""Quantised layers."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor


@operator(
    "npu_dequant_swiglu_quant(Tensor x, *, Tensor? weight_scale=None, Tensor? activation_scale=None, Tensor? bias=None,"
    " Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? group_index=None, bool activate_left=True,"
    " int quant_mode=0, int swiglu_mode=0, float clamp_limit=0.0, float glu_alpha=1.0, float glu_bias=0.0)"
    " -> (Tensor y, Tensor scale)"
)
def npu_dequant_swiglu_quant(
    x: Tensor,
    *,
    weight_scale: Tensor | None = None,
    activation_scale: Tensor | None = None,
    bias: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    group_index: Tensor | None = None,
    activate_left: bool = True,
    quant_mode: int = 0,
    swiglu_mode: int = 0,
    clamp_limit: float = 0.0,
    glu_alpha: float = 1.0,
    glu_bias: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Dequantises x, and quantises its SwiGLU to INT8.

    Mode 1 has bounds, but for the limit 0, and the gate in one half: that is CANN's mode 2.
    """
    if swiglu_mode not in (0, 1):
        raise ValueError(f"npu_dequant_swiglu_quant: swiglu_mode is {swiglu_mode}, expected 0 or 1")
    y = x.new_empty([*x.shape[:-1], x.size(-1) // 2], dtype=torch.int8)
    scale = x.new_empty(x.shape[:-1], dtype=torch.float32)
    call(
        *("aclnnDequantSwigluQuantV2", x, weight_scale, activation_scale, bias, quant_scale, quant_offset, group_index),
        *(activate_left, "dynamic" if quant_mode == 1 else "static", 2, "rint", -1, 2 * swiglu_mode),
        *(clamp_limit or torch.finfo(torch.float32).max, glu_alpha, glu_bias, y, scale),
    )
    return y, scale


def swiglu_of_products(
    x: Tensor, weights: list[Tensor], scales: Tensor, x_scale: Tensor, ends: Tensor, limit: float
) -> tuple[Tensor, Tensor]:
    """The quantised SwiGLU of each group's rows times the group's INT8 matrix; `ends` are those of the groups."""
    if x.dtype != torch.int8 or any(weight.dtype != torch.int8 for weight in weights):
        types = f"{x.dtype} and {weights[0].dtype}"
        raise NotImplementedError(
            f"grouped_matmul_swiglu_quant of {types} is not computed on simulated NPUs, of INT8 is"
        )
    products = torch.ops.npu.npu_grouped_matmul(
        [x], weights, split_item=3, group_type=0, group_list=ends, group_list_type=0, output_dtype=torch.int32
    )[0]
    y, scale = npu_dequant_swiglu_quant(
        products,
        weight_scale=scales.float(),
        activation_scale=x_scale,
        group_index=ends - torch.cat([ends.new_zeros(1), ends[:-1]]),
        quant_mode=1,
        swiglu_mode=int(limit > 0),
        clamp_limit=limit,
    )
    return y, scale


def refuse_others(name: str, **arguments: object) -> None:
    """Refuses arguments for types that are not computed."""
    for argument, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"{name} with {argument} is not computed on simulated NPUs; pass None")


ARGUMENTS = (
    "Tensor x_scale, Tensor group_list, *, Tensor? bias=None, Tensor? offset=None, float swiglu_limit=0.0)"
    " -> (Tensor output, Tensor output_scale, Tensor output_offset)"
)


@operator(f"grouped_matmul_swiglu_quant(Tensor x, Tensor weight, Tensor weight_scale, {ARGUMENTS}")
@operator(f"grouped_matmul_swiglu_quant_weight_nz(Tensor x, Tensor weight, Tensor weight_scale, {ARGUMENTS}")
def grouped_matmul_swiglu_quant(
    x: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    x_scale: Tensor,
    group_list: Tensor,
    *,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
    swiglu_limit: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """SwiGLU of grouped products, quantised."""
    refuse_others("grouped_matmul_swiglu_quant", bias=bias, offset=offset)
    y, scale = swiglu_of_products(x, [weight], weight_scale, x_scale, group_list, swiglu_limit)
    return y, scale, x.new_empty([], dtype=torch.float32)


@operator(
    f"grouped_matmul_swiglu_quant_weight_nz_tensor_list(Tensor x, Tensor[] weight, Tensor[] weight_scale, {ARGUMENTS}"
)
def grouped_matmul_swiglu_quant_weight_nz_tensor_list(
    x: Tensor,
    weight: list[Tensor],
    weight_scale: list[Tensor],
    x_scale: Tensor,
    group_list: Tensor,
    *,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
    swiglu_limit: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """SwiGLU of grouped products, quantised, with a matrix and its scales for each group."""
    refuse_others("grouped_matmul_swiglu_quant_weight_nz_tensor_list", bias=bias, offset=offset)
    y, scale = swiglu_of_products(x, weight, torch.stack(weight_scale), x_scale, group_list, swiglu_limit)
    return y, scale, x.new_empty(x.size(0), dtype=torch.float32)
