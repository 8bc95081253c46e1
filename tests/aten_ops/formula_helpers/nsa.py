"""Native sparse attention, for the formulas in formulas/attention/nsa_*.py (ops-transformer: aclnnNsa*.md)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

# Small numbers of both signs for queries, keys, values and the gradient of the result, in lists whose lengths do not
# fit the sizes of heads.
QUERY = "0.5,-0.75,0.25,1,-0.375,-1,0.625,0.125,-0.875,0.75,-0.25"
GRADIENT = "-0.875,0.5,0.25,-1,1,-0.625,0.125,0.375,-0.25,0.875,0.75,-0.5,0.625,-0.375,-0.75,1.125,-0.125,0.0625"
# The score of a hidden key. It is finite: a query that sees no key weights all keys equally.
HIDDEN = float(np.finfo(np.float32).min)


def attend(query: Any, key: Any, value: Any, scale: float, hidden: Any = False) -> tuple[Any, Any, Any, Any]:
    """The result of attention, the probabilities, and the maxima and sums of the softmax."""
    scores = np.where(hidden, HIDDEN, scale * (query @ key.swapaxes(-1, -2)))
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - largest)
    total = powers.sum(-1, keepdims=True)
    return powers / total @ value, powers / total, largest, total


def spans(ends: Any) -> list[slice]:
    """The places of packed sequences, whose lengths are added up."""
    return [slice(*each) for each in pairwise([0, *ends])]


def block_scores(probabilities: Any, a: Any, stride: int, count: int) -> Any:
    """The importance of blocks: P_slc of the documents, which counts blocks from 1 and windows from 0.

    The test of op-plugin, test_npu_nsa_compress_attention_infer.py, reads its indices so.
    """
    m, n = a.select_block_size // stride, a.compress_block_size // stride
    scores = np.zeros((*probabilities.shape[:-1], count))
    for j, of_block, of_window in np.ndindex(count, m, n):
        window = m * (j + 1) - of_block - of_window
        if 0 <= window < probabilities.shape[-1]:
            scores[..., j] += probabilities[..., window]
    return scores


def most_important(scores: Any, count: int) -> Any:
    """The blocks of the largest scores; among equal ones, the first."""
    return np.argsort(-scores, -1, kind="stable")[..., :count]
