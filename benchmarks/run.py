"""Measures the cases of cases.py and says which bars are met.

    python -m benchmarks.run [--quick] [--filter TEXT] [--threads N] [--output CSV] [--check]

Writes one CSV row per provider, with the median and the 20th and 80th percentile of its metric, and one per case with
the ratio that its bar speaks of.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .cases import BARS, CASES, Case
from .measure import Outcome, measure
from .providers import OURS

COLUMNS = ("kernel", "provider", "mode", "dtype", "size", "metric", "median", "p20", "p80", "machine")

# Rounds per mode, all and with --quick: short calls vary more, and cost less.
CALL_ROUNDS = (400, 60)
ROUNDS = {
    "call": CALL_ROUNDS,
    "forward+backward": CALL_ROUNDS,
    "kernel": (40, 10),
    "layer_call": CALL_ROUNDS,
    "layer_forward+backward": CALL_ROUNDS,
    "layer_step": (12, 4),
}


def machine() -> str:
    """Names the machine and what of it is used."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # an architecture that does not name its model
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"{model}, {os.cpu_count()} cores, {capability}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )


def write_csv(outcomes: Iterable[Outcome], path: Path) -> None:
    """Writes the outcomes; see COLUMNS."""
    path.parent.mkdir(parents=True, exist_ok=True)
    here = machine()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for outcome in outcomes:
            case = outcome.case
            spreads = [(name, case.bar.metric, spread) for name, spread in outcome.metrics.items()]
            spreads.append((OURS, f"ratio to {outcome.peer}", outcome.ratio))
            for provider, metric, spread in spreads:
                numbers = (f"{number:.6g}" for number in (spread.median, spread.p20, spread.p80))
                place = (case.kernel.name, provider, case.mode, case.dtype_name, case.size)
                writer.writerow((*place, metric, *numbers, here))


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """Prints a table per mode."""
    for mode, bar in BARS.items():
        rows = [outcome for outcome in outcomes if outcome.case.mode == mode]
        if not rows:
            continue
        table = Table(
            title=f"{mode} ({bar.metric}), ratio to the best peer {bar}", title_justify="left", box=SIMPLE_HEAD
        )
        own = [name for name in rows[0].metrics if name not in rows[0].peers]
        for heading in ("kernel", "dtype", "best peer"):
            table.add_column(heading)
        for heading in ("size", *own, "best peer", "ratio", "20 .. 80 %", "bar"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(
                row.case.kernel.name,
                row.case.dtype_name,
                row.peer,
                _size(row.case),
                *(f"{row.metrics[name].median:.2f}" for name in (*own, row.peer)),
                f"{row.ratio.median:.3f}",
                f"{row.ratio.p20:.2f} .. {row.ratio.p80:.2f}",
                "[green]PASS[/]" if row.passed else "[bold red]FAIL[/]",
            )
        console.print(table)


def _size(case: Case) -> str:
    """Writes large powers of two as such."""
    count, *more = case.shape
    large_power = not more and count >= 1024 and count.bit_count() == 1
    return f"2^{count.bit_length() - 1}" if large_power else case.size


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports; returns 1 when a bar is missed and --check asks."""
    parser = argparse.ArgumentParser(description="Measures the operators against PyTorch and the memory's speed.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only cases whose name contains it")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--threads", type=int, help="threads to use (default: PyTorch's choice)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "latest.csv", metavar="CSV")
    parser.add_argument("--check", action="store_true", help="end with code 1 when a bar is missed")
    options = parser.parse_args(arguments)

    console = Console(width=None if sys.stdout.isatty() else 140)  # no terminal, no need to wrap
    cases = [case for case in CASES if options.filter in str(case)]
    if not cases:
        parser.error(f"no case contains {options.filter!r}; --list names them")
    if options.list:
        console.print(*map(str, cases), sep="\n", highlight=False)
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    console.print(machine(), highlight=False, soft_wrap=True)

    outcomes = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(cases))
        for case in cases:
            progress.update(task, description=str(case), refresh=True)
            outcomes.append(measure(case, ROUNDS[case.mode][options.quick]))
            progress.advance(task)
    show(outcomes, console)
    write_csv(outcomes, options.output)
    missed = [outcome for outcome in outcomes if not outcome.passed]
    console.print(f"{len(outcomes) - len(missed)} of {len(outcomes)} bars met; results in {options.output}")
    for outcome in missed:
        console.print(f"[red]missed[/] {outcome.case}: {outcome.ratio.median:.3f}, bar {outcome.case.bar}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
