"""Where operators are listed by name, as their modules and tables state it: README's row of elementwise ones, their
rows in docs/emulation/operators.md, and functional.py and nn.py, whose names type checkers read.

`python -m tests.listings` writes the lists, which `make conformance` does, and the pages' numbers that are counted;
tests/test_documents.py and tests/test_page_numbers.py compare them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import aclnn_torch.functional
from aclnn_torch.ops import OPERATORS, _elementwise
from aclnn_torch.ops._operator import Operator
from tests.cabi import PRODUCTS
from tests.command_blocks import ROOT

if TYPE_CHECKING:
    from tests.conformance.machinery import Table

ELEMENTWISE = [
    name
    for name, operator in sorted(OPERATORS.items())
    if all(overload.sharding is _elementwise.sharding for overload in operator.overloads)
]
# README's row of elementwise operators, and their rows in the page of behaviour.
README_ROW = re.compile(r"(?<=\n)\| \[elementwise\].*\n")
ROWS = re.compile(r"(?<=\n\| Operator \| Tensors \| dtypes \|\n\|---\|---\|---\|\n)(?:\|.*\n)*?(?=\| aclnnLayerNorm,)")
# All of a module below its docstring.
NAMES = re.compile(r"(?<=\nfrom __future__ import annotations\n\n).*", re.DOTALL)


def names(things: Iterable[Callable[..., object]]) -> list[str]:
    """Sorts as ruff does: constants come first, and some class names look like constants."""
    return sorted((thing.__name__ for thing in things), key=lambda name: (not name.isupper(), name))


def tables() -> dict[str, Sequence[Table]]:
    """Those of each operator. Some import tests.operators, which needs the functions that are listed here."""
    from tests.conformance.machinery import tables_by_file

    return tables_by_file()


def quoted(words: Iterable[str]) -> str:
    """Words as code."""
    return ", ".join(f"`{word}`" for word in words)


def readme(text: str) -> str:
    """README with the names of elementwise operators."""
    operators = {name: OPERATORS[name] for name in ELEMENTWISE}
    functions = ", ".join(tables()[name][0].operator.api for name in operators)
    overloads = quoted(operator.overloads[0].operator._opname for operator in operators.values())
    named = [
        quoted(thing.__name__ for operator in operators.values() for thing in things(operator))
        for things in (lambda operator: operator.functions, lambda operator: operator.modules)
    ]
    row = (
        f"| [elementwise](docs/emulation/operators.md): {functions}, with their other forms | {overloads}, with "
        f"`_backward`, some with `_` | {named[0]}; {named[1]} |\n"
    )
    return README_ROW.sub(lambda _: row, text)


def accepted(table: Table) -> tuple[str, str]:
    """Of an elementwise operator the dimensions, and the dtypes with the products that take all tensors in one."""
    having = [product for product in PRODUCTS if product not in table.operator.missing]
    products: dict[frozenset[str], list[str]] = {}
    for row in table.dtypes:
        if len(set(row.dtypes)) == 1:
            products.setdefault(row.accepted - table.operator.missing, []).append(row.dtypes[0].name)
    parts = [f"{', '.join(names)}{_since(where, having)}" for where, names in products.items()]
    if table.accepts:
        parts.append("they may differ")
    missing = f". Not on {', '.join(sorted(table.operator.missing))}" if table.operator.missing else ""
    dims = "any number of dimensions" if table.operator.any_rank else "0 to 8 dimensions"
    return dims, "; ".join(parts).replace("BF16", "BFLOAT16") + missing


def _since(products: frozenset[str], having: list[str]) -> str:
    """Which products of those that have an operator these are: all, `host` alone, or those from one on."""
    first = min(map(having.index, products))
    assert products == set(having[first:]), products
    if first == 0:
        return ""
    return " on `host`" if having[first] == "host" else f" from {having[first]} on"


def behaviour(text: str) -> str:
    """The page of operators with the rows of elementwise ones; those that accept the same share one."""
    rows = ""
    for name in ELEMENTWISE:
        alike: dict[tuple[str, str], list[str]] = {}
        for table in tables()[name]:
            alike.setdefault(accepted(table), []).append(table.operator.api)
        rows += "".join(f"| {', '.join(apis)} | {dims} | {dtypes} |\n" for (dims, dtypes), apis in alike.items())
    return ROWS.sub(lambda _: rows, text)


def module(text: str, of: Callable[[Operator], Iterable[Callable[..., object]]]) -> str:
    """A module that imports and lists each operator's names."""
    parts = {name: names(of(operator)) for name, operator in sorted(OPERATORS.items())}
    imports = "".join(f"from .ops.{name} import {', '.join(found)}\n" for name, found in parts.items())
    everything = names(thing for operator in OPERATORS.values() for thing in of(operator))
    listed = "".join(f'    "{name}",\n' for name in everything)
    return NAMES.sub(lambda _: f"{imports}\n__all__ = [\n{listed}]\n", text)


# The files, and functions from their current to their correct text.
FILES: dict[Path, Callable[[str], str]] = {
    ROOT / "aclnn_torch/functional.py": lambda text: module(text, lambda operator: operator.functions),
    ROOT / "aclnn_torch/nn.py": lambda text: module(text, lambda operator: operator.modules),
    ROOT / "README.md": readme,
    ROOT / "docs/emulation/operators.md": behaviour,
}

if __name__ == "__main__":
    for path, listing in FILES.items():
        path.write_text(listing(path.read_text()))
        importlib.reload(aclnn_torch.functional)
    from tests import test_page_numbers

    for page in sorted({page for page, _, _ in test_page_numbers.SAID}):
        path = ROOT / page
        path.write_text(test_page_numbers.written(page, path.read_text()))
