"""Tests do not depend on what the caller's environment tells pytest, nor on how a shell started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests import LONGEST
from tests.builds import ROOT
from tests.conftest import OF_THE_CALLER


def test_processes_of_tests_do_not_see_what_the_caller_tells_pytest() -> None:
    assert not set(OF_THE_CALLER) & set(os.environ)


def test_what_tests_start_can_be_interrupted() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False\n"


def test_a_callers_options_reach_his_own_pytest_alone() -> None:
    """Two -q would take away the word that other tests look for; a shell's background job ignores Ctrl-C."""
    tests = (test_processes_of_tests_do_not_see_what_the_caller_tells_pytest, test_what_tests_start_can_be_interrupted)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"{__file__}::{test.__name__}" for test in tests]
    environment = os.environ | {"PYTEST_ADDOPTS": "-q", "COLUMNS": "20", "FORCE_COLOR": "1"}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.returncode == 0, result.stdout
    assert " passed" not in result.stdout  # so that the option was read
