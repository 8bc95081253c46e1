"""Tests specific to aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad, through the C ABI."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import AICORE_EXCEPTION, SUCCESS, Dtype
from tests.conformance.cross_entropy_loss_table import (
    BACKWARD_DTYPES,
    CROSS_ENTROPY_LOSS,
    CROSS_ENTROPY_LOSS_GRAD,
    FORWARD_DTYPES,
    TABLES,
    backward_shapes,
    forward_shapes,
)
from tests.conformance.machinery import Changes, DtypeRow, Operator, Prepared, Table, Tensor, call, succeeds, views

F32, F16, BF16, F64, I32, I64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE, Dtype.INT32, Dtype.INT64
INF, NAN = np.inf, np.nan
FORWARD, BACKWARD = TABLES
EACH_OPERATOR = pytest.mark.parametrize(
    "operator", [table.operator for table in TABLES], ids=lambda operator: operator.api
)
EACH_REDUCTION = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
EACH_DTYPE_ROW = pytest.mark.parametrize(
    ("table", "row"),
    [
        pytest.param(table, row, id=f"{table.operator.api}-{row.dtypes[0].name}")
        for table, rows in ((FORWARD, FORWARD_DTYPES), (BACKWARD, BACKWARD_DTYPES))
        for row in rows
        if I64 in row.dtypes
    ],
)


def shapes(operator: Operator, rows: int, classes: int, reduction: str = "mean") -> Changes:
    return (forward_shapes if operator is CROSS_ENTROPY_LOSS else backward_shapes)(rows, classes, reduction)


# ---- the values (formulas of the documents of aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad)

MODES: dict[str, Changes] = {
    "plain": {"weightOptional": None},
    "weight": {},
    "smoothing": {"labelSmoothing": 0.125},
    "ignored": {"ignoreIndex": 1},
}


@EACH_REDUCTION
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("magnitude", [2.0**-12, 1.0, 30.0, 2.0**10], ids=str)
@EACH_DTYPE_ROW
def test_values(table: Table, row: DtypeRow, magnitude: float, mode: Changes, reduction: str) -> None:
    """Logits around 0 of several magnitudes; for the gradient, their log probabilities."""
    for rows, classes in ((1, 1), (5, 3), (33, 257), (2, 4099)):
        random = np.random.default_rng(rows * classes)
        logits = magnitude * random.standard_normal((rows, classes))
        log_prob = logits - logits.max(1, keepdims=True)
        log_prob = log_prob - np.log(np.exp(log_prob).sum(1, keepdims=True))
        changes = {**table.of_dtypes(row.dtypes), **shapes(table.operator, rows, classes, reduction)}
        changes |= {"target.values": random.integers(0, classes, rows)}
        changes |= {"weightOptional.values": random.uniform(0.25, 4, classes)}
        changes |= {"input.values": logits} if table is FORWARD else {"logProb.values": log_prob}
        if "weightOptional" in mode:
            changes = {key: value for key, value in changes.items() if not key.startswith("weightOptional")}
        succeeds(table.operator, {**changes, **mode})


@EACH_REDUCTION
@EACH_DTYPE_ROW
def test_z_loss(table: Table, row: DtypeRow, reduction: str) -> None:
    """Alone and with smoothing; ignored rows have none."""
    rows, classes = 7, 19
    changes = {**table.of_dtypes(row.dtypes), **shapes(table.operator, rows, classes, reduction)}
    dtype = row.dtypes[0]
    per_row = (rows,) if reduction == "none" else (1,)
    for smoothing in (0.0, 0.25):
        for scale in (0.5, 2.0**-10):
            mode = {"labelSmoothing": smoothing, "lseSquareScaleForZloss": scale, "ignoreIndex": 2}
            if table is FORWARD:
                z = {"returnZloss": True, "zlossOut.shape": per_row, "lseForZlossOut.shape": (rows,)}
            else:
                z = {"gradZlossOptional": Tensor(dtype, per_row), "lseForZlossOptional": Tensor(dtype, (rows,))}
            succeeds(table.operator, {**changes, **mode, **z})


@EACH_DTYPE_ROW
def test_rows_that_are_not_finite(table: Table, row: DtypeRow) -> None:
    """-inf is a class of probability 0; a row with inf or NaN, or only -inf, is NaN; other rows are not."""
    values = [
        [0.0, -INF, 1.0],
        [-INF, -INF, 2.0],
        [-INF, -INF, -INF],
        [INF, 0.0, 1.0],
        [NAN, 0.0, 1.0],
        [1.0, 2.0, 3.0],
    ]
    operator = table.operator
    changes = {**table.of_dtypes(row.dtypes), **shapes(operator, 6, 3, "none"), "target.values": [2] * 6}
    if table is FORWARD:
        outcome = succeeds(operator, {**changes, "input.values": np.array(values)})
        log_prob = outcome.prepared.memory["logProbOut"].read()
        assert np.isnan(log_prob[2:5]).all()
        assert log_prob[1].tolist() == [-INF, -INF, 0.0]
    else:
        succeeds(operator, {**changes, "logProb.values": np.array(values)})
        # The contents of an ignored row do not matter.
        out = succeeds(operator, {**changes, "logProb.values": np.array(values), "ignoreIndex": 2})
        assert not out.prepared.output.read().any()


@pytest.mark.parametrize(("rows", "classes"), [(1, 100_003), (100_003, 2)])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.operator.api)
def test_long_sums_do_not_drift(table: Table, rows: int, classes: int) -> None:
    """Equal terms all round in the same direction, so one float accumulator would have an error proportional to n."""
    operator = table.operator
    changes = {**shapes(operator, rows, classes), "weightOptional.values": [0.1], "labelSmoothing": 0.25}
    equal = {"input.values": [0.3]} if table is FORWARD else {"logProb.values": [-np.log(classes)]}
    succeeds(operator, {**changes, **equal})


def test_loss_of_equal_logits() -> None:
    """log C, from the unrounded logProb: 256 of BFLOAT16 give -5.5452, as BFLOAT16 -5.53125 or -5.5625."""
    for dtype in (F32, F16, BF16):
        changes = {**forward_shapes(3, 256), "input.values": [4.0], "weightOptional": None}
        changes = {key: value for key, value in changes.items() if not key.startswith("weightOptional.")}
        for name in ("input", "lossOut", "logProbOut", "zlossOut", "lseForZlossOut"):
            changes[f"{name}.dtype"] = dtype
        outcome = succeeds(CROSS_ENTROPY_LOSS, changes, "Ascend910B")
        assert outcome.prepared.memory["lossOut"].read().tolist() == [float(cabi.round_to(dtype, np.log(256)))]


def test_answer_of_the_published_example() -> None:
    """The example of aclnnCrossEntropyLossGrad's document: 0.05 * exp(-0.2), and 0.05 less at the label."""
    changes = {
        "gradLoss": Tensor(shape=(), values=[0.1]),
        "logProb": Tensor(shape=(2, 3), values=[-0.2]),
        "target": Tensor(I64, (2,), values=[0, 0]),
        "weightOptional": Tensor(shape=(3,), values=[1.0]),
        "ignoreIndex": -100,
        "out.shape": (2, 3),
    }
    got = succeeds(CROSS_ENTROPY_LOSS_GRAD, changes, "Ascend910B").view()
    assert np.round(got, 5).tolist() == np.float32([[-0.00906, 0.04094, 0.04094]] * 2).tolist()


