"""How a table of the specification is run through the C ABI.

An operator is its prototype filled with valid arguments, and a float64 reference for each output. A row changes some of
the arguments and says on which products the call still succeeds, and otherwise with which status and which words it
fails. A table is an operator with its rows and what the tests that all operators share need to know of it; a file
`<operator>_table.py` that defines TABLES is all it takes to have those tests (test_tables.py, test_executors.py).

Changes are a dict. Its keys are an argument's name, or `argument.attribute` to change one attribute of a Tensor,
Scalar, Ints or Bools: {"x.dtype": Dtype.FLOAT16, "epsilon": 1e-5, "weight": None, "stride.values": (2, 2)}. The names
"workspaceSize" and "executor" may be set to None too.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import (
    FIND_KERNEL_ERROR,
    PARAM_INVALID,
    PARAM_NULLPTR,
    PRODUCTS,
    SUCCESS,
    Dtype,
    Format,
    Memory,
)
from tests.conformance.provenance import Source, Sources

ANYWHERE = frozenset(PRODUCTS)
NOWHERE: frozenset[str] = frozenset()
HOST = frozenset({"host"})
WITH_BF16 = ANYWHERE - {"Ascend310P", "Ascend910"}

Changes = dict[str, Any]


# ---- arguments
#
# A prototype's arguments are these classes for what is passed by pointer, and Python's own bool, int, float (by value)
# and str (char*). None is a null pointer: an optional argument that is absent, as a default an absent tensor.


@dataclass(frozen=True)
class Tensor:
    """A tensor argument. `values` are repeated over its elements; without them the operator's own are used."""

    dtype: Dtype = Dtype.FLOAT
    shape: tuple[int, ...] = (2, 3)
    strides: tuple[int, ...] | None = None
    offset: int = 0
    format: Format | None = None  # by default the operator's own for such a shape
    values: Sequence[float] | np.ndarray | None = None


@dataclass(frozen=True)
class Scalar:
    """A host-side scalar argument."""

    value: complex = 1.0
    dtype: Dtype = Dtype.FLOAT

    @property
    def as_float(self) -> float:
        """What aclScalar::ToFloat gives: the value in its own dtype, then rounded to float."""
        return float(cabi.round_to(Dtype.FLOAT, cabi.decode(self.dtype, cabi.encode(self.dtype, self.value)).real))


