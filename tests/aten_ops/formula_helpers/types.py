"""Types: rounding to them, numbers packed in others, and what an output holds that is not written."""

from __future__ import annotations

import numpy as np

from tests import cabi
from tests.aten_ops.stored import StoredMemory, is_stored_apart
from tests.aten_ops.sweep import dtype_of
from tests.cabi import Dtype

INT8, INT32, INT4 = Dtype.INT8, Dtype.INT32, Dtype.INT4
E5M2, E4M3, E2M1 = Dtype.FLOAT8_E5M2, Dtype.FLOAT8_E4M3FN, Dtype.FLOAT4_E2M1
# A type's emax, the exponent of its least normal number, its bits after the point, and its largest number.
TYPES = {E5M2: (15, -14, 2, 57344.0), E4M3: (8, -6, 3, 448.0), E2M1: (2, 0, 1, 6.0)}
# The largest numbers of types of quantised numbers; an INT32 holds eight INT4.
LARGEST = {INT8: 127, INT4: 7, INT32: 7} | {dtype: largest for dtype, (*_, largest) in TYPES.items()}


def single(values):
    """Rounded to FLOAT."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32).astype(np.float64)


def half(values):
    """Rounded to FLOAT16."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float16).astype(np.float64)


def bfloat16(values):
    """Rounded to BFLOAT16, of which FLOAT has 16 more bits."""
    unit = 2.0 ** (np.maximum(np.frexp(values)[1], -125) - 8)
    return np.rint(values / unit) * unit


def away_from_zero(values):
    """Rounded to the nearest whole number, halves away from 0."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def cast(values, dtype, mode="rint"):
    """Rounded to FLOAT8 or FLOAT4, and limited to its range."""
    _, least, bits, largest = TYPES[dtype]
    unit = 2.0 ** (np.maximum(np.frexp(values)[1] - 1, least) - bits)
    steps = values / unit
    rounded = {"rint": np.rint, "floor": np.floor, "round": away_from_zero}
    return np.clip(rounded[mode or "rint"](steps) * unit, -largest, largest)


def to_integers(values, bits=8):
    """Rounded to nearest, ties to even, and limited to a signed type of so many bits."""
    return np.clip(np.rint(values), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def quantised(values, dtype):
    """Rounded to nearest, ties to even, and limited to a type of LARGEST; another type takes the values as they are."""
    if dtype in TYPES:
        return cast(values, dtype)
    if dtype == INT32:
        return packed_int4(to_integers(values, 4))
    return to_integers(values, 4 if dtype == INT4 else 8) if dtype in LARGEST else values


def wrapped(values, output):
    """Integers without the bits that the output's type does not have; other types take the values as they are."""
    dtype = dtype_of(output)
    return np.asarray(values).astype(np.int64).astype(cabi.storage_type(dtype)) if dtype in cabi.INTEGER else values


def saturated(values, output):
    """Integers limited to the output's type, nan as 0; other types take the values as they are."""
    dtype = dtype_of(output)
    if dtype not in cabi.INTEGER:
        return values
    limits = np.iinfo(cabi.storage_type(dtype))
    return np.clip(np.nan_to_num(values, posinf=np.inf, neginf=-np.inf), limits.min, limits.max)


def unwritten(output):
    """What an output holds that is not written."""
    dtype = dtype_of(output)
    apart = is_stored_apart(dtype, output.format)
    memory = StoredMemory(dtype, output.shape, output.format) if apart else cabi.Memory(dtype, output.shape)
    return memory.read()


# ---- Numbers in the bits of others


def decoded(scale):
    """A scale, which an INT64 or UINT64 holds as FLOAT in its lower half (ops-nn: aclnnTransQuantParamV2.md)."""
    return scale.astype(np.uint32).view(np.float32).astype(float) if scale.dtype == np.int64 else scale


def decoded_offset(bits):
    codes = bits >> 37 & 511
    return np.where(codes < 256, codes, codes - 512)


def nibbles(packed):
    """The codes of 4 bits in INT32 or FLOAT, the first one in the lowest bits, along the last dimension."""
    bits = packed if packed.dtype == np.int64 else packed.astype(np.float32).view(np.uint32).astype(np.int64)
    return ((bits[..., None] >> 4 * np.arange(8)) & 15).reshape(*packed.shape[:-1], 8 * packed.shape[-1])


def unpacked_int4(packed):
    codes = nibbles(packed)
    return np.where(codes < 8, codes, codes - 16)


def unpacked_to(numbers, columns):
    """INT4 in columns, which may be packed in INT32."""
    return numbers if numbers.shape[-1] == columns else unpacked_int4(numbers)


def unpacked_float4(packed):
    return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[nibbles(packed)]


def packed_int4(values):
    """Eight numbers of 4 bits in an INT32, the first one in the lowest bits."""
    codes = (values.astype(np.int64) & 15).reshape(*values.shape[:-1], values.shape[-1] // 8, 8)
    return np.sum(codes << 4 * np.arange(8), -1).astype(np.uint32).view(np.int32)
