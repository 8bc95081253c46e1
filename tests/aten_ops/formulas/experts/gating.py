from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.functions import sigmoid
from tests.aten_ops.formulas import formula


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(-1, keepdims=True)


def largest(values, count):
    """The positions of the largest elements of each row, of equal ones the first."""
    return np.argsort(-values, axis=-1, kind="stable")[..., :count]


def in_best_groups(values, groups, count, members, otherwise=-np.inf):
    """The elements in the groups whose largest members have the highest sums; others are replaced."""
    grouped = np.sort(values.reshape(*values.shape[:-1], groups, values.shape[-1] // groups))
    best = largest(grouped[..., -members:].sum(-1), count)
    is_best = (best[..., None] == np.arange(groups)).any(-2)
    return np.where(is_best.repeat(values.shape[-1] // groups, -1), values, otherwise)


def scores_of(x, norm):
    return softmax(x) if norm == 0 else sigmoid(x) if norm == 1 else np.sqrt(np.log1p(np.exp(x)))


# ops-transformer: aclnnMoeGatingTopK.md and aclnnMoeGatingTopKV2.md, of which an older one divides by the sum of all
# scores instead of that of the chosen ones.
def gated(x, bias, table_rows, k, group_count, groups, mode, renorm, norm, has_scores, factor, eps):
    scores = scores_of(x, norm)
    ranked = scores if bias is None else scores + bias
    experts = largest(in_best_groups(ranked, groups, group_count, mode + 1), k) if table_rows is None else table_rows
    chosen = np.take_along_axis(scores, experts, -1)
    if norm != 0 or renorm == 1:
        chosen = chosen / (chosen.sum(-1, keepdims=True) + eps)
    return [chosen * factor, experts, *([scores] if has_scores else [])]


def call(version, x, bias, attributes, y, has_scores=True, hashed=""):
    """A call; the attributes are k, kGroup, groupCount, groupSelectMode, renorm and normType."""
    names = "k kGroup groupCount groupSelectMode renorm normType"
    given = " ".join(f"{name}={value}" for name, value in zip(names.split(), attributes, strict=True))
    dtype, _, shape = x.partition(":")[0].partition("[")
    return (
        f"aclnnMoeGatingTopK{version} x={x} biasOptional={bias} {hashed}{given} "
        f"outFlag={'true' if has_scores else 'false'} routedScalingFactor=2.5 eps=0.25 yOut={dtype}{y} "
        f"expertIdxOut=INT32{y} outOut={f'FLOAT[{shape}' if has_scores else 'null'}"
    )


X = ":0.5,1.015625,2.03125,-1.203125,1.8125,-1.671875,-1.40625,0.609375,1.625,1.890625,1.15625,-1.828125,0.28125"
BIAS = ":-0.03125,0.15625,0,-0.15625,0.09375,-0.21875,0.09375,-0.25,-0.0625,-0.125,0.21875,0.125"


@formula(
    "aclnnMoeGatingTopK",
    calls=[
        *(
            call("", f"FLOAT[2,12]{X}", f"FLOAT[12]{BIAS}", (4, 2, 3, mode, 0, norm), "[2,4]")
            for mode in (0, 1)
            for norm in (0, 1)
        ),
        call("", f"BFLOAT16[2,12]{X}", "null", (3, 1, 1, 0, 0, 1), "[2,3]", has_scores=False),
    ],
)
def moe_gating_top_k(x, bias, *attributes):
    return gated(x, bias, None, *attributes)


NOT_HASHED = "inputIdsOptional=null tid2eidOptional=null "


@formula(
    "aclnnMoeGatingTopKV2",
    calls=[
        *(
            call("V2", f"FLOAT[2,12]{X}", f"FLOAT[12]{BIAS}", (3, 2, 4, mode, renorm, norm), "[2,3]", hashed=NOT_HASHED)
            for mode, renorm, norm in ((1, 0, 0), (0, 1, 0), (1, 0, 1), (0, 0, 2))
        ),
        call("V2", f"FLOAT16[2,12]{X}", "null", (3, 5, 12, 0, 0, 2), "[2,3]", hashed=NOT_HASHED),
        call(
            "V2",
            f"FLOAT[3,12]{X}",
            "null",
            (2, 1, 1, 0, 0, 1),
            "[3,2]",
            has_scores=False,
            hashed="inputIdsOptional=INT64[3]:1,0,1 tid2eidOptional=INT64[2,2]:3,0,1,11 ",
        ),
    ],
)
def moe_gating_top_k_v2(x, bias, ids, table, *attributes):
    return gated(x, bias, None if ids is None or table is None else table[ids], *attributes)


# ops-transformer: aclnnMoeGatingTopKBackward.md, of scores by sigmoid.
@formula(
    "aclnnMoeGatingTopKBackward",
    calls=[
        f"aclnnMoeGatingTopKBackward xNorm=FLOAT[3,5] gradY={dtype}[3,2]:0.375,-1,-1.125,-1.875,1.375,1.875 "
        f"expertIdx=INT32[3,2]:4,0,2,1,3,1 renorm={renorm} normType=1 routedScalingFactor=1.5 eps=0.25 out={dtype}[3,5]"
        for dtype, renorm in (("FLOAT", 0), ("BFLOAT16", 1))
    ],
)
def moe_gating_top_k_backward(scores, gradient, experts, renorm, norm, factor, eps):
    chosen = np.take_along_axis(scores, experts, 1)
    total = chosen.sum(1, keepdims=True) + eps
    gradient = factor * gradient
    of_chosen = (gradient - (chosen / total * gradient).sum(1, keepdims=True)) / total
    of_scores = np.zeros(scores.shape)
    np.add.at(of_scores, (np.arange(len(scores))[:, None], experts), of_chosen)
    return scores * (1 - scores) * of_scores


def unless_finished(experts, finished, count):
    """The experts; those of finished rows have the number of all experts."""
    return experts if finished is None else np.where(finished[..., None], count, experts)


# Equal elements in the second row.
LOGITS = ":0.1,1.1,2.1,3.1,7,2,7,-1,8.1,9.1,10.1,11.3"


# ops-transformer: aclnnMoeGatingTopKSoftmax.md. rowIdxOut numbers the first experts of all rows, then the second ones.
@formula(
    "aclnnMoeGatingTopKSoftmax",
    calls=[
        f"aclnnMoeGatingTopKSoftmax x=FLOAT[3,4]{LOGITS} finishedOptional=BOOL[3]:0,1,0 k=2 yOut=FLOAT[3,2] "
        "expertIdxOut=INT32[3,2] rowIdxOut=INT32[3,2]",
        f"aclnnMoeGatingTopKSoftmax x=FLOAT16[3,4]{LOGITS} finishedOptional=null k=3 yOut=FLOAT16[3,3] "
        "expertIdxOut=INT32[3,3] rowIdxOut=INT32[3,3]",
    ],
)
def moe_gating_top_k_softmax(x, finished, k):
    scores = softmax(x)
    experts = largest(scores, k)
    rows = np.arange(experts.size).reshape(k, np.prod(x.shape[:-1], dtype=int)).T.reshape(experts.shape)
    return np.take_along_axis(scores, experts, -1), unless_finished(experts, finished, x.shape[-1]), rows


# ops-transformer: aclnnMoeGatingTopKSoftmaxV2.md.
@formula(
    "aclnnMoeGatingTopKSoftmaxV2",
    calls=[
        f"aclnnMoeGatingTopKSoftmaxV2 x=FLOAT[1,3,4]{LOGITS} finishedOptional=null k=2 renorm=1 "
        "outputSoftmaxResultFlag=true yOut=FLOAT[1,3,2] expertIdxOut=INT32[1,3,2] softmaxResultOutOptional=null",
        f"aclnnMoeGatingTopKSoftmaxV2 x=BFLOAT16[3,4]{LOGITS} finishedOptional=BOOL[3]:0,1,0 k=2 renorm=0 "
        "outputSoftmaxResultFlag=true yOut=BFLOAT16[3,2] expertIdxOut=INT32[3,2] softmaxResultOutOptional=FLOAT[3,4]",
    ],
)
def moe_gating_top_k_softmax_v2(x, finished, k, renorm, has_scores):
    scores = x if renorm == 1 else softmax(x)
    experts = largest(scores, k)
    chosen = np.take_along_axis(scores, experts, -1)
    outputs = [softmax(chosen) if renorm == 1 else chosen, unless_finished(experts, finished, x.shape[-1])]
    return [*outputs, scores] if has_scores and renorm == 0 else outputs


def fused_call(x, added, attributes, is_norm, mapping="mappingNum=null mappingTable=null", k=3, is_mapped="false"):
    """A call; the attributes are groupNum, groupTopk and topN."""
    names = ("groupNum", "groupTopk", "topN")
    given = " ".join(f"{name}={value}" for name, value in zip(names, attributes, strict=True))
    tokens = x.partition("[")[2].partition(",")[0]
    return (
        f"aclnnMoeFusedTopk x={x} addNum={added} {mapping} {given} topK={k} activateType=0 isNorm={is_norm} scale=2.5 "
        f"enableExpertMapping={is_mapped} y=FLOAT[{tokens},{k}] indices=INT32[{tokens},{k}]"
    )


# ops-transformer: aclnnMoeFusedTopk.md; other groups count as 0, as in its golden code. Token t takes number t of those
# in an expert's row of the table, in turn.
@formula(
    "aclnnMoeFusedTopk",
    calls=[
        fused_call(f"FLOAT[2,12]{X}", f"FLOAT[12]{BIAS}", (4, 2, 2), "true"),
        fused_call(f"BFLOAT16[3,12]{X}", f"BFLOAT16[12]{BIAS}", (3, 1, 4), "false"),
        # More experts than the chosen group has; scores below those of the other groups.
        fused_call(f"FLOAT16[2,6]{X}", "FLOAT16[6]:-0.75,-2,-0.875,-1.5,0.25,-0.625", (3, 2, 1), "true", k=6),
        fused_call(
            f"FLOAT[5,6]{X}",
            f"FLOAT[6]{BIAS}",
            (2, 1, 1),
            "true",
            "mappingNum=INT32[6]:2,0,3,1,2,3 mappingTable=INT32[6,3]:7,1,9,4,8,2,-1,6,5,3,0,11,10",
            is_mapped="true",
        ),
    ],
)
def moe_fused_topk(x, added, counts, table, groups, group_count, members, k, activation, is_norm, scale, is_mapped):
    scores = sigmoid(x)
    experts = largest(in_best_groups(scores + added, groups, group_count, members, 0), k)
    y = np.take_along_axis(scores, experts, -1)
    if is_norm:
        y = y / y.sum(-1, keepdims=True) * scale
    if is_mapped:
        turns = np.arange(len(x))[:, None] % np.maximum(counts[experts], 1)
        experts = table[experts, turns]
    return y, experts
