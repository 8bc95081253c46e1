"""Fixtures that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import aclnn_torch
from aclnn_torch import _C


@pytest.fixture(autouse=True)
def default_product() -> Iterator[None]:
    """Every test begins on the default product, and leaves it as it was."""
    with aclnn_torch.product("Ascend910B"):
        yield


@pytest.fixture
def host_product(default_product: None) -> Iterator[None]:
    """The product that also computes float64."""
    with aclnn_torch.product("host"):
        yield


@pytest.fixture
def nothing_leaked() -> Iterator[None]:
    """Fails the test if host CANN objects outlive it."""
    before = _C.live_objects()
    yield
    assert _C.live_objects() == before