# ---- Labels (docs/emulation/operators.md)


def test_all_rows_ignored() -> None:
    """The mean is NaN, its gradient 0."""
    ignored = {"target.values": [-100]}
    assert np.isnan(succeeds(CROSS_ENTROPY_LOSS, ignored, "Ascend910B").view("lossOut")).all()
    assert not succeeds(CROSS_ENTROPY_LOSS_GRAD, ignored, "Ascend910B").view().any()
    assert succeeds(CROSS_ENTROPY_LOSS, {**ignored, "reductionOptional": "sum"}).view("lossOut").tolist() == [0.0]


@EACH_OPERATOR
def test_labels_are_compared_whole(operator: Operator) -> None:
    """Neither labels nor ignoreIndex are truncated to 32 bits: 2^32 is not class 0, and does not ignore it."""
    for label in (2**32, 2**32 + 1, -(2**32)):
        outcome = call(operator, {"target.values": (1, label, 2)})
        assert outcome.status == AICORE_EXCEPTION
        assert str(label) in outcome.text
        for dtype in (I32, I64):
            kept = succeeds(operator, {"target.dtype": dtype, "ignoreIndex": label, "target.values": (0, 1, 2)})
            for name, output in kept.prepared.outputs.items():
                alone = succeeds(operator, {"target.values": (0, 1, 2)})
                assert np.array_equal(output.view, alone.view(name))


