"""Tests specific to aclnnRmsNorm and aclnnRmsNormGrad, through the C ABI."""

from __future__ import annotations

import numpy as np
import pytest

from tests import cabi
from tests.cabi import SUCCESS, Dtype, Format, Stage1, int64s
from tests.conformance.machinery import Changes, DtypeRow, Operator, Table, Tensor, succeeds, sweep, views
from tests.conformance.rms_norm_table import (
    BACKWARD_DTYPES,
    FORWARD_DTYPES,
    RMS_NORM,
    RMS_NORM_GRAD,
    TABLES,
    backward_shapes,
    forward_shapes,
)

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
FORWARD, BACKWARD = TABLES
EACH_DTYPE_ROW = pytest.mark.parametrize(
    ("table", "row"),
    [
        pytest.param(table, row, id="-".join([table.operator.api, *(dtype.name for dtype in row.dtypes)]))
        for table, rows in ((FORWARD, FORWARD_DTYPES), (BACKWARD, BACKWARD_DTYPES))
        for row in rows
    ],
)
RANDOM = np.random.default_rng(0)
CREATE_EXECUTOR = 561101


def tensors(table: Table, row: DtypeRow, shapes: Changes, values: dict[str, np.ndarray]) -> Changes:
    """Each tensor with its dtype, shape and values."""
    return {
        name: Tensor(dtype, shapes[f"{name}.shape"], values=values.get(name))
        for name, dtype in zip(table.operator.tensors, row.dtypes, strict=True)
    }


def of_size(table: Table, rows: int, columns: int) -> Changes:
    shapes = forward_shapes if table is FORWARD else backward_shapes
    return shapes((rows,), (columns,))


# ---- the values (formulas of the documents of aclnnRmsNorm and aclnnRmsNormGrad)


@pytest.mark.parametrize("magnitude", [2.0**-12, 1.0, 2.0**12], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (64, 257), (301, 40), (2, 4099)])
@EACH_DTYPE_ROW
def test_values(table: Table, row: DtypeRow, rows: int, columns: int, magnitude: float) -> None:
    random = np.random.default_rng(rows * columns)
    values = {name: random.standard_normal((rows, columns)) for name in ("x", "dy")}
    values["x"] *= magnitude
    values["gamma"] = random.standard_normal(columns)
    values["rstd"] = random.uniform(0.5, 2, rows) / magnitude
    succeeds(table.operator, tensors(table, row, of_size(table, rows, columns), values))


@EACH_DTYPE_ROW
def test_every_magnitude(table: Table, row: DtypeRow) -> None:
    """Values of x's dtype whose squares fit into float, of similar size in a row; some rows have an inf or a NaN, which
    only affects that row."""
    x = sweep(row.dtypes[0])
    least, most = (1e-130, 1e130) if row.dtypes[0] == F64 else (1e-17, 1e17)
    x = np.sort(x[(np.abs(x) > least) & (np.abs(x) < most)])
    columns = 32
    x = x[: len(x) // columns * columns].reshape(-1, columns)
    x[3, 5], x[7, 0], x[11, 31], x[13] = np.nan, np.inf, -np.inf, 0.0
    values = {"x": x, "dy": np.array([1.0, -0.5, 2.0]), "rstd": 1 / np.sqrt(np.mean(x * x + 2.0**-10, axis=1))}
    if row.dtypes[0] in (F16, BF16):
        values["gamma"] = np.array([1.0, 0.5])
    succeeds(table.operator, tensors(table, row, of_size(table, len(x), columns), values))


@pytest.mark.parametrize(("rows", "columns"), [(1, 100_003), (100_003, 2)])
@pytest.mark.parametrize("value", [0.1, 0.3])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.operator.api)
def test_long_sums_do_not_drift(table: Table, value: float, rows: int, columns: int) -> None:
    """Equal terms all round in the same direction, so a single accumulator would have an error proportional to n."""
    values = {name: np.array([value]) for name in ("x", "dy", "gamma", "rstd")}
    for row in table.dtypes:
        if row.dtypes[0] in (F32, F64):
            succeeds(table.operator, tensors(table, row, of_size(table, rows, columns), values))


