"""The calls that test the statements of docs/emulation/rows.md and of the notes next to rows: limits.tsv."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from tests.aten_ops.sweep import SAMPLES

_WORDS = re.compile(r'(?:\{[^}]*\}|"[^"]*"|\S)+')


class Limit(NamedTuple):
    """A call, its outcome, the section or note that states it with its words, and what the function lacks because of
    it."""

    said_of: str
    words: str
    status: int
    text: str
    call: str
    lacks: str

    @property
    def function(self) -> str:
        """The function's name."""
        return self.call.partition(" ")[0]

    def line(self) -> str:
        """The call with all of its arguments, in the syntax of samples.txt."""
        return line_of(self.call)


@functools.cache
def samples_by_function() -> dict[str, dict[str, str]]:
    """The arguments of each function's first sample, as text."""
    found: dict[str, dict[str, str]] = {}
    for line in SAMPLES.read_text().splitlines():
        name, *arguments = _WORDS.findall(line)
        found.setdefault(name, dict(each.split("=", 1) for each in arguments))
    return found


def line_of(call: str) -> str:
    """A call of the function's first sample, with the arguments after its name replaced."""
    function, *words = _WORDS.findall(call)
    arguments = dict(samples_by_function()[function])
    for word in words:
        name, _, value = word.partition("=")
        assert name in arguments, call
        arguments[name] = value
    return " ".join([function, *(f"{name}={value}" for name, value in arguments.items())])


def _limit(line: str) -> Limit:
    said_of, words, status, text, call, lacking = line.split("\t")
    return Limit(said_of, words, int(status), text, call, lacking)


LIMITS = [_limit(line) for line in Path(__file__).with_name("limits.tsv").read_text().splitlines()[1:]]


def lacks() -> dict[str, list[str]]:
    """The parts of their documents that functions lack, by function."""
    found: dict[str, list[str]] = {}
    for limit in LIMITS:
        if limit.lacks and limit.lacks not in found.setdefault(limit.function, []):
            found[limit.function].append(limit.lacks)
    return found