@pytest.mark.parametrize("dtype", [I32, I64], ids=lambda dtype: dtype.name)
@EACH_REDUCTION
@EACH_OPERATOR
def test_labels_that_are_no_class(operator: Operator, reduction: str, dtype: Dtype) -> None:
    """In every mode and in any row; the extremes of their dtype would be far out of range."""
    limits = np.iinfo(cabi.storage_type(dtype))
    for rows, classes in ((4, 3), (3, 70)):
        for label in (classes, -1, int(limits.max), int(limits.min)):
            for at in (0, rows - 1):
                labels = [label if row == at else 1 for row in range(rows)]
                changes = {**shapes(operator, rows, classes, reduction), "labelSmoothing": 0.125}
                changes |= {"target.dtype": dtype, "target.values": np.array(labels, cabi.storage_type(dtype))}
                outcome = call(operator, changes, "host")
                assert outcome.status == AICORE_EXCEPTION
                for word in ("target", str(label), str(classes), operator.api):
                    assert word in outcome.text
                if label == -1:
                    succeeds(operator, {**changes, "ignoreIndex": -1})


@EACH_OPERATOR
def test_bad_label_on_a_created_stream(operator: Operator) -> None:
    """Both stages succeed; the stream reports it at its synchronisation; only outputs were written."""
    host, stream = cabi.host(), ctypes.c_void_p()
    assert host.aclrtCreateStream(ctypes.byref(stream)) == SUCCESS
    with Prepared(operator, {"target.values": (1, 5, 2)}) as prepared:
        first = prepared.stage1()
        assert first.run(stream.value) == SUCCESS
        assert host.aclrtSynchronizeStream(stream) == AICORE_EXCEPTION
        text = cabi.error_text()
        assert operator.api in text
        assert "target" in text
        assert first.workspace.untouched()
        prepared.check_bounds()
    assert host.aclrtDestroyStream(stream) == SUCCESS


@EACH_OPERATOR
def test_output_over_the_labels(operator: Operator) -> None:
    """A row of two FLOATs exactly overlaps its label, which must have been read before."""
    output = "logProbOut" if operator is CROSS_ENTROPY_LOSS else "out"
    changes = {**shapes(operator, 3, 2, "none"), "target.values": (1, 0, 1)}
    with Prepared(operator, changes) as prepared:
        assert prepared.stage1().run() == SUCCESS
        expected = {name: memory.read() for name, memory in prepared.memory.items()}
    with Prepared(operator, changes) as prepared:
        target = prepared.memory["target"]
        assert cabi.host().aclSetRawTensorAddr(prepared.handles[output], target.address) == SUCCESS
        assert prepared.stage1().run() == SUCCESS
        written = target.view.copy().view(np.float32).reshape(3, 2)
        np.testing.assert_array_equal(written, expected[output])
        if operator is CROSS_ENTROPY_LOSS:
            np.testing.assert_array_equal(prepared.memory["lossOut"].read(), expected["lossOut"])


# ---- memory


@EACH_REDUCTION
@EACH_DTYPE_ROW
def test_same_bits_in_every_view(table: Table, row: DtypeRow, reduction: str) -> None:
    """The elements' layout and alignment do not change the results."""
    operator, random = table.operator, np.random.default_rng(0)
    changes = {**table.of_dtypes(row.dtypes), **shapes(operator, 37, 61, reduction)}
    values = {name: random.standard_normal(37 * 61) for name in operator.inputs if name != "target"}
    values["weightOptional"] = np.abs(values["weightOptional"])
    changes |= {f"{name}.values": value for name, value in values.items()}
    plain = succeeds(operator, changes)
    for name in operator.tensors:
        shape = operator.changed(changes)[name].shape
        for strides, offset in views(shape, False).values():
            moved: dict[str, Any] = {f"{name}.strides": strides, f"{name}.offset": offset}
            outcome = succeeds(operator, {**changes, **moved})
            for output in operator.outputs:
                assert outcome.view(output).tobytes() == plain.view(output).tobytes(), f"{output} by {name}"
