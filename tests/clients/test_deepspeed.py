"""DeepSpeed: the stages of ZeRO with saved states, and a pipeline."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.clients.deepspeed_program import BATCH, OPTIMIZER, STAGES, batches
from tests.clients.network import network
from tests.clients.processes import launch
from tests.clients.training import Training, expect_alike, flat


def on_cpu(clipping: float) -> Training:
    """In one process, with torch's optimizer."""
    model, losses = network(), []
    optimizer = torch.optim.AdamW(model.parameters(), **OPTIMIZER)
    for rows, labels in batches(BATCH):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clipping)
        optimizer.step()
        losses.append(loss.item())
    return Training(losses, flat(model))


def test_two_processes_learn_as_one_on_the_cpu(tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    launch(*command, "-m", "tests.clients.deepspeed_program", str(tmp_path))
    trainings = {name: Training(*values) for name, values in torch.load(tmp_path / "trainings.pt").items()}
    start, expected = flat(network()), on_cpu(clipping=1.0)
    for stage in STAGES:
        expect_alike(trainings[f"zero{stage}"], expected, start)
    expect_alike(trainings["pipeline"], on_cpu(clipping=float("inf")), start)
