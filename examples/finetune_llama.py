"""Trains a small Llama of Transformers on Python's own documentation, together with an unconverted copy.

The model is made from a `LlamaConfig`, with random weights; the text is that of Python's `help()` topics, several
hundred thousand characters included in Python, read byte by byte. `aclnn_torch.convert` gives one of the two models
aclnn's RMSNorm and cross entropy. Both train on the same batches, alternating step by step. The report shows the loss
on held-out text, the distance of the two learning curves, tokens per second, and a picture of the curves.

    python examples/finetune_llama.py [--steps N] [--seed N] [--output DIR] [--device DEVICE] [--rounding WHERE]
        [--vocabulary N] [--linear-loss]

`--vocabulary 32000` gives both models Llama's vocabulary, although the text has only bytes: then most of a step is the
loss, and `--linear-loss` computes it without its logits (on NPUs in 16 bits only).

Needs `pip install transformers`. On NPUs, use `--device npu` under torch_npu; without NPUs, `python -m aclnn_torch run
examples/finetune_llama.py --device npu` simulates one. The exit code is 0 if every check passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics

import torch
from curves import OURS, PLAIN, Curves, draw, verdict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import aclnn_torch

BATCH, LENGTH = 8, 128  # sequences per step, bytes per sequence
BYTES = 256
HELD_OUT = 64  # sequences
# Relative, between the two models' losses at any step: the same mathematics with different rounding. It is 1e-7 at
# first, and training amplifies it: below 1e-4 after 300 steps here.
LARGEST_DIFFERENCE = 1e-3


@dataclass
class Run:
    """One model and the records of its training."""

    model: LlamaForCausalLM
    optimizer: torch.optim.Optimizer
    losses: list[float] = field(default_factory=list)  # nats per byte, each step
    step_seconds: list[float] = field(default_factory=list)
    held_out: float = float("nan")  # loss on the held-out text, at the end


@dataclass
class Report:
    """The results of a training run."""

    runs: dict[str, Run]
    replaced: dict[str, object]  # as returned by convert
    guess: float  # loss of a guess from the bytes' frequencies only
    picture: Path

    @property
    def difference(self) -> float:
        """The largest relative difference between the losses of the two models."""
        ours, plain = (self.runs[name].losses for name in (OURS, PLAIN))
        return max(abs(a - b) / b for a, b in zip(ours, plain, strict=True))

    @property
    def checks(self) -> dict[str, bool]:
        """The checks, and their results."""
        return {
            "better than guessing": self.runs[OURS].held_out < self.guess,
            "learns what Transformers learns": self.difference <= LARGEST_DIFFERENCE,
        }

    @property
    def passed(self) -> bool:
        """True if every check passed."""
        return all(self.checks.values())


def load_text() -> tuple[Tensor, Tensor]:
    """Training sequences of bytes, and held-out ones, from the end of the text."""
    text = "\n\n".join(topics[name] for name in sorted(topics)).encode()
    numbers = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    sequences = numbers[: len(numbers) // LENGTH * LENGTH].reshape(-1, LENGTH)
    return sequences[:-HELD_OUT], sequences[-HELD_OUT:]


def loss_of_guessing(train: Tensor, held_out: Tensor) -> float:
    """Cross entropy of the held-out bytes under the byte frequencies of the training text."""
    counts = torch.bincount(train.flatten(), minlength=BYTES) + 1
    return -(counts / counts.sum()).log()[held_out[:, 1:]].mean().item()


def build_model(vocabulary: int = BYTES) -> LlamaForCausalLM:
    """A Llama whose vocabulary has every byte, and possibly more."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def loss_of(model: LlamaForCausalLM, tokens: Tensor) -> Tensor:
    """The mean loss over next bytes."""
    return model(input_ids=tokens, labels=tokens).loss


def new_run(model: LlamaForCausalLM) -> Run:
    """A model to train, with its optimizer."""
    return Run(model.train(), torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95)))


def train_step(run: Run, tokens: Tensor) -> None:
    """One step of training, timed."""
    start = time.perf_counter()
    run.optimizer.zero_grad()
    loss = loss_of(run.model, tokens)
    loss.backward()
    run.optimizer.step()
    run.losses.append(loss.item())  # waits for the device
    run.step_seconds.append(time.perf_counter() - start)


