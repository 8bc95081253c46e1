"""Our operators run in torch_npu's order: behind what was asked for before, ahead of what was asked for later."""

from __future__ import annotations

import pytest

from . import order


@pytest.mark.parametrize("streams", order.STREAMS)
def test_rounds(streams: str) -> None:
    assert order.wrong(order.STREAMS[streams]()) == 0
