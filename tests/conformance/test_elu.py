"""Tests specific to aclnnElu, aclnnInplaceElu and aclnnEluBackward, through the C ABI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import Dtype
from tests.conformance.elu_table import ELU_BACKWARD, TABLES, VALUES
from tests.conformance.machinery import Operator, Same, Scalar, Tensor, succeeds, sweep

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
INF, NAN = np.inf, np.nan
FLOATING = (F32, F16, BF16, F64)
OPERATORS = [table.operator for table in TABLES]
EACH_OPERATOR = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)


def scalars(alpha: float, scale: float, input_scale: float) -> dict[str, Scalar]:
    return {"alpha": Scalar(alpha), "scale": Scalar(scale), "inputScale": Scalar(input_scale)}


# ---- the scalars


@pytest.mark.parametrize("dtype", [d for d in cabi.REAL + cabi.INTEGER if d not in (Dtype.INT4, Dtype.UINT1)])
@pytest.mark.parametrize("name", ["alpha", "scale", "inputScale"])
def test_scalar_dtypes(name: str, dtype: Dtype) -> None:
    """Every real dtype can be converted to FLOAT."""
    for operator in OPERATORS:
        succeeds(operator, {name: Scalar(1 if dtype == Dtype.BOOL else 2, dtype)})


# ---- the values (formulas of the documents of aclnnElu and aclnnEluBackward)

COEFFICIENTS = [
    (1.0, 1.0, 1.0),
    (1.6732632423543772, 1.0507009873554805, 1.0),  # SELU
    (2.5, 1.0, 0.4),  # CELU with alpha 2.5
    (0.7, -1.3, 1.0),
    (-0.7, 1.3, -0.25),
    (0.0, 1.0, 1.0),
    (-0.0, 1.0, 1.0),
    (1.0, 0.0, 1.0),
    (1.0, 1.0, 0.0),
]


@pytest.mark.parametrize("coefficients", COEFFICIENTS, ids=str)
@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@EACH_OPERATOR
def test_values(operator: Operator, dtype: Dtype, coefficients: tuple[float, float, float]) -> None:
    if dtype == F64:  # the scalars are floats: their product is exact in double only if it is short
        coefficients = tuple(float(np.round(c * 16) / 16) for c in coefficients)
    x = sweep(dtype)
    shape = x.shape
    changes: dict[str, Any] = dict(scalars(*coefficients))
    for name in operator.tensors:
        changes[name] = Tensor(dtype, shape, values=VALUES["gradOutput"] if name == "gradOutput" else x)
    succeeds(operator, changes)
    if operator is ELU_BACKWARD and coefficients[0] >= 0:
        succeeds(operator, {**changes, "isResult": True})


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, INF, -INF, 1e-40, -1e-40, -3.0, -90.0, -200.0, 3e38, -3e38)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "coefficients",
    [(INF, 1, 1), (-INF, 1, 1), (NAN, 1, 1), (1.5, 2, INF), (1.5, 2, -INF), (1.5, 2, NAN), (INF, 0.5, INF)],
    ids=str,
)
def test_coefficients_that_are_not_finite(coefficients: tuple[float, float, float], dtype: Dtype) -> None:
    """The forward becomes threshold(x, 0, -alpha) * scale; the backward keeps its formula."""
    for operator in OPERATORS:
        changes: dict[str, Any] = dict(scalars(*coefficients))
        for name in operator.tensors:
            values = (1.0, -2.0, 0.5, 0.0) if name == "gradOutput" else SPECIAL
            changes[name] = Tensor(dtype, (15, 4), values=values)
        succeeds(operator, changes)
        if operator is ELU_BACKWARD and not coefficients[0] < 0:
            succeeds(operator, {**changes, "isResult": True})


def backward_of(g: list[float], v: list[float], **changes: Any) -> np.ndarray:
    """Results of one FP32 backward, as stored."""
    size = (len(g),)
    tensors = {"gradOutput": Tensor(values=g, shape=size), "selfOrResult": Tensor(values=v, shape=size)}
    changes = {**scalars(1, 1, 1), **tensors, "gradInput.shape": size, **changes}
    return succeeds(ELU_BACKWARD, changes, "Ascend910B").view()


def test_answer_of_the_published_example() -> None:
    """The example of aclnnEluBackward's document: the zero is negative, from -1 * 0."""
    x = [-2.0, -1.0, 0.0, 1.0]
    got = backward_of(x, x, isResult=True)
    assert got.tobytes() == np.array([2.0, -0.0, 0.0, 1.0], np.float32).tobytes()


def test_backward_where_the_formula_is_subtle() -> None:
    """Infinities and NaN, and zero, which belongs to the lower branch."""
    scale = {"scale": Scalar(2.0), "alpha": Scalar(3.0), "inputScale": Scalar(0.5)}
    assert backward_of([3.0], [INF], **scale) == [6.0]
    assert backward_of([3.0], [-INF], **scale) == [0.0]
    assert np.isnan(backward_of([INF], [-INF], **scale)).all()
    for is_result in (False, True):
        assert backward_of([3.0], [NAN], isResult=is_result, **scale) == [6.0]  # not NaN: the comparison is false
        assert backward_of([3.0, 3.0], [0.0, -0.0], isResult=is_result, **scale).tolist() == [9.0, 9.0]  # not 6
        assert backward_of([3.0], [1e-45], isResult=is_result, **scale) == [6.0]  # the upper branch has no inputScale


def test_result_is_rounded_to_the_input_dtype_before_the_cast() -> None:
    """Rounded to gradOutput's dtype, then cast, as in CANN's stage 1. 1 + 2^-8 + 2^-16 is 1 + 2^-7 or 1 in BF16."""
    one = Tensor(BF16, values=[1.0])
    tensors = {"gradOutput": one, "selfOrResult": one, "gradInput.dtype": F64}
    outcome = succeeds(ELU_BACKWARD, {**tensors, "scale": Scalar(1 + 2.0**-8 + 2.0**-16)})
    assert np.all(outcome.view() == 1 + 2.0**-7)


# ---- memory


def test_gradient_and_result_may_be_one_tensor() -> None:
    """All three arguments share one descriptor."""
    one = {"selfOrResult": Same("gradOutput"), "gradInput": Same("gradOutput")}
    succeeds(ELU_BACKWARD, one)
    succeeds(ELU_BACKWARD, {**one, "isResult": True})
