"""What docs/emulation.md says that functions on ATen refuse, and what it says that they take, are calls with a status.

`tests/aten_ops/limits.tsv` has them: the row of the page, its words, the status (of stage 1, or of the stream), a part
of the text, a call, and what of its document the function therefore lacks, which the page of functions calls partial. A
call changes some arguments of the function's sample.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

import pytest

from tests.aten_ops.limits import LIMITS, Limit, lacks
from tests.aten_ops.sweep import LIBRARY, ROOT, run_calls
from tests.cabi import RUNTIME_ERROR, exported_operators
from tests.published import functions, refused, refused_to_torch_npu

PAGE = (ROOT / "docs" / "emulation.md").read_text()
# The rows of the page's tables, by what stands in the first cell.
ROWS = {row.split(" | ")[0].removeprefix("| "): row for row in PAGE.splitlines() if row.startswith("| ")}
# Where other tests make the calls of a row.
ELSEWHERE = {
    "aclnnIndex of complex numbers": ("tests/test_aten_values.py", "def test_on_products("),
    "strides": ("tests/cpp/test_aten_ops.cpp", "TEST(what_does_not_fit_is_refused_in_stage_1)"),
    "functions that communicate between devices, such as aclnnMatmulAllReduce": (
        "tests/test_aten_limits.py",
        "def test_refused_by_name(",
    ),
}


def refusing_rows() -> list[str]:
    """The rows about functions on ATen that say that something is refused."""
    section = re.search(r"^### Operators of ATen$(.*?)^###? ", PAGE, re.DOTALL | re.MULTILINE)
    assert section
    return [name for name, row in ROWS.items() if row in section[1] and re.search("161002|361001|refuse", row)]


@pytest.mark.parametrize("row", refusing_rows())
def test_each_refusal_of_the_page_is_a_call(row: str) -> None:
    if row in ELSEWHERE:
        file, test = ELSEWHERE[row]
        assert test in (ROOT / file).read_text()
    else:
        assert any(limit.row == row and limit.status for limit in LIMITS)


@functools.cache
def outcomes() -> dict[Limit, tuple[int, int, str, list[Any]]]:
    return dict(zip(LIMITS, run_calls([limit.line() for limit in LIMITS]), strict=True))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.call)
def test_what_the_page_says_is_so(limit: Limit) -> None:
    assert limit.words in ROWS[limit.row]
    stage1, stage2, text, _ = outcomes()[limit]
    assert (stage1 or stage2, limit.text in text, bool(text)) == (limit.status, True, bool(limit.status)), text


def test_what_is_lacking_is_refused_or_a_deviation() -> None:
    """A function is partial because of a call that it refuses, or because it computes something else on purpose."""
    assert lacks() and lacks().keys() <= exported_operators(LIBRARY)
    for limit in LIMITS:
        assert not limit.lacks or limit.status or "**Deviation**" in ROWS[limit.row]


@functools.cache
def prefix() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


@pytest.mark.parametrize("name", sorted(refused() | refused_to_torch_npu().keys()))
def test_refused_by_name(name: str) -> None:
    reason = functions()[name].refused if name in refused() else refused_to_torch_npu()[name]
    stage1 = getattr(prefix(), f"{name}GetWorkspaceSize")
    assert stage1(*[ctypes.c_void_p()] * 40) == RUNTIME_ERROR
    text = prefix().aclGetRecentErrMsg().decode()
    assert name in text and reason in text