@dataclass(frozen=True)
class Ints:
    """An aclIntArray."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Bools:
    """An aclBoolArray."""

    values: tuple[bool, ...]


@dataclass(frozen=True)
class Same:
    """The memory of another argument: its very descriptor, or a second one."""

    name: str
    own_descriptor: bool = False


# Stands for workspaceSize and executor where they are not null.
GIVEN = object()


@dataclass(frozen=True)
class Given:
    """What a reference computes from."""

    product: str
    dtype: Dtype  # of the operator's first tensor
    inputs: dict[str, np.ndarray]  # the elements of the tensors that are there, as float64
    arguments: dict[str, Any]  # all of them, as the table describes them; an absent one is None


class Reference(NamedTuple):
    """Expected values as float64, by how much the arithmetic may miss them before it rounds, and the dtype to which it
    rounds once before the result is cast to the output's own; None when that is the only rounding."""

    value: np.ndarray
    tolerance: np.ndarray | float
    dtype: Dtype | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator: its prototype's arguments in order, what it computes, and whether CANN generates its checks."""

    api: str
    arguments: dict[str, Any]
    # The reference of each output by name, in the prototype's order; None says that nothing is to be written there. An
    # output that is the first tensor of the prototype is updated in place.
    outputs: dict[str, Callable[[Given], Reference | None]]
    values: Callable[[Dtype, str], Sequence[float]]  # of a tensor with that dtype and name, not all zero
    # Changes that leave every output without elements, which `host` accepts and which needs no memory at all.
    empty: Changes
    optional: frozenset[str] = frozenset()  # pointers that may be null, at least under some condition
    any_rank: bool = False  # of the tensors of an elementwise one; else 8 dimensions at most
    generated: bool = False  # CANN generates its checks: executor and workspaceSize come after the tensors
    missing: frozenset[str] = NOWHERE  # products without it: 561003 once nothing is null
    # Products without it, where that is found behind the arguments, and the status. A row that they refuse so has a
    # code that is none of an argument.
    lacks: dict[str, int] = field(default_factory=dict)
    # Changes that give a call of so many rows and columns, all tensors contiguous; by default all have that shape.
    sizes: Callable[[int, int], Changes] | None = None
    format_of: Callable[[tuple[int, ...]], Format] = lambda shape: Format.ND  # of a tensor of such a shape

    @property
    def tensors(self) -> list[str]:
        """Names of the tensor arguments that are there by default, in order."""
        return [name for name, value in self.arguments.items() if isinstance(value, Tensor)]

    @property
    def places(self) -> list[str]:
        """Names of all tensor arguments, in order: an executor counts those that are absent too."""
        return [name for name, value in self.arguments.items() if value is None or isinstance(value, Tensor)]

    @property
    def source(self) -> str:
        """The first tensor."""
        return self.tensors[0]

    @property
    def inputs(self) -> list[str]:
        """Names of the tensors that are read."""
        return [name for name in self.tensors if self.reads(name)]

    def reads(self, name: str) -> bool:
        """Whether a tensor is an input."""
        return name not in self.outputs or name == self.source

    def of_size(self, rows: int, columns: int) -> Changes:
        """Changes that give a call of so many rows and columns."""
        return self.sizes(rows, columns) if self.sizes else on_all(self, "shape", (rows, columns))

    def changed(self, changes: Changes) -> dict[str, Any]:
        """The valid arguments with `argument` or `argument.attribute` replaced."""
        arguments = {**self.arguments, "workspaceSize": GIVEN, "executor": GIVEN}
        for key, value in changes.items():
            name, _, attribute = key.partition(".")
            assert name in arguments, f"{self.api} has no argument {name}"
            arguments[name] = replace(arguments[name], **{attribute: value}) if attribute else value
        return arguments


class Row(NamedTuple):
    """One line of a table: the check's number in the specification, a condition, the change that brings it about, and
    what follows from it. A code that only stage 2 can find is the stream's at its synchronisation."""

    number: str
    condition: str
    changes: Changes
    accepted: frozenset[str] = NOWHERE  # the products on which it is no failure
    code: int = PARAM_INVALID
    words: tuple[str, ...] = ()  # in the error text; the first is the argument
    source: Source | None = None  # if it is not that of the check's number
    other: tuple[frozenset[str], int] | None = None  # products that refuse it with another code

    def on(self, operator: Operator, product: str) -> int:
        """The status on a product."""
        if product in operator.missing and self.code != PARAM_NULLPTR:
            return FIND_KERNEL_ERROR
        if product in operator.lacks and self.code not in (PARAM_NULLPTR, PARAM_INVALID):
            return operator.lacks[product]
        if product in self.accepted:
            return SUCCESS
        return self.other[1] if self.other and product in self.other[0] else self.code


class DtypeRow(NamedTuple):
    """Dtypes that go together: one for each tensor that is there by default, in order, and the products that accept."""

    dtypes: tuple[Dtype, ...]
    accepted: frozenset[str]


