"""The float status of a device in saturation mode: the calls that set it, those that do not, reading and clearing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import cabi
from tests.aten_ops import sweep
from tests.aten_ops.sweep import LIBRARY, ROOT, Caller, Number, parse, samples
from tests.named_ops.call import Host, Input, Operators
from tests.named_ops.cases import cases
from tests.published import named_operators, rows

SATURATION, INFINITY = 0, 1
ALONE = {"Ascend310P": SATURATION, "Ascend910": SATURATION, "Ascend950": INFINITY}
BOTH = ("Ascend910B", "Ascend910_93", "host")
NAMES = ("ACL_RT_OVERFLOW_MODE_SATURATION", "ACL_RT_OVERFLOW_MODE_INFNAN")


class Device:
    """A device, its functions and its status."""

    def __init__(self) -> None:
        self.caller = Caller()
        self.library = self.caller.library
        assert self.library.aclInit(None) in (0, 100002)
        assert self.library.aclrtSetDevice(0) == 0
        self.operators = Operators(self.library)

    def call(self, line: str) -> None:
        outcome = self.caller.call(*parse(line))
        assert (outcome.stage1, outcome.stage2) == (0, 0), outcome.text

    def named(self, name: str, inputs: list[Input], *outputs: Tensor, **attributes: Any) -> None:
        status, _ = self.operators.call(name, inputs, list(outputs), **attributes)
        assert (status, self.library.aclrtSynchronizeStream(None)) == (0, 0), self.operators.error()

    def status(self) -> list[float]:
        """The output of the older operator's memory, which is zeros, and of the newer one; they agree."""
        memory, output = torch.full((8,), 7.0), torch.full((8,), 7.0)
        self.named("NPUGetFloatStatus", [memory], output)
        assert output.tolist() == [0] * 8
        newer = torch.full((8,), 7, dtype=torch.int32)
        self.named("NPUGetFloatStatusV2", [], newer)
        assert newer.tolist() == memory.tolist()
        return memory.tolist()

    def debug_status(self) -> list[int]:
        output = torch.full((8,), 7, dtype=torch.int32)
        self.named("NPUGetFloatDebugStatus", [], output)
        return output.tolist()

    def clear(self) -> None:
        self.named("NPUClearFloatStatusV2", [])
        self.named("NPUClearFloatDebugStatus", [])

    def mode(self) -> int:
        found = cabi.ctypes.c_int(-1)
        assert self.library.aclrtGetDeviceSatMode(cabi.ctypes.byref(found)) == 0
        return found.value


@pytest.fixture(scope="module")
def shared() -> Iterator[Device]:
    before = cabi.host
    device = Device()
    yield device
    assert device.library.aclrtResetDevice(0) == 0
    cabi.host = before


@pytest.fixture
def device(shared: Device) -> Iterator[Device]:
    with cabi.product("Ascend910"):
        shared.clear()
        yield shared


