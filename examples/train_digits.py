"""Trains a convolutional network on handwritten digits with aclnn operators, together with the same network in torch.

The digits are the 1797 images of 8 x 8 pixels included in scikit-learn. Convolution, RMSNorm, ELU, SELU and cross
entropy are aclnn's, forward and backward. The report shows the accuracy on held-out images, the distance of the
gradients from torch's in every dtype compared with the bound from rounding (derived in rounding.py), for the network
and for every operator, the time per training step, and a picture of the learning curves.

    python examples/train_digits.py [--epochs N] [--seed N] [--output DIR] [--device DEVICE]

On NPUs, use `--device npu` under torch_npu; without NPUs, `python -m aclnn_torch run examples/train_digits.py --device
npu` simulates one. A seed gives the same images, noise and weights on every device. The exit code is 0 if every check
passes.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from curves import OURS, PLAIN, Curves, draw, verdict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rounding import Comparison, Network, check_gradients, check_operators
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import aclnn_torch

REQUIRED_ACCURACY = 0.97
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
BATCH = 64
NOISE = 0.2  # standard deviation of the noise added to training images against overfitting
# The libraries of the networks' modules: with the same names and constructors.
LIBRARIES = {OURS: aclnn_torch.nn, PLAIN: torch.nn}


@dataclass
class Run:
    """One model and the records of its training."""

    model: Network
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    losses: list[float] = field(default_factory=list)  # mean per epoch
    accuracies: list[float] = field(default_factory=list)  # on held-out images, after each epoch
    step_seconds: list[float] = field(default_factory=list)


@dataclass
class Report:
    """The results of a training run."""

    runs: dict[str, Run]
    gradients: list[Comparison]  # of the network, one per dtype
    operators: list[Comparison]  # of each operator separately, in every dtype
    picture: Path

    @property
    def accuracy(self) -> float:
        """Accuracy of the aclnn model on the held-out images, at the end."""
        return self.runs[OURS].accuracies[-1]

    @property
    def passed(self) -> bool:
        """True if every check passed."""
        return self.accuracy >= REQUIRED_ACCURACY and all(check.passed for check in self.gradients + self.operators)


def build_model(library: Any) -> Network:
    """The network, from the modules of torch.nn or of a library with the same names."""
    layers = nn.Sequential(
        library.Conv2d(1, 16, 3, padding=1),
        library.RMSNorm([16, 8, 8], eps=1e-6),
        library.ELU(),
        library.Conv2d(16, 32, 3),
        library.RMSNorm([32, 6, 6], eps=1e-6),
        library.SELU(),
        library.Conv2d(32, 32, 4, stride=2),
        library.RMSNorm([32, 2, 2], eps=1e-6),
        library.SELU(),
        library.Conv2d(32, 10, 2),
        nn.Flatten(),
    )
    return Network(layers, library.CrossEntropyLoss())


def new_run(model: Network, epochs: int) -> Run:
    """A run that has not begun."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    return Run(model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs))


