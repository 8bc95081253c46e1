"""Parts of quantised functions, for the formulas in formulas/quantized and formulas/matmul."""

from __future__ import annotations

import math

import numpy as np


def call(name, parameters, **given):
    """A call in the syntax of samples.txt; parameters that are not given are null, or what follows them after "="."""
    defaults = dict(each.split("=") if "=" in each else (each, "null") for each in parameters.split())
    assert set(given) <= set(defaults), set(given) - set(defaults)
    return f"{name} " + " ".join(f"{key}={given.get(key, default)}" for key, default in defaults.items())


def bits_of(*scales, offset=0):
    """Scales and an offset as aclnnTransQuantParamV2 makes them: bits of FLOAT, 9 bits from bit 37, and bit 46."""
    return ",".join(str(int(np.float32(scale).view(np.uint32)) | (offset & 511) << 37 | 1 << 46) for scale in scales)


def rows_of(x):
    """The rows of the last dimension, also if they have no elements."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def group_of_rows(ends, rows):
    """The group of each row, from the ends of the groups; rows after them belong to the last one."""
    return np.minimum(np.sum(np.arange(rows)[:, None] >= ends, 1), len(ends) - 1)


def spread(scale, rows, columns, row_group, column_group):
    """The scale of each element of a matrix, of those of groups; the last groups may be smaller."""
    return scale.repeat(row_group, -2).repeat(column_group, -1)[..., :rows, :columns]