@dataclass(frozen=True, eq=False)
class Table:
    """An operator with everything that the tests of all operators ask of it."""

    operator: Operator
    checks: list[Row]  # the failures, in the order of the checks: each two of them are also brought about together
    more: list[Row]  # other failures, whose order says nothing or whose accepted products differ
    accepted: list[Row]  # what succeeds on every product that has the operator
    dtypes: list[DtypeRow]  # accepted rows, on which everything else is tried
    shapes: list[Changes]  # shapes in which each tensor is tried in each of its views
    calls: Callable[[st.DrawFn], Changes]  # draws any valid call of the `host` product
    sources: Sources  # of the rows, by their numbers and conditions
    # Whether the dtypes, by argument name, are accepted on a product; by default when they are one of the rows.
    accepts: Callable[[dict[str, Dtype], str], bool] | None = None
    aliases: Sequence[tuple[str, str]] = ()  # an output and an input whose memory it may be

    def accepts_dtypes(self, dtypes: tuple[Dtype, ...], product: str) -> bool:
        """Whether a product accepts one dtype for each tensor."""
        if self.accepts:
            return self.accepts(dict(zip(self.operator.tensors, dtypes, strict=True)), product)
        return any(row.dtypes == dtypes and product in row.accepted for row in self.dtypes)

    def of_dtypes(self, dtypes: Iterable[Dtype]) -> Changes:
        """Changes that give the tensors these dtypes."""
        return {f"{name}.dtype": dtype for name, dtype in zip(self.operator.tensors, dtypes, strict=True)}


def tables_by_file() -> dict[str, Sequence[Table]]:
    """The tables of every file of this folder that ends in _table.py, by what comes before that."""
    files = sorted(Path(__file__).parent.glob("*_table.py"))
    return {
        file.stem.removesuffix("_table"): importlib.import_module(f"{__package__}.{file.stem}").TABLES for file in files
    }


def all_tables() -> list[Table]:
    """The tables of all operators."""
    return [table for tables in tables_by_file().values() for table in tables]


# ---- one call


