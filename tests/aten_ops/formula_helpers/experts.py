"""For the formulas in formulas/experts: rows sorted by expert, gathered and scattered; grouped matrix products."""

from __future__ import annotations

import numpy as np

# Numbers for calls.
INT8_VALUES = "-6,6,8,5,-2,9,-1,-8,-9,2,5,3,-7,4,11,-3,7"
INT4_VALUES = "2,-4,7,3,-2,-8,1,5,-3,6,-5,4,-7"
PACKED_VALUES = "1055339074,1264353229,-1352101437,480087123,-839972444"  # INT32 that hold INT4
SCALES = "0.0625,0.125,0.03125,0.25,0.5,0.09375,0.1875"
SCALE_BITS = "1031798784,1040187392,1023410176,1048576000,1056964608"  # of the first five in FLOAT


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


# ---- Grouped matrix products


def groups_of(numbers, list_type):
    """The matrix and the rows of each group. A list has ends (0), sizes (1), or pairs of a matrix and a size (2)."""
    numbers = np.asarray(numbers)
    matrices, sizes = numbers.T if list_type == 2 else (range(len(numbers)), numbers)
    ends = sizes if list_type == 0 else np.cumsum(sizes)
    starts = np.concatenate([[0], ends[:-1]])
    return [(matrix, slice(start, end)) for matrix, start, end in zip(matrices, starts, ends, strict=True)]


def unblocked(weight):
    """Matrices (..., rows, columns), also of blocks of FRACTAL_NZ: (experts, columns / width, rows / 16, 16, width)."""
    if weight.ndim < 5:
        return weight
    experts, across, down, rows, width = weight.shape
    return weight.transpose(0, 2, 3, 1, 4).reshape(experts, down * rows, across * width)


def of_rows(numbers, rows):
    """One number for each row of a matrix, of numbers for all rows, (n), or for groups of as many rows each, (g, n)."""
    numbers = np.atleast_2d(numbers)
    return np.repeat(numbers, rows // len(numbers), 0)
