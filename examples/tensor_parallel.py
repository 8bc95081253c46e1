"""Training steps of a small model whose sequence, channels and vocabulary are sharded over processes.

The norms process a shard of the sequence, the linear layers a shard of the channels, and the loss a shard of the
vocabulary: no process ever has all logits. It prints the losses, which equal those of a single process:

    python -m torch.distributed.run --standalone --nproc-per-node 2 examples/tensor_parallel.py
    python -m torch.distributed.run --standalone --nproc-per-node 1 examples/tensor_parallel.py
"""

from __future__ import annotations

import os
import sys

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

import aclnn_torch
import aclnn_torch.distributed  # registers the operators' sharding rules with DTensor

BATCH, LENGTH, WIDTH, VOCABULARY = 4, 16, 32, 100
PLAN = {
    "0": SequenceParallel(),
    "1": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    "3": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "4": SequenceParallel(),
    "5": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(2), use_local_output=False),
}


def main() -> None:
    """Trains, and prints the loss of each step."""
    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    torch.manual_seed(0)
    model = nn.Sequential(
        aclnn_torch.nn.RMSNorm(WIDTH),
        nn.Linear(WIDTH, 2 * WIDTH),
        aclnn_torch.nn.SELU(),
        nn.Linear(2 * WIDTH, WIDTH),
        aclnn_torch.nn.RMSNorm(WIDTH),
        nn.Linear(WIDTH, VOCABULARY),
    )
    model = parallelize_module(model, mesh, PLAN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x, target = torch.randn(BATCH, LENGTH, WIDTH), torch.randint(VOCABULARY, (BATCH * LENGTH,))
    for _ in range(5):
        logits = model(distribute_tensor(x, mesh, [Shard(1)]))
        loss = aclnn_torch.distributed.cross_entropy(logits.flatten(0, 1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.full_tensor().item()  # a collective operation
        if mesh.get_rank() == 0:
            print(f"{value:.5f}")
    torch.distributed.destroy_process_group()
    # On a busy machine, torch's communication threads may abort a process whose interpreter ends before they do.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