class Prepared:
    """Memory and descriptors of one call's arguments; gives the descriptors back when it is left."""

    def __init__(self, operator: Operator, changes: Changes, memory: type[Memory] = Memory):
        self.operator = operator
        self._memory = memory
        self.arguments = operator.changed(changes)
        self.memory: dict[str, Memory] = {}
        self.handles: dict[str, int] = {}
        self._owned: list[tuple[Callable[[int], int], int]] = []

    def __enter__(self) -> Prepared:
        for name, spec in self.arguments.items():
            self._create(name, spec)
        for name, spec in self.arguments.items():
            if isinstance(spec, Same):
                self.memory[name] = self.memory[spec.name]
                self.handles[name] = self.handles[spec.name]
                if spec.own_descriptor:
                    self._own(name, cabi.host().aclDestroyTensor, self.memory[name].descriptor())
        self.before = {name: memory.raw.copy() for name, memory in self.memory.items()}
        self.inputs = {name: memory.read() for name, memory in self.memory.items() if memory.dtype in _COMPUTABLE}
        return self

    def _create(self, name: str, spec: Any) -> None:
        host = cabi.host()
        if isinstance(spec, Tensor):
            self.memory[name] = self._memory(spec.dtype, spec.shape, spec.strides, spec.offset)
            if self.operator.reads(name) and spec.dtype in _COMPUTABLE:
                values = self.operator.values(spec.dtype, name) if spec.values is None else spec.values
                self.memory[name].write(values)
            self._own(
                name,
                host.aclDestroyTensor,
                self.memory[name].descriptor(
                    self.operator.format_of(spec.shape) if spec.format is None else spec.format
                ),
            )
        elif isinstance(spec, Scalar):
            self._own(name, host.aclDestroyScalar, cabi.create_scalar(spec.value, spec.dtype))
        elif isinstance(spec, Ints):
            self._own(name, host.aclDestroyIntArray, cabi.create_int_array(spec.values))
        elif isinstance(spec, Bools):
            self._own(name, host.aclDestroyBoolArray, cabi.create_bool_array(spec.values))

    def _own(self, name: str, destroy: Callable[[int], int], handle: int) -> None:
        self.handles[name] = handle
        self._owned.append((destroy, handle))

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Destroys the descriptors."""
        for destroy, handle in self._owned:
            assert destroy(handle) == SUCCESS
        self._owned.clear()

    def stage1(self) -> cabi.Stage1:
        """Runs the first stage, after which strings are overwritten: it must have copied them."""
        given: list[Any] = []
        for name in self.operator.arguments:
            spec = self.arguments[name]
            if isinstance(spec, str):
                spec = ctypes.create_string_buffer(spec.encode())
            given.append(self.handles.get(name, spec))
        first = cabi.Stage1(
            self.operator.api,
            given,
            workspace_size=self.arguments["workspaceSize"] is GIVEN,
            executor=self.arguments["executor"] is GIVEN,
        )
        for value in given:
            if isinstance(value, ctypes.Array):
                ctypes.memset(value, ord("?"), len(value))
        return first

    @property
    def outputs(self) -> dict[str, Memory]:
        """The memory of the outputs that are there, by name."""
        return {name: self.memory[name] for name in self.operator.outputs if name in self.memory}

    @property
    def output(self) -> Memory:
        """The memory of the first output."""
        return next(iter(self.outputs.values()))

    def check_unchanged(self) -> None:
        """Nothing was written at all."""
        for name, memory in self.memory.items():
            assert np.array_equal(memory.raw, self.before[name]), f"{name} was written"

    def check_bounds(self) -> None:
        """Only elements of the outputs were written."""
        outputs = list(self.outputs.values())
        for name, memory in self.memory.items():
            assert memory.untouched(), f"written outside the elements of {name}"
            if not any(memory is output for output in outputs):
                assert np.array_equal(memory.raw, self.before[name]), f"input {name} was written"

    def references(self, product: str) -> dict[str, Reference | None]:
        """What each output is to be; None for one that is not to be written, or has no elements."""
        given = Given(product, self.memory[self.operator.source].dtype, self.inputs, self.arguments)
        with np.errstate(all="ignore"):
            return {
                name: self.operator.outputs[name](given) if memory.view.size else None
                for name, memory in self.outputs.items()
            }

    def check_values(self, product: str = "Ascend910B") -> None:
        """Each output is its reference, rounded and cast as that says; one without a reference was not written."""
        for name, reference in self.references(product).items():
            memory = self.outputs[name]
            if reference is None:
                assert np.array_equal(memory.raw, self.before[name]), f"{name} was written"
            else:
                check_close(name, memory, reference)


@dataclass
class Outcome:
    """What became of a call: the status of stage 1, or of the stream after stage 2, and the error text."""

    status: int
    text: str
    prepared: Prepared = field(repr=False)

    def view(self, name: str | None = None) -> np.ndarray:
        """An output, by default the first, as it is in memory."""
        return (self.prepared.memory[name] if name else self.prepared.output).view


def call(operator: Operator, changes: Changes, product: str = "Ascend910B") -> Outcome:
    """Both stages on the null stream, with everything that must hold whatever the arguments are.

    A failure of stage 1 leaves every byte as it was, hands out no executor, and says why; stage 2 writes elements of
    the outputs only, and when it succeeds the right values. Nothing is left behind in any case.
    """
    with cabi.nothing_left(), cabi.product(product), Prepared(operator, changes) as prepared:
        described = cabi.live_objects()
        first = prepared.stage1()
        outcome = Outcome(first.status, first.text, prepared)
        prepared.check_unchanged()  # stage 1 does not compute
        if first.status != SUCCESS:
            assert first.executor in (None, cabi.UNSET_EXECUTOR)
            assert first.text
        else:
            assert first.text == ""
            assert first.executor not in (None, cabi.UNSET_EXECUTOR)
            assert first.workspace_size != cabi.UNSET_SIZE
            assert cabi.live_objects("executor") > 0
            assert first.run() == SUCCESS, cabi.error_text()
            outcome.status = cabi.host().aclrtSynchronizeStream(None)
            outcome.text = cabi.error_text()
            assert first.workspace.untouched()
            prepared.check_bounds()
            if outcome.status == SUCCESS:
                prepared.check_values(product)
            if all(output.view.size == 0 for output in prepared.outputs.values()):
                assert first.workspace_size == 0
        assert cabi.live_objects() == described
    return outcome


def succeeds(operator: Operator, changes: Changes, product: str = "host") -> Outcome:
    """A call that must succeed; its values are checked as in every call."""
    outcome = call(operator, changes, product)
    assert outcome.status == SUCCESS, outcome.text
    return outcome


# ---- tables

_SHAPE = re.compile(r"\[[-0-9, ]*\]")


def in_text(name: str) -> str:
    """What an argument is called in error texts: not optional, since it is there."""
    return name.removesuffix("Optional")


def nulls(operator: Operator) -> list[Row]:
    """The first two checks, alike for every operator of a family: required pointers in the prototype's order, and
    executor and workspaceSize, which hand-written operators check first and generated ones last."""
    required = [
        name
        for name, value in operator.arguments.items()
        if not isinstance(value, (bool, int, float)) and name not in operator.optional
    ]
    results = ["executor", "workspaceSize"]
    parts = [required, results] if operator.generated else [results, required]
    return [
        Row(str(number), f"{name} null", {name: None}, code=PARAM_NULLPTR, words=(name,))
        for number, part in enumerate(parts, 1)
        for name in part
    ]


def on_all(operator: Operator, attribute: str, value: Any) -> Changes:
    """The same change on every tensor of an operator."""
    return {f"{name}.{attribute}": value for name in operator.tensors}


def check_row(operator: Operator, row: Row, product: str) -> None:
    """Runs one row on one product, and reads the error text if it fails."""
    outcome = call(operator, row.changes, product)
    expected = row.on(operator, product)
    assert outcome.status == expected, f"status {outcome.status}, expected {expected}: {outcome.text}"
    if outcome.status == SUCCESS:
        return
    # A null pointer, and what stage 2 finds, is one on every product; everything else depends on the product's rules.
    product_matters = outcome.status not in (PARAM_NULLPTR, cabi.AICORE_EXCEPTION)
    words = (operator.api, product) if product_matters else (operator.api,)
    # A product that lacks the operator, or refuses all such calls, has its own words.
    for word in words if expected != row.code else (*words, *row.words):
        assert word in outcome.text, f"{word!r} is not in {outcome.text!r}"


def pairs(operator: Operator, rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Each two failures that can be brought about in one call, in the order in which they are checked.

    executor and workspaceSize have no order between them where they are checked first.
    """

    def clash(first: Row, second: Row) -> bool:
        return any(
            a == b or (a.partition(".")[0] == b.partition(".")[0] and (a.find(".") < 0 or b.find(".") < 0))
            for a in first.changes
            for b in second.changes
        )

    return [
        (first, second)
        for first, second in combinations(rows, 2)
        if not clash(first, second) and (operator.generated or not first.number == second.number == "1")
    ]


