"""Tests of every operator's table: the checks and their order, dtypes, views, sizes, alignments, and any call.

A call that succeeds has its values, its bounds and its objects checked (machinery.call).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cabi import FIND_KERNEL_ERROR, LATER, PARAM_INVALID, PRODUCTS, REAL, SUCCESS, Dtype
from tests.conformance.machinery import (
    Changes,
    DtypeRow,
    Row,
    Same,
    Table,
    Tensor,
    all_tables,
    call,
    check_order,
    check_row,
    in_text,
    pairs,
    releases_of,
    succeeds,
    sweep,
    views,
)

TABLES = all_tables()
EACH_TABLE = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.operator.api)
DEFAULT = "Ascend910B"
OTHERS = [product for product in PRODUCTS if product != DEFAULT]


def taken(number: int) -> tuple[str, ...]:
    """The products of `make test`: the default one, and another in turn; `make test-rest` uses the others."""
    return DEFAULT, OTHERS[number % len(OTHERS)]


EACH_TABLE_ON_PRODUCTS = pytest.mark.parametrize(
    ("table", "product"),
    [
        pytest.param(
            table,
            product,
            id=f"{table.operator.api}-{product}",
            marks=() if product in taken(number) else pytest.mark.test_all,
        )
        for number, table in enumerate(TABLES)
        for product in PRODUCTS
    ],
)
ROWS = [(table, row) for table in TABLES for row in table.checks + table.more + table.accepted]
# A test for each of the products would take longer than their calls.
EACH_ROW = pytest.mark.parametrize(
    ("table", "row", "products"),
    [
        pytest.param(table, row, products, id=f"{table.operator.api}-{row.number}-{row.condition}-{name}", marks=marks)
        for number, (table, row) in enumerate(ROWS)
        for name, products, marks in (
            ("two products", taken(number), ()),
            ("the others", [each for each in PRODUCTS if each not in taken(number)], pytest.mark.test_all),
        )
    ],
)
EACH_ROW_OF_EARLIER_RELEASES = pytest.mark.parametrize(
    ("table", "row", "release"),
    [
        pytest.param(table, row, release, id=f"{table.operator.api}-{row.number}-{row.condition}-{release}")
        for table, row in ROWS
        for release in releases_of(row)
        if release != LATER
    ],
)


# Every other pair of a test's combinations; `make test` runs one half.
HALF = pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.test_all)])


def dtypes_of(row: DtypeRow) -> str:
    return "-".join(dtype.name for dtype in dict.fromkeys(row.dtypes))


EACH_DTYPE_ROW = pytest.mark.parametrize(
    ("table", "row"),
    [
        pytest.param(table, row, id=f"{table.operator.api}-{dtypes_of(row)}")
        for table in TABLES
        for row in table.dtypes
        if "host" in row.accepted
    ],
)


@EACH_ROW
def test_row(table: Table, row: Row, products: Sequence[str]) -> None:
    for product in products:
        check_row(table.operator, row, product)


@EACH_ROW_OF_EARLIER_RELEASES
def test_row_of_earlier_releases(table: Table, row: Row, release: str) -> None:
    for product in PRODUCTS:
        check_row(table.operator, row, product, release)


@EACH_TABLE_ON_PRODUCTS
def test_order_of_checks(table: Table, product: str) -> None:
    alone = {id(row): call(table.operator, row.changes, product) for row in table.checks}
    for first, second in pairs(table.operator, table.checks):
        check_order(table.operator, first, second, product, alone[id(first)])


@EACH_TABLE_ON_PRODUCTS
def test_dtypes(table: Table, product: str) -> None:
    """Each dtype for all tensors, and each accepted row; and in a row each tensor with any dtype.

    A refusal names a tensor with its dtype, or all, or what the dtypes lead to: a mask of BOOL has more elements than
    one of bits in UINT8, and a product without units for FLOAT wants another cubeMathType.
    """
    count = len(table.operator.tensors)
    starts = [row.dtypes for row in table.dtypes]
    cases = {(*start[:i], dtype, *start[i + 1 :]) for start in starts for i in range(count) for dtype in Dtype}
    cases |= {(dtype,) * count for dtype in Dtype}
    refused = FIND_KERNEL_ERROR if product in table.operator.missing else PARAM_INVALID
    got, expected = {}, {}
    for dtypes in sorted(cases):
        name = tuple(dtype.name for dtype in dtypes)
        good = table.operator.lacks.get(product, SUCCESS)
        expected[name] = good if table.accepts_dtypes(dtypes, product) else refused
        outcome = call(table.operator, table.of_dtypes(dtypes), product)
        got[name] = outcome.status
        if got[name] == expected[name] == PARAM_INVALID:
            tensors = "|".join(map(in_text, table.operator.tensors))
            what = rf"({tensors})(Optional)? has (dtype [A-Z]|\d+ elements)|the dtypes are \("
            what += r"|cubeMathType is \d with tensors of dtype [A-Z]"
            says = rf"{table.operator.api}: ({what}).*[,;] (expected|pass) "
            assert re.match(says, outcome.text), outcome.text
    assert got == expected


# ---- values

# Elementwise operators without coefficients, whose tensors have one shape.
EACH_TABLE_OF_TENSORS = pytest.mark.parametrize(
    ("table", "dtype"),
    [
        pytest.param(table, row.dtypes[0], id=f"{table.operator.api}-{row.dtypes[0].name}")
        for table in TABLES
        if not table.operator.sizes
        and all(isinstance(argument, Tensor) for argument in table.operator.arguments.values())
        for row in table.dtypes
        if len(set(row.dtypes)) == 1 and row.dtypes[0] in REAL
    ],
)


@EACH_TABLE_OF_TENSORS
def test_every_value(table: Table, dtype: Dtype) -> None:
    """All values of 16 bits, of a wider dtype a sample of all magnitudes; gradients are the table's, in turn."""
    operator, x = table.operator, sweep(dtype)
    of = {name: operator.values(dtype, name) if name == "gradOutput" else x for name in operator.tensors}
    succeeds(operator, {name: Tensor(dtype, x.shape, values=values) for name, values in of.items()})


