"""Where operators are listed by name, as their modules state it: README's table, and functional.py and nn.py, whose
names type checkers read.

`python -m tests.listings`, part of `make conformance`, writes the lists; tests/test_documents.py compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from aclnn_torch.ops import OPERATORS
from aclnn_torch.ops._operator import Operator
from tests.command_blocks import ROOT
from tests.conformance.machinery import tables_by_file
from tests.operators import ELEMENTWISE

HEAD = "| CANN | `torch.ops.aclnn` | `aclnn_torch.functional`, `aclnn_torch.nn` |\n|---|---|---|\n"
# README's rows below the head, up to that of the first operator that is not elementwise.
ROWS = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*?(?=\| aclnnLayerNorm,)")
# All of a module below its docstring.
NAMES = re.compile(r"(?<=\nfrom __future__ import annotations\n\n).*", re.DOTALL)


def names(things: Iterable[Callable[..., object]]) -> list[str]:
    """Sorts as ruff does: constants come first, and some class names look like constants."""
    return sorted((thing.__name__ for thing in things), key=lambda name: (not name.isupper(), name))


def row(name: str) -> str:
    """An operator's row: CANN's functions, overloads, functions and modules."""
    operator = OPERATORS[name]

    def quoted(words: Iterable[str]) -> str:
        return ", ".join(f"`{word}`" for word in words)

    def named(things: Iterable[Callable[..., object]]) -> str:
        return quoted(thing.__name__ for thing in things)

    functions = ", ".join(table.operator.api for table in tables_by_file()[name])
    overloads = quoted(overload.operator._schema.name.removeprefix("aclnn::") for overload in operator.overloads)
    return f"| {functions} | {overloads} | {named(operator.functions)}; {named(operator.modules)} |\n"


def readme(text: str) -> str:
    """README with the rows of elementwise operators."""
    return ROWS.sub(lambda _: HEAD + "".join(map(row, sorted(ELEMENTWISE))), text)


def module(text: str, of: Callable[[Operator], Iterable[Callable[..., object]]]) -> str:
    """A module that imports and lists each operator's names."""
    parts = {name: names(of(operator)) for name, operator in sorted(OPERATORS.items())}
    imports = "".join(f"from .ops.{name} import {', '.join(found)}\n" for name, found in parts.items())
    everything = names(thing for operator in OPERATORS.values() for thing in of(operator))
    listed = "".join(f'    "{name}",\n' for name in everything)
    return NAMES.sub(lambda _: f"{imports}\n__all__ = [\n{listed}]\n", text)


# The files, and functions from their current to their correct text.
FILES: dict[Path, Callable[[str], str]] = {
    ROOT / "README.md": readme,
    ROOT / "aclnn_torch/functional.py": lambda text: module(text, lambda operator: operator.functions),
    ROOT / "aclnn_torch/nn.py": lambda text: module(text, lambda operator: operator.modules),
}

if __name__ == "__main__":
    for path, listing in FILES.items():
        path.write_text(listing(path.read_text()))
