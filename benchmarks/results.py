"""Results of measurements: rows of a CSV file, one per case and provider."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO


@dataclass(frozen=True)
class Row:
    """One provider of one case; numbers are median, 20th and 80th percentile."""

    kernel: str
    provider: str
    mode: str
    dtype: str
    size: str
    threads: int
    metric: str
    median: float
    p20: float
    p80: float
    # Our speed-up within a turn (for memory, the ratio of sizes); 1 in our own row.
    speedup: float
    speedup_p20: float
    speedup_p80: float
    machine: str = ""

    @property
    def operator(self) -> str:
        """The measured quantity, without its variant."""
        return self.kernel.partition(":")[0]

    @property
    def case(self) -> tuple[str, str, str, str, int]:
        """The key shared by rows of the same case."""
        return self.mode, self.kernel, self.dtype, self.size, self.threads


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))


class Writer:
    """A CSV file that receives every row when it is measured; an existing file is replaced or appended to."""

    def __init__(self, path: Path, machine: str, append: bool = False):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._machine = machine
        self._file: TextIO = path.open("a" if append else "w", newline="")
        self._csv = csv.writer(self._file)
        if not append:
            self._csv.writerow(COLUMNS)

    def write(self, rows: Iterable[Row]) -> list[Row]:
        """Adds rows and returns them, with the machine's name."""
        named = [dataclasses.replace(row, machine=self._machine) for row in rows]
        for row in named:
            values = dataclasses.astuple(row)
            self._csv.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in values)
        self._file.flush()
        return named

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def read(paths: Iterable[Path]) -> list[Row]:
    """Reads files; for a case in several of them, uses the last one's rows."""
    cases: dict[tuple[str, str, str, str, int], list[Row]] = {}
    for path in paths:
        found: dict[tuple[str, str, str, str, int], list[Row]] = {}
        with path.open(newline="") as file:
            for line in csv.DictReader(file):
                values = {
                    field.name: {"int": int, "float": float, "str": str}[str(field.type)](line[field.name])
                    for field in dataclasses.fields(Row)
                }
                row = Row(**values)
                found.setdefault(row.case, []).append(row)
        cases |= found
    return [row for rows in cases.values() for row in rows]
