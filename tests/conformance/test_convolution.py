"""Tests specific to aclnnConvolution and aclnnConvolutionBackward, through the C ABI.

Every call that succeeds is compared with the float64 reference of convolution_table.py (machinery.call).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product as each_of

import numpy as np
import pytest

from tests import cabi
from tests.cabi import PARAM_INVALID, PRODUCTS, SUCCESS, Dtype
from tests.conformance.convolution_table import (
    ALLOW_FP32_DOWN_PRECISION,
    BACKWARD,
    BACKWARD_ORDER,
    DEFAULT,
    DEPTHWISE,
    FORWARD,
    FORWARD_ORDER,
    KEEP_DTYPE,
    NARROW,
    ONE_D,
    THREE_D,
    THREE_D_WHOLE,
    TRANSPOSED,
    USE_FP16,
    USE_HF32,
    WIDE,
    Problem,
    flat,
    to_hf32,
)
from tests.conformance.machinery import (
    Bools,
    Changes,
    Operator,
    Row,
    Tensor,
    call,
    check_order,
    check_row,
    on_all,
    pairs,
    succeeds,
    sweep,
)

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
INF, NAN, FLT_MAX = np.inf, np.nan, float(np.finfo(np.float32).max)
EACH_PRODUCT = pytest.mark.parametrize("product", PRODUCTS)


# ---- Checks of some products only


@EACH_PRODUCT
@pytest.mark.parametrize(
    ("operator", "order"),
    [(FORWARD, FORWARD_ORDER), (BACKWARD, BACKWARD_ORDER)],
    ids=["forward", "backward"],
)
def test_order_of_product_rules(operator: Operator, order: list[Row], product: str) -> None:
    """Each is refused alone, and they have the same order relative to all other checks."""
    failing = [row for row in order if row.on(operator, product) != SUCCESS]
    for row in failing:
        check_row(operator, row, product)
    alone = {id(row): call(operator, row.changes, product) for row in failing}
    for first, second in pairs(operator, failing):
        if first.accepted or second.accepted:
            check_order(operator, first, second, product, alone[id(first)])


def test_fp8_text_names_the_argument() -> None:
    """For each tensor."""
    for operator in (FORWARD, BACKWARD):
        for name in operator.tensors:
            outcome = call(operator, {f"{name}.dtype": Dtype.HIFLOAT8}, "Ascend950")
            assert outcome.status == cabi.PARAM_INVALID
            for word in (name, "HIFLOAT8", "emulate"):
                assert word in outcome.text


# ---- the values (formulas of the documents of aclnnConvolution and aclnnConvolutionBackward)

PROBLEMS = {
    "1-D": ONE_D,
    "2-D": DEFAULT,
    "3-D": THREE_D,
    "3-D, one group": THREE_D_WHOLE,
    "depthwise": DEPTHWISE,
    "1x1": Problem(3, 8, 16, (7, 5), (1, 1), (1, 1), (0, 0), (1, 1), groups=1),
    "3x3": Problem(2, 16, 16, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1), groups=1),
    "kernel of 7, stride 2": Problem(1, 3, 8, (23, 19), (7, 7), (2, 2), (3, 3), (1, 1), groups=1),
    "dilated": Problem(1, 4, 4, (17, 13), (3, 2), (1, 3), (2, 0), (4, 6), groups=2),
    "gaps that nothing touches": Problem(1, 2, 3, (11, 10), (2, 1), (4, 3), (0, 0), (1, 1), groups=1),
    "more padding than kernel": Problem(1, 2, 2, (1, 2), (2, 3), (1, 1), (3, 4), (1, 1), groups=1),
    "four paddings": replace(DEFAULT, padding=(2, 1, 0, 1)),
    "one channel to many": Problem(1, 1, 33, (9,), (4,), (3,), (2,), (2,), output_padding=(0,), groups=1),
    "transposed 1-D": replace(ONE_D, transposed=True, output_padding=(1,)),
    "transposed 2-D": TRANSPOSED,
    "transposed 3-D": replace(THREE_D, transposed=True, output_padding=(0, 1, 0)),
    "transposed depthwise": replace(DEPTHWISE, transposed=True, output_padding=(1, 0)),
    "transposed, four paddings": replace(TRANSPOSED, padding=(2, 1, 0, 1)),
    "transposed, stride 3": Problem(2, 3, 5, (4, 3), (3, 3), (3, 3), (1, 1), (1, 1), True, (2, 1), 1),
}
EACH_PROBLEM = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def both(problem: Problem, dtype: Dtype, mode: int, product: str) -> None:
    """Forward and all gradients."""
    for operator, shapes in ((FORWARD, problem.forward()), (BACKWARD, problem.backward())):
        succeeds(operator, {**shapes, **on_all(operator, "dtype", dtype), "cubeMathType": mode}, product)


def names_of(dtypes: tuple[Dtype, ...]) -> str:
    return "-".join(dtype.name for dtype in dtypes)


@pytest.mark.parametrize("dtype", cabi.REAL, ids=lambda dtype: dtype.name)
@EACH_PROBLEM
def test_values(problem: Problem, dtype: Dtype) -> None:
    for mode in range(4) if dtype != F64 else (KEEP_DTYPE,):
        both(problem, dtype, mode, "host")


@EACH_PRODUCT
@pytest.mark.parametrize("problem", [DEFAULT, TRANSPOSED], ids=["ordinary", "transposed"])
def test_values_on_products(problem: Problem, product: str) -> None:
    """Every dtype and mode that the product supports."""
    for dtype in (F32, F16) if product in NARROW else (F32, F16, BF16):
        for mode in (ALLOW_FP32_DOWN_PRECISION, USE_FP16) if product in NARROW and dtype == F32 else range(4):
            both(problem, dtype, mode, product)


@pytest.mark.parametrize("dtypes", list(each_of((F32, F16, BF16), repeat=3)), ids=names_of)
def test_mixed_dtypes(dtypes: tuple[Dtype, Dtype, Dtype]) -> None:
    """Inputs are promoted to one dtype, results cast to each tensor's."""
    a, b, c = dtypes
    for mode in range(4):
        inputs = {"gradOutput.dtype": a, "input.dtype": b, "weight.dtype": c}
        outputs = {"gradInput.dtype": c, "gradWeight.dtype": a, "gradBias.dtype": b}
        succeeds(BACKWARD, {**inputs, **outputs, "cubeMathType": mode}, "Ascend910B")
        tensors = {"input.dtype": a, "weight.dtype": b, "bias.dtype": b, "output.dtype": c}
        succeeds(FORWARD, {**tensors, "cubeMathType": mode}, "Ascend910B")


