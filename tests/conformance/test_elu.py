"""aclnnElu, aclnnInplaceElu and aclnnEluBackward through the C ABI, beside spec 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import PARAM_INVALID, PRODUCTS, SUCCESS, Dtype
from tests.conformance.elu_table import (
    ACCEPTED,
    BACKWARD_DTYPES,
    CHECKS,
    ELU,
    ELU_BACKWARD,
    FORWARD_DTYPES,
    INPLACE_ELU,
    MORE,
    OPERATORS,
    VALUES,
)
from tests.conformance.machinery import (
    NOWHERE,
    Operator,
    Row,
    Same,
    Scalar,
    Tensor,
    call,
    calls,
    can_cast,
    check_order,
    check_row,
    on_all,
    pairs,
    sweep,
    views,
)

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
INF, NAN = np.inf, np.nan
FLOATING = (F32, F16, BF16, F64)
EACH_OPERATOR = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.api)


def scalars(alpha: float, scale: float, input_scale: float) -> dict[str, Scalar]:
    return {"alpha": Scalar(alpha), "scale": Scalar(scale), "inputScale": Scalar(input_scale)}


def succeeds(operator: Operator, changes: dict[str, Any], product: str = "host") -> None:
    outcome = call(operator, changes, product)
    assert outcome.status == SUCCESS, outcome.text


# ---- spec 1.3: the checks


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("operator", "row"),
    [
        pytest.param(operator, row, id=f"{operator.api}-{row.number}-{row.condition}")
        for operator in OPERATORS
        for row in CHECKS[operator] + MORE[operator] + ACCEPTED[operator]
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
def test_dtypes_of_elu_backward(product: str) -> None:
    """Every dtype of gradOutput with every one of selfOrResult, and of gradInput."""
    cases = {(g, s, g) for g in Dtype for s in Dtype} | {(g, g, out) for g in Dtype for out in Dtype}
    got, expected = {}, {}
    for g, s, out in sorted(cases):
        changes = {"gradOutput.dtype": g, "selfOrResult.dtype": s, "gradInput.dtype": out}
        accepted = g == s and product in BACKWARD_DTYPES.get(g, NOWHERE) and can_cast(g, out)
        expected[g.name, s.name, out.name] = SUCCESS if accepted else PARAM_INVALID
        got[g.name, s.name, out.name] = call(ELU_BACKWARD, changes, product).status
    assert got == expected


@pytest.mark.parametrize("product", PRODUCTS)
def test_dtypes_of_elu(product: str) -> None:
    """Every dtype of self with every one of out, and of selfRef."""
    got, expected = {}, {}
    for x in Dtype:
        supported = product in FORWARD_DTYPES.get(x, NOWHERE)
        for out in Dtype:
            expected[x.name, out.name] = SUCCESS if supported and can_cast(x, out) else PARAM_INVALID
            got[x.name, out.name] = call(ELU, {"self.dtype": x, "out.dtype": out}, product).status
        expected[x.name, "in place"] = SUCCESS if supported else PARAM_INVALID
        got[x.name, "in place"] = call(INPLACE_ELU, {"selfRef.dtype": x}, product).status
    assert got == expected


@pytest.mark.parametrize("dtype", [d for d in cabi.REAL + cabi.INTEGER if d not in (Dtype.INT4, Dtype.UINT1)])
@pytest.mark.parametrize("name", ["alpha", "scale", "inputScale"])
def test_scalar_dtypes(name: str, dtype: Dtype) -> None:
    """Every real dtype is castable to FLOAT."""
    for operator in OPERATORS:
        succeeds(operator, {name: Scalar(1 if dtype == Dtype.BOOL else 2, dtype)})


# ---- spec 1.2 and 1.4: the values

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
    if dtype == F64:  # the scalars are floats: their product is exact in double only when it is short
        coefficients = tuple(float(np.round(c * 16) / 16) for c in coefficients)
    x = sweep(dtype)
    shape = x.shape
    changes: dict[str, Any] = dict(scalars(*coefficients))
    for name, spec in operator.arguments.items():
        if isinstance(spec, Tensor):
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
        for name, spec in operator.arguments.items():
            if isinstance(spec, Tensor):
                values = (1.0, -2.0, 0.5, 0.0) if name == "gradOutput" else SPECIAL
                changes[name] = Tensor(dtype, (15, 4), values=values)
        succeeds(operator, changes)
        if operator is ELU_BACKWARD and not coefficients[0] < 0:
            succeeds(operator, {**changes, "isResult": True})


def backward_of(g: list[float], v: list[float], **changes: Any) -> np.ndarray:
    """Results of one FP32 backward, as they are in memory."""
    size = (len(g),)
    tensors = {"gradOutput": Tensor(values=g, shape=size), "selfOrResult": Tensor(values=v, shape=size)}
    outcome = call(ELU_BACKWARD, {**scalars(1, 1, 1), **tensors, "gradInput.shape": size, **changes})
    assert outcome.status == SUCCESS, outcome.text
    return outcome.prepared.output.view


def test_answer_of_the_published_example() -> None:
    """Spec 11: the zero is negative, from -1 * 0."""
    x = [-2.0, -1.0, 0.0, 1.0]
    got = backward_of(x, x, isResult=True)
    assert got.tobytes() == np.array([2.0, -0.0, 0.0, 1.0], np.float32).tobytes()


def test_backward_where_the_formula_is_subtle() -> None:
    """Spec 1.4, and zero, which belongs to the lower branch."""
    scale = {"scale": Scalar(2.0), "alpha": Scalar(3.0), "inputScale": Scalar(0.5)}
    assert backward_of([3.0], [INF], **scale) == [6.0]
    assert backward_of([3.0], [-INF], **scale) == [0.0]
    assert np.isnan(backward_of([INF], [-INF], **scale)).all()
    for is_result in (False, True):
        assert backward_of([3.0], [NAN], isResult=is_result, **scale) == [6.0]  # no NaN, as ATen
        assert backward_of([3.0, 3.0], [0.0, -0.0], isResult=is_result, **scale).tolist() == [9.0, 9.0]  # not 6
        assert backward_of([3.0], [1e-45], isResult=is_result, **scale) == [6.0]  # the upper branch has no inputScale


def test_result_is_rounded_to_the_input_dtype_before_the_cast() -> None:
    """Spec 1.4: computed in gradOutput's dtype, then cast. 1 + 2^-8 + 2^-16 is 1 + 2^-7 or 1 in BF16, and no more."""
    one = Tensor(BF16, values=[1.0])
    tensors = {"gradOutput": one, "selfOrResult": one, "gradInput.dtype": F64}
    outcome = call(ELU_BACKWARD, {**tensors, "scale": Scalar(1 + 2.0**-8 + 2.0**-16)})
    assert outcome.status == SUCCESS
    assert np.all(outcome.prepared.output.view == 1 + 2.0**-7)


