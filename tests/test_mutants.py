"""tests/mutants: its parsing of a run, and that the released build is unaffected; and tests/source_mutants."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from aclnn_torch import host
from tests import source_mutants
from tests.aten_ops.files import ROWS
from tests.mutants import KINDS, ROOT, VALUES, Mutant, Plan
from tests.mutants.__main__ import (
    SURVIVORS,
    checks_in,
    family_of,
    functions_in,
    read_survivors,
    run,
    scores,
    untried,
)
from tests.source_mutants.__main__ import covering, ordered, parts_of, try_mutant

# Tests in the place of ours, with a function in the place of the variant.
TESTS = """\
import os
import pytest

def call(name, *lines, test=None):
    variables = [os.environ.get(f"ACLNN_TEST_MUTANT{part}", "") for part in ("", "_OUTPUT", "_NAME")]
    if not variables[0]:
        with open(os.environ["ACLNN_TEST_MUTANT_LOG"], "a") as log:
            for line in lines:
                log.write(f"{test or os.environ['PYTEST_CURRENT_TEST']}\\t{name}\\t{line}\\n")
    return " ".join(variables[:2]).strip() if variables[2] in ("", name) else ""
"""
ALONE = """
def test_of_nothing():
    assert call("aclnnElu", "-1\\t", "0\\tsign", "0\\tzeros", "1\\tsign") in ("", "sign 0", "zeros 0", "sign 1")

def test_of_values():
    assert call("aclnnElu", "0\\tsign", "0\\tzeros") in ("", "sign 0")

def test_of_two_functions():
    assert call("aclnnSelu", "0\\tsign") == ""
    assert call("aclnnAdd", "0\\tsign") in ("", "sign 0")

def test_of_a_check():
    assert call("csrc/cann/rows/shape/repeat.cpp:26", "-2\\t", "-3\\t") in ("", "text 0")

def test_that_fails_unchanged():
    call("aclnnGelu", "0\\tsign")
    assert False

def test_skipped():
    pytest.skip(call("aclnnGelu", "0\\tsign"))
"""
TOGETHER = """
@pytest.fixture(scope="module")
def answers():
    names = {"one": ["a"], "other": ["b"], "two": ["c", "d"]}
    file = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]
    return {
        test: "".join(call(f"acl: {name}", "-2\\t", test=f"{file}::test_refusal[{test}] (call)") for name in of)
        for test, of in names.items()
    }

@pytest.mark.parametrize("name", ["one", "other", "two"])
def test_refusal(name, answers):
    assert answers[name] in ("", "text 0" if name == "one" else "status 0")
