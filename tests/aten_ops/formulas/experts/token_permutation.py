from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import rows_at, rows_to, sorted_pairs
from tests.aten_ops.formula_helpers.mx import mx, numbers
from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

# ops-transformer: aclnnMoeTokenPermute.md, aclnnMoeTokenPermuteV2.md and the documents of the other functions.
EIGHT = "sortedIndices=INT32[8]:4,0,2,5,1,6,7,3"
SIX = "sortedIndices=INT32[6]:2,0,4,1,5,3"
PLAIN = "paddedMode=false"
UNPADDED = f"{PLAIN} restoreShapeOptional=null"


def within(positions, limits):
    """The positions from the start of the range; -1 outside it. The documents of WithEp do not agree on the start."""
    first, last = limits
    return np.where((first <= positions) & (positions < last), positions - first, -1)


def summed(rows, positions, count, probs=None):
    """The sum of each token's rows, times their probabilities. A row out of range or of probability 0 adds nothing."""
    values = rows_at(rows, positions)
    if probs is not None:
        weights = np.where(positions < len(rows), probs.reshape(-1), 0)
        values = np.where((weights != 0)[:, None] & (positions >= 0)[:, None], values * weights[:, None], 0)
    tokens = len(positions) // count if probs is None else len(probs)
    return values.reshape(tokens, count, rows.shape[1]).sum(1)