def test_rows_of_zeros() -> None:
    """rstd is 1 / sqrt(epsilon); without an epsilon inf, and 0 * inf is NaN."""
    x = Tensor(shape=(2, 64), values=[0.0])
    there = {"x": x, "yOut.shape": (2, 64), "rstdOut.shape": (2, 1)}
    zeros = succeeds(RMS_NORM, {**there, "epsilon": 2.0**-10}, "Ascend910B")
    assert np.all(zeros.view("yOut") == 0)
    assert zeros.view("rstdOut").tolist() == [[32.0], [32.0]]
    bare = succeeds(RMS_NORM, {**there, "epsilon": 0.0}, "Ascend910B")
    assert np.all(np.isnan(bare.view("yOut")))
    assert np.all(np.isposinf(bare.view("rstdOut")))


def test_y_is_rounded_once() -> None:
    """As in CANN's kernels, x * rstd is not rounded to 16 bits before the product with gamma. x = 1 and epsilon = 0.01
    give a rstd of 0.99504, which is not exact in FLOAT16; for some gamma the two results differ."""
    gamma = 1 + np.arange(64) / 64
    tensor = Tensor(F16, (1, 64), values=[1.0])
    changes = {
        "x": tensor,
        "gamma": Tensor(F16, (64,), values=gamma),
        "epsilon": 0.01,
        "yOut": tensor,
        "rstdOut.shape": (1, 1),
    }
    y = succeeds(RMS_NORM, changes, "Ascend910B").view("yOut")
    rstd = 1 / np.sqrt(1.01)
    once, twice = np.float16(gamma * rstd), np.float16(gamma * np.float64(np.float16(rstd)))
    assert not np.array_equal(once, twice)
    assert np.array_equal(y[0], once)


def test_ascend910_rounds_float16_before_gamma() -> None:
    """hicann/ops-nn, norm/rms_norm/op_kernel/rms_norm_whole_reduce_sum.h, Compute: in rows of up to 21728 elements. Its
    gradient does not round (rms_norm_grad_whole_reduce_n.h, ComputeMain)."""
    for columns, twice in ((64, True), (21728, True), (21729, False)):
        gamma = 1 + np.arange(columns) % 64 / 64
        x = Tensor(F16, (1, columns), values=[1.0])
        changes = {
            "x": x,
            "gamma": Tensor(F16, (columns,), values=gamma),
            "epsilon": 0.01,
            "yOut": x,
            "rstdOut.shape": (1, 1),
        }
        y = succeeds(RMS_NORM, changes, "Ascend910").view("yOut")[0]
        rstd = 1 / np.sqrt(1.01)
        assert np.array_equal(y, np.float16(gamma * (np.float64(np.float16(rstd)) if twice else rstd)))
    tensors = dict.fromkeys(("dy", "x", "dxOut"), Tensor(F16, (3, 64), values=np.linspace(-2, 2, 192)))
    gamma = Tensor(F16, (64,), values=1 + np.arange(64) / 64)
    succeeds(RMS_NORM_GRAD, {**tensors, "gamma": gamma, "rstd": Tensor(shape=(3,), values=[0.7])}, "Ascend910")


def test_answer_of_the_published_example() -> None:
    """The example of aclnnRmsNormGrad's document; its rstd does not match x."""
    counted = np.arange(1.0, 33.0)
    there = {name: Tensor(shape=(2, 1, 16), values=counted) for name in ("dy", "x", "dxOut")}
    outcome = succeeds(
        RMS_NORM_GRAD,
        {
            **there,
            "rstd": Tensor(shape=(2,), values=[1.0, 2.0]),
            "gamma": Tensor(shape=(16,), values=counted[:16]),
            "dgammaOut.shape": (16,),
        },
        "Ascend910B",
    )
    # fmt: off
    dx = [
        [-1155, -2308, -3459, -4608, -5755, -6900, -8043, -9184,
         -10323, -11460, -12595, -13728, -14859, -15988, -17115, -18240],
        [-860030, -910584, -961134, -1011680, -1062222, -1112760, -1163294, -1213824,
         -1264350, -1314872, -1365390, -1415904, -1466414, -1516920, -1567422, -1617920],
    ]
    dgamma = [579, 652, 731, 816, 907, 1004, 1107, 1216, 1331, 1452, 1579, 1712, 1851, 1996, 2147, 2304]
    # fmt: on
    assert outcome.view("dxOut").reshape(2, 16).tolist() == dx
    assert outcome.view("dgammaOut").tolist() == dgamma