def check_order(operator: Operator, first: Row, second: Row, product: str, alone: Outcome) -> None:
    """Two violations in one call: the earlier check decides, and reports as if the later violation were not there,
    except that the shapes it quotes may be those of the second. `alone` is the call with the first only."""
    both = call(operator, {**first.changes, **second.changes}, product)
    assert both.status == alone.status, f"{first.condition}, then {second.condition}"
    assert _SHAPE.sub("[]", both.text) == _SHAPE.sub("[]", alone.text), f"{first.condition}, then {second.condition}"


# ---- dtypes (CanCast and PromoteType of opbase)

_COMPUTABLE = {*cabi.REAL, *cabi.COMPLEX} | set(cabi.INTEGER) - {Dtype.INT4, Dtype.UINT1}


def can_cast(source: Dtype, target: Dtype) -> bool:
    """CanCast between dtypes that the host can hold; the 8-bit and smaller floating types are not emulated."""
    if target not in _COMPUTABLE:
        return False
    if source in cabi.COMPLEX and target not in cabi.COMPLEX:
        return False
    if source in cabi.REAL and target in cabi.INTEGER:
        return False
    return source == Dtype.BOOL or target != Dtype.BOOL


def working(dtype: Dtype) -> Dtype:
    """The dtype in which an operator computes: float, or double for double."""
    return Dtype.DOUBLE if dtype == Dtype.DOUBLE else Dtype.FLOAT


