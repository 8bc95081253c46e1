from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import rows_at, rows_to, sorted_pairs
from tests.aten_ops.formula_helpers.types import to_integers, unwritten
from tests.aten_ops.formulas import formula

SIGNED = "-200,362.5,-375,-312.5,-237.5,350,143.75,275,-225,162.5,-106.25,-12.5"


def quantized(rows, factors):
    """The rows times their factors, and the scale of each, by which its largest magnitude becomes 127."""
    rows = rows if factors is None else rows * factors
    scale = np.abs(rows).max(1, initial=0) / 127
    return to_integers(rows / scale[:, None]), scale


def rows_in_capacity(experts, positions, counts, capacity):
    """The rows of pairs where each expert has room for as many pairs as `capacity`; -1 for pairs that are dropped."""
    place = positions - (np.cumsum(counts) - counts)[experts]
    return np.where(place < capacity, experts * capacity + place, -1)


class Routing:
    """The rows of aclnnMoeInitRoutingV2.md and aclnnMoeInitRoutingQuantV2.md; equal experts keep their order."""

    def __init__(self, expert_idx, active_num, capacity, experts, drops, counts_flag, before_flag):
        self.experts = expert_idx.reshape(-1)
        self.row_idx = sorted_pairs(expert_idx)[1]
        pairs = len(self.experts)
        counts = np.bincount(self.experts, minlength=experts)
        self.rows = experts * capacity if drops else min(active_num or pairs, pairs)
        self.shape = (experts, capacity) if drops else (self.rows,)
        if drops:
            self.row_idx = rows_in_capacity(self.experts, self.row_idx, counts, capacity)
        # How many tokens the experts have: up to each expert (1), of each (2), or of each before any is dropped.
        self.counts = [counts] if drops and before_flag else []
        if counts_flag and not drops:
            self.counts = [np.cumsum(counts) if counts_flag == 1 else counts]

    def expanded(self, rows):
        """The rows of the pairs at their places."""
        return rows_to(rows, self.row_idx, self.rows).reshape(*self.shape, *rows.shape[1:])


def call_v2(x, expert_idx, out, attributes, counts="null", before="null"):
    names = "activeNum expertCapacity expertNum dropPadMode expertTokensCountOrCumsumFlag"
    given = " ".join(f"{name}Optional={value}" for name, value in zip(names.split(), attributes, strict=True))
    return (
        f"aclnnMoeInitRoutingV2 x={x} expertIdx={expert_idx} {given} expertTokensBeforeCapacityFlagOptional="
        f"{'false' if before == 'null' else 'true'} expandedXOut={out} expandedRowIdxOut=INT32[8] "
        f"expertTokensCountOrCumsumOutOptional={counts} expertTokensBeforeCapacityOutOptional={before}"
    )


EXPERTS = "INT32[4,2]:2,0,1,2,0,2,2,1"


@formula(
    "aclnnMoeInitRoutingV2",
    calls=[
        call_v2("FLOAT[4,3]", EXPERTS, "FLOAT[8,3]", (0, 0, 0, 0, 0)),
        call_v2("FLOAT[4,3]", EXPERTS, "FLOAT[5,3]", (5, 0, 6, 0, 1), counts="INT32[6]"),
        call_v2("FLOAT16[4,3]", EXPERTS, "FLOAT16[5,3]", (5, 0, 6, 0, 2), counts="INT32[6]"),
        call_v2("BFLOAT16[4,3]", EXPERTS, "BFLOAT16[6,3,3]", (0, 3, 6, 1, 0), before="INT32[6]"),
    ],
)
def moe_init_routing_v2(x, expert_idx, *attributes):
    routing = Routing(expert_idx, *attributes)
    return [routing.expanded(x.repeat(expert_idx.shape[1], 0)), routing.row_idx, *routing.counts]


