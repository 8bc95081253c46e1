"""Tests of the C interface: every row of the conformance tables, values, views, streams and times."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tests import cabi
from tests.cabi import REAL, SUCCESS, Dtype
from tests.conformance.machinery import Changes, DtypeRow, Operator, Prepared, Reference, Row, Table, all_tables, views
from tests.conformance.provenance import own
from tests.conformance.report import deviation, of_lacking, rows_of, source_of
from tests.verify.observation import Case, Observation

SIZES = ((1, 1), (3, 65), (64, 1000))
TIMED_SIZE = (1024, 1024)
REPETITIONS = 9


class Launched:
    """A call whose first stage succeeded, with its workspace on the device."""

    def __init__(self, first: cabi.Stage1):
        self.api, self.size, self.executor = first.api, first.workspace_size, first.executor
        self._workspace = cabi.allocate(self.size) if self.size else None

    def stage2(self, stream: int | None = None) -> int:
        """Runs the second stage."""
        return cabi.stage2(self.api, self.executor, self.size, self._workspace, stream)

    def free(self) -> None:
        """Frees the workspace."""
        if self._workspace:
            cabi.host().aclrtFree(self._workspace)


def on_the_null_stream(launched: Launched) -> int:
    """The status of stage 2, otherwise that of the stream."""
    return launched.stage2() or int(cabi.host().aclrtSynchronizeStream(None))


def on_two_streams(launched: Launched) -> int:
    """The same on a separate stream; another one waits for it by an event."""
    host = cabi.host()
    streams = [ctypes.c_void_p() for _ in range(2)]
    event = ctypes.c_void_p()
    made = [host.aclrtCreateStream(ctypes.byref(stream)) for stream in streams]
    made.append(host.aclrtCreateEvent(ctypes.byref(event)))
    first, second = (stream.value for stream in streams)
    status = next((status for status in made if status), SUCCESS)
    status = status or launched.stage2(first)
    status = status or host.aclrtRecordEvent(event, first) or host.aclrtStreamWaitEvent(second, event)
    status = status or host.aclrtSynchronizeStream(second)
    status = status or host.aclrtDestroyEvent(event)
    for stream in (first, second):
        status = status or host.aclrtDestroyStream(stream)
    return int(status)


def observe(
    operator: Operator, changes: Changes, product: str, launch: Callable[[Launched], int] = on_the_null_stream
) -> Observation:
    """Both stages of a call in device memory; checks the results and that nothing else was written."""
    with Prepared(operator, changes, cabi.DeviceMemory) as prepared:
        memories = {id(memory): memory for memory in prepared.memory.values()}.values()
        try:
            for memory in memories:
                memory.upload()
            first = prepared.stage1()
            seen = Observation(str(first.status), first.text)
            if first.status == SUCCESS:
                launched = Launched(first)
                status = launch(launched)
                seen.outcome, seen.text = str(status), cabi.error_text()
                launched.free()
                if status != SUCCESS:
                    return seen  # the device may not be usable for copies any more
            for memory in memories:
                memory.download()
            _judge(prepared, product, seen)
            return seen
        finally:
            for memory in memories:
                memory.free()


def _judge(prepared: Prepared, product: str, seen: Observation) -> None:
    """Checks a call's memory, and measures the distance of its results from the exact ones."""
    try:
        if seen.outcome != str(SUCCESS):
            prepared.check_unchanged()
            return
        prepared.check_bounds()
        for name, reference in prepared.references(product).items():
            memory = prepared.outputs[name]
            if reference is not None and memory.dtype in REAL:
                error = _error(memory.dtype, memory.read(), reference)
                seen.errors[memory.dtype.name] = max(error, seen.errors.get(memory.dtype.name, 0.0))
        prepared.check_values(product)
    except AssertionError as error:
        seen.wrong = str(error)


def _error(dtype: Dtype, got: np.ndarray, reference: Reference) -> float:
    """The largest distance from the exact values, in units in the last place of the dtype, or of the dtype to which the
    result is rounded before, if that is coarser."""
    finite = np.isfinite(reference.value) & np.isfinite(got)
    exact = np.asarray(reference.value, np.float64)[finite]
    units = [cabi.ulp(each, exact) for each in (dtype, reference.dtype) if each in REAL]
    return float((np.abs(got[finite] - exact) / np.maximum.reduce(units)).max(initial=0.0))


def observe_times(operator: Operator, changes: Changes, product: str) -> Observation:
    """The median time of each stage, stage 2 until the stream is done, over calls after a first one."""
    seconds: dict[str, list[float]] = {"stage 1": [], "stage 2": []}
    seen = observe(operator, changes, product)
    with Prepared(operator, changes, cabi.DeviceMemory) as prepared:
        for memory in prepared.memory.values():
            memory.upload()
        for _ in range(REPETITIONS):
            begin = time.perf_counter()
            first = prepared.stage1()
            end = time.perf_counter()
            launched = Launched(first)
            start = time.perf_counter()
            on_the_null_stream(launched)
            seconds["stage 2"].append(time.perf_counter() - start)
            seconds["stage 1"].append(end - begin)
            launched.free()
        for memory in {id(memory): memory for memory in prepared.memory.values()}.values():
            memory.free()
    seen.seconds = {name: statistics.median(times) for name, times in seconds.items()}
    return seen


def _of_row(table: Table, row: Row, product: str, release: str) -> Case:
    operator = table.operator
    reason = deviation(operator, row) or of_lacking(operator, row, product)
    return Case(
        f"status/{operator.api}/{row.number}/{row.condition}",
        partial(observe, operator, row.changes, product),
        str(row.on(operator, product, release)),
        ": ".join(own(reason.reason) if reason else source_of(table, row, release)),
        reason.reason if reason else "",
    )


def _dtypes(row: DtypeRow) -> str:
    return "-".join(dtype.name for dtype in dict.fromkeys(row.dtypes))


def _of_dtypes(table: Table, row: DtypeRow, product: str) -> Iterator[Case]:
    operator, dtypes = table.operator, table.of_dtypes(row.dtypes)
    label = f"{operator.api}/{_dtypes(row)}"
    for rows, columns in SIZES:
        changes = {**dtypes, **operator.of_size(rows, columns)}
        yield Case(f"values/{label}/{rows}x{columns}", partial(observe, operator, changes, product))
    timed = {**dtypes, **operator.of_size(*TIMED_SIZE)}
    yield Case(f"times/{label}", partial(observe_times, operator, timed, product))
    yield Case(f"streams/{label}", partial(observe, operator, dtypes, product, on_two_streams))


def _of_views(table: Table, product: str) -> Iterator[Case]:
    operator = table.operator
    for number, shapes in enumerate(table.shapes, 1):
        for name in operator.tensors:
            shape = shapes.get(f"{name}.shape", operator.arguments[name].shape)
            for view, (strides, offset) in views(shape, name not in operator.outputs).items():
                changes = {**shapes, f"{name}.strides": strides, f"{name}.offset": offset}
                run = partial(observe, operator, changes, product)
                yield Case(f"views/{operator.api}/shapes {number}/{name}/{view}", run)


def cases(product: str, release: str) -> Iterator[Case]:
    """All cases, on a product, by the checks of a release of CANN."""
    for table in all_tables():
        for row in rows_of(table):
            yield _of_row(table, row, product, release)
        if product not in table.operator.missing:
            for dtypes in table.dtypes:
                if product in dtypes.accepted:
                    yield from _of_dtypes(table, dtypes, product)
            yield from _of_views(table, product)
