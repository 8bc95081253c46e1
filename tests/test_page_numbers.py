"""Counts of numbers that pages state without measuring: functions, calls, programs, test cases.

`python -m tests.listings` writes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests import test_determinism as determinism
from tests import test_numerics as numerics
from tests.aten_ops.sweep import LIBRARY, ROOT
from tests.fuzz import corpus, oracle
from tests.published import functions, rows

PROGRAMS = [path.stem for room in ("cpp", "reliability") for path in (ROOT / "tests" / room).glob("test_*.cpp")]
# Without the programs that tests/reliability/CMakeLists.txt and tests/cpp/CMakeLists.txt exclude.
OF_ADDRESSES = [name for name in PROGRAMS if name != "test_faults"]
OF_THREADS = [name for name in OF_ADDRESSES if not re.match("test_(kernels|aten_ops|named_operators|atb)", name)]


def is_deep(marks: Any) -> bool:
    return any(mark.name == "deep" for mark in marks)


def cases(*tests: Callable[..., None]) -> str:
    """The number of test cases, and of those that `make test` runs."""
    everything = quick = 0
    for test in tests:
        lists = [mark.args[1] for mark in test.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
        everything += math.prod(len(values) for values in lists)
        if not is_deep(test.pytestmark):  # type: ignore[attr-defined]
            quick += math.prod(sum(not is_deep(getattr(value, "marks", ())) for value in values) for values in lists)
    return f"{everything:,}; `make test`: {quick:,}"


def of_convolutions() -> str:
    return cases(
        determinism.test_threads_change_no_bit_of_a_deterministic_convolution,
        determinism.test_nor_of_one_that_is_channels_last,
        determinism.test_nor_of_another_type,
    )


def of_numbers() -> str:
    total, quick = re.findall(r"\d+", cases(numerics.test_never_worse_than_torch))
    return f"{quick} cases with `make test`,\n{int(total) - int(quick)} of"


# Texts of pages, with the number's position in braces, and the number.
SAID: list[tuple[str, str, Callable[[], str]]] = [
    ("README.md", "More than {} aclnn functions exist beside", lambda: f"{len(rows(LIBRARY)) // 100 * 100:,}"),
    ("docs/npu.md", "more than {} beside the project's own", lambda: f"{len(rows(LIBRARY)) // 100 * 100:,}"),
    ("docs/reliability.md", "UndefinedBehaviorSanitizer: {} C++ programs", lambda: str(len(OF_ADDRESSES))),
    ("docs/reliability.md", "ThreadSanitizer: {} C++ programs", lambda: str(len(OF_THREADS))),
    ("docs/reliability.md", "calls of {} two-stage functions", lambda: str(len(oracle.TABLES))),
    (
        "docs/reliability.md",
        "The committed corpus has {} calls",
        lambda: f"{sum(len(file.read_text().splitlines()) for file in corpus.FOLDER.glob('*.txt')):,}",
    ),
    (
        "docs/reliability.md",
        "`make test` makes {}\ncalls",
        lambda: f"{sum(len(corpus.read(name)) for name in oracle.TABLES):,}",
    ),
    (
        "docs/reliability.md",
        "to results that bypass the caches | {} |",
        lambda: cases(
            determinism.test_threads_change_no_bit,
            determinism.test_threads_change_no_bit_of_linear_cross_entropy,
        ),
    ),
    (
        "docs/reliability.md",
        "at every offset in a cache line | {} |",
        lambda: cases(determinism.test_alignment_changes_no_bit),
    ),
    ("docs/reliability.md", "its gradients: {} shapes", lambda: str(len(determinism.PROBLEMS))),
    ("docs/reliability.md", "channels-first and channels-last | {} |", of_convolutions),
    (
        "docs/reliability.md",
        "without determinism requested | {} |",
        lambda: cases(determinism.test_convolution_is_the_same_in_every_run),
    ),
    ("docs/reliability.md", "checks every number: {} up to 2^24 terms", of_numbers),
]


def written(page: str, text: str) -> str:
    """A page with its numbers."""
    for named, said, number in SAID:
        if named == page:
            before, after = map(re.escape, said.split("{}"))
            place = re.compile(f"(?<={before})[0-9].{{0,60}}?(?={after})", re.DOTALL)
            assert len(place.findall(text)) == 1, f"{page} does not say {said!r} once"
            text = place.sub(number(), text)
    return text


@pytest.mark.parametrize(("page", "text", "number"), SAID, ids=lambda value: value if isinstance(value, str) else "")
def test_number_is_what_it_counts(page: str, text: str, number: Callable[[], str]) -> None:
    assert text.format(number()) in (ROOT / page).read_text()


def test_the_error_that_the_page_quotes_is_the_one_of_the_host_cann() -> None:
    page = " ".join((ROOT / "docs" / "npu.md").read_text().split())
    [(name, reason)] = re.findall(r"`(aclnn\w+): the host CANN does not have this function, because ([^`]+)`", page)
    assert functions()[name].refused == reason
