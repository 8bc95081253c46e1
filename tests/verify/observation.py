"""The observation of a case, and its serialisation between processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Observation:
    """The outcome of a call."""

    outcome: str  # a status in digits, or a text such as "missing" or "died of SIGSEGV"
    text: str = ""  # the error's
    wrong: str = ""  # the fault of the results
    errors: dict[str, float] = field(default_factory=dict)  # the largest in units in the last place, by dtype
    seconds: dict[str, float] = field(default_factory=dict)  # of parts of the call

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Observation:
        """The observation of a line."""
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Case:
    """A case: `kind/function/...`."""

    name: str
    run: Callable[[], Observation]
    expected: str = "0"  # the outcome in the tables
    source: str = ""  # the source of that
    section: str = ""  # a page below docs and its section, with the reason why the host CANN deviates

    def described(self) -> dict[str, Any]:
        """The part that the requesting process needs."""
        return {"name": self.name, "expected": self.expected, "source": self.source, "section": self.section}
