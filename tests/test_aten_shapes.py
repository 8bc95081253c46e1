"""Shapes that do not fit are refused in stage 1, whatever was accepted before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.aten_ops.sweep import run_call
from tests.cabi import AICORE_EXCEPTION, SUCCESS

SAMPLES = Path(__file__).with_name("aten_ops") / "samples.txt"
TENSOR = re.compile(r"(?<=[A-Z0-9])\[([\d,]*\d)\]")


def one_larger(line: str) -> list[str]:
    """The call with one size of a tensor increased by 1, for each size."""
    calls = []
    for found in TENSOR.finditer(line):
        sizes = found[1].split(",")
        for i, size in enumerate(sizes):
            changed = [*sizes[:i], str(int(size) + 1), *sizes[i + 1 :]]
            calls.append(f"{line[: found.start(1)]}{','.join(changed)}{line[found.end(1) :]}")
    return calls


# Stage 1 does not try a row again on types that it has accepted, and relies on ATen's functions of shapes. Some of
# these check less than the kernels, so that a row has to check the rest.
@pytest.mark.test_all
@pytest.mark.parametrize("line", SAMPLES.read_text().splitlines(), ids=lambda line: line.split(" ")[0])
def test_stage_1_refuses_shapes_that_do_not_fit(line: str) -> None:
    assert run_call(line)[:3] == (SUCCESS, SUCCESS, "")
    for call in one_larger(line):
        _, stage2, text, _ = run_call(call)
        assert stage2 != AICORE_EXCEPTION or "do not fit" not in text, f"{call}\n{text}"