def call_quant_v2(scale, offset, attributes, out, counts="null", before="null", dynamic="null"):
    names = "activeNum expertCapacity expertNum dropPadMode expertTokensCountOrCumsumFlag quantMode"
    given = " ".join(f"{name}={value}" for name, value in zip(names.split(), attributes, strict=True))
    return (
        f"aclnnMoeInitRoutingQuantV2 x=FLOAT[3,4]:{SIGNED} expertIdx=INT32[3,2]:1,2,0,1,0,1 scaleOptional={scale} "
        f"offsetOptional={offset} {given} expertTokensBeforeCapacityFlag={'false' if before == 'null' else 'true'} "
        f"expandedXOut=INT8{out} expandedRowIdxOut=INT32[6] expertTokensCountOrCumsumOutOptional={counts} "
        f"expertTokensBeforeCapacityOutOptional={before} dynamicQuantScaleOutOptional={dynamic}"
    )


FACTORS = "0.125,0.625,0.875,0.75,0.25,0.625,0.375,1,1,0.25,0.625,1,0.875,0.75,0.75,0.125"


@formula(
    "aclnnMoeInitRoutingQuantV2",
    calls=[
        call_quant_v2("FLOAT[1]:0.2", "FLOAT[1]:1.375", (0, 0, 4, 0, 1, 0), "[6,4]", counts="INT32[4]"),
        call_quant_v2(
            "FLOAT[1]:0.2", "FLOAT[1]:1.375", (0, 1, 4, 1, 0, 0), "[4,1,4]", before="INT32[4]", dynamic="FLOAT[4]"
        ),
        # Beyond INT8.
        call_quant_v2("FLOAT[1]:0.5", "FLOAT[1]:-8.625", (4, 0, 4, 0, 0, 0), "[4,4]"),
        call_quant_v2("null", "null", (5, 0, 4, 0, 2, 1), "[5,4]", counts="INT32[4]", dynamic="FLOAT[5]"),
        call_quant_v2("FLOAT[1,4]:0.75,0.5,0.125,0.25", "null", (0, 0, 4, 0, 0, 1), "[6,4]", dynamic="FLOAT[6]"),
        call_quant_v2(f"FLOAT[4,4]:{FACTORS}", "null", (0, 2, 4, 1, 0, 1), "[4,2,4]", dynamic="FLOAT[8]"),
    ],
)
def moe_init_routing_quant_v2(x, expert_idx, scale, offset, *attributes, outputs):
    dynamic_scales = outputs["dynamicQuantScaleOutOptional"]
    *others, quant_mode = attributes
    routing = Routing(expert_idx, *others)
    rows = x.repeat(expert_idx.shape[1], 0)
    if quant_mode == 0:
        values, scales = to_integers(rows * scale + offset), None
    else:
        values, scales = quantized(rows, scale[routing.experts] if scale is not None and len(scale) > 1 else scale)
    results = [routing.expanded(values), routing.row_idx, *routing.counts]
    if dynamic_scales is None:
        return results
    return [*results, unwritten(dynamic_scales) if scales is None else routing.expanded(scales).reshape(-1)]


def call_v3(x, out, attributes, counts, scale="null", offset="null", experts="1,2,0,3,0,2,1,3,0,1,3,5", active="[0,6]"):
    names = "activeNum expertCapacity expertNum dropPadMode expertTokensNumType quantMode rowIdxType"
    given = " ".join(f"{name}={value}" for name, value in zip(names.split(), attributes, strict=True))
    rows = attributes[1] * attributes[2] if attributes[3] else out.partition("[")[2].partition(",")[0]
    return (
        f"aclnnMoeInitRoutingV3 x={x} expertIdx=INT32[3,4]:{experts} scaleOptional={scale} offsetOptional={offset} "
        f"{given} expertTokensNumFlag={'false' if counts == 'INT64[1]' else 'true'} activeExpertRangeOptional={active} "
        f"expandedXOut={out} expandedRowIdxOut=INT32[12] expertTokensCountOrCumsumOut={counts} "
        f"expandedScaleOut=FLOAT[{rows}]"
    )


ROWS = "0.625,1.75,1.75,0.375,-1.75,-0.6875"


