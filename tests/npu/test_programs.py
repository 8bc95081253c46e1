"""Programs that select torch_npu's queue themselves, or do not depend on it, in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import LONGEST

from . import order
from .programs import ROOT, package_with, run

# It launches bypassing torch_npu's queue.
MISORDERED = ROOT / "build" / "release" / "tests" / "libaclnn_npu_misordered.so"


@pytest.mark.parametrize(
    ("visible", "program", "expected"),
    [
        ("1", "torch.npu.device_count()", "1"),
        ("0,1", "torch.npu.device_count()", "2"),
        ("0", "torch.npu.get_device_properties(0).total_memory > 0", "True"),
    ],
)
def test_visible_devices(visible: str, program: str, expected: str) -> None:
    """Device properties do not require a current device."""
    result = run(
        f"import os; os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '{visible}'; import torch; print({program})",
    )
    assert (result.status, result.output.split()) == (0, [expected]), result.errors


def test_the_way_of_torch_for_devices() -> None:
    """torch_npu then queries if a device has its context before setting it, as torch does for CUDA."""
    result = run("""
import torch, torch_npu
torch_npu.npu.use_compatible_impl(True)
torch.manual_seed(1)
x = torch.arange(4.0).view(1, 1, 2, 2).npu()
print(*(y.item() for y in torch.nn.functional.max_pool2d(x, 2, return_indices=True)))
print(torch.ones(2).pin_memory().npu().sum().item())
""")
    assert (result.status, result.output.split()) == (0, ["3.0", "3", "2.0"]), result.errors


def test_expandable_segments_use_virtual_memory() -> None:
    code = """
import torch, torch_npu
for size in (1 << 20, 5 << 20, 50 << 20, 7):
    x = torch.arange(size // 4, dtype=torch.float32)
    y = x.npu()
    assert torch.equal(y.cpu(), x), size
    del y
torch.npu.empty_cache()
print(torch.npu.memory_reserved())
"""
    result = run(code, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    assert (result.status, result.output) == (0, "0\n"), result.errors


UNKNOWN = """
import os, sys, torch, torch_npu
x = torch.ones(2, 3, 4, 4).npu()
try:
    torch_npu.npu_sub_sample(torch.ones(8, dtype=torch.int32).npu(), 4, 0.5).cpu()
except RuntimeError as error:
    assert "no operator SubSample among those called by name (aclop)" in str(error), error
else:
    sys.exit("no error")
for _ in range(2):
    try:
        (x + 1).cpu()
    except RuntimeError:
        continue
    if os.environ["TASK_QUEUE_ENABLE"] != "0":
        sys.exit("what torch_npu dropped was read")
"""


@pytest.mark.skipif(
    torch.npu.get_device_name(0).startswith("Ascend950"), reason="torch_npu calls nothing by name there"
)
@pytest.mark.parametrize("queue", ["0", "1"])
def test_an_operator_that_is_not_there_is_named_and_nothing_is_read_after_it(queue: str) -> None:
    result = run(UNKNOWN, TASK_QUEUE_ENABLE=queue)
    assert result.status == 0, result.errors


@pytest.mark.parametrize(
    ("streams", "queue", "inline"),
    [("one", "0", ""), ("one", "1", ""), ("two", "2", ""), ("two", "1", "1"), ("one", "2", "1")],
)
def test_a_launch_past_the_queue_is_noticed(streams: str, queue: str, inline: str, tmp_path: Path) -> None:
    """With the misordered launch the rounds of test_order.py fail; without a queue there is nothing to bypass."""
    package_with(MISORDERED, tmp_path)
    mode = {"TASK_QUEUE_ENABLE": queue, "ACLNN_TORCH_INLINE_STREAMS": inline}
    command = [sys.executable, order.__file__, streams]
    environment = os.environ | mode | {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stderr
    assert (int(result.stdout) > 0) == (queue != "0")
