"""These tests need an environment with torch_npu, in a process that runs on the host CANN."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

collect_ignore_glob = [] if "torch_npu" in sys.modules else ["test_*.py"]


@pytest.fixture
def products_of_float32() -> Iterator[None]:
    """Convolutions multiply in float32, as on the CPU; torch_npu's default is HFLOAT32."""
    import torch_npu

    before = torch_npu.npu.conv.allow_hf32
    torch_npu.npu.conv.allow_hf32 = False
    yield
    torch_npu.npu.conv.allow_hf32 = before