@formula(
    "aclnnMoeInitRoutingV3",
    calls=[
        call_v3("FLOAT16[3,2]", "FLOAT16[12,2]", (12, 0, 6, 0, 1, -1, 1), "INT64[4]", active="[0,4]"),
        call_v3("BFLOAT16[3,2]", "BFLOAT16[5,2]", (5, -1, 6, 0, 0, -1, 0), "INT64[4]", active="[0,4]"),
        call_v3("FLOAT[3,2]", "FLOAT[12,2]", (0, 0, 6, 0, 2, -1, 0), "INT64[6,2]", scale="FLOAT[3]", active="[1,3]"),
        call_v3("INT8[3,2]:3,-5,7,9,-2,4", "INT8[12,2]", (0, 0, 6, 0, 0, -1, 0), "INT64[6]", scale="FLOAT[3]"),
        # As in the vendor's sample, an offset, and INT8 of FLOAT, which is truncated.
        call_v3(
            f"FLOAT[3,2]:{ROWS},2.75", "INT8[12,2]", (0, 0, 6, 0, 1, -1, 1), "INT64[6]", "FLOAT[3]", offset="FLOAT[1]"
        ),
        # Dropped pairs, and one without an expert.
        call_v3(
            "FLOAT16[3,2]",
            "FLOAT16[4,2,2]",
            (12, 2, 4, 1, 1, -1, 0),
            "INT64[4]",
            scale="FLOAT[3]",
            experts="1,0,1,-1,1,2,0,1,0,2,2,1",
            active="null",
        ),
        call_v3("FLOAT16[3,2]", "INT8[12,2]", (0, 0, 6, 0, 1, 0, 0), "INT64[1]", "FLOAT[1]:20", offset="FLOAT[1]:-3.5"),
        call_v3(f"BFLOAT16[3,2]:{ROWS}", "INT8[12,2]", (12, 0, 6, 0, 1, 1, 1), "INT64[6]"),
        call_v3(
            f"FLOAT[3,2]:{ROWS}",
            "INT8[12,2]",
            (12, 0, 6, 0, 2, 1, 0),
            "INT64[6,2]",
            scale="FLOAT[2,2]:0.5,0.3125,0.0625,0.375",
            active="[1,3]",
        ),
        call_v3(f"FLOAT[3,2]:{ROWS}", "INT8[6,2,2]", (12, 2, 6, 1, 1, 1, 0), "INT64[6]", scale="FLOAT[6,2]"),
    ],
)
def moe_init_routing_v3(x, expert_idx, scale, offset, active_num, capacity, expert_num, drop_pad, *attributes, outputs):
    """aclnnMoeInitRoutingV3.md. Rows that it leaves undefined are 0, and their numbers are those of the sorted pairs.

    With factors, dynamic quantisation rounds the row times its factors over the scale, as aclnnMoeInitRoutingQuantV2.md
    says and the published kernel does; this document leaves the factors away in the quotient.
    """
    counts_type, counts_flag, quant_mode, active_range, row_idx_type = attributes
    first, last = active_range or (0, expert_num)
    experts, drops = expert_idx.reshape(-1), drop_pad == 1
    active = (first <= experts) & (experts < last)
    order, row_idx = sorted_pairs(np.where(experts < first, np.iinfo(np.int64).max, experts))
    counts = np.bincount(experts[active] - first, minlength=last - first)
    if drops:
        row_idx = rows_in_capacity(np.where(active, experts, 0), row_idx, counts, capacity)
    row_idx = np.where(active, row_idx, -1)
    count = expert_num * capacity if drops else min(active_num or len(experts), len(experts))

    rows, scales = x.repeat(expert_idx.shape[1], 0), None
    if quant_mode == -1:
        rows = rows if offset is None else np.trunc(rows)
        scales = scale if scale is None else scale.repeat(expert_idx.shape[1])
    elif quant_mode == 0:
        rows = to_integers(rows * scale + offset)
    else:
        of_experts = np.clip(experts - first, 0, last - first - 1)
        rows, scales = quantized(rows, None if scale is None else scale[of_experts])

    used = np.flatnonzero(counts)
    pairs = rows_to(np.stack([used + first, counts[used]], 1), np.arange(len(used)), expert_num)
    return (
        rows_to(rows, row_idx, count).reshape(*((expert_num, capacity) if drops else (count,)), x.shape[1]),
        order if row_idx_type == 1 else row_idx,
        [np.cumsum(counts), counts, pairs][counts_type]
        if counts_flag
        else unwritten(outputs["expertTokensCountOrCumsumOut"]),
        unwritten(outputs["expandedScaleOut"]) if scales is None else rows_to(scales, row_idx, count),
    )


