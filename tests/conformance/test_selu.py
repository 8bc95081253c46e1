"""Tests specific to aclnnSelu, aclnnInplaceSelu and aclnnSeluBackward, through the C ABI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cabi import INNER_NULLPTR, PRODUCTS, SUCCESS, Dtype
from tests.conformance.machinery import Tensor, call, on_all, succeeds
from tests.conformance.selu_table import DTYPES, INPLACE_SELU, SELU, SELU_BACKWARD, TABLES

F32, F16, I32, I8 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.INT32, Dtype.INT8
OPERATORS = [table.operator for table in TABLES]


# ---- Values (formulas of the documents of aclnnSelu and aclnnSeluBackward; integers as in Ascend950's kernels)


def backward_of(g: list[float], y: list[float], dtype: Dtype = F32) -> list[float]:
    """Gradients of one call, in its own dtype."""
    tensors = {"gradOutput": Tensor(dtype, (len(g),), values=g), "result": Tensor(dtype, (len(g),), values=y)}
    return succeeds(SELU_BACKWARD, {**tensors, "gradInput": Tensor(dtype, (len(g),))}).view().tolist()


def test_check_values() -> None:
    """The document's formula at results 0, -scale * alpha and 1e-30; -0.0 counts as below 0, NaN as above."""
    expected = np.array([1.7580993, 0.0, 1.0507010], np.float32).tolist()
    assert backward_of([1.0, 1.0, 1.0], [0.0, -1.7580993, 1e-30]) == expected
    assert backward_of([1.0, 2.0], [-0.0, np.nan]) == np.array([1.7580993, 2 * 1.0507010], np.float32).tolist()
    assert backward_of([1.0], [0.0], F16) == [float(np.float16(1.7580993))]


def test_a_gradient_of_another_dtype_up_to_cann_9_1() -> None:
    """In FLOAT, then cast: (-1 + 1.7580993) * 3 is rounded to FLOAT16, or truncated. Other dtypes of result have no
    kernel."""
    changes = {name: Tensor(F32, (1,), values=[value]) for name, value in (("gradOutput", 3.0), ("result", -1.0))}
    for dtype, expected in ((F16, float(np.float16(3 * 0.7580993))), (I32, 2)):
        outcome = call(SELU_BACKWARD, {**changes, "gradInput": Tensor(dtype, (1,))}, release="9.1")
        assert outcome.status == SUCCESS, outcome.text
        assert outcome.view().tolist() == [expected]
    outcome = call(SELU_BACKWARD, {"result.dtype": F16}, release="9.1")
    assert outcome.status == INNER_NULLPTR
    assert outcome.text.startswith(
        "aclnnSeluBackward: result has dtype FLOAT16, for which there is no kernel with gradOutput of FLOAT; pass the "
        "same dtype"
    )


def test_integers_forward() -> None:
    """Truncated toward zero, where INT32's and INT8's arithmetic agree."""
    x = [-100, -12, -5, -2, -1, 0, 1, 2, 5, 9, 10, 15, 19, 20, 100]
    y = [-1, -1, -1, -1, -1, 0, 1, 2, 5, 9, 10, 15, 19, 21, 105]
    for dtype in (I32, I8):
        tensor = Tensor(dtype, (len(x),), values=x)
        assert succeeds(SELU, {"self": tensor, "out": tensor}).view().tolist() == y
        assert succeeds(INPLACE_SELU, {"selfRef": tensor}).view().tolist() == y


def published_int8(x: int) -> int:
    """Ascend950's kernel (hicann/ops-nn, activation/selu/op_kernel/arch35/selu.h, ComputeInt8): above 0 the product
    with FLOAT16's scale, truncated to FLOAT16; below 0 FLOAT16 steps, rounded up; truncated, and wrapped around."""
    product = np.float32(max(x, 0)) * np.float32(1.05078125)
    upper = np.float16(product)
    if float(upper) > float(product):
        upper = np.nextafter(upper, np.float16(0))
    lower = np.float16(np.float16(np.exp(np.float32(min(x, 0)))) - np.float16(1)) * np.float16(1.75809934085)
    return (int(upper + np.ceil(lower)) + 128) % 256 - 128


def test_int8_is_that_of_the_published_kernel() -> None:
    x = list(range(-128, 128))
    y = [published_int8(value) for value in x]
    tensor = Tensor(I8, (256,), values=x)
    for product in PRODUCTS:
        assert succeeds(SELU, {"self": tensor, "out": tensor}, product).view().tolist() == y


def test_integers_backward() -> None:
    """Through FLOAT16: nearest even on the way out. 1.758 * 4 = 7.03, 0.758 * 4 = 3.03, 1.05 * 10 = 10.5078 -> 11."""
    for dtype in (I32, I8):
        assert backward_of([4, 4, 4, 10, -10], [0, -1, 1, 1, 1], dtype) == [7, 3, 4, 11, -11]
        assert backward_of([2, 2, -1], [-2, -3, -100], dtype) == [0, -2, 98]
    assert backward_of([120, 127, -127, 1], [1, 1, 1, -128], I8) == [126, 127, -128, -126]  # saturated
    assert backward_of([2049, 3000], [1, 1], I32) == [2152, 3152]  # from 2048 on, FLOAT16 only has even numbers


def test_integers_backward_everywhere() -> None:
    """All of INT8 by all of INT8, against the same arithmetic in numpy; INT32 over FLOAT16's range, and beyond."""
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
