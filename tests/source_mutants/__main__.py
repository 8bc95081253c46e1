"""See the package's docstring."""

from __future__ import annotations

import argparse
import ast
import bisect
import collections
import contextlib
import difflib
import fnmatch
import importlib
import itertools
import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests import source_mutants
from tests.source_mutants import PYTHON, ROOT, Mutant, copy_tree, status_within

# Rows have mutants of their own (make mutants); sessions of torch_npu take minutes each.
LEFT_OUT = ("tests/test_aten_*", "tests/test_npu.py", "tests/test_mutants.py", "tests/test_workflows.py")
# The commands of documents take minutes and start most other tests.
LEFT_OUT += ("tests/test_documents.py",)
# These test C++ alone.
OF_CPP = ("tests/test_cpp*", "tests/test_binaries.py", "tests/test_build.py", "tests/test_fuzz.py")
OF_CPP += ("tests/test_operator_headers.py", "tests/test_aot_inductor.py", "tests/conformance", "tests/reliability")
PARTS = (20.0, 120.0)  # seconds of tests that run together; the most specific ones are first
Lines = dict[str, list[tuple[int, set[str]]]]


def fails(tree: Path, tests: list[str], limit: float) -> bool:
    """Whether a test fails, or they take longer than a limit."""
    command = [str(tree / PYTHON), "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-m", "not deep"]
    status = status_within(limit, [*command, *tests], tree, {"PYTHONDONTWRITEBYTECODE": "1"})
    return status not in (0, 5)  # 5: no test is selected


def statement_line(source: str, line: int) -> int:
    """The first line of the innermost statement of a function in Python that has a line; 0 outside functions."""
    found = 0
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in itertools.chain.from_iterable(map(ast.walk, function.body)):
                if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                    found = max(found, node.lineno)
    return found


def covering(mutant: Mutant, lines: Lines) -> set[str]:
    """The tests that run the statement of a function in Python, or enter the function in C++."""
    recorded = lines.get(mutant.file, [])
    if mutant.file.endswith(".py"):
        return dict(recorded).get(statement_line(mutant.source, mutant.line), set())
    position = bisect.bisect([line for line, _ in recorded], mutant.line)
    return recorded[position - 1][1] if position else set()


def importing(tree: Path, module: str) -> set[str]:
    """The files of tests that import a module of Python."""
    path = Path(module)
    if path.suffix != ".py":
        return set()
    package, name = ".".join(path.parent.parts), path.stem
    pattern = rf"^(from {package} import .*\b{name}\b|(import|from) {package}\.{name}\b)"
    tests = (tree / "tests").rglob("test_*.py")
    return {str(test.relative_to(tree)) for test in tests if re.search(pattern, test.read_text(), re.MULTILINE)}


def ordered(
    mutant: Mutant, lines: Lines, importing: set[str], breadth: Mapping[str, int], seconds: Mapping[str, float]
) -> list[str]:
    """Tests of which the times are known, the most specific first, then others that may run the line, too.

    These are the tests in the same files, in files that import the module and, if no test is known to run the line, of
    its file: a process that a signal or another program ends records nothing. The programs that test C++ enter many
    functions, and are fast, so that they are tried before all others.
    """
    first = covering(mutant, lines)
    of_file = set() if first else set().union(*(tests for _, tests in lines.get(mutant.file, [])))
    files = {test.partition("::")[0] for test in first | of_file} | importing
    file_of = {test: test.partition("::")[0] for test in seconds}

    def order(test: str) -> tuple[bool, bool, bool, bool, int, str]:
        is_program = file_of[test] == "tests/test_cpp.py"
        return (
            test not in first,
            not is_program,
            file_of[test] not in importing,
            test not in of_file,
            breadth[test],
            test,
        )

    return sorted((test for test in seconds if test in first or file_of[test] in files), key=order)