NONE, SET = [0] * 8, [1] * 8
INF = torch.tensor([-torch.inf, 1.0])
OUT_OF_RANGE = [
    "aclnnMul self=FLOAT[2]:1e38,1 other=FLOAT[2]:1e38,1 out=FLOAT[2]",
    "aclnnInplaceMul selfRef=FLOAT16[2]:600,1 other=FLOAT16[2]:600,1",
    "aclnnDiv self=FLOAT[2]:1,1 other=FLOAT[2]:0,1 out=FLOAT[2]",
    "aclnnLog self=DOUBLE[2]:-1,1 out=DOUBLE[2]",
    "aclnnMul self=COMPLEX64[2]:1e38,1 other=COMPLEX64[2]:1e38,1 out=COMPLEX64[2]",
    "aclnnAdd self=FLOAT[2]:-inf,1 other=FLOAT[2]:1,1 alpha=FLOAT(1) out=FLOAT[2]",
    "aclnnCast self=FLOAT[2]:1e30,1 dtype=1 out=FLOAT16[2]",
    "aclnnInplaceCopy selfRef=FLOAT16[2]:nan src=FLOAT[2]:1e30,1",
    "aclnnForeachExp x={FLOAT[2]:1,1 FLOAT[2]:1,1000} out={FLOAT[2] FLOAT[2]}",
    "aclnnIndexPutImpl selfRef=FLOAT[2]:3e38,1 indices={INT64[1]:0} values=FLOAT[1]:3e38 accumulate=true unsafe=false",
    "aclnnMm self=FLOAT16[2,2]:600 mat2=FLOAT16[2,2]:600 out=FLOAT16[2,2] cubeMathType=0",
]
IN_RANGE = [
    "aclnnMul self=FLOAT[2]:1e38,1 other=FLOAT[2]:3,1 out=FLOAT[2]",
    "aclnnInplaceFillScalar selfRef=FLOAT[2] value=FLOAT(-Infinity)",
    "aclnnInplaceCopy selfRef=FLOAT[2] src=FLOAT[2]:-inf,nan",
    "aclnnInplaceCopy selfRef=FLOAT16[2] src=FLOAT[2]:-inf,1",
    "aclnnCast self=FLOAT[2]:-inf,1 dtype=1 out=FLOAT16[2]",
    "aclnnCat tensors={FLOAT[2]:-inf,1 FLOAT[2]} dim=0 out=FLOAT[4]",
    "aclnnInplaceMaskedFillScalar selfRef=FLOAT[2] mask=BOOL[2]:1,0 value=FLOAT(-Infinity)",
    "aclnnSWhere condition=BOOL[2]:1,0 self=FLOAT[2]:-inf,1 other=FLOAT[2] out=FLOAT[2]",
    "aclnnMaximum self=FLOAT[2]:-inf,1 other=FLOAT[2]:-inf,2 out=FLOAT[2]",
    "aclnnIndexPutImpl selfRef=FLOAT[2]:-inf,-inf indices={INT64[1]:1} values=FLOAT[1]:0 accumulate=false unsafe=false",
    "aclnnInplacePut selfRef=FLOAT[2]:-inf,-inf index=INT64[1]:1 source=FLOAT[1]:0 accumulate=false",
    "aclnnForeachMaximumList x1={FLOAT[2]:-inf,1} x2={FLOAT[2]:-inf,2} out={FLOAT[2]}",
    "aclnnUpsampleNearest2d self=FLOAT[1,1,1,2]:-inf,1 outputSize=[1,4] out=FLOAT[1,1,1,4]",
    "aclnnMaxPool2dWithIndices self=FLOAT[1,1,1,2]:-inf,1 kernelSize=[1,1] stride=[1,1] padding=[0,0] dilation=[1,1]"
    " ceilMode=false out=FLOAT[1,1,1,2] indices=INT32[1,1,1,2]",
    "aclnnSoftmax self=FLOAT[2]:-inf,1 dim=0 out=FLOAT[2]",
    "aclnnIsInf x=FLOAT[2]:-inf,1 out=BOOL[2]",
]


@pytest.mark.parametrize("line", OUT_OF_RANGE)
def test_a_result_out_of_range_sets_it(device: Device, line: str) -> None:
    assert device.status() == NONE
    device.call(line)
    assert (device.status(), device.debug_status()) == (SET, SET)


@pytest.mark.parametrize("line", IN_RANGE)
def test_what_moves_selects_or_fills_does_not(device: Device, line: str) -> None:
    device.call(line)
    assert (device.status(), device.debug_status()) == (NONE, NONE)


def test_operators_called_by_name(device: Device) -> None:
    device.named("Identity", [INF], torch.zeros(2))
    device.named("Fill", [Host.ints(2), torch.tensor(-torch.inf)], torch.zeros(2))
    device.named("Cast", [INF], torch.zeros(2, dtype=torch.float16), dst_type=1)
    assert device.status() == NONE
    device.named("Square", [torch.tensor([1e30])], torch.zeros(1))
    assert device.status() == SET


