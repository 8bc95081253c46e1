"""Runs a table of the specification through the C ABI.

An operator is its prototype filled with valid arguments, and a float64 reference for each output. A row changes some of
the arguments and states on which products the call still succeeds, and otherwise the status and words of the failure. A
table is an operator with its rows and the data that the tests of all operators need; a file `<operator>_table.py` that
defines TABLES gets those tests (test_tables.py, test_executors.py). Its DEVIATIONS are the rows that deliberately
differ from CANN.

Changes are a dict. Its keys are an argument's name, or `argument.attribute` to change one attribute of a Tensor,
Scalar, Ints or Bools: {"x.dtype": Dtype.FLOAT16, "epsilon": 1e-5, "weight": None, "stride.values": (2, 2)}. The names
"workspaceSize" and "executor" may be set to None, too.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import (
    CANN_RELEASES,
    FIND_KERNEL_ERROR,
    LATER,
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
# A prototype's arguments are these classes if passed by pointer, and Python's bool, int, float (by value) and str
# (char*). None is a null pointer: an absent optional argument; as a default, an absent tensor.


@dataclass(frozen=True)
class Tensor:
    """A tensor argument. `values` are repeated over its elements; by default, the operator's own are used."""

    dtype: Dtype = Dtype.FLOAT
    shape: tuple[int, ...] = (2, 3)
    strides: tuple[int, ...] | None = None
    offset: int = 0
    format: Format | None = None  # default: the operator's for this shape
    values: Sequence[float] | np.ndarray | None = None


@dataclass(frozen=True)
class Scalar:
    """A host-side scalar argument."""

    value: complex = 1.0
    dtype: Dtype = Dtype.FLOAT

    @property
    def as_float(self) -> float:
        """aclScalar::ToFloat: the value in its own dtype, then rounded to float."""
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
    """The memory of another argument: its descriptor, or a second descriptor."""

    name: str
    own_descriptor: bool = False


# Stands for a non-null workspaceSize or executor.
GIVEN = object()


@dataclass(frozen=True)
class Given:
    """The arguments of a reference."""

    product: str
    dtype: Dtype  # of the operator's first tensor
    inputs: dict[str, np.ndarray]  # the elements of the present tensors, as float64
    arguments: dict[str, Any]  # all arguments as in the table; None if absent


class Reference(NamedTuple):
    """Expected values as float64, the error bound of the arithmetic before rounding, and the dtype to which it rounds
    once before the cast to the output's dtype; None if that cast is the only rounding."""

    value: np.ndarray
    tolerance: np.ndarray | float
    dtype: Dtype | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator: its prototype's arguments in order, its outputs, and whether CANN generates its checks."""

    api: str
    arguments: dict[str, Any]
    # The reference of each output by name, in the prototype's order; None means that nothing is written. An output that
    # is the first tensor of the prototype is updated in place.
    outputs: dict[str, Callable[[Given], Reference | None]]
    values: Callable[[Dtype, str], Sequence[float]]  # for a tensor with that dtype and name, not all zero
    # Changes that make every output empty; `host` accepts them, and they need no memory at all.
    empty: Changes
    optional: frozenset[str] = frozenset()  # pointers that may be null, at least under some condition
    any_rank: bool = False  # of an elementwise operator's tensors; else at most 8 dimensions
    broadcasts: bool = False  # an elementwise operator broadcasts its inputs to the shape of its output
    one_format: bool = False  # an elementwise operator refuses tensors of different formats
    generated: bool = False  # CANN generates its checks: executor and workspaceSize are checked after the tensors
    missing: frozenset[str] = NOWHERE  # products without it: 561003 after the null checks
    # Products that find the operator missing only after checking the arguments, and the status. A row that they refuse
    # for this reason has a code that no argument gives.
    lacks: dict[str, int] = field(default_factory=dict)
    # Changes to this many rows and columns, all tensors contiguous; by default all have that shape.
    sizes: Callable[[int, int], Changes] | None = None
    format_of: Callable[[tuple[int, ...]], Format] = lambda shape: Format.ND  # of a tensor with this shape

    @property
    def tensors(self) -> list[str]:
        """Names of the tensor arguments present by default, in order."""
        return [name for name, value in self.arguments.items() if isinstance(value, Tensor)]

    @property
    def places(self) -> list[str]:
        """Names of all tensor arguments, in order: an executor counts absent ones, too."""
        return [name for name, value in self.arguments.items() if value is None or isinstance(value, Tensor)]

    @property
    def source(self) -> str:
        """The first tensor."""
        return self.tensors[0]

    @property
    def inputs(self) -> list[str]:
        """Names of the input tensors."""
        return [name for name in self.tensors if self.reads(name)]

    def reads(self, name: str) -> bool:
        """True if a tensor is an input."""
        return name not in self.outputs or name == self.source

    def of_size(self, rows: int, columns: int) -> Changes:
        """Changes to a call with this many rows and columns."""
        return self.sizes(rows, columns) if self.sizes else on_all(self, "shape", (rows, columns))

    def changed(self, changes: Changes) -> dict[str, Any]:
        """The valid arguments with `argument` or `argument.attribute` replaced."""
        arguments = {**self.arguments, "workspaceSize": GIVEN, "executor": GIVEN}
        of_attributes: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            name, _, attribute = key.partition(".")
            assert name in arguments, f"{self.api} has no argument {name}"
            if attribute:
                of_attributes.setdefault(name, {})[attribute] = value
            else:
                arguments[name] = value
                of_attributes.pop(name, None)
        return arguments | {name: replace(arguments[name], **values) for name, values in of_attributes.items()}


