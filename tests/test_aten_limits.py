"""Calls, each with a status, for every limit stated in docs/emulation/rows.md and in the notes next to rows.

`tests/aten_ops/limits.tsv` contains them: the section of the page or the functions of the note, its words, the status
(of stage 1, or of the stream), a part of the text, a call, and the part of the document that the function lacks because
of it, which the page of functions calls partial. A call changes some arguments of the function's sample.
"""

from __future__ import annotations

import ctypes
import fnmatch
import functools
import re

import pytest

from tests.aten_ops.limits import LIMITS, Limit, lacks
from tests.aten_ops.notes import by_functions, notes
from tests.aten_ops.sweep import LIBRARY, ROOT, run_call
from tests.cabi import RUNTIME_ERROR, exported_operators
from tests.published import functions, refused, refused_to_torch_npu

PAGE = (ROOT / "docs" / "emulation" / "rows.md").read_text()
# The texts of the page's sections by heading, and of the notes by function.
SAID = {
    **{
        heading: " ".join(text.split())
        for heading, text in re.findall(r"^##+ (.*?)$(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    },
    **by_functions(),
}
# Limits whose calls are in other tests.
ELSEWHERE = {
    "Index": ("tests/test_aten_values.py", "def test_on_products("),
    "Strides": ("tests/cpp/test_aten_ops.cpp", "TEST(what_does_not_fit_is_refused_in_stage_1)"),
    "Functions that communicate between devices": (
        "tests/test_aten_limits.py",
        "def test_refused_by_name(",
    ),
}


def refusals() -> list[str]:
    """The sections and notes that state a refusal."""
    return [name for name, text in SAID.items() if re.search(r"161002|361001|refuse|\*\*Limit\*\*", text)]


@pytest.mark.parametrize("name", refusals())
def test_each_refusal_is_a_call(name: str) -> None:
    if name in ELSEWHERE:
        file, test = ELSEWHERE[name]
        assert test in (ROOT / file).read_text()
    else:
        assert any(limit.said_of == name and limit.status for limit in LIMITS)


def test_notes_are_of_functions_that_there_are() -> None:
    here = [name.removeprefix("aclnn") for name in exported_operators(LIBRARY)]
    for note in notes():
        for pattern in note.functions.split(", "):
            assert fnmatch.filter(here, pattern), f"{note.functions}: {pattern}"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.call)
def test_what_is_said_is_so(limit: Limit) -> None:
    assert limit.words in SAID[limit.said_of]
    stage1, stage2, text, _ = run_call(limit.line())
    assert (stage1 or stage2, limit.text in text, bool(text)) == (limit.status, True, bool(limit.status)), text


def test_what_is_lacking_is_refused_or_a_deviation() -> None:
    """A function is partial because of a call that it refuses, or because it deviates on purpose."""
    assert lacks() and lacks().keys() <= exported_operators(LIBRARY)
    for limit in LIMITS:
        assert not limit.lacks or limit.status or "**Deviation**" in SAID[limit.said_of]


@functools.cache
def prefix() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


@pytest.mark.parametrize("name", sorted(refused() | refused_to_torch_npu().keys()))
def test_refused_by_name(name: str) -> None:
    reason = functions()[name].refused if name in refused() else refused_to_torch_npu()[name]
    stage1 = getattr(prefix(), name if name.endswith("GetMaxWorkspaceSize") else f"{name}GetWorkspaceSize")
    assert stage1(*[ctypes.c_void_p()] * 40) == RUNTIME_ERROR
    text = prefix().aclGetRecentErrMsg().decode()
    assert name in text and reason in text