@pytest.mark.parametrize("absent", [False, True], ids=["given", "null"])
@pytest.mark.parametrize("mask", list(each_of((False, True), repeat=3)), ids=str)
def test_masks(mask: tuple[bool, ...], absent: bool) -> None:
    """Unselected gradients are not written, and may be null."""
    changes: Changes = {"outputMask": Bools(mask)}
    for name, on in zip(BACKWARD.outputs, mask, strict=True):
        if absent and not on:
            changes[name] = None
    for problem in (DEFAULT, TRANSPOSED):
        succeeds(BACKWARD, {**problem.backward(), **changes}, "Ascend910B")


# ---- A single product, so that only the conversion rounds


def scaled(x: np.ndarray, dtype: Dtype, mode: int, product: str) -> dict[str, np.ndarray]:
    """x times a kernel of 1, as output and as gradInput; and times an input of 1, as gradWeight (as many channels)."""
    line = Problem(1, 1, 1, (len(x),), (1,), (1,), (0,), (1,), False, (0,), 1)
    wide = Problem(1, 1, len(x), (1,), (1,), (1,), (0,), (1,), False, (0,), 1)
    calls: list[tuple[Operator, str, Changes]] = [
        (FORWARD, "output", {**line.forward(), "input.values": x, "weight.values": (1.0,), "bias": None}),
        (BACKWARD, "gradInput", {**line.backward(), "gradOutput.values": x, "weight.values": (1.0,)}),
        (BACKWARD, "gradWeight", {**wide.backward(), "gradOutput.values": x, "input.values": (1.0,)}),
    ]
    got = {}
    for operator, name, changes in calls:
        dtypes = {f"{tensor}.dtype": dtype for tensor in operator.tensors if tensor != "bias"}
        outcome = succeeds(operator, {**dtypes, **changes, "cubeMathType": mode}, product)
        got[name] = outcome.prepared.memory[name].read().ravel()
    return got


