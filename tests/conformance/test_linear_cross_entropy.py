"""Tests specific to linear cross entropy, through the C ABI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import SUCCESS, Dtype
from tests.conformance.linear_cross_entropy_table import (
    GRADIENT,
    GRADIENT_DTYPES,
    LOSS,
    NO_GRADIENTS,
    ONLINE,
    ONLINE_DTYPES,
    OUR_DTYPES,
    OURS,
    TABLES,
    gradient_shapes,
    host_shapes,
    loss_shapes,
    online_shapes,
    with_softmax,
)
from tests.conformance.machinery import Changes, DtypeRow, Prepared, Table, Tensor, call, succeeds

F32, F16, BF16, F64, I64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE, Dtype.INT64
ONLINE_TABLE, _, GRADIENT_TABLE, OUR_TABLE = TABLES
# Few; several tiles of rows and blocks of classes, the last narrower; long rows, whose blocks are narrower.
SIZES = [(1, 1, 1), (33, 257, 19), (520, 600, 8), (3, 140, 4100)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
# Every size with logits of about 1, one size with smaller and larger ones; the other pairs with `make test-all`.
EACH_SIZE_AND_SPREAD = pytest.mark.parametrize(
    ("size", "spread"),
    [
        pytest.param(size, spread, marks=() if spread == 1 or size == SIZES[1] else pytest.mark.test_all)
        for spread in (2.0**-8, 1.0, 30.0)
        for size in SIZES
    ],
    ids=str,
)


def products_of(row: DtypeRow) -> tuple[str, ...]:
    """`host`, and a product if it supports the dtypes."""
    return ("host", "Ascend910B") if "Ascend910B" in row.accepted else ("host",)


def each_matrix(table: Table, rows: list[DtypeRow], at: int) -> pytest.MarkDecorator:
    """A row of dtypes for each type of the matrices."""
    found = {row.dtypes[at]: row for row in reversed(rows)}
    return pytest.mark.parametrize("row", found.values(), ids=[dtype.name for dtype in found])


def matrices(rows: int, classes: int, depth: int, spread: float = 1.0) -> Changes:
    """Random matrices whose logits are around 0 with this spread."""
    random = np.random.default_rng(rows + classes + depth)
    scale = (spread / depth**0.5) ** 0.5
    return {
        "input.values": scale * random.standard_normal((rows, depth)),
        "weight.values": scale * random.standard_normal((classes, depth)),
    }


@EACH_SIZE_AND_SPREAD
@each_matrix(ONLINE_TABLE, ONLINE_DTYPES, 0)
def test_max_and_sum(row: DtypeRow, spread: float, size: tuple[int, int, int]) -> None:
    """With and without logits, with the same bits."""
    for product in products_of(row):
        changes = {**ONLINE_TABLE.of_dtypes(row.dtypes), **online_shapes(*size), **matrices(*size, spread)}
        whole = succeeds(ONLINE, changes, product)
        parts = succeeds(ONLINE, {**changes, "vocabParallelLogitsOutOptional": None}, product)
        for name in parts.prepared.outputs:
            assert parts.view(name).tobytes() == whole.view(name).tobytes(), name


@EACH_SIZE
@each_matrix(GRADIENT_TABLE, GRADIENT_DTYPES, 1)
def test_gradient(row: DtypeRow, size: tuple[int, int, int]) -> None:
    """From the actual max and sum, and from random probabilities."""
    rows, classes, _ = size
    random = np.random.default_rng(rows)
    for product in products_of(row):
        changes = {**GRADIENT_TABLE.of_dtypes(row.dtypes), **matrices(*size)}
        sums = {"logitsMaxOptional.values": [1.5], "sumExpLogitsOptional.values": random.uniform(1, classes + 1, rows)}
        succeeds(GRADIENT, {**changes, **gradient_shapes(*size), **sums}, product)
        if product != "host" and classes < 128:
            continue
        softmax = random.uniform(0, 1, (rows, classes))
        given = Tensor(row.dtypes[0], (rows, classes), values=softmax)
        succeeds(GRADIENT, {**changes, **with_softmax(*size), "softmaxOptional": given}, product)


@EACH_SIZE_AND_SPREAD
@each_matrix(OUR_TABLE, OUR_DTYPES, 0)
def test_loss_and_gradients_of_our_own(row: DtypeRow, spread: float, size: tuple[int, int, int]) -> None:
    for smoothing in (0.0, 0.125):
        changes = {**OUR_TABLE.of_dtypes(row.dtypes), **host_shapes(*size), **matrices(*size, spread)}
        changes |= {"labelSmoothing": smoothing, "ignoreIndex": 0}
        succeeds(OURS, changes)


def without(changes: Changes, *names: str) -> Changes:
    return {key: value for key, value in changes.items() if key.partition(".")[0] not in names} | dict.fromkeys(names)


@EACH_SIZE
@each_matrix(OUR_TABLE, OUR_DTYPES, 0)
def test_loss_is_the_same_without_gradients(row: DtypeRow, size: tuple[int, int, int]) -> None:
    """And gradients computed later, from its lse, are as exact."""
    changes = {**OUR_TABLE.of_dtypes(row.dtypes), **host_shapes(*size), **matrices(*size)}
    whole = succeeds(OURS, changes)
    alone = succeeds(OURS, without(changes, *NO_GRADIENTS))
    for name in ("lossOut", "lseOut"):
        assert alone.view(name).tobytes() == whole.view(name).tobytes(), name
    lse = Tensor(row.dtypes[4], (size[0],), values=whole.prepared.memory["lseOut"].read())
    succeeds(OURS, {**without(changes, "lossOut", "lseOut"), "lseOptional": lse})


@pytest.mark.parametrize("dtype", [F16, BF16], ids=lambda dtype: dtype.name)
def test_logits_of_a_product_are_rounded(dtype: Dtype) -> None:
    """1 + 2^-12 rounds to 1 in either dtype, so that two classes have the same logit; on `host` they differ."""
    changes = {**ONLINE_TABLE.of_dtypes(ONLINE_DTYPES[0].dtypes), **online_shapes(1, 2, 2)}
    changes |= {f"{name}.dtype": dtype for name in ("input", "weight", "vocabParallelLogitsOutOptional")}
    changes |= {"input.values": (1.0, 2.0**-6), "weight.values": (1.0, 0.0, 1.0, 2.0**-6)}
    assert succeeds(ONLINE, changes, "Ascend910B").view("sumExpLogitsLocalOut").tolist() == [2.0]
    assert succeeds(ONLINE, changes, "host").view("sumExpLogitsLocalOut")[0] < 2.0


def test_mask_begins_with_the_lowest_bit() -> None:
    """Of 9 rows, the first and the last are masked; then come the bits for target 0, which is masked here."""
    target = (1, 2, 3, 2, 3, 2, 3, 2, 9)
    changes = {**online_shapes(9, 6), "target.values": target}
    outcome = succeeds(ONLINE, changes)
    assert outcome.view("targetMaskOut").tolist() == [0b00000001, 0b11111111]
    changes |= {"vocabStartIndex": 0, "vocabEndIndex": 4, "target.values": tuple(t if t < 4 else -1 for t in target)}
    assert succeeds(ONLINE, changes).view("targetMaskOut").tolist() == [0, 0b00000001]


def test_functions_go_together() -> None:
    """Two shards of a vocabulary, combined as in CANN's document, give loss and gradients of the whole."""
    rows, classes, depth, cut = 21, 40, 8, 24
    random = np.random.default_rng(3)
    x, weight = random.standard_normal((rows, depth)), random.standard_normal((classes, depth))
    target, grad = random.integers(0, classes, rows), random.standard_normal(rows)
    double = {**OUR_TABLE.of_dtypes((F64, F64, F64, I64, *(F64,) * 7)), **host_shapes(rows, classes, depth)}
    double |= {"input.values": x, "weight.values": weight, "target.values": target, "factorsOptional.values": grad}
    whole = succeeds(OURS, without(double, "biasOptional", "biasGradOutOptional", "classWeightsOptional"))

    shards = [(0, cut), (cut, classes)]
    found = []
    for start, end in shards:
        changes = {**ONLINE_TABLE.of_dtypes((F64, F64, I64, F64, F64, F64, Dtype.UINT8, I64, F64))}
        changes |= {**online_shapes(rows, end - start, depth), "vocabStartIndex": start, "vocabEndIndex": end}
        changes |= {"input.values": x, "weight.values": weight[start:end], "target.values": target}
        found.append({name: memory.read() for name, memory in succeeds(ONLINE, changes).prepared.outputs.items()})
    most = np.maximum(*(one["logitsMaxLocalOut"] for one in found))
    total, predicted = np.zeros(rows), np.zeros(rows)
    for (start, end), one in zip(shards, found, strict=True):
        less = one["logitsMaxLocalOut"] - most
        total += one["sumExpLogitsLocalOut"] * np.exp(less)
        predicted += np.where((start <= target) & (target < end), one["predictedLogitsLocalOut"] + less, 0)

    names = ("logitsMax", "sumExpLogits", "predictedLogits")
    sums: Changes = {f"{name}.values": v for name, v in zip(names, (most, total, predicted), strict=True)}
    changes = {f"{name}.dtype": F64 for name in (*names, "lossOut")}
    loss_of = {**loss_shapes(rows, 1), **changes, **sums}
    loss = succeeds(LOSS, without(loss_of, "vocabParallelLogitsOptional", "softMaxOutOptional"))
    np.testing.assert_allclose(loss.view("lossOut"), whole.view("lossOut"), rtol=1e-13, atol=1e-13)

    of_rows = np.zeros((rows, depth))
    for (start, end), one in zip(shards, found, strict=True):
        changes = {**GRADIENT_TABLE.of_dtypes((F64, F64, F64, Dtype.UINT8, I64, F64, F64, F64, F64))}
        changes |= {**gradient_shapes(rows, end - start, depth), "grad.values": grad, "input.values": x}
        changes |= {"weight.values": weight[start:end], "targetMask.values": one["targetMaskOut"]}
        changes |= {"maskedTarget.values": one["maskedTargetOut"], "logitsMaxOptional.values": most}
        part = succeeds(GRADIENT, {**changes, "sumExpLogitsOptional.values": total})
        of_rows += part.view("inputGradOut")
        of_weight = whole.view("weightGradOutOptional")[start:end]
        np.testing.assert_allclose(part.view("weightGradOut"), of_weight, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(of_rows, whole.view("inputGradOutOptional"), rtol=1e-12, atol=1e-13)


SPECIAL = {"an infinity": np.inf, "minus infinity": -np.inf, "a NaN": np.nan}


@pytest.mark.parametrize("value", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("dtype", [F32, F16, BF16, F64], ids=lambda dtype: dtype.name)
def test_rows_that_are_not_finite(dtype: Dtype, value: float) -> None:
    """Results that depend on them are NaN; other rows are unchanged."""
    rows, classes, depth = 4, 530, 3
    row = next(row for row in OUR_DTYPES if row.dtypes[0] == dtype)
    changes = {**OUR_TABLE.of_dtypes(row.dtypes), **host_shapes(rows, classes, depth)}
    x = np.linspace(-1, 1, rows * depth).reshape(rows, depth)

    def results(first: np.ndarray) -> dict[str, np.ndarray]:
        with cabi.product("host"), Prepared(OURS, {**changes, "input.values": first}) as prepared:
            assert prepared.stage1().run() == SUCCESS
            assert cabi.host().aclrtSynchronizeStream(None) == SUCCESS
            prepared.check_bounds()
            return {name: memory.read() for name, memory in prepared.outputs.items()}

    finite = results(x)
    x[1, 0] = value
    got = results(x)
    for name in ("lossOut", "lseOut", "inputGradOutOptional"):
        assert not np.isfinite(got[name][1]).any(), name
        others = [0, 2, 3]
        assert got[name][others].tobytes() == finite[name][others].tobytes(), name


def test_ignored_rows_may_hold_anything() -> None:
    """Their gradients are 0, and they do not contribute to those of the weight."""
    changes: dict[str, Any] = {**host_shapes(3, 7, 2), "target.values": (1, -100, 2)}
    x = np.ones((3, 2))
    plain = succeeds(OURS, {**changes, "input.values": x})
    x[1] = 1e30
    got = succeeds(OURS, {**changes, "input.values": x})
    assert got.view("lossOut")[1] == 0
    assert not got.view("inputGradOutOptional")[1].any()
    for name in ("weightGradOutOptional", "biasGradOutOptional"):
        assert got.view(name).tobytes() == plain.view(name).tobytes()


@pytest.mark.parametrize("dtype", [Dtype.INT32, I64], ids=lambda dtype: dtype.name)
def test_labels_that_are_no_class(dtype: Dtype) -> None:
    """In any row; the extremes of their dtype would be far out of range."""
    limits = np.iinfo(cabi.storage_type(dtype))
    for label in (7, -1, int(limits.max), int(limits.min)):
        for at in (0, 3):
            labels = np.array([label if row == at else 1 for row in range(4)], cabi.storage_type(dtype))
            changes = {**host_shapes(4, 7), "target.dtype": dtype, "target.values": labels}
            outcome = call(OURS, changes, "host")
            assert outcome.status == cabi.AICORE_EXCEPTION
            for word in (f"target[{at}]", str(label), "[0, 7)", OURS.api):
                assert word in outcome.text
            succeeds(OURS, {**changes, "ignoreIndex": label})


@pytest.mark.parametrize("changes", [gradient_shapes(3, 0), gradient_shapes(0, 6)], ids=["classes", "rows"])
@pytest.mark.parametrize(("dtype", "product"), [(F16, "Ascend910B"), (BF16, "Ascend910B"), (F32, "host")])
def test_gradients_without_classes_or_rows_are_zeros(changes: Changes, dtype: Dtype, product: str) -> None:
    matrices = {f"{name}.dtype": dtype for name in ("input", "weight", "inputGradOut", "weightGradOut")}
    outcome = succeeds(GRADIENT, changes | matrices, product)
    for output in outcome.prepared.outputs.values():
        found = output.read()
        assert not found.any() and not np.signbit(found).any()
