"""Errors that only a real device detects, through torch_npu: memory, devices, asynchronous errors."""

from __future__ import annotations

import signal

import pytest

from .programs import run

# Prints the result of each attempt, on one line.
PRELUDE = """
import torch, torch_npu

def attempt(function):
    try:
        print("ok", function())
    except RuntimeError as error:
        print(str(error).replace(chr(10), " "))
"""


@pytest.mark.parametrize("strict", ["0", "1"])
def test_host_code_reads_device_memory_only_where_strict_mode_is_off(strict: str) -> None:
    code = """
import ctypes, torch, torch_npu
x = torch.full((4,), 7).byte().npu() + torch.ones(4).byte().npu()
print(x.cpu().tolist(), flush=True)
print(ctypes.string_at(x.data_ptr(), 4))
"""
    result = run(code, ACLNN_TORCH_STRICT=strict)
    lines = result.output.splitlines()
    assert lines[0] == "[8, 8, 8, 8]", result.errors
    if strict == "1":
        assert result.status == -signal.SIGSEGV
        assert len(lines) == 1
    else:
        assert (result.status, lines[1]) == (0, r"b'\x08\x08\x08\x08'")


def test_operators_on_addresses_without_memory_are_an_error() -> None:
    """As on a tensor of vllm-ascend's sleep mode, whose memory was given back."""
    code = (
        PRELUDE
        + """
import sys, types, aclnn_vllm
sys.modules["vllm_ascend"] = package = types.ModuleType("vllm_ascend")
package.__path__ = []
aclnn_vllm.register()
import vllm_ascend.vllm_ascend_C as module

handles = []
module.init_module(handles.append, lambda address: None)
path = next(line[line.index("/"):].strip() for line in open("/proc/self/maps") if "vllm_ascend_C" in line)
allocator = torch.npu.memory.NPUPluggableAllocator(path, "my_malloc", "my_free")
pool = torch.npu.memory.MemPool(allocator.allocator())
with torch.npu.memory.use_mem_pool(pool):
    weight = torch.ones(1000, device="npu")
torch.npu.synchronize()
module.python_unmap_and_release(*handles[0])
weight.add_(1)
attempt(torch.npu.synchronize)
"""
    )
    result = run(code, ACLNN_TORCH_STRICT="0")
    assert "is in a range of aclrtReserveMemAddress but has no memory" in result.output, result.errors
    assert "507015" in result.output


def test_tensors_of_two_devices_are_refused_and_copies_between_them_work() -> None:
    code = (
        PRELUDE
        + """
x, y = (torch.ones(4).to(f"npu:{i}") for i in range(2))
attempt(lambda: (x.to("npu:1") + y).cpu().tolist())
z = x + y
attempt(torch.npu.synchronize)
attempt(lambda: z.cpu())
attempt(lambda: (y + y).cpu().tolist())
"""
    )
    result = run(code)
    assert result.status == 0, result.errors
    copied, refused, lost, other = result.output.splitlines()
    assert copied == "ok [2.0, 2.0, 2.0, 2.0]"
    assert "507015" in refused
    assert "is in the memory of device 1, but the stream belongs to device 0" in refused
    assert "507015" in lost
    assert other == "ok [2.0, 2.0, 2.0, 2.0]"


def test_an_asynchronous_error_stays_until_the_process_ends() -> None:
    """The operator detects a label out of range when it runs; later work on that stream is not computed."""
    code = (
        PRELUDE
        + """
x, y = (torch.ones(4).to(f"npu:{i}") for i in range(2))
target = torch.tensor([0, 1, 5]).npu()
loss = torch_npu.npu_cross_entropy_loss(torch.zeros(3, 5).npu(), target)[0]
print("launched")
attempt(torch.npu.synchronize)
attempt(torch.npu.synchronize)
attempt(lambda: loss.cpu())
attempt(lambda: torch.npu.current_stream().synchronize())
attempt(lambda: (x + x).cpu())
attempt(lambda: (y + y).cpu().tolist())
"""
    )
    result = run(code)
    assert result.status == 0, result.errors
    launched, *reports, other = result.output.splitlines()
    assert launched == "launched"
    assert len(reports) == 5
    for report in reports:
        assert "507015" in report
    text = "target[2] is 5, expected a class in [0, 5) or ignoreIndex (-100)"
    assert text in reports[0]
    assert text in reports[1]
    # The text contains nothing of earlier calls.
    assert "aclrtGetDevice" not in reports[0]
    # The other device is not affected.
    assert other == "ok [2.0, 2.0, 2.0, 2.0]"


@pytest.mark.parametrize("memory", ["256M", "1G", "3G"])
def test_a_device_has_as_much_memory_as_it_was_given(memory: str) -> None:
    """For each of the two devices; after an OutOfMemoryError and empty_cache() all of it is available again."""
    code = """
import torch, torch_npu

def held(device):
    return torch.npu.memory_allocated(device), torch.npu.memory_reserved(device)

torch.ones(1).npu()
torch.npu.empty_cache()
total = torch.npu.get_device_properties(0).total_memory
block = total // 8 - (2 << 20)
for device in (0, 1):
    other = 1 - device
    torch.npu.set_device(device)
    assert torch.npu.mem_get_info() == (total, total)
    kept = []
    try:
        while len(kept) < 100:
            kept.append(torch.empty(block, dtype=torch.uint8, device="npu"))
    except torch.OutOfMemoryError as error:
        assert f"NPU {device}" in str(error), error
    assert 7 <= len(kept) <= 8, len(kept)
    free, _ = torch.npu.mem_get_info()
    assert free < 2 * block
    allocated, reserved = held(device)
    assert len(kept) * block <= allocated <= reserved == total - free
    assert held(other) == (0, 0) and torch.npu.mem_get_info(other) == (total, total)
    kept.clear()
    assert held(device)[0] == 0
    torch.npu.empty_cache()
    assert held(device) == (0, 0) and torch.npu.mem_get_info() == (total, total)
    whole = torch.empty(total - (4 << 20), dtype=torch.uint8, device="npu")
    del whole
    torch.npu.empty_cache()
    assert torch.npu.memory_stats(device)["num_ooms"] == 1
print(total)
"""
    result = run(code, ACLNN_TORCH_DEVICE_MEMORY=memory)
    size = int(memory[:-1]) << {"M": 20, "G": 30}[memory[-1]]
    assert (result.status, result.output) == (0, f"{size}\n"), result.errors
