"""tests/mutants: what it reads out of a run, and that what is released changes nothing."""

from __future__ import annotations

import re

from aclnn_torch import host
from tests.mutants.__main__ import KINDS, ROOT, SURVIVORS, Mutant, Run, noticed, read_log, read_survivors

# Two calls of a test, one of which had a result changed, and one of another test.
LOG = """\
tests/test_a.py::test_pair (call)\taclnnElu\t1\t1
tests/test_a.py::test_pair (call)\taclnnEluBackward\t1\t0
tests/test_b.py::test_further[aclnnTopk-3] (call)\taclnnTopk\t2\t0
tests/test_b.py::test_further[aclnnTopk-3] (call)\taclnnSort\t2\t1
"""


def test_a_log_is_read() -> None:
    called, outputs, changed = read_log(LOG)
    assert called["tests/test_a.py::test_pair"] == {"aclnnElu", "aclnnEluBackward"}
    assert outputs == {"aclnnElu": 1, "aclnnEluBackward": 1, "aclnnTopk": 2, "aclnnSort": 2}
    assert changed == {"aclnnElu", "aclnnSort"}


def test_a_test_named_after_a_function_is_about_that_alone() -> None:
    run = Run({}, *read_log(LOG))
    assert run.about("tests/test_b.py::test_further[aclnnTopk-3]") == {"aclnnTopk"}
    assert run.about("tests/test_b.py::test_further[aclnnSort-4]") == {"aclnnSort"}  # called while another one ran
    assert run.about("tests/test_a.py::test_pair") == {"aclnnElu", "aclnnEluBackward"}


def test_a_failure_of_a_test_about_one_function_counts() -> None:
    names = ["t.py::test[aclnnElu-0]", "t.py::test[aclnnSelu-1]", "t.py::test_pair"]
    called = {"t.py::test_pair": {"aclnnTopk", "aclnnSort"}}
    sound = Run(dict.fromkeys(names, "passed"), called, {}, set())
    spoilt = Run({names[0]: "failed", names[1]: "passed", names[2]: "failed"}, called, {}, set())
    assert noticed(spoilt, sound) == {"aclnnElu"}
    # All failed: a process ended that computes for all of them.
    assert noticed(Run(dict.fromkeys(names, "failed"), called, {}, set()), sound) == set()


def test_survivors_are_read() -> None:
    table = "function\toutput\tkind\treason\naclnnSort\t1\texchange\tequal values may come in any order\n"
    assert read_survivors(table) == {Mutant("aclnnSort", 1, "exchange"): "equal values may come in any order"}


def test_survivors_have_reasons() -> None:
    for mutant, reason in read_survivors(SURVIVORS.read_text()).items():
        assert mutant.kind in KINDS
        assert len(reason) > 10


def test_the_kinds_are_those_that_the_variant_knows() -> None:
    source = (ROOT / "tests" / "mutants" / "mutate.cpp").read_text()
    assert tuple(re.findall(r'\{"(\w+)", \1\}', source)) == KINDS


def test_what_is_released_cannot_be_changed() -> None:
    libraries = [*host.PREFIX.glob("lib64/*.so"), *(ROOT / "aclnn_torch" / "lib").glob("*.so")]
    assert len(libraries) > 2
    assert [path for path in libraries if b"ACLNN_TEST_MUTANT" in path.read_bytes()] == []