def check_exact(x: np.ndarray, expected: np.ndarray, dtype: Dtype, mode: int, product: str) -> None:
    """Each of the three is the conversion of x, bit for bit (a zero may lose its sign)."""
    for name, values in scaled(x, dtype, mode, product).items():
        assert np.array_equal(values, expected, equal_nan=True), name


# Ties to even, the default of Ascend C's SetHF32TransMode: FP32, as HF32 with 11 bits, with 10 bits.
TIE = 2.0**-12
HF32 = [
    (0.33333334, 0.3333740234375, 0.333251953125),
    (1.1, 1.10009765625, 1.099609375),
    (3.1415927, 3.1416015625, 3.140625),
    (0.001, 0.0009999275207519531, 0.0010004043579101562),
    (1 + TIE, 1.0, 1.0),
    (1 + 2 * TIE, 1.00048828125, 1.0),
    (1 + 3 * TIE, 1 + 4 * TIE, 1 + 4 * TIE),
    (1 + 6 * TIE, 1 + 6 * TIE, 1 + 8 * TIE),
    (-1 - 3 * TIE, -1 - 4 * TIE, -1 - 4 * TIE),
    (65504.0, 65504.0, 65504.0),
    (70000.0, 70016.0, 70016.0),
    (2 - TIE, 2.0, 2.0),
    (0.0, 0.0, 0.0),
    (FLT_MAX, INF, INF),
    (-FLT_MAX, -INF, -INF),
    (INF, INF, INF),
    (-INF, -INF, -INF),
    (NAN, NAN, NAN),
]


@pytest.mark.parametrize("mode", [ALLOW_FP32_DOWN_PRECISION, USE_HF32])
@pytest.mark.parametrize("product", sorted(WIDE))
def test_hf32(product: str, mode: int) -> None:
    """The values of the specification, and other relevant values."""
    table = np.array(HF32)
    check_exact(table[:, 0], table[:, 2 if product == "Ascend950" else 1], F32, mode, product)
    x = cabi.round_to(F32, sweep(F32))[::16]
    check_exact(x, to_hf32(product, x), F32, mode, product)


# FLOAT16 has 10 bits, is subnormal below 2^-14, and ends at 65504.
FP16 = [
    (0.1, 0.0999755859375),
    (1 + 2.0**-11, 1.0),
    (1 + 3 * 2.0**-11, 1 + 2.0**-9),
    (1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-10),
    (2.0**-24, 2.0**-24),
    (2.0**-25, 0.0),
    (1.5 * 2.0**-25, 2.0**-24),
    (65504.0, 65504.0),
    (65519.0, 65504.0),
    (NAN, NAN),
]
OVERFLOW = [(65520.0, INF), (-65520.0, -INF), (1e30, INF), (INF, INF), (-INF, -INF)]


@pytest.mark.parametrize(
    ("product", "mode"), [*each_of(PRODUCTS, [USE_FP16]), *each_of(sorted(NARROW), [ALLOW_FP32_DOWN_PRECISION])]
)
def test_fp16(product: str, mode: int) -> None:
    """Values beyond 65504 on products without FP32 matrix units are not specified."""
    x, expected = np.array(FP16 if product in NARROW else FP16 + OVERFLOW).T
    check_exact(x, expected, F32, mode, product)
    x = cabi.round_to(F32, sweep(F32))[::16]
    x = x[np.abs(x) < 65504] if product in NARROW else x
    check_exact(x, cabi.round_to(F16, x), F32, mode, product)


