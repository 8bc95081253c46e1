"""A failure for which nothing waits is reported once: by torch_npu at its end, or by `aclnn-torch run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import LONGEST

# npu:1 fails while npu:0 is the current device. The program knows it from the launcher's file only.
FAILS = """
import os, signal, sys, time, torch, torch_npu
x = torch.ones(4).npu()
logits, targets = torch.ones(2, 4).to("npu:1"), torch.tensor([1, 9]).to("npu:1")
torch_npu.npu_cross_entropy_loss(logits, targets)
while str(os.getpid()) not in open(os.environ["ACLNN_TORCH_FAILURES"]).read():
    time.sleep(0.01)
assert x.cpu().tolist() == [1, 1, 1, 1]
"""
TEXT = "aclnnCrossEntropyLoss: target[1] is 9, expected a class in [0, 4)"
IS_CAUGHT = (
    "try:\n    torch.npu.synchronize(1)\nexcept RuntimeError as error:\n    assert 'target[1] is 9' in str(error)\n"
)


def run(folder: Path, code: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The end of a program, or of a module that starts it, under the launcher."""
    program = folder / "program.py"
    program.write_text(code)
    launch = [sys.executable, "-m", "aclnn_torch", "run", "--devices", "2"]
    return subprocess.run(
        [*launch, *command, str(program)], env=os.environ | environment, capture_output=True, text=True, timeout=LONGEST
    )


@pytest.mark.parametrize(("end", "status"), [("os._exit(3)", 3), ("os.kill(os.getpid(), signal.SIGKILL)", -9)])
def test_where_torch_npu_says_nothing_the_launcher_does(end: str, status: int, tmp_path: Path) -> None:
    done = run(tmp_path, FAILS + end)
    assert done.returncode == status, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("aclnn-torch: ")]
    assert line.startswith("aclnn-torch: npu:1, stream ")
    assert f"failed with 507015, and nothing waited for it to hear so: {TEXT}" in line


@pytest.mark.parametrize("end", ["", IS_CAUGHT, f"{IS_CAUGHT}os._exit(0)"])
def test_the_launcher_tells_nothing_that_was_told(end: str, tmp_path: Path) -> None:
    """By torch_npu's warning at the program's end, or by an error."""
    done = run(tmp_path, FAILS + end)
    assert done.returncode == 0, done.stderr
    assert "aclnn-torch: " not in done.stderr
    assert (TEXT in done.stderr) == (not end.endswith("_exit(0)"))


def test_the_workers_of_torchrun_are_told_of(tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = run(tmp_path, FAILS + "os._exit(0)", *command, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("aclnn-torch: npu:1, stream ") == 2


def test_a_last_call_that_fails_in_torch_npus_queue(tmp_path: Path) -> None:
    code = (
        "import os, time, torch, torch_npu\na = torch.ones(2, 2, dtype=torch.float64).npu()\n(a + 1).cpu()\na @ a\n"
        "while not os.path.getsize(os.environ['ACLNN_TORCH_FAILURES']):\n    time.sleep(0.01)\nos._exit(0)"
    )
    done = run(tmp_path, code, TASK_QUEUE_ENABLE="2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("aclnn-torch: npu:0, torch_npu's queue of process ") == 1
    assert "aclnnMatmul: the matrices promote to DOUBLE" in done.stderr
