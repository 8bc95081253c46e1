"""docs/conformance.md is what the command writes, and its links lead to reasons."""

from __future__ import annotations

import pytest

from tests.conformance import report
from tests.conformance.machinery import all_tables

EMULATION = report.FILE.with_name("emulation.md").read_text(encoding="utf-8")


def test_page_is_of_today() -> None:
    text, count = report.report()
    assert count[False] == 0
    assert report.FILE.read_text(encoding="utf-8") == text, "run `make conformance`"


@pytest.mark.parametrize("deviation", report.DEVIATIONS, ids=str)
def test_each_deviation_is_a_row_and_has_a_reason(deviation: report.Deviation) -> None:
    tables = all_tables()
    assert any(deviation.fits(table.operator, row) for table in tables for row in report.rows_of(table))
    assert deviation.section in report.sections(EMULATION)
