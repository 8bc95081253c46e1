"""A result's bits depend only on the arguments: not on the number of threads, the tensors' alignment or the run. A
convolution's may depend on the number of threads, unless determinism is requested.

Called through the C ABI, so that the outputs' memory is selected, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

import aclnn_torch.functional as F
from tests import cabi
from tests.cabi import SUCCESS, Dtype, Memory, Stage1
from tests.conformance import linear_cross_entropy_table as linear
from tests.conformance.convolution_table import BACKWARD, FORWARD, Problem
from tests.conformance.machinery import Changes, DtypeRow, Operator, Prepared, Table, Tensor, all_tables
from tests.operator_checks import BFLOAT16_IS_OURS

THREADS = range(1, 9)
DEEP = pytest.mark.deep
LARGE = pytest.param((661, 4099), marks=DEEP)
LARGE_SHIFTED = pytest.param((661, 4099), (1, 8, 31), marks=DEEP)
ACL_OPT_DETERMINISTIC = 0

TABLES = all_tables()
CONVOLUTIONS = (FORWARD, BACKWARD)
EACH_DTYPE_ROW = pytest.mark.parametrize(
    ("table", "row"),
    [
        pytest.param(table, row, id=f"{table.operator.api}-{'-'.join(d.name for d in dict.fromkeys(row.dtypes))}")
        for table in TABLES
        for row in table.dtypes
        if "host" in row.accepted and table.operator not in CONVOLUTIONS
    ],
)
# Numbers whose sums round; their count has no common factor with sizes.
NUMBERS = np.random.default_rng(0).standard_normal(10_007)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["of CANN", "of the context", "of PyTorch"])
def determinism(request: pytest.FixtureRequest) -> Iterator[None]:
    """The three ways to request determinism."""
    host = cabi.host()
    if request.param == "of PyTorch":
        torch.use_deterministic_algorithms(True)
        yield
        torch.use_deterministic_algorithms(False)
    elif request.param == "of CANN":
        assert host.aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1) == SUCCESS
        yield
        assert host.aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0) == SUCCESS
    else:
        assert host.aclrtSetDevice(0) == SUCCESS
        assert host.aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1) == SUCCESS
        yield
        assert host.aclrtResetDevice(0) == SUCCESS


def with_numbers(operator: Operator, changes: Changes) -> Changes:
    """Fills all input tensors except labels with NUMBERS, each from another offset."""
    arguments = operator.changed(changes)
    numbers = {
        f"{name}.values": np.roll(NUMBERS, 101 * i)
        for i, name in enumerate(operator.inputs)
        if isinstance(arguments[name], Tensor) and arguments[name].dtype in cabi.REAL
    }
    return {**changes, **numbers}


def run(prepared: Prepared, threads: int) -> dict[str, bytes]:
    """The bits of the outputs with this many threads."""
    for name, memory in prepared.memory.items():
        memory.raw[:] = prepared.before[name]
    torch.set_num_threads(threads)
    first = prepared.stage1()
    assert first.status == SUCCESS, first.text
    assert first.run() == SUCCESS, cabi.error_text()
    assert cabi.host().aclrtSynchronizeStream(None) == SUCCESS, cabi.error_text()
    return {name: memory.view.tobytes() for name, memory in prepared.outputs.items()}


def bits(operator: Operator, changes: Changes, threads: int = 2) -> dict[str, bytes]:
    with cabi.product("host"), Prepared(operator, with_numbers(operator, changes)) as prepared:
        return run(prepared, threads)


def differing(got: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    return [name for name in expected if got[name] != expected[name]]


def check_threads(operator: Operator, changes: Changes, product: str = "host") -> None:
    """The same bits on 1 to 8 threads, and in a second run."""
    with cabi.product(product), Prepared(operator, with_numbers(operator, changes)) as prepared:
        expected = run(prepared, 1)
        for threads in (*THREADS, 2):
            assert differing(run(prepared, threads), expected) == [], f"on {threads} threads"


# Rows and columns: for one thread; for several; in pieces and segments of a row; above kStreamingBytes
# (csrc/host_cann/kernels/tuning.h) in 16 bits with many short rows, with few long ones, and with medium ones.
SIZES = ((3, 7), (37, 1003), (3, 70_001), *(pytest.param(s, marks=DEEP) for s in ((80_021, 33), (3, 900_001))), LARGE)


@EACH_DTYPE_ROW
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_threads_change_no_bit(table: Table, row: DtypeRow, size: tuple[int, int]) -> None:
    check_threads(table.operator, {**table.of_dtypes(row.dtypes), **table.operator.of_size(*size)})


# Several tiles of rows and blocks of classes; the last is narrower.
LINEAR_CALLS: dict[str, tuple[Table, Changes]] = {
    "max and sum": (linear.TABLES[0], linear.online_shapes(700, 1300, 40)),
    "softmax": (linear.TABLES[1], linear.loss_shapes(700, 1300)),
    "gradient of sums": (linear.TABLES[2], linear.gradient_shapes(700, 1300, 40)),
    "gradient of softmax": (linear.TABLES[2], linear.with_softmax(700, 1300, 40)),
    "at once": (linear.TABLES[3], linear.host_shapes(700, 1300, 40)),
    "at once, with smoothing": (linear.TABLES[3], linear.host_shapes(700, 1300, 40) | {"labelSmoothing": 0.25}),
    "loss": (linear.TABLES[3], linear.host_shapes(700, 1300, 40) | linear.NO_GRADIENTS),
}


@pytest.mark.parametrize("dtype", [Dtype.FLOAT, Dtype.BF16, Dtype.DOUBLE], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", LINEAR_CALLS)
def test_threads_change_no_bit_of_linear_cross_entropy(name: str, dtype: Dtype) -> None:
    table, changes = LINEAR_CALLS[name]
    matrix = {linear.LOSS: 3, linear.GRADIENT: 1}.get(table.operator, 0)  # index among the tensors
    dtypes = next(row.dtypes for row in table.dtypes if row.dtypes[matrix] == dtype)
    changes = {**table.of_dtypes(dtypes), **changes}
    softmax = changes.get("softmaxOptional")
    if softmax is not None:
        changes["softmaxOptional"] = replace(softmax, dtype=dtypes[0])
    for product in ("host", "Ascend910B") if dtype == Dtype.BF16 else ("host",):
        check_threads(table.operator, changes, product)


@EACH_DTYPE_ROW
@pytest.mark.parametrize(("size", "shifts"), [((5, 133), range(1, 34)), LARGE_SHIFTED], ids=str)
def test_alignment_changes_no_bit(table: Table, row: DtypeRow, size: tuple[int, int], shifts: Sequence[int]) -> None:
    """Every alignment in a cache line, for each tensor separately."""
    operator = table.operator
    changes = {**table.of_dtypes(row.dtypes), **operator.of_size(*size)}
    expected = bits(operator, changes)
    for shift in shifts:
        offsets = {f"{name}.offset": shift * (i + 1) % 34 for i, name in enumerate(operator.tensors)}
        assert differing(bits(operator, {**changes, **offsets}), expected) == [], f"of {offsets}"


# ---- Convolution

IMAGE = Problem(8, 32, 48, (20, 19), (3, 3), (1, 1), (1, 1), (1, 1), output_padding=(0, 0), groups=1)
# At least one for each row of docs/convolution.md.
PROBLEMS = {
    "tiny": replace(IMAGE, batch=2, channels=2, results=2, sizes=(7, 7)),
    "3x3": IMAGE,
    "3x3, odd channels": replace(IMAGE, channels=24, results=41),
    "3x3, images of 7 x 7": replace(IMAGE, sizes=(7, 7), channels=64, results=64),
    "3x3, no padding": replace(IMAGE, padding=(0, 0), sizes=(9, 8)),
    "3x3, no padding, with gaps": replace(IMAGE, padding=(0, 0), sizes=(20, 25), stride=(4, 5)),
    "3x3, a single image": replace(IMAGE, batch=1, sizes=(40, 40)),
    "3x3, a large image": replace(IMAGE, batch=2, sizes=(44, 42)),
    "3x3, a large image, stride": replace(IMAGE, batch=2, sizes=(44, 42), stride=(2, 2)),
    "3x3, a shallow output": replace(IMAGE, batch=1, channels=16, sizes=(150, 148)),
    "3x3, stride": replace(IMAGE, stride=(2, 2)),
    "3x3, dilation": replace(IMAGE, dilation=(2, 2), padding=(2, 2)),
    "3x3, few channels of a single image": replace(IMAGE, batch=1, channels=8, results=10),
    "groups": replace(IMAGE, channels=24, results=40, groups=4),
    "depthwise": replace(IMAGE, channels=40, results=40, groups=40),
    "four paddings": replace(IMAGE, padding=(1, 0, 2, 1)),
    "1x1": replace(IMAGE, kernel=(1, 1), padding=(0, 0)),
    "1x1, images of 7 x 7": replace(IMAGE, kernel=(1, 1), padding=(0, 0), sizes=(7, 7), channels=64, results=128),
    "1x1, a single image": replace(IMAGE, kernel=(1, 1), padding=(0, 0), sizes=(7, 7), batch=1, channels=256),
    "1x1, stride": replace(IMAGE, kernel=(1, 1), padding=(0, 0), stride=(2, 2)),
    "1x1, padding": replace(IMAGE, kernel=(1, 1)),
    "1x1, groups": replace(IMAGE, kernel=(1, 1), padding=(0, 0), groups=4),
    "7x7, stride": replace(IMAGE, channels=3, sizes=(41, 40), kernel=(7, 7), stride=(2, 2), padding=(3, 3)),
    "transposed": replace(IMAGE, kernel=(4, 4), stride=(2, 2), transposed=True),
    "transposed, output padding": replace(IMAGE, stride=(2, 2), transposed=True, output_padding=(1, 1)),
    "transposed, to few channels": replace(IMAGE, results=3, kernel=(4, 4), stride=(2, 2), transposed=True),
    "1-D": Problem(8, 24, 40, (500,), (3,), (1,), (1,), (1,), output_padding=(0,), groups=1),
    "1-D, one long row": Problem(1, 8, 16, (9001,), (9,), (1,), (4,), (1,), output_padding=(0,), groups=1),
    "3-D": Problem(3, 16, 24, (9, 10, 11), (3,) * 3, (1,) * 3, (1,) * 3, (1,) * 3, output_padding=(0,) * 3, groups=1),
}
EACH_PROBLEM = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
EACH_DTYPE = pytest.mark.parametrize("dtype", cabi.REAL, ids=lambda dtype: dtype.name)
OTHERS = [dtype for dtype in cabi.REAL if dtype != Dtype.FLOAT]


UNARY = {
    "elu": F.elu,
    "elu, growing": lambda x: torch.ops.aclnn.elu(x, 1.5, 0.5, -2.0),
    "gelu": F.gelu,
    "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "selu": F.selu,
    "silu": F.silu,
    "softplus": lambda x: F.softplus(x, beta=0.5, threshold=3.0),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_large_tensors_of_16_bits_have_the_bits_of_small_ones(name: str, dtype: torch.dtype) -> None:
    """Of all 65,536 numbers, at another alignment: from 2^20 elements per thread on, some are looked up."""
    function = UNARY[name]
    numbers = torch.arange(0xBF90, 0xBF90 + 65536).to(torch.int16).view(dtype)  # the last ones are near -1
    small = function(numbers).view(torch.int16)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for count, start in ((32, 0), (33, 5)):
            large = function(numbers.repeat(count)[start:])
            assert large.view(torch.int16).equal(small.repeat(count)[start:])


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BF16], ids=lambda dtype: dtype.name)
def test_results_that_are_looked_up_stay_within_their_memory(dtype: Dtype) -> None:
    """In place, three elements more than a multiple of four."""
    torch.set_num_threads(2)
    numbers = np.arange(65536, dtype=np.uint16)
    small, large = Memory(dtype, [65536]), Memory(dtype, [2**21 + 3])
    for memory in (small, large):
        memory.view.view(np.uint16)[...] = np.resize(numbers, memory.shape)
        tensor = memory.descriptor()
        first = Stage1("aclnnGeluV2", [tensor, 0, tensor])
        assert first.run() == SUCCESS, first.text
        assert cabi.host().aclrtSynchronizeStream(None) == SUCCESS, cabi.error_text()
        assert cabi.host().aclDestroyTensor(tensor) == SUCCESS
        assert memory.untouched()
    assert large.view.tobytes() == np.resize(small.view, large.shape).tobytes()


def call_of(problem: Problem, operator: Operator, dtype: Dtype, channels_last: bool = False) -> Changes:
    changes = problem.forward() if operator is FORWARD else problem.backward()
    changes.update({f"{name}.dtype": dtype for name in operator.tensors})
    if channels_last:
        for key in [key for key in changes if key.endswith(".shape") and "eight" not in key and "ias" not in key]:
            batch, channels, *positions = changes[key]
            strides = cabi.contiguous_strides((batch, *positions, channels))
            changes[key.replace("shape", "strides")] = (strides[0], 1, *strides[1:-1])
    return changes


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@EACH_PROBLEM
@pytest.mark.parametrize("dtype", [Dtype.FLOAT, *(pytest.param(d, marks=DEEP) for d in OTHERS)], ids=lambda d: d.name)
def test_threads_change_no_bit_of_a_deterministic_convolution(
    problem: Problem, dtype: Dtype, deterministic: None
) -> None:
    for operator in CONVOLUTIONS:
        check_threads(operator, call_of(problem, operator, dtype))


@DEEP
@EACH_PROBLEM
@EACH_DTYPE
def test_nor_of_one_that_is_channels_last(problem: Problem, dtype: Dtype, deterministic: None) -> None:
    for operator in CONVOLUTIONS:
        check_threads(operator, call_of(problem, operator, dtype, channels_last=True))


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["3x3", "1x1", "1x1, padding", "transposed"])
def test_nor_of_another_type(name: str, dtype: Dtype, deterministic: None) -> None:
    check_threads(BACKWARD, call_of(PROBLEMS[name], BACKWARD, dtype))


@pytest.fixture
def differs_otherwise() -> None:
    """True if the gradients below depend on the number of threads at all, which oneDNN decides by the CPU."""
    changes = call_of(PROBLEMS["3x3"], BACKWARD, Dtype.FLOAT)
    with cabi.product("host"), Prepared(BACKWARD, with_numbers(BACKWARD, changes)) as prepared:
        expected = run(prepared, 1)
        if not any(differing(run(prepared, threads), expected) for threads in THREADS):
            pytest.skip("this CPU's gradients are the same for every number of threads anyway")


def test_determinism_is_asked_for(differs_otherwise: None, determinism: None) -> None:
    """A weight gradient that depends on it otherwise."""
    check_threads(BACKWARD, call_of(PROBLEMS["3x3"], BACKWARD, Dtype.FLOAT))


def test_channels_last_depthwise_never_depends_on_threads() -> None:
    changes = call_of(PROBLEMS["depthwise"], BACKWARD, Dtype.FLOAT, channels_last=True)
    check_threads(BACKWARD, changes)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT, pytest.param(Dtype.BF16, marks=BFLOAT16_IS_OURS)], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["1x1", "1x1, images of 7 x 7", "1x1, stride", "3x3, odd channels", "1-D"])
def test_products_of_our_own_never_depend_on_threads(name: str, dtype: Dtype) -> None:
    for operator in CONVOLUTIONS:
        check_threads(operator, call_of(PROBLEMS[name], operator, dtype))


@EACH_PROBLEM
@pytest.mark.parametrize("dtype", [Dtype.FLOAT, *(pytest.param(d, marks=DEEP) for d in OTHERS)], ids=lambda d: d.name)
def test_convolution_is_the_same_in_every_run(problem: Problem, dtype: Dtype) -> None:
    """Without a request, on two threads, with any alignment."""
    for operator in CONVOLUTIONS:
        changes = call_of(problem, operator, dtype)
        expected = bits(operator, changes)
        for shift in (0, 1, 7, 16):
            places = [shift * (i + 1) % 34 for i in range(len(operator.tensors))]
            offsets = {f"{name}.offset": place for name, place in zip(operator.tensors, places, strict=True)}
            assert differing(bits(operator, {**changes, **offsets}), expected) == [], f"of {offsets}"


@EACH_PROBLEM
def test_deterministic_convolution_has_the_right_values(problem: Problem, deterministic: None) -> None:
    """Sums of these values are exact."""
    for operator in CONVOLUTIONS:
        results = []
        for dtype, threads in ((Dtype.FLOAT, 3), (Dtype.DOUBLE, 1)):
            # Multiples of 2^-3, whose products and sums fit into FLOAT.
            exact = {f"{name}.values": np.rint(NUMBERS * 8) / 8 for name in operator.inputs}
            with cabi.product("host"), Prepared(operator, {**call_of(problem, operator, dtype), **exact}) as prepared:
                run(prepared, threads)
                results.append({name: memory.read() for name, memory in prepared.outputs.items()})
        for name, values in results[0].items():
            assert np.array_equal(values, results[1][name]), name
