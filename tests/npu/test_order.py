"""The project's operators run in torch_npu's order: after earlier work, before later work."""

from __future__ import annotations

import pytest

from . import order


@pytest.mark.parametrize("streams", order.STREAMS)
def test_rounds(streams: str) -> None:
    assert order.wrong(order.STREAMS[streams]()) == 0