def test_elements_between_those_of_a_view_do_not_count(device: Device) -> None:
    """Memory in the gaps of an output, and next to it, does not belong to it."""
    memory = cabi.Memory(cabi.Dtype.FLOAT, (2, 2), [8, 2], offset=1)
    memory.raw[...] = 0xFF  # NaN
    memory.write(np.ones((2, 2)))
    lib, size, executor = device.library, cabi.ctypes.c_uint64(), cabi.ctypes.c_void_p()
    tensor, number = memory.descriptor(), cabi.create_scalar(2.0, cabi.Dtype.FLOAT)
    pointers = (cabi.ctypes.byref(size), cabi.ctypes.byref(executor))
    for overflows in (False, True):
        if overflows:
            memory.write(np.array([[1, 1], [1, 3e38]]))
        assert lib.aclnnInplaceMulsGetWorkspaceSize(tensor, number, *pointers) == 0
        assert lib.aclnnInplaceMuls(None, size.value, executor, None) == 0
        assert device.status() == (SET if overflows else NONE)
    lib.aclDestroyTensor(tensor)
    lib.aclDestroyScalar(number)


def test_each_status_is_cleared_apart(device: Device) -> None:
    device.call(OUT_OF_RANGE[0])
    device.named("NPUClearFloatDebugStatus", [])
    assert (device.status(), device.debug_status()) == (SET, NONE)
    device.call(OUT_OF_RANGE[0])
    device.named("NPUClearFloatStatusV2", [])
    assert (device.status(), device.debug_status()) == (NONE, SET)
    device.call(OUT_OF_RANGE[0])
    memory, output = torch.full((8,), 7.0), torch.full((8,), 7.0)
    device.named("NPUClearFloatStatus", [memory], output)
    assert (memory.tolist(), output.tolist()) == (NONE, NONE)
    assert (device.status(), device.debug_status()) == (NONE, SET)


def test_memory_for_it_is_zeros_and_clears_nothing(device: Device) -> None:
    device.call(OUT_OF_RANGE[0])
    memory = torch.full((8,), 7.0)
    device.named("NPUAllocFloatStatus", [], memory)
    assert memory.tolist() == NONE
    assert device.status() == SET


def test_a_device_that_is_reset_has_none(device: Device) -> None:
    device.call(OUT_OF_RANGE[0])
    assert device.library.aclrtResetDevice(0) == 0
    assert device.library.aclrtSetDevice(0) == 0
    assert (device.status(), device.debug_status()) == (NONE, NONE)


@pytest.mark.parametrize("name", ["NPUGetFloatStatus", "NPUGetFloatStatusV2", "NPUGetFloatDebugStatus"])
@pytest.mark.parametrize("product", ["Ascend910B", "Ascend950"])
def test_in_infinity_mode_it_cannot_be_read(shared: Device, product: str, name: str) -> None:
    inputs = [torch.zeros(8)] if name == "NPUGetFloatStatus" else []
    with cabi.product(product):
        shared.call(OUT_OF_RANGE[0])
        for _ in range(2):  # a call accepted in the other mode changes nothing
            output = torch.full((8,), 7.0)
            assert shared.operators.call(name, inputs, [output])[0] == 100000
            text = shared.operators.error()
            expected = f"aclop {name}: {product} is in infinity mode (ACL_RT_OVERFLOW_MODE_INFNAN), in which a device "
            assert f"{expected}keeps no float status; look for infinities and NaN in the results, or set" in text
            assert output.tolist() == [7] * 8
            with cabi.product("Ascend910"):
                shared.named(name, inputs, output)
                assert (inputs or [output])[0].tolist() == NONE
        shared.clear()


@pytest.mark.parametrize("product", ALONE)
def test_a_mode_that_a_product_lacks_is_refused(shared: Device, product: str) -> None:
    with cabi.product(product):
        own = ALONE[product]
        assert shared.mode() == own
        assert shared.library.aclrtSetDeviceSatMode(own) == 0
        assert shared.library.aclrtSetDeviceSatMode(1 - own) == 207000
        expected = f"aclrtSetDeviceSatMode: mode is {NAMES[1 - own]}, expected {NAMES[own]}, which alone {product} has"
        assert expected in shared.operators.error()
        assert shared.mode() == own


