"""A training that torch.distributed.checkpoint saves and loads, for several processes.

``torch.distributed.run --nproc-per-node 2 -m tests.clients.checkpoint_program DISTRIBUTION FOLDER`` starts it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from tests.clients.network import examples, network
from tests.clients.training import Training, flat

STEPS = 4


def distributed(distribution: str) -> nn.Module:
    """The network on this process's NPU, replicated or sharded over all."""
    device = torch.device("npu", torch.npu.current_device())
    model = network().to(device)
    if distribution == "ddp":
        return DistributedDataParallel(model, device_ids=[device.index])
    mesh = init_device_mesh("npu", (dist.get_world_size(),))
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


class Program:
    """A model and its optimizer, with a state to save and load."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def train(self, rows: Tensor, labels: Tensor) -> list[float]:
        """Some steps on one batch, or this process's shard of it; returns the losses of all."""
        losses = []
        for _ in range(STEPS):
            loss = F.cross_entropy(self.model(rows), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            loss = loss.detach()
            if dist.is_initialized():
                dist.all_reduce(loss, dist.ReduceOp.AVG)
            losses.append(loss.item())
        return losses

    def state_dict(self) -> dict[str, Any]:
        """The state for torch.distributed.checkpoint to save."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The state loaded by torch.distributed.checkpoint."""
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])

    def parameters(self) -> Tensor:
        """The parameters of all processes."""
        whole = network()
        whole.load_state_dict(get_model_state_dict(self.model, options=StateDictOptions(full_state_dict=True)))
        return flat(whole)


def interrupted(distribution: str, rows: Tensor, labels: Tensor, folder: Path, *, asynchronous: bool) -> None:
    """Writes the second half of a training, reached directly and from the checkpoint between the halves."""
    first = Program(distributed(distribution))
    first.train(rows, labels)
    if asynchronous:
        saved = dcp.async_save({"program": first}, checkpoint_id=folder / "state")
        straight = Training(first.train(rows, labels), first.parameters())
        saved.result()
    else:
        dcp.save({"program": first}, checkpoint_id=folder / "state")
        straight = Training(first.train(rows, labels), first.parameters())
    second = Program(distributed(distribution))
    dcp.load({"program": second}, checkpoint_id=folder / "state")
    resumed = Training(second.train(rows, labels), second.parameters())
    if dist.get_rank() == 0:
        torch.save([tuple(straight), tuple(resumed)], folder / "trainings.pt")


def main(distribution: str, folder: str) -> None:
    """Saves while the training waits, and while it continues, in separate folders."""
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,npu:hccl")  # async_save needs a CPU group
    rows, labels = (part.chunk(dist.get_world_size())[dist.get_rank()].npu() for part in examples().tensors)
    interrupted(distribution, rows, labels, Path(folder) / "save", asynchronous=False)
    interrupted(distribution, rows, labels, Path(folder) / "async_save", asynchronous=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
