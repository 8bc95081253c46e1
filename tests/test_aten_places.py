"""Every elementwise row gives the same result for the same element at any position."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.aten_ops.sweep import ENVIRONMENT, PACKAGE


@pytest.mark.test_all
def test_special_values_have_one_answer() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.aten_ops.places"]
    done = subprocess.run(command, cwd=PACKAGE.parent, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr[-3000:]) == (0, "", "")
