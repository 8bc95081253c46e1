"""Products of quantised matrices in CANN's modes, for the formulas of quantised products in formulas/quantized."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.quantized import spread
from tests.aten_ops.formula_helpers.types import decoded, to_integers, unpacked_float4, unpacked_int4

OF_256 = 256


def transposed(matrix):
    return matrix.swapaxes(-1, -2)


def unpacked(x, k=None):
    """INT32 holds eight INT4: such numbers are beyond INT8. They lie along the columns, or the rows if these fit k."""
    if x.dtype != np.int64 or np.abs(x).max(initial=0) <= 128:
        return x
    return transposed(unpacked_int4(transposed(x))) if k == 8 * x.shape[-2] else unpacked_int4(x)


def scale_of_mx(scale, k_is_last):
    """Pairs of scales of 32 elements each, in the last dimension, as (..., k, size)."""
    if k_is_last:
        return transposed(scale.reshape(*scale.shape[:-2], 2 * scale.shape[-2]))
    return transposed(scale).reshape(*scale.shape[:-3], 2 * scale.shape[-3], scale.shape[-2])


def by_channels(sums, x1_scale, x2_scale, x2_offset, bias, adds_first):
    """T-C, T-T, K-C and K-T: scales of all of x1 or its rows, and of all of x2 or its columns."""
    added = 0 if bias is None else bias
    of_rows = 1 if x1_scale is None else x1_scale.reshape(-1, 1)
    result = (sums + adds_first * added) * decoded(x2_scale) * of_rows + (not adds_first) * added
    return result if x2_offset is None else to_integers(np.rint(result) + x2_offset)


# ops-nn: aclnnQuantMatmulV5.md and aclnnQuantMatmulWeightNz.md, with the modes in quant_mode_introduction.md.
def product(x1, x2, x1_scale, x2_scale, y_scale, x2_offset, y_offset, bias, transposes1, transposes2, group_size):
    a = transposed(unpacked(x1)) if transposes1 else unpacked(x1)
    k = a.shape[-1]
    x2 = transposed(x2) if transposes2 else x2
    if y_scale is not None:  # T-CG; a FLOAT holds eight FLOAT4
        n = y_scale.size
        b = x2 if x2.shape[-1] == n else unpacked_float4(x2)
        of_b = transposed(x2_scale) if transposes2 else x2_scale
        return a @ (b * spread(of_b, k, n, 32, 1)) * decoded(y_scale)
    if x2_scale.ndim > x2.ndim:
        of_a, of_b = scale_of_mx(x1_scale, not transposes1), scale_of_mx(x2_scale, transposes2)
        b = x2 * spread(of_b, k, x2.shape[-1], 32, 1)
        result = a * transposed(spread(of_a, k, a.shape[-2], 32, 1)) @ b
        return result if bias is None else result + bias
    if y_offset is not None:
        # yOffset is "8 * x2 * x2Scale" summed over k: what the product lacks, as its kernel splits x1 into 16 times its
        # higher half and its lower half minus 8.
        b, of_b = unpacked_int4(x2), decoded(x2_scale)
        b = b * (of_b if of_b.ndim == 1 else spread(of_b, k, b.shape[-1], OF_256, 1))
        return ((a - 8) @ b + y_offset) * x1_scale.reshape(-1, 1)
    b = unpacked(x2, k)
    n = b.shape[-1]
    if x1_scale is None or x1_scale.ndim == 1:
        is_first = bias is not None and (bias.dtype == np.int64 or x2_scale.dtype == np.int64)
        return by_channels(a @ b, x1_scale, x2_scale, x2_offset, bias, is_first)
    if x2_offset is not None:
        return a @ ((b - spread(x2_offset, k, n, 256, 1)) * spread(x2_scale, k, n, 256, 1)) * x1_scale
    of_a, of_b = transposed(x1_scale) if transposes1 else x1_scale, transposed(x2_scale) if transposes2 else x2_scale
    m = a.shape[-2]
    result = a * spread(of_a, m, k, group_size >> 32, 128) @ (b * spread(of_b, k, n, 128, 128))
    return result if bias is None else result + bias