@pytest.mark.parametrize("product", BOTH)
def test_the_others_have_a_switch(shared: Device, product: str) -> None:
    """Initially in infinity mode; in saturation mode a stream reports while its switch is on."""
    set_mode, set_switch = shared.library.aclrtSetDeviceSatMode, shared.library.aclrtSetStreamOverflowSwitch
    with cabi.product(product):
        assert shared.mode() == INFINITY
        assert set_mode(2) == 107000
        assert set_mode(SATURATION) == 0
        try:
            shared.clear()
            for switch, expected in ((None, NONE), (1, SET), (0, NONE)):
                assert switch is None or set_switch(None, switch) == 0
                shared.call(OUT_OF_RANGE[0])
                assert (shared.status(), shared.debug_status()) == (expected, expected)
                shared.clear()
        finally:
            assert set_mode(INFINITY) == 0
        assert shared.mode() == INFINITY


# ---- The lists of operators that move


def listed(name: str) -> set[str]:
    """The names in one of the sources' lists."""
    text = (ROOT / "csrc" / "host_cann" / "descriptors" / "overflow.cpp").read_text()
    return set(re.findall(r'"(\w+)"', text.partition(f" {name}[] = {{")[2].partition("};")[0]))


def short(function: str) -> str:
    return function.removeprefix("aclnn").removeprefix("Inplace")


def test_the_lists_have_names_of_operators() -> None:
    moves, converts = listed("kMoves"), listed("kConverts")
    assert len(moves) > 100
    assert not moves & converts
    known = {short(function) for function in rows(LIBRARY)} | named_operators(LIBRARY)
    assert moves | converts <= known


class Remembering(Caller):
    """Records the floating-point numbers of a call's arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.given: set[float] = set()

    def tensor(self, value: Any, kind: str, strided: bool, memories: list[Any]) -> int:
        handle = super().tensor(value, kind, strided, memories)
        if not sweep.is_output(kind):
            self.given |= set(np.ravel(memories[-1][0].read()).astype(float).tolist())
        return handle

    def numbers(self, arguments: dict[str, Any]) -> set[float]:
        """The non-tensor arguments, rounded to FLOAT."""
        values = [x for value in arguments.values() for x in (value if isinstance(value, list) else [value])]
        scalars = {x.value for x in values if isinstance(x, Number)}
        numbers = scalars | {float(x) for x in values if isinstance(x, (bool, int, float))}
        return numbers | {float(np.float32(x)) for x in numbers}


def test_rows_that_move_have_elements_of_their_inputs(device: Device) -> None:
    """Or the numbers 0, 1 and -inf, for fills, in the calls of samples.txt."""
    caller, moves, seen, wrong = Remembering(), listed("kMoves"), set(), []
    with cabi.product("host"):
        for name, arguments in samples():
            if short(name) not in moves:
                continue
            caller.given = set()
            outcome = caller.call(name, arguments)
            assert (outcome.stage1, outcome.stage2) == (0, 0), outcome.text
            known = caller.given | caller.numbers(arguments) | {0.0, 1.0, -np.inf}
            seen.add(short(name))
            for values, dtype in zip(outcome.outputs, outcome.dtypes, strict=True):
                is_floating = dtype not in cabi.INTEGER
                if is_floating and not set(np.ravel(values).astype(float).tolist()) <= known:
                    wrong.append(name)
    assert not wrong
    assert seen == {short(name) for name in rows(LIBRARY)} & moves


def test_named_operators_that_move_have_elements_of_their_inputs() -> None:
    moves, seen = listed("kMoves"), set()
    for case in cases():
        if case.name not in moves:
            continue
        values = [x.values if isinstance(x, Host) else x for x in case.inputs if x is not None]
        values += [torch.tensor(x, dtype=torch.float64) for x in case.attributes.values() if not isinstance(x, str)]
        known = {x for value in values for x in value.flatten().to(torch.float64).tolist()} | {0.0, 1.0}
        for output in case.expected:
            if output.is_floating_point():
                assert set(output.flatten().double().tolist()) <= known, case.name
        seen.add(case.name)
    assert seen == named_operators(LIBRARY) & moves
