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
from tests.cabi import FIND_KERNEL_ERROR, PRODUCTS, SUCCESS
from tests.conformance.machinery import Operator, Row, Table, all_tables, call
from tests.conformance.provenance import REVISIONS, Kind, Source, own

HEAD = """# Conformance: operator, condition, product, status

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
the tiling. Elsewhere CANN's description of an operator says on which products it exists; of SiLU, Softplus and
Hardswish only the documents say so, and no check of CANN enforces it.

{lacking} cells marked † are refusals of a product without the operator that no published check makes in stage 1. They
are the project's own rule, whatever the rest of their row rests on.

The column *source* says what a row rests on, as the list beneath its table has it: a function of CANN's published
source ({revisions}), a document, an inference, a measurement on a device,
or the project's own rule. *why* links to the reason of a row, or of a cell marked †, in which the host CANN differs
from CANN on purpose. The column `host` as a whole is an extension: no Ascend product has that name
([why](emulation/operators.md#all-operators)).
"""


class Deviation(NamedTuple):
    """Rows that deliberately differ from CANN, by operator, number and condition (each a regular expression), and the
    section of docs/emulation/operators.md with the reason. `lacking`: only their cells of products that lack the
    operator."""

    api: str
    number: str
    condition: str
    section: str
    lacking: bool = False

    def fits(self, operator: Operator, row: Row) -> bool:
        """True if it applies to a row."""
        parts = ((self.api, operator.api), (self.number, row.number), (self.condition, row.condition))
        return all(re.fullmatch(pattern, text) for pattern, text in parts)