def parts_of(tests: Iterable[str], seconds: dict[str, float]) -> list[list[str]]:
    """Tests in parts that take as long as PARTS says; those that take longer than that are left out."""
    parts: list[list[str]] = [[] for _ in PARTS]
    spent = 0.0
    for test in tests:
        spent += seconds[test]
        for part, until in zip(parts, itertools.accumulate(PARTS), strict=True):
            if spent <= until or not part:
                part.append(test)
                break
    return [part for part in parts if part]


def try_mutant(
    tree: Path, mutant: Mutant, lines: Lines, seconds: dict[str, float], apply: Callable[[Mutant], bool | None]
) -> bool | None:
    """Whether a mutant is killed; None if `apply` returns False, which means that it changes nothing."""
    breadth = collections.Counter(test for recorded in lines.values() for _, tests in recorded for test in tests)
    path = tree / mutant.file
    source = path.read_text()
    try:
        path.write_text(mutant.source)
        if not apply(mutant):
            return None
        tests = ordered(mutant, lines, importing(tree, mutant.file), breadth, seconds)
        parts = parts_of(tests, seconds)
        killed = any(fails(tree, part, 60 + 5 * sum(map(seconds.__getitem__, part))) for part in parts)
    finally:
        path.write_text(source)
    if not killed:
        changed = difflib.unified_diff(source.splitlines(), mutant.source.splitlines(), lineterm="", n=0)
        print(f"{mutant.file}:{mutant.line}, {len(tests)} tests", *list(changed)[3:], sep="\n", flush=True)
    return killed


def main() -> int:
    """Prints the survivors and the score."""
    parser = argparse.ArgumentParser(prog="make source-mutants", description=source_mutants.__doc__)
    parser.add_argument("language", nargs="?", choices=("python", "cpp"), default="python")
    parser.add_argument("files", nargs="?", default="*", help="a pattern of their paths")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recorded", action="store_true", help="go on with the tree and results of the last run")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # restores the source that is changed

    # Their tools are installed by `make source-mutants` alone.
    module = importlib.import_module(f"tests.source_mutants.{options.language}")
    tree = ROOT / "build" / "source_mutants" / options.language
    record = tree.parent / f"{options.language}.json"
    tried = tree.parent / f"{options.language}.tried"  # a line of JSON for each mutant
    build = module.Build(tree) if options.language == "cpp" else None
    if not options.recorded:
        copy_tree(tree, binaries=build is None)
        tests = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").glob("test_*.py"))]
        tests += ["tests/conformance", "tests/distributed", "tests/reliability"]
        left_out = LEFT_OUT if build else LEFT_OUT + OF_CPP
        tests = [test for test in tests if not any(fnmatch.fnmatch(test, pattern) for pattern in left_out)]
        if build:
            build.configure()
        by_line, seconds = build.record(tests) if build else module.record(tree, tests)
        kept = [[file, line, sorted(of)] for (file, line), of in sorted(by_line.items())]
        record.write_text(json.dumps({"lines": kept, "seconds": seconds}))
        tried.write_text("")
    stored = json.loads(record.read_text())
    lines: Lines = collections.defaultdict(list)
    for file, line, of in stored["lines"]:
        lines[file].append((line, set(of)))

    if build:
        build.build_unchanged()
    verdicts: dict[str, bool | None] = dict(map(json.loads, tried.read_text().splitlines()))
    mutants = module.mutants(tree, options.files, options.seed)
    apply = build.is_changed if build else lambda mutant: True
    by_file = collections.defaultdict(list)
    with contextlib.suppress(KeyboardInterrupt), tried.open("a", buffering=1) as log:
        for mutant in mutants:
            if mutant.key not in verdicts:
                verdicts[mutant.key] = try_mutant(tree, mutant, lines, stored["seconds"], apply)
                print(json.dumps([mutant.key, verdicts[mutant.key]]), file=log)
            if (is_killed := verdicts[mutant.key]) is not None:
                by_file[mutant.file].append(is_killed)
            if sum(map(len, by_file.values())) == options.sample:
                break
    killed = list(itertools.chain.from_iterable(by_file.values()))
    for file, of in sorted(by_file.items()):
        print(f"{file}: {sum(of)} of {len(of)} killed")
    print(f"{sum(killed)} of {len(killed)} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
