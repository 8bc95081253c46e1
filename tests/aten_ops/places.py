"""The same result at every position: `python -m tests.aten_ops.places` prints the calls whose elements differ.

A function counts as elementwise if each tensor with all elements equal gives equal results. Then special values at all,
at even and at odd positions must give the same results, whichever part of a vectorised loop computes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.aten_ops.report import RANDOM
from tests.aten_ops.sweep import LIBRARY, Caller, Tensor, is_output, samples, with_dtypes
from tests.cabi import SUCCESS
from tests.published import rows

PLACES = 70  # two 16-bit vectors of the widest CPU, and a remainder
SPECIAL = ("nan", "inf", "-inf", "0", "-0.0")
DTYPES = ("FLOAT", "BFLOAT16", "FLOAT16", "DOUBLE")


def long(name: str, arguments: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The call with tensors of that many elements."""
    changed = with_dtypes(name, arguments, dtype, "INT64", dtype)
    return {
        argument: replace(x, shape=(PLACES,), values=x.values[:1] or (1,)) if isinstance(x, Tensor) else x
        for argument, x in changed.items()
    }


def are_alike(output: np.ndarray, places: slice) -> bool:
    """True if the elements at these positions are equal, including signs of zeros."""
    chosen = output.reshape(-1)[places]
    parts = (chosen.real, chosen.imag) if np.iscomplexobj(chosen) else (chosen.astype(np.float64),)
    return all(
        np.all(np.isnan(part)) or np.all((part == part[0]) & (np.signbit(part) == np.signbit(part[0])))
        for part in parts
    )


def differing(caller: Caller, name: str, arguments: dict[str, Any], dtype: str) -> Iterator[tuple[str, str, str]]:
    """The function, the dtype, and the argument with the special value for which elements differ."""
    plain = long(name, arguments, dtype)
    inputs = [
        argument
        for kind, argument in rows(LIBRARY)[name]
        if isinstance(plain[argument], Tensor) and not is_output(kind) and plain[argument].dtype == dtype
    ]

    def outputs(values: dict[str, tuple[float, ...]]) -> list[np.ndarray] | None:
        given = {a: replace(v, values=values[a]) if a in values else v for a, v in plain.items()}
        outcome = caller.call(name, given)
        return outcome.outputs if outcome.stage1 == SUCCESS == outcome.stage2 else None

    if any(isinstance(value, Tensor) and value.format for value in plain.values()):
        return  # a private format
    everywhere = slice(None)
    for ordered in (inputs, inputs[::-1]):
        usual = {argument: ((4 + i) / 16,) for i, argument in enumerate(ordered)}
        found = outputs(usual)
        if not inputs or not found or not all(x.size == PLACES and are_alike(x, everywhere) for x in found):
            return
    for argument in inputs:
        for text in SPECIAL:
            special = float(text)
            even, odd = slice(0, None, 2), slice(1, None, 2)
            for places, values in ((everywhere, (special,)), (even, (special, 0.5)), (odd, (0.5, special))):
                found = outputs({**usual, argument: values})
                if found and not all(are_alike(x, places) for x in found):
                    yield name, dtype, f"{argument}={text}"
                    break


def main() -> None:
    """Prints a JSON line for each; dtypes may follow the command."""
    caller = Caller()
    assert caller.library.aclHostSetProduct(b"host") == SUCCESS
    for name, arguments in samples():
        if name in RANDOM or name == "aclnnRReluWithNoise":  # it draws a slope for each element
            continue
        for dtype in sys.argv[1:] or DTYPES:
            for each in differing(caller, name, arguments, dtype):
                print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
