"""Tests are independent of the caller's pytest options, of the shell's job control, and of one another."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import pytest

from tests import LONGEST, cabi
from tests.builds import ROOT
from tests.conftest import OF_THE_CALLER


def test_processes_of_tests_do_not_see_what_the_caller_tells_pytest() -> None:
    assert not set(OF_THE_CALLER) & set(os.environ)


def test_what_tests_start_can_be_interrupted() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False\n"


def test_a_callers_options_reach_his_own_pytest_alone() -> None:
    """Two -q would suppress output that other tests read; a shell's background job ignores Ctrl-C."""
    tests = (test_processes_of_tests_do_not_see_what_the_caller_tells_pytest, test_what_tests_start_can_be_interrupted)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"{__file__}::{test.__name__}" for test in tests]
    environment = os.environ | {"PYTEST_ADDOPTS": "-q", "COLUMNS": "20", "FORCE_COLOR": "1", "CI": "true"}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.returncode == 0, result.stdout
    assert " passed" not in result.stdout  # shows that the option was read


def test_garbage_of_other_tests_is_no_object_that_a_call_left() -> None:
    """Nor does its collection hide a leak: it is collected before or after."""

    class Held:
        """In a reference cycle, like an exception with its traceback."""

        def __init__(self) -> None:
            self.scalar = cabi.create_scalar(1.0)
            self.itself = self

        def __del__(self) -> None:
            cabi.host().aclDestroyScalar(self.scalar)

    before, thresholds = cabi.live_objects(), gc.get_threshold()
    Held()
    try:
        with cabi.nothing_left():
            gc.set_threshold(1)
            assert [[] for _ in range(1000)]
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert cabi.live_objects() == before
    with pytest.raises(AssertionError), cabi.nothing_left():
        scalar = cabi.create_scalar(1.0)
    cabi.host().aclDestroyScalar(scalar)
