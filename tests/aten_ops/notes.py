"""Notes about single functions in the files of rows, in comments of a fixed form next to the rows.

    // Deviation of Argsort, IsInf: The output may have any type that INT64 and BOOL can be cast to.

A note ends with its comment, or where the next note begins. A name may end with `*`. The documents' site collects the
notes on its page of rows; test_aten_limits.py makes a call for each refusal.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROWS = Path(__file__).resolve().parents[2] / "csrc" / "cann" / "rows"
# Behaviour that a document leaves open or contradicts; a part of it that is refused; a deliberate difference from CANN.
KINDS = ("Behaviour", "Limit", "Deviation")
_BEGIN = re.compile(rf"// ({'|'.join(KINDS)}) of (.*)")


class Note(NamedTuple):
    """A note: its kind, the functions as the comment names them, its text, and the folder of its file."""

    kind: str
    functions: str
    text: str
    family: str


def _of(file: Path) -> Iterator[Note]:
    found: list[list[str]] = []
    inside = False
    for line in file.read_text().splitlines():
        if begin := _BEGIN.fullmatch(line):
            found.append([begin[1], begin[2]])
        elif inside and line.startswith("// "):
            found[-1][1] += line.removeprefix("//")
        inside = begin is not None or (inside and line.startswith("// "))
    for kind, words in found:
        functions, _, text = words.partition(": ")
        assert text, f"{file}: {words}"
        yield Note(kind, functions, text, file.parent.name)


@functools.cache
def notes() -> list[Note]:
    """All notes, by folder and file."""
    return [note for file in sorted(ROWS.rglob("*.cpp")) for note in _of(file)]


def by_functions() -> dict[str, str]:
    """The notes about functions, by their names."""
    found: dict[str, str] = defaultdict(str)
    for note in notes():
        found[note.functions] += f" {note.text}" if note.kind == "Behaviour" else f" **{note.kind}**: {note.text}"
    return {functions: text.strip() for functions, text in found.items()}


def page_part() -> str:
    """The end of the page of rows on the site."""
    parts = ["\n## Function by function\n\nThe names are without `aclnn`; `*` stands for any end of a name.\n"]
    texts = by_functions()
    family = ""
    for note in notes():
        if text := texts.pop(note.functions, ""):
            parts += [f"\n### {note.family.replace('_', ' ').capitalize()}\n"] if note.family != family else []
            family = note.family
            parts.append(f"- **{note.functions.replace('*', chr(92) + '*')}**: {text}")
    return "\n".join(parts) + "\n"
