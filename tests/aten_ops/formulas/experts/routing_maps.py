"""aclnnMoeTokenPermuteWithRoutingMap.md, its gradient and its reverse (ops-transformer).

A routing map marks the experts of each token. Each token has as many of them, or, with padding, each expert has as many
tokens: those with a mark first.
"""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import rows_at
from tests.aten_ops.formulas import formula


def marked(marks, count):
    """The places of as many marks as `count`, of a matrix as a list; then places without a mark."""
    return np.argsort(marks.reshape(-1) == 0, kind="stable")[:count]


def in_pairs(values, places, tokens, experts):
    """Values at places in the order of experts, then tokens, as (tokens, experts); zeros elsewhere."""
    result = np.zeros(experts * tokens)
    result[places] = values
    return result.reshape(experts, tokens).T


def places_of(tokens, count, experts):
    """The places of pairs in the order of experts, then tokens: the tokens of each expert in turn."""
    return np.arange(len(tokens)) // max(len(tokens) // max(experts, 1), 1) * count + tokens


def total(rows, tokens, count):
    """The sums of each token's rows."""
    result = np.zeros((count, rows.shape[1]))
    np.add.at(result, tokens, rows)
    return result


MAP = "[4,3]:1,0,1,0,1,1,1,1,0,1,0,1"
PROBS = "[4,3]:-1.625,2,1.5,-0.125,-0.25,-2,0.375,-1.75,-0.875,1,-1.875,1.25"
SLOTS = "INT32[8]:0,5,3,6,1,4,2,7"
PADDED = "INT32[9]:0,2,3,1,2,0,0,1,3"


