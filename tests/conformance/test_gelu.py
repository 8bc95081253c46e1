"""Values of aclnnGelu, aclnnGeluBackward and their V2, through the C ABI."""

from __future__ import annotations

import pytest

from tests.cabi import Dtype
from tests.conformance.gelu_table import (
    DTYPES,
    GELU,
    GELU_BACKWARD_V2,
    GELU_V2,
    VALUES,
)
from tests.conformance.machinery import Changes, Operator, Tensor, succeeds, sweep

FORMULAS: dict[str, tuple[Operator, Changes]] = {
    "none, V2": (GELU_V2, {}),
    "tanh, V2": (GELU_V2, {"approximate": 1}),
    "none, backward V2": (GELU_BACKWARD_V2, {}),
    "tanh, backward V2": (GELU_BACKWARD_V2, {"approximate": "tanh"}),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("formula", FORMULAS)
def test_values(formula: str, dtype: Dtype) -> None:
    operator, changes = FORMULAS[formula]
    x = sweep(dtype)
    tensors = {name: VALUES["gradOutput"] if name == "gradOutput" else x for name in operator.tensors}
    succeeds(
        operator, {**changes, **{name: Tensor(dtype, x.shape, values=numbers) for name, numbers in tensors.items()}}
    )


def test_the_formulas_differ() -> None:
    """By up to 5e-4: aclnnGelu's document has the hyperbolic tangent's formula, aclnnGeluV2's 0 is x * Phi(x)."""
    x = Tensor(shape=(3,), values=(-1.0, 1.0, 2.0))
    out = Tensor(shape=(3,))
    by_tanh = succeeds(GELU, {"self": x, "out": out}).view()
    assert by_tanh == pytest.approx([-0.15880800, 0.84119199, 1.95459769], abs=2.4e-7)
    exact = succeeds(GELU_V2, {"x": x, "y": out}).view()
    assert exact == pytest.approx([-0.15865525, 0.84134475, 1.95449974], abs=2.4e-7)
