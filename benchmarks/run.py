"""Measures the cases of cases.py and reports which bars of bars.py are met.

    python -m benchmarks.run [--quick] [--filter TEXT]... [--threads N]... [--jax PYTHON] [--output CSV] [--check]

Writes a CSV row per case and provider, with the median and the 20th and 80th percentile of its metric and of our
speed-up, and plots next to the file. docs/benchmarks.md explains how to read them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .cases import CASES, Case
from .jax_peer import Jax, JaxError
from .measure import FULL, QUICK, measure
from .providers import Settings
from .report import LATEST, console, report
from .results import Row, Writer


def machine() -> str:
    """Names the machine and the part of it in use."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # some architectures do not name their model
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"{model}, {os.cpu_count()} cores, {capability}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )


def select(filters: Sequence[str], quick: bool, threads: int, again: bool = False) -> list[Case]:
    """The cases whose name contains one of the texts, if given; `again` for another number of threads."""
    return [
        case
        for case in CASES
        if (not filters or any(text in str(case) for text in filters))
        and (case.quick or not quick)
        and (case.mode != "scaling" or threads > 1)
        and not (case.mode.startswith("memory") and again)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports; returns 1 if a bar is missed and --check is given."""
    parser = argparse.ArgumentParser(description="Measures the operators against their peers and the machine's limits.")
    parser.add_argument("--quick", action="store_true", help="fewer cases and turns")
    parser.add_argument("--filter", action="append", default=[], metavar="TEXT", help="only cases whose name has it")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--threads", action="append", type=int, default=[], help="threads to use (default: torch's)")
    parser.add_argument("--jax", default=sys.executable, metavar="PYTHON", help="an interpreter that has jax")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, whose compiler takes minutes")
    parser.add_argument("--output", type=Path, default=LATEST, metavar="CSV")
    parser.add_argument("--check", action="store_true", help="end with code 1 when a bar is missed")
    options = parser.parse_args(arguments)

    screen = console()
    before = torch.get_num_threads()
    counts = options.threads or [before]
    selected = {
        threads: select(options.filter, options.quick, threads, again=number > 0)
        for number, threads in enumerate(dict.fromkeys(counts))
    }
    if not any(selected.values()):
        parser.error(f"no case contains {' or '.join(map(repr, options.filter))}; --list names them")
    if options.list:
        names = dict.fromkeys(str(case) for cases in selected.values() for case in cases)
        screen.print(*names, sep="\n", highlight=False, soft_wrap=True)
        return 0

    rows: list[Row] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=screen) as progress:
            task = progress.add_task("", total=sum(map(len, selected.values())))
            for number, (threads, cases) in enumerate(selected.items()):
                torch.set_num_threads(threads)
                screen.print(machine(), highlight=False, soft_wrap=True)
                with contextlib.ExitStack() as stack:
                    jax = None
                    try:
                        jax = stack.enter_context(Jax(options.jax, threads))
                    except JaxError as error:
                        screen.print(f"JAX is skipped: {error}", highlight=False, soft_wrap=True)
                    settings = Settings(threads, jax, compile=not options.no_compile)
                    writer = stack.enter_context(Writer(options.output, machine(), append=number > 0))
                    for case in cases:
                        progress.update(task, description=str(case), refresh=True)
                        rows += writer.write(measure(case, settings, QUICK if options.quick else FULL))
                        progress.advance(task)
    finally:
        torch.set_num_threads(before)
    met = report(rows, options.output.parent, screen)
    screen.print(f"Results: {options.output}", highlight=False, soft_wrap=True)
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
