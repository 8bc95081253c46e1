"""Made-up calls: a call in the syntax of samples.txt with other sizes, numbers and types, drawn by Hypothesis."""

from __future__ import annotations

import math
import re

from hypothesis import assume
from hypothesis import strategies as st

_TENSOR = re.compile(r"\b(?P<dtype>[A-Z][A-Z0-9_]+)(?P<format>@\w+)?\[(?P<shape>[\d,]*)\](?P<values>:[^\s}]*)?")
_FLOATING = ("FLOAT", "FLOAT16", "BFLOAT16")


def _sizes(tensor: re.Match[str]) -> list[int]:
    return [int(size) for size in tensor["shape"].split(",") if size]


def _distinct(count: int, start: int, step: int) -> str:
    """Up to 251 different numbers in (0, 1), exact in 16 bits: sums do not cancel, and few elements are equal."""
    return ",".join(str((1 + (start + i * step) % 251) / 256) for i in range(min(count, 251)))


@st.composite
def made_up(draw: st.DrawFn, line: str) -> str:
    """The call with tensors that keep the sizes they share, and the numbers given for indices, masks and the like.

    A size may become 0, 1 or larger; so may the integers equal to it. Such a call may be one that must be refused.
    """
    found = sorted({size for tensor in _TENSOR.finditer(line) for size in _sizes(tensor)})
    sizes = {size: draw(st.sampled_from((size, size, 0, 1, 2, 3, size + 1, 2 * size, 9))) for size in found}
    shapes = [[sizes[size] for size in _sizes(tensor)] for tensor in _TENSOR.finditer(line)]
    assume(all(math.prod(shape) <= 2000 for shape in shapes))  # the formulas have loops in Python
    floating = draw(st.sampled_from(("FLOAT", "FLOAT", *_FLOATING)))
    start, step = draw(st.integers(0, 250)), draw(st.integers(1, 250))

    def tensor(match: re.Match[str]) -> str:
        dtype = floating if match["dtype"] == "FLOAT" else match["dtype"]
        shape = [sizes[size] for size in _sizes(match)]
        values = match["values"] or ""
        if not values and dtype in _FLOATING and 0 not in shape:
            values = ":" + _distinct(math.prod(shape), start + match.start(), step)
        return f"{dtype}{match['format'] or ''}[{','.join(map(str, shape))}]{values}"

    def integer(match: re.Match[str]) -> str:
        return str(sizes.get(int(match[0]), match[0]))

    changed = _TENSOR.sub(tensor, line)
    if draw(st.booleans()):
        for attribute in (r"=\d+(?=\s|$)", r"=\[[\d,\s-]+\](?=\s|$)"):
            changed = re.sub(attribute, lambda found: re.sub(r"\d+", integer, found[0]), changed)
    return changed
