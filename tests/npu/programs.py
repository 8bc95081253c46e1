"""Programs in separate processes: events that end or break a process cannot happen in pytest's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import aclnn_torch
from tests import LONGEST

PACKAGE = Path(aclnn_torch.__file__).parent
ROOT = PACKAGE.parent


class Result(NamedTuple):
    """The outcome of a program, and its output."""

    status: int
    output: str
    errors: str


def run(code: str, **environment: str) -> Result:
    """Run Python code in this process's environment with these changes; a hanging program is ended with an error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONFAULTHANDLER": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def package_with(library: Path | None, folder: Path) -> None:
    """A copy of the package with another library for NPU tensors, or none."""
    package = folder / "aclnn_torch"
    (package / "lib").mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name != "lib":
            (package / path.name).symlink_to(path)
    (package / "lib" / "libaclnn_host.so").symlink_to(PACKAGE / "lib" / "libaclnn_host.so")
    if library:
        (package / "lib" / "libaclnn_npu_real.so").symlink_to(PACKAGE / "lib" / "libaclnn_npu.so")
        (package / "lib" / "libaclnn_npu.so").symlink_to(library)