def calls_v1(function, out, scale=""):
    """All rows, fewer, and none."""
    return [
        f"aclnn{function} x=FLOAT[3,4] rowIdx=INT32[3,2]:0,3,1,4,2,5 expertIdx=INT32[3,2]:1,2,0,1,0,2 "
        f"activeNum={active} {scale}expandedXOut={out}[{2 * min(active, 3)},4] expandedRowIdxOut=INT32[6] "
        "expandedExpertIdxOut=INT32[6]"
        for active in (9, 2, 0)
    ]


# aclnnMoeInitRouting.md and aclnnMoeInitRoutingQuant.md, which leaves the quantisation open: CANN multiplies.
@formula(
    "aclnnMoeInitRouting",
    "aclnnMoeInitRoutingQuant",
    calls=[
        *calls_v1("MoeInitRouting", "FLOAT"),
        # Some elements are beyond INT8.
        *calls_v1("MoeInitRoutingQuant", "INT8", "scale=300.0 offset=-60.25 "),
    ],
)
def moe_init_routing(x, row_idx, expert_idx, active_num, scale=None, offset=None):
    order, _ = sorted_pairs(expert_idx)
    names = row_idx.reshape(-1)[order]
    expanded_row_idx = np.zeros(len(names), np.int64)
    expanded_row_idx[names] = np.arange(len(names))
    rows = x if scale is None else to_integers(x * scale + offset)
    count = min(len(x), active_num) * expert_idx.shape[1]
    return rows[names[:count] % max(len(x), 1)], expanded_row_idx, expert_idx.reshape(-1)[order]


# aclnnMoeInitRoutingV2Grad.md; the gradient of a row that was dropped, or is beyond the active ones, is 0.
@formula(
    "aclnnMoeInitRoutingV2Grad",
    calls=[
        "aclnnMoeInitRoutingV2Grad gradExpandedX=FLOAT[4,3,3] expandedRowIdx=INT32[8]:6,0,3,7,1,8,-1,4 topK=2 "
        "dropPadMode=1 activeNum=0 out=FLOAT[4,3]",
        "aclnnMoeInitRoutingV2Grad gradExpandedX=BFLOAT16[5,3] expandedRowIdx=INT32[8]:4,0,2,5,1,6,7,3 topK=2 "
        "dropPadMode=0 activeNum=5 out=BFLOAT16[4,3]",
    ],
)
def moe_init_routing_v2_grad(grad, row_idx, top_k, drop_pad, active_num):
    rows = grad.reshape(np.prod(grad.shape[:-1]), grad.shape[-1])
    return rows_at(rows, row_idx).reshape(len(row_idx) // top_k, top_k, grad.shape[-1]).sum(1)


# aclnnMoeComputeExpertTokens.md: where the rows of each expert end.
@formula(
    "aclnnMoeComputeExpertTokens",
    calls=[
        "aclnnMoeComputeExpertTokens sortedExperts=INT32[5]:0,0,0,2,5 numExperts=7 out=INT32[7]",
        "aclnnMoeComputeExpertTokens sortedExperts=INT32[2]:3,3 numExperts=5 out=INT32[5]",
    ],
)
def moe_compute_expert_tokens(sorted_experts, experts):
    return np.sum(sorted_experts <= np.arange(experts)[:, None], axis=1)