class Until(NamedTuple):
    """The outcome of a row up to a release of CANN, if it is another than that of the newest public source."""

    release: str  # the last with this outcome
    accepted: frozenset[str] = NOWHERE  # the products on which the row is valid
    code: int = PARAM_INVALID
    source: Source | None = None  # if it differs from the row's

    def holds(self, release: str) -> bool:
        """Whether it is that of a release."""
        return CANN_RELEASES.index(release) <= CANN_RELEASES.index(self.release)


class Row(NamedTuple):
    """One line of a table: the check's number in the specification, a condition, the change that causes it, and the
    outcome. A code that only stage 2 can find is that of the stream's synchronisation."""

    number: str
    condition: str
    changes: Changes
    accepted: frozenset[str] = NOWHERE  # the products on which it is valid
    code: int = PARAM_INVALID
    words: tuple[str, ...] = ()  # in the error text; the first is the argument
    source: Source | None = None  # if it differs from that of the check's number
    other: tuple[frozenset[str], int] | None = None  # products that refuse it with another code
    until: Until | None = None  # if releases differ

    def on(self, operator: Operator, product: str, release: str = LATER) -> int:
        """The status on a product, by the checks of a release."""
        if self.until and self.until.holds(release):
            return self._replace(accepted=self.until.accepted, code=self.until.code, until=None).on(operator, product)
        if product in operator.missing and self.code != PARAM_NULLPTR:
            return FIND_KERNEL_ERROR
        if product in operator.lacks and self.code not in (PARAM_NULLPTR, PARAM_INVALID):
            return operator.lacks[product]
        if product in self.accepted:
            return SUCCESS
        return self.other[1] if self.other and product in self.other[0] else self.code


def releases_of(row: Row) -> list[str]:
    """The releases whose checks a row is tried with: the default, and those in which it differs."""
    return [name for name in CANN_RELEASES if name == LATER or (row.until and row.until.holds(name))]


class Deviation(NamedTuple):
    """Rows that differ from CANN on purpose, by operator, number and condition (each a regular expression), and the
    section with the reason: of docs/emulation/operators.md, or a page below docs and a section of it. `lacking`: only
    their cells of products that lack the operator."""

    api: str
    number: str
    condition: str
    section: str
    lacking: bool = False

    @property
    def reason(self) -> str:
        """The page below docs, and its section."""
        return self.section if "#" in self.section else f"emulation/operators.md#{self.section}"

    def fits(self, operator: Operator, row: Row) -> bool:
        """Whether it is about a row."""
        parts = ((self.api, operator.api), (self.number, row.number), (self.condition, row.condition))
        return all(re.fullmatch(pattern, text) for pattern, text in parts)


class DtypeRow(NamedTuple):
    """A combination of dtypes, one for each tensor present by default, in order, and the products that accept it."""

    dtypes: tuple[Dtype, ...]
    accepted: frozenset[str]


