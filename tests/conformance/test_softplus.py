"""Scalars and values of aclnnSoftplus and aclnnSoftplusBackward, through the C ABI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import Dtype
from tests.conformance.machinery import Operator, Scalar, Tensor, succeeds, sweep
from tests.conformance.softplus_table import FORWARD_DTYPES, INTEGERS, SOFTPLUS, SOFTPLUS_BACKWARD, TABLES, VALUES

OPERATORS = [table.operator for table in TABLES]
EACH_OPERATOR = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)
INF, NAN = np.inf, np.nan


def of_scalars(operator: Operator, dtype: Dtype, x: Any, beta: float, threshold: float) -> None:
    """A call of these values."""
    tensors = {name: VALUES["gradOutput"] if name == "gradOutput" else x for name in operator.tensors}
    changes: dict[str, Any] = {name: Tensor(dtype, np.shape(x), values=of) for name, of in tensors.items()}
    succeeds(operator, {**changes, "beta": Scalar(beta), "threshold": Scalar(threshold)})


@pytest.mark.parametrize("dtype", [d for d in cabi.REAL + cabi.INTEGER if d not in (Dtype.INT4, Dtype.UINT1)])
@pytest.mark.parametrize("name", ["beta", "threshold"])
def test_scalar_dtypes(name: str, dtype: Dtype) -> None:
    """Every real dtype can be converted to FLOAT."""
    for operator in OPERATORS:
        succeeds(operator, {name: Scalar(1 if dtype == Dtype.BOOL else 2, dtype)})


@pytest.mark.parametrize("dtype", FORWARD_DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    ("beta", "threshold"), [(1.0, 20.0), (2.0, 3.0), (0.25, -1.0), (1.375, 5.0), (-0.5, 20.0), (1.0, 1000.0)], ids=str
)
@EACH_OPERATOR
def test_values(operator: Operator, beta: float, threshold: float, dtype: Dtype) -> None:
    of_scalars(operator, dtype, sweep(dtype), beta, threshold)


@pytest.mark.parametrize("dtype", FORWARD_DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    ("beta", "threshold"),
    [(0.0, 20.0), (-0.0, -1.0), (INF, 20.0), (-INF, 20.0), (NAN, 20.0), (1.0, INF), (1.0, -INF), (1.0, NAN)],
    ids=str,
)
@EACH_OPERATOR
def test_scalars_that_make_no_curve(operator: Operator, beta: float, threshold: float, dtype: Dtype) -> None:
    of_scalars(operator, dtype, (0.0, -0.0, 1.0, -1.0, 0.5, INF, -INF, NAN, -30.0, 30.0), beta, threshold)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("gradient", [Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE], ids=lambda d: d.name)
def test_a_gradient_of_integers_is_computed_in_float(gradient: Dtype, dtype: Dtype) -> None:
    """Together with FLOAT16, too: 100 * beta exceeds the threshold, and 0 and 1 do not."""
    x = Tensor(dtype, (4,), values=(0, 1, 0, 1) if dtype == Dtype.BOOL else (0, 1, 2, 100))
    for out in (gradient, Dtype.FLOAT):
        tensors = {"gradOutput": Tensor(gradient, (4,)), "self": x, "gradInput": Tensor(out, (4,))}
        succeeds(SOFTPLUS_BACKWARD, {**tensors, "threshold": Scalar(20.0)})


def test_the_threshold_itself_is_on_the_curve() -> None:
    x, out = Tensor(shape=(2,), values=(2.0, 2.25)), Tensor(shape=(2,))
    got = succeeds(SOFTPLUS, {"self": x, "out": out, "beta": Scalar(1.0), "threshold": Scalar(2.0)}).view()
    assert got[0] == pytest.approx(2.126928, abs=1e-6)
    assert got[1] == 2.25
