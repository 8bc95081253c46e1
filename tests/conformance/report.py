"""The conformance page of the documents' site: every row of the operators' tables, with its status on each product.

The page is made from the tables, and `test_tables.py` compares each of its statuses with the call's. A row in which the
host CANN deliberately differs from CANN links to the reason. `python -m tests.conformance.report` makes all calls and
prints those whose status differs from the table's.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests import cabi
from tests.cabi import FIND_KERNEL_ERROR, LATER, PRODUCTS, SUCCESS
from tests.conformance.machinery import Deviation, Operator, Row, Table, all_deviations, all_tables, call, releases_of
from tests.conformance.provenance import REVISIONS, Kind, Source, own

HEAD = """# Conformance: operator, condition, product, status

The statuses are those of the newest public source of CANN's operators, ops-nn {release}, which is later than CANN 9.1:
`ACLNN_TORCH_CANN=later`, the default. Where the checks of earlier releases give another status, the cell has it behind
that: `161002 (9.1: 0)` is 0 up to CANN 9.1. [fidelity.md](fidelity.md#releases-of-cann) lists these checks.

This page lists the rows of the tables in `tests/conformance`: a condition of a call, and the status of the call on each
product. `tests/conformance/test_tables.py` makes every call through the C interface and compares the status. The first
column is the number of the check in CANN's document, in the document's order; `-` marks a call that no check concerns.

| Status | Meaning |
|---|---|
| 0 | success |
| 161001 | a null pointer |
| 161002 | an invalid argument |
| 561002 | CANN's tiling refuses the call |
| 361001, 561103 | an operator inside a convolution refuses the call |
| 561003 | the product does not have the operator |
| 507015 | the stream reports an error when it is synchronised |

In the tables of linear cross entropy, 561000 and 361001 are products without the function, and 561103 is a refusal by
the tiling. Elsewhere CANN's description of an operator says on which products it exists, or only its document does,
which no check of CANN enforces.

{lacking} cells marked † are refusals of a product without the operator that no published check makes in stage 1. They
are the project's own rule, whatever the rest of their row rests on.

The column *source* says what a row rests on, as the list beneath its table has it: a function of CANN's published
source ({revisions}), a document, an inference, a measurement on a device,
or the project's own rule. *why* links to the reason of a row, or of a cell marked †, in which the host CANN differs
from CANN on purpose. The column `host` as a whole is an extension: no Ascend product has that name
([why](emulation/operators.md#all-operators)).
"""


DEVIATIONS = all_deviations()


def sections(document: str) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def deviation(operator: Operator, row: Row) -> Deviation | None:
    """The reason why a row deviates from CANN, if it does."""
    return next((each for each in DEVIATIONS if not each.lacking and each.fits(operator, row)), None)


def refused_for(operator: Operator, product: str) -> int | None:
    """The status with which a product refuses an operator that it lacks."""
    return FIND_KERNEL_ERROR if product in operator.missing else operator.lacks.get(product)


def of_lacking(operator: Operator, row: Row, product: str) -> Deviation | None:
    """The reason why the refusal by a product without the operator deviates, if it does, though the row does not."""
    if row.on(operator, product) != refused_for(operator, product) or deviation(operator, row):
        return None
    return next((each for each in DEVIATIONS if each.lacking and each.fits(operator, row)), None)


def source_of(table: Table, row: Row, release: str = LATER) -> Source:
    """A row's source: the reason of a deviation, its own source, or that of its check."""
    reason = deviation(table.operator, row)
    if row.until and row.until.source and row.until.holds(release):
        return row.until.source
    return own(reason.reason) if reason else row.source or table.sources.of(row.number, row.condition)


def rows_of(table: Table) -> list[Row]:
    """All rows, in the order of the checks."""
    return [*table.checks, *table.more, *table.accepted]


class Counts(NamedTuple):
    """Counts of cells, of rows by source, and of cells that are the project's own rule in any row."""

    cells: Counter[str]
    rows: Counter[Kind]
    lacking: Counter[str]

    def __str__(self) -> str:
        rows = ", ".join(f"{self.rows[kind]:,} {kind}" for kind in Kind)
        return f"{self.cells.total():,} cells; {self.rows.total():,} rows: {rows}"


def status_text(operator: Operator, row: Row, product: str) -> str:
    """The status on a product and, if it was another up to a release, that one."""
    status = row.on(operator, product)
    before = row.on(operator, product, row.until.release) if row.until else status
    return str(status) if before == status or row.until is None else f"{status} ({row.until.release}: {before})"


def lines(table: Table, counts: Counts) -> Iterator[str]:
    """An operator's part of the page, adding to the counts."""
    operator = table.operator
    sources: dict[Source, int] = {}
    yield f"\n## {operator.api}\n"
    yield f"| | condition | {' | '.join(PRODUCTS)} | source | |"
    yield "|---" * (len(PRODUCTS) + 4) + "|"
    for row in rows_of(table):
        cells, reason = [], deviation(operator, row)
        for product in PRODUCTS:
            cell = status_text(operator, row, product)
            counts.cells[operator.api] += 1
            if lacks := of_lacking(operator, row, product):
                counts.lacking[operator.api] += 1
                reason, cell = reason or lacks, f"{cell} †"
            cells.append(cell)
        source = source_of(table, row)
        counts.rows[source.kind] += 1
        number = sources.setdefault(source, len(sources) + 1)
        link = f"[why]({reason.reason})" if reason else ""
        condition = row.condition.replace("|", r"\|")
        yield f"| {row.number} | {condition} | {' | '.join(cells)} | {number} | {link} |"
    yield ""
    for source, number in sources.items():
        yield f"{number}. {source.kind}: {source.where}"


def page() -> str:
    """The page of all operators."""
    counts = Counts(Counter(), Counter(), Counter())
    parts = [line for table in all_tables() for line in lines(table, counts)]
    revisions = ", ".join(f"{repository} {commit}" for repository, commit in REVISIONS.items())
    head = HEAD.format(revisions=revisions, release=REVISIONS["hicann/ops-nn"], lacking=counts.lacking.total())
    return "\n".join([f"{head}\n{counts}.", *parts]) + "\n"


def differences() -> Iterator[str]:
    """The calls whose status is not the expected one."""
    for table in all_tables():
        operator = table.operator
        for row in rows_of(table):
            for product in PRODUCTS:
                for release in releases_of(row):
                    expected = row.on(operator, product, release)
                    status = call(operator, row.changes, product, release).status
                    if status != expected:
                        where = f"{operator.api}, {row.condition}, {product}, CANN {release}"
                        yield f"{where}: {status}, expected {expected}"


def main() -> int:
    """Prints the differences, and returns 0 if there are none."""
    assert cabi.host().aclInit(None) in (SUCCESS, 100002)
    assert cabi.host().aclrtSetDevice(0) == SUCCESS
    found = list(differences())
    print("\n".join(found) or "every status is the expected one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
