"""A process with torch_npu on simulated NPUs: forks, and ends with queued work."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import run

# Several tenths of a second of work on two streams of two devices.
BUSY = """
import os, sys, threading, torch, torch_npu

x = [torch.ones(1 << 20).to(f"npu:{i}") for i in range(2)]

def work():
    for _ in range(100):
        for i in range(2):
            with torch.npu.device(i):
                x[i] = torch.nn.functional.elu(x[i])

work()
"""

# The ways a program can end with that, its exit status, and torch_npu's queue, which affects the end.
ENDS = {
    "its last line": ("", 0, "1"),
    "its last line, with stage 1 in the queue": ("", 0, "2"),
    "sys.exit": ("sys.exit(3)", 3, "1"),
    "os._exit": ("os._exit(4)", 4, "2"),
    "an exception": ("raise KeyError('here')", 1, "0"),
    "a signal": ("import signal\nos.kill(os.getpid(), signal.SIGTERM)", -15, "1"),
    "a daemon thread": (
        "def for_ever():\n    while True:\n        work()\n        time.sleep(100)\n"
        "import time\nthreading.Thread(target=for_ever, daemon=True).start()\ntime.sleep(1)",
        0,
        "1",
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_with_work_queued(end: str) -> None:
    code, status, task_queue = ENDS[end]
    result = run(BUSY + code, TASK_QUEUE_ENABLE=task_queue)
    assert result.status == status, result.errors
    assert ("KeyError: 'here'" in result.errors) == (end == "an exception")
    assert "Fatal Python error" not in result.errors


def test_forked_workers_of_a_data_loader_compute_on_the_cpu() -> None:
    """Also while the parent's streams are busy, and with page-locked memory."""
    code = """
from torch.utils.data import DataLoader, TensorDataset
import aclnn_torch

data = TensorDataset(torch.arange(64.0))

def double(batch):
    values = torch.stack([item for item, in batch])
    return aclnn_torch.functional.elu(values) * 2

for round in range(2):
    loader = DataLoader(data, batch_size=8, num_workers=2, collate_fn=double, pin_memory=True,
                        multiprocessing_context="fork")
    batches = []
    for batch in loader:
        work()
        batches.append(batch.npu(non_blocking=True))
    torch.npu.synchronize()
    assert torch.equal(torch.cat([b.cpu() for b in batches]), torch.arange(64.0) * 2)
assert torch.equal(x[1].cpu(), torch.ones(1 << 20))
print("done")
"""
    result = run(BUSY + code)
    assert (result.status, result.output) == (0, "done\n"), result.errors


def test_a_forked_child_is_told_that_it_has_no_npu() -> None:
    """Without torch_npu's queue, whose thread a child lacks. The child uses the CPU, and the parent continues."""
    code = """
child = os.fork()
if child == 0:
    assert torch.equal(torch.ones(3) + 1, torch.full((3,), 2.0))
    for attempt in (lambda: torch.ones(3).npu(), torch.npu.synchronize, torch.npu.Stream, lambda: x[0].cpu()):
        try:
            attempt()
        except RuntimeError as error:
            print(str(error).replace(chr(10), " "), flush=True)
        else:
            print("none", flush=True)
    os._exit(9)
_, status = os.waitpid(child, 0)
work()
assert torch.equal(x[0].cpu(), torch.ones(1 << 20))
print(os.waitstatus_to_exitcode(status))
"""
    result = run(BUSY + code, TASK_QUEUE_ENABLE="0")
    assert result.status == 0, result.errors
    *attempts, status = result.output.splitlines()
    assert status == "9", result.errors
    assert len(attempts) == 4
    for line in attempts:
        assert "error code is 107" in line or "error code:107" in line, attempts


@pytest.mark.parametrize("task_queue", ["0", "1", "2"])
def test_a_forked_child_computes_after_its_parent_computed_on_the_cpu(task_queue: str) -> None:
    """It lacks the parent's threads of OpenMP, which torch has on the CPU: a region of several threads never ends.

    The first large call of an operator with these dtypes is tried in the caller's thread.
    """
    code = """
import os, signal, torch, torch_npu

torch.set_num_threads(2)
x = torch.full((1024, 1024), 2.0)
assert (x + x).sum() == 4 * x.numel()
child = os.fork()
if child == 0:
    signal.alarm(60)
    y = torch.full((1024, 1024), 2.0, device="npu")
    assert (y + y).sum().item() == 4 * y.numel()
    assert (y[:256, :256] @ y[:256, :256]).eq(1024).all().item()
    assert torch.conv2d(y.view(1, 1, 1024, 1024), y[:1, :1].view(1, 1, 1, 1)).eq(4).all().item()
    assert y.normal_().sort().values.diff().ge(0).all().item()
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = run(code, TASK_QUEUE_ENABLE=task_queue)
    assert (result.status, result.output) == (0, "9\n"), result.errors


def test_a_spawned_child_uses_the_npu(tmp_path: Path) -> None:
    code = """
import torch, torch_npu

def child(values):
    assert torch.equal(values.npu().cpu(), torch.ones(3))

if __name__ == "__main__":
    torch.ones(1).npu()
    process = torch.multiprocessing.get_context("spawn").Process(target=child, args=(torch.ones(3),))
    process.start()
    process.join(90)
    print(process.exitcode)
"""
    program = tmp_path / "program.py"
    program.write_text(code)
    result = run(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert (result.status, result.output) == (0, "0\n"), result.errors


def test_an_operator_that_is_refused_in_the_queue_is_named() -> None:
    """With stage 1 in torch_npu's queue, the error is raised by the next call that waits."""
    code = """
import torch, torch_npu

try:
    x, step = torch.ones(3).npu(), torch.ones(1, dtype=torch.int64).npu()
    torch_npu._npu_silent_check_v2(x[:1].clone(), x, x.clone(), step, 100, 10.0, 1.0, 1.0, 1.0, 1)
    torch.npu.synchronize()
except RuntimeError as error:
    print(error)
"""
    result = run(code, TASK_QUEUE_ENABLE="2")
    assert "aclnnSilentCheck" in result.output, result


# A call that ATB refuses, whose status torch_npu drops: in each mode, the text reaches the caller by another way.
REFUSED_BY_ATB = """
import torch, torch_npu

x = torch.zeros(3, 64, dtype=torch.bfloat16).npu()
table = torch.zeros(16, 32).npu()  # of float32, which ATB does not take with bfloat16
positions = torch.arange(3).npu()
try:
    torch_npu._npu_rotary_embedding(positions, x, x.clone(), 32, table, True)
    torch.npu.synchronize()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("task_queue", ("0", "1", "2"))
def test_a_call_that_atb_refuses_has_a_text(task_queue: str) -> None:
    result = run(REFUSED_BY_ATB, TASK_QUEUE_ENABLE=task_queue)
    assert result.status == 0, result.errors
    assert "RopeOperation: the dtypes are query BFLOAT16, key BFLOAT16, cos FLOAT, sin FLOAT, " in result.output


def test_an_index_that_atb_would_write_outside_the_cache_is_refused() -> None:
    """Where a device writes to other memory."""
    code = """
import torch, torch_npu

cache = torch.zeros(2, 4, 1, 64, dtype=torch.float16).npu()
slots = torch.tensor([8], dtype=torch.int32).npu()
torch_npu._npu_reshape_and_cache_siso(torch.ones(1, 1, 64, dtype=torch.float16).npu(), cache, slots)
try:
    torch.npu.synchronize()
except RuntimeError as error:
    print(error)
"""
    result = run(code)
    assert result.status == 0, result.errors
    assert "slotMapping has 8, expected less than 8" in result.output
