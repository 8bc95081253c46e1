"""From the documents of ops-transformer that have the functions' names, such as aclnnFusedFloydAttention.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


def with_edges(x, first, second):
    """Products of x, of edges (n, m), with those of (n, k) and (k, m)."""
    m_first = np.swapaxes(x, 2, 3)
    return x @ np.swapaxes(first, 3, 4) + np.swapaxes(m_first @ np.moveaxis(second, 2, 4), 2, 3)


def of_edges(weights, first, second):
    """Sums over k of the edges (n, k) and (k, m), with weights (n, m, k)."""
    return weights @ first + np.swapaxes(np.swapaxes(weights, 2, 3) @ np.swapaxes(second, 2, 3), 2, 3)


def scores(query, key1, key2, mask, scale):
    result = with_edges(query, key1, key2) * scale
    return result if mask is None else np.where(mask != 0, -np.inf, result)


# Sums of 64 products, and exponentials of them, in FLOAT.
SUMS = 2e-6


@formula("aclnnFusedFloydAttention", error=SUMS)
def floyd_attention(query, key1, value1, key2, value2, mask, scale):
    every = scores(query, key1, key2, mask, scale)
    largest = every.max(-1, keepdims=True)
    powers = np.exp(every - largest)
    total = powers.sum(-1, keepdims=True)
    copies = np.ones(8)
    return largest * copies, total * copies, of_edges(powers / total, value1, value2)


@formula("aclnnFusedFloydAttentionGrad", error=SUMS)
def floyd_attention_grad(query, key1, value1, key2, value2, grad, mask, largest, total, result, scale):
    p = np.exp(scores(query, key1, key2, mask, scale) - largest[..., :1]) / total[..., :1]
    of_scores = p * (with_edges(grad, value1, value2) - np.sum(grad * result, -1, keepdims=True)) * scale

    def of_both(weights, x):
        first = np.swapaxes(weights, 3, 4) @ x
        second = np.swapaxes(np.moveaxis(weights, 2, 4) @ np.swapaxes(x, 2, 3), 2, 3)
        return first, second

    of_key1, of_key2 = of_both(of_scores, query)
    of_value1, of_value2 = of_both(p, grad)
    return of_edges(of_scores, key1, key2), of_key1, of_value1, of_key2, of_value2