@dataclass(frozen=True, eq=False)
class Table:
    """An operator with all data that the tests of all operators need."""

    operator: Operator
    checks: list[Row]  # the failures, in the order of the checks: every two of them are also combined
    more: list[Row]  # other failures, without a defined order or with different accepted products
    accepted: list[Row]  # successes on every product that has the operator
    dtypes: list[DtypeRow]  # accepted rows, with which everything else is tested
    shapes: list[Changes]  # shapes in which each tensor is tested in each of its views
    calls: Callable[[st.DrawFn], Changes]  # draws any valid call of the `host` product
    sources: Sources  # of the rows, by their numbers and conditions
    # True if the dtypes, by argument name, are accepted on a product; by default if they match a row.
    accepts: Callable[[dict[str, Dtype], str], bool] | None = None
    aliases: Sequence[tuple[str, str]] = ()  # an output and an input that may share memory

    def accepts_dtypes(self, dtypes: tuple[Dtype, ...], product: str) -> bool:
        """True if a product accepts one dtype for each tensor."""
        if self.accepts:
            return self.accepts(dict(zip(self.operator.tensors, dtypes, strict=True)), product)
        return any(row.dtypes == dtypes and product in row.accepted for row in self.dtypes)

    def of_dtypes(self, dtypes: Iterable[Dtype]) -> Changes:
        """Changes that give the tensors these dtypes."""
        return {f"{name}.dtype": dtype for name, dtype in zip(self.operator.tensors, dtypes, strict=True)}


def table_modules() -> dict[str, ModuleType]:
    """Every file of this folder that ends in _table.py, by the beginning of its name."""
    files = sorted(Path(__file__).parent.glob("*_table.py"))
    return {file.stem.removesuffix("_table"): importlib.import_module(f"{__package__}.{file.stem}") for file in files}


def tables_by_file() -> dict[str, Sequence[Table]]:
    """The tables of every such file."""
    return {name: module.TABLES for name, module in table_modules().items()}


def all_deviations() -> list[Deviation]:
    """Of every such file that has DEVIATIONS."""
    return [each for module in table_modules().values() for each in getattr(module, "DEVIATIONS", ())]


def all_tables() -> list[Table]:
    """The tables of all operators."""
    return [table for tables in tables_by_file().values() for table in tables]


# ---- One call


