"""Programs with several processes, each with a simulated NPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import LONGEST

ROOT = Path(__file__).resolve().parents[2]


def launch(*command: str) -> None:
    """Runs Python with the command in this process's environment; on failure, the test shows the output."""
    small = {"OMP_NUM_THREADS": "1", "HCCL_IF_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=ROOT,
        env=os.environ | small,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if result.returncode != 0:
        pytest.fail(f"status {result.returncode}\n{result.stdout}{result.stderr}", pytrace=False)
