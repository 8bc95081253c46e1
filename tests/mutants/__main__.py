"""Changes what functions compute and how they refuse, and reports the changes that no test detects: ``make mutants``.

A variant of the host CANN, build/mutants, changes an output of a function in one way (tests/mutants/values.cpp): zeros,
the first element everywhere, an input instead, one element, two exchanged, the sign, an error of four times what tests
allow, the last row left out, a byte written between the elements; or a refusal (tests/mutants/refusals.cpp): its text,
or its status. A refusal is a check of rows, for all functions that share it, or else a function and what
``aclGetRecentErrMsg`` says, whatever the numbers, lists and types in it.

Each test runs as it is, which shows what can be changed in its calls, and again with each of these changes alone that
no test has detected yet (tests/mutants/plugin.py). ARGS are functions (a pattern such as ``aclnnElu*``),
``--changed``, ``--tests`` and ``--kinds``. Survivors are compared with tests/mutants/survivors.tsv, which has a reason
for each. At the end it prints the numbers of killed mutants by kind, by family, and by function for those that have
survivors.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests import OF_THE_CALLER, builds
from tests.aten_ops.files import ROWS, row_files
from tests.mutants import KINDS, REFUSALS, ROOT, Mutant, Plan, Results

PACKAGE = ROOT / "build" / "mutants" / "python"
HOST = ROOT / "csrc" / "host_cann"
ENGINE = ROWS / "engine"
SURVIVORS = Path(__file__).with_name("survivors.tsv")
# The tests that call the C interface and check the results; those with many calls and refusals come last.
TESTS = (
    *("tests/test_aten_*.py", "tests/test_named_operators.py", "tests/test_private_formats.py"),
    *("tests/test_runtime_refusals.py", "tests/conformance"),
)


def run(tests: Iterable[Path], plan: Plan, package: Path = PACKAGE) -> Results:
    """Runs tests on a variant, with the mutants of a plan."""
    with tempfile.TemporaryDirectory() as folder:
        meant, log, results = (Path(folder) / name for name in ("plan", "log", "results"))
        meant.write_text(json.dumps(plan._asdict()))
        environment = {name: value for name, value in os.environ.items() if name not in OF_THE_CALLER} | {
            "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]),
            "ACLNN_TEST_MUTANT_PLAN": str(meant),
            "ACLNN_TEST_MUTANT_LOG": str(log),
            "ACLNN_TEST_MUTANT_RESULTS": str(results),
        }
        # As in tests.sanitize: the tree's own package must not come first.
        # Properties take minutes to find the smallest call that fails, and are left out.
        options = ["-q", "--tb=no", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider"]
        options += ["-m", "not test_all and not deep and not hypothesis", "-o", "pythonpath=", "--import-mode=append"]
        done = subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=package, env=environment)
        if not results.exists():
            raise SystemExit(f"pytest ended with {done.returncode}")
        return Results(**json.loads(results.read_text()))


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
    functions = None
    if options.changed:
        every = {*row_files(), *operators()}
        differing = set().union(*(functions_in(path, every) for path in changed_files(options.changed)))
        functions = None if differing >= every else sorted(differing)
    plan = Plan(options.kinds, options.functions, functions)
    tests = [path for pattern in options.tests for path in sorted(ROOT.glob(pattern))]
    results = run(tests, plan)
    found = {Mutant(*mutant): is_killed for *mutant, is_killed in results.found}
    print("\n".join(scores(found)))
    if plan == Plan(KINDS):
        print("\n".join(untried(checks_in([ROWS, ROWS.parent / "named_ops"]), set(results.checks))))
    reasons = read_survivors(SURVIVORS.read_text())
    new = [mutant for mutant, is_killed in found.items() if not is_killed and mutant not in reasons]
    for mutant in new:
        print(f"not detected: {mutant.function}, output {mutant.output}, {mutant.kind}")
    for test in results.failing:
        print(f"fails unchanged: {test}")
    return int(bool(new or results.failing))


if __name__ == "__main__":
    sys.exit(main())
