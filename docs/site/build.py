"""The documents as a site: ``python -m docs.site.build``, or ``make docs``, into build/docs/html.

Its source is a copy of the tree's pages, at their places, so that their links hold, and pages made here: the interface
from docstrings, and a page per operator with dtypes as the host CANN accepts them, which is asked for each.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

import torch

import aclnn_torch
from tests import cabi
from tests.cabi import FIND_KERNEL_ERROR, PRODUCTS, SUCCESS, Dtype
from tests.command_blocks import PAGES
from tests.conformance.machinery import Changes, Table, all_tables, call

ROOT = Path(__file__).resolve().parents[2]
OTHER_FILES = ("CHANGELOG.md", "LICENSE", "docs/benchmarks.png")

INTERFACE = """# Python interface

## Functions

```{eval-rst}
.. automodule:: aclnn_torch.functional
   :members:
```

## Modules

```{eval-rst}
.. automodule:: aclnn_torch.nn
   :members:
```

## Models, products, memory, profiling

```{eval-rst}
.. automodule:: aclnn_torch
@FUNCTIONS@
```

## Simulated NPUs

```{eval-rst}
.. automodule:: aclnn_torch.host
   :members:
```

## Errors

```{eval-rst}
.. autoexception:: aclnn_torch.AclnnError
```

Statuses by number: [errors](errors.md).

## Operators

Schemas of `torch.ops.aclnn`; each has a page of its own.

```
@SCHEMAS@
```
"""

INDEX = """# aclnn_torch

```{toctree}
:maxdepth: 1
README
site/interface
@OPERATORS@
site/errors
@PAGES@
```
"""


def module_of(table: Table) -> str:
    """The operator's family, which is the name of its files: "elu" of aclnnEluBackward."""
    source = inspect.getsourcefile(next(iter(table.operator.outputs.values())))
    assert source is not None
    return Path(source).stem.removesuffix("_table")


def families() -> dict[str, list[Table]]:
    """The tables of all operators by their family."""
    return {name: list(tables) for name, tables in groupby(all_tables(), key=module_of)}


@functools.cache
def is_ready() -> bool:
    """Whether the host CANN's interface can be called; makes it so. That it was already is no message to keep."""
    ready = cabi.host().aclInit(None) in (SUCCESS, 100002) and cabi.host().aclrtSetDevice(0) == SUCCESS
    cabi.error_text()
    return ready


def accepting(table: Table, changes: Changes) -> list[str]:
    """The products whose stage 1 accepts a call, in order."""
    assert is_ready()
    return [product for product in PRODUCTS if call(table.operator, changes, product).status == SUCCESS]


def words(products: Iterable[str]) -> str:
    """Products in words: "all", "Ascend910B and later", "host"."""
    found = list(products)
    if found == list(PRODUCTS):
        return "all"
    if len(found) > 1 and found == list(PRODUCTS[-len(found) :]):
        return f"{found[0]} and later"
    return ", ".join(found)


def accepting_dtype(table: Table, dtype: Dtype, changes: Changes) -> list[str]:
    """The products that accept the dtype for the operator's first tensor, with whatever the others then are."""
    rows = [table.of_dtypes(row.dtypes) for row in table.dtypes if row.dtypes[0] == dtype]
    found = {product for row in rows for product in accepting(table, {**row, **changes})}
    return [product for product in PRODUCTS if product in found]


def formula_of(function: Callable[..., object]) -> str:
    """The formula of an output, which stands at its reference in tests/conformance."""
    text = inspect.getdoc(function) or ""
    return " ".join(text.split())


def operator_part(table: Table) -> Iterator[str]:
    """One C function: prototype, formulas, dtypes."""
    operator = table.operator
    yield f"\n## {operator.api}\n\n`{operator.api}GetWorkspaceSize({', '.join(operator.arguments)})`\n"
    for name, function in operator.outputs.items():
        if formula := formula_of(function):
            yield f"- `{name}`: {formula}"
    yield f"\n| {' | '.join(operator.tensors)} | accepted by |"
    yield "|---" * (len(operator.tensors) + 1) + "|"
    for row in table.dtypes:
        names = " | ".join(dtype.name for dtype in row.dtypes)
        yield f"| {names} | {words(accepting(table, table.of_dtypes(row.dtypes))) or 'none'} |"
    yield (
        f"\nAll conditions, with the status on every product: [conformance](../docs/conformance.md"
        f"#{operator.api.lower()}).\n"
    )


