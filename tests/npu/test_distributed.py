"""torch.distributed over HCCL: several processes with a simulated NPU each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import LONGEST

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def environment(ranks: int, **more: str) -> dict[str, str]:
    """The environment of processes with this many visible NPUs."""
    small = {"ACLNN_TORCH_DEVICES": str(ranks), "OMP_NUM_THREADS": "1", "HCCL_IF_IP": "127.0.0.1"}
    # torch_npu 2.7 to 2.9, imported before torch loads it, turns the loading off, for the processes started here, too.
    loading = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    return os.environ | small | loading | {"PYTHONPATH": str(ROOT)} | more


def expect_no_problems(output: Path) -> None:
    """In the output of the cases' rank 0."""
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


# Ranks on separate hosts use the network.
WAYS: dict[str, dict[str, str]] = {"memory": {}, "network": {"ACLNN_TORCH_HCCL_NETWORK": "1"}}


@pytest.mark.parametrize(
    ("ranks", "way"), [(2, "memory"), (4, "memory"), (8, "memory"), (2, "network"), (4, "network")]
)
def test_every_case(ranks: int, way: str, tmp_path: Path) -> None:
    """All cases in one launch, since starting takes longer than most of them."""
    output = tmp_path / "outcomes.json"
    command = [*LAUNCH, str(ranks), "-m", "tests.npu.distributed_cases", output]
    result = subprocess.run(
        command, cwd=ROOT, env=environment(ranks, **WAYS[way]), capture_output=True, text=True, timeout=LONGEST
    )
    assert result.returncode == 0, result.stderr
    expect_no_problems(output)


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_dies_is_noticed(way: str, tmp_path: Path) -> None:
    """The other rank gets an error immediately, which names it; nothing is left in shared memory."""
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
                    env=environment(2, RANK=str(rank), **WAYS[way]),
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in range(2)
        )
        stack.callback(first.kill)
        stack.callback(second.kill)
        assert second.wait(LONGEST) == -signal.SIGKILL
        ended = time.monotonic()
        text = first.communicate(timeout=LONGEST)[1]
        assert time.monotonic() - ended < 60
        assert first.returncode != 0
    assert "507057" in text
    assert f"the process of rank 1 ({second.pid}) has ended" in text
    assert set(Path("/dev/shm").iterdir()) <= before


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "raise RuntimeError"])
def test_ranks_that_torch_restarts(end: str, tmp_path: Path) -> None:
    """Torch's store would return the previous ranks' root information, as HCCL's text says; not with this option."""
    program = tmp_path / "program.py"
    program.write_text(f"""
import os, signal, torch, torch.distributed as dist

rank = int(os.environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
values = torch.ones(4, device="npu")
dist.all_reduce(values)
torch.npu.synchronize()
if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    {end}
dist.all_reduce(values)
open(f"{tmp_path}/rank{{rank}}", "w").write(str(values.tolist()))
dist.destroy_process_group()
""")
    variables = environment(2, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    result = subprocess.run(
        [*LAUNCH, "2", "--max-restarts", "1", program], env=variables, capture_output=True, text=True, timeout=LONGEST
    )
    assert result.returncode == 0, result.stderr
    assert [(tmp_path / f"rank{rank}").read_text() for rank in range(2)] == ["[4.0, 4.0, 4.0, 4.0]"] * 2


# Two hosts, simulated on one machine: containers that see neither each other's processes nor memory, each with its own
# network, connected by a virtual cable. One rank in each, without configured addresses.
CONTAINER = ["unshare", "--net", "--ipc", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
HOSTS = f"""
set -e
enter() {{
    ip link set lo up
    ip address add 10.0.0.$1/24 dev cable$1
    ip link set cable$1 up
    shift
    mount -t tmpfs tmpfs /dev/shm
    "$@"
}}
export -f enter
mkfifo "$1/cable"
ip link add cable1 type veth peer name cable2
{" ".join(CONTAINER)} bash -c 'read < "$1/cable"; shift; RANK=1 enter 2 "$@"' - "$@" &
other=$!
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
ip link set cable2 netns $other
echo > "$1/cable"
shift
RANK=0 enter 1 "$@"
wait $other
"""


def test_two_hosts(tmp_path: Path) -> None:
    """Every case between two containers, which discover each other's addresses."""
    container = [*CONTAINER, "--user", "--map-root-user"]
    try:
        probe = subprocess.run(
            [*container, "bash", "-ec", "ip link add cable1 type veth peer name cable2; mount -t tmpfs tmpfs /dev/shm"],
            capture_output=True,
            text=True,
        )
    except FileNotFoundError as missing:
        pytest.skip(f"no containers without unshare: {missing}")
    if probe.returncode != 0:
        pytest.skip(f"no containers for this user: {probe.stderr.strip()}")
    output = tmp_path / "outcomes.json"
    ranks = [sys.executable, "-W", "ignore", "-m", "tests.npu.distributed_cases", output]
    variables = environment(2, WORLD_SIZE="2", MASTER_ADDR="10.0.0.1", MASTER_PORT="29500")
    del variables["HCCL_IF_IP"]
    result = subprocess.run(
        [*container, "bash", "-c", HOSTS, "-", tmp_path, *ranks],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert result.returncode == 0, result.stderr
    expect_no_problems(output)
