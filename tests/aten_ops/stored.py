"""Memory of tensors in types and formats that numpy does not support: INT4, FLOAT4, FLOAT8 and private formats.

The layouts follow CANN's document of its data formats, independently of the library's own code.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests import cabi
from tests.cabi import Dtype

FORMATS = {"NZ": 29, "NC1HWC0": 3, "FRACTAL_Z": 4, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33}
TRANSPOSED = "TRANSPOSED"  # ND, with the last two dimensions exchanged in memory
_ROWS = 16


def _minifloat(exponent_bits: int, mantissa_bits: int, bias: int, finite: bool) -> list[float]:
    """The values of the positive codes of a small floating type; `finite` has nan only in its last code."""
    values = []
    for code in range(1 << (exponent_bits + mantissa_bits)):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits)
        if exponent == 0:
            values.append(fraction * 2.0 ** (1 - bias))
        else:
            values.append((1 + fraction) * 2.0 ** (exponent - bias))
    last = (1 << exponent_bits) - 1 << mantissa_bits
    if finite:
        if mantissa_bits > 1:
            values[-1] = math.nan
    else:
        values[last:] = [math.inf] + [math.nan] * ((1 << mantissa_bits) - 1)
    return values


def _signed(values: Sequence[float]) -> list[float]:
    return [*values, *(-value for value in values)]


# The value of each code.
_CODES: dict[Dtype, list[float]] = {
    Dtype.INT4: [*range(8), *range(-8, 0)],
    Dtype.FLOAT4_E2M1: _signed(_minifloat(2, 1, 1, finite=True)),
    Dtype.FLOAT8_E4M3FN: _signed(_minifloat(4, 3, 7, finite=True)),
    Dtype.FLOAT8_E5M2: _signed(_minifloat(5, 2, 15, finite=False)),
    Dtype.FLOAT8_E8M0: [*(2.0 ** (code - 127) for code in range(255)), math.nan],
}


def is_stored_apart(dtype: Dtype, format: str) -> bool:
    """True if numpy does not support arrays of such elements in order."""
    return dtype in _CODES or format != ""


class StoredMemory(cabi.Memory):
    """One tensor's storage: codes of 4 or 8 bits or elements that numpy supports, in order or in blocks."""

    def __init__(self, dtype: Dtype, shape: Sequence[int], format: str = ""):
        self.element_dtype, self.element_shape, self.format = dtype, tuple(shape), format
        self.bits = 4 if len(_CODES.get(dtype, ())) == 16 else 8 * self._item().itemsize
        self.width = 256 // self.bits  # C0
        count = math.prod(self._sizes())
        super().__init__(self._carrier(), [(count * self.bits + 7) // 8 // self._item().itemsize])

    def _carrier(self) -> Dtype:
        return Dtype.UINT8 if self.element_dtype in _CODES else self.element_dtype

    def _item(self) -> np.dtype[Any]:
        return cabi.storage_type(self._carrier())

    def _sizes(self) -> list[int]:
        """The sizes in memory."""
        shape = self.element_shape
        if self.format == "":
            return list(shape)
        if self.format == TRANSPOSED:
            return [*shape[:-2], shape[-1], shape[-2]]
        blocks = -(-shape[1] // self.width)
        rows = -(-shape[0] // _ROWS)
        if self.format == "NZ":
            return [*shape[:-2], -(-shape[-1] // self.width), -(-shape[-2] // _ROWS), _ROWS, self.width]
        if self.format == "NC1HWC0":
            return [shape[0], blocks, *shape[2:], self.width]
        if self.format == "NDC1HWC0":
            return [shape[0], shape[2], blocks, *shape[3:], self.width]
        if self.format == "FRACTAL_Z":
            return [blocks, *shape[2:], rows, _ROWS, self.width]
        return [shape[2], blocks, *shape[3:], rows, _ROWS, self.width]

    def _indices(self) -> tuple[np.ndarray, ...]:
        """The position of each element, as indices into the sizes in memory."""
        index = tuple(np.indices(self.element_shape))
        if self.format == TRANSPOSED:
            return (*index[:-2], index[-1], index[-2])
        if self.format == "NZ":
            row, column = index[-2:]
            return (*index[:-2], column // self.width, row // _ROWS, row % _ROWS, column % self.width)
        n, c = index[:2]
        block, inner = c // self.width, c % self.width
        if self.format == "NC1HWC0":
            return (n, block, *index[2:], inner)
        if self.format == "NDC1HWC0":
            return (n, index[2], block, *index[3:], inner)
        row = (n // _ROWS, n % _ROWS)
        if self.format == "FRACTAL_Z":
            return (block, *index[2:], *row, inner)
        return (index[2], block, *index[3:], *row, inner)

    def _places(self) -> np.ndarray:
        """The same, as one number for each element."""
        return np.ravel_multi_index(self._indices(), self._sizes())

    def write(self, values: Any) -> None:
        """Rounds the values into the elements, repeated as often as needed; the padding becomes zeros."""
        given = cabi.repeated(np.asarray(values, np.float64), self.element_shape)
        codes = np.zeros(math.prod(self._sizes()), np.int64 if self.element_dtype in _CODES else self._item())
        table = _CODES.get(self.element_dtype)
        if table is None:
            exact = cabi.encode(self.element_dtype, given).reshape(self.element_shape)
        else:
            # By their bits, so that zeros keep their signs.
            bits, which = np.unique(given.view(np.int64), return_inverse=True)
            of_bits = np.array([_code(self.element_dtype, each) for each in bits], np.int64)
            exact = of_bits[which].reshape(self.element_shape)
        if self.format == "":
            codes[...] = exact.reshape(-1)
        else:
            codes[self._places()] = exact
        if self.bits == 4:
            codes = np.append(codes, [0] * (len(codes) % 2))
            codes = codes[0::2] + 16 * codes[1::2]
        self.view[...] = codes

    def read(self) -> np.ndarray:
        """The elements as float64."""
        codes = np.ascontiguousarray(self.view)
        if self.bits == 4:
            codes = np.stack([codes & 15, codes >> 4], -1).reshape(-1)
        table = _CODES.get(self.element_dtype)
        flat = np.array(table)[codes] if table is not None else cabi.decode(self.element_dtype, codes)
        if self.format == "":
            return np.asarray(flat[: math.prod(self.element_shape)], np.float64).reshape(self.element_shape)
        return np.asarray(flat[self._places()], np.float64)

    def descriptor(self, format: Any = None) -> int:
        """A new aclTensor over this memory, for the caller to destroy."""
        rank, sizes, strides = len(self.element_shape), self._sizes(), None
        if self.format == TRANSPOSED:
            *outer, column, row = cabi.contiguous_strides(sizes)
            strides = cabi.int64s([*outer, row, column])
        tensor = cabi.host().aclCreateTensor(
            cabi.int64s(self.element_shape), rank, self.element_dtype, strides, 0,
            FORMATS.get(self.format, cabi.Format.ND), cabi.int64s(sizes), len(sizes), self.address,
        )  # fmt: skip
        assert tensor, cabi.error_text()
        return int(tensor)


@functools.cache
def _code(dtype: Dtype, bits: np.int64) -> int:
    """The code of the value nearest to a float64, given by its bits; ties to even. NaN has its sign, if it can."""
    table, value = _CODES[dtype], bits.view(np.float64)
    if math.isnan(value):
        codes = [code for code, each in enumerate(table) if math.isnan(each)]
        return max(codes, key=lambda code: math.copysign(1, table[code]) == math.copysign(1, value), default=0)
    return min(
        (code for code, each in enumerate(table) if not math.isnan(each)),
        key=lambda code: (abs(table[code] - value), code & 1, math.copysign(1, table[code]) != math.copysign(1, value)),
    )