# ---- views


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@EACH_OPERATOR
def test_views(operator: Operator, dtype: Dtype, shape: tuple[int, ...]) -> None:
    """Each view of an input with each view of the output; the further inputs take the views in turn."""
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


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
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
    there = {"shape": (3, 4), "strides": view[0], "offset": view[1]}
    for dtype in FLOATING:
        x = Tensor(dtype, **there)
        succeeds(ELU, {"self": x, "out": Same("self", own_descriptor)})
        for name in ("gradOutput", "selfOrResult"):
            succeeds(ELU_BACKWARD, {"gradOutput": x, "selfOrResult": x, "gradInput": Same(name, own_descriptor)})


def test_gradient_and_result_may_be_one_tensor() -> None:
    """All three arguments one descriptor."""
    one = {"selfOrResult": Same("gradOutput"), "gradInput": Same("gradOutput")}
    succeeds(ELU_BACKWARD, one)
    succeeds(ELU_BACKWARD, {**one, "isResult": True})


FINITE = st.sampled_from([1.0, 0.0, -0.0, 0.5, -0.5, 1.6732632, 3.0, -2.0])


@settings(max_examples=100, derandomize=True, deadline=None)
@given(data=st.data())
@EACH_OPERATOR
def test_any_layout(operator: Operator, data: st.DataObject) -> None:
    changes = data.draw(calls(operator, (F32, F16, BF16), 8))
    changes.update(scalars(data.draw(FINITE), data.draw(FINITE), data.draw(FINITE)))
    if operator is ELU_BACKWARD:
        changes["isResult"] = data.draw(st.booleans()) and not changes["alpha"].value < 0
    succeeds(operator, changes)
