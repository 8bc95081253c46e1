"""The cost of a training step on a simulated NPU, compared with the same step of torch on the CPU.

A Llama with random weights: forward, loss, backward, AdamW. Starts itself on simulated NPUs::

    .venv-npu/bin/python -m benchmarks.npu_training

The two alternate in one process, with the same number of threads, and the time includes the synchronisation at the end
of a step. `--profile` prints instead the times of CANN's functions in the steps on the NPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Model:
    """A model's sizes, the tokens of a step, and the limit of the NPU's time as a multiple of the CPU's."""

    name: str
    hidden: int
    layers: int
    batch: int
    length: int
    bar: float


MODELS = (
    Model("hidden 64, 2 layers, 2 x 32 tokens", 64, 2, 2, 32, 2.0),
    Model("hidden 256, 4 layers, 4 x 128 tokens", 256, 4, 4, 128, 1.25),
)
DTYPES = ("float32", "bfloat16")


def step_of(model: Model, dtype: str, device: str) -> Callable[[], None]:
    """A training step, created with the same weights for each device."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=model.hidden,
        intermediate_size=model.hidden * 11 // 4,
        num_hidden_layers=model.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
    network = LlamaForCausalLM(config).to(device=device, dtype=getattr(torch, dtype))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    tokens = torch.randint(1024, (model.batch, model.length)).to(device)

    def step() -> None:
        network(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "npu":
            torch.npu.synchronize()

    return step


def milliseconds(step: Callable[[], None]) -> float:
    begin = time.perf_counter()
    step()
    return (time.perf_counter() - begin) * 1e3


def measure(turns: int) -> None:
    """Prints the ratio of the medians for every model and dtype."""
    import torch
    import torch_npu  # noqa: F401

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    print(f"{torch.get_num_threads()} threads, {turns} steps each; ms per step, median (20th - 80th percentile)")
    for model in MODELS:
        for dtype in DTYPES:
            steps = {device: step_of(model, dtype, device) for device in ("cpu", "npu")}
            times: dict[str, list[float]] = {device: [] for device in steps}
            for turn in range(turns + 3):
                for device, step in steps.items():
                    passed = milliseconds(step)
                    if turn >= 3:
                        times[device].append(passed)
            columns = []
            for device, values in times.items():
                cuts = statistics.quantiles(values, n=10)
                columns.append(f"{device} {statistics.median(values):6.1f} ({cuts[1]:6.1f} - {cuts[7]:6.1f})")
            ratio = statistics.median(times["npu"]) / statistics.median(times["cpu"])
            print(f"{model.name}, {dtype:8}  {'  '.join(columns)}  {ratio:5.2f} (bar {model.bar})", flush=True)


def profile(turns: int) -> None:
    """Prints the times of the functions, in ms per step, for each model and dtype."""
    import torch_npu  # noqa: F401

    trace = Path(os.environ["ACLNN_TORCH_TRACE"])
    for model in MODELS:
        for dtype in DTYPES:
            step = step_of(model, dtype, "npu")
            for _ in range(3):
                step()
            begin = trace.stat().st_size
            whole = sum(milliseconds(step) for _ in range(turns)) / turns
            with trace.open() as file:
                file.seek(begin)
                lines = file.readlines()
            spent: dict[str, float] = defaultdict(float)
            calls: dict[str, int] = defaultdict(int)
            for line in lines:
                try:
                    event = json.loads(line.rstrip().rstrip(","))
                except ValueError:
                    continue
                if event["cat"] == "stage 2":
                    continue  # only submits the call to its stream
                spent[event["name"]] += event["dur"] / 1e3 / turns
                calls[event["name"]] += 1
            print(f"{model.name}, {dtype}: {whole:.1f} ms per step")
            for name, time_spent in sorted(spent.items(), key=lambda item: -item[1])[:20]:
                print(f"  {time_spent:7.2f} ms  {calls[name] / turns:6.1f} calls  {name}")


def main() -> int:
    """Measures in a separate process on simulated NPUs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20, help="steps of each (default: %(default)s)")
    parser.add_argument("--profile", action="store_true", help="print what the functions of CANN take")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_process:
        (profile if arguments.profile else measure)(arguments.turns)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if arguments.profile:
            environment["ACLNN_TORCH_TRACE"] = str(Path(folder) / "trace.json")
        command = [sys.executable, "-m", "aclnn_torch", "run", "-m", "benchmarks.npu_training", *sys.argv[1:]]
        return subprocess.run([*command, "--in-process"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
