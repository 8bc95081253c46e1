"""The required results: bars as data, and verdicts on them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cases import LATER_LAYERS, LIMITS, MODES
from .results import Row

HALF = ("bfloat16", "float16")
ALL = ("float32", *HALF)


@dataclass(frozen=True)
class Bar:
    """Required speed-ups over a peer (peer's time / ours, or its memory / ours) for a kind of work."""

    work: str
    peer: str  # with several named `peer: ...`, such as rooflines, the fastest
    modes: tuple[str, ...]
    mean: float | None = None  # minimum of the geometric mean
    worst: float | None = None  # minimum over all rows
    dtypes: tuple[str, ...] = ALL
    operators: tuple[str, ...] | None = None  # all
    each_operator: bool = False  # the mean applies to each operator separately
    # Rows whose peer reaches this share of the simultaneously measured GEMM peak do not count for the mean.
    parity: float | None = None

    def holds(self, row: Row) -> bool:
        """True if the bar applies to a row."""
        return (
            row.mode in self.modes
            and row.dtype in self.dtypes
            and (row.provider == self.peer or row.provider.startswith(self.peer + ":"))
            and (self.operators is None or row.operator in self.operators)
            and row.kernel.partition(":")[2] not in LATER_LAYERS
        )

    def __str__(self) -> str:
        mean = f"geometric mean >= {self.mean:g}{' per operator' if self.each_operator else ''}" if self.mean else ""
        worst = f"every row >= {self.worst:.3g}" if self.worst else ""
        return ", ".join(filter(None, (mean, worst)))


# The bars were set for these; others are measured but not judged.
OF = (
    *("elu", "elu_backward", "selu", "selu_backward"),
    *("rms_norm", "rms_norm_grad", "cross_entropy_loss", "cross_entropy_loss_grad"),
)

BARS = (
    Bar("operator calls, >= 64 MiB", "eager", ("large",), mean=12, worst=4, operators=OF),
    Bar("operator calls, >= 64 MiB", "torch.compile", ("large",), mean=4, worst=1.5, operators=OF),
    Bar("operator calls, >= 64 MiB", "eager out=", ("large",), mean=1.5, worst=1.0, operators=OF),
    Bar("C ABI into given outputs, >= 64 MiB", "roofline", ("kernel",), worst=0.85, operators=OF),
    Bar("operator calls, 16 Ki to 1 Mi elements", "eager", ("cached",), mean=1.5, worst=1.0, operators=OF),
    Bar("operator calls, 16 elements", "eager", ("call",), worst=1 / 1.25),
    Bar("forward and backward, tiny inputs", "eager", ("forward+backward",), worst=1 / 1.15),
    Bar(
        "convolution_backward, float32 and bfloat16",
        "eager",
        ("convolution",),
        mean=1.3,
        worst=0.97,
        dtypes=("float32", "bfloat16"),
        operators=("convolution_backward",),
        parity=0.85,
    ),
    Bar(
        "convolution_backward, float16",
        "eager",
        ("convolution",),
        mean=8,
        dtypes=("float16",),
        operators=("convolution_backward",),
    ),
    Bar("tiny convolutions, backward", "eager", ("tiny_convolution",), worst=4, operators=("convolution_backward",)),
    Bar("peak memory of cross entropy", "eager", ("memory",), worst=1 / 0.6, operators=("cross_entropy",)),
    Bar("peak memory of linear cross entropy", "eager", ("memory",), worst=4, operators=("linear_cross_entropy",)),
    Bar("peak memory of linear cross entropy", "chunks", ("memory", "memory_curve"), worst=1),
    Bar("peak memory of a training step, the same", "eager", ("memory",), worst=2, operators=("finetune_llama",)),
    *(
        Bar("loss of a large vocabulary", peer, ("vocabulary",), worst=1.3, dtypes=("float32", "bfloat16"))
        for peer in ("eager", "chunks")
    ),
    Bar("loss of a large vocabulary", "GEMM peak", ("vocabulary",), worst=0.8, dtypes=("float32", "bfloat16")),
    Bar("training steps", "eager", ("training",), worst=1.3, operators=("digits", "llama")),
    Bar(
        "training step, loss of a large vocabulary",
        "eager",
        ("training",),
        worst=1 / 0.8,
        operators=("finetune_llama",),
    ),
    Bar("operator calls of every size", "JAX", tuple(MODES), mean=1.5, each_operator=True),
    Bar("arithmetic in cache, 1 to all threads", "1 thread", ("scaling",), worst=1.7),
)


@dataclass(frozen=True)
class Verdict:
    """A bar's verdict for the rows of one number of threads."""

    bar: Bar
    threads: int
    rows: int
    mean: float | None  # geometric; with each_operator, the smallest; None without rows
    mean_of: str  # that operator, or ""
    worst: Row
    # Mean and worst if every row were as fast as its limit; None without limits.
    limit: tuple[float, float] | None

    @property
    def met(self) -> bool:
        """True if the bar is reached."""
        mean_met = self.bar.mean is None or self.mean is None or self.mean >= self.bar.mean
        return mean_met and (self.bar.worst is None or self.worst.speedup >= self.bar.worst)


def judge(rows: Iterable[Row], bars: Sequence[Bar] = BARS) -> list[Verdict]:
    """A verdict for each bar and each measured number of threads."""
    rows = list(rows)
    verdicts = []
    for threads in sorted({row.threads for row in rows}, reverse=True):
        own = [row for row in rows if row.threads == threads]
        for bar in bars:
            held = _fastest(row for row in own if bar.holds(row))
            if held:
                counted = [row for row in held if not _at_the_peak(bar, row, own)]
                verdicts.append(_verdict(bar, threads, held, counted, _limit(held, own)))
    return verdicts


def _limit(held: Sequence[Row], rows: Iterable[Row]) -> tuple[float, float] | None:
    """The geometric mean and the minimum of the rows' limits; a measured value beyond its limit replaces it."""
    slowest: dict[tuple[str, str, str, str, int], float] = {}
    rows = list(rows)
    for name in dict.fromkeys(name for row in held for name in LIMITS.get(row.mode, ())):
        for row in _fastest(row for row in rows if row.provider.partition(":")[0] == name):
            slowest[row.case] = max(slowest.get(row.case, 0.0), row.speedup)
    reached = [row.speedup / min(slowest[row.case], 1.0) for row in held if row.case in slowest]
    return (statistics.geometric_mean(reached), min(reached)) if len(reached) == len(held) else None


def _verdict(bar: Bar, threads: int, held: list[Row], counted: list[Row], limit: tuple[float, float] | None) -> Verdict:
    groups: dict[str, list[float]] = {}
    for row in counted:
        groups.setdefault(row.operator if bar.each_operator else "", []).append(row.speedup)
    means = {name: statistics.geometric_mean(own) for name, own in groups.items()}
    least = min(means, key=lambda name: means[name], default="")
    return Verdict(bar, threads, len(held), means.get(least), least, min(held, key=lambda row: row.speedup), limit)


def _fastest(rows: Iterable[Row]) -> list[Row]:
    """For every case, the row of its fastest peer, i.e. of our smallest speed-up."""
    found: dict[tuple[str, str, str, str, int], Row] = {}
    for row in rows:
        found[row.case] = min(found.get(row.case, row), row, key=lambda row: row.speedup)
    return list(found.values())


def _at_the_peak(bar: Bar, row: Row, rows: Iterable[Row]) -> bool:
    """True if the peer is at the machine's limit."""
    peaks = [other.median for other in rows if other.case == row.case and other.provider == "GEMM peak"]
    return bar.parity is not None and bool(peaks) and row.median >= bar.parity * peaks[0]
