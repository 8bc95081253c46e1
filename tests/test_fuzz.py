"""The committed corpus of generated calls (tests/fuzz): the invariants of any call, and the statuses."""

from __future__ import annotations

import pytest

from tests import builds
from tests.cabi import (
    AICORE_EXCEPTION,
    FIND_KERNEL_ERROR,
    PARAM_INVALID,
    PARAM_NULLPTR,
    PRODUCTS,
    SUCCESS,
    TILING_ERROR,
)
from tests.fuzz import corpus, oracle
from tests.fuzz.__main__ import OPERATORS

NAMES = sorted(oracle.TABLES)


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    """The program that runs the calls, built if missing."""
    builds.cpp_tests()


def test_every_function_has_its_turn() -> None:
    assert sorted(name for group in OPERATORS.values() for name in group) == NAMES == sorted(corpus.functions())


@pytest.mark.parametrize("name", NAMES)
def test_corpus(name: str) -> None:
    """The program that runs the calls ends at the first one of which something is wrong; the statuses are judged here.
    All that the function can return is among them."""
    outcomes = corpus.replay(name, corpus.read(name))
    wrong = [f"{problem}\n{outcome}" for outcome in outcomes if (problem := oracle.wrong(name, outcome))]
    assert not wrong, "\n".join(wrong)
    operator = oracle.TABLES[name].operator
    statuses = {SUCCESS, PARAM_NULLPTR, PARAM_INVALID}
    statuses |= {TILING_ERROR} if operator.generated else set()
    statuses |= {FIND_KERNEL_ERROR} if operator.missing else set()
    statuses |= set(operator.lacks.values())
    assert {outcome["stage1"] for outcome in outcomes} >= statuses
    assert {outcome["stage2"] for outcome in outcomes} >= {SUCCESS, PARAM_NULLPTR}
    assert {outcome["product"] for outcome in outcomes} == set(PRODUCTS)
    labels = {AICORE_EXCEPTION} if "ignoreIndex" in operator.arguments else set()
    assert {outcome["stream"] for outcome in outcomes} >= {SUCCESS} | labels
