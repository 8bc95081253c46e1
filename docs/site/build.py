"""Builds the documents as a site: ``python -m docs.site.build``, or ``make docs``, into build/docs/html.

The source is a copy of the tree's pages at the same paths, so that their links work. README.md is the landing page, and
docs/README.md assigns pages to groups. Generated here: the interface, from docstrings; the list of statuses; pages for
the tree's tables (conformance, functions, dtypes); and additions to each operator's page (schemas, and the dtypes that
the host CANN accepts, found by calling it) and to the page of rows (from their files).
"""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

import torch

import aclnn_torch
from tests import cabi
from tests.aten_ops import notes
from tests.aten_ops.report import dtypes_page, functions_page
from tests.cabi import FIND_KERNEL_ERROR, PRODUCTS, SUCCESS, Dtype
from tests.command_blocks import PAGES
from tests.conformance import report as conformance
from tests.conformance.machinery import Changes, Table, all_tables, call

ROOT = Path(__file__).resolve().parents[2]
CHANGES = "CHANGELOG.md"
OTHER_FILES = (CHANGES, "LICENSE", "docs/benchmarks.png", "docs/operators/linear_cross_entropy.png")
OPERATORS = "docs/operators"
ROWS = "docs/emulation/rows.md"
MADE_HERE = {
    "Operators": ["docs/conformance.md", "docs/functions.md", "docs/dtypes.md"],
    "Reference": ["site/interface.md", "site/errors.md"],
}
# Targets of the pages' links, and the page generated from each.
MADE_OF = {
    "tests/conformance": "docs/conformance.md",
    "csrc/cann/prefix/functions.tsv": "docs/functions.md",
    "csrc/cann/named_ops": "docs/functions.md#operators-called-by-name",
    "tests/aten_ops/dtypes.tsv": "docs/dtypes.md",
}

INTERFACE = """# Python interface

The pages of the operators have formulas and examples: @OPERATORS@.

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

Schemas of `torch.ops.aclnn`. Every operator has a page of its own.

@SCHEMAS@
"""

TREE = """
```{toctree}
:hidden:
:maxdepth: 1
:caption: @GROUP@

@PAGES@
```
"""


def groups() -> dict[str, list[str]]:
    """The pages of each group in docs/README.md, without the operators' pages."""
    found: dict[str, list[str]] = {}
    index = ROOT / "docs" / "README.md"
    for group, text in re.findall(r"^## (.*?)$(.*?)(?=^## |\Z)", index.read_text(), re.DOTALL | re.MULTILINE):
        links = re.findall(r"^\| \[[^\]]+\]\(([^)]+\.md)\)", text, re.MULTILINE)
        found[group] = [str((index.parent / link).resolve().relative_to(ROOT)) for link in links]
    found["Operators"] = [page for page in PAGES if page.startswith(f"{OPERATORS}/")] + found["Operators"]
    return found


def module_of(table: Table) -> str:
    """The operator's family, which is the name of its files: "elu" for aclnnEluBackward."""
    source = inspect.getsourcefile(next(iter(table.operator.outputs.values())))
    assert source is not None
    return Path(source).stem.removesuffix("_table")


def families() -> dict[str, list[Table]]:
    """The tables of all operators by their family."""
    return {name: list(tables) for name, tables in groupby(all_tables(), key=module_of)}


@functools.cache
def is_ready() -> bool:
    """True if the host CANN can be called; initialises it. Drops the message if it was already initialised."""
    ready = cabi.host().aclInit(None) in (SUCCESS, 100002) and cabi.host().aclrtSetDevice(0) == SUCCESS
    cabi.error_text()
    return ready


def accepting(table: Table, changes: Changes) -> list[str]:
    """The products whose stage 1 accepts a call, in order."""
    assert is_ready()
    return [product for product in PRODUCTS if call(table.operator, changes, product).status == SUCCESS]


def words(products: Iterable[str]) -> str:
    """Products as text: "all", "Ascend910B and later", "host"."""
    found = list(products)
    if found == list(PRODUCTS):
        return "all"
    if len(found) > 1 and found == list(PRODUCTS[-len(found) :]):
        return f"{found[0]} and later"
    return ", ".join(found)


def accepting_dtype(table: Table, dtype: Dtype, changes: Changes) -> list[str]:
    """The products that accept the dtype for the operator's first tensor, with any dtypes of the others."""
    rows = [table.of_dtypes(row.dtypes) for row in table.dtypes if row.dtypes[0] == dtype]
    found = {product for row in rows for product in accepting(table, {**row, **changes})}
    return [product for product in PRODUCTS if product in found]


