"""The conformance page's sources: each row has a source, and each deviation a reason."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.cabi import PRODUCTS
from tests.command_blocks import ROOT
from tests.conformance import report
from tests.conformance.machinery import Operator, Row, Table, all_tables
from tests.conformance.provenance import DEFINITIONS, UNNUMBERED, Kind, Source, unknown
from tests.conformance.read_source import definitions


def is_written(reason: str) -> bool:
    """Whether a page below docs has a section."""
    page, _, section = reason.partition("#")
    return section in report.sections((ROOT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("deviation", report.DEVIATIONS, ids=str)
def test_each_deviation_is_a_row_and_has_a_reason(deviation: report.Deviation) -> None:
    rows = [(table.operator, row) for table in all_tables() for row in report.rows_of(table)]
    assert any(deviation.fits(*row) and (not deviation.lacking or lacking_cells(*row)) for row in rows)
    assert is_written(deviation.reason)


def test_each_source_is_a_row_s() -> None:
    """A source without a row would be an untested check; an in-place form shares those of the other."""
    tables = all_tables()
    for table in tables:
        shared = [other for other in tables if other.sources is table.sources]
        rows = [row for other in shared for row in report.rows_of(other)]
        assert set(table.sources.checks) <= {row.number for row in rows}, table.operator.api
        unnumbered = [row.condition for row in rows if row.number == UNNUMBERED]
        for pattern in table.sources.unnumbered:
            assert any(re.fullmatch(pattern, condition) for condition in unnumbered), f"{table.operator.api}: {pattern}"


def sources_of(table: Table) -> set[Source]:
    """All sources that a table names, for existing and possible rows."""
    own, rows = table.sources, report.rows_of(table)
    return {*own.checks.values(), own.rest, *own.unnumbered.values(), *(report.source_of(table, row) for row in rows)}


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.operator.api)
def test_each_source_exists(table: Table) -> None:
    """Files and functions at the commits that were read, and the sections with the project's own rules."""
    for source in sources_of(table):
        assert not unknown(source)
        assert source.kind != Kind.OWN or is_written(source.where)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("hicann/ops-nn, activation/elu/op_api/aclnn_elu.cpp, CheckShapes", "does not define CheckShapes"),
        ("hicann/ops-nn, activation/elu/op_api/aclnn_elu.cpp", "no function is named"),
        ("hicann/ops-nn, activation/elu/aclnn_elu.cpp, CheckShape", "has no file"),
        ("hicann/ops-cv, activation/elu/op_api/aclnn_elu.cpp, CheckShape", "has no file"),
    ],
)
def test_a_source_that_does_not_exist_is_found(where: str, words: str) -> None:
    assert words in unknown(Source(Kind.CODE, where))


def test_definitions_of_a_published_file() -> None:
    """Not what is called or declared, nor what a comment has."""
    text = """\
    #define CHECK(x) \\
      do { f(x); } while (0)
    /* int Old() { } */
    namespace {
    static bool CheckShape(const aclTensor* self,
                           const std::vector<int>& out = Sizes(1, 2))
    {
        if (self == out) { return Call(self); }  // int Commented() {
        for (int i = 0; i < 3; ++i) { }
    }
    int Declared(int x);
    }
    aclnnStatus aclnnElu(void* workspace) { return Run(workspace); }
    """
    assert definitions(textwrap.dedent(text)) == ["CHECK", "CheckShape", "aclnnElu"]


def test_each_published_file_is_cited() -> None:
    cited = {tuple(source.where.split(", ")[:2]) for table in all_tables() for source in sources_of(table)}
    assert set(DEFINITIONS) <= cited


def lacking_cells(operator: Operator, row: Row) -> list[str]:
    """The products whose refusal is the project's own rule, whatever the row's source."""
    return [product for product in PRODUCTS if report.of_lacking(operator, row, product)]


def test_refusals_of_products_that_no_published_check_makes_are_own_rules() -> None:
    """CANN generates product checks from an operator's description; of the handwritten checkers, one tests the
    product."""
    published = {"aclnnFusedLinearCrossEntropyLossGrad"}  # CheckPlatformSupported
    for table in all_tables():
        operator = table.operator
        for row in report.rows_of(table):
            if not operator.generated and operator.api not in published and not report.deviation(operator, row):
                refused = [each for each in PRODUCTS if row.on(operator, each) == report.refused_for(operator, each)]
                assert refused == lacking_cells(operator, row), row.condition
