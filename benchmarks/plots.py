"""Plots of the results: speed-ups per operator, rates against size with the machine's limits, costs of a call."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .providers import OURS
from .results import Row

COLOURS = {
    OURS: "#1b3a5c",
    "eager": "#f2a65a",
    "eager out=": "#c9b458",
    "torch.compile": "#b5532a",
    "JAX": "#5a9a78",
    "chunks": "#c9b458",
    "limit": "#999999",
}
LINES = ("#1b3a5c", "#2f6f9f", "#6aa9cf", "#b5532a", "#f2a65a", "#c9b458", "#5a9a78", "#8a6fae", "#444444")


def elements(row: Row) -> int:
    """The number of elements of a row's tensors."""
    return math.prod(map(int, row.size.split("x")))


def draw_speedups(axes: Any, rows: Sequence[Row]) -> None:
    """Bars per operator and peer: our speed-up on large tensors, averaged over dtypes."""
    own = [row for row in rows if row.mode in ("large", "convolution") and row.provider != OURS]
    if not own:
        return axes.set_axis_off()
    names = list(dict.fromkeys(row.operator for row in own))
    peers = [peer for peer in COLOURS if any(row.provider == peer for row in own)]
    for place, peer in enumerate(peers):
        means = []
        for name in names:
            found = [row.speedup for row in own if row.provider == peer and row.operator == name]
            means.append(statistics.geometric_mean(found) if found else 1.0)
        positions = [number + (place - (len(peers) - 1) / 2) * 0.8 / len(peers) for number in range(len(names))]
        # Bars start at parity.
        heights = [mean - 1 for mean in means]
        axes.bar(positions, heights, 0.8 / len(peers), bottom=1, label=f"over {peer}", color=COLOURS[peer])
    axes.axhline(1, color="#333333", linewidth=0.8)
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right", fontsize=8)
    axes.set_title("Operator calls at large sizes: times faster than", loc="left", fontsize=10)
    _finish(axes)


def draw_bandwidth(axes: Any, rows: Sequence[Row]) -> None:
    """GB/s of every operator into existing outputs against the number of elements, and the best roofline."""
    own = [row for row in rows if row.mode in ("kernel", "curve") and row.dtype == "float32"]
    if not own:
        return axes.set_axis_off()
    names = dict.fromkeys(row.kernel for row in own)
    for name, colour in zip(names, LINES, strict=False):
        _line(
            axes, {elements(row): row.median for row in own if (row.kernel, row.provider) == (name, OURS)}, name, colour
        )
    best: dict[int, float] = {}
    for row in own:
        if row.provider != OURS:
            best[elements(row)] = max(best.get(elements(row), 0.0), row.median)
    _line(axes, best, "roofline", COLOURS["limit"], linestyle="--", linewidth=2.5)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)
    axes.set_xlabel("elements, float32", fontsize=8)
    axes.set_title("C ABI into given outputs: GB/s", loc="left", fontsize=10)
    _finish(axes)


def draw_convolutions(axes: Any, rows: Sequence[Row]) -> None:
    """GFLOP/s of the layers' backward pass in float32, ours and torch's, and the GEMM peak."""
    own = [
        row
        for row in rows
        if row.mode == "convolution" and row.operator == "convolution_backward" and row.dtype == "float32"
    ]
    if not own:
        return axes.set_axis_off()
    names = list(dict.fromkeys(row.kernel for row in own))
    for provider, height in ((OURS, 0.2), ("eager", -0.2)):
        found = {row.kernel: row.median for row in own if row.provider == provider}
        positions = [number + height for number in range(len(names))]
        axes.barh(positions, [found[name] for name in names], 0.4, label=provider, color=COLOURS[provider])
    peaks = [row.median for row in own if row.provider == "GEMM peak"]
    if peaks:
        axes.axvline(statistics.median(peaks), color=COLOURS["limit"], linestyle="--", label="GEMM peak")
    axes.set_yticks(range(len(names)), [name.partition(":")[2] for name in names], fontsize=7)
    axes.invert_yaxis()
    axes.set_title("convolution_backward, float32: GFLOP/s", loc="left", fontsize=10)
    _finish(axes)


