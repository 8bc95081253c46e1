"""Parts of quantised functions, for the formulas in formulas/quantized and formulas/matmul: calls, bits and types."""

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


def decoded(scale):
    """A scale, which an INT64 or UINT64 holds as FLOAT in its lower half (ops-nn: aclnnTransQuantParamV2.md)."""
    return scale.astype(np.uint32).view(np.float32).astype(float) if scale.dtype == np.int64 else scale


def decoded_offset(bits):
    codes = bits >> 37 & 511
    return np.where(codes < 256, codes, codes - 512)


def nibbles(packed):
    """The codes of 4 bits in INT32 or FLOAT, the first one in the lowest bits, along the last dimension."""
    bits = packed if packed.dtype == np.int64 else packed.astype(np.float32).view(np.uint32).astype(np.int64)
    return ((bits[..., None] >> 4 * np.arange(8)) & 15).reshape(*packed.shape[:-1], -1)


def unpacked_int4(packed):
    codes = nibbles(packed)
    return np.where(codes < 8, codes, codes - 16)


def unpacked_float4(packed):
    return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[nibbles(packed)]


def packed_int4(values):
    """Eight numbers of 4 bits in an INT32, the first one in the lowest bits."""
    codes = (values.astype(np.int64) & 15).reshape(*values.shape[:-1], values.shape[-1] // 8, 8)
    return np.sum(codes << 4 * np.arange(8), -1).astype(np.uint32).view(np.int32)


def to_integers(values, bits=8):
    """Rounded to nearest, ties to even, and saturated."""
    return np.clip(np.rint(values), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# The mantissa bits, the exponent of the smallest normal number, and the largest number.
MINIFLOATS = {"FLOAT8_E4M3FN": (3, -6, 448), "FLOAT8_E5M2": (2, -14, 57344), "FLOAT4_E2M1": (1, 0, 6)}


def to_minifloat(values, dtype):
    """Rounded to nearest, ties to even, and saturated."""
    mantissa_bits, least, largest = MINIFLOATS[dtype]
    unit = 2.0 ** (np.maximum(np.frexp(values)[1] - 1, least) - mantissa_bits)
    return np.clip(np.rint(values / unit) * unit, -largest, largest)


def blocks_of_minifloat(values, dtype, algorithm=0, largest=0):
    """Elements, and for each 32 of them a power of two in FLOAT8_E8M0; these are stored in pairs (MX).

    The first algorithm is that of OCP: the exponent of the largest magnitude, less that of the type's largest number.
    The others take the largest magnitude over that number, or over a given one, rounded up to a power of two.
    """
    size, largest = values.shape[-1], largest or MINIFLOATS[dtype][2]
    padded = np.zeros((*values.shape[:-1], -(-size // 64) * 64))
    padded[..., :size] = values
    blocks = padded.reshape(*values.shape[:-1], -1, 32)
    most = np.abs(blocks).max(-1)
    with np.errstate(divide="ignore"):
        exponents = np.log2(most / largest) if algorithm else np.floor(np.log2(most)) - np.floor(np.log2(largest))
    scales = 2.0 ** np.maximum(np.ceil(exponents) if algorithm else exponents, -127)
    elements = to_minifloat(blocks / scales[..., None], dtype).reshape(padded.shape)[..., :size]
    return elements, scales.reshape(*scales.shape[:-1], -1, 2)


def rows_of(x):
    """The rows of the last dimension, also if they have no elements."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def group_of_rows(ends, rows):
    """The group of each row, from the ends of the groups; rows after them belong to the last one."""
    return np.minimum(np.sum(np.arange(rows)[:, None] >= ends, 1), len(ends) - 1)


def unwritten(shape, dtype):
    """An output that is not written: its bytes are those with which the tests fill new memory."""
    return np.full(shape, np.frombuffer(b"\xa5" * 8, dtype)[0]).astype(float)


def spread(scale, rows, columns, row_group, column_group):
    """The scale of each element of a matrix, of those of groups; the last groups may be smaller."""
    return scale.repeat(row_group, -2).repeat(column_group, -1)[..., :rows, :columns]


def gelu(x, approximates):
    if approximates:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + np.vectorize(math.erf, [float])(x / np.sqrt(2)))