"""


def test_a_run(tmp_path: Path) -> None:
    """A mutant is detected if a test fails with it; refusals of one process are those of tests that have one."""
    files = {"test_alone.py": ALONE, "test_runtime_refusals.py": TOGETHER}
    for name, text in files.items():
        (tmp_path / name).write_text(TESTS + text)
    results = run([tmp_path / name for name in files], Plan(KINDS), tmp_path)
    check = "csrc/cann/rows/shape/repeat.cpp:26"
    assert {Mutant(*mutant): is_killed for *mutant, is_killed in results.found} == {
        Mutant("aclnnElu", 0, "sign"): False,
        Mutant("aclnnElu", 0, "zeros"): True,
        Mutant("aclnnElu", 1, "sign"): False,
        Mutant("aclnnSelu", 0, "sign"): True,
        Mutant("aclnnAdd", 0, "sign"): False,
        Mutant(check, 0, "text"): False,
        Mutant(check, 0, "status"): True,
        Mutant("acl: a", 0, "text"): False,
        Mutant("acl: a", 0, "status"): True,
        Mutant("acl: b", 0, "text"): True,
        Mutant("acl: b", 0, "status"): False,
    }
    assert results.checks == [check]
    assert results.failing == ["test_alone.py::test_that_fails_unchanged"]
    assert untried({check, "a.h:30", "a.h:4"}, {check})[1:] == ["a.h: 4, 30"]


def test_what_a_plan_has() -> None:
    check = "csrc/cann/rows/sorting/sorting.cpp:12"
    assert Plan(["text"]).has(check, "text") and not Plan(["text"]).has(check, "status")
    assert Plan(KINDS, "aclnnTopk*").has(check, "text") and not Plan(KINDS, "aclnnElu").has(check, "text")
    refusal = "aclnnSort: dim is #, expected # to #"
    assert Plan(KINDS, "*", ["aclnnSort"]).has(refusal, "text") and not Plan(KINDS, "*", ["aclnnTopk"]).has(
        refusal, "text"
    )


def test_functions_of_files() -> None:
    """Rows, of a file or of a header's folder; an operator's, also for kernels; all where all share a file."""
    every = {"aclnnAll"}

    def of(name: str) -> set[str]:
        return functions_in(ROOT / "csrc" / name, every)

    of_file, of_folder = of("cann/rows/activation/shrink.cpp"), of("cann/rows/activation/shrinking.h")
    assert "aclnnShrink" in of_file < of_folder and "aclnnSigmoid" in of_folder and "aclnnAdd" not in of_folder
    elu = of("host_cann/ops/elu.cpp")
    assert elu >= {"aclnnElu", "aclnnInplaceElu", "aclnnEluBackward"}
    assert of("host_cann/kernels/elu.cpp") == elu
    assert "aclnnConvolutionBackward" in of("host_cann/kernels/convolution_direct.cpp")
    assert "aclnnConvolution" in of("host_cann/ops/convolution/convolution_checks.cpp")
    shared = ("cann/rows/engine/kinds.h", "host_cann/arguments/cast.cpp", "host_cann/kernels/elementwise.h")
    assert [of(name) for name in (*shared, "cann/named_ops/boxes.cpp")] == [every] * 4


def test_checks_are_found_in_the_sources() -> None:
    found = checks_in([ROWS])
    path = ROWS / "checks.h"
    (line,) = (n for n, text in enumerate(path.read_text().splitlines(), 1) if "tensor.dim() == dims" in text)
    assert f"{path.relative_to(ROOT)}:{line}" in found and len(found) > 1000


def test_scores() -> None:
    found = {Mutant("aclnnElu", 0, "sign"): True, Mutant("aclnnSort", 0, "sign"): False}
    found |= {Mutant("aclnnSort", 1, "sign"): True, Mutant("aclop Add: refused", 0, "text"): True}
    assert scores(found) == [
        "family named operators, text: 1 of 1 killed, 100.0 %",
        "family operator families, first outputs: 1 of 1 killed, 100.0 %",
        "family rows: sorting, first outputs: 0 of 1 killed, 0.0 %",
        "family rows: sorting, further outputs: 1 of 1 killed, 100.0 %",
        "function aclnnSort: 1 of 2 killed, 50.0 %",
        "kind sign of first outputs: 1 of 2 killed, 50.0 %",
        "kind sign of further outputs: 1 of 1 killed, 100.0 %",
        "kind text: 1 of 1 killed, 100.0 %",
        "all: 3 of 4 killed, 75.0 %",
    ]


@pytest.mark.parametrize(
    ("subject", "family"),
    [
        ("aclnnLayerNormBackward: gamma is null", "operator families"),
        ("aclop Slice", "named operators"),
        ("csrc/cann/named_ops/padding.cpp:109", "named operators"),
        ("csrc/cann/rows/shape/repeat.cpp:26", "rows: shape"),
        ("csrc/cann/rows/planes.h:18", "rows: shared checks"),
        ("aclrtMalloc: this thread has no device", "others"),
    ],
)
def test_families(subject: str, family: str) -> None:
    assert family_of(subject) == family


def test_survivors_are_read() -> None:
    table = "function\toutput\tkind\treason\naclnnSort\t1\texchange\tequal values may come in any order\n"
    assert read_survivors(table) == {Mutant("aclnnSort", 1, "exchange"): "equal values may come in any order"}


def test_survivors_have_reasons() -> None:
    for mutant, reason in read_survivors(SURVIVORS.read_text()).items():
        assert mutant.kind in KINDS
        assert len(reason) > 10


def test_the_kinds_are_those_that_the_variant_knows() -> None:
    source = (ROOT / "tests" / "mutants" / "values.cpp").read_text()
    assert tuple(re.findall(r'\{"(\w+)", \1\}', source)) == VALUES


def test_what_is_released_cannot_be_changed() -> None:
    libraries = [*host.PREFIX.glob("lib64/*.so"), *(ROOT / "aclnn_torch" / "lib").glob("*.so")]
    assert len(libraries) > 2
    assert [path for path in libraries if b"ACLNN_TEST_MUTANT" in path.read_bytes()] == []


# ---- Mutants of sources


def test_annotations_are_no_mutants() -> None:
    assert source_mutants.evaluated("def f(x: int | None) -> int: return x") == source_mutants.evaluated(
        "def f(x: int - None) -> str:\n    return x  # changed"
    )
    assert source_mutants.evaluated("y: int = 1 + 2") != source_mutants.evaluated("y: int = 1 - 2")
    assert source_mutants.evaluated("if not x := 1: pass") == ""


@pytest.mark.parametrize(
    ("context", "test"),
    [
        ("|tests.test_elu.test_values", "tests/test_elu.py::test_values"),
        ("tests.test_elu.TestAll.test_values", "tests/test_elu.py::TestAll::test_values"),
        ("tests/test_cli.py::test_check[a-b] (call)|test_of_a_program", "tests/test_cli.py::test_check"),
        ("", ""),
        ("|benchmarks.cases.test_speed", ""),
    ],
)
def test_contexts_of_coverage(context: str, test: str) -> None:
    assert source_mutants.test_of(context) == test


def test_results_of_tests() -> None:
    found = source_mutants.read_results(
        """<testsuites><testsuite>
        <testcase classname="tests.test_a" name="test_one[1]" time="1.5"/>
        <testcase classname="tests.test_a" name="test_one[2]" time="2"/>
        <testcase classname="tests.test_a" name="test_two[1]" time="1"><failure/></testcase>
        <testcase classname="tests.test_a" name="test_two[2]" time="1"/>
        <testcase classname="tests.test_cpp" name="test_program[test_b]" time="0.5"/>
        </testsuite></testsuites>"""
    )
    assert found == {"tests/test_a.py::test_one": 3.5, "tests/test_cpp.py::test_program[test_b]": 0.5}


MODULE = """\
X = 1


