"""Measures a case: its providers alternate, and speed-ups are computed within a turn."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .cases import MODES, Case
from .providers import OURS, Providers, Settings, providers
from .results import Row


@dataclass(frozen=True)
class Effort:
    """The duration of a case's measurement: turns for this many seconds, within these limits on their number."""

    seconds: float
    least: int
    most: int
    patience: float  # seconds after which three turns are enough

    def turns(self, seconds: float) -> int:
        """The number of turns, if each takes this many seconds."""
        least = min(self.least, max(3, int(self.patience / seconds)))
        return min(max(round(self.seconds / seconds), least), self.most)


FULL = Effort(0.8, least=5, most=400, patience=4)
QUICK = Effort(0.25, least=4, most=60, patience=2)


@dataclass(frozen=True)
class Spread:
    """Median, 20th and 80th percentile of samples."""

    median: float
    p20: float
    p80: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Summarises at least two samples."""
        fifths = statistics.quantiles(samples, n=5, method="inclusive")
        median = statistics.median(samples)
        return cls(median, min(fifths[0], median), max(fifths[3], median))  # quantiles of equal samples are rounded


def measure(case: Case, settings: Settings, effort: Effort) -> list[Row]:
    """Measures a case's providers in turns; returns a row for each."""
    metric = MODES[case.mode][0]
    with providers(case, settings) as field:
        costs = _take_turns(field, effort)
    rows = []
    for name, provider in field.items():
        value = Spread.of([_value(metric, provider.work, cost) for cost in costs[name]])
        # The cost per piece of work of the other and of ours, in the same turn.
        share = field[OURS].work / provider.work
        speedup = Spread.of([share * other / ours for ours, other in zip(costs[OURS], costs[name], strict=True)])
        rows.append(
            Row(
                *(case.subject.name, name, case.mode, case.dtype_name, case.size, settings.threads, metric),
                *(value.median, value.p20, value.p80, speedup.median, speedup.p20, speedup.p80),
            )
        )
    return rows


def _value(metric: str, work: float, cost: float) -> float:
    """Converts a sample to a mode's metric."""
    if metric in ("GB/s", "GFLOP/s"):
        return work / cost / 1e9
    return cost * {"us": 1e6, "ms": 1e3, "MiB": 1}[metric]


def _take_turns(field: Providers, effort: Effort) -> dict[str, list[float]]:
    """The cost of a call of each provider, one sample per turn, in random order: none always follows the same."""
    prepared = {name: provider.prepare() for name, provider in field.items()}
    turns = effort.turns(sum(seconds for _, seconds in prepared.values()))
    costs: dict[str, list[float]] = {name: [] for name in field}
    chance = random.Random(0)
    for _ in range(turns):
        for name in chance.sample(list(field), len(field)):
            costs[name].append(field[name].sample(prepared[name][0]))
    return costs
