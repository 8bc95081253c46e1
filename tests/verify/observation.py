"""What is seen of a case, and how it travels from the process that sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Observation:
    """What became of a call."""

    outcome: str  # a status in digits, or what came instead of one, such as "missing" or "died of SIGSEGV"
    text: str = ""  # the error's
    wrong: str = ""  # what is wrong with the results
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
    """Something to try: `kind/function/...`."""

    name: str
    run: Callable[[], Observation]
    expected: str = "0"  # the outcome that the tables expect
    source: str = ""  # what that rests on
    section: str = ""  # of docs/emulation/operators.md, with the reason why the host CANN differs on purpose

    def described(self) -> dict[str, Any]:
        """What the process that asks needs to know of it."""
        return {"name": self.name, "expected": self.expected, "source": self.source, "section": self.section}