def train(
    steps: int,
    seed: int,
    output: Path,
    device: torch.device | str = "cpu",
    rounding: str = "cann",
    console: Console | None = None,
    *,
    vocabulary: int = BYTES,
    linear_loss: bool = False,
) -> Report:
    """Trains both models step by step in turns, from the same weights on the same batches."""
    train_text, held_out = load_text()
    # All random numbers are drawn on the CPU, so that they are the same on every device.
    torch.manual_seed(seed)
    models = {name: build_model(vocabulary) for name in (PLAIN, OURS)}
    models[OURS].load_state_dict(models[PLAIN].state_dict())
    replaced = aclnn_torch.convert(models[OURS], rounding, linear_loss=linear_loss)
    runs = {name: new_run(model.to(device)) for name, model in models.items()}

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(quiet=True)) as progress:
        task = progress.add_task("Training", total=steps)
        for step in range(steps):
            tokens = train_text[torch.randint(len(train_text), (BATCH,))].to(device)
            # Alternating, so that neither always finds the caches in the state that the other left.
            for name in sorted(runs, reverse=step % 2 == 0):
                train_step(runs[name], tokens)
            progress.update(task, advance=1, description=f"Training: loss {runs[OURS].losses[-1]:.3f}")
    with torch.no_grad():
        for run in runs.values():
            batches = [loss_of(run.model.eval(), part.to(device)).item() for part in held_out.split(BATCH)]
            run.held_out = statistics.fmean(batches)
    curves = Curves("Training loss (nats per byte)", {name: run.losses for name, run in runs.items()})
    title = "A small Llama on Python's documentation: RMSNorm and loss of aclnn, beside Transformers' own"
    picture = draw(output / "llama_curves.png", title, "Step", curves)
    return Report(runs, replaced, loss_of_guessing(train_text, held_out), picture)


def show(report: Report, console: Console) -> None:
    """Prints the report."""
    table = Table(title="A Llama, two ways", title_justify="left", title_style="bold")
    for heading in ("", OURS, PLAIN, ""):
        table.add_column(heading, justify="left" if not heading else "right")
    ours, plain = report.runs[OURS], report.runs[PLAIN]
    table.add_row("modules and losses replaced", str(len(report.replaced)), "0", "")
    table.add_row("training loss at the end, nats per byte", f"{ours.losses[-1]:.5f}", f"{plain.losses[-1]:.5f}", "")
    table.add_row(
        "loss on held-out text, nats per byte",
        f"{ours.held_out:.5f}",
        f"{plain.held_out:.5f}",
        f"guessing: {report.guess:.3f}",
    )
    speeds = [BATCH * LENGTH / statistics.median(run.step_seconds) for run in (ours, plain)]
    table.add_row(
        "tokens per second, median step", *(f"{speed:,.0f}" for speed in speeds), f"ratio {speeds[0] / speeds[1]:.2f}"
    )
    console.print(table)
    allowed = f"at most {LARGEST_DIFFERENCE:.0e}"
    console.print(f"Largest difference between the losses, of any step: {report.difference:.1e} ({allowed})")
    console.print(f"Learning curves: [bold]{report.picture}[/]")
    for check, passed in report.checks.items():
        console.print(f"{check}: {verdict(passed)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, prints the report and returns the exit code."""
    parser = argparse.ArgumentParser(description="Trains a small Llama with aclnn's RMSNorm and cross entropy.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output", metavar="DIR")
    parser.add_argument("--device", default="cpu", help="cpu, or npu where torch_npu is installed")
    parser.add_argument("--rounding", choices=("cann", "library"), default="cann", help="see aclnn_torch.convert")
    parser.add_argument("--vocabulary", type=int, default=BYTES, metavar="N", help="words that the models have")
    parser.add_argument(
        "--linear-loss", action="store_true", help="the loss without its logits: see aclnn_torch.convert"
    )
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    if options.vocabulary < BYTES:
        parser.error(f"--vocabulary must be at least {BYTES}")
    console = Console()
    report = train(
        options.steps,
        options.seed,
        options.output,
        options.device,
        options.rounding,
        console,
        vocabulary=options.vocabulary,
        linear_loss=options.linear_loss,
    )
    show(report, console)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
