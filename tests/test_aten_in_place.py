"""Functions that write in place take no copy of the tensor: see tests/aten_ops/in_place.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.aten_ops.in_place import peaks


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer allocates by itself")
def test_functions_in_place_take_little_memory_and_round_once(tmp_path: Path) -> None:
    measured = peaks(tmp_path)
    assert [peak for peak in measured if peak.text] == []
    assert [peak for peak in measured if peak.allocated > peak.allowed] == []
    assert [peak for peak in measured if peak.rounding] == []