@formula(
    "aclnnMoeTokenPermute",
    calls=[
        *(
            f"aclnnMoeTokenPermute tokens=FLOAT[4,3] indices=INT64[4,2]:2,0,1,2,0,2,2,1 numOutTokens={number} {PLAIN} "
            f"permuteTokensOut=FLOAT[{rows},3] sortedIndicesOut=INT32[8]"
            for number, rows in ((100, 8), (5, 5), (-2, 6), (-9, 0))
        ),
        f"aclnnMoeTokenPermute tokens=INT8[3,1]:1,-2,3 indices=INT32[3]:7,5,6 numOutTokens=0 {PLAIN} "
        "permuteTokensOut=INT8[3,1] sortedIndicesOut=INT32[3]",
    ],
)
def moe_token_permute(tokens, indices, number, padded):
    order, positions = sorted_pairs(indices)
    count = indices.shape[1] if indices.ndim == 2 else 1
    return tokens[order[: number or None] // count], positions


# The scales are those of OCP, as in ops-nn: aclnnDynamicMxQuantV3.md; FLOAT8 has no dimension of pairs.
@formula(
    "aclnnMoeTokenPermuteV2",
    calls=[
        f"aclnnMoeTokenPermuteV2 tokens=INT8[3,2]:1,-2,3 indices=INT64[3]:7,5,6 numOutTokens=2 {PLAIN} quantMode=-1 "
        "permuteTokensOut=INT8[2,2] sortedIndicesOut=INT32[3] expandedScaleOut=FLOAT[0]",
        *(
            f"aclnnMoeTokenPermuteV2 tokens={dtype}[3,70]:{numbers(seed=mode)} indices=INT32[3,2]:2,0,1,2,0,1 "
            f"numOutTokens={number} {PLAIN} quantMode={mode} permuteTokensOut={result}[{rows},70] "
            f"sortedIndicesOut=INT32[6] expandedScaleOut=FLOAT8_E8M0[{rows},{scales}]"
            for mode, dtype, result, number, rows, scales in (
                (2, "FLOAT16", "FLOAT8_E5M2", 0, 6, "4"),
                (3, "BFLOAT16", "FLOAT8_E4M3FN", 5, 5, "4"),
                (9, "FLOAT16", "FLOAT4_E2M1", -2, 4, "2,2"),
            )
        ),
    ],
)
def moe_token_permute_v2(tokens, indices, number, padded, mode, outputs):
    rows, positions = moe_token_permute(tokens, indices, number, padded)
    scale = outputs["expandedScaleOut"]
    if mode == -1:
        return rows, positions, unwritten(scale)
    y, pairs = mx(rows, 1, dtype_of(outputs["permuteTokensOut"]))
    return y, positions, pairs.reshape(scale.shape)


# Without a range, this is aclnnMoeTokenPermute.
@formula(
    "aclnnMoeTokenPermuteWithEp",
    calls=[
        "aclnnMoeTokenPermuteWithEp tokens=FLOAT16[3,4] indices=INT64[3,2]:1,2,3,1,2,3 probsOptional=null "
        f"rangeOptional=null numOutTokens=4 {PLAIN} permuteTokensOut=FLOAT16[4,4] sortedIndicesOut=INT32[6] "
        "permuteProbsOut=null",
        "aclnnMoeTokenPermuteWithEp tokens=BFLOAT16[4,3] indices=INT32[4]:7,2,9,5 probsOptional=BFLOAT16[4] "
        f"rangeOptional=[2,4] numOutTokens=0 {PLAIN} permuteTokensOut=BFLOAT16[2,3] sortedIndicesOut=INT32[4] "
        "permuteProbsOut=BFLOAT16[2]",
    ],
)
def moe_token_permute_with_ep(tokens, indices, probs, limits, number, padded):
    if limits is None:
        return moe_token_permute(tokens, indices, number, padded)
    order, positions = sorted_pairs(indices)
    pairs = order[slice(*limits)]
    count = indices.shape[1] if indices.ndim == 2 else 1
    return [tokens[pairs // count], positions, *([] if probs is None else [probs.reshape(-1)[pairs]])]


# The rows after the last one are those of dropped tokens.
@formula(
    "aclnnMoeTokenPermuteGrad",
    calls=[
        f"aclnnMoeTokenPermuteGrad permutedOutputGrad={dtype}[{rows},3] {EIGHT} numTopk=2 {PLAIN} out={dtype}[4,3]"
        for dtype, rows in (("FLOAT", 5), ("BFLOAT16", 8))
    ],
)
def moe_token_permute_grad(gradient, positions, count, padded):
    return summed(gradient, positions, count)


# Without a range, this is aclnnMoeTokenPermuteGrad.
@formula(
    "aclnnMoeTokenPermuteWithEpGrad",
    calls=[
        f"aclnnMoeTokenPermuteWithEpGrad permutedTokensOutputGrad=FLOAT[6,2] {SIX} "
        f"permutedProbsOutputGradOptional=null numTopk=2 rangeOptional=null {PLAIN} tokenGradOut=FLOAT[3,2] "
        "probsGradOut=null",
        f"aclnnMoeTokenPermuteWithEpGrad permutedTokensOutputGrad=FLOAT16[4,2] {SIX} "
        f"permutedProbsOutputGradOptional=FLOAT16[4] numTopk=3 rangeOptional=[2,5] {PLAIN} tokenGradOut=FLOAT16[2,2] "
        "probsGradOut=FLOAT16[2,3]",
    ],
)
def moe_token_permute_with_ep_grad(gradient, positions, probs_gradient, count, limits, padded):
    if limits is None:
        return summed(gradient, positions, count)
    positions = within(positions, limits)
    tokens = summed(gradient, positions, count)
    return tokens if probs_gradient is None else (tokens, rows_at(probs_gradient, positions).reshape(-1, count))


@formula(
    "aclnnMoeTokenUnpermute",
    calls=[
        # Tokens without rows.
        "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,2] sortedIndices=INT32[0] probsOptional=FLOAT[3,0] "
        f"{UNPADDED} out=FLOAT[3,2]",
        # A shape counts only in the padded mode, which is refused.
        f"aclnnMoeTokenUnpermute permutedTokens=FLOAT[3,2] sortedIndices=INT32[3]:2,0,1 probsOptional=null {PLAIN} "
        "restoreShapeOptional=[1] out=FLOAT[3,2]",
        f"aclnnMoeTokenUnpermute permutedTokens=FLOAT16[5,3] {EIGHT} probsOptional=FLOAT16[4,2] {UNPADDED} "
        "out=FLOAT16[4,3]",
        # The first row is skipped as its probability is 0, and a probability is as its row is after the last one.
        "aclnnMoeTokenUnpermute permutedTokens=FLOAT[3,2]:nan,inf,2,3,4,5 sortedIndices=INT32[4]:1,0,7,2 "
        f"probsOptional=FLOAT[2,2]:2,0,inf,-5 {UNPADDED} out=FLOAT[2,2]",
    ],
)
def moe_token_unpermute(rows, positions, probs, padded, restored_shape):
    return summed(rows, positions, 1 if probs is None else probs.shape[1], probs)


# Without a range, this is aclnnMoeTokenUnpermute.
@formula(
    "aclnnMoeTokenUnpermuteWithEp",
    calls=[
        f"aclnnMoeTokenUnpermuteWithEp permutedTokens=BFLOAT16[4,2] {SIX} probsOptional=null numTopk=2 "
        f"rangeOptional=[1,5] {UNPADDED} out=BFLOAT16[3,2]",
        f"aclnnMoeTokenUnpermuteWithEp permutedTokens=FLOAT[6,2] {SIX} probsOptional=FLOAT[3,2] numTopk=7 "
        f"rangeOptional=null {PLAIN} restoreShapeOptional=[3,2] out=FLOAT[3,2]",
        f"aclnnMoeTokenUnpermuteWithEp permutedTokens=FLOAT[6,2] {SIX} probsOptional=null numTopk=7 "
        f"rangeOptional=null {UNPADDED} out=FLOAT[6,2]",
    ],
)
def moe_token_unpermute_with_ep(rows, positions, probs, count, limits, padded, restored_shape):
    if limits is None:
        return moe_token_unpermute(rows, positions, probs, padded, restored_shape)
    return summed(rows, within(positions, limits), count, probs)


def unpermute_grad(gradient, positions, rows, probs, count):
    """The gradients of as many rows as `count`, and of the probabilities, if there are any."""
    of_pairs = gradient.repeat(len(positions) // max(len(gradient), 1), 0)
    if probs is None:
        return rows_to(of_pairs, positions, count)
    products = of_pairs * rows_at(rows, positions)
    return rows_to(of_pairs * probs.reshape(-1, 1), positions, count), products.sum(1).reshape(probs.shape)


@formula(
    "aclnnMoeTokenUnpermuteGrad",
    calls=[
        "aclnnMoeTokenUnpermuteGrad permuteTokens=FLOAT[3,2] unpermutedTokensGrad=FLOAT[3,2] "
        f"sortedIndices=INT32[3]:2,0,1 probsOptional=null {UNPADDED} permutedTokensGradOut=FLOAT[3,2] "
        "probsGradOut=null",
        f"aclnnMoeTokenUnpermuteGrad permuteTokens=FLOAT16[5,3] unpermutedTokensGrad=FLOAT16[4,3] {EIGHT} "
        f"probsOptional=FLOAT16[4,2] {UNPADDED} permutedTokensGradOut=FLOAT16[5,3] probsGradOut=FLOAT16[4,2]",
    ],
)
def moe_token_unpermute_grad(rows, gradient, positions, probs, padded, restored_shape):
    return unpermute_grad(gradient, positions, rows, probs, len(rows))


# Rows after those of the range are zeros.
@formula(
    "aclnnMoeTokenUnpermuteWithEpGrad",
    calls=[
        f"aclnnMoeTokenUnpermuteWithEpGrad unpermutedTokensGrad=FLOAT[3,2] {SIX} permutedTokensOptional={rows} "
        f"probsOptional={probs} {UNPADDED} rangeOptional={limits} topkNum=2 permutedTokensGradOut={out} "
        f"probsGradOut={probs}"
        for rows, probs, limits, out in (
            ("FLOAT[6,2]", "FLOAT[3,2]", "null", "FLOAT[6,2]"),
            ("null", "null", "[1,5]", "FLOAT[6,2]"),
            ("null", "null", "null", "FLOAT[6,2]"),
        )
    ],
)
def moe_token_unpermute_with_ep_grad(gradient, positions, rows, probs, padded, restored_shape, limits, top_k):
    count = len(positions if rows is None else rows)
    positions = positions if limits is None else within(positions, limits)
    return unpermute_grad(gradient, positions, rows, probs, count)
