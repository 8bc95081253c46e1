"""Lets the tests here import the face of the C ABI beside their folder, and readies the device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cabi


@pytest.fixture(scope="session", autouse=True)
def device() -> None:
    """Readies the host CANN's device; another test of the same process may have done so before."""
    assert cabi.host().aclInit(None) in (cabi.SUCCESS, 100002)
    assert cabi.host().aclrtSetDevice(0) == cabi.SUCCESS
