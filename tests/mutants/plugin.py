"""Records the outcomes of tests: ``pytest -p tests.mutants.plugin``, in the file named by ACLNN_TEST_OUTCOMES."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test that fails in its setup or teardown counts as failed, too."""
    if report.when == "call" or report.failed:
        outcomes[report.nodeid] = "failed" if outcomes.get(report.nodeid) == "failed" else report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In the main process; its workers report to it."""
    if not hasattr(session.config, "workerinput"):
        lines = [f"{outcome}\t{test}\n" for test, outcome in outcomes.items()]
        Path(os.environ["ACLNN_TEST_OUTCOMES"]).write_text("".join(lines))
