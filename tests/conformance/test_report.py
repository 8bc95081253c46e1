"""docs/conformance.md is what the command writes, and its links lead to reasons."""

from __future__ import annotations

import pytest

from tests.conformance import report
from tests.conformance.machinery import all_tables
from tests.conformance.provenance import REVISIONS, Kind

EMULATION = report.FILE.with_name("emulation.md").read_text(encoding="utf-8")


def test_page_is_of_today() -> None:
    text, counts = report.report()
    assert counts.cells[False] == 0
    assert report.FILE.read_text(encoding="utf-8") == text, "run `make conformance`"


@pytest.mark.parametrize("deviation", report.DEVIATIONS, ids=str)
def test_each_deviation_is_a_row_and_has_a_reason(deviation: report.Deviation) -> None:
    tables = all_tables()
    assert any(deviation.fits(table.operator, row) for table in tables for row in report.rows_of(table))
    assert deviation.section in report.sections(EMULATION)


def test_each_source_is_a_row_s() -> None:
    """A source that no row names would be a check that no row tries; an in-place form shares those of the other."""
    tables = all_tables()
    for table in tables:
        shared = [other for other in tables if other.sources is table.sources]
        numbers = {row.number for other in shared for row in report.rows_of(other)}
        assert set(table.sources.checks) <= numbers, table.operator.api


def test_each_row_names_its_source() -> None:
    for table in all_tables():
        for row in report.rows_of(table):
            kind, where = report.source_of(table, row)
            repository, *place = where.split(", ")
            if kind == Kind.OWN:
                assert where.removeprefix("emulation.md#") in report.sections(EMULATION)
            else:
                assert repository in REVISIONS, f"{table.operator.api}, {row.condition}: {where}"
                assert place, f"{table.operator.api}, {row.condition}: {where}"
                assert kind != Kind.CODE or len(place) > 1, f"{table.operator.api}, {row.condition}: no function"
