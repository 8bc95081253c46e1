"""Functions on ATen accept tensors of at most 8 dimensions, like CANN's checks.

`tests/aten_ops/ranks.tsv` lists the exceptions, each with the public source whose check has no limit, or flattens a
tensor of more dimensions. Each tensor of every function's sample is given 9 dimensions in turn.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.aten_ops.limits import samples_by_function
from tests.aten_ops.sweep import run_call, run_calls
from tests.cabi import PARAM_INVALID, SUCCESS

RANKS = [line.split("\t") for line in (Path(__file__).parent / "aten_ops" / "ranks.tsv").read_text().splitlines()[1:]]
OF_ANY_RANK = {function for function, _, _ in RANKS}
# A tensor in a public format: the dtype and the sizes.
TENSOR = re.compile(r"\b([A-Z]\w+)\[([\d,]*)\]")


def with_nine_dimensions(value: str, count: int = 0) -> str:
    """An argument whose tensors, or the first of them, have 9 dimensions with as many elements."""

    def extended(match: re.Match[str]) -> str:
        sizes = [size for size in match[2].split(",") if size]
        return f"{match[1]}[{','.join(['1'] * (9 - len(sizes)) + sizes)}]"

    return TENSOR.sub(extended, value, count=count)


def line(function: str, arguments: dict[str, str]) -> str:
    """A call in the syntax of samples.txt."""
    return " ".join([function, *(f"{name}={value}" for name, value in arguments.items())])


def calls() -> dict[tuple[str, str], str]:
    """A call for each tensor of a function's sample."""
    return {
        (function, name): line(function, {**arguments, name: with_nine_dimensions(value, count=1)})
        for function, arguments in samples_by_function().items()
        for name, value in arguments.items()
        if function not in OF_ANY_RANK and TENSOR.match(value.removeprefix("{"))
    }


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.test_all) for part in (1, 2, 3))])
def test_nine_dimensions_are_refused(part: int) -> None:
    found = dict(list(calls().items())[part::4])
    for (function, name), (stage1, _, text, _) in zip(found, run_calls(list(found.values())), strict=True):
        expected = f"{name} has 9 dimensions, expected at most 8; reshape it"
        assert (stage1, expected in text) == (PARAM_INVALID, True), (function, text)


# Arguments that must match the rank, or the length.
BESIDE = {
    "aclnnBinaryCrossEntropy": {"out": "FLOAT[]"},
    "aclnnConfusionTranspose": {"perm": "[0,1,2,3,4,5,6,7,8]", "out": "FLOAT[2,4]"},
    "aclnnScatterNdUpdate": {"indices": "INT64[1,1,1,1,1,1,1,2,9]:0", "updates": "FLOAT[1,1,1,1,1,1,1,2]"},
}


@pytest.mark.parametrize("function", sorted(OF_ANY_RANK))
def test_exceptions_take_more(function: str) -> None:
    extended = {name: with_nine_dimensions(value) for name, value in samples_by_function()[function].items()}
    *statuses, text, _ = run_call(line(function, extended | BESIDE.get(function, {})))
    assert (*statuses, text) == (SUCCESS, SUCCESS, "")
