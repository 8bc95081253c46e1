"""Changes the results of functions and reports the changes that no test detects: ``make mutants``.

A variant of the host CANN, build/mutants, changes an output of every function in one way (tests/mutants/mutate.cpp):
zeros, one number everywhere, an input instead, one element, two exchanged, the sign, an error of four times the tests'
tolerance, the last row left out, a byte written between the elements. All functions are changed at once; a mutant is
killed if a test fails that calls only its function. Survivors are then tested separately, with all tests that call the
function. ARGS are functions (a pattern such as ``aclnnElu*``), ``--changed``, ``--tests`` and ``--kinds``.

Survivors are compared with tests/mutants/survivors.tsv, which gives a reason for each. The last lines count the mutants
that were killed, by kind and by function with survivors.
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
from tests.aten_ops.files import ROWS, row_files

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "mutants" / "python"
HOST = ROOT / "csrc" / "host_cann"
SURVIVORS = Path(__file__).with_name("survivors.tsv")
KINDS = ("zeros", "constant", "input", "one", "exchange", "sign", "error", "tail", "gap")
# The tests that call the C interface and check the results.
TESTS = ("tests/conformance", "tests/test_aten_*.py", "tests/test_named_operators.py", "tests/test_private_formats.py")


class Mutant(NamedTuple):
    """A change of an output of a function."""

    function: str
    output: int
    kind: str


class Run(NamedTuple):
    """The results of a run of tests."""

    outcomes: dict[str, str]  # of the tests: "passed", "failed" or "skipped"
    called: dict[str, set[str]]  # the functions called while a test ran
    outputs: dict[str, int]  # the number of each function's outputs
    changed: set[str]  # functions with a changed result

    @property
    def failed(self) -> set[str]:
        return {test for test, outcome in self.outcomes.items() if outcome == "failed"}


def read_log(text: str) -> tuple[dict[str, set[str]], dict[str, int], set[str]]:
    """The log of mutate.cpp: the last three fields of a Run."""
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
        # As in tests.sanitize: the tree's own package must not come first.
        options = ["-q", "--tb=no", "-p", "tests.mutants.plugin", "-m", "not test_all and not deep"]
        options += ["-o", "pythonpath=", "--import-mode=append", "--numprocesses=2", "--dist=worksteal"]
        command = [sys.executable, "-m", "pytest", *options, *(str(ROOT / test) for test in tests)]
        done = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True)
        if not outcomes.exists():
            raise SystemExit(f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        ended = {test: outcome for outcome, test in (line.split("\t") for line in outcomes.read_text().splitlines())}
        return Run(ended, *read_log(log.read_text() if log.exists() else ""))


def noticed(spoilt: Run, sound: Run) -> set[str]:
    """The functions for which a test failed that calls no other function."""
    failed = spoilt.failed - sound.failed
    return {next(iter(of)) for test in failed if len(of := sound.called.get(test, set())) == 1}


def mutants_of(kind: str, output: int, functions: set[str], sound: Run) -> dict[Mutant, bool]:
    """The mutants of one kind, and whether a test detects them."""
    possible = {name for name in functions if sound.outputs[name] > output}
    if not possible:
        return {}

    def tests_of(functions: set[str]) -> list[str]:
        return [test for test in sound.outcomes if functions & sound.called.get(test, set())]

    spoilt = run(tests_of(possible), Mutant("", output, kind))
    killed = noticed(spoilt, sound)
    found = {Mutant(function, output, kind): True for function in spoilt.changed & possible & killed}
    called = set().union(*spoilt.called.values())
    # Also separately those that were not called, because a test or a process ended before.
    for function in sorted((spoilt.changed & possible | possible - called) - killed):
        mutant = Mutant(function, output, kind)
        alone = run(tests_of({function}), mutant)
        if function in alone.changed:
            found[mutant] = bool(alone.failed - sound.failed)
    survivors = list(found.values()).count(False)
    print(f"{kind} of output {output}: {len(found)} functions changed, {survivors} not noticed", flush=True)
    return found


def functions_in(paths: Iterable[Path]) -> set[str]:
    """The functions of source files: rows, all rows of a folder for its headers, operators, and those of kernels."""
    names: set[str] = set()
    for path in paths:
        if path.is_relative_to(ROWS):
            file = str(path.relative_to(ROWS))
            folder = file.rpartition("/")[0] if path.suffix == ".h" else file
            names |= {name for name, files in row_files().items() if any(f.startswith(folder) for f in files)}
        elif path.is_relative_to(HOST):
            for source in (HOST / "ops").rglob("*.cpp"):
                operator = source.relative_to(HOST / "ops").parts[0].removesuffix(".cpp")
                if path.stem.startswith(operator) or operator in path.parts:
                    names |= set(re.findall(r"\baclnn[A-Z]\w*(?=GetWorkspaceSize)", source.read_text()))
    return names


def changed_files(since: str) -> list[Path]:
    """The files that differ from a commit."""
    command = ["git", "diff", "--name-only", since, "--", "csrc"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def scores(found: dict[Mutant, bool]) -> list[str]:
    """The numbers of mutants killed, by kind and by function with survivors."""
    lines = []
    for number, called in ((2, "kind"), (0, "function")):
        of = collections.defaultdict(list)
        for mutant, is_killed in found.items():
            of[str(mutant[number])].append(is_killed)
        lines += [
            f"{called} {name}: {sum(killed)} of {len(killed)} killed"
            for name, killed in of.items()
            if called == "kind" or not all(killed)
        ]
    share = 100 * sum(found.values()) / max(len(found), 1)
    return [*lines, f"{sum(found.values())} of {len(found)} killed, {share:.1f} %"]


def read_survivors(text: str) -> dict[Mutant, str]:
    """The known survivors, with the reason, from a table like survivors.tsv."""
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    return {Mutant(function, int(output), kind): reason for function, output, kind, reason in lines}


def main() -> int:
    """Returns 0 if all survivors are in the list."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("functions", nargs="?", default="*", help="a pattern of their names")
    parser.add_argument("--changed", metavar="COMMIT", help="only those in files of csrc that differ from a commit")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files, as patterns")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()

    builds.build("mutants", "all", "install")
    builds.copy_sources(PACKAGE)
    files = [str(path.relative_to(ROOT)) for pattern in options.tests for path in sorted(ROOT.glob(pattern))]
    sound = run(files)
    functions = set(fnmatch.filter(sound.outputs, options.functions))
    if options.changed:
        functions &= functions_in(changed_files(options.changed))
    found: dict[Mutant, bool] = {}
    for output in range(max((sound.outputs[name] for name in functions), default=0)):
        for kind in options.kinds:
            found |= mutants_of(kind, output, functions, sound)
    print("\n".join(scores(found)))
    reasons = read_survivors(SURVIVORS.read_text())
    new = [mutant for mutant, is_killed in found.items() if not is_killed and mutant not in reasons]
    for mutant in new:
        print(f"not noticed: {mutant.function}, output {mutant.output}, {mutant.kind}")
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
