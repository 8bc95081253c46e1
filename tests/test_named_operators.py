"""Operators called by name agree with torch's functions and the formulas."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import cabi
from tests.aten_ops.sweep import LIBRARY, Caller
from tests.named_ops.call import Host, Operators
from tests.named_ops.cases import Case, cases
from tests.named_ops.refusals import Refusal, refusals
from tests.published import named_operators

CASES = cases()
NOT_COMPARED: set[str] = set()


@pytest.fixture(scope="module")
def operators() -> Iterator[Operators]:
    before = cabi.host
    library: ctypes.CDLL = Caller().library
    assert library.aclInit(None) in (0, 100002)
    assert library.aclrtSetDevice(0) == 0
    with cabi.product("host"):
        assert library.aclrtSetDeviceSatMode(0) == 0  # the mode with a float status
        yield Operators(library)
        assert library.aclrtSetDeviceSatMode(1) == 0
    assert library.aclrtResetDevice(0) == 0
    cabi.host = before


def room(expected: Tensor, sized: bool) -> Tensor:
    """Memory for an output, filled with a marker, with room for another row if its size depends on the data."""
    shape = (expected.shape[0] + 1, *expected.shape[1:]) if sized else expected.shape
    return torch.full(shape, 77).to(expected.dtype) if expected.dtype != torch.bool else torch.ones(shape) != 0


def check(case: Case, outputs: list[Tensor], shapes: list[tuple[int, ...]]) -> None:
    for got, expected, shape in zip(outputs, case.expected, shapes, strict=True):
        if case.sized:
            assert shape == tuple(expected.shape)
            got = got.flatten()[: expected.numel()].view(shape)
        tolerance = {"rtol": 0, "atol": 0} if case.exact else {"rtol": 2e-5, "atol": 2e-5}
        torch.testing.assert_close(got, expected.contiguous(), equal_nan=True, **tolerance)


def in_type(values: list[Any], dtype: torch.dtype) -> list[Any]:
    """The values with FLOAT tensors converted to another type."""
    return [x.to(dtype) if isinstance(x, Tensor) and x.dtype == torch.float32 else x for x in values]


COMPARED = [case for case in CASES if not case.sized and case.name not in NOT_COMPARED]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", sorted({case.name for case in COMPARED}))
def test_16_bit_results_are_rounded_once(operators: Operators, name: str, dtype: torch.dtype) -> None:
    """Each equals the FLOAT result of the same numbers, rounded to 16 bits; an operator may refuse the type."""
    for case in [case for case in COMPARED if case.name == name]:
        inputs = in_type([x.contiguous() if isinstance(x, Tensor) else x for x in case.inputs], dtype)
        wide = [x.float() if isinstance(x, Tensor) and x.dtype == dtype else x for x in inputs]
        outputs = in_type([room(x, False) for x in case.expected], dtype)
        exact = [room(x, False) for x in case.expected]
        if operators.call(name, inputs, outputs, **case.attributes)[0]:
            continue
        if operators.call(name, wide, exact, **case.attributes)[0]:
            continue
        for got, result in zip(outputs, exact, strict=True):
            assert got.dtype != dtype or torch.equal(got.nan_to_num(5), result.to(dtype).nan_to_num(5))


@pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{i}" for i, case in enumerate(CASES)])
def test_values(operators: Operators, case: Case) -> None:
    outputs = [room(expected, case.sized) for expected in case.expected]
    inputs = [x.contiguous() if isinstance(x, Tensor) else x for x in case.inputs]
    if case.name == "ViewCopy":  # writes to its first input
        outputs = [inputs[0].clone()]
        inputs = [outputs[0], *inputs[1:]]
    status, shapes = operators.call(case.name, inputs, outputs, **case.attributes)
    assert status == 0, operators.error()
    check(case, outputs, shapes)


ONE, MANY = torch.tensor([0.5]), torch.linspace(-1, 2, 16)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "each"),
    [
        ("L1LossGrad", [torch.ones(1), ONE, MANY], {}, torch.sign(ONE - MANY)),
        ("MseLossGrad", [ONE, MANY, torch.ones(1)], {}, 2 * (ONE - MANY)),
        ("SmoothL1LossGradV2", [ONE, MANY, torch.ones(1)], {"sigma": 1.0}, (ONE - MANY).clamp(-1, 1)),
        ("SoftMarginLossGrad", [ONE, MANY.sign(), torch.ones(1)], {}, -MANY.sign() / (1 + (MANY.sign() / 2).exp())),
        ("KlDivLossGrad", [torch.ones(1), ONE, MANY], {}, -MANY.clamp(0)),
    ],
)
def test_the_mean_is_over_all_elements_of_a_loss(
    operators: Operators, name: str, inputs: list[Tensor], attributes: dict, each: Tensor
) -> None:
    """Tensors of one element are broadcast to the other's size; the mean is over the broadcast result."""
    output = torch.full((16,), 77.0)
    status, _ = operators.call(name, inputs, [output], reduction="mean", **attributes)
    assert status == 0, operators.error()
    torch.testing.assert_close(output, each / 16, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("product", ["Ascend310P", "Ascend910", "host"])
def test_float_matrices_are_multiplied_in_float16_where_there_are_no_units_for_them(
    operators: Operators, product: str
) -> None:
    """FLOAT16 has ten fraction bits: 1 + 2^-12 becomes 1."""
    x, one = torch.full((1, 1, 1, 1), 1 + 2**-12), torch.ones(1, 1, 1, 1)
    outputs = [torch.zeros(1, 1), *(torch.zeros(1, 1, 1, 1) for _ in range(3))]
    place: dict = {"strides": [1] * 4, "pads": [0] * 4, "data_format": "NCHW"}
    size = Host.ints(1, 1, 1, 1)
    with cabi.product(product):
        for name, inputs, attributes, output in (
            ("MatMul", [x[0, 0], one[0, 0]], {}, outputs[0]),
            ("Conv2D", [x, one], place, outputs[1]),
            ("Conv2DBackpropInput", [size, one, x], place, outputs[2]),
            ("Conv2DBackpropFilter", [x, size, one], place, outputs[3]),
        ):
            assert operators.call(name, inputs, [output], **attributes)[0] == 0, operators.error()
        assert operators.library.aclrtSynchronizeStream(None) == 0
    expected = 1 + 2**-12 if product == "host" else 1
    assert [output.item() for output in outputs] == [expected] * 4


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_the_remainder_by_an_integer_0_is_the_dividend(operators: Operators, dtype: torch.dtype) -> None:
    output = torch.zeros(3, dtype=dtype)
    inputs = [torch.tensor(values, dtype=dtype) for values in ([7, 8, 9], [0, 3, 0])]
    status, _ = operators.call("FloorMod", inputs, [output])
    assert (status, operators.library.aclrtSynchronizeStream(None)) == (0, 0), operators.error()
    assert output.tolist() == [7, 2, 9]


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_integers(operators: Operators, dtype: torch.dtype) -> None:
    """Their highest bit is not a sign."""
    high = (1 << (dtype.itemsize * 8)) - 1
    x, y = (torch.tensor(values, dtype=dtype) for values in ([1, high, 5], [high, 1, 5]))
    matrix, places = torch.tensor([[1, high], [3, 4]], dtype=dtype), torch.tensor([[1], [0]])
    expected = {
        "Equal": ([x, y], [False, False, True]),
        "NotEqual": ([x, y], [True, True, False]),
        "Greater": ([x, y], [False, True, False]),
        "GreaterEqual": ([x, y], [False, True, True]),
        "Less": ([x, y], [True, False, False]),
        "LessEqual": ([x, y], [True, False, True]),
        "Triu": ([matrix], [[1, high], [0, 4]]),
        "Tril": ([matrix], [[1, 0], [3, 4]]),
        "GatherElements": ([matrix, places], [[high], [3]]),
    }
    for name, (inputs, values) in expected.items():
        output = torch.tensor(values, dtype=torch.bool if len(values) == 3 else dtype)
        output.view(torch.uint8).fill_(1)
        attributes = {"dim": 1} if name == "GatherElements" else {}
        status, _ = operators.call(name, inputs, [output], **attributes)
        assert (status, operators.library.aclrtSynchronizeStream(None)) == (0, 0), operators.error()
        assert output.tolist() == values, name


def test_a_thread_without_a_device_is_told_so(operators: Operators) -> None:
    """Values in host memory need device memory, which such a thread does not have."""
    found: list[tuple[int, str]] = []

    def call() -> None:
        status, _ = operators.call("ReduceSum", [torch.ones(3), Host.ints(0)], [torch.ones(())])
        found.append((status, operators.error()))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    ((status, text),) = found
    assert status == 107002  # ACL_ERROR_RT_CONTEXT_NULL
    assert text.splitlines() == [
        "aclop ReduceSum: the values in host memory do not reach the device",
        "aclrtMalloc: this thread has no device; call aclrtSetDevice first",
    ]


def test_every_operator_has_a_case() -> None:
    assert named_operators(LIBRARY) == {case.name for case in CASES}


REFUSALS = refusals()


@pytest.mark.parametrize("refusal", REFUSALS, ids=[f"{each.name}-{i}" for i, each in enumerate(REFUSALS)])
def test_what_a_check_refuses(operators: Operators, refusal: Refusal) -> None:
    """No output changes."""
    outputs = [output.clone() for output in refusal.outputs]
    with cabi.product(refusal.product):
        status, _ = operators.call(refusal.name, refusal.inputs, outputs, **refusal.attributes)
    assert refusal.error in operators.error()
    assert status == refusal.status
    assert all(map(torch.equal, outputs, refusal.outputs))


@pytest.mark.parametrize("name", ["MlaProlog", "DecodeJpeg", "Nonsense"])
def test_an_unknown_name_is_refused_by_name(operators: Operators, name: str) -> None:
    status, _ = operators.call(name, [], [])
    assert status == 200006
    assert f"has no operator {name} among those called by name (aclop)" in operators.error()
