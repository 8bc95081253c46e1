"""Tensors of different numbers for the calls of formulas, in the syntax of samples.txt."""

from __future__ import annotations

import math


def _tensor(shape: str, numbers: list[float], dtype: str) -> str:
    return f"{dtype}[{shape}]:{','.join(map(str, numbers))}"


def _places(shape: str, start: int) -> list[int]:
    """Different numbers below 251, in an order that depends on `start`; they repeat after 251."""
    count = min(math.prod(int(size) for size in shape.split(",") if size), 251)
    return [(start * 97 + (start * 22 + 71) * i) % 251 for i in range(count)]


def signed(shape: str, start: int, dtype: str = "FLOAT") -> str:
    """Numbers of both signs in (-2, 2), exact in 16 bits."""
    return _tensor(shape, [(place - 125) / 64 for place in _places(shape, start)], dtype)


def positive(shape: str, start: int, dtype: str = "FLOAT") -> str:
    """Numbers in (0, 1), exact in 16 bits."""
    return _tensor(shape, [(place + 1) / 256 for place in _places(shape, start)], dtype)


def whole(shape: str, start: int, count: int, dtype: str = "INT64") -> str:
    """Whole numbers from 0 to count - 1, equal ones among them."""
    return _tensor(shape, [place % count for place in _places(shape, start)], dtype)
