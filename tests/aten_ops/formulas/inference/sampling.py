from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.formulas import formula

LOGITS = "FLOAT[4,6]:1,3.5,2,3,-1,2.5,2,2,5,4,4.5,0,0,1,3,2.5,3.25,-2,0.5,4,4,1,2,3"
SHARES = (
    "FLOAT[4,6]:0.125,0.1875,0.15625,0.1875,0.0625,0.1875,0.15625,0.15625,0.25,0.21875,0.25,0.09375,0.09375,0.125,"
    "0.1875,0.1875,0.1875,0.03125,0.125,0.21875,0.21875,0.125,0.15625,0.1875"
)
Q = (
    "FLOAT[4,6]:0.25,0.5625,1.6875,1.25,0.25,0.9375,1,0.375,1.5625,0.3125,0.875,1.125,0.9375,1.25,1.5625,2,0.625,"
    "1.375,1.4375,0.625,0.0625,2,0.6875,0.6875"
)
FILTERS = "topK=INT32[4]:3,2,0,2000 topP=FLOAT[4]:1,0.5,0.75,1"


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def nucleus(probabilities, p, includes_equal):
    """The number of descending probabilities until their sum reaches p (or, if equal is included, exceeds it)."""
    before = np.cumsum(probabilities) - probabilities
    return max(1, np.sum(before <= p if includes_equal else before < p))


def passed(row, k, p, min_p, most, is_logits, includes_equal):
    """The tokens that pass the filters, and their probabilities: unsorted if neither k, p nor min_p asks for it."""
    is_sorted = 1 <= k <= most or p < 1 or min_p >= 1
    tokens = np.argsort(-row, kind="stable") if is_sorted else np.arange(len(row))
    if p <= 0:
        tokens = tokens[:1]
    elif 1 <= k <= most:
        tokens = tokens[:k]
    shares = softmax(row[tokens]) if is_logits else row[tokens]
    if 0 < p < 1:
        tokens = tokens[: nucleus(shares, p, includes_equal)]
    shares = shares[: len(tokens)]
    kept = np.arange(len(tokens)) < 1 if min_p >= 1 else shares >= shares.max() * min_p
    return tokens[kept], shares[kept]


def selected(tokens, shares, q, eps):
    weights = shares if q is None else shares / (q[: len(shares)] + eps)
    return tokens[np.argmax(weights)]


# ops-nn: aclnnTopKTopPSample.md. The mask (probsSum - sortedLogits) > topP keeps one token more if a sum is exactly p.
# Outputs that are not requested keep their values.
@formula(
    "aclnnTopKTopPSample",
    calls=[
        f"aclnnTopKTopPSample logits={LOGITS} {FILTERS} q={q} eps=1e-08 isNeedLogits={needs} topKGuess=32 "
        "logitsSelectIdx=INT64[4] logitsTopKPSelect=FLOAT[4,6]"
        for q, needs in ((Q, "true"), (Q, "false"), ("null", "true"))
    ],
)
def sample(logits, ks, ps, q, eps, needs_logits, _guess, outputs):
    index = np.zeros(len(logits), np.int64)
    left = np.full(logits.shape, -np.inf) if needs_logits else unwritten(outputs["logitsTopKPSelect"])
    for i, (row, k, p) in enumerate(zip(logits, ks.flat, ps.flat, strict=True)):
        tokens, shares = passed(row, k, p, 0, min(1024, len(row)), True, True)
        index[i] = selected(tokens, shares, None if q is None else q[i], eps)
        if needs_logits:
            left[i, tokens] = row[tokens]
    return index, left


# ops-nn: aclnnTopKTopPSampleV2.md. A token that remains because of p <= 0 has the probability 1, as in CANN's own
# reference (index/top_k_top_p_sample_v2/tests/st). The last three outputs are for isNeedLogits and isNeedSampleResult.
def call_v2(logits, filters, min_p, q, k_max, is_logits, needs_logits, needs_result):
    index = "null" if needs_result == "true" else "INT64[4]"
    return (
        f"aclnnTopKTopPSampleV2 logits={logits} {filters} q={q} minPs={min_p} eps=1e-08 isNeedLogits={needs_logits} "
        f"topKGuess=32 ksMax={k_max} inputIsLogits={is_logits} isNeedSampleResult={needs_result} "
        f"logitsSelectIdx={index} logitsTopKPSelect=FLOAT[4,6] logitsIdx=INT64[4,6] logitsSortMasked=FLOAT[4,6]"
    )


