"""Programs in processes of their own: what ends a process, or leaves it of no use, cannot happen in pytest's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from tests import LONGEST


class Result(NamedTuple):
    """How a program ended, and what it wrote."""

    status: int
    output: str
    errors: str


def run(code: str, **environment: str) -> Result:
    """Run Python code in this process's environment with these changes; one that hangs is ended, with an error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONFAULTHANDLER": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    return Result(done.returncode, done.stdout, done.stderr)
