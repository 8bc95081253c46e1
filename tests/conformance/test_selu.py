"""aclnnSelu, aclnnInplaceSelu and aclnnSeluBackward through the C ABI, beside spec 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cabi import PARAM_INVALID, PRODUCTS, SUCCESS, Dtype
from tests.conformance.machinery import (
    NOWHERE,
    Operator,
    Row,
    Same,
    Tensor,
    call,
    calls,
    check_order,
    check_row,
    on_all,
    pairs,
    sweep,
    views,
)
from tests.conformance.selu_table import (
    CHECKS,
    DTYPES,
    GRADIENTS,
    INPLACE_SELU,
    MORE,
    OPERATORS,
    SELU,
    SELU_BACKWARD,
    accepted,
)

F32, F16, BF16, F64, I32, I8 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE, Dtype.INT32, Dtype.INT8
EACH_OPERATOR = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)


def succeeds(operator: Operator, changes: dict[str, Any], product: str = "host") -> np.ndarray:
    """The results, as they are in memory."""
    outcome = call(operator, changes, product)
    assert outcome.status == SUCCESS, outcome.text
    return outcome.prepared.output.view


# ---- spec 2.3: the checks


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("operator", "row"),
    [
        pytest.param(operator, row, id=f"{operator.api}-{row.number}-{row.condition}")
        for operator in OPERATORS
        for row in CHECKS[operator] + MORE[operator] + accepted(operator)
    ],
)
def test_row(operator: Operator, row: Row, product: str) -> None:
    check_row(operator, row, product)


@pytest.mark.parametrize("product", PRODUCTS)
@EACH_OPERATOR
def test_order_of_checks(operator: Operator, product: str) -> None:
    for first, second in pairs(CHECKS[operator]):
        check_order(operator, first, second, product)


@pytest.mark.parametrize("product", PRODUCTS)
def test_dtypes_of_selu_backward(product: str) -> None:
    """Every dtype of gradOutput with every one of result, and of gradInput: all three are one."""
    cases = {(g, y, g) for g in Dtype for y in Dtype} | {(g, g, out) for g in Dtype for out in Dtype}
    got, expected = {}, {}
    for g, y, out in sorted(cases):
        changes = {"gradOutput.dtype": g, "result.dtype": y, "gradInput.dtype": out}
        supported = g == y == out and product in DTYPES.get(g, NOWHERE)
        expected[g.name, y.name, out.name] = SUCCESS if supported else PARAM_INVALID
        got[g.name, y.name, out.name] = call(SELU_BACKWARD, changes, product).status
    assert got == expected


@pytest.mark.parametrize("product", PRODUCTS)
def test_dtypes_of_selu(product: str) -> None:
    """Every dtype of self with every one of out, which may differ; and of selfRef."""
    got, expected = {}, {}
    for x in Dtype:
        supported = product in DTYPES.get(x, NOWHERE)
        for out in Dtype:
            both = supported and product in DTYPES.get(out, NOWHERE)
            expected[x.name, out.name] = SUCCESS if both else PARAM_INVALID
            got[x.name, out.name] = call(SELU, {"self.dtype": x, "out.dtype": out}, product).status
        expected[x.name, "in place"] = SUCCESS if supported else PARAM_INVALID
        got[x.name, "in place"] = call(INPLACE_SELU, {"selfRef.dtype": x}, product).status
    assert got == expected


# ---- spec 2.2 and 2.4: the values


@pytest.mark.parametrize("dtype", (F32, F16, BF16, F64), ids=lambda dtype: dtype.name)
@EACH_OPERATOR
def test_values(operator: Operator, dtype: Dtype) -> None:
    x = sweep(dtype)
    changes = {}
    for name, spec in operator.arguments.items():
        if isinstance(spec, Tensor):
            changes[name] = Tensor(dtype, x.shape, values=GRADIENTS if name == "gradOutput" else x)
    succeeds(operator, changes)


def backward_of(g: list[float], y: list[float], dtype: Dtype = F32) -> list[float]:
    """Gradients of one call, in its own dtype."""
    tensors = {"gradOutput": Tensor(dtype, (len(g),), values=g), "result": Tensor(dtype, (len(g),), values=y)}
    return succeeds(SELU_BACKWARD, {**tensors, "gradInput": Tensor(dtype, (len(g),))}).tolist()


def test_check_values() -> None:
    """Spec 9: results 0, -scale * alpha, 1e-30. And spec 2.2: -0.0 is below, NaN is above."""
    expected = np.array([1.7580993, 0.0, 1.0507010], np.float32).tolist()
    assert backward_of([1.0, 1.0, 1.0], [0.0, -1.7580993, 1e-30]) == expected
    assert backward_of([1.0, 2.0], [-0.0, np.nan]) == np.array([1.7580993, 2 * 1.0507010], np.float32).tolist()
    assert backward_of([1.0], [0.0], F16) == [float(np.float16(1.7580993))]


def test_integers_forward() -> None:
    """Truncated toward zero, where INT32's and INT8's own arithmetic agree."""
    x = [-100, -12, -5, -2, -1, 0, 1, 2, 5, 9, 10, 15, 19, 20, 100]
    y = [-1, -1, -1, -1, -1, 0, 1, 2, 5, 9, 10, 15, 19, 21, 105]
    for dtype in (I32, I8):
        tensor = Tensor(dtype, (len(x),), values=x)
        assert succeeds(SELU, {"self": tensor, "out": tensor}).tolist() == y
        assert succeeds(INPLACE_SELU, {"selfRef": tensor}).tolist() == y


def test_integers_backward() -> None:
    """Through FLOAT16: nearest even on the way out. 1.758 * 4 = 7.03, 0.758 * 4 = 3.03, 1.05 * 10 = 10.5078 -> 11."""
    for dtype in (I32, I8):
        assert backward_of([4, 4, 4, 10, -10], [0, -1, 1, 1, 1], dtype) == [7, 3, 4, 11, -11]
        assert backward_of([2, 2, -1], [-2, -3, -100], dtype) == [0, -2, 98]
    assert backward_of([120, 127, -127, 1], [1, 1, 1, -128], I8) == [126, 127, -128, -126]  # saturated
    assert backward_of([2049, 3000], [1, 1], I32) == [2152, 3152]  # FLOAT16 has even numbers only from 2048 on


def test_integers_backward_everywhere() -> None:
    """All of INT8 by all of INT8, against the same arithmetic in numpy; INT32 over what FLOAT16 holds, and beyond."""
    g, y = (grid.reshape(-1) for grid in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    for dtype in (I8, I32):
        backward_of(list(g), list(y), dtype)
    g, y = (grid.reshape(-1) for grid in np.meshgrid([-3, 1, 7, 1000], [2**k + d for k in range(17) for d in (-1, 1)]))
    backward_of(list(g), list(y), I32)
    backward_of(list(y), list(g), I32)
    backward_of(list(g), list(-y), I32)


@pytest.mark.parametrize("shape", [(), (5,), (2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)], ids=str)
def test_every_dtype_at_other_ranks(shape: tuple[int, ...]) -> None:
    for operator in OPERATORS:
        for dtype in DTYPES:
            succeeds(operator, {**on_all(operator, "shape", shape), **on_all(operator, "dtype", dtype)})


# ---- views


@EACH_DTYPE
@EACH_OPERATOR
def test_views(operator: Operator, dtype: Dtype) -> None:
    """Each view of an input with each view of the output; the further inputs take the views in turn."""
    for shape in ((3, 4), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2, 3)):
        inputs, outputs = list(views(shape, True).values()), list(views(shape, False).values())
        for i, first in enumerate(inputs):
            for j, out in enumerate(outputs):
                changes: dict[str, Any] = {}
                for name, spec in operator.arguments.items():
                    if isinstance(spec, Tensor):
                        strides, offset = out if name == operator.output else first
                        changes[name] = Tensor(dtype, shape, strides, offset)
                        first = inputs[(i + j) % len(inputs)]
                succeeds(operator, changes)


@EACH_DTYPE
@EACH_OPERATOR
def test_every_size_and_alignment(operator: Operator, dtype: Dtype) -> None:
    """A window that slides over its storage while it grows past several vectors; then one worth several threads."""
    for size in range(1, 70):
        changes: dict[str, Any] = {}
        for step, (name, spec) in enumerate(operator.arguments.items()):
            if isinstance(spec, Tensor):
                changes[name] = Tensor(dtype, (size,), offset=(size * (step + 1)) % 17)
        succeeds(operator, changes)
    succeeds(operator, {**on_all(operator, "shape", (100_003,)), **on_all(operator, "dtype", dtype)})


@pytest.mark.parametrize("own_descriptor", [False, True])
@pytest.mark.parametrize("view", views((3, 4), False).values(), ids=views((3, 4), False))
def test_output_is_an_input(view: tuple[tuple[int, ...] | None, int], own_descriptor: bool) -> None:
    for dtype in DTYPES:
        x = Tensor(dtype, (3, 4), view[0], view[1])
        succeeds(SELU, {"self": x, "out": Same("self", own_descriptor)})
        for name in ("gradOutput", "result"):
            succeeds(SELU_BACKWARD, {"gradOutput": x, "result": x, "gradInput": Same(name, own_descriptor)})


@settings(max_examples=100, derandomize=True, deadline=None)
@given(data=st.data())
@EACH_OPERATOR
def test_any_layout(operator: Operator, data: st.DataObject) -> None:
    succeeds(operator, data.draw(calls(operator, tuple(DTYPES), 11)))