# ---- memory


def arranged(table: Table, changes: Changes, pick: Any) -> Changes:
    """The changes with each tensor in a view: `pick` chooses from a list, given its name and if it is written."""
    arranged = dict(changes)
    for name in table.operator.tensors:
        shape = changes.get(f"{name}.shape", table.operator.arguments[name].shape)
        written = name in table.operator.outputs
        strides, offset = pick(name, written, list(views(shape, not written).values()))
        arranged.update({f"{name}.strides": strides, f"{name}.offset": offset})
    return arranged


@HALF
@EACH_DTYPE_ROW
def test_views(table: Table, row: DtypeRow, half: int) -> None:
    """Each view of an input with each view of an output; further inputs use the views in turn."""
    names = table.operator.tensors
    for shapes in table.shapes:
        for i in range(9):
            for j in range((i + half) % 2, 7, 2):

                def pick(name: str, written: bool, choices: list[Any], i: int = i, j: int = j) -> Any:
                    index = names.index(name)
                    number = j + index if written else i + index * j
                    return choices[number % len(choices)]

                succeeds(table.operator, {**table.of_dtypes(row.dtypes), **arranged(table, shapes, pick)})


@HALF
@EACH_DTYPE_ROW
def test_every_size_and_alignment(table: Table, row: DtypeRow, half: int) -> None:
    """A window that slides over its storage while it grows past several vectors; then one large enough for several
    threads, with few long rows and with many short ones."""
    operator, dtypes = table.operator, table.of_dtypes(row.dtypes)
    for size in range(1, 70):
        rows = (1, 3)[(size + half) % 2]
        offsets = {f"{name}.offset": (size * (step + 1)) % 17 for step, name in enumerate(operator.tensors)}
        succeeds(operator, {**dtypes, **operator.of_size(rows, size), **offsets})
    for rows, columns in ((1, 100_003), (10_007, 10)):
        succeeds(operator, {**dtypes, **operator.of_size(rows, columns)})


@pytest.mark.parametrize("own_descriptor", [False, True])
@EACH_DTYPE_ROW
def test_output_is_an_input(table: Table, row: DtypeRow, own_descriptor: bool) -> None:
    operator = table.operator
    for strides, offset in views((3, 4), False).values():
        for output, name in table.aliases:
            changes = {**table.of_dtypes(row.dtypes), **operator.of_size(3, 4)}
            for other in operator.tensors:
                changes.update({f"{other}.strides": strides, f"{other}.offset": offset})
            changes = {key: value for key, value in changes.items() if key.partition(".")[0] != output}
            succeeds(operator, {**changes, output: Same(name, own_descriptor)})


@given(data=st.data())
@EACH_TABLE
def test_any_call(table: Table, data: st.DataObject) -> None:
    succeeds(table.operator, data.draw(st.composite(table.calls)()))
