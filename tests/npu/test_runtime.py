"""Functions of the runtime that torch_npu calls, other than memory and streams."""

from __future__ import annotations

import pytest
import torch
import torch_npu


def test_limits_of_cores() -> None:
    torch.ones(1, device="npu:0")  # torch_npu only queries devices in use
    everything = torch.npu.get_device_limit(0)
    stream = torch.npu.Stream()
    torch.npu.set_stream_limit(stream, 4, 6)
    assert torch.npu.get_stream_limit(stream) == {"cube_core_num": 4, "vector_core_num": 6}
    assert torch.npu.get_device_limit(0) == everything
    torch.npu.reset_stream_limit(stream)
    assert torch.npu.get_stream_limit(stream) == everything
    with pytest.raises(RuntimeError, match="expected 1 to"):
        torch.npu.set_stream_limit(stream, 1000, 1)


def test_events_have_times() -> None:
    events = [torch.npu.Event(enable_timing=True) for _ in range(2)]
    for event in events:
        event.record()
        event.synchronize()
    assert events[0].recorded_time() <= events[1].recorded_time()


def test_a_prefetch_is_accepted() -> None:
    x = torch.ones(1024, device="npu")
    torch_npu.npu_prefetch(x, x, 1024, 0)
    torch.npu.synchronize()


def test_swapped_memory() -> None:
    """Host memory that operators use as device memory."""
    x = torch_npu.empty_with_swapped_memory([1000], device="npu:0")
    x.fill_(1.5)
    assert (x * 2).sum().item() == 3000
    del x
    torch.npu.synchronize()


def test_elements_that_share_memory_are_filled() -> None:
    x = torch.zeros(1, 3, device="npu").expand(4, 3)
    x.fill_(2)
    assert x.sum().item() == 24
    assert x.zero_().abs().max().item() == 0
