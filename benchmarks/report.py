"""Shows and judges run.py's measurements, from its CSV files.

    python -m benchmarks.report [--plots DIRECTORY] [--markdown] [--check] [CSV...]

If several files contain a case, the last one's rows count, so that a run in pieces is read as one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from . import plots
from .bars import Verdict, judge
from .cases import MODES
from .providers import OURS
from .results import Row, read

RESULTS = Path(__file__).parent / "results"
LATEST = RESULTS / "latest.csv"


def show(rows: Sequence[Row], console: Console) -> None:
    """Prints a table per mode and number of threads: our values, and our speed-ups over the others."""
    for threads in sorted({row.threads for row in rows}, reverse=True):
        for mode, (metric, peers) in MODES.items():
            own = [row for row in rows if row.mode == mode and row.threads == threads]
            if own:
                console.print(_table(own, f"{mode}, threads: {threads}", metric, peers))


def _table(rows: Sequence[Row], title: str, metric: str, peers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    table.add_column("dtype")
    table.add_column("size", justify="right")
    table.add_column(metric, justify="right")
    shown = [peer for peer in peers if any(_is(row, peer) for row in rows)]
    for peer in shown:
        table.add_column(f"vs {peer}", justify="right", no_wrap=True)
    for case in dict.fromkeys(row.case for row in rows):
        field = [row for row in rows if row.case == case]
        ours = next(row for row in field if row.provider == OURS)
        cells = []
        for peer in shown:
            found = [row for row in field if _is(row, peer)]
            row = min(found, key=lambda row: row.speedup, default=None)
            cells.append(f"{row.speedup:.2f} ({row.speedup_p20:.2f} - {row.speedup_p80:.2f})" if row else "")
        table.add_row(ours.kernel, ours.dtype, ours.size, f"{ours.median:.4g}", *cells)
    return table


def _is(row: Row, peer: str) -> bool:
    return row.provider.partition(":")[0] == peer


def show_verdicts(verdicts: Sequence[Verdict], console: Console) -> None:
    """Prints the bars, the geometric means, the worst rows, and the limits that the machine sets to mean and worst."""
    title = "Bars: how many times faster than the peer, median of the same run"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("work", "against", "bar"):
        table.add_column(heading)
    for heading in ("threads", "rows", "mean", "worst", "limit"):
        table.add_column(heading, justify="right")
    table.add_column("worst row")
    table.add_column("")
    for verdict in verdicts:
        worst = verdict.worst
        of = f" {verdict.mean_of}" if verdict.mean_of else ""
        table.add_row(
            *(verdict.bar.work, verdict.bar.peer, str(verdict.bar), str(verdict.threads), str(verdict.rows)),
            "" if verdict.mean is None else f"{verdict.mean:.2f}{of}",
            f"{worst.speedup:.2f}",
            "" if verdict.limit is None else "; ".join(f"{number:.2f}" for number in verdict.limit),
            "/".join(filter(None, (worst.kernel, worst.dtype, worst.size))),
            "[green]PASS[/]" if verdict.met else "[bold red]FAIL[/]",
        )
    console.print(table)


def markdown(verdicts: Sequence[Verdict]) -> str:
    """The same for a document, with the numbers of threads side by side."""
    counts = sorted({verdict.threads for verdict in verdicts}, reverse=True)
    lines = [
        "| Work | Beside | Asked | "
        + " | ".join(f"{count} thread{'s' * (count > 1)}: mean; worst" for count in counts)
        + " |",
        "|---|---|---|" + "---|" * len(counts),
    ]
    for bar in dict.fromkeys(verdict.bar for verdict in verdicts):
        cells = []
        for count in counts:
            found = [verdict for verdict in verdicts if verdict.bar == bar and verdict.threads == count]
            cells += [_cell(verdict) for verdict in found] or [""]
        lines.append(f"| {bar.work} | {bar.peer} | {bar} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(verdict: Verdict) -> str:
    """Mean and worst, and the possible values where the bar is missed."""
    reached = f"{_number(verdict.mean)}; {_number(verdict.worst.speedup)}"
    if verdict.met or verdict.limit is None:
        return reached
    return f"{reached} (limit {'; '.join(map(_number, verdict.limit))})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def report(rows: Sequence[Row], directory: Path, console: Console) -> bool:
    """Prints tables, draws plots into a directory; returns true if every bar is met."""
    show(rows, console)
    verdicts = judge(rows)
    show_verdicts(verdicts, console)
    pictures = plots.save(rows, directory)
    console.print("Plots:", ", ".join(map(str, pictures)), highlight=False, soft_wrap=True)
    short = [verdict for verdict in verdicts if not verdict.met]
    console.print(f"{len(verdicts) - len(short)} of {len(verdicts)} bars met", highlight=False)
    return not short


def console() -> Console:
    """The console; output to a file is not wrapped."""
    return Console(width=None if sys.stdout.isatty() else 180)


def main(arguments: Sequence[str] | None = None) -> int:
    """Reports; returns 1 if a bar is missed and --check is given."""
    parser = argparse.ArgumentParser(description="Shows and judges the benchmarks' results.")
    parser.add_argument("csv", nargs="*", type=Path, default=[LATEST], metavar="CSV")
    parser.add_argument("--plots", type=Path, default=RESULTS, metavar="DIRECTORY", help="where plots are written")
    parser.add_argument("--markdown", action="store_true", help="print only the table of the bars, for a document")
    parser.add_argument("--check", action="store_true", help="end with code 1 when a bar is missed")
    options = parser.parse_args(arguments)
    rows = read(options.csv)
    if options.markdown:
        print(markdown(judge(rows)))
        return 0
    for machine in dict.fromkeys(row.machine for row in rows):
        console().print(machine, highlight=False, soft_wrap=True)
    met = report(rows, options.plots, console())
    return 1 if options.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