def operator_part(table: Table) -> Iterator[str]:
    """One C function: prototype, dtypes."""
    operator = table.operator
    yield f"\n### {operator.api}\n"
    yield schema_block([f"{operator.api}GetWorkspaceSize({', '.join(operator.arguments)})"])
    yield f"\n| accepted by | {' | '.join(operator.tensors)} |"
    yield "|---" * (len(operator.tensors) + 1) + "|"
    for row in table.dtypes:
        names = " | ".join(dtype.name for dtype in row.dtypes)
        yield f"| {words(accepting(table, table.of_dtypes(row.dtypes))) or 'none'} | {names} |"
    yield (
        f"\nAll conditions, with the status on every product: [conformance](../conformance.md"
        f"#{operator.api.lower()}).\n"
    )


def operator_page(family: str, tables: list[Table]) -> str:
    """The page of a family: the written text, and the generated parts."""
    written = (ROOT / OPERATORS / f"{family}.md").read_text()
    parts = "\n".join(line for table in tables for line in operator_part(table))
    return (
        f"{written}\n## Schemas of torch.ops.aclnn\n\n{schema_block(schemas_of(family))}\n\n## Functions of CANN\n\n"
        f"The tables have the dtypes, by argument, that stage 1 accepts, as the host CANN answered when this page was "
        f"made. The products are {', '.join(PRODUCTS)}; `host` is the project's own and accepts whatever any other "
        f"product accepts.\n{parts}"
    )


def schema_block(schemas: Iterable[str]) -> str:
    """Schemas as a code block; long lines are wrapped with an indent."""
    text = "\n".join(textwrap.fill(schema, 88, subsequent_indent="    ") for schema in schemas)
    return f"```{{code-block}} text\n:class: schema\n\n{text}\n```"


def schemas_of(family: str = "") -> list[str]:
    """The schemas of the public operators of one family, or of all."""
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(f"aclnn::{family}")]
    public = {str(schema) for schema in schemas if not schema.name.startswith("aclnn::_")}
    return sorted(public)


def interface_page() -> str:
    """The Python interface, generated from docstrings."""
    functions = [name for name in aclnn_torch.__all__ if inspect.isfunction(getattr(aclnn_torch, name))]
    lines = "\n\n".join(f".. autofunction:: aclnn_torch.{name}" for name in functions)
    pages = ", ".join(f"[{Path(page).stem}](../{page})" for page in PAGES if page.startswith(f"{OPERATORS}/"))
    text = INTERFACE.replace("@OPERATORS@", pages).replace("@FUNCTIONS@", f"\n{lines}")
    return text.replace("@SCHEMAS@", schema_block(schemas_of()))


def errors_page() -> str:
    """Every named status, and the operators that return it in stage 1 or 2."""
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


def made_pages() -> dict[str, Callable[[], str]]:
    """The pages of MADE_HERE, with the functions that generate them."""
    return {
        "docs/conformance.md": conformance.page,
        "docs/functions.md": functions_page,
        "docs/dtypes.md": dtypes_page,
        "site/interface.md": interface_page,
        "site/errors.md": errors_page,
    }


def within_the_site(text: str, page: Path, source: Path) -> str:
    """A page with links adapted to the site.

    README is the landing page. A link to a table becomes one to the page generated from it. A link to a target outside
    the site, such as a folder, becomes plain text.
    """

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.groups()
        path = (page.parent / target).resolve()
        if made := MADE_OF.get(os.path.relpath(path, source)):
            return f"[{words}]({os.path.relpath(source / made, page.parent)})"
        if path == source / "README.md":
            return f"[{words}]({target.removesuffix('README.md')}index.md{anchor or ''})"
        return found[0] if path.is_file() else words

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#]+)(#[^)]*)?\)", link, text)


def trees() -> Iterator[str]:
    """The groups, for the landing page and the side bar."""
    for group, pages in groups().items():
        if group == "Start":
            pages = [*pages, "docs/README.md"]
        names = [page.removesuffix(".md") for page in [*MADE_HERE.get(group, ()), *pages]]
        lines = ["Overview <self>" if name == "README" else name for name in names]
        yield TREE.replace("@GROUP@", group).replace("@PAGES@", "\n".join(lines))


def write_source(folder: Path) -> None:
    """Writes all of Sphinx's input except its settings."""
    for name in (*PAGES, *OTHER_FILES):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    site = folder / "site"
    site.mkdir()
    for name, make in made_pages().items():
        (folder / name).write_text(make())
    for family, tables in families().items():
        (folder / OPERATORS / f"{family}.md").write_text(operator_page(family, tables))
    for page in (*PAGES, CHANGES):
        target = folder / page
        target.write_text(within_the_site(target.read_text(), target, folder))
    with (folder / ROWS).open("a") as page_of_rows:
        page_of_rows.write(notes.page_part())
    readme = folder / "README.md"
    (folder / "index.md").write_text(readme.read_text() + "".join(trees()))
    readme.unlink()


def main() -> int:
    """Builds the site; Sphinx's warnings, e.g. about broken links, are errors."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "docs", metavar="DIR")
    folder = parser.parse_args().into.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    write_source(folder / "source")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", str(ROOT / "docs" / "site")]
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "source"), str(folder / "html")]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
