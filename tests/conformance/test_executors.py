"""The contract of the two stages (CANN's document of the two-stage interface), for every operator."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import COPY_DATA, PARAM_INVALID, PARAM_NULLPTR, SUCCESS, Dtype, Format, Memory, int64s
from tests.conformance.machinery import Operator, Prepared, all_tables, in_text

OPERATORS = [table.operator for table in all_tables()]
pytestmark = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    with cabi.nothing_left():
        yield


def in_thread(work: Callable[[], Any]) -> Any:
    """The result of the work, run on a thread that then ends."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


@contextmanager
def created_stream() -> Iterator[int]:
    stream = ctypes.c_void_p()
    assert cabi.host().aclrtCreateStream(ctypes.byref(stream)) == SUCCESS
    assert stream.value
    try:
        yield stream.value
    finally:
        assert cabi.host().aclrtDestroyStream(stream) == SUCCESS


@contextmanager
def held_up(stream: int) -> Iterator[None]:
    """Work queued in the block starts after its end."""
    gate = threading.Event()
    wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(60) and None)
    assert cabi.host().aclrtLaunchHostFunc(stream, ctypes.cast(wait, ctypes.c_void_p), None) == SUCCESS
    try:
        yield
    finally:
        gate.set()
        assert cabi.host().aclrtSynchronizeStream(stream) == SUCCESS


def test_stage2_without_executor(operator: Operator) -> None:
    assert cabi.stage2(operator.api, None) == PARAM_NULLPTR
    text = cabi.error_text()
    assert operator.api in text
    assert "executor" in text


def test_stage2_without_workspace_deletes_the_executor(operator: Operator) -> None:
    with Prepared(operator, {}) as prepared:
        first = prepared.stage1()
        executors = cabi.live_objects("executor")
        assert cabi.stage2(operator.api, first.executor, workspace_size=64, workspace=None) == PARAM_NULLPTR
        assert "workspace" in cabi.error_text()
        assert cabi.live_objects("executor") == executors - 1
        prepared.check_unchanged()


def test_workspace_too_small(operator: Operator) -> None:
    """The host never lets a kernel access memory outside its workspace, in any family."""
    with Prepared(operator, operator.of_size(7, 31)) as prepared:
        first = prepared.stage1()
        executors = cabi.live_objects("executor")
        if first.workspace_size > 0:
            workspace = Memory(Dtype.UINT8, [first.workspace_size])
            given = (first.workspace_size - 1, workspace.address if first.workspace_size > 1 else None)
            assert cabi.stage2(operator.api, first.executor, *given) == PARAM_INVALID
            assert "workspaceSize" in cabi.error_text()
            assert workspace.unwritten()
            assert cabi.live_objects("executor") == executors - 1
            prepared.check_unchanged()
        else:
            assert first.run() == SUCCESS


def test_workspace_in_a_block_that_is_too_small(operator: Operator) -> None:
    """The padding of aclrtMalloc cannot serve as workspace."""
    with cabi.device(), Prepared(operator, operator.of_size(7, 31)) as prepared:
        first = prepared.stage1()
        if first.workspace_size > 1:
            block = cabi.allocate(first.workspace_size - 1)
            assert cabi.stage2(operator.api, first.executor, first.workspace_size, block) == PARAM_INVALID
            text = cabi.error_text()
            assert "workspace" in text
            assert str(first.workspace_size) in text
            assert str(first.workspace_size - 1) in text
            assert cabi.host().aclrtFree(block) == SUCCESS
            prepared.check_unchanged()
        else:
            assert first.run() == SUCCESS


def test_memory_freed_between_the_stages(operator: Operator) -> None:
    """For any tensor, on either kind of stream: detected when the stream reaches the call, without writing."""
    for name in operator.tensors:
        with cabi.device(), created_stream() as created, Prepared(operator, {}) as prepared:
            if prepared.memory[name].view.size == 0:
                continue
            for stream in (None, created):
                block = cabi.allocate(prepared.memory[name].view.nbytes)
                assert cabi.host().aclSetRawTensorAddr(prepared.handles[name], block) == SUCCESS
                first = prepared.stage1()
                assert first.status == SUCCESS, first.text
                assert cabi.host().aclrtFree(block) == SUCCESS
                assert first.run(stream) == SUCCESS
                assert cabi.host().aclrtSynchronizeStream(stream) == COPY_DATA
                text = cabi.error_text()
                assert text.startswith(f"{operator.api}: ")
                assert "freed" in text
                prepared.check_unchanged()


def test_empty_tensors_need_no_memory(operator: Operator) -> None:
    """Null data is allowed if there is nothing to read or write."""
    with cabi.product("host"), Prepared(operator, operator.empty) as prepared:
        for name, memory in prepared.memory.items():
            if memory.view.size == 0:
                assert cabi.host().aclSetRawTensorAddr(prepared.handles[name], None) == SUCCESS
        first = prepared.stage1()
        assert (first.status, first.workspace_size) == (SUCCESS, 0), first.text
        assert first.run() == SUCCESS