def load_data(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images, held-out images, and the digits of both. Pixels are multiples of 1/16 from 0 to 1."""
    images, digits = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8) / 16
    split = train_test_split(images, digits, test_size=0.25, stratify=digits, random_state=seed)
    train, test, train_digits, test_digits = (torch.as_tensor(part) for part in split)
    return train.float(), test.float(), train_digits, test_digits


def train_step(run: Run, images: Tensor, digits: Tensor) -> float:
    """One step of training, timed; returns the loss."""
    start = time.perf_counter()
    run.optimizer.zero_grad()
    loss = run.model.loss(run.model(images), digits)
    loss.backward()
    run.optimizer.step()
    value = loss.item()  # waits for the device
    run.step_seconds.append(time.perf_counter() - start)
    return value


def train(
    epochs: int, seed: int, output: Path, device: torch.device | str = "cpu", console: Console | None = None
) -> Report:
    """Trains both models step by step in turns, from the same weights on the same batches, and compares them."""
    device = torch.device(device)
    train_images, test_images, train_digits, test_digits = load_data(seed)
    test_images, test_digits = test_images.to(device), test_digits.to(device)
    # All random numbers are drawn on the CPU, so that they are the same on every device.
    torch.manual_seed(seed)
    models = {name: build_model(library).to(device) for name, library in LIBRARIES.items()}
    models[OURS].load_state_dict(models[PLAIN].state_dict())
    # Before training, while no gradient is small yet.
    first = train_images[:BATCH].to(device), train_digits[:BATCH].to(device)
    gradients, operators = check_models(models[PLAIN].state_dict(), *first)

    runs = {name: new_run(model, epochs) for name, model in models.items()}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(quiet=True)) as progress:
        task = progress.add_task("Training", total=epochs)
        for epoch in range(epochs):
            losses: dict[str, list[float]] = {name: [] for name in runs}
            # Images that do not fill a batch are left for the next epoch: a gradient of only a few would be mostly
            # noise.
            order = torch.randperm(len(train_images))[: len(train_images) // BATCH * BATCH]
            for step, batch in enumerate(order.split(BATCH)):
                images = (train_images[batch] + NOISE * torch.randn_like(train_images[batch])).to(device)
                digits = train_digits[batch].to(device)
                # Alternating, so that neither always finds the caches in the state that the other left.
                for name in sorted(runs, reverse=step % 2 == 0):
                    losses[name].append(train_step(runs[name], images, digits))
            for name, run in runs.items():
                run.schedule.step()
                with torch.no_grad():
                    hits = run.model(test_images).argmax(-1) == test_digits
                run.losses.append(statistics.fmean(losses[name]))
                run.accuracies.append(hits.float().mean().item())
            accuracy = runs[OURS].accuracies[-1]
            progress.update(task, advance=1, description=f"Training: accuracy {accuracy:.3f} after epoch {epoch + 1}")

    return Report(runs, gradients, operators, draw_curves(runs, output / "learning_curves.png"))


def check_models(
    weights: dict[str, Tensor], images: Tensor, digits: Tensor
) -> tuple[list[Comparison], list[Comparison]]:
    """Compares both models with equal weights, in every dtype: the gradients of the network, and every operator."""
    gradients, operators = [], []
    for dtype in DTYPES:
        models = {name: build_model(library).to(images.device, dtype) for name, library in LIBRARIES.items()}
        for model in models.values():
            model.load_state_dict(weights)
        batch = images.to(dtype), digits
        gradients.append(check_gradients(models[OURS], models[PLAIN], *batch))
        operators += check_operators(models[OURS], models[PLAIN], *batch)
    return gradients, operators


def draw_curves(runs: dict[str, Run], path: Path) -> Path:
    """Draws loss and accuracy of both models against the epoch; returns the picture's path."""

    def finish(axes: Any) -> None:
        from matplotlib.ticker import PercentFormatter

        axes.axhline(REQUIRED_ACCURACY, color="#777777", linewidth=1, linestyle=(0, (4, 3)))
        below_right = {"xytext": (0, -4), "textcoords": "offset points", "ha": "right", "va": "top"}
        end = (len(runs[OURS].accuracies), REQUIRED_ACCURACY)
        axes.annotate(f"required: {REQUIRED_ACCURACY:.0%}", end, color="#555555", **below_right)
        axes.yaxis.set_major_formatter(PercentFormatter(1))

    losses = {name: run.losses for name, run in runs.items()}
    accuracies = {name: run.accuracies for name, run in runs.items()}
    return draw(
        path,
        "Handwritten digits: a convolutional network of aclnn operators, beside plain torch",
        "Epoch",
        Curves("Training loss (mean cross entropy)", losses, log=True),
        Curves("Accuracy on held-out digits", accuracies, finish=finish),
    )


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype without its module."""
    return str(dtype).removeprefix("torch.")


def show(report: Report, console: Console) -> None:
    """Prints the report."""
    table = Table(title="Accuracy and time", title_justify="left", title_style="bold")
    for heading in ("", OURS, PLAIN, "check"):
        table.add_column(heading, justify="left" if not heading else "right")
    ours, plain = report.runs[OURS], report.runs[PLAIN]
    table.add_row(
        "accuracy on held-out digits",
        f"{ours.accuracies[-1]:.4f}",
        f"{plain.accuracies[-1]:.4f}",
        f">= {REQUIRED_ACCURACY} {verdict(report.accuracy >= REQUIRED_ACCURACY)}",
    )
    table.add_row("training loss at the end", f"{ours.losses[-1]:.5f}", f"{plain.losses[-1]:.5f}", "")
    medians = [statistics.median(run.step_seconds) for run in (ours, plain)]
    table.add_row(
        "time per training step, median",
        *(f"{1e3 * median:.3f} ms" for median in medians),
        f"ratio {medians[0] / medians[1]:.2f}",
    )
    console.print(table)

    table = Table(
        title="Gradients of the network: largest difference from plain torch",
        title_justify="left",
        title_style="bold",
        caption="Same weights and batch. The bound is what rounding in the dtype can make of two\n"
        "correct implementations; every single gradient is held against its own.\n"
        "examples/rounding.py derives it.",
        caption_justify="left",
    )
    for heading in ("dtype", "largest gradient", "largest difference", "its bound", "most of a bound used", "check"):
        table.add_column(heading, justify="left" if heading == "dtype" else "right")
    for check in report.gradients:
        table.add_row(
            dtype_name(check.dtype),
            f"{check.largest:.2e}",
            f"{check.difference:.2e}",
            f"{check.bound:.2e}",
            f"{check.worst_share:.1%}",
            verdict(check.passed),
        )
    console.print(table)

    table = Table(
        title="Every operator by itself: largest difference from plain torch / its bound",
        title_justify="left",
        title_style="bold",
        caption="Over all layers that use the operator, each with the inputs and\ngradients that arise in the network.",
        caption_justify="left",
    )
    table.add_column("operator")
    names = list(dict.fromkeys(check.name for check in report.operators))
    columns = [[check for check in report.operators if check.dtype == dtype] for dtype in DTYPES]
    for dtype in DTYPES:
        table.add_column(dtype_name(dtype), justify="right")
    for name, *checks in zip(names, *columns, strict=True):
        style = None if all(check.passed for check in checks) else "bold red"
        table.add_row(name, *(f"{check.difference:.0e} / {check.bound:.0e}" for check in checks), style=style)
    table.add_section()
    table.add_row("check", *(verdict(all(check.passed for check in checks)) for checks in columns))
    console.print(table)
    console.print(f"Learning curves: [bold]{report.picture}[/]")
    console.print(f"All checks: {verdict(report.passed)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, prints the report and returns the exit code."""
    parser = argparse.ArgumentParser(description="Trains a network on handwritten digits with aclnn operators.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output", metavar="DIR")
    parser.add_argument("--device", default="cpu", help="cpu, or npu where torch_npu is installed")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    if torch.device(options.device).type == "npu":
        # By default both networks' convolutions round float32 inputs to HF32; this makes them multiply as on the CPU.
        importlib.import_module("torch_npu").npu.conv.allow_hf32 = False
    torch.set_num_threads(1)  # the network is too small for several threads
    console = Console()
    report = train(options.epochs, options.seed, options.output, options.device, console)
    show(report, console)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
