"""How a table of the specification is run through the C ABI.

An operator is its prototype filled with valid arguments, and a float64 reference. A row changes some of the arguments
and says on which products the call still succeeds, and otherwise with which status and which words it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import PARAM_INVALID, PARAM_NULLPTR, PRODUCTS, SUCCESS, Dtype, Format, Memory

ANYWHERE = frozenset(PRODUCTS)
NOWHERE: frozenset[str] = frozenset()
HOST = frozenset({"host"})
WITH_BF16 = ANYWHERE - {"Ascend310P", "Ascend910"}


# ---- arguments


@dataclass(frozen=True)
class Tensor:
    """A tensor argument. `values` are repeated over its elements; without them the operator's own are used."""

    dtype: Dtype = Dtype.FLOAT
    shape: tuple[int, ...] = (2, 3)
    strides: tuple[int, ...] | None = None
    offset: int = 0
    format: Format = Format.ND
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
class Same:
    """The memory of another argument: its very descriptor, or a second one."""

    name: str
    own_descriptor: bool = False


# Stands for workspaceSize and executor where they are not null.
GIVEN = object()

# Expected values as float64, and by how much the working precision may miss them.
Reference = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator: its prototype's arguments in order, which of them it writes, and what it computes."""

    api: str
    arguments: dict[str, Any]
    output: str
    # (dtype, inputs by name as float64, the other arguments by name) -> Reference
    reference: Callable[[Dtype, dict[str, np.ndarray], dict[str, Any]], Reference]
    values: Callable[[Dtype, str], Sequence[float]]

    @property
    def source(self) -> str:
        """The tensor argument whose dtype is computed in."""
        return next(name for name, value in self.arguments.items() if isinstance(value, Tensor))

    @property
    def names(self) -> list[str]:
        """Names of all parameters of stage 1, in order."""
        return [*self.arguments, "workspaceSize", "executor"]

    def changed(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The valid arguments with `argument` or `argument.attribute` replaced."""
        arguments = {**self.arguments, "workspaceSize": GIVEN, "executor": GIVEN}
        for key, value in changes.items():
            name, _, attribute = key.partition(".")
            arguments[name] = replace(arguments[name], **{attribute: value}) if attribute else value
        return arguments


class Row(NamedTuple):
    """One line of a table: the check's number in the specification, a condition, the change that brings it about, and
    what follows from it."""

    number: str
    condition: str
    changes: dict[str, Any]
    accepted: frozenset[str] = NOWHERE  # the products on which it is no failure
    code: int = PARAM_INVALID
    words: tuple[str, ...] = ()  # in the error text; the first is the argument

    def on(self, product: str) -> int:
        """The status on a product."""
        return SUCCESS if product in self.accepted else self.code


# ---- one call


class Prepared:
    """Memory and descriptors of one call's arguments; gives the descriptors back when it is left."""

    def __init__(self, operator: Operator, changes: dict[str, Any]):
        self.operator = operator
        self.arguments = operator.changed(changes)
        self.memory: dict[str, Memory] = {}
        self.handles: dict[str, int] = {}
        self._owned: list[tuple[Callable[[int], int], int]] = []

    def __enter__(self) -> Prepared:
        host = cabi.host()
        for name, spec in self.arguments.items():
            if isinstance(spec, Tensor):
                memory = self.memory[name] = Memory(spec.dtype, spec.shape, spec.strides, spec.offset)
                if name != self.operator.output or self.operator.source == name:
                    self._fill(name, spec)
                self.handles[name] = memory.descriptor(spec.format)
                self._owned.append((host.aclDestroyTensor, self.handles[name]))
            elif isinstance(spec, Scalar):
                self.handles[name] = cabi.create_scalar(spec.value, spec.dtype)
                self._owned.append((host.aclDestroyScalar, self.handles[name]))
        for name, spec in self.arguments.items():
            if isinstance(spec, Same):
                self.memory[name] = self.memory[spec.name]
                self.handles[name] = self.handles[spec.name]
                if spec.own_descriptor:
                    self.handles[name] = self.memory[name].descriptor()
                    self._owned.append((host.aclDestroyTensor, self.handles[name]))
        self.before = {name: memory.raw.copy() for name, memory in self.memory.items()}
        self.inputs = {name: memory.read() for name, memory in self.memory.items() if memory.dtype in _COMPUTABLE}
        return self

    def _fill(self, name: str, spec: Tensor) -> None:
        if spec.dtype in _COMPUTABLE:
            values = self.operator.values(spec.dtype, name) if spec.values is None else spec.values
            self.memory[name].write(values)

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Destroys the descriptors."""
        for destroy, handle in self._owned:
            assert destroy(handle) == SUCCESS
        self._owned.clear()

    def stage1(self) -> cabi.Stage1:
        """Runs the first stage."""
        given = [
            self.handles.get(name, spec if isinstance(spec, bool) else None)
            for name, spec in self.arguments.items()
            if name in self.operator.arguments
        ]
        return cabi.Stage1(
            self.operator.api,
            given,
            workspace_size=self.arguments["workspaceSize"] is GIVEN,
            executor=self.arguments["executor"] is GIVEN,
        )

    @property
    def output(self) -> Memory:
        """The memory the operator writes."""
        return self.memory[self.operator.output]

    def check_unchanged(self) -> None:
        """Nothing was written at all."""
        for name, memory in self.memory.items():
            assert np.array_equal(memory.raw, self.before[name]), f"{name} was written"

    def check_bounds(self) -> None:
        """Only elements of the output were written."""
        for name, memory in self.memory.items():
            assert memory.untouched(), f"written outside the elements of {name}"
            if memory is not self.output:
                assert np.array_equal(memory.raw, self.before[name]), f"input {name} was written"

    def check_values(self) -> None:
        """The output is the reference rounded once to the working dtype, then cast to its own."""
        dtype = self.memory[self.operator.source].dtype
        with np.errstate(all="ignore"):
            value, tolerance = self.operator.reference(dtype, self.inputs, self.arguments)
        check_close(self.output.read(), value, tolerance, dtype, self.output.dtype)


@dataclass
class Outcome:
    """What became of a call: the status of stage 1 and its error text."""

    status: int
    text: str
    prepared: Prepared = field(repr=False)


def call(operator: Operator, changes: dict[str, Any], product: str = "Ascend910B") -> Outcome:
    """Both stages on the null stream, with everything that must hold whatever the arguments are.

    A failure leaves every byte as it was, hands out no executor, and says why; a success writes the output's elements
    only, and the right values into them. Nothing is left behind in either case.
    """
    living = cabi.live_objects()
    with cabi.product(product), Prepared(operator, changes) as prepared:
        described = cabi.live_objects()
        first = prepared.stage1()
        outcome = Outcome(first.status, first.text, prepared)
        if first.status != SUCCESS:
            assert first.executor in (None, cabi.UNSET_EXECUTOR)
            assert first.text
            prepared.check_unchanged()
        else:
            assert first.text == ""
            assert first.executor not in (None, cabi.UNSET_EXECUTOR)
            assert first.workspace_size != cabi.UNSET_SIZE
            assert cabi.live_objects("executor") > 0
            prepared.check_unchanged()  # stage 1 does not compute
            assert first.run() == SUCCESS
            assert cabi.host().aclrtSynchronizeStream(None) == SUCCESS
            assert first.workspace.untouched()
            prepared.check_bounds()
            prepared.check_values()
            if prepared.output.view.size == 0:
                assert first.workspace_size == 0
        assert cabi.live_objects() == described
    assert cabi.live_objects() == living
    return outcome


# ---- tables


def nulls(operator: Operator) -> list[Row]:
    """Checks 1 and 2, alike for every operator."""
    given = [name for name, value in operator.changed({}).items() if value is GIVEN]
    pointers = [name for name, value in operator.arguments.items() if not isinstance(value, bool)]
    return [Row("1", f"{name} null", {name: None}, code=PARAM_NULLPTR, words=(name,)) for name in given] + [
        Row("2", f"{name} null", {name: None}, code=PARAM_NULLPTR, words=(name,)) for name in pointers
    ]


def on_all(operator: Operator, attribute: str, value: Any) -> dict[str, Any]:
    """The same change on every tensor of an operator."""
    return {f"{name}.{attribute}": value for name, spec in operator.arguments.items() if isinstance(spec, Tensor)}


def check_row(operator: Operator, row: Row, product: str) -> None:
    """Runs one row on one product, and reads the error text if it fails."""
    outcome = call(operator, row.changes, product)
    assert outcome.status == row.on(product), f"status {outcome.status}, expected {row.on(product)}: {outcome.text}"
    if outcome.status != SUCCESS:
        # A null pointer is one on every product; everything else depends on the product's rules.
        always = (operator.api,) if outcome.status == PARAM_NULLPTR else (operator.api, product)
        for word in (*always, *row.words):
            assert word in outcome.text, f"{word!r} is not in {outcome.text!r}"


def pairs(rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Each two failures that can be brought about in one call, in the order in which they are checked.

    The two nulls of check 1 have no order between them.
    """

    def clash(first: Row, second: Row) -> bool:
        return any(
            a == b or (a.partition(".")[0] == b.partition(".")[0] and None in (first.changes[a], second.changes[b]))
            for a in first.changes
            for b in second.changes
        )

    return [
        (first, second)
        for first, second in combinations(rows, 2)
        if not clash(first, second) and not first.number == second.number == "1"
    ]


def check_order(operator: Operator, first: Row, second: Row, product: str) -> None:
    """Two violations in one call: the earlier check decides, and reports as if the later violation were not there."""
    alone = call(operator, first.changes, product)
    both = call(operator, {**first.changes, **second.changes}, product)
    assert (both.status, both.text) == (alone.status, alone.text)


# ---- dtypes (spec 0.4)

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


def exp_roundings(dtype: Dtype, value: np.ndarray) -> np.ndarray:
    """The same behind an exponential, which for 16-bit results need only be as good as the polynomial of spec 1.2:
    x^4 / 120 is 2^-20 at 0.1, or 2^-9 of a place of FLOAT16."""
    coarse = np.abs(value) * 2.0**-20 if working(dtype) != dtype else 0.0
    return np.maximum(some_roundings(dtype, value), coarse)


def check_close(got: np.ndarray, value: np.ndarray, tolerance: np.ndarray, dtype: Dtype, out_dtype: Dtype) -> None:
    """Asserts got == cast(round(value +- tolerance)), in which rounding and casting keep order."""
    if out_dtype in cabi.COMPLEX:
        assert np.all(got.imag == 0)
        got = got.real
    with np.errstate(all="ignore"):
        tolerance = np.where(np.isfinite(value), tolerance, 0.0)
        low, high = (cast(cast(bound, dtype), out_dtype) for bound in (value - tolerance, value + tolerance))
        good = np.where(np.isnan(value), np.isnan(got), (low <= got) & (got <= high))
    if not np.all(good):
        at = tuple(np.argwhere(~good)[0])
        raise AssertionError(
            f"{np.count_nonzero(~good)} of {good.size} values are wrong, the first at {at}: "
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


@st.composite
def calls(draw: st.DrawFn, operator: Operator, dtypes: Sequence[Dtype], most_dims: int) -> dict[str, Any]:
    """Changes that give an operator's tensors one dtype, one shape, and each its own layout."""
    shape, dtype = draw(shapes(most_dims)), draw(st.sampled_from(dtypes))
    changes: dict[str, Any] = {}
    for name, spec in operator.arguments.items():
        if isinstance(spec, Tensor):
            changes[name] = Tensor(dtype, **draw(layouts(shape, name != operator.output)))
    return changes
