"""torch.distributed.checkpoint: trainings of two processes saved, and loaded by two and by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp

from tests.clients.checkpoint_program import Program
from tests.clients.network import examples, network
from tests.clients.processes import launch
from tests.clients.training import Training, expect_alike


@pytest.mark.parametrize("distribution", ["ddp", "fsdp2"])
def test_a_checkpoint_of_two_processes_is_loaded(distribution: str, tmp_path: Path) -> None:
    """By two processes, which continue with the same bits, and by one on the CPU."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    launch(*command, "tests.clients.checkpoint_program", distribution, str(tmp_path))
    rows, labels = examples().tensors
    on_cpu = Program(network())
    on_cpu.train(rows, labels)
    start = on_cpu.parameters()
    expected = Training(on_cpu.train(rows, labels), on_cpu.parameters())
    for save in ("save", "async_save"):
        straight, resumed = (Training(*training) for training in torch.load(tmp_path / save / "trainings.pt"))
        expect_alike(straight, expected, start)
        assert resumed.losses == straight.losses
        assert torch.equal(resumed.parameters, straight.parameters)
        loaded = Program(network())
        dcp.load({"program": loaded}, checkpoint_id=tmp_path / save / "state")
        expect_alike(Training(loaded.train(rows, labels), loaded.parameters()), expected, start)
