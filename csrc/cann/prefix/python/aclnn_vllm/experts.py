"""Mixtures of experts."""

from __future__ import annotations

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor


# Unlike CANN's function of this name, the operator takes renorm 1 and groups of any size: that is aclnnMoeGatingTopKV2.
@operator(
    "moe_gating_top_k(Tensor x, int k, int k_group, int group_count, int group_select_mode, int renorm, int norm_type,"
    " bool out_flag, float routed_scaling_factor, float eps, Tensor? bias_opt=None)"
    " -> (Tensor y, Tensor expert_idx, Tensor out)"
)
def moe_gating_top_k(
    x: Tensor,
    k: int,
    k_group: int,
    group_count: int,
    group_select_mode: int,
    renorm: int,
    norm_type: int,
    out_flag: bool,
    routed_scaling_factor: float,
    eps: float,
    bias_opt: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Selects k experts for each token by their scores."""
    return moe_gating_top_k_hash(
        *(x, k, bias_opt, None, None, k_group, group_count, routed_scaling_factor, eps, group_select_mode, renorm),
        *(norm_type, out_flag),
    )


@operator(
    "moe_gating_top_k_hash(Tensor x, int k, Tensor? bias=None, Tensor? input_ids=None, Tensor? tid2eid=None,"
    " int k_group=1, int group_count=1, float routed_scaling_factor=1.0, float eps=1e-20, int group_select_mode=0,"
    " int renorm=0, int norm_type=0, bool out_flag=False) -> (Tensor y, Tensor expert_idx, Tensor out)"
)
def moe_gating_top_k_hash(
    x: Tensor,
    k: int,
    bias: Tensor | None = None,
    input_ids: Tensor | None = None,
    tid2eid: Tensor | None = None,
    k_group: int = 1,
    group_count: int = 1,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Selects k experts for each token by a table of the tokens' numbers, or without one by their scores.

    The results are the scores of the selected experts, their numbers, and all scores if out_flag is set.
    """
    y = x.new_empty(x.size(0), k)
    experts = x.new_empty(x.size(0), k, dtype=torch.int32)
    scores = x.new_empty(x.shape, dtype=torch.float32)
    call(
        *("aclnnMoeGatingTopKV2", x, bias, input_ids, tid2eid, k, k_group, group_count, group_select_mode, renorm),
        *(norm_type, out_flag, routed_scaling_factor, eps, y, experts, scores),
    )
    return y, experts, scores


@operator(
    "npu_moe_init_routing_custom(Tensor x, Tensor expert_idx, *, Tensor? scale=None, Tensor? offset=None,"
    " int active_num=-1, int expert_capacity=-1, int expert_num=-1, int drop_pad_mode=0, int expert_tokens_num_type=0,"
    " bool expert_tokens_num_flag=False, int quant_mode=0, int[2] active_expert_range=[], int row_idx_type=0)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)
def npu_moe_init_routing_custom(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    active_num: int = -1,
    expert_capacity: int = -1,
    expert_num: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 0,
    expert_tokens_num_flag: bool = False,
    quant_mode: int = 0,
    active_expert_range: list[int] | None = None,
    row_idx_type: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sorts tokens by expert, and may quantise them."""
    first, last = active_expert_range or (0, expert_num)
    pairs, width = expert_idx.numel(), x.size(1)
    rows = (
        [expert_num, expert_capacity] if drop_pad_mode == 1 else [min(pairs, active_num) if active_num > 0 else pairs]
    )
    expanded = x.new_empty([*rows, width], dtype=x.dtype if quant_mode == -1 else torch.int8)
    counts = [expert_num, 2] if expert_tokens_num_type == 2 else [last - first]
    results = (
        expanded,
        expert_idx.new_empty(pairs),
        x.new_empty(counts, dtype=torch.int64),
        x.new_empty(expanded.numel() // width, dtype=torch.float32),
    )
    # One row of factors is for all experts.
    if scale is not None and quant_mode == 1 and scale.size(0) == 1:
        scale = scale.expand(last - first, -1)
    call(
        *("aclnnMoeInitRoutingV3", x, expert_idx, scale, offset, max(active_num, 0), expert_capacity, expert_num),
        *(drop_pad_mode, expert_tokens_num_type, expert_tokens_num_flag, quant_mode, [first, last], row_idx_type),
        *results,
    )
    return results