def test_bfloat16_as_fp16() -> None:
    """USE_FP16 narrows the range of BF16, and rounds values that are subnormal in FLOAT16."""
    x = np.array([1.0, 65280.0, 65536.0, -1e30, 2.0**-24, 1.5 * 2.0**-24, 2.0**-26, INF, NAN])
    expected = np.array([1.0, 65280.0, INF, -INF, 2.0**-24, 2.0**-23, 0.0, INF, NAN])
    check_exact(x, expected, BF16, USE_FP16, "Ascend910B")


@pytest.mark.parametrize("dtype", (F16, BF16), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("mode", [KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_HF32])
def test_other_modes_leave_16_bits(mode: int, dtype: Dtype) -> None:
    """HF32 applies to FLOAT only."""
    x = sweep(dtype)[::16]
    check_exact(x, x, dtype, mode, "Ascend910B")


def test_kept_floats() -> None:
    """All 24 bits."""
    x = cabi.round_to(F32, sweep(F32))[::16]
    for product in sorted(WIDE):
        check_exact(x, x, F32, KEEP_DTYPE, product)


def test_fp16_and_bf16_meet_in_float() -> None:
    """Neither range is lost: 2^-24 of one times 2^100 of the other."""
    pixel = Problem(1, 1, 1, (1,), (1,), (1,), (0,), (1,), False, (0,), 1)
    changes = {"gradOutput": Tensor(F16, (1, 1, 1), values=(2.0**-24,)), "input.values": (3.0,)}
    weight = {"weight.dtype": BF16, "weight.values": (2.0**100,), "gradInput.dtype": F32}
    outcome = succeeds(BACKWARD, {**pixel.backward(), **changes, **weight}, "Ascend910B")
    assert outcome.view("gradInput").ravel() == [2.0**76]


# ---- accumulation and results (cubeMathType in the functions' documents)


def test_sums_are_fp32() -> None:
    """Ones: a sum in FLOAT16 would stop at 2048, one in BF16 at 256."""
    problem = Problem(1, 4096, 1, (3, 3), (1, 1), (1, 1), (0, 0), (1, 1), groups=1)
    many = Problem(2, 1, 1, (64, 32), (1, 1), (1, 1), (0, 0), (1, 1), groups=1)
    for dtype in (F16, BF16):
        ones = {f"{name}.values": (1.0,) for name in ("input", "weight")}
        dtypes = on_all(FORWARD, "dtype", dtype)
        outcome = succeeds(FORWARD, {**problem.forward(), **dtypes, **ones, "bias": None})
        assert np.all(outcome.prepared.output.read() == 4096)
        dtypes, ones["gradOutput.values"] = on_all(BACKWARD, "dtype", dtype), (1.0,)
        outcome = succeeds(BACKWARD, {**many.backward(), **dtypes, **ones})
        for name in ("gradWeight", "gradBias"):
            assert np.all(outcome.prepared.memory[name].read() == 4096)


def test_where_results_are_rounded() -> None:
    """2049 ones: gradInput is rounded to the compute dtype before its own, gradWeight is FP32 until its own, gradBias
    is rounded to gradOutput's."""
    ones = {f"{name}.values": (1.0,) for name in BACKWARD.inputs}
    wide = {f"{name}.dtype": F32 for name in BACKWARD.outputs}
    deep = Problem(1, 1, 2049, (1,), (1,), (1,), (0,), (1,), False, (0,), 1)
    assert succeeds(BACKWARD, {**deep.backward(), **ones, **wide}, "Ascend910B").view("gradInput") == 2048
    long = Problem(1, 1, 1, (2049,), (1,), (1,), (0,), (1,), False, (0,), 1)
    outcome = succeeds(BACKWARD, {**long.backward(), **ones, **wide}, "Ascend910B")
    assert (outcome.view("gradWeight"), outcome.view("gradBias")) == (2049, 2048)
    floats = {**on_all(BACKWARD, "dtype", F32), "cubeMathType": USE_FP16}
    assert succeeds(BACKWARD, {**deep.backward(), **ones, **floats}, "Ascend910B").view("gradInput") == 2048
    assert succeeds(BACKWARD, {**long.backward(), **ones, **floats}, "Ascend910B").view("gradWeight") == 2049


@EACH_PRODUCT
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [F16, BF16], ids=lambda dtype: dtype.name)
def test_where_a_bias_is_rounded(dtype: Dtype, transposed: bool, product: str) -> None:
    """1 + 2^-12, which rounds to 1 in 16 bits, and a product of -1."""
    if dtype == BF16 and product in NARROW:
        return
    pixel = Problem(1, 1, 1, (1,), (1,), (1,), (0,), (1,), transposed, (0,), 1)
    values = {"input.values": (1.0,), "weight.values": (-1.0,), "bias.values": (1 + 2.0**-12,)}
    changes = {**pixel.forward(), **on_all(FORWARD, "dtype", dtype), "bias.dtype": F32, **values}
    is_rounded = product in NARROW or (not transposed and (dtype == F16 or product == "Ascend950"))
    got = succeeds(FORWARD, changes, product).prepared.output.read()
    assert got.ravel() == [0.0 if is_rounded else 2.0**-12]


