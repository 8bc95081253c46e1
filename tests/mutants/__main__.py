"""Changes what functions compute and reports which changes no test notices: ``make mutants``.

A variant of the host CANN, build/mutants, changes an output of every function in one way (tests/mutants/mutate.cpp):
zeros, one number everywhere, an input instead, one element, two exchanged, the sign, an error of four times what tests
allow, the last row left out, a byte written between the elements. All functions are changed at once; a mutant is
killed if a test fails that calls its function alone. What none of these kills is tried on its own, with all tests that
call the function. ARGS are functions (a pattern such as ``aclnnElu*``), ``--tests`` and ``--kinds``.

Survivors are compared with tests/mutants/survivors.tsv, which has a reason for each.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests import builds

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "mutants" / "python"
SURVIVORS = Path(__file__).with_name("survivors.tsv")
KINDS = ("zeros", "constant", "input", "one", "exchange", "sign", "error", "tail", "gap")
# The tests of rows, whose functions are most of all.
TESTS = ("tests/test_aten_*.py", "tests/test_private_formats.py")


class Mutant(NamedTuple):
    """A change of an output of a function."""

    function: str
    output: int
    kind: str


class Run(NamedTuple):
    """What came of a run of tests."""

    outcomes: dict[str, str]  # of the tests: "passed", "failed" or "skipped"
    called: dict[str, set[str]]  # the functions that were called while a test ran
    outputs: dict[str, int]  # how many each function has
    changed: set[str]  # the functions one of whose results was changed

    @property
    def failed(self) -> set[str]:
        return {test for test, outcome in self.outcomes.items() if outcome == "failed"}

    def about(self, test: str) -> set[str]:
        """The functions that can make a test fail.

        A test whose name has one is about that alone: where one process computes for many tests, the first calls all.
        """
        named = re.search(r"\[(aclnn\w+)", test)
        return {named[1]} if named else self.called.get(test, set())


def read_log(text: str) -> tuple[dict[str, set[str]], dict[str, int], set[str]]:
    """What mutate.cpp wrote: the last three of a Run."""
    called = collections.defaultdict(set)
    outputs: dict[str, int] = {}
    changed = set()
    for line in text.splitlines():
        test, function, count, is_changed = line.split("\t")
        called[test.rpartition(" (")[0]].add(function)
        outputs[function] = max(int(count), outputs.get(function, 0))
        if is_changed == "1":
            changed.add(function)
    return dict(called), outputs, changed


def run(tests: Iterable[str], mutant: Mutant | None = None) -> Run:
    """Runs tests with a change, of every function if it names none."""
    with tempfile.TemporaryDirectory() as folder:
        log, outcomes = Path(folder) / "log", Path(folder) / "outcomes"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(ROOT)]),
            "ACLNN_TEST_MUTANT_LOG": str(log),
            "ACLNN_TEST_OUTCOMES": str(outcomes),
        }
        if mutant:
            environment |= {
                "ACLNN_TEST_MUTANT": mutant.kind,
                "ACLNN_TEST_MUTANT_OUTPUT": str(mutant.output),
                "ACLNN_TEST_MUTANT_FUNCTION": mutant.function,
            }
        # As tests.sanitize does: the tree's own package does not come first.
        options = ["-q", "--tb=no", "-p", "tests.mutants.plugin", "-m", "not test_all and not deep"]
        options += ["-o", "pythonpath=", "--import-mode=append", "--numprocesses=2", "--dist=worksteal"]
        command = [sys.executable, "-m", "pytest", *options, *(str(ROOT / test) for test in tests)]
        done = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True)
        if not outcomes.exists():
            raise SystemExit(f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        ended = {test: outcome for outcome, test in (line.split("\t") for line in outcomes.read_text().splitlines())}
        return Run(ended, *read_log(log.read_text() if log.exists() else ""))


def noticed(spoilt: Run, sound: Run) -> set[str]:
    """The functions for which a test about them alone failed.

    None if nearly all tests failed: a process that computes for many of them has ended then, as a test of a refusal
    fails for no change of a value.
    """
    failed = spoilt.failed - sound.failed
    if len(failed) > 0.9 * len(spoilt.outcomes):
        return set()
    return {next(iter(of)) for test in failed if len(of := sound.about(test)) == 1}


def survivors_of(kind: str, output: int, wanted: str, sound: Run) -> list[Mutant]:
    """The mutants of one kind that no test notices."""
    possible = {name for name, count in sound.outputs.items() if count > output and fnmatch.fnmatch(name, wanted)}
    if not possible:
        return []

    def tests_of(functions: set[str]) -> list[str]:
        return [t for t in sound.outcomes if functions & (sound.about(t) | sound.called.get(t, set()))]

    spoilt = run(tests_of(possible), Mutant("", output, kind))
    called = set().union(*spoilt.called.values())
    found = []
    # Alone, too, those that were not called, because a test or a process ended before.
    for function in sorted((spoilt.changed & possible | possible - called) - noticed(spoilt, sound)):
        mutant = Mutant(function, output, kind)
        alone = run(tests_of({function}), mutant)
        if function in alone.changed and not alone.failed - sound.failed:
            found.append(mutant)
    count = len(spoilt.changed & possible)
    print(f"{kind} of output {output}: {count} functions changed, {len(found)} not noticed", flush=True)
    return found


def read_survivors(text: str) -> dict[Mutant, str]:
    """Those that are known, with the reason, of a table as survivors.tsv."""
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    return {Mutant(function, int(output), kind): reason for function, output, kind, reason in lines}


def main() -> int:
    """Returns 0 if only mutants survived that the list has."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("functions", nargs="?", default="aclnn*", help="a pattern of their names")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files, as patterns")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()

    builds.build("mutants", "all", "install")
    builds.copy_sources(PACKAGE)
    files = [str(path.relative_to(ROOT)) for pattern in options.tests for path in sorted(ROOT.glob(pattern))]
    sound = run(files)
    found = []
    for output in range(max(sound.outputs.values())):
        for kind in options.kinds:
            found += survivors_of(kind, output, options.functions, sound)
    reasons = read_survivors(SURVIVORS.read_text())
    new = [mutant for mutant in found if mutant not in reasons]
    for mutant in new:
        print(f"not noticed: {mutant.function}, output {mutant.output}, {mutant.kind}")
    print(f"{len(found)} survivors, {len(new)} of them without a reason")
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