def cast(value: np.ndarray, dtype: Dtype) -> np.ndarray:
    """A value of one dtype in another: floating rounded to nearest even, integers truncated."""
    if dtype in cabi.REAL:
        return cabi.round_to(dtype, value)
    if dtype == Dtype.COMPLEX32:
        return cabi.round_to(Dtype.FLOAT16, value)
    if dtype == Dtype.COMPLEX64:
        return cabi.round_to(Dtype.FLOAT, value)
    return np.trunc(value) if dtype in cabi.INTEGER else value


# ---- tolerances


def one_rounding(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """What one operation in the working dtype may miss, beside the final rounding to a narrower dtype."""
    return cabi.ulp(Dtype.FLOAT, value) / 2 if working(dtype) != dtype else np.zeros_like(value)


def some_roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """2 ULP of the working dtype; 4 for double, in which the reference itself is computed."""
    return cabi.ulp(working(dtype), value) * (4 if dtype == Dtype.DOUBLE else 2)


def unit(dtype: Dtype) -> float:
    """What one operation in the working dtype may miss, relative to its result."""
    return 2.0**-53 if dtype == Dtype.DOUBLE else 2.0**-24


def summing(terms: int) -> float:
    """Units, relative to the sum of the magnitudes, by which a sum may miss. In the worst order each of the n - 1
    additions adds one; rounding errors that go either way add up to a small multiple of the square root of that."""
    return min(float(terms), 2.0 * terms**0.5)


def least(dtype: Dtype) -> float:
    """The smallest positive number of the working dtype, which every operation may miss near zero."""
    return 2.0**-1074 if dtype == Dtype.DOUBLE else 2.0**-149


def exp_roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """The same behind an exponential, which for FLOAT16 need only be as good as the polynomial of
    Ascend950's ELU: x^4 / 120 is 2^-20 at 0.1, or 2^-9 of a place. For BFLOAT16, 2^-16 is 2^-8 of a place, to which
    FLOAT adds its roundings."""
    coarse = {Dtype.FLOAT16: 2.0**-20, Dtype.BF16: 2.0**-16 + 2.0**-20}.get(dtype, 0.0)
    return np.maximum(some_roundings(dtype, value), np.abs(value) * coarse)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without loss where that is small."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0) / (1.0 + np.exp(-np.abs(x)))


def sigmoid_roundings(dtype: Dtype, x: np.ndarray, more: int) -> np.ndarray:
    """By how much 1 / (1 + exp(-x)), followed by so many operations, may miss, relative to the result: exp 2 units (for
    16 bits 4, and a 16th of a unit for every unit of x), a sum and a quotient each one, and the product of these two
    where x < 0 another. Twice that for double, in which the reference itself is computed."""
    if dtype == Dtype.DOUBLE:
        return np.full_like(x, 2 * (5 + more) * unit(dtype))
    exponential = 2 if dtype == Dtype.FLOAT else 4 + np.minimum(np.abs(x), 105) / 16
    return (exponential + 3 + more) * unit(dtype) * np.ones_like(x)


def check_close(name: str, memory: Memory, reference: Reference) -> None:
    """Asserts got == cast(round(value +- tolerance)), in which rounding and casting keep order."""
    value, tolerance, dtype = reference
    got = memory.read()
    if memory.dtype in cabi.COMPLEX:
        assert np.all(got.imag == 0)
        got = got.real
    assert got.shape == np.shape(value), f"the reference of {name} has shape {np.shape(value)}, not {got.shape}"
    with np.errstate(all="ignore"):
        tolerance = np.where(np.isfinite(value), tolerance, 0.0)
        bounds = (value - tolerance, value + tolerance)
        low, high = (cast(cast(bound, dtype) if dtype is not None else bound, memory.dtype) for bound in bounds)
        good = np.where(np.isnan(value), np.isnan(got), (low <= got) & (got <= high))
    if not np.all(good):
        at = tuple(np.argwhere(~good)[0])
        raise AssertionError(
            f"{np.count_nonzero(~good)} of {good.size} values of {name} are wrong, the first at {at}: "
            f"got {got[at]!r}, expected {value[at]!r} within [{low[at]!r}, {high[at]!r}]"
        )


# ---- values


def sweep(dtype: Dtype) -> np.ndarray:
    """Every value of a 16-bit dtype; of a wider one all magnitudes, the curved part densely, and what is special."""
    if dtype in (Dtype.FLOAT16, Dtype.BF16):
        return cabi.decode(dtype, np.arange(65536, dtype=np.uint16).view(cabi.storage_type(dtype)))
    random = np.random.default_rng(0)
    magnitudes = np.exp(random.uniform(-103, 88, 20000))
    curved = np.concatenate([random.uniform(low, high, 20000) for low, high in ((-20, 1), (-2, 0), (-0.2, 0))])
    edges = [0.0, np.inf, np.nan, 1e-45, 1.1754944e-38, 3.4028235e38]
    return np.concatenate([magnitudes, -magnitudes, curved, edges, np.negative(edges)])


# ---- views


def views(shape: tuple[int, ...], zero_stride: bool) -> dict[str, tuple[tuple[int, ...] | None, int]]:
    """Strides and offset of a shape's views, by name: what an output may be, and with `zero_stride` an input too."""
    packed = cabi.contiguous_strides(shape)
    if not shape:
        return {"contiguous": ((), 0), "strides null": (None, 0), "offset": ((), 5)}
    reverse = cabi.contiguous_strides(shape[::-1])[::-1]
    found: dict[str, tuple[tuple[int, ...] | None, int]] = {
        "contiguous": (tuple(packed), 0),
        "strides null": (None, 0),
        "offset": (tuple(packed), 5),
        "transposed": (tuple(reverse), 0),
        "rows with gaps": ((*(stride + stride // max(shape[-1], 1) for stride in packed[:-1]), 1), 3),
        "every second": (tuple(2 * stride for stride in packed), 1),
        "transposed every third": (tuple(3 * stride for stride in reverse), 7),
    }
    if zero_stride:
        found["one element"] = ((0,) * len(shape), 2)
        found["one row"] = ((0,) * (len(shape) - 1) + (1,), 0)
    return found


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], zero_stride: bool) -> dict[str, Any]:
    """Strides and an offset that put a shape's elements into memory in any order and with any gaps."""
    strides, reach = [0] * len(shape), draw(st.integers(1, 3))
    for dim in draw(st.permutations(range(len(shape)))):
        strides[dim] = 0 if zero_stride and draw(st.booleans()) else reach
        reach = reach * max(shape[dim], 1) + draw(st.integers(0, 2))
    return {"shape": shape, "strides": tuple(strides), "offset": draw(st.integers(0, 9))}


def shapes(most_dims: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes, some of them empty."""
    sizes = st.lists(st.sampled_from((1, 2, 3, 1, 4, 0)), max_size=most_dims).map(tuple)
    return sizes.filter(lambda shape: np.prod(shape) <= 300)


def same_shape_calls(draw: st.DrawFn, operator: Operator, dtypes: Sequence[Dtype], most_dims: int) -> Changes:
    """Draws changes that give an operator's tensors one dtype, one shape, and each its own layout."""
    shape, dtype = draw(shapes(most_dims)), draw(st.sampled_from(dtypes))
    return {
        name: Tensor(dtype, **draw(layouts(shape, zero_stride=name not in operator.outputs)))
        for name in operator.tensors
    }
