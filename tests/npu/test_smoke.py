"""The unmodified torch_npu on the host CANN: devices, memory, copies, streams, events, errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch
import torch_npu

import aclnn_torch

# Each is one aclnn function that the host CANN refuses, reached in different ways.
MISSING = {
    "aclnnSilentCheck": lambda x: torch_npu._npu_silent_check_v2(
        x[:1].clone(), x, x[:3].clone(), torch.ones(1, dtype=torch.int64).npu(), 100, 10.0, 1.0, 1.0, 1.0, 1
    ),
    "aclnnSilentCheckV2": lambda x: torch_npu._npu_silent_check_v3(
        x[:1].clone(), x, torch.ones(1, dtype=torch.int64).npu(), x[:1].clone(), x[:1].clone(), 10.0, 1.0, 1.0, 1
    ),
}


def test_the_devices_are_the_product_asked_for() -> None:
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 2
    assert {torch.npu.get_device_name(i) for i in range(2)} == {"Ascend910B2"}


def test_tensors_go_there_and_back() -> None:
    x = torch.ones(3)
    assert x.npu().device == torch.device("npu", 0)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool):
        values = torch.arange(1000).to(dtype).reshape(10, 100)
        for source in (values, values[3:], values[2, 3], values[:0]):
            torch.testing.assert_close(source.npu().cpu(), source, rtol=0, atol=0)


def test_page_locked_memory_is_copied_asynchronously() -> None:
    x = torch.arange(100_000.0).pin_memory()
    y = torch.empty_like(x, device="npu")
    y.copy_(x, non_blocking=True)
    back = torch.zeros_like(x).pin_memory()
    back.copy_(y, non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(back, x)


def test_memory_is_counted_and_freed() -> None:
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    free, total = torch.npu.mem_get_info()
    x = torch.empty(1 << 22, dtype=torch.uint8, device="npu")
    # A multiple of 512 bytes, including the 32 that CANN requires after a block.
    assert torch.npu.memory_allocated() - before == (1 << 22) + 512
    assert torch.npu.mem_get_info()[0] <= free - (1 << 22)
    assert torch.npu.mem_get_info()[1] == total == 1 << 30
    del x
    torch.npu.empty_cache()
    assert torch.npu.mem_get_info()[0] == free


def test_too_much_memory_is_an_out_of_memory_error() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="NPU out of memory"):
        torch.empty(2 << 30, dtype=torch.uint8, device="npu")
    assert torch.empty(16, device="npu").device.type == "npu"


def test_streams_wait_for_events() -> None:
    stream = torch.npu.Stream()
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    x = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    start.record()
    y = torch.empty_like(x, device="npu")
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        y.copy_(x, non_blocking=True)
        z = torch.nn.functional.elu(y)
        end.record()
    torch.npu.current_stream().wait_event(end)
    torch.testing.assert_close(z.cpu(), x, rtol=0, atol=0)
    end.synchronize()
    assert end.query()
    assert stream.query()
    assert 0 <= start.elapsed_time(end) < 60_000


def test_an_operator_computes() -> None:
    x = torch.linspace(-3, 3, 101)
    expected = torch.nn.functional.elu(x, 1.5)
    got = torch.nn.functional.elu(x.npu(), 1.5)
    torch.testing.assert_close(got.cpu(), expected, rtol=4 * 2**-23, atol=0)


def test_two_devices() -> None:
    x = torch.arange(12.0)
    y = x.to("npu:1")
    assert y.device == torch.device("npu", 1)
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1
        torch.testing.assert_close(torch.nn.functional.elu(y).cpu(), x)
    assert torch.npu.current_device() == 0
    assert torch.equal(y.to("npu:0").cpu(), x)


# In that mode stage 1 runs in the queue, where every error ends the process's work: tests/npu/test_process.py.
@pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="stage 1 runs in torch_npu's queue")
@pytest.mark.parametrize("function", MISSING)
def test_a_missing_operator_is_named_and_nothing_else_happens(function: str) -> None:
    """Immediately, again at the second call, and other work continues."""
    x = torch.arange(1.0, 7.0)
    y = x.npu()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=function):
            MISSING[function](y)
    torch.npu.synchronize()
    assert torch.equal(y.cpu(), x)
    torch.testing.assert_close(torch.nn.functional.elu(y).cpu(), x)


def test_all_that_torch_npu_takes_of_atb_is_there() -> None:
    def symbols(path: Path, option: str) -> set[str]:
        command = ["nm", "--dynamic", "--format=posix", option, path]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return {line.split()[0] for line in lines if line.startswith("_ZN3atb") and line.split()[1] in "UTW"}

    taken = symbols(Path(torch_npu.__file__).parent / "lib" / "libop_plugin_atb.so", "--undefined-only")
    assert taken
    assert taken <= symbols(aclnn_torch.host.PREFIX / "lib64" / "libatb.so", "--defined-only")


def test_the_cpu_operators_stand_beside_it() -> None:
    """The embedded host CANN and the one under torch_npu are two libraries in one process."""
    x = torch.linspace(-1, 1, 9, requires_grad=True)
    y = aclnn_torch.functional.elu(x)
    y.sum().backward()
    torch.testing.assert_close(y, torch.nn.functional.elu(x))
    assert torch_npu.__version__.split(".")[:2] == torch.__version__.split(".")[:2]