@pytest.mark.parametrize("mode", [ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32])
def test_grad_bias_is_of_the_gradient_as_it_came(mode: int) -> None:
    """Not of the converted gradient, which would lose the last bits or overflow."""
    long = Problem(2, 1, 2, (3,), (1,), (1,), (0,), (1,), False, (0,), 1)
    changes = {**long.backward(), **on_all(BACKWARD, "dtype", F32), "cubeMathType": mode}
    outcome = succeeds(BACKWARD, {**changes, "gradOutput.values": (70001.0, 0.5, 0.25)}, "Ascend910B")
    assert outcome.view("gradBias").tolist() == [140003.5] * 2


def test_answer_of_the_published_example() -> None:
    """The example of aclnnConvolutionBackward's document: FLOAT16 tensors over the bytes of float ones."""
    problem = Problem(2, 2, 2, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1), groups=1)
    ones = {f"{name}.values": (0.0, 1.875) for name in BACKWARD.inputs}
    outcome = succeeds(BACKWARD, {**problem.backward(), **ones, "cubeMathType": KEEP_DTYPE}, "Ascend910B")
    assert np.all(outcome.view("gradInput") == np.array([0.0, 3.515625]).reshape(2, 1, 1))
    assert outcome.view("gradWeight").ravel().tolist() == [168.75, 0.0, 0.0, 175.75]
    assert outcome.view("gradBias").tolist() == [90.0, 93.75]


