"""Runs every test as it is, and again with each mutant of what it called: ``pytest -p tests.mutants.plugin``.

A mutant is left out once a test has failed with it. The environment names files with the Plan and for the Results.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants import CALL, CHECK, REFUSAL, REFUSALS, Mutant, Plan, Results

# A test of more refusals or functions tells little of each, and takes long.
SWEEP = 100
# Tests whose calls one process makes for all tests of the file, which can only have all refusals changed at once.
TOGETHER = "test_runtime_refusals.py"
# The tests that detect most run first.
FIRST = ("test_aten_formulas.py", "test_named_operators.py", "test_aten_values.py")

PLAN = Plan(**json.loads(Path(os.environ["ACLNN_TEST_MUTANT_PLAN"]).read_text()))
LOG = Path(os.environ["ACLNN_TEST_MUTANT_LOG"])
found: dict[Mutant, bool] = {}
checks: set[str] = set()
failing: list[str] = []
possible: dict[str, dict[Mutant, None]] = collections.defaultdict(dict)  # the mutants that change something, by test
together: list[pytest.Item] = []
count, last_report, offset = 0, time.monotonic(), 0


def read_log() -> None:
    """Reads what the variant has added to its log."""
    global offset
    if not LOG.exists():
        return
    with LOG.open() as log:
        log.seek(offset)
        lines = log.read().splitlines()
        offset = log.tell()
    for line in lines:
        when, name, output, kind = line.split("\t")
        test = when.rpartition(" (")[0]
        if int(output) == CHECK:
            checks.add(name)
        elif int(output) == REFUSAL:
            possible[test] |= {Mutant(name, 0, kind): None for kind in REFUSALS if PLAN.has(name, kind)}
        elif int(output) != CALL and PLAN.has(name, kind):
            possible[test][Mutant(name, int(output), kind)] = None


@contextlib.contextmanager
def changed(mutant: Mutant) -> Iterator[None]:
    """The variant changes this, in this process and in those that make its calls."""
    variables = {"": mutant.kind, "_OUTPUT": str(mutant.output), "_NAME": mutant.function}
    os.environ.update({f"ACLNN_TEST_MUTANT{name}": value for name, value in variables.items()})
    try:
        yield
    finally:
        for name in variables:
            del os.environ[f"ACLNN_TEST_MUTANT{name}"]


def outcome(item: pytest.Item, nextitem: pytest.Item | None) -> str:
    """The outcome of a run of a test, which may have run before."""
    item._initrequest()  # type: ignore[attr-defined]
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    outcomes = {report.outcome for report in reports}
    return next(each for each in ("failed", "skipped", "passed") if each in outcomes)


def with_all_refusals_changed(items: list[pytest.Item], nextitem: pytest.Item | None) -> None:
    """Those of tests with one refusal are detected where the test fails."""
    for kind in [kind for kind in REFUSALS if kind in PLAN.kinds]:
        with changed(Mutant("", 0, kind)):
            for item, following in zip(items, [*items[1:], nextitem], strict=True):
                is_killed = outcome(item, following) == "failed"
                own = [mutant for mutant in possible[item.nodeid] if mutant.kind == kind]
                if len(own) == 1:
                    found[own[0]] = found.get(own[0], False) or is_killed


def with_each_mutant(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Runs a test with the mutants that no test has detected."""
    own = possible.pop(item.nodeid, {})
    if len({mutant.function for mutant in own}) > SWEEP:
        return
    for mutant in [mutant for mutant in own if not found.get(mutant)]:
        with changed(mutant):
            found[mutant] = outcome(item, nextitem) == "failed"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        return FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST)

    items.sort(key=rank)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    global count, last_report
    result = outcome(item, nextitem)
    read_log()
    if result == "failed":
        failing.append(item.nodeid)
    elif item.path.name != TOGETHER:
        if result == "passed":
            with_each_mutant(item, nextitem)
    else:
        together.append(item)
        if nextitem is None or nextitem.path != item.path:
            with_all_refusals_changed(together, nextitem)
    count += 1
    if time.monotonic() > last_report + 30:
        last_report = time.monotonic()
        killed = sum(found.values())
        print(f"{count} of {item.session.testscollected} tests: {killed} of {len(found)} killed", file=sys.stderr)
    return True


def pytest_sessionfinish() -> None:
    results = Results([(*mutant, is_killed) for mutant, is_killed in found.items()], sorted(checks), failing)
    Path(os.environ["ACLNN_TEST_MUTANT_RESULTS"]).write_text(json.dumps(results._asdict()))
