"""Streams, events and page-locked memory, with workers and inline, with and without strict mode."""

from __future__ import annotations

import ctypes
import os

import torch
import torch_npu

INLINE = os.environ.get("ACLNN_TORCH_INLINE_STREAMS") == "1"


def test_page_locked_memory_is_the_hosts() -> None:
    """Strict mode keeps it accessible."""
    x = torch.arange(4, dtype=torch.uint8).pin_memory()
    assert ctypes.string_at(x.data_ptr(), 4) == b"\0\1\2\3"
    assert torch.equal(x.npu().cpu(), x)


def test_a_good_label_is_no_error() -> None:
    loss = torch_npu.npu_cross_entropy_loss(torch.zeros(3, 5).npu(), torch.tensor([0, 1, 4]).npu())[0]
    torch.npu.synchronize()
    torch.testing.assert_close(loss.cpu().reshape(()), torch.tensor(5.0).log())


def test_streams_and_events_keep_their_order_on_two_devices() -> None:
    """Work on a side stream of each device, ordered by events, with workers and inline."""
    sides = [torch.npu.Stream(device=i) for i in range(2)]
    values = [torch.full((1 << 16,), float(i + 1)).to(f"npu:{i}") for i in range(2)]
    for round_ in range(10):
        for i in range(2):
            with torch.npu.device(i):
                ready = torch.npu.current_stream().record_event()
                with torch.npu.stream(sides[i]):
                    sides[i].wait_event(ready)
                    doubled = values[i] + values[i]
                    done = sides[i].record_event()
                torch.npu.current_stream().wait_event(done)
                values[i] = doubled - values[i]
                assert doubled.device == torch.device("npu", i)
        # From one device to the other and back.
        assert torch.equal(values[0].to("npu:1").to("npu:0").cpu(), torch.ones(1 << 16)), round_
    for i in range(2):
        assert torch.equal(values[i].cpu(), torch.full((1 << 16,), float(i + 1)))


def test_a_stream_has_done_what_it_was_given() -> None:
    """Inline and without a queue, when the call returns; otherwise after waiting."""
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        y = torch.zeros(1 << 20).npu()
        event = stream.record_event()
    if not INLINE or os.environ.get("TASK_QUEUE_ENABLE") != "0":
        torch.npu.synchronize()
    assert stream.query()
    assert event.query()
    assert not y.cpu().any()
