"""Writes how tests ended: ``pytest -p tests.mutants.plugin``, into the file that ACLNN_TEST_OUTCOMES names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test that fails before or after its call has failed, too."""
    if report.when == "call" or report.failed:
        outcomes[report.nodeid] = "failed" if outcomes.get(report.nodeid) == "failed" else report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """By the process that was called; its workers report to it."""
    if not hasattr(session.config, "workerinput"):
        lines = [f"{outcome}\t{test}\n" for test, outcome in outcomes.items()]
        Path(os.environ["ACLNN_TEST_OUTCOMES"]).write_text("".join(lines))