def operator_page(family: str, tables: list[Table]) -> str:
    """The page of a family."""
    schemas = "\n".join(schemas_of(family))
    parts = "\n".join(line for table in tables for line in operator_part(table))
    return (
        f"# {family}\n\n```\n{schemas}\n```\n\nDtypes by argument, as stage 1 accepts them (asked while this page was "
        f"made), on the products {', '.join(PRODUCTS)}; `host` is our superset of the others.\n{parts}"
    )


def schemas_of(family: str = "") -> list[str]:
    """The schemas of the public operators, of one family or of all."""
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(f"aclnn::{family}")]
    public = {str(schema) for schema in schemas if not schema.name.startswith("aclnn::_")}
    return sorted(public)


def interface_page() -> str:
    """The Python interface, from docstrings."""
    functions = [name for name in aclnn_torch.__all__ if inspect.isfunction(getattr(aclnn_torch, name))]
    lines = "\n\n".join(f".. autofunction:: aclnn_torch.{name}" for name in functions)
    return INTERFACE.replace("@FUNCTIONS@", f"\n{lines}").replace("@SCHEMAS@", "\n".join(schemas_of()))


def errors_page() -> str:
    """Every status that has a name, and the operators that give it in stage 1 or 2."""
    names = re.findall(r'\{(\d+), "(\w+)"\}', (ROOT / "csrc" / "client" / "error.h").read_text())
    users: dict[int, set[str]] = {}
    for table in all_tables():
        for row in (*table.checks, *table.more):
            users.setdefault(row.code, set()).add(table.operator.api)
        if table.operator.missing:
            users.setdefault(FIND_KERNEL_ERROR, set()).add(table.operator.api)
    lines = [
        f"| {code} | `{name}` | {', '.join(f'`{api}`' for api in sorted(users.get(int(code), ())))} |"
        for code, name in names
    ]
    return "\n".join(
        [
            "# Statuses\n",
            "What `AclnnError.status` and `status_name` can be, and what C functions return. The last column has the",
            "operators with a condition for it; [conformance](../docs/conformance.md) has the conditions.",
            "An error's text names the argument, what was expected, what was given, the product and the way out.\n",
            "| status | name | operators |\n|---|---|---|",
            *lines,
            "",
        ]
    )


def within_the_site(text: str, folder: Path) -> str:
    """A page whose links to what is not among the pages are their words alone: files of the tree, and folders."""

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        return found[0] if (folder / target).is_file() else words

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#]+)\)", link, text)


def write_source(folder: Path) -> None:
    """Writes all that Sphinx reads, but for its settings."""
    for name in (*PAGES, *OTHER_FILES):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    for page in PAGES:
        target = folder / page
        target.write_text(within_the_site(target.read_text(), target.parent))
    site = folder / "site"
    site.mkdir()
    (site / "interface.md").write_text(interface_page())
    (site / "errors.md").write_text(errors_page())
    for family, tables in families().items():
        (site / f"{family}.md").write_text(operator_page(family, tables))
    pages = [page.removesuffix(".md") for page in (*PAGES, "CHANGELOG.md") if page != "README.md"]
    operators = [f"site/{family}" for family in families()]
    index = INDEX.replace("@OPERATORS@", "\n".join(operators)).replace("@PAGES@", "\n".join(pages))
    (folder / "index.md").write_text(index)


def main() -> int:
    """Makes the site; a warning of Sphinx, as of a link that leads nowhere, is an error."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "docs", metavar="DIR")
    folder = parser.parse_args().into
    shutil.rmtree(folder, ignore_errors=True)
    write_source(folder / "source")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", str(ROOT / "docs" / "site")]
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "source"), str(folder / "html")]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
