"""torch.distributed over HCCL: several processes with a simulated NPU each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def environment(ranks: int, **more: str) -> dict[str, str]:
    """For processes that see so many NPUs."""
    small = {"ACLNN_TORCH_DEVICES": str(ranks), "OMP_NUM_THREADS": "1", "HCCL_IF_IP": "127.0.0.1"}
    return os.environ | small | {"PYTHONPATH": str(ROOT)} | more


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_case(ranks: int, tmp_path: Path) -> None:
    """All cases in one launch, since starting takes longer than most of them."""
    output = tmp_path / "outcomes.json"
    command = [*LAUNCH, str(ranks), "-m", "tests.npu.distributed_cases", output]
    result = subprocess.run(command, cwd=ROOT, env=environment(ranks), capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    outcomes = json.loads(output.read_text())
    assert len(outcomes) >= 14
    problems = [
        f"{name}, rank {rank}\n{problem}"
        for name, problems in outcomes.items()
        for rank, problem in enumerate(problems)
        if problem is not None
    ]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_a_rank_that_dies_is_noticed(tmp_path: Path) -> None:
    """The other one's error comes at once and names it; nothing is left in shared memory."""
    program = f"""
import os, signal, torch, torch.distributed as dist

rank = int(os.environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl", "file://{tmp_path}/store", rank=rank, world_size=2)
values = torch.ones(4, device="npu")
dist.all_reduce(values)
torch.npu.synchronize()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(values)
torch.npu.synchronize()
"""
    before = set(Path("/dev/shm").iterdir())
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-c", program],
                    env=environment(2, RANK=str(rank)),
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in range(2)
        )
        stack.callback(first.kill)
        stack.callback(second.kill)
        assert second.wait(120) == -signal.SIGKILL
        text = first.communicate(timeout=60)[1]
        assert first.returncode != 0
    assert "507057" in text
    assert f"the process of rank 1 ({second.pid}) has ended" in text
    assert set(Path("/dev/shm").iterdir()) <= before