def draw_calls(axes: Any, rows: Sequence[Row]) -> None:
    """Microseconds of calls on tiny tensors, ours and torch's."""
    own = [row for row in rows if row.mode in ("call", "forward+backward", "tiny_convolution")]
    if not own:
        return axes.set_axis_off()
    names = list(dict.fromkeys(row.kernel for row in own))
    for provider, height in ((OURS, 0.2), ("eager", -0.2)):
        found = {row.kernel: row for row in own if row.provider == provider}
        positions = [number + height for number in range(len(names))]
        low = [found[name].median - found[name].p20 for name in names]
        high = [found[name].p80 - found[name].median for name in names]
        axes.barh(
            positions,
            [found[name].median for name in names],
            0.4,
            xerr=[low, high],
            error_kw={"elinewidth": 0.8},
            label=provider,
            color=COLOURS[provider],
        )
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_title("Calls on tiny tensors: microseconds", loc="left", fontsize=10)
    _finish(axes)


def draw_memory(axes: Any, rows: Sequence[Row]) -> None:
    """MiB of linear cross entropy against the number of classes, forward and backward."""
    own = [row for row in rows if row.mode == "memory_curve"]
    if not own:
        return axes.set_axis_off()
    for provider in dict.fromkeys(row.provider for row in own):
        points = {int(row.size.rpartition("x")[2]): row.median for row in own if row.provider == provider}
        _line(axes, points, provider, COLOURS[provider])
    # The minimum for every implementation.
    gradients = {}
    for row in own:
        _, width, classes = map(int, row.size.split("x"))
        gradients[classes] = width * classes * 4 / 2**20
    _line(axes, gradients, "gradient of the matrix alone", COLOURS["limit"], linestyle="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted(gradients), [f"{classes:,}" for classes in sorted(gradients)])
    axes.minorticks_off()
    _plain_numbers(axes.yaxis)
    rows_and_width = own[0].size.rpartition("x")[0].replace("x", " rows of ")
    axes.set_title(f"Loss of a linear layer, {rows_and_width}, float32: MiB over classes", loc="left", fontsize=10)
    _finish(axes)


PANELS: dict[str, Callable[[Any, Sequence[Row]], None]] = {
    "speedups": draw_speedups,
    "bandwidth": draw_bandwidth,
    "convolutions": draw_convolutions,
    "calls": draw_calls,
    "memory": draw_memory,
}
OVERVIEW = ("speedups", "bandwidth", "convolutions", "calls")


def save(rows: Sequence[Row], directory: Path) -> list[Path]:
    """Draws every panel separately, and four of them as overview.png, for the most threads; returns the paths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    most = max(row.threads for row in rows)
    rows = [row for row in rows if row.threads == most]
    directory.mkdir(parents=True, exist_ok=True)
    pictures = []

    def write(figure: Any, name: str) -> None:
        path = directory / f"{name}.png"
        figure.savefig(path, dpi=90)
        pyplot.close(figure)
        pictures.append(path)

    for name, draw in PANELS.items():
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        draw(axes, rows)
        write(figure, name)
    figure, grid = pyplot.subplots(2, 2, figsize=(13, 9), layout="constrained")
    for axes, name in zip(grid.flat, OVERVIEW, strict=True):
        PANELS[name](axes, rows)
    figure.suptitle(rows[0].machine, fontsize=10)
    write(figure, "overview")
    return pictures


def _line(axes: Any, points: dict[int, float], label: str, colour: str, **style: Any) -> None:
    ordered = sorted(points)
    axes.plot(ordered, [points[place] for place in ordered], label=label, color=colour, marker=".", **style)


def _plain_numbers(axis: Any) -> None:
    """Formats 20 as 2 x 10^1, for 1, 2 and 5 times every power."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _finish(axes: Any) -> None:
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="both", labelsize=7)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", edgecolor="none", fontsize=7)