def test_view_outside_its_storage(operator: Operator) -> None:
    """Refused by the host, which must stay in its buffers; CANN would corrupt memory."""
    for name in operator.tensors:
        with Prepared(operator, {}) as prepared:
            if prepared.memory[name].view.size == 0:
                continue
            shape, storage = int64s(prepared.memory[name].shape), int64s([prepared.memory[name].elements - 1])
            address, dtype = prepared.memory[name].address, prepared.memory[name].dtype
            again = (prepared.handles[name], shape, len(shape), dtype, None, 0, Format.ND, storage, 1, address)
            assert cabi.host().aclInitTensor(*again) == SUCCESS
            first = prepared.stage1()
            assert first.status == PARAM_INVALID
            assert in_text(name) in first.text
            prepared.check_unchanged()


def test_stage2_deletes_the_executor(operator: Operator) -> None:
    with Prepared(operator, {}) as prepared:
        executors = cabi.live_objects("executor")
        first = prepared.stage1()
        assert cabi.live_objects("executor") == executors + 1
        assert first.run() == SUCCESS
        assert cabi.live_objects("executor") == executors


def test_stage2_again(operator: Operator) -> None:
    """A consumed executor is detected, even if another one reuses its memory."""
    with Prepared(operator, {}) as prepared, Prepared(operator, {}) as other:
        first = prepared.stage1()
        assert first.run() == SUCCESS
        written = {name: memory.raw.copy() for name, memory in prepared.memory.items()}
        later = other.stage1()
        for _ in range(10):
            assert first.run() == PARAM_NULLPTR
            assert cabi.error_text().startswith(f"{operator.api}: executor was consumed")
            for function in ("aclSetAclOpExecutorRepeatable", "aclDestroyAclOpExecutor"):
                assert getattr(cabi.host(), function)(first.executor) == cabi.INNER
                assert cabi.error_text().startswith(f"{function}: executor was consumed by its second stage")
        assert all(np.array_equal(memory.raw, written[name]) for name, memory in prepared.memory.items())
        other.check_unchanged()
        assert later.run() == SUCCESS
        other.check_values()


def test_null_stream_has_run_when_stage2_returns(operator: Operator) -> None:
    with Prepared(operator, {}) as prepared:
        assert prepared.stage1().run() == SUCCESS
        prepared.check_values()
        assert cabi.host().aclrtSynchronizeStream(None) == SUCCESS


def test_stages_on_different_threads(operator: Operator) -> None:
    """The thread of stage 1 has ended before stage 2 begins on a third thread."""
    with Prepared(operator, {}) as prepared:
        first = in_thread(prepared.stage1)
        assert first.status == SUCCESS
        assert in_thread(first.run) == SUCCESS
        prepared.check_bounds()
        prepared.check_values()


def test_many_threads(operator: Operator) -> None:
    """Concurrent calls do not interfere."""
    shape = (7, 31)

    def many() -> bool:
        for _ in range(50):
            with Prepared(operator, operator.of_size(*shape)) as prepared:
                assert prepared.stage1().run() == SUCCESS
                prepared.check_bounds()
                prepared.check_values()
        return True

    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_executors_run_in_any_order(operator: Operator) -> None:
    calls = [Prepared(operator, operator.of_size(n, 3)).__enter__() for n in range(1, 9)]
    firsts = [call.stage1() for call in calls]
    for first in reversed(firsts):
        assert first.run() == SUCCESS
    for call in calls:
        call.check_bounds()
        call.check_values()
        call.destroy()


def test_created_stream(operator: Operator) -> None:
    """Stage 2 only queues; the descriptors may be destroyed as soon as it has returned."""
    with created_stream() as stream, Prepared(operator, operator.of_size(64, 33)) as prepared:
        with held_up(stream):
            first = prepared.stage1()
            assert first.run(stream) == SUCCESS
            prepared.destroy()
            prepared.check_unchanged()
        prepared.check_bounds()
        prepared.check_values()


def test_created_stream_keeps_order(operator: Operator) -> None:
    """A later call on the stream reads an earlier call's result."""
    with created_stream() as stream, Prepared(operator, {}) as one, Prepared(operator, {}) as alone:
        with held_up(stream):
            calls = [one.stage1(), one.stage1()]
            assert [call.run(stream) for call in calls] == [SUCCESS, SUCCESS]
        assert [alone.stage1().run(), alone.stage1().run()] == [SUCCESS, SUCCESS]
        for name, output in one.outputs.items():
            assert np.array_equal(output.view, alone.outputs[name].view)


