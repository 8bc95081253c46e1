"""The C++ tests: one test here for every program of tests/cpp and tests/reliability."""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest

from tests import LONGEST, builds

ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(
    source.stem for folder in ("cpp", "reliability") for source in (ROOT / "tests" / folder).glob("test_*.cpp")
)


@pytest.fixture(scope="module")
def programs() -> Path:
    return builds.cpp_tests()


# Every thread of it uses OpenMP; on a large machine their threads would exceed a process's limit.
ENVIRONMENTS = {"test_concurrency": {"OMP_NUM_THREADS": "2"}}


# The same cases between processes that meet over the network take longest; over memory, `make test` has them.
LONG = ("test_hccl_processes_network",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.test_all if name in LONG else ()) for name in NAMES]
)
def test_program(programs: Path, name: str) -> None:
    result = subprocess.run(
        [programs / name],
        env=os.environ | ENVIRONMENTS.get(name, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LONGEST,
    )
    if result.returncode != 0:
        pytest.fail(f"{name} ended with {result.returncode}\n{result.stdout}", pytrace=False)
    for line in re.findall("^skipped (?!.*`make soak` runs it).*$", result.stdout, re.MULTILINE):
        warnings.warn(f"{name}: {line}", stacklevel=1)
