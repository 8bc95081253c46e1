"""Changes one place of a source file at a time, and reports the changes that no test detects: ``make source-mutants``.

It works on a copy of the tree, build/source_mutants. The mutants are those of a well-kept tool, of which a seeded
sample is tried. The tests run once unchanged, which records the tests that run each line; a mutant is tried on the
tests that run its line, the most specific ones first, and is killed if one fails or takes much longer.
"""

from __future__ import annotations

import ast
import collections
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests import OF_THE_CALLER

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ".venv/bin/python"  # in a tree


class Mutant(NamedTuple):
    """A changed source file."""

    file: str  # in the tree
    line: int
    source: str  # the whole text

    @property
    def key(self) -> str:
        """Of a file of verdicts."""
        return f"{self.file}:{self.line} {hashlib.sha256(self.source.encode()).hexdigest()}"


def evaluated(source: str) -> str:
    """What of a module is evaluated: annotations are not. Empty if it has no syntax."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            self.generic_visit(node)
            node.returns = None
            return node

        def visit_arg(self, node: ast.arg) -> ast.AST:
            node.annotation = None
            return node

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
            self.generic_visit(node)
            node.annotation = ast.Constant(None)
            return node

    try:
        return ast.dump(Strip().visit(ast.parse(source)))
    except SyntaxError:
        return ""


def copy_tree(folder: Path, binaries: bool) -> None:
    """Copies what git tracks, and optionally links the binaries."""
    shutil.rmtree(folder, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)  # as in the tree itself, so that ccache finds what it compiled
    if not binaries:
        return
    for binary in ("aclnn_torch/lib", "aclnn_torch/cann", "build/release"):
        (folder / binary).parent.mkdir(parents=True, exist_ok=True)
        (folder / binary).symlink_to(ROOT / binary)
    for library in (ROOT / "aclnn_torch").glob("*.so"):
        (folder / "aclnn_torch" / library.name).symlink_to(library)


def environment(tree: Path) -> dict[str, str]:
    """Of a process that runs tests of the tree."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_CALLER}
    return kept | {"PYTHONPATH": str(tree)}


def status_within(seconds: float, command: list[str], tree: Path, extra: Mapping[str, str]) -> int | None:
    """The exit status of a command in a tree; None if it takes longer, in which case all that it started is ended."""
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=tree, env=environment(tree) | extra, stdout=nothing, stderr=nothing, start_new_session=True
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def run_tests(tree: Path, tests: list[str], extra: dict[str, str], *interpreter: str) -> dict[str, float]:
    """Runs all tests; returns the seconds of those that pass or are skipped."""
    results = tree / "results.xml"
    results.unlink(missing_ok=True)
    command = [str(tree / PYTHON), *interpreter, "-m", "pytest", "-q", "--tb=no", "--numprocesses=2"]
    command += ["--dist=worksteal", "-m", "not deep", f"--junitxml={results}", *tests]
    done = subprocess.run(command, cwd=tree, env=environment(tree) | extra, capture_output=True, text=True)
    if not results.exists():
        raise SystemExit(f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return read_results(results.read_text())


def test_of(context: str) -> str:
    """The test, as a function of pytest, of a context of coverage: a process of its own has pytest's name of it."""
    of_process, _, of_function = context.partition("|")
    if "::" in of_process:
        return of_process.partition("[")[0].partition(" ")[0]
    name = of_function or of_process
    found = re.fullmatch(r"(tests(?:\.\w+)*?\.test_\w+|tests(?:\.\w+)+?)\.((?:Test\w+\.)?test_\w+)", name)
    return f"{found[1].replace('.', '/')}.py::{found[2].replace('.', '::')}" if found else ""


def read_results(text: str) -> dict[str, float]:
    """The seconds of each test that passed or was skipped, from pytest's JUnit XML.

    All parameters of a test are one, but those of tests/test_cpp.py, which are programs.
    """
    seconds: dict[str, float] = collections.defaultdict(float)
    failed = set()
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, bracket, parameter = case.attrib["name"].partition("[")
        test = test_of(f"{case.attrib['classname']}.{name}")
        if test.startswith("tests/test_cpp.py"):
            test += bracket + parameter
        seconds[test] += float(case.attrib["time"])
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
    return {test: time for test, time in seconds.items() if test and test not in failed}
