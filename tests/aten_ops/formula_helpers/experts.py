"""Rows of a mixture of experts, for the formulas in formulas/experts: sorted by expert, gathered and scattered."""

from __future__ import annotations

import numpy as np


def sorted_pairs(experts):
    """The pair of a token and an expert in each row, sorted by expert and otherwise in order; the row of each pair."""
    order = np.argsort(experts.reshape(-1), kind="stable")
    return order, np.argsort(order)


def rows_at(rows, positions):
    """The rows at positions; zeros for a position out of range."""
    valid = (positions >= 0) & (positions < len(rows))
    result = np.zeros((len(positions), *rows.shape[1:]))
    result[valid] = rows[positions[valid]]
    return result


def rows_to(rows, positions, count):
    """As many rows as `count`, with the given ones at the positions and zeros elsewhere."""
    valid = (positions >= 0) & (positions < count)
    result = np.zeros((count, *rows.shape[1:]))
    result[positions[valid]] = rows[valid]
    return result


def to_int8(values):
    """The nearest integers, to even, within INT8."""
    return np.clip(np.rint(values), -128, 127)
