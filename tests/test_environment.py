"""Tests do not depend on what the caller's environment tells pytest."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import LONGEST
from tests.builds import ROOT
from tests.conftest import OF_THE_CALLER


def test_processes_of_tests_do_not_see_what_the_caller_tells_pytest() -> None:
    assert not set(OF_THE_CALLER) & set(os.environ)


def test_a_callers_options_reach_his_own_pytest_alone() -> None:
    """Two -q would take away the word that other tests look for."""
    test = f"{__file__}::{test_processes_of_tests_do_not_see_what_the_caller_tells_pytest.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    environment = os.environ | {"PYTEST_ADDOPTS": "-q", "COLUMNS": "20", "FORCE_COLOR": "1"}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stdout
    assert " passed" not in result.stdout  # so that the option was read
