"""Mutants of C++, made by universalmutator, and the tests that enter each function, recorded by reach.cpp."""

from __future__ import annotations

import collections
import contextlib
import fnmatch
import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from universalmutator.mutator import mutants_regexp

from tests import builds
from tests.source_mutants import PYTHON, Mutant, run_tests, status_within

# Rows, operators and kernels have mutants of their own: make mutants.
FOLDERS = ("client", "host_cann/runtime", "host_cann/descriptors", "cann/hccl", "cann/profiling", "torch_ops")
RULES = ["universal.rules", "c_like.rules", "cpp.rules"]


class Build:
    """The build of a copy of the tree."""

    def __init__(self, tree: Path):
        self.tree = tree
        self.folder = tree / "build" / "release"
        self.reach = tree / "build" / "reach.so"
        self.objects: dict[Path, bytes] = {}  # what the unchanged sources compile to

    def configure(self) -> None:
        """Compiles everything, with reports of the functions that tests enter."""
        sources = self.tree / "tests" / "source_mutants"
        command = [builds.CMAKE, "--preset", "release", f"-DCMAKE_CXX_COMPILER_LAUNCHER={sources / 'instrument.sh'}"]
        command += [
            f"-DCMAKE_MAKE_PROGRAM={Path(builds.ninja.BIN_DIR) / 'ninja'}",
            f"-DACLNN_PYTHON={self.tree / PYTHON}",
        ]
        subprocess.run(command, cwd=self.tree, check=True, stdout=subprocess.DEVNULL)
        options = ["-std=c++20", "-O2", "-shared", "-fPIC", sources / "reach.cpp", "-o", self.reach]
        subprocess.run([*builds.CXX, *options], check=True)
        self.build_unchanged()

    def build(self, seconds: float) -> bool:
        """Whether everything compiles; a mutant can make the compiler compute forever."""
        command = [builds.CMAKE, "--build", str(self.folder), "--target", "all", "cpp_tests", "install"]
        # The C++ tests include headers of these folders.
        launcher = {"INSTRUMENTED": " ".join([*(f"csrc/{folder}" for folder in FOLDERS), "tests/cpp"])}
        launcher |= {"CCACHE": shutil.which("ccache") or "", "CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1"}
        sloppy = {"CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
        return status_within(seconds, command, self.tree, launcher | sloppy) == 0

    def build_unchanged(self) -> None:
        if not self.build(3600):
            raise SystemExit("the unchanged sources do not compile")
        self.objects = self.hashes()

    def is_changed(self, mutant: Mutant) -> bool:
        """Compiles a changed tree; whether that succeeds and an object differs from the unchanged sources'."""
        start = time.time()
        return self.build(300) and any(self.objects.get(path) != value for path, value in self.hashes(start).items())

    def hashes(self, since: float = 0) -> dict[Path, bytes]:
        """The object files that were written since."""
        paths = [path for path in self.folder.rglob("*.o") if path.stat().st_mtime >= since]
        return {path: hashlib.sha256(path.read_bytes()).digest() for path in paths}

    def record(self, tests: list[str]) -> tuple[dict[tuple[str, int], set[str]], dict[str, float]]:
        """The tests that enter the function that begins at each line, and the seconds that each test takes."""
        log = self.tree / "build" / "reach.log"
        log.unlink(missing_ok=True)
        seconds = run_tests(self.tree, tests, {"LD_PRELOAD": str(self.reach), "ACLNN_TEST_REACH": str(log)})
        entered = collections.defaultdict(lambda: collections.defaultdict(set))
        for line in log.read_text().splitlines():
            test, library, offset = line.split("\t")
            entered[library][int(offset)].add(test)
        found = collections.defaultdict(set)
        for library, tests_of in entered.items():
            for offset, (file, line) in zip(tests_of, lines_of(library, list(tests_of)), strict=True):
                with contextlib.suppress(ValueError):
                    name = str(Path(os.path.normpath(file)).relative_to(self.tree))
                    found[name, line] |= tests_of[offset]
        return dict(found), seconds


def mutants(tree: Path, pattern: str, seed: int) -> Iterator[Mutant]:
    """The mutants of the files whose paths match, in random order; not all compile, and some change nothing."""
    places = []
    for folder in FOLDERS:
        for path in sorted((tree / "csrc" / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp") or not fnmatch.fnmatch(name := str(path.relative_to(tree)), pattern):
                continue
            lines = path.read_text().splitlines(keepends=True)
            with contextlib.redirect_stdout(io.StringIO()):
                found = mutants_regexp(lines, RULES, ignorePatterns=["#", r"^\s*//"])
            places += [(name, line, changed) for line, changed, *_ in found]
    print(f"{len(places)} mutants", flush=True)
    random.Random(seed).shuffle(places)
    for name, line, changed in places:
        lines = (tree / name).read_text().splitlines(keepends=True)
        lines[line - 1] = changed
        yield Mutant(name, line, "".join(lines))


def lines_of(library: str, offsets: list[int]) -> list[tuple[str, int]]:
    """The file and line of each offset in a library."""
    done = subprocess.run(
        ["addr2line", "-e", library],
        input="".join(f"{offset:#x}\n" for offset in offsets),
        capture_output=True,
        text=True,
    )
    found = [re.match(r"(.*):(\d+|\?)", line) for line in done.stdout.splitlines()]
    return [(match[1], int(match[2])) if match and match[2] != "?" else ("", 0) for match in found]