def f(x):
    if (x
            > 1):
        x += 1
    return x
"""


def test_tests_of_a_source_mutant() -> None:
    """Those that run its statement, or enter its function; none where no test is known to do so."""
    lines = {"a.py": [(1, {"f"}), (5, {"g"}), (8, {"h"})], "b.cpp": [(10, {"f"}), (20, {"g"})]}
    chosen = [covering(source_mutants.Mutant("a.py", line, MODULE), lines) for line in (1, 5, 6, 7, 8)]
    assert chosen == [set(), {"g"}, {"g"}, set(), {"h"}]
    chosen = [covering(source_mutants.Mutant("b.cpp", line, ""), lines) for line in (5, 10, 12, 25)]
    assert chosen == [set(), {"f"}, {"f"}, {"g"}]
    assert covering(source_mutants.Mutant("b.py", 1, ""), lines) == set()


def test_specific_tests_run_first() -> None:
    seconds = {"a": 1.0, "b": 30.0, "c": 5.0, "d": 500.0}
    breadth = {"t.py::a": 9, "t.py::b": 3, "t.py::c": 1, "u.py::d": 1, "v.py::e": 1}
    known = dict.fromkeys(breadth, 1.0)
    lines = {"m.py": [(5, {"t.py::a", "t.py::b", "t.py::gone"}), (9, {"v.py::e"})]}
    run, not_run = (source_mutants.Mutant("m.py", line, MODULE) for line in (5, 7))
    assert ordered(run, lines, set(), breadth, known) == ["t.py::b", "t.py::a", "t.py::c"]
    assert ordered(run, lines, {"u.py"}, breadth, known) == ["t.py::b", "t.py::a", "u.py::d", "t.py::c"]
    assert ordered(not_run, lines, {"u.py"}, breadth, known) == ["u.py::d", "v.py::e", "t.py::b", "t.py::a", "t.py::c"]
    assert parts_of("abcd", seconds) == [["a"], ["b", "c"]]
    assert parts_of("d", seconds) == [["d"]]


@pytest.mark.parametrize(("test", "is_killed"), [("assert f() == 2", True), ("assert f()", False)])
def test_a_source_mutant_is_killed_by_a_test(test: str, is_killed: bool, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    module, tests = tmp_path / "module.py", tmp_path / "test_module.py"
    module.write_text("def f():\n    return 1 + 1\n")
    tests.write_text(f"from module import f\n\ndef test_f():\n    {test}\n")
    mutants = [source_mutants.Mutant("module.py", 2, f"def f():\n    return {value}\n") for value in ("1 - -1", "3")]
    lines = {"module.py": [(2, {"test_module.py::test_f"})]}

    def apply(mutant: source_mutants.Mutant) -> bool:
        return mutant != mutants[0]

    seconds = {"test_module.py::test_f": 0.1}
    assert [try_mutant(tmp_path, mutant, lines, seconds, apply) for mutant in mutants] == [None, is_killed]
    assert module.read_text() == "def f():\n    return 1 + 1\n"
