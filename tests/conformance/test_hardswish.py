"""Values of aclnnHardswish, aclnnInplaceHardswish and the two gradients, through the C ABI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cabi import Dtype
from tests.conformance.hardswish_table import (
    DTYPES,
    HARDSWISH,
    HARDSWISH_BACKWARD,
    HARDSWISH_BACKWARD_V2,
    TABLES,
    VALUES,
)
from tests.conformance.machinery import Operator, Tensor, succeeds, sweep

OPERATORS = [table.operator for table in TABLES]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)
def test_values(operator: Operator, dtype: Dtype) -> None:
    x = sweep(dtype)
    tensors = {name: VALUES["gradOutput"] if name == "gradOutput" else x for name in operator.tensors}
    succeeds(operator, {name: Tensor(dtype, x.shape, values=numbers) for name, numbers in tensors.items()})


def test_minus_infinity_is_minus_zero() -> None:
    """With the single formula x * clamp(x + 3, 0, 6) / 6, it would be nan."""
    x = Tensor(shape=(3,), values=(-np.inf, -3.0, np.inf))
    got = succeeds(HARDSWISH, {"self": x, "out": Tensor(shape=(3,))}).view()
    assert got.tobytes() == np.array([-0.0, -0.0, np.inf], np.float32).tobytes()


def test_the_gradients_differ_at_the_ends_of_the_curve() -> None:
    """The document of aclnnHardswishBackward has -3 and 3 on the curve, that of its V2 does not."""
    tensors = {"gradOutput": Tensor(shape=(3,), values=(2.0,)), "out": Tensor(shape=(3,))}
    x = {"self": Tensor(shape=(3,), values=(-3.0, 3.0, np.nan))}
    assert succeeds(HARDSWISH_BACKWARD, tensors | x).view().tolist() == [-1.0, 3.0, 2.0]
    assert succeeds(HARDSWISH_BACKWARD_V2, tensors | x).view().tolist() == [0.0, 2.0, 2.0]
