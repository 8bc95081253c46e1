"""Fixtures of every conformance test."""

from __future__ import annotations

import pytest

from tests import cabi


@pytest.fixture(scope="session", autouse=True)
def device() -> None:
    """Initialises the host CANN's device; another test of the same process may have done so before."""
    assert cabi.host().aclInit(None) in (cabi.SUCCESS, 100002)
    assert cabi.host().aclrtSetDevice(0) == cabi.SUCCESS
    cabi.error_text()  # that of 100002
