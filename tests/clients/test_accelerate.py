"""accelerate's training loop: mixed precision, gradient accumulation, saved states, two processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.clients.accelerate_program import Program
from tests.clients.network import network
from tests.clients.processes import launch
from tests.clients.training import Training, expect_alike, flat

DTYPES = {"no": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("mixed_precision", DTYPES)
def test_a_network_learns_as_on_the_cpu(mixed_precision: str, accumulation: int) -> None:
    """accelerate refuses fp16 on the CPU; float32 replaces it there."""
    on_cpu = "no" if mixed_precision == "fp16" else mixed_precision
    expected = Program("cpu", mixed_precision=on_cpu, gradient_accumulation_steps=accumulation).epoch(0)
    found = Program("npu", mixed_precision=mixed_precision, gradient_accumulation_steps=accumulation).epoch(0)
    expect_alike(found, expected, flat(network()), DTYPES[mixed_precision])


def test_the_scaler_skips_a_step_that_overflows() -> None:
    program = Program("npu", mixed_precision="fp16")
    start, scale = flat(program.model), program.accelerator.scaler.get_scale()
    rows, labels = next(iter(program.loader))
    program.step(rows * torch.inf, labels)
    assert program.accelerator.optimizer_step_was_skipped
    assert program.accelerator.scaler.get_scale() == scale / 2
    assert torch.equal(flat(program.model), start)
    program.step(rows, labels)
    assert not program.accelerator.optimizer_step_was_skipped
    assert program.accelerator.scaler.get_scale() == scale / 2
    assert not torch.equal(flat(program.model), start)


@pytest.mark.parametrize("mixed_precision", DTYPES)
def test_a_state_is_saved_and_loaded(mixed_precision: str, tmp_path: Path) -> None:
    """Another program resumes the saved training, with the same order of examples: bitwise equal."""
    first = Program("npu", mixed_precision=mixed_precision)
    first.epoch(0)
    first.accelerator.save_state(str(tmp_path))
    expected = first.epoch(1)
    second = Program("npu", mixed_precision=mixed_precision)
    second.accelerator.load_state(str(tmp_path))
    found = second.epoch(1)
    assert found.losses == expected.losses
    assert torch.equal(found.parameters, expected.parameters)


@pytest.mark.parametrize("distribution", ["ddp", "fsdp2"])
def test_two_processes_learn_as_one_on_the_cpu(distribution: str, tmp_path: Path) -> None:
    command = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
    command += ["--mixed_precision", "no", "--dynamo_backend", "no", "-m", "tests.clients.accelerate_program"]
    launch(*command, distribution, str(tmp_path))
    straight, resumed = (Training(*training) for training in torch.load(tmp_path / "trainings.pt"))
    on_cpu = Program("cpu")
    start = on_cpu.epoch(0).parameters
    expect_alike(straight, on_cpu.epoch(1), start)
    assert resumed.losses == straight.losses
    assert torch.equal(resumed.parameters, straight.parameters)
