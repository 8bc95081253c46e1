"""Every function on ATen, called wrongly: see tests/aten_ops/abuse.py."""

from __future__ import annotations

import pytest

from tests.aten_ops.abuse import abuse
from tests.aten_ops.sweep import samples

NAMES = sorted(dict(samples()))
PARTS = 16


@pytest.mark.parametrize("part", range(PARTS))
def test_some_wrong_arguments(part: int) -> None:
    calls, faults = abuse(*NAMES[part::PARTS], every=12)
    assert faults == []
    assert calls > 100


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_each_wrong_argument(part: int) -> None:
    calls, faults = abuse(*NAMES[part::PARTS])
    assert faults == []
    assert calls > 1000
