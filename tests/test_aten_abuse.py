"""Incorrect calls of every function on ATen: see tests/aten_ops/abuse.py."""

from __future__ import annotations

import re

import pytest

from tests.aten_ops.abuse import abuse, fault_of, fault_of_text
from tests.aten_ops.attributes import faults
from tests.aten_ops.sweep import SAMPLES, run_calls, samples

NAMES = sorted(dict(samples()))
PARTS = 16


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.test_all) for part in range(1, PARTS))])
def test_some_wrong_arguments(part: int) -> None:
    calls, faults = abuse(*NAMES[part::PARTS], every=12)
    assert faults == []
    assert calls > 100


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_each_wrong_argument(part: int) -> None:
    calls, faults = abuse(*NAMES[part::PARTS])
    assert faults == []
    assert calls > 1000


@pytest.mark.test_all
def test_attributes_of_padding_with_the_shapes_they_need() -> None:
    lines, made, computed = faults(*(name for name in NAMES if "Pad" in name and name.endswith("Backward")))
    assert lines == []
    assert made > computed > 100


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_attributes_with_the_shapes_they_need(part: int) -> None:
    lines, made, computed = faults(*NAMES[part::PARTS])
    assert lines == []
    assert made > computed > 500


def wrong(line: str) -> str:
    """A call whose last tensor has an additional dimension."""
    *_, last = re.finditer(r"(?<=[A-Z0-9])\[([\d,]*)\]", line)
    return f"{line[: last.start()]}[{','.join(filter(None, (last[1], '1')))}]{line[last.end() :]}"


@pytest.mark.test_all
def test_nothing_depends_on_torch_in_python() -> None:
    lines = [*SAMPLES.read_text().splitlines(), "aclnnAdd self=FLOAT[2] other=FLOAT[3] alpha=FLOAT(1) out=FLOAT[3]"]
    lines += [wrong(line) for line in lines if re.search(r"[A-Z0-9]\[", line)]
    # torch in Python divides by 0 where it infers the shape of this function's variance.
    lines.append(
        "aclnnBatchNorm input=FLOAT[1,1,1,1,1] weight=null bias=null runningMean=FLOAT[1] runningVar=FLOAT[1] "
        "training=true momentum=0.5 eps=1 output=FLOAT[1,1,1,1,1] saveMean=FLOAT[1] saveInvstd=FLOAT[1]"
    )
    without, with_torch = run_calls(lines), run_calls(lines, with_torch=True)
    assert [line for line, a, b in zip(lines, without, with_torch, strict=True) if repr(a) != repr(b)] == []
    assert without[-1][:2] == (0, 0)
    assert sum(stage1 != 0 for stage1, *_ in without) > 100
    assert [text for _, _, text, _ in without if fault_of_text(text)] == []


def test_a_lack_of_memory_is_a_fault() -> None:
    call = {"function": "aclnnOneHot", "label": "numClasses: 2147483647"}
    assert fault_of(call, [561101, 0, "aclnnOneHot: the host's memory is exhausted", 0.0]) != ""
    assert fault_of(call, [161002, 0, "aclnnOneHot: out has shape [3, 10], expected [3, 2147483647]", 0.0]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "aclnnBatchNorm: ZeroDivisionError: division by zero",
        "aclnnAdd: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        "aclnnAdd: Expected all tensors to be on the same device",
        "aclnnX: the arguments do not fit together; ATen, which computes it, says: c10::Half",
    ],
)
def test_texts_of_torch_are_faults(text: str) -> None:
    assert fault_of_text(text) != ""


def test_texts_of_torch_may_be_quoted() -> None:
    quoted = "ATen, which computes it, says: The size of tensor a (2) must match the size of tensor b (3)"
    assert (
        fault_of_text(f"aclnnAdd: the arguments do not fit together: self FLOAT [2], other FLOAT [3]; {quoted}") == ""
    )
