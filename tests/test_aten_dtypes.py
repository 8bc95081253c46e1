"""Every row with every dtype: computed and rounded once, or refused by stage 1."""

from __future__ import annotations

import functools

import pytest

from tests.aten_ops.report import RANDOM, TABLE, dtypes_page, functions_page, table
from tests.aten_ops.sweep import LIBRARY, Result, samples, sweep
from tests.published import functions, rows

# One rounding is half a unit in the last place; errors below FLOAT's own precision are ignored.
ONE_ROUNDING = 0.5 + 2**-12


@functools.cache
def results() -> list[Result]:
    return sweep()


def test_every_function_has_a_sample() -> None:
    assert {name for name, _ in samples()} == set(rows(LIBRARY))


@pytest.mark.test_all
def test_no_dtype_fails_in_stage_2() -> None:
    assert [result for result in results() if result.verdict == "failed"] == []


@pytest.mark.test_all
def test_16_bit_results_are_rounded_once() -> None:
    assert [
        (result.function, result.dtype, result.rounding)
        for result in results()
        if result.rounding > ONE_ROUNDING and result.function not in RANDOM
    ] == []


@pytest.mark.test_all
def test_tensors_need_not_be_contiguous() -> None:
    assert [(result.function, result.dtype, result.strided) for result in results() if result.strided] == []


@pytest.mark.test_all
def test_every_function_computes_something() -> None:
    computed = {result.function for result in results() if result.verdict == "computed"}
    assert {name for name, _ in samples()} - computed == set()


@pytest.mark.test_all
def test_the_table_is_what_the_sweep_finds() -> None:
    assert TABLE.read_text() == table(results()), "run `make conformance`, and look at what changed in dtypes.tsv"


def test_the_pages_have_a_line_for_each_function() -> None:
    """The pages of the documents' site, which are generated without calls."""
    for page, names in ((dtypes_page(), rows(LIBRARY)), (functions_page(), functions())):
        assert [name for name in names if f"\n| {name} | " not in page] == []