ELU_AND_SELU = "aclnn(Inplace)?S?[Ee]lu|aclnnS?[Ee]luBackward"
CROSS_ENTROPY, CONVOLUTION = "aclnnCrossEntropyLoss(Grad)?", "aclnnConvolution(Backward)?"
BACKWARD = "aclnnConvolutionBackward"
# Ascend910B checks two of the shapes, and neither the reduction nor the range of the smoothing.
UNCHECKED = (
    r"(?!gradLoss 0-D for (mean|sum))gradLoss .*|out has .*|logProb has . dims?|target has (2|no) dims|"
    r"weight has 2 dims|an unknown reduction|reduction '.*'|labelSmoothing .*"
)
FORWARD_UNCHECKED = (
    r"lossOut .*|logProbOut .*|input has . dims?|target has (2|no) dims|weight has 2 dims|no classes|labelSmoothing NaN"
)
ONLINE, LOSS_OF_SUMS = "aclnnFusedLinearOnlineMaxSum", "aclnnFusedCrossEntropyLossWithMaxSum"
LINEAR_GRADIENT, LINEAR = "aclnnFusedLinearCrossEntropyLossGrad", "linear-cross-entropy"
DEVIATIONS = (
    Deviation(ELU_AND_SELU, ".*", r"format (NC1HWC0|FRACTAL_\w+|NC1HWC0_C04|NDC1HWC0)", "elu-and-selu"),
    Deviation("aclnnElu(Backward)?", "5|6", r"(out|gradInput) of \w+", "elu-and-selu"),
    Deviation("aclnnGeluBackward(V2)?", "3", r"(HIF|F)LOAT8\w* beside FLOAT|gradInput of HIFLOAT8", "silu-and-gelu"),
    Deviation("aclnnGeluV2", "5", r"approximate (2|-1)", "silu-and-gelu"),
    Deviation("aclnnSiluBackward", "4|6", r"(gradOutput|self) (has another dtype|would broadcast)", "silu-and-gelu"),
    Deviation("aclnnLayerNorm", "9", r"(mean|rstd) of other rows", "layernorm"),
    Deviation("aclnnSoftplusBackward", ".*", r"(beta|threshold) (null|complex)", "softplus-and-hardswish"),
    Deviation("aclnnRmsNorm", "8|11", r"rstdOut has (an element for each of x|one row)|no columns", "rmsnorm"),
    Deviation("aclnnCrossEntropyLossGrad", "7", UNCHECKED, "crossentropyloss"),
    Deviation("aclnnCrossEntropyLoss", "7", FORWARD_UNCHECKED, "crossentropyloss"),
    Deviation(CROSS_ENTROPY, "7", r"label smoothing|all of it smoothing|z-loss.*|lse .*", "crossentropyloss"),
    Deviation("aclnnCrossEntropyLossGrad", "7", "a z-loss scale", "crossentropyloss"),
    Deviation(CROSS_ENTROPY, "4.2", r"label -?\d+", "crossentropyloss"),
    Deviation(
        CROSS_ENTROPY, "4.3", r"(a|another) negative (one|ignoreIndex)|all rows ignored, mean", "crossentropyloss"
    ),
    Deviation(CONVOLUTION, "2|5", r"HIFLOAT8|FLOAT8_\w+", "convolution"),
    Deviation(BACKWARD, "own rule", "biasSizes null.*", "convolution"),
    Deviation(BACKWARD, "25", ".*", "convolution"),
    Deviation(CONVOLUTION, "-", "one value for all dimensions", "convolution"),
    Deviation("aclnnConvolution", "10", ".*", "convolution"),
    Deviation(BACKWARD, "30", ".*", "convolution"),
    Deviation("aclnnConvolution", "-|8", ".* as ND", "convolution"),
    Deviation(BACKWARD, "-|26", "[23]-D.* as ND", "convolution"),
    Deviation(f"{ONLINE}|{LOSS_OF_SUMS}", "7|9", "any other call", LINEAR),
    Deviation(ONLINE, "4", "rows of nothing", LINEAR),
    Deviation(ONLINE, "9", r"targets beyond 2\^24", LINEAR),
    Deviation(LOSS_OF_SUMS, "6|7", "logits of other rows|no (rows|classes).*", LINEAR),
    Deviation(LINEAR_GRADIENT, "2", "softmax( and sums of any kind)?", LINEAR),
    Deviation(LINEAR_GRADIENT, "7", "no (rows|classes)", LINEAR),
    Deviation("aclnnHostLinearCrossEntropy", ".*", ".*", LINEAR),
    Deviation("aclnnSiluBackward", ".*", ".*", "silu-and-gelu", lacking=True),
    Deviation(
        "aclnn(Inplace)?Hardswish|aclnnHardswishBackward(V2)?|aclnnSoftplusBackward",
        ".*",
        ".*",
        "softplus-and-hardswish",
        lacking=True,
    ),
    Deviation(f"{ONLINE}|{LOSS_OF_SUMS}", ".*", ".*", LINEAR, lacking=True),
)


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


def source_of(table: Table, row: Row) -> Source:
    """A row's source: the reason of a deviation, its own source, or that of its check."""
    reason = deviation(table.operator, row)
    return own(reason.section) if reason else row.source or table.sources.of(row.number, row.condition)


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
            cell = str(row.on(operator, product))
            counts.cells[operator.api] += 1
            if lacks := of_lacking(operator, row, product):
                counts.lacking[operator.api] += 1
                reason, cell = reason or lacks, f"{cell} †"
            cells.append(cell)
        source = source_of(table, row)
        counts.rows[source.kind] += 1
        number = sources.setdefault(source, len(sources) + 1)
        link = f"[why](emulation/operators.md#{reason.section})" if reason else ""
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
    head = HEAD.format(revisions=revisions, lacking=counts.lacking.total())
    return "\n".join([f"{head}\n{counts}.", *parts]) + "\n"


def differences() -> Iterator[str]:
    """The calls whose status is not the expected one."""
    for table in all_tables():
        operator = table.operator
        for row in rows_of(table):
            for product in PRODUCTS:
                expected, status = row.on(operator, product), call(operator, row.changes, product).status
                if status != expected:
                    yield f"{operator.api}, {row.condition}, {product}: {status}, expected {expected}"


def main() -> int:
    """Prints the differences, and returns 0 if there are none."""
    assert cabi.host().aclInit(None) in (SUCCESS, 100002)
    assert cabi.host().aclrtSetDevice(0) == SUCCESS
    found = list(differences())
    print("\n".join(found) or "every status is the expected one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
