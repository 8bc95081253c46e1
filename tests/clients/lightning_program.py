"""A training with Lightning, for one process or several.

``torchrun -m tests.clients.lightning_program FOLDER`` trains on the NPUs of all processes. Lightning's strategies for
several devices know only CUDA's, so the program imports torch_npu's ``transfer_to_npu``, which makes the process's
calls for CUDA calls for NPUs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tests.clients.vision  # noqa: F401 (before Lightning imports torchvision)

# isort: split
import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy, Strategy
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler

from tests.clients.network import examples, network
from tests.clients.training import Training, flat

BATCH = 8
STRATEGIES = ("ddp", "fsdp")
PRECISIONS = {"32-true": torch.float32, "bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


class Classifier(lightning.LightningModule):
    """The network, and the loss of each step, averaged over the processes."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.losses: list[float] = []

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        rows, labels = batch
        loss = nn.functional.cross_entropy(self.network(rows), labels)
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def fit(devices: int = 1, **arguments: object) -> Training:
    """An epoch. Processes share the batches, so that together they compute the same as one."""
    classifier = Classifier()
    trainer = lightning.Trainer(
        max_epochs=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        devices=devices,
        **arguments,
    )
    # Lightning's own sampler of several processes would shuffle.
    data, rank = examples(), int(os.environ["RANK"]) if devices > 1 else 0
    sampler = DistributedSampler(data, devices, rank, shuffle=False)
    trainer.fit(classifier, DataLoader(data, BATCH // devices, sampler=sampler))
    whole = Classifier()
    # Where parameters are sharded, the first process alone gets them.
    whole.load_state_dict(trainer.strategy.lightning_module_state_dict(), strict=trainer.is_global_zero)
    return Training(classifier.losses, flat(whole))


def strategy(name: str) -> Strategy:
    """Of several processes over HCCL; Lightning chooses gloo for devices that it does not know."""
    if name == "ddp":
        return DDPStrategy(process_group_backend="hccl")
    return FSDPStrategy(auto_wrap_policy={nn.Linear}, state_dict_type="full", process_group_backend="hccl")


def main(folder: str) -> None:
    """Writes the training of each strategy and precision."""
    # Lightning asks for CUDA's compute capability, and torch_npu answers what the user says.
    os.environ["TORCH_NPU_DEVICE_CAPABILITY"] = "8.0"
    from torch_npu.contrib import transfer_to_npu  # noqa: F401

    trainings = {}
    for name in STRATEGIES:
        for precision in PRECISIONS:
            trainings[name, precision] = tuple(
                fit(accelerator="cuda", devices=2, strategy=strategy(name), precision=precision)
            )
    if os.environ["RANK"] == "0":
        torch.save(trainings, Path(folder) / "trainings.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
