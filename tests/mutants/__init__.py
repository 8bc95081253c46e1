"""Mutants of results and refusals: what the command (__main__.py) and the plugin of pytest (plugin.py) share."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.aten_ops.files import ROWS, row_files

ROOT = Path(__file__).resolve().parents[2]
VALUES = ("zeros", "constant", "input", "one", "exchange", "sign", "error", "tail", "gap")
REFUSALS = ("text", "status")
KINDS = VALUES + REFUSALS
# What lines of the variant's log have in place of an output's index (settings_and_log.h).
CALL, REFUSAL, CHECK = -1, -2, -3


class Mutant(NamedTuple):
    """A change of an output of a function, or of a refusal."""

    function: str
    output: int
    kind: str


class Plan(NamedTuple):
    """The kinds to try, of functions whose names have a pattern, and, unless None, are listed."""

    kinds: Sequence[str]
    pattern: str = "*"
    functions: Sequence[str] | None = None

    def has(self, name: str, kind: str) -> bool:
        """Whether a change of a function or a refusal belongs to the plan.

        A refusal's name begins with its function, or is the place of a check in a file of functions.
        """
        if kind not in self.kinds or (self.pattern == "*" and self.functions is None):
            return kind in self.kinds
        own = [name.partition(":")[0]]
        if name.startswith("csrc/"):
            path = os.path.relpath(ROOT / own[0], ROWS)
            own = [function for function, files in row_files().items() if path in files]
        return any(
            fnmatch.fnmatchcase(each, self.pattern) and (self.functions is None or each in self.functions)
            for each in own
        )


class Results(NamedTuple):
    """What a run of the tests found."""

    found: Sequence[tuple[str, int, str, bool]]  # mutants, and whether a test detected them
    checks: Sequence[str]  # the checks of rows that refused, such as "csrc/cann/rows/shape/repeat.cpp:26"
    failing: Sequence[str]  # the tests that fail without any change