@formula(
    "aclnnTopKTopPSampleV2",
    calls=[
        call_v2(values, f"topK=INT32[4]:{k} topP=FLOAT[4]:{p}", min_p, q, 9, is_logits, needs_logits, needs_result)
        for values, k, p, min_p, is_logits in (
            (LOGITS, "3,2,0,2000", "1,0.5,0.75,1", "null", "true"),
            (LOGITS, "3,2,0,17", "1,0.5,0.75,1", "FLOAT[4]:0,0.5,0.25,0.25", "true"),
            (LOGITS, "3,0,0,4", "0,1,-1,0.875", "FLOAT[4]:0.25,0.125,0.5,1", "true"),
            (SHARES, "3,2,0,2000", "1,0.25,0.5,1", "FLOAT[4]:0,0,0,0.5", "false"),
        )
        for q, needs_logits, needs_result in (
            *((Q, "true", "false"), ("null", "true", "false")),
            *(("null", "true", "true"), ("null", "false", "true")),
        )
    ]
    # Tokens after the first eight are not selected by k, because ksMax rounds up to 8.
    + [
        "aclnnTopKTopPSampleV2 logits=FLOAT[2,12] topK=INT32[2]:9,8 topP=FLOAT[2]:1 q=null minPs=null eps=1e-08 "
        "isNeedLogits=true topKGuess=32 ksMax=3 inputIsLogits=true isNeedSampleResult=true logitsSelectIdx=null "
        "logitsTopKPSelect=FLOAT[2,12] logitsIdx=INT64[2,12] logitsSortMasked=FLOAT[2,12]"
    ],
)
def sample_v2(logits, ks, ps, q, min_ps, eps, needs_logits, _guess, k_max, is_logits, needs_result, outputs):
    index, ids = np.zeros(len(logits), np.int64), np.zeros(logits.shape, np.int64)
    left, result = np.full(logits.shape, -np.inf if is_logits else 0.0), np.zeros(logits.shape)
    most = min(-(-k_max // 8) * 8, logits.shape[1])
    least = np.zeros(len(logits)) if min_ps is None else min_ps
    for i, (row, k, p, min_p) in enumerate(zip(logits, ks.flat, ps.flat, least.flat, strict=True)):
        tokens, shares = passed(row, k, p, min_p, most, is_logits, False)
        index[i] = selected(tokens, shares, None if q is None else q[i], eps)
        left[i, tokens] = row[tokens]
        ids[i, : len(tokens)], result[i, : len(tokens)] = tokens, shares
    results = {"logitsSelectIdx": index}
    results |= {"logitsTopKPSelect": left} if needs_logits else {}
    results |= {"logitsIdx": ids, "logitsSortMasked": result} if needs_result else {}
    return [results.get(name, unwritten(output)) for name, output in outputs.items() if output is not None]


# ops-nn: aclnnApplyTopKTopP.md. At least one token of a row remains; k counts if it is in (0, size).
@formula(
    "aclnnApplyTopKTopP",
    calls=[
        "aclnnApplyTopKTopP logits=FLOAT[2,4]:-2.3,-0.91,-1.2,-1.61,0.5,2,1.5,-1 p=FLOAT[2]:0.65,0.9 k=null "
        "out=FLOAT[2,4]",
        "aclnnApplyTopKTopP logits=FLOAT[3,4]:3,1,3.5,2,4,1,2,3,3,1,3,2 p=null k=INT32[3]:2,0,1 out=FLOAT[3,4]",
        "aclnnApplyTopKTopP logits=FLOAT[3,4]:1,2,3,4,5,6,7,8,9,12,11,10 p=FLOAT[3]:0.2,0.75,0.6 k=INT32[3]:1,3,4 "
        "out=FLOAT[3,4]",
    ],
)
def apply(logits, ps, ks):
    result = np.full(logits.shape, -np.inf)
    for i, row in enumerate(logits if logits.size else []):
        order = np.argsort(row, kind="stable")
        values = row[order]
        if ks is not None and 0 < ks.flat[i] < len(row):
            values = np.where(values < values[len(row) - ks.flat[i]], -np.inf, values)
        if ps is not None:
            is_dropped = np.cumsum(softmax(values)) <= 1 - ps.flat[i]
            values = np.where(is_dropped & (np.arange(len(row)) < len(row) - 1), -np.inf, values)
        result[i, order] = values
    return result
