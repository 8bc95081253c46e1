"""A training with DeepSpeed in two processes.

``torchrun -m tests.clients.deepspeed_program FOLDER`` trains with ZeRO, saves and loads its state in the middle, and
trains the stages of a pipeline.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from torch import Tensor, nn

from tests.clients.network import examples, network
from tests.clients.training import Training, flat

BATCH, EPOCHS = 8, 2
STAGES = (2, 3)
OPTIMIZER = {"lr": 1e-2, "weight_decay": 0.01}


def batches(size: int, of: int = 1, rank: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """The epochs' batches, or this process's shard of each."""
    rows, labels = examples().tensors
    for _ in range(EPOCHS):
        for begin in range(rank * size, len(rows), of * size):
            yield rows[begin : begin + size], labels[begin : begin + size]


def configuration(stage: int, *, micro_batch: int, clipping: float) -> dict[str, object]:
    return {
        "train_batch_size": BATCH,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_clipping": clipping,
        # The default buckets take gigabytes; parameters below a threshold would not be sharded.
        "zero_optimization": {
            "stage": stage,
            "reduce_bucket_size": 10000,
            "allgather_bucket_size": 10000,
            "stage3_prefetch_bucket_size": 1000,
            "stage3_param_persistence_threshold": 0,
        },
        "optimizer": {"type": "AdamW", "params": {**OPTIMIZER, "torch_adam": True}},
    }


def zero(stage: int, folder: Path) -> Training:
    """The state is saved after half of the steps, and loaded after two more, which are repeated."""
    model = network()
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=configuration(stage, micro_batch=4, clipping=1.0)
    )
    shards = list(batches(BATCH // 2, 2, dist.get_rank()))
    half = len(shards) // 2

    def steps(some: list[tuple[Tensor, Tensor]]) -> list[float]:
        losses = []
        for rows, labels in some:
            loss = nn.functional.cross_entropy(engine(rows.to(engine.device)), labels.to(engine.device))
            engine.backward(loss)
            engine.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            losses.append(mean.item())
        return losses

    losses = steps(shards[:half])
    engine.save_checkpoint(str(folder), tag=f"stage{stage}")
    steps(shards[half : half + 2])
    engine.load_checkpoint(str(folder), tag=f"stage{stage}")
    losses += steps(shards[half:])
    parameters = list(engine.module.parameters())
    with deepspeed.zero.GatheredParameters(parameters) if stage == 3 else contextlib.nullcontext():
        return Training(losses, flat(engine.module))


def pipeline() -> Training:
    """Two stages on two NPUs. No gradients are clipped, because in float32 each stage clips by its own norm."""
    layers = list(network())
    module = PipelineModule(layers, num_stages=2, loss_fn=nn.CrossEntropyLoss(), partition_method="uniform")
    engine, *_ = deepspeed.initialize(
        model=module,
        model_parameters=module.parameters(),
        config=configuration(0, micro_batch=BATCH // 2, clipping=0.0) | {"gradient_accumulation_steps": 2},
    )
    data = ((rows.to(engine.device), labels.to(engine.device)) for rows, labels in batches(BATCH // 2))
    losses = [float(engine.train_batch(data)) for _ in range(EPOCHS * len(examples()) // BATCH)]
    stages: list[Tensor] = [torch.empty(0)] * 2
    dist.all_gather_object(stages, flat(module))
    return Training(losses, torch.cat(stages))


def main(folder: str) -> None:
    """Writes the training of each stage of ZeRO, and the pipeline's."""
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    assert dist.get_backend() == "hccl"
    trainings = {f"zero{stage}": tuple(zero(stage, Path(folder))) for stage in STAGES}
    trainings["pipeline"] = tuple(pipeline())
    if dist.get_rank() == 0:
        torch.save(trainings, Path(folder) / "trainings.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