@formula(
    "aclnnMoeTokenPermuteWithRoutingMap",
    calls=[
        f"aclnnMoeTokenPermuteWithRoutingMap tokens={dtype}[4,2] routingMap={kind}{MAP} probsOptional={dtype}{PROBS} "
        f"numOutTokens={number} dropAndPad={drops} permuteTokensOut={dtype}[{rows},2] "
        f"permuteProbsOutOptional={dtype}[{rows}] sortedIndicesOut=INT32[{rows}]"
        for dtype, kind, number, drops, rows in (
            ("FLOAT", "BOOL", 9, "false", 8),
            ("FLOAT16", "INT8", 8, "false", 8),
            ("FLOAT", "BOOL", 10, "true", 9),
            ("BFLOAT16", "INT8", 3, "true", 3),
        )
    ],
)
def moe_token_permute_with_routing_map(tokens, routing_map, probs, number, drops):
    count, experts = routing_map.shape
    if drops:
        order = np.argsort(routing_map.T == 0, axis=1, kind="stable")[:, : number // max(experts, 1)].reshape(-1)
        places, token = places_of(order, count, experts), order
    else:
        places = marked(routing_map.T, number // max(count, 1) * count)
        token = places % max(count, 1)
        order = np.argsort(token, kind="stable")
    return [tokens[token], *([] if probs is None else [probs.T.reshape(-1)[places]]), order]


# The document has the marks of the probabilities in the order of tokens; that of the permutation is that of experts.
@formula(
    "aclnnMoeTokenPermuteWithRoutingMapGrad",
    calls=[
        "aclnnMoeTokenPermuteWithRoutingMapGrad permutedTokenOutputGrad=FLOAT[8,2] "
        f"permutedProbsOutputGradOptional=null sortedIndices={SLOTS} routingMapOptional=null numExperts=3 tokensNum=4 "
        "dropAndPad=false tokensGradOut=FLOAT[4,2] probsGradOutOptional=null",
        *(
            f"aclnnMoeTokenPermuteWithRoutingMapGrad permutedTokenOutputGrad={dtype}[{rows},2] "
            f"permutedProbsOutputGradOptional={dtype}[{rows}] sortedIndices={indices} routingMapOptional={kind}{MAP} "
            f"numExperts=3 tokensNum=4 dropAndPad={drops} tokensGradOut={dtype}[4,2] probsGradOutOptional={dtype}[4,3]"
            for dtype, kind, drops, rows, indices in (
                ("FLOAT", "INT8", "false", 8, "INT32[8]:0,5,3,-1,1,4,2,7"),
                ("FLOAT16", "BOOL", "false", 8, SLOTS),
                ("FLOAT", "BOOL", "true", 9, PADDED),
            )
        ),
    ],
)
def moe_token_permute_with_routing_map_grad(gradient, probs_gradient, indices, routing_map, experts, tokens, drops):
    if drops:
        of_tokens, places = total(gradient, indices, tokens), places_of(indices, tokens, experts)
    else:
        of_tokens = rows_at(gradient, indices).reshape(tokens, len(indices) // tokens, gradient.shape[1]).sum(1)
        places = None if probs_gradient is None else marked(routing_map.T, len(indices))
    return of_tokens if probs_gradient is None else (of_tokens, in_pairs(probs_gradient, places, tokens, experts))


# A row is skipped if its probability is 0 or its index is out of range. Without padding, the probabilities of the
# indices are in the order of tokens, as in the kernels, and permuteProbs is in that of experts.
@formula(
    "aclnnMoeTokenUnpermuteWithRoutingMap",
    calls=[
        f"aclnnMoeTokenUnpermuteWithRoutingMap permutedTokens={dtype}[{rows},2] sortedIndices={indices} "
        f"routingMapOptional={routing_map} probsOptional={probs} paddedMode={padded} restoreShapeOptional={shape} "
        f"unpermutedTokens={dtype}[4,2] outIndex={out} permuteTokenId={out} permuteProbs={permuted}"
        for dtype, rows, indices, routing_map, probs, padded, shape, out, permuted in (
            ("FLOAT", 8, SLOTS, f"INT8{MAP}", f"FLOAT{PROBS}", "false", "[4,2]", "null", "FLOAT[8]"),
            ("FLOAT", 8, "INT32[8]:0,-1,3,6,1,9,2,7", "null", "null", "false", "[4,2]", "null", "null"),
            ("BFLOAT16", 8, SLOTS, f"BOOL{MAP}", f"BFLOAT16{PROBS}", "false", "null", "null", "BFLOAT16[8]"),
            ("FLOAT", 9, PADDED, f"INT8{MAP}", f"FLOAT{PROBS}", "true", "null", "INT32[9]", "FLOAT[9]"),
            ("FLOAT16", 9, PADDED, "null", "null", "true", "[4,2]", "INT32[9]", "null"),
        )
    ],
)
def moe_token_unpermute_with_routing_map(rows, indices, routing_map, probs, padded, shape):
    tokens = len(probs) if probs is not None else shape[0]
    permuted = []
    if padded:
        if probs is not None:
            permuted = [probs.T.reshape(-1)[places_of(indices, tokens, probs.shape[1])]]
            rows = rows * permuted[0][:, None]
        order = np.argsort(indices, kind="stable")
        return [total(rows, indices, tokens), order, indices[order], *permuted]
    values = rows_at(rows, indices)
    if probs is not None:
        permuted = [probs.T.reshape(-1)[marked(routing_map.T, len(indices))]]
        weights = probs.reshape(-1)[marked(routing_map, len(indices))][:, None]
        is_read = (weights != 0) & ((indices >= 0) & (indices < len(rows)))[:, None]
        values = np.where(is_read, values * weights, 0)
    return [values.reshape(tokens, len(indices) // max(tokens, 1), rows.shape[1]).sum(1), *permuted]


@formula(
    "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
    calls=[
        "aclnnMoeTokenUnpermuteWithRoutingMapGrad unpermutedTokensGrad=FLOAT[3,2] outIndex=INT32[6]:0,4,2,5,1,3 "
        "permuteTokenId=INT32[6]:0,0,1,1,2,2 routingMapOptional=null permutedTokensOptional=null probsOptional=null "
        "dropAndPad=false restoreShapeOptional=null permutedTokensGradOut=FLOAT[6,2] probsGradOutOptional=null",
        *(
            f"aclnnMoeTokenUnpermuteWithRoutingMapGrad unpermutedTokensGrad={dtype}[3,2] outIndex=INT32[6]:{indices} "
            f"permuteTokenId=INT32[6]:0,0,1,1,2,2 routingMapOptional=INT8[3,3]:1,0,1,0,1,1,1,1,0 "
            f"permutedTokensOptional={dtype}[6,2] probsOptional={dtype}[3,3] dropAndPad={drops} "
            f"restoreShapeOptional=null permutedTokensGradOut={dtype}[6,2] probsGradOutOptional={dtype}[3,3]"
            for dtype, indices, drops in (
                ("FLOAT", "0,4,2,5,1,3", "false"),
                ("FLOAT", "2,0,4,3,1,5", "true"),
                ("BFLOAT16", "0,4,2,5,1,3", "false"),
            )
        ),
    ],
)
def moe_token_unpermute_with_routing_map_grad(gradient, out_index, token_id, routing_map, rows, probs, drops, shape):
    of_rows = np.zeros((len(out_index), gradient.shape[1]))
    of_rows[out_index] = gradient[token_id]
    if probs is None:
        return of_rows
    tokens, experts = probs.shape
    products = (of_rows * rows).sum(1)
    if not drops:
        places = marked(routing_map.T, len(out_index))
        return of_rows * probs.T.reshape(-1)[places][:, None], in_pairs(products, places, tokens, experts)
    expert = out_index // max(len(out_index) // max(experts, 1), 1)
    of_row, probs_gradient = np.zeros(len(out_index)), np.zeros(probs.shape)
    of_row[out_index] = probs[token_id, expert]
    probs_gradient[token_id, expert] = products[out_index]
    return of_rows * of_row[:, None], probs_gradient