@functools.lru_cache(maxsize=1024)
def _few_elements(operator: Operator, dtype: Dtype, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return cabi.repeated(cabi.encode(dtype, operator.values(dtype, name)), shape)


def _own_elements(operator: Operator, dtype: Dtype, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The operator's own values of a tensor, as stored; those of small tensors are kept."""
    make = _few_elements if math.prod(shape) <= 1024 else _few_elements.__wrapped__
    return make(operator, dtype, name, shape)


class Prepared:
    """Memory and descriptors of one call's arguments; destroys the descriptors on exit."""

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
        return self

    @functools.cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """What the tensors had before the call."""
        memories = self.memory.items()
        return {name: memory.read(self.before[name]) for name, memory in memories if memory.dtype in _COMPUTABLE}

    def _create(self, name: str, spec: Any) -> None:
        host = cabi.host()
        if isinstance(spec, Tensor):
            self.memory[name] = self._memory(spec.dtype, spec.shape, spec.strides, spec.offset)
            if self.operator.reads(name) and spec.dtype in _COMPUTABLE:
                if spec.values is None:
                    self.memory[name].view[...] = _own_elements(self.operator, spec.dtype, name, spec.shape)
                else:
                    self.memory[name].write(spec.values)
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
        """Runs the first stage, then overwrites strings: it must have copied them."""
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
        """The memory of the present outputs, by name."""
        return {name: self.memory[name] for name in self.operator.outputs if name in self.memory}

    @property
    def output(self) -> Memory:
        """The memory of the first output."""
        return next(iter(self.outputs.values()))

    def check_unchanged(self) -> None:
        """Nothing was written at all."""
        for name, memory in self.memory.items():
            assert memory.has(self.before[name]), f"{name} was written"

    def check_bounds(self) -> None:
        """Only elements of the outputs were written."""
        outputs = list(self.outputs.values())
        for name, memory in self.memory.items():
            assert memory.untouched(), f"written outside the elements of {name}"
            if not any(memory is output for output in outputs):
                assert memory.has(self.before[name]), f"input {name} was written"

    def references(self, product: str) -> dict[str, Reference | None]:
        """The expected contents of each output; None if it is not written, or empty."""
        given = Given(product, self.memory[self.operator.source].dtype, self.inputs, self.arguments)
        with np.errstate(all="ignore"):
            return {
                name: self.operator.outputs[name](given) if memory.view.size else None
                for name, memory in self.outputs.items()
            }

    def check_values(self, product: str = "Ascend910B") -> None:
        """Each output equals its reference, rounded and cast accordingly; one without a reference was not written."""
        for name, reference in self.references(product).items():
            memory = self.outputs[name]
            if reference is None:
                assert memory.has(self.before[name]), f"{name} was written"
            else:
                check_close(name, memory, reference)


@dataclass
class Outcome:
    """The outcome of a call: the status of stage 1, or of the stream after stage 2, and the error text."""

    status: int
    text: str
    prepared: Prepared = field(repr=False)

    def view(self, name: str | None = None) -> np.ndarray:
        """An output, by default the first, as stored."""
        return (self.prepared.memory[name] if name else self.prepared.output).view


def call(operator: Operator, changes: Changes, product: str = "Ascend910B", release: str = LATER) -> Outcome:
    """Both stages on the null stream, with all invariants that hold for any arguments.

    A failure of stage 1 changes no byte, returns no executor, and gives a reason; stage 2 writes only elements of the
    outputs, and on success the right values. Nothing is leaked in any case.
    """
    with (
        cabi.nothing_left(),
        cabi.product(product),
        cabi.cann_release(release),
        Prepared(operator, changes) as prepared,
    ):
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


# ---- Tables

_SHAPE = re.compile(r"\[[-0-9, ]*\]")


def in_text(name: str) -> str:
    """An argument's name in error texts: without "Optional", since it is present."""
    return name.removesuffix("Optional")


def nulls(operator: Operator) -> list[Row]:
    """The first two checks, equal for every operator of a family: required pointers in the prototype's order, and
    executor and workspaceSize, which handwritten operators check first and generated ones last."""
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


def check_row(operator: Operator, row: Row, product: str, release: str = LATER) -> None:
    """Runs one row on one product by the checks of a release, and checks the error text if it fails."""
    outcome = call(operator, row.changes, product, release)
    expected = row.on(operator, product, release)
    assert outcome.status == expected, f"{product}: status {outcome.status}, expected {expected}: {outcome.text}"
    if outcome.status == SUCCESS:
        return
    # Null pointers, and errors found by stage 2, fail on every product; everything else depends on the product's rules.
    product_matters = outcome.status not in (PARAM_NULLPTR, cabi.AICORE_EXCEPTION)
    words = (operator.api, product) if product_matters else (operator.api,)
    # A product that lacks the operator, or refuses all such calls, has its own words.
    for word in words if expected != row.code else (*words, *row.words):
        assert word in outcome.text, f"{product}: {word!r} is not in {outcome.text!r}"


def pairs(operator: Operator, rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Every two failures that can be combined in one call, in the order of their checks.

    executor and workspaceSize have no mutual order if they are checked first.
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
    """Two violations in one call: the earlier check decides, and reports as without the later violation, except that
    the shapes it quotes may be the second's. `alone` is the call with the first only."""
    both = call(operator, {**first.changes, **second.changes}, product)
    assert both.status == alone.status == first.on(operator, product), f"{first.condition}, then {second.condition}"
    assert _SHAPE.sub("[]", both.text) == _SHAPE.sub("[]", alone.text), f"{first.condition}, then {second.condition}"


# ---- dtypes (CanCast and PromoteType of opbase)

_COMPUTABLE = {*cabi.REAL, *cabi.COMPLEX} | set(cabi.INTEGER) - {Dtype.INT4, Dtype.UINT1}


def can_cast(source: Dtype, target: Dtype) -> bool:
    """CanCast between dtypes that the host supports; floating types of 8 bits and fewer are not emulated."""
    if target not in _COMPUTABLE:
        return False
    if source in cabi.COMPLEX and target not in cabi.COMPLEX:
        return False
    if source in cabi.REAL and target in cabi.INTEGER:
        return False
    return source == Dtype.BOOL or target != Dtype.BOOL


def working(dtype: Dtype) -> Dtype:
    """The compute dtype of an operator: float, or double for double."""
    return Dtype.DOUBLE if dtype == Dtype.DOUBLE else Dtype.FLOAT


def widest(*dtypes: Dtype) -> Dtype:
    """What floating dtypes are promoted to: two different 16-bit types to FLOAT."""
    different = set(dtypes)
    return dtypes[0] if len(different) == 1 else Dtype.DOUBLE if Dtype.DOUBLE in different else Dtype.FLOAT


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
    """The error of one operation in the working dtype, in addition to the final rounding to a narrower dtype."""
    return cabi.ulp(Dtype.FLOAT, value) / 2 if working(dtype) != dtype else np.zeros_like(value)


def some_roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """2 ULP of the working dtype; 4 for double, in which the reference itself is computed."""
    return cabi.ulp(working(dtype), value) * (4 if dtype == Dtype.DOUBLE else 2)


def unit(dtype: Dtype) -> float:
    """The relative error of one operation in the working dtype."""
    return 2.0**-53 if dtype == Dtype.DOUBLE else 2.0**-24


def summing(terms: int) -> float:
    """The error of a sum in units, relative to the sum of the magnitudes. In the worst order each of the n - 1
    additions adds one; rounding errors of both signs add up to a small multiple of the square root of that."""
    return min(float(terms), 2.0 * terms**0.5)


def least(dtype: Dtype) -> float:
    """The smallest positive number of the working dtype, the possible error of every operation near zero."""
    return 2.0**-1074 if dtype == Dtype.DOUBLE else 2.0**-149


def exp_roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """The error after an exponential, which for FLOAT16 need only match the polynomial of Ascend950's ELU: x^4 / 120 is
    2^-20 at 0.1, or 2^-9 of a place. For BFLOAT16, 2^-16 is 2^-8 of a place, plus FLOAT's roundings."""
    coarse = {Dtype.FLOAT16: 2.0**-20, Dtype.BF16: 2.0**-16 + 2.0**-20}.get(dtype, 0.0)
    return np.maximum(some_roundings(dtype, value), np.abs(value) * coarse)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), accurate for small results."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0) / (1.0 + np.exp(-np.abs(x)))


def sigmoid_roundings(dtype: Dtype, x: np.ndarray, more: int) -> np.ndarray:
    """The relative error of 1 / (1 + exp(-x)), followed by this many operations: exp 2 units (for 16 bits 4, and a 16th
    of a unit for every unit of x), a sum and a quotient one each, and for x < 0 another for the product of these two.
    Twice that for double, in which the reference itself is computed."""
    if dtype == Dtype.DOUBLE:
        return np.full_like(x, 2 * (5 + more) * unit(dtype))
    exponential = 2 if dtype == Dtype.FLOAT else 4 + np.minimum(np.abs(x), 105) / 16
    return (exponential + 3 + more) * unit(dtype) * np.ones_like(x)


def check_close(name: str, memory: Memory, reference: Reference) -> None:
    """Asserts got == cast(round(value +- tolerance)); rounding and casting are monotonic."""
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
    """Every value of a 16-bit dtype; for a wider one all magnitudes, the curved part densely, and special values."""
    if dtype in (Dtype.FLOAT16, Dtype.BF16):
        return cabi.decode(dtype, np.arange(65536, dtype=np.uint16).view(cabi.storage_type(dtype)))
    random = np.random.default_rng(0)
    magnitudes = np.exp(random.uniform(-103, 88, 20000))
    curved = np.concatenate([random.uniform(low, high, 20000) for low, high in ((-20, 1), (-2, 0), (-0.2, 0))])
    edges = [0.0, np.inf, np.nan, 1e-45, 1.1754944e-38, 3.4028235e38]
    return np.concatenate([magnitudes, -magnitudes, curved, edges, np.negative(edges)])


# ---- views


def views(shape: tuple[int, ...], zero_stride: bool) -> dict[str, tuple[tuple[int, ...] | None, int]]:
    """Strides and offset of a shape's views, by name: for outputs, and with `zero_stride` for inputs, too."""
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
    """Strides and an offset that place a shape's elements in memory in any order and with any gaps."""
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