# ---- memory


@EACH_DTYPE_ROW
def test_same_bits_in_every_view(table: Table, row: DtypeRow) -> None:
    """The elements' layout and alignment do not change the results."""
    shapes = of_size(table, 37, 61)
    values = {name: RANDOM.standard_normal(37 * 61) for name in ("x", "dy", "gamma", "rstd")}
    changes = tensors(table, row, shapes, values)
    plain = succeeds(table.operator, changes)
    for name in table.operator.tensors:
        for strides, offset in views(changes[name].shape, False).values():
            moved = Tensor(changes[name].dtype, changes[name].shape, strides, offset, values=values.get(name))
            outcome = succeeds(table.operator, {**changes, name: moved})
            for output in table.operator.outputs:
                assert outcome.view(output).tobytes() == plain.view(output).tobytes(), f"{output} by {name}"


# ---- Sizes at the limits

REPEATED: list[np.ndarray] = []  # the tensors' memory, which must outlive them


def repeated(*shape: int, dtype: Dtype = F64) -> int:
    """A tensor that repeats one element, so that its sizes do not reflect its memory."""
    storage = np.zeros(1, cabi.storage_type(dtype))
    REPEATED.append(storage)
    rank = len(shape)
    tensor = cabi.host().aclCreateTensor(
        int64s(shape), rank, dtype, int64s([0] * rank), 0, Format.ND, int64s([1]), 1, storage.ctypes.data
    )
    return int(tensor)


@pytest.mark.parametrize("operator", [RMS_NORM, RMS_NORM_GRAD], ids=lambda operator: operator.api)
def test_workspace_beyond_64_bits_is_refused(operator: Operator) -> None:
    """Each tensor alone is addressable; packed, all together are not, and their sum must not wrap around."""
    rows = 2**59 - 1
    wide = {"x", "dy", "rstd", "yOut", "rstdOut", "dxOut"}
    with cabi.product("host"):
        tensors = {name: repeated(rows, 1) if name in wide else repeated(1) for name in operator.tensors}
        arguments: list[int | float] = list(tensors.values())
        if operator is RMS_NORM:
            arguments.insert(2, 1e-6)
        first = Stage1(operator.api, arguments)
        assert first.status == CREATE_EXECUTOR
        assert "out of range" in first.text
        assert (first.workspace_size, first.executor) == (cabi.UNSET_SIZE, cabi.UNSET_EXECUTOR)
        for tensor in tensors.values():
            cabi.host().aclDestroyTensor(tensor)


def test_empty_tensors_with_absurd_other_sizes() -> None:
    """Products of the nonzero sizes overflow (which the sanitizers would detect)."""
    huge = 2**40
    with cabi.product("host"):
        x, gamma, y = ((2, 0, huge, huge), (0, huge, huge), (2, 0, huge, huge))
        tensors = []
        for shape in (x, gamma, y, (2, 1, 1, 1)):
            strides = None if shape[-1] == huge else int64s([1, 1, 1, 1])
            memory = np.zeros(2, np.float32)
            REPEATED.append(memory)
            arguments = (int64s(shape), len(shape), F32, strides, 0, Format.ND, int64s([2]), 1, memory.ctypes.data)
            tensors.append(cabi.host().aclCreateTensor(*arguments))
        first = Stage1("aclnnRmsNorm", [*tensors[:2], 1e-6, *tensors[2:]])
        assert first.status == SUCCESS, first.text
        assert first.run() == SUCCESS
        for tensor in tensors:
            cabi.host().aclDestroyTensor(tensor)
