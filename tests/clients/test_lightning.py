"""Lightning's Trainer: an accelerator for NPUs, mixed precision with its scaler, two processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.plugins import MixedPrecision
from lightning.pytorch.strategies import SingleDeviceStrategy

from tests.clients.lightning_program import PRECISIONS, STRATEGIES, fit
from tests.clients.network import network
from tests.clients.processes import launch
from tests.clients.training import Training, expect_alike, flat


class NPU(Accelerator):
    """What Lightning's documents ask of an accelerator that it does not have."""

    def setup_device(self, device: torch.device) -> None:
        torch.npu.set_device(device)

    def teardown(self) -> None:
        torch.npu.empty_cache()

    @staticmethod
    def parse_devices(devices: int) -> list[int]:
        return list(range(devices))

    @staticmethod
    def get_parallel_devices(devices: list[int]) -> list[torch.device]:
        return [torch.device("npu", index) for index in devices]

    @staticmethod
    def auto_device_count() -> int:
        return torch.npu.device_count()

    @staticmethod
    def is_available() -> bool:
        return torch.npu.is_available()

    @staticmethod
    def name() -> str:
        return "npu"


def on_cpu(precision: str) -> Training:
    """In one process. Lightning refuses float16 on the CPU; float32 replaces it there."""
    return fit(accelerator="cpu", precision="32-true" if precision == "16-mixed" else precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_network_learns_as_on_the_cpu(precision: str) -> None:
    plugins = [MixedPrecision(precision, "npu")] if precision.endswith("-mixed") else None
    found = fit(accelerator=NPU(), strategy=SingleDeviceStrategy(torch.device("npu", 0)), plugins=plugins)
    expect_alike(found, on_cpu(precision), flat(network()), PRECISIONS[precision])


def test_two_processes_learn_as_one_on_the_cpu(tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    launch(*command, "-m", "tests.clients.lightning_program", str(tmp_path))
    trainings = torch.load(tmp_path / "trainings.pt")
    start = flat(network())
    for precision, dtype in PRECISIONS.items():
        expected = on_cpu(precision)
        for strategy in STRATEGIES:
            expect_alike(Training(*trainings[strategy, precision]), expected, start, dtype)
