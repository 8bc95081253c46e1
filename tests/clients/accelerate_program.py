"""A training loop with accelerate, for one process or several.

``accelerate launch -m tests.clients.accelerate_program DISTRIBUTION FOLDER`` trains in the processes that it starts,
saves the state in the middle, and resumes from there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from accelerate import Accelerator, DataLoaderConfiguration, FullyShardedDataParallelPlugin
from accelerate.state import AcceleratorState, GradientState
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tests.clients.network import examples, network
from tests.clients.training import Training, flat

BATCH = 8


def plugin(distribution: str) -> FullyShardedDataParallelPlugin | None:
    """Makes accelerate shard the parameters of each layer, if that is the distribution."""
    if distribution != "fsdp2":
        return None
    return FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Linear"]
    )


class Program:
    """A program with accelerate. Each instance begins as if it were the process's only one.

    Processes share the batches, so that together they compute the same as one.
    """

    def __init__(self, device: str, *, distribution: str = "ddp", **arguments: object) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        self.accelerator = Accelerator(
            cpu=device == "cpu",
            dataloader_config=DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True),
            fsdp_plugin=plugin(distribution),
            **arguments,
        )
        assert self.accelerator.device.type == device
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, total_iters=6)
        loader = DataLoader(examples(), BATCH, shuffle=True)
        self.model, self.optimizer, self.schedule, self.loader = self.accelerator.prepare(
            model, optimizer, schedule, loader
        )

    def step(self, rows: Tensor, labels: Tensor) -> float:
        """One batch, or this process's shard of it; returns the loss of all."""
        with self.accelerator.accumulate(self.model):
            loss = F.cross_entropy(self.model(rows), labels)
            self.accelerator.backward(loss)
            if self.accelerator.sync_gradients:
                self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
        return self.accelerator.gather(loss.detach()).mean().item()

    def epoch(self, number: int) -> Training:
        """All batches once, in the order of the epoch. If parameters are sharded, the main process gathers them."""
        self.loader.set_epoch(number)
        losses = [self.step(rows, labels) for rows, labels in self.loader]
        whole = network()
        whole.load_state_dict(self.accelerator.get_state_dict(self.model), strict=self.accelerator.is_main_process)
        return Training(losses, flat(whole))


def main(distribution: str, folder: str) -> None:
    """Writes the results of the second epoch: directly after the first, and resumed from the state saved between."""
    program = Program("npu", distribution=distribution)
    assert program.accelerator.num_processes == 2
    program.epoch(0)
    program.accelerator.save_state(f"{folder}/state")
    straight = program.epoch(1)
    program.accelerator.load_state(f"{folder}/state")
    resumed = program.epoch(1)
    if program.accelerator.is_main_process:
        torch.save([tuple(straight), tuple(resumed)], Path(folder) / "trainings.pt")
    program.accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
