"""Mutants of the Python package, made by cosmic-ray, and the tests that run each of its lines, recorded by coverage."""

from __future__ import annotations

import collections
import fnmatch
import random
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from coverage.numbits import numbits_to_nums

from tests.source_mutants import PYTHON, Mutant, evaluated, run_tests, test_of

PACKAGE = "aclnn_torch"
COVERAGE = """\
[run]
source = {package}
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
dynamic_context = test_function
patch = _exit
data_file = {data}
"""


def mutants(tree: Path, pattern: str, seed: int) -> Iterator[Mutant]:
    """The mutants of the package's modules whose paths match, in random order, which differ in what is evaluated."""
    operators = {name: cosmic_ray.plugins.get_operator(name) for name in sorted(cosmic_ray.plugins.operator_names())}
    places = []
    for path in sorted((tree / PACKAGE).rglob("*.py")):
        name = str(path.relative_to(tree))
        if not fnmatch.fnmatch(name, pattern):
            continue
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for operator in operators:
            if not operators[operator].arguments():  # the others need a list of names
                lines = [start[0] for node in nodes for start, _ in operators[operator]().mutation_positions(node)]
                places += [(name, operator, occurrence, line) for occurrence, line in enumerate(lines)]
    print(f"{len(places)} mutants", flush=True)
    random.Random(seed).shuffle(places)
    seen = {""}
    for name, operator, occurrence, line in places:
        source = (tree / name).read_text()
        changed = mutate_code(source, operators[operator](), occurrence) or source
        if (form := evaluated(changed)) not in {evaluated(source), *seen}:
            seen.add(form)
            yield Mutant(name, line, changed)


def record(tree: Path, tests: list[str]) -> tuple[dict[tuple[str, int], set[str]], dict[str, float]]:
    """The tests that run each line, and the seconds that each test takes."""
    data = tree / "coverage.data"
    (tree / "coverage.ini").write_text(COVERAGE.format(package=tree / PACKAGE, data=data))
    for old in tree.glob("coverage.data*"):
        old.unlink()
    configuration = f"--rcfile={tree / 'coverage.ini'}"
    in_processes = {"COVERAGE_PROCESS_START": str(tree / "coverage.ini")}  # workers of pytest, and what tests start
    seconds = run_tests(tree, tests, in_processes, "-m", "coverage", "run", configuration)
    combine = [tree / PYTHON, "-m", "coverage", "combine", "-q", configuration, tree]
    subprocess.run(combine, cwd=tree, check=True)
    return read_coverage(data, tree), seconds


def read_coverage(path: Path, tree: Path) -> dict[tuple[str, int], set[str]]:
    """The tests by file and line."""
    found = collections.defaultdict(set)
    with sqlite3.connect(path) as data:
        rows = data.execute(
            "select path, context, numbits from line_bits"
            " join file on file.id = file_id join context on context.id = context_id"
        )
        for file, context, bits in rows:
            for line in numbits_to_nums(bits):
                tests = found[str(Path(file).relative_to(tree)), line]  # none if only an import runs it
                if test := test_of(context):
                    tests.add(test)
    return dict(found)
