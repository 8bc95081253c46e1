"""Compares the observations, and writes them as JSON and as Markdown."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.verify.run import Record

EQUAL, EXPLAINED, UNEXPLAINED = "equal", "explained deviation", "unexplained"
TEXT_LENGTH = 300


def verdict(record: Record) -> str:
    """The verdict on the installed CANN compared with the host CANN. Only a status can deviate on purpose."""
    sides = [side for side in (record.installed, record.host) if side]
    if any(side.wrong or not side.outcome.isdigit() for side in sides):
        return UNEXPLAINED
    if len({side.outcome for side in sides}) == 1:
        return EQUAL
    return EXPLAINED if record.section else UNEXPLAINED


@dataclass
class Report:
    """The results of one run."""

    versions: dict[str, str]
    notes: Sequence[str]
    records: Sequence[Record]

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases of each verdict."""
        found = Counter(map(verdict, self.records))
        return {name: found[name] for name in (EQUAL, EXPLAINED, UNEXPLAINED)}

    def of(self, wanted: str) -> list[Record]:
        """The cases of a verdict."""
        return [record for record in self.records if verdict(record) == wanted]

    def errors(self) -> dict[str, dict[str, tuple[float, float | None]]]:
        """The largest error by function or operator and dtype, in units in the last place: installed and host CANN."""
        found: dict[str, dict[str, list[float | None]]] = defaultdict(dict)
        for record in self.records:
            of = found[record.name.split("/")[1]]
            for side, seen in enumerate((record.installed, record.host)):
                for dtype, error in (seen.errors if seen else {}).items():
                    pair = of.setdefault(dtype, [0.0, None])
                    pair[side] = max(pair[side] or 0.0, error)
        return {name: {dtype: (a or 0.0, b) for dtype, (a, b) in of.items()} for name, of in found.items() if of}

    def times(self) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
        """Seconds by case: installed and host CANN."""
        for record in self.records:
            if record.installed.seconds and record.host:
                yield record.name.removeprefix("times/"), record.installed.seconds, record.host.seconds

    def to_json(self) -> str:
        """Everything."""
        cases: list[dict[str, Any]] = [{**asdict(record), "verdict": verdict(record)} for record in self.records]
        everything = {
            "versions": self.versions,
            "counts": self.counts,
            "notes": list(self.notes),
            "errors": self.errors(),
            "cases": cases,
        }
        return json.dumps(everything, indent=1)

    def to_markdown(self) -> str:
        """The summary for a reader."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        lines = ["# An installed CANN beside the host CANN", "", f"{len(self.records):,} cases: {counts}.", ""]
        lines += [*(f"{note[:1].upper()}{note[1:]}." for note in self.notes), ""] if self.notes else []
        lines += _table(("", "version"), self.versions.items())
        lines += ["", "## Unexplained", "", *_table(_HEAD, map(_row, self.of(UNEXPLAINED)))]
        lines += ["", "## Explained deviations", ""]
        lines += _table((*_HEAD, "reason"), ((*_row(r), r.section) for r in self.of(EXPLAINED)))
        lines += ["", "## Largest errors", "", "In units in the last place of the dtype; of torch's, from the CPU.", ""]
        lines += _table(
            ("", "dtype", "installed", "host"),
            (
                (name, dtype, f"{ours:.3g}", "" if theirs is None else f"{theirs:.3g}")
                for name, of in self.errors().items()
                for dtype, (ours, theirs) in of.items()
            ),
        )
        lines += ["", "## Times", "", "Microseconds, the median of nine calls on 1,024 by 1,024 elements.", ""]
        lines += _table(
            ("", "stage 1", "of the host", "stage 2", "of the host"),
            (
                (name, *(f"{1e6 * side[stage]:.1f}" for stage in ("stage 1", "stage 2") for side in (ours, theirs)))
                for name, ours, theirs in self.times()
            ),
        )
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Both files."""
        (folder / "report.json").write_text(self.to_json(), encoding="utf-8")
        (folder / "report.md").write_text(self.to_markdown(), encoding="utf-8")


_HEAD = ("case", "installed", "host", "tables", "which rest on", "what was said")


def _row(record: Record) -> tuple[str, ...]:
    installed, host = record.installed, record.host
    said = " ".join((installed.wrong or installed.text or (host.wrong if host else "")).split())
    of_host = host.outcome if host else ""
    return record.name, installed.outcome, of_host, record.expected, record.source, said[:TEXT_LENGTH]


def _table(head: Sequence[str], rows: Any) -> list[str]:
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    if not cells:
        return ["None."]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *cells)]
