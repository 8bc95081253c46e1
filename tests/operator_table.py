"""README's table of operators: the rows of those that work element by element, from what their modules state.

`python -m tests.operator_table` writes them, which `make conformance` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aclnn_torch.ops import OPERATORS
from tests.command_blocks import ROOT
from tests.conformance.machinery import tables_by_file
from tests.operators import ELEMENTWISE

README = ROOT / "README.md"
HEAD = "| CANN | `torch.ops.aclnn` | `aclnn_torch.functional`, `aclnn_torch.nn` |\n|---|---|---|\n"
# The rows below the head up to that of the first other operator.
PLACE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*?(?=\| aclnnLayerNorm,)")


def row(name: str) -> str:
    """CANN's functions, the overloads, functions and modules of an operator."""
    operator = OPERATORS[name]

    def quoted(names: Iterable[str]) -> str:
        return ", ".join(f"`{name}`" for name in names)

    functions = ", ".join(table.operator.api for table in tables_by_file()[name])
    overloads = quoted(overload.operator._schema.name.removeprefix("aclnn::") for overload in operator.overloads)
    python = f"{quoted(f.__name__ for f in operator.functions)}; {quoted(m.__name__ for m in operator.modules)}"
    return f"| {functions} | {overloads} | {python} |\n"


def with_rows(text: str) -> str:
    """The page with the rows as they should be."""
    assert PLACE.search(text)
    return PLACE.sub(lambda _: HEAD + "".join(map(row, sorted(ELEMENTWISE))), text)


if __name__ == "__main__":
    README.write_text(with_rows(README.read_text()))
