"""Numbers from a malicious caller or file: each is refused, and nothing is read or written. (Labels: the rows "label
..." of the cross entropy's tables. Random numbers: tests/fuzz.)"""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests import cabi
from tests.cabi import PARAM_INVALID, SUCCESS
from tests.conformance.convolution_table import BACKWARD, FORWARD, Problem
from tests.conformance.machinery import Ints, Operator, Prepared, Table, all_tables, call, in_text

TABLES = all_tables()
EACH_TABLE = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.operator.api)

MOST, LEAST = 2**63 - 1, -(2**63)


class Layout(NamedTuple):
    """The declared location of a tensor with a valid shape."""

    stride: int | None = None  # of the first dimension; None for a contiguous tensor
    offset: int = 0
    storage: tuple[int, ...] | None = None  # None for the actual memory

    @property
    def wrong(self) -> str:
        """What of it the refusal says."""
        if self.stride is not None:
            return str(self.stride)
        return f"offset {self.offset}" if self.offset else f"storage of shape {list(self.storage or ())}"


LAYOUTS = [
    *(Layout(stride) for stride in (-1, LEAST, MOST, 2**62, 2**61, 2**32, 10**6)),
    # A storage declared as large as the view needs.
    *(Layout(stride, storage=(MOST,)) for stride in (LEAST, -(2**62), -1, MOST, 2**62, 2**61, 2**59)),
    *(Layout(offset=offset) for offset in (-1, LEAST, MOST, 2**62, 2**58, 10**6)),
    *(Layout(offset=offset, storage=(MOST,)) for offset in (-1, LEAST, MOST, MOST - 1, 2**62, 2**59)),
    *(Layout(storage=storage) for storage in ((-1,), (LEAST,), (2**32, 2**32), (2**62, 4), (0,), (0, MOST), (1,))),
]


def descriptor(prepared: Prepared, name: str, layout: Layout, address: int | None = None) -> int:
    """A tensor's description with its layout, and optionally its address, replaced."""
    memory = prepared.memory[name]
    shape, strides = memory.shape, list(memory.strides)
    if layout.stride is not None:
        strides[0] = layout.stride
    storage = (memory.elements,) if layout.storage is None else layout.storage
    return int(
        cabi.host().aclCreateTensor(
            cabi.int64s(shape),
            len(shape),
            memory.dtype,
            cabi.int64s(strides),
            layout.offset,
            prepared.operator.format_of(shape),
            cabi.int64s(storage),
            len(storage),
            memory.address if address is None else address,
        )
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@EACH_TABLE
def test_a_view_outside_its_memory(table: Table, layout: Layout) -> None:
    operator = table.operator
    # At least two elements along every dimension, so that each stride matters.
    with cabi.nothing_left(), cabi.product("host"), Prepared(operator, operator.of_size(3, 8)) as prepared:
        for name in operator.tensors:
            if prepared.memory[name].view.size < 2:
                continue
            honest, prepared.handles[name] = prepared.handles[name], descriptor(prepared, name, layout)
            first = prepared.stage1()
            assert first.status == PARAM_INVALID, f"{name}: {first.text}"
            assert first.text.startswith(f"{operator.api}: {in_text(name)} "), first.text
            assert layout.wrong in first.text
            assert first.executor == cabi.UNSET_EXECUTOR
            prepared.check_unchanged()
            cabi.host().aclDestroyTensor(prepared.handles[name])
            prepared.handles[name] = honest


@pytest.mark.parametrize("missing", [0, 1])
@EACH_TABLE
def test_a_view_outside_its_storage_in_device_memory(table: Table, missing: int) -> None:
    """Accepted if it lies in one block: clients declare a storage without the offset. The block's padding, which would
    be large enough here, does not count."""
    operator, offset = table.operator, 5
    size = operator.of_size(3, 8)
    with cabi.nothing_left(), cabi.device(), cabi.product("host"), Prepared(operator, size) as prepared:
        for name in operator.tensors:
            memory = prepared.memory[name]
            if memory.view.size == 0:
                continue
            block = cabi.allocate((offset + memory.elements) * memory.view.itemsize - missing)
            layout = Layout(offset=offset, storage=(memory.elements,))
            honest, prepared.handles[name] = prepared.handles[name], descriptor(prepared, name, layout, block)
            first = prepared.stage1()
            assert first.status == (PARAM_INVALID if missing else SUCCESS), f"{name}: {first.text}"
            if not missing:
                assert cabi.host().aclDestroyAclOpExecutor(first.executor) == SUCCESS
            cabi.host().aclDestroyTensor(prepared.handles[name])
            prepared.handles[name] = honest
            assert cabi.host().aclrtFree(block) == SUCCESS


TOO_LARGE = "stride, dilation, or padding with the size of input exceeds 2^31 - 1 in spatial dimension "
HUGE = (2**31, 2**40, 2**61, 2**62, MOST, LEAST, -1)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "outputPadding"])
@pytest.mark.parametrize("operator", [FORWARD, BACKWARD], ids=lambda operator: operator.api)
def test_parameters_of_a_convolution(operator: Operator, name: str, value: int) -> None:
    for transposed in (False, True):
        if name == "outputPadding" and not transposed and operator is FORWARD:
            continue  # it is unused
        problem = Problem(transposed=transposed, groups=1)
        changes = problem.forward() if operator is FORWARD else problem.backward()
        # For a transposed gradient it is not compared with anything, and need only be at least 0.
        unread = name == "outputPadding" and operator is BACKWARD and transposed and value >= 0
        for values in ((value,), (value, value), (1, value)):
            outcome = call(operator, {**changes, name: Ints(values)}, "host")
            assert outcome.status == (SUCCESS if unread else PARAM_INVALID), values
            if not unread:
                says = rf"{name} |{re.escape(TOO_LARGE)}|output would have a size < [01] in "
                says += "|(output|gradOutput|weight) has shape "
                assert re.match(f"{operator.api}: ({says})", outcome.text), outcome.text


@pytest.mark.parametrize("groups", [0, -1, 65536, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("operator", [FORWARD, BACKWARD], ids=lambda operator: operator.api)
def test_groups(operator: Operator, groups: int) -> None:
    outcome = call(operator, {"groups": groups}, "host")
    assert outcome.status == PARAM_INVALID
    assert outcome.text.startswith(f"{operator.api}: groups is {groups}, expected 1 to 65535"), outcome.text


@pytest.mark.parametrize("size", [2**31, 2**40, 2**61])
def test_a_padding_that_the_stride_jumps_over(size: int) -> None:
    """The output is small, but the intermediate size is not."""
    problem = Problem(1, 1, 1, (1,), (1,), (size,), (size,), (1,), groups=1, output_padding=(0,))
    assert problem.output == (1, 1, 3)
    for operator, changes in ((FORWARD, problem.forward()), (BACKWARD, problem.backward())):
        outcome = call(operator, changes, "host")
        assert outcome.status == PARAM_INVALID
        assert outcome.text.startswith(f"{operator.api}: {TOO_LARGE}"), outcome.text