def test_repeatable_executor(operator: Operator) -> None:
    """Runs any number of times, rereads the inputs each time, and is destroyed once."""
    with Prepared(operator, {}) as prepared:
        first = prepared.stage1()
        executors = cabi.live_objects("executor")
        assert cabi.host().aclSetAclOpExecutorRepeatable(first.executor) == SUCCESS
        for run in range(3):
            for name in operator.inputs:
                memory = prepared.memory[name]
                memory.write(np.roll(operator.values(memory.dtype, name), -run))
                prepared.before[name] = memory.raw.copy()
                prepared.inputs[name] = memory.read()
            assert first.run() == SUCCESS
            prepared.check_bounds()
            prepared.check_values()
        assert cabi.live_objects("executor") == executors
        assert cabi.host().aclDestroyAclOpExecutor(first.executor) == SUCCESS
        assert cabi.live_objects("executor") == executors - 1


def test_repeatable_executor_that_never_runs(operator: Operator) -> None:
    with Prepared(operator, {}) as prepared:
        first = prepared.stage1()
        assert cabi.host().aclSetAclOpExecutorRepeatable(first.executor) == SUCCESS
        assert cabi.host().aclDestroyAclOpExecutor(first.executor) == SUCCESS
        prepared.check_unchanged()


def test_repeatable_executor_destroyed_while_it_is_queued(operator: Operator) -> None:
    with created_stream() as stream, Prepared(operator, {}) as prepared:
        with held_up(stream):
            first = prepared.stage1()
            assert cabi.host().aclSetAclOpExecutorRepeatable(first.executor) == SUCCESS
            assert first.run(stream) == SUCCESS
            assert cabi.host().aclDestroyAclOpExecutor(first.executor) == SUCCESS
        prepared.check_bounds()
        prepared.check_values()


def set_address(how: str, operator: Operator, name: str) -> tuple[Any, int]:
    """The function that changes a tensor's address, and the tensor's index for it.

    aclSetTensorAddr counts all tensors; the other two count inputs and outputs separately. In place, the single tensor
    is on both sides, and moving it as an input also moves it as the output.
    """
    if how == "either":
        return cabi.host().aclSetTensorAddr, operator.places.index(name)
    if operator.reads(name):
        inputs = [place for place in operator.places if operator.reads(place)]
        return cabi.host().aclSetInputTensorAddr, inputs.index(name)
    return cabi.host().aclSetOutputTensorAddr, list(operator.outputs).index(name)


@pytest.mark.parametrize("how", ["either", "by side"])
def test_new_addresses(operator: Operator, how: str) -> None:
    """A repeatable executor uses the new memory, and does not touch the old."""
    with Prepared(operator, {}) as here, Prepared(operator, {}) as there:
        first = here.stage1()
        assert cabi.host().aclSetAclOpExecutorRepeatable(first.executor) == SUCCESS
        assert first.run() == SUCCESS
        written = {name: memory.raw.copy() for name, memory in here.memory.items()}
        for name in operator.tensors:
            setter, position = set_address(how, operator, name)
            address = there.memory[name].address
            assert setter(first.executor, position, here.handles[name], address) == SUCCESS, cabi.error_text()
        assert first.run() == SUCCESS
        there.check_bounds()
        there.check_values()
        assert all(np.array_equal(memory.raw, written[name]) for name, memory in here.memory.items())
        assert cabi.host().aclDestroyAclOpExecutor(first.executor) == SUCCESS


def test_new_address_between_the_stages(operator: Operator) -> None:
    with Prepared(operator, {}) as prepared:
        first = prepared.stage1()
        everywhere = {}
        for name, output in prepared.outputs.items():
            moved = everywhere[name] = Memory(output.dtype, output.shape)
            moved.view[...] = output.view
            index, handle = operator.places.index(name), prepared.handles[name]
            assert cabi.host().aclSetTensorAddr(first.executor, index, handle, moved.address) == SUCCESS
        assert first.run() == SUCCESS
        prepared.check_unchanged()
        for name, moved in everywhere.items():
            assert moved.untouched()
            assert moved.view.size == 0 or not np.array_equal(moved.view, prepared.outputs[name].view)


def test_bad_address_changes(operator: Operator) -> None:
    """The tensor is checked first, then the executor, then the index."""
    count = len(operator.places)
    with Prepared(operator, {}) as prepared:
        first = prepared.stage1()
        tensor = prepared.handles[operator.source]
        for prefix in ("acl", "Acl"):
            for side in ("", "Input", "Output"):
                setter = getattr(cabi.host(), f"{prefix}Set{side}TensorAddr")
                api = f"aclSet{side}TensorAddr"
                assert setter(first.executor, 0, None, None) == cabi.INNER_NULLPTR
                assert cabi.error_text().startswith(f"{api}: tensor is null")
                assert setter(None, 0, tensor, None) == cabi.INNER_NULLPTR
                assert cabi.error_text().startswith(f"{api}: executor is null")
                assert setter(first.executor, count, tensor, None) == PARAM_INVALID
                assert cabi.error_text().startswith(
                    f"{api}: index is {count}, expected less than the number of tensor "
                )
        assert first.run() == SUCCESS
        prepared.check_values()
