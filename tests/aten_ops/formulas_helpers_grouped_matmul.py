"""Grouped matrix products, for formulas/experts: groups, packed weights, scales in bits, and numbers for the calls."""

from __future__ import annotations

import numpy as np

INT8_VALUES = "-6,6,8,5,-2,9,-1,-8,-9,2,5,3,-7,4,11,-3,7"
INT4_VALUES = "2,-4,7,3,-2,-8,1,5,-3,6,-5,4,-7"
PACKED_VALUES = "1055339074,1264353229,-1352101437,480087123,-839972444"  # INT32 that hold INT4
SCALES = "0.0625,0.125,0.03125,0.25,0.5,0.09375,0.1875"
SCALE_BITS = "1031798784,1040187392,1023410176,1048576000,1056964608"  # of the first five in FLOAT


def unwritten(shape, dtype):
    """An output that is not written: its bytes are those with which the tests fill new memory."""
    return np.full(shape, np.frombuffer(b"\xa5" * 8, dtype)[0]).astype(np.int64 if dtype == np.int32 else float)


def groups_of(numbers, list_type):
    """The matrix and the rows of each group. A list has ends (0), sizes (1), or pairs of a matrix and a size (2)."""
    numbers = np.asarray(numbers)
    matrices, sizes = numbers.T if list_type == 2 else (range(len(numbers)), numbers)
    ends = sizes if list_type == 0 else np.cumsum(sizes)
    starts = np.concatenate([[0], ends[:-1]])
    return [(matrix, slice(start, end)) for matrix, start, end in zip(matrices, starts, ends, strict=True)]


def unpacked(numbers, columns):
    """INT4, of which an INT32 holds eight, the first in its lowest bits."""
    if numbers.shape[-1] == columns:
        return numbers
    codes = (numbers[..., None] >> 4 * np.arange(8)) & 15
    return np.where(codes < 8, codes, codes - 16).reshape(*numbers.shape[:-1], columns)


def unblocked(weight):
    """Matrices (..., rows, columns), also of blocks of FRACTAL_NZ: (experts, columns / width, rows / 16, 16, width)."""
    if weight.ndim < 5:
        return weight
    experts, across, down, rows, width = weight.shape
    return weight.transpose(0, 2, 3, 1, 4).reshape(experts, down * rows, across * width)


def decoded(scale):
    """A scale in FLOAT, the bits of which are the lower half of an INT64 or UINT64 (aclnnTransQuantParam.md)."""
    return scale.astype(np.uint32).view(np.float32).astype(float) if scale.dtype == np.int64 else scale


def of_rows(numbers, rows):
    """One number for each row of a matrix, of numbers for all rows, (n), or for groups of as many rows each, (g, n)."""
    numbers = np.atleast_2d(numbers)
    return np.repeat(numbers, rows // len(numbers), 0)
