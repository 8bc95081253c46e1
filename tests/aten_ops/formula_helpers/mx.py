"""Quantisation to FLOAT8 and FLOAT4 with scales of blocks, MX in particular, for the formulas in formulas/quantized.

By ops-nn: aclnnDynamicMxQuantV3.md, which has all algorithms, and aclnnGroupedDynamicMxQuantV2.md.
"""

from __future__ import annotations

import random

import numpy as np

from tests.aten_ops.formula_helpers.types import TYPES, cast, single

BLOCK = 32


def numbers(count=127, seed=0):
    """Numbers that BFLOAT16 and FLOAT16 hold, few of them large: the largest ones of blocks differ."""
    draw = random.Random(seed)
    bits = [draw.getrandbits(8) | 256 for _ in range(count)]
    return ",".join(str(draw.choice((-1, 1)) * draw.randrange(64, 128) / 128 * (each & -each)) for each in bits)


def scales(maximum, dtype, algorithm, largest=0, least=0):
    """The scale of blocks with these largest magnitudes: a power of two, which is at least 2**-127 in FLOAT8_E8M0."""
    emax, _, _, most = TYPES[dtype]
    if algorithm == 0:
        exponent = np.frexp(maximum)[1] - 1 - emax
        return np.where(np.isfinite(maximum), 2.0 ** np.maximum(np.where(maximum == 0, -127, exponent), -127), np.nan)
    exact = single(np.maximum(maximum, least) / (largest or most))
    mantissa, exponent = np.frexp(exact)
    is_normal = exact >= 2.0**-126
    goes_up = np.where(is_normal, mantissa > 0.5, (algorithm == 1) & (exact > 2.0**-127))
    return np.where(np.isfinite(maximum), 2.0 ** (np.where(is_normal, exponent - 1, -127) + goes_up), np.nan)


def elements(values, scale, dtype, mode):
    """Quantised by a scale; it is nan if there is inf or nan in the block, whose elements become 0."""
    return np.where(np.isnan(scale), 0, cast(np.nan_to_num(values / scale), dtype, mode))


def mx(x, axis, dtype, mode="rint", algorithm=0, largest=0, least=0, block=BLOCK):
    """Quantised in blocks along an axis, and the scales of the blocks in pairs, which are the last dimension."""
    rows = np.moveaxis(x, axis, -1)
    *outer, size = rows.shape
    pairs = -(-size // (2 * block))
    padding = [(0, 0)] * len(outer)
    blocks = np.pad(rows, [*padding, (0, 2 * pairs * block - size)]).reshape(*outer, 2 * pairs, block)
    scale = scales(np.abs(blocks).max(-1), dtype, algorithm, largest, least)
    scale[..., -(-size // block) :] = 2.0**-127  # makes the last pair complete
    y = elements(blocks, scale[..., None], dtype, mode).reshape(*outer, 2 * pairs * block)[..., :size]
    at = axis % x.ndim
    return np.moveaxis(y, -1, at), np.moveaxis(scale.reshape(*outer, pairs, 2), -2, at)


def mx_groups(x, ends, dtype, mode="rint", algorithm=0, largest=0):
    """Quantised in blocks along the rows of each group, whose scales begin after those of whole pairs and groups."""
    y, scale = np.zeros(x.shape), np.full((len(x) // (2 * BLOCK) + len(ends), x.shape[1], 2), 2.0**-127)
    for group, (begin, end) in enumerate(zip((0, *ends), ends, strict=False)):
        y[begin:end], pairs = mx(x[begin:end], 0, dtype, mode, algorithm, largest)
        first = begin // (2 * BLOCK) + group
        scale[first : first + len(pairs)] = pairs
    return y, scale


def mx_squares(x, dtype, mode, algorithm, largest):
    """Quantised in squares of the last two dimensions, and the scale of each row and of each column of the squares."""
    *outer, rows, columns = x.shape
    down, across = -(-rows // BLOCK), -(-columns // BLOCK)
    padding = [(0, 0)] * len(outer) + [(0, down * BLOCK - rows), (0, across * BLOCK - columns)]
    squares = np.abs(np.pad(x, padding)).reshape(*outer, down, BLOCK, across, BLOCK)
    return broadcast_squares(scales(squares.max((-3, -1)), dtype, algorithm, largest), x, dtype, mode)


def broadcast_squares(scale, x, dtype, mode="rint"):
    """Quantised by the scale of each square, and the scales of its rows and of its columns in pairs."""
    rows, columns = x.shape[-2:]
    by_row = scale.repeat(BLOCK, -2)[..., :rows, :]
    by_column = scale.repeat(BLOCK, -1)[..., :columns]
    y = elements(x, by_row.repeat(BLOCK, -1)[..., :columns], dtype, mode)
    return y, paired(by_row, -1), paired(by_column, -2)


def paired(scale, axis):
    """Scales with pairs of those along an axis as the last dimension."""
    last = np.moveaxis(scale, axis, -1)
    complete = np.pad(last, [(0, 0)] * (last.ndim - 1) + [(0, last.shape[-1] % 2)], constant_values=2.0**-127)
    pairs = complete.reshape(*last.shape[:-1], complete.shape[-1] // 2, 2)
    return np.moveaxis(pairs, -2, axis % scale.ndim)


def of_elements(scale, axis, size):
    """The scale of each element along an axis of a tensor; the scales of blocks are in pairs."""
    pairs = np.moveaxis(scale, axis, -2)
    each = pairs.reshape(*pairs.shape[:-2], 2 * pairs.shape[-2]).repeat(BLOCK, -1)[..., :size]
    return np.moveaxis(each, -1, axis)


def halves(x, gate_is_left, axis=-1):
    """The halves of a tensor, that of the gate first."""
    left, right = np.split(x, 2, axis)
    return (left, right) if gate_is_left else (right, left)
