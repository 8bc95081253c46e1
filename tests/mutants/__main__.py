"""Changes what functions compute and how they refuse, and reports the changes that no test detects: ``make mutants``.

A variant of the host CANN, build/mutants, changes an output of every function in one way (tests/mutants/values.cpp):
zeros, the first element everywhere, an input instead, one element, two exchanged, the sign, an error of four times what
tests allow, the last row left out, a byte written between the elements; or every refusal (tests/mutants/refusals.cpp):
its text, or its status. A refusal is a check of rows, for all functions that share it, or else a function and what
``aclGetRecentErrMsg`` says, whatever the numbers, lists and types in it. All functions are changed at once; a mutant is
killed if a test fails that calls only its function, or has only its refusal. The mutants that are left are tried in
groups of which no test has two. ARGS are functions (a pattern such as ``aclnnElu*``), ``--changed``, ``--tests`` and
``--kinds``.

Survivors are compared with tests/mutants/survivors.tsv, which has a reason for each. At the end it prints the numbers
of killed mutants by kind, by family, and by function for those that have survivors.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Set
from pathlib import Path
from typing import NamedTuple

from tests import OF_THE_CALLER, builds
from tests.aten_ops.files import ROWS, row_files

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "mutants" / "python"
HOST = ROOT / "csrc" / "host_cann"
ENGINE = ROWS / "engine"
SURVIVORS = Path(__file__).with_name("survivors.tsv")
VALUES = ("zeros", "constant", "input", "one", "exchange", "sign", "error", "tail", "gap")
REFUSALS = ("text", "status")
KINDS = VALUES + REFUSALS
SWEEP = 100  # refusals of one test
FEW = 4  # tests that a mutant meets before it meets all
# The tests that call the C interface and check the results.
TESTS = ("tests/conformance", "tests/test_aten_*.py", "tests/test_named_operators.py", "tests/test_private_formats.py")
TESTS += ("tests/test_runtime_refusals.py",)


class Mutant(NamedTuple):
    """A change of an output of a function, or of a refusal."""

    function: str
    output: int
    kind: str


class Change(NamedTuple):
    """What a run changes: an output of these functions, or these refusals, or of all."""

    kind: str
    output: int
    names: frozenset[str] = frozenset()


class Run(NamedTuple):
    """The results of a run of tests."""

    outcomes: dict[str, str]  # of the tests: "passed", "failed" or "skipped"
    called: dict[str, set[str]]  # the functions that computed while a test ran
    refused: dict[str, set[str]]  # the refusals while a test ran
    outputs: dict[str, int]  # the number of each function's outputs
    changed: set[str]  # functions with a changed result, and changed refusals
    checks: set[str]  # the checks of rows that refused, such as "csrc/cann/rows/shape/repeat.cpp:26"

    def subjects(self, kind: str) -> dict[str, set[str]]:
        """What a kind of mutant can change, by test; a test of more than SWEEP refusals tells none of them apart."""
        if kind not in REFUSALS:
            return self.called
        return {test: names for test, names in self.refused.items() if test and len(names) <= SWEEP}

    @property
    def failed(self) -> set[str]:
        return {test for test, outcome in self.outcomes.items() if outcome == "failed"}


def read_log(text: str) -> tuple[dict[str, set[str]], dict[str, set[str]], dict[str, int], set[str], set[str]]:
    """The log of the variant: the last five fields of a Run."""
    called, refused = collections.defaultdict(set), collections.defaultdict(set)
    outputs: dict[str, int] = {}
    changed, checks = set(), set()
    for line in text.splitlines():
        test, name, count, is_changed = line.split("\t")
        if int(count) == -2:
            checks.add("csrc/" + name.rpartition("/csrc/")[2])
        elif int(count) == -1:
            refused[test.rpartition(" (")[0]].add(name)
        else:
            called[test.rpartition(" (")[0]].add(name)
            outputs[name] = max(int(count), outputs.get(name, 0))
        if is_changed == "1":
            changed.add(name)
    return dict(called), dict(refused), outputs, changed, checks


# Of a run that took longer than its limit: nothing is known of it.
OVERDUE = Run({}, {}, {}, {}, set(), set())


def run(tests: Iterable[str], change: Change | None = None, limit: float | None = None) -> Run:
    """Runs tests with a change; OVERDUE after `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log, outcomes = Path(folder) / "log", Path(folder) / "outcomes"
        environment = {name: value for name, value in os.environ.items() if name not in OF_THE_CALLER} | {
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(ROOT)]),
            "ACLNN_TEST_MUTANT_LOG": str(log),
            "ACLNN_TEST_OUTCOMES": str(outcomes),
        }
        if change:
            meant = Path(folder) / "names"
            meant.write_text("".join(f"{name}\n" for name in change.names))
            environment |= {
                "ACLNN_TEST_MUTANT": change.kind,
                "ACLNN_TEST_MUTANT_OUTPUT": str(change.output),
                "ACLNN_TEST_MUTANT_NAMES": str(meant),
            }
        # As in tests.sanitize: the tree's own package must not come first.
        # Properties take minutes to find the smallest call that fails, and are left out.
        options = ["-q", "--tb=no", "-p", "tests.mutants.plugin", "-m", "not test_all and not deep and not hypothesis"]
        options += ["-o", "pythonpath=", "--import-mode=append", "--numprocesses=2", "--dist=worksteal"]
        names = Path(folder) / "tests"  # too many for a command line
        names.write_text("".join(f"{ROOT / test}\n" for test in tests))
        command = [sys.executable, "-m", "pytest", *options, f"@{names}"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, cwd=PACKAGE, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # its workers, too
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return OVERDUE
            raise
        if not outcomes.exists():
            raise SystemExit(f"pytest ended with {process.returncode}\n{stdout[-2000:]}{stderr[-2000:]}")
        ended = {test: outcome for outcome, test in (line.split("\t") for line in outcomes.read_text().splitlines())}
        return Run(ended, *read_log(log.read_text() if log.exists() else ""))


def detected_in(kind: str, names: Set[str], spoilt: Run, sound: Run) -> set[str]:
    """Those of the changed functions or refusals for which a test failed that has no other of them."""
    subjects = sound.subjects(kind)
    failed = spoilt.failed - sound.failed
    return {next(iter(of)) for test in failed if len(of := subjects.get(test, set()) & names) == 1}


def apart(names: Iterable[str], subjects: Iterable[Set[str]]) -> list[set[str]]:
    """Groups of functions or refusals of which no test has two, so that a failure tells which it detects."""
    beside = collections.defaultdict(set)
    for of in subjects:
        for name in of:
            beside[name] |= of
    groups: list[set[str]] = []
    for name in sorted(names, key=lambda name: (-len(beside[name]), name)):
        group = next((group for group in groups if not group & beside[name]), None)
        if group is None:
            groups.append(group := set())
        group.add(name)
    return groups


def some_tests(names: Set[str], subjects: dict[str, set[str]]) -> set[str]:
    """FEW tests for each of the functions or refusals, from all that have it and no other of them."""
    own: dict[str, list[str]] = collections.defaultdict(list)
    for test, of in subjects.items():
        if len(found := of & names) == 1:
            own[next(iter(found))].append(test)
    return {tests[i * len(tests) // FEW] for tests in own.values() for i in range(FEW)}


def mutants_of(kind: str, output: int, possible: set[str], sound: Run, limit: float) -> dict[Mutant, bool]:
    """The mutants of one kind, and whether a test detects them; no run takes longer than `limit` seconds."""
    if not possible:
        return {}
    subjects = sound.subjects(kind)
    found: dict[str, bool] = {}

    def attempt(names: set[str], few: bool = False) -> set[str]:
        """Changes these together, in a few tests or all; returns those of which nothing is known."""
        chosen = some_tests(names, subjects) if few else {test for test, of in subjects.items() if names & of}
        tests = [test for test in sound.outcomes if test in chosen]
        if not tests:
            return names
        spoilt = run(tests, Change(kind, output, frozenset(names)), limit)
        if spoilt is OVERDUE and len(names) == 1:
            found[next(iter(names))] = True  # a test that hangs detects it
            return set()
        killed = detected_in(kind, names, spoilt, sound)
        reached = set().union(*spoilt.subjects(kind).values())
        found.update({name: name in killed for name in spoilt.changed & names if name in killed or name in reached})
        # A test or a process may have ended before it came to the others.
        return names - reached

    def remaining() -> set[str]:
        return {name for name in possible if not found.get(name)}

    attempt(possible, few=True)
    left = attempt(remaining()) | remaining() & found.keys()
    for group in apart(left, subjects.values()):
        unknown = attempt(group)
        for name in sorted(unknown if len(group) > 1 else ()):
            attempt({name})
    survivors = list(found.values()).count(False)
    print(f"{kind} of output {output}: {len(found)} changed, {survivors} not detected", flush=True)
    return {Mutant(name, output, kind): is_killed for name, is_killed in found.items()}


def operators_in(source: Path) -> set[str]:
    """The functions of an operator whose first stage is in a file."""
    return set(re.findall(r"\baclnn[A-Z]\w*(?=GetWorkspaceSize)", source.read_text()))


@functools.cache
def operators() -> set[str]:
    """The functions of all operators."""
    return set().union(*map(operators_in, (HOST / "ops").rglob("*.cpp")))


def functions_in(path: Path, every: set[str]) -> set[str]:
    """The functions of a source file.

    Rows of a file; all rows of a folder for what these share; an operator, also for its kernels; every function for
    what all of them share.
    """
    if path.is_relative_to(ROWS):
        file = path.relative_to(ROWS)
        of_file = {name for name, files in row_files().items() if str(file) in files}
        folder = {name for name, files in row_files().items() if any(Path(f).parent == file.parent for f in files)}
        return of_file or folder or every
    if path.parent in (HOST / "ops", HOST / "kernels") or path.is_relative_to(HOST / "ops"):
        names: set[str] = set()
        for source in (HOST / "ops").rglob("*.cpp"):
            operator = source.relative_to(HOST / "ops").parts[0].removesuffix(".cpp")
            if path.stem.startswith(operator) or operator in path.parts:
                names |= operators_in(source)
        return names or every
    return every


def is_of(refusal: str, functions: set[str]) -> bool:
    """Whether a refusal's check is in a file of the functions' rows, or its text begins with one."""
    if refusal.startswith("csrc/"):
        path = os.path.relpath(ROOT / refusal.rpartition(":")[0], ROWS)
        return any(path in row_files().get(name, ()) for name in functions)
    return refusal.partition(":")[0] in functions


def changed_files(since: str) -> list[Path]:
    """The C++ files of csrc that differ from a commit, new ones too."""
    found: list[str] = []
    for command in (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command, "--", "csrc"], cwd=ROOT, capture_output=True, text=True, check=True)
        found += done.stdout.splitlines()
    return [ROOT / name for name in found if name.endswith((".cpp", ".h"))]


def family_of(subject: str) -> str:
    """The family of a function or a refusal: operator families, named operators, a folder of rows, or others."""
    name = subject.partition(":")[0]
    if name.startswith(("aclop ", "csrc/cann/named_ops/")):
        return "named operators"
    if name.startswith("csrc/"):
        folder = (ROOT / name).parent
    elif name in row_files():
        folder = (ROWS / row_files()[name][0]).parent
    else:
        return "operator families" if name in operators() else "others"
    return "rows: shared checks" if folder == ROWS else f"rows: {folder.name}"


def part_of(mutant: Mutant) -> str:
    """What a mutant changes: first outputs, further outputs, texts or statuses."""
    return mutant.kind if mutant.kind in REFUSALS else "further outputs" if mutant.output else "first outputs"


def scores(found: dict[Mutant, bool]) -> list[str]:
    """The numbers of mutants killed, by kind, by family, and by function with survivors."""
    groups: dict[str, list[bool]] = collections.defaultdict(list)
    survived = {mutant.function.partition(":")[0] for mutant, is_killed in found.items() if not is_killed}
    for mutant, is_killed in found.items():
        part, function = part_of(mutant), mutant.function.partition(":")[0]
        groups[f"kind {mutant.kind}" + ("" if part == mutant.kind else f" of {part}")].append(is_killed)
        groups[f"family {family_of(mutant.function)}, {part}"].append(is_killed)
        if function in survived:
            groups[f"function {function}"].append(is_killed)
    return [
        f"{name}: {sum(killed)} of {len(killed)} killed, {100 * sum(killed) / max(len(killed), 1):.1f} %"
        for name, killed in (*sorted(groups.items()), ("all", list(found.values())))
    ]


def checks_in(folders: Iterable[Path]) -> set[str]:
    """The checks of rows: the lines with EXPECT or a call of refuse(); those that rows share count once."""
    return {
        f"{path.relative_to(ROOT)}:{number}"
        for folder in folders
        for path in folder.rglob("*.*")
        if path.suffix in (".h", ".cpp") and path.parent != ENGINE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bEXPECT\(|\brefuse\(\{", line)
    }


def untried(every: set[str], refused: set[str]) -> list[str]:
    """How many checks refused in a test, and the lines of the others, by file."""
    lines = collections.defaultdict(list)
    for check in every - refused:
        path, _, line = check.rpartition(":")
        lines[path].append(int(line))
    others = [f"{path}: {', '.join(map(str, sorted(of)))}" for path, of in sorted(lines.items())]
    return [f"{len(every & refused)} of {len(every)} checks of rows refuse in a test; the others:", *others]


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
    start = time.monotonic()
    sound = run(files)
    limit = 5 * (time.monotonic() - start) + 60
    functions = set(fnmatch.filter(sound.outputs, options.functions))
    if options.changed:
        functions &= set().union(*(functions_in(path, functions) for path in changed_files(options.changed)))
    found: dict[Mutant, bool] = {}
    for output in range(max((sound.outputs[name] for name in functions), default=0)):
        possible = {name for name in functions if sound.outputs[name] > output}
        for kind in [kind for kind in options.kinds if kind in VALUES]:
            found |= mutants_of(kind, output, possible, sound, limit)
    is_whole = options.functions == "*" and not options.changed
    for kind in [kind for kind in options.kinds if kind in REFUSALS]:
        refusals = {name for names in sound.subjects(kind).values() for name in names}
        if not is_whole:
            refusals = {name for name in refusals if is_of(name, functions)}
        found |= mutants_of(kind, 0, refusals, sound, limit)
    print("\n".join(scores(found)))
    if is_whole:
        print("\n".join(untried(checks_in([ROWS, ROWS.parent / "named_ops"]), sound.checks)))
    reasons = read_survivors(SURVIVORS.read_text())
    new = [mutant for mutant, is_killed in found.items() if not is_killed and mutant not in reasons]
    for mutant in new:
        print(f"not detected: {mutant.function}, output {mutant.output}, {mutant.kind}")
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