# ---- layouts


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with the channels innermost."""
    batch, spatial, channel = np.split(cabi.contiguous_strides((shape[0], *shape[2:], shape[1])), (1, -1))
    return (*batch.tolist(), *channel.tolist(), *spatial.tolist())


@pytest.mark.parametrize("dtype", cabi.REAL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "problem", [ONE_D, DEFAULT, TRANSPOSED, DEPTHWISE, THREE_D], ids=["1-D", "2-D", "transposed", "depthwise", "3-D"]
)
def test_channels_last(problem: Problem, dtype: Dtype) -> None:
    """All tensors, all inputs, all outputs, and each one separately."""
    for operator, changes in ((FORWARD, problem.forward()), (BACKWARD, problem.backward())):
        names = [name for name in operator.tensors if len(changes[f"{name}.shape"]) > 1]
        read, written = ([name for name in names if operator.reads(name) is way] for way in (True, False))
        for some in (names, read, written, *([name] for name in names)):
            strides = {f"{name}.strides": channels_last(changes[f"{name}.shape"]) for name in some}
            succeeds(operator, {**changes, **on_all(operator, "dtype", dtype), **strides})


@pytest.mark.parametrize("problem", [DEFAULT, TRANSPOSED], ids=["ordinary", "transposed"])
def test_reversed_inputs(problem: Problem) -> None:
    """Negative strides, in each dimension separately and in all."""
    for operator, changes in ((FORWARD, problem.forward()), (BACKWARD, problem.backward())):
        for name in operator.inputs:
            shape = changes[f"{name}.shape"]
            packed = cabi.contiguous_strides(shape)
            for dims in ([dim] for dim in range(len(shape))), [range(len(shape))]:
                for turned in dims:
                    strides = [-stride if dim in turned else stride for dim, stride in enumerate(packed)]
                    first = sum((shape[dim] - 1) * packed[dim] for dim in turned)
                    view = {f"{name}.strides": tuple(strides), f"{name}.offset": first + 3}
                    for dtype in (F32, F16):
                        succeeds(operator, {**changes, **on_all(operator, "dtype", dtype), **view})


@pytest.mark.parametrize("problem", [DEFAULT, TRANSPOSED], ids=["ordinary", "transposed"])
def test_broadcast_inputs(problem: Problem) -> None:
    """A stride of 0 in each dimension separately, as in the gradient of torch's sum."""
    for operator, changes in ((FORWARD, problem.forward()), (BACKWARD, problem.backward())):
        for name in operator.inputs:
            packed = cabi.contiguous_strides(changes[f"{name}.shape"])
            for dim in range(len(packed)):
                strides = (*packed[:dim], 0, *packed[dim + 1 :])
                succeeds(operator, {**changes, f"{name}.strides": strides, "cubeMathType": USE_FP16})


def test_overlapping_input() -> None:
    """Windows over one line, as from unfold."""
    lines = Problem(4, 2, 3, (8,), (3,), (1,), (1,), (1,), False, (0,), 1)
    for operator, changes in ((FORWARD, lines.forward()), (BACKWARD, lines.backward())):
        succeeds(operator, {**changes, "input.strides": (1, 2, 1)})


# ---- Releases of CANN


def test_texts_of_cube_math_types_by_release_of_cann() -> None:
    """The values that a release takes are those that the refusal of another one names."""
    three = "0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16)"
    of_backward = {"later": f"{three} or 3 (USE_HF32) ", "9.1": f"{three}, 3 (USE_HF32) or 4 (USE_FP32_ADD) "}
    of_both = f"{three}, 3 (USE_HF32), 4 (USE_FP32_ADD) or 5 (USE_HIGH_PREC_MODE) "
    for operator, release, expected in (
        (FORWARD, "later", of_backward["9.1"]),
        (FORWARD, "9.0", of_both),
        *((BACKWARD, release, text) for release, text in of_backward.items()),
        (BACKWARD, "8.5", of_both),
    ):
        outcome = call(operator, {"cubeMathType": 6}, release=release)
        assert outcome.status == PARAM_INVALID
        assert f"cubeMathType is 6, expected {expected}" in outcome.text


def test_ascend950_limits_the_padding_of_transposed_convolutions_up_to_cann_9_0() -> None:
    """dilation (kernel - 1) - padding = 256."""
    changes = flat((2,), kernel=(257,), transposed=True).forward()
    outcome = call(FORWARD, changes, "Ascend950", "9.0")
    assert outcome.status == PARAM_INVALID
    assert (
        "padding is [0], with which dilation (weight - 1) - padding is 256 in spatial dimension 0, expected at most "
        "255; or select CANN 9.1 or the product host" in outcome.text
    )
    assert call(FORWARD, changes, "Ascend950", "9.1").status == SUCCESS
