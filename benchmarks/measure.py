"""Measures a case: its providers take turns in one process, and ratios are taken within a turn."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Sequence
from dataclasses import dataclass

from .cases import Case
from .providers import OURS, Provider, providers

# A sample is made of as many calls as take about this long, so that the clock's grain does not show.
SAMPLE_SECONDS = 5e-4


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
        return cls(statistics.median(samples), fifths[0], fifths[3])


@dataclass(frozen=True)
class Outcome:
    """What a case measured: each provider's metric, and the ratio of ours to the best peer's."""

    case: Case
    metrics: dict[str, Spread]
    peers: tuple[str, ...]
    peer: str  # the best of them
    ratio: Spread

    @property
    def passed(self) -> bool:
        """Whether the case's bar is met."""
        return self.case.bar.met(self.ratio.median)


def measure(case: Case, rounds: int) -> Outcome:
    """Lets the providers of a case take turns for so many rounds."""
    with providers(case) as field:
        seconds = _take_turns(field.providers, rounds)
    convert = {
        "us": lambda one: 1e6 * one,
        "ms": lambda one: 1e3 * one,
        "GB/s": lambda one: field.traffic / one / 1e9,
    }[case.bar.metric]
    samples = {name: [convert(one) for one in own] for name, own in seconds.items()}
    metrics = {name: Spread.of(own) for name, own in samples.items()}
    # The best peer over the whole run, not of each round, which would pick every round's luckiest.
    best = max if case.bar.at_least else min
    peer = best(field.peers, key=lambda name: metrics[name].median)
    ratios = [ours / theirs for ours, theirs in zip(samples[OURS], samples[peer], strict=True)]
    return Outcome(case, metrics, field.peers, peer, Spread.of(ratios))


def _take_turns(providers: dict[str, Provider], rounds: int) -> dict[str, list[float]]:
    """Seconds per call of each provider, one sample a round, each round beginning with another provider."""
    timers: dict[str, tuple[timeit.Timer, int]] = {}
    for name, provider in providers.items():
        timer = timeit.Timer("call(*arguments)", globals={"call": provider.call, "arguments": provider.arguments})
        single = min(timer.repeat(3, number=1))  # the first of them warms up
        timers[name] = timer, max(1, round(SAMPLE_SECONDS / single))
    seconds: dict[str, list[float]] = {name: [] for name in providers}
    names = list(providers)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            timer, calls = timers[name]
            seconds[name].append(timer.timeit(calls) / calls)
    return seconds
