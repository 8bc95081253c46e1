"""Shared by the reports of the training examples: the names of the two models, and the plot of their curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS, PLAIN = "aclnn_torch", "plain torch"

# If all is well the curves coincide: a broad pale one below, a thin dark one above.
_STYLES: dict[str, dict[str, Any]] = {
    PLAIN: {"color": "#f2a65a", "linewidth": 7, "alpha": 0.75, "solid_capstyle": "round"},
    OURS: {"color": "#1b3a5c", "linewidth": 1.8},
}


@dataclass
class Curves:
    """One diagram, with a curve for each model."""

    title: str
    values: dict[str, list[float]]
    log: bool = False
    finish: Callable[[Any], None] = lambda axes: None  # further settings of the axes


def draw(path: Path, title: str, unit: str, *diagrams: Curves) -> Path:
    """Draws the diagrams side by side against 1, 2, 3, ... of the unit; returns the picture's path."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    figure, panels = pyplot.subplots(1, len(diagrams), figsize=(11, 4.4), layout="constrained", squeeze=False)
    for axes, diagram in zip(panels[0], diagrams, strict=True):
        for name, style in _STYLES.items():
            axes.plot(range(1, len(diagram.values[name]) + 1), diagram.values[name], label=name, **style)
        axes.set_title(diagram.title, loc="left")
        axes.set_yscale("log" if diagram.log else "linear")
        axes.set_xlabel(unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
        diagram.finish(axes)
        axes.legend(frameon=False)
    figure.suptitle(title, fontsize=13)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def verdict(passed: bool) -> str:
    """The result of a check, in rich's markup."""
    return "[bold green]PASS[/]" if passed else "[bold red]FAIL[/]"
