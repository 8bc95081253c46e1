"""torch.ops.aclnn.rms_norm and rms_norm_grad against float64 and against torch's own RMSNorm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import aclnn_torch
from tests import operator_checks
from tests.operator_checks import FLOATS, Call, views

ops = torch.ops.aclnn

# Results that do not depend on all arguments.
PARTIAL_CALLS = [
    Call(lambda x, gamma: ops.rms_norm(x, gamma)[1], [(3, 4), (4,)], [None, None], "rstd alone"),
    Call(lambda *args: ops.rms_norm_grad(*args)[0], [(3, 4), (3, 4), (3, 1), (4,)], [None] * 4, "dx alone"),
    Call(lambda *args: ops.rms_norm_grad(*args)[1], [(3, 4), (3, 4), (3, 1), (4,)], [None] * 4, "dgamma alone"),
]
# x, and gamma if it differs.
DTYPES = [*((dtype, dtype) for dtype in FLOATS), (torch.float16, torch.float32), (torch.bfloat16, torch.float32)]

# The distance from float64, in FP32 units of the terms summed for it (:func:`reference`). Each step of the formulas
# rounds once, and the additions of a sum, at most 128 for one number, have errors of both signs.
UNITS = 4


def reference(
    x: Tensor, gamma: Tensor, dy: Tensor, epsilon: float = 1e-6
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """y, rstd, dx and dgamma as matrices in float64; and the magnitudes that their rounding errors are relative to."""
    x, gamma, dy = (tensor.detach().double().reshape(-1, gamma.numel()) for tensor in (x, gamma, dy))
    rstd = (x.square().mean(1, keepdim=True) + epsilon).rsqrt()
    xhat, a = x * rstd, dy * gamma
    dx = rstd * (a - xhat * (a * xhat).mean(1, keepdim=True))
    magnitude = rstd * (a.abs() + xhat.abs() * (a * xhat).abs().mean(1, keepdim=True))
    dgamma = dy * xhat
    return (xhat * gamma, rstd, dx, dgamma.sum(0)), ((xhat * gamma).abs(), rstd, magnitude, dgamma.abs().sum(0))


def check_near(got: Tensor, expected: Tensor, magnitude: Tensor) -> None:
    """Within UNITS in FP32 (or float64) and, for the 16-bit types, one more rounding."""
    info = torch.finfo(got.dtype)
    expected, magnitude = expected.reshape(got.shape), magnitude.reshape(got.shape)
    margin = UNITS * min(info.eps, 2**-23) * magnitude
    if info.bits == 16:
        margin = margin + (expected.abs() + margin) * info.eps / 2 + info.smallest_normal * info.eps / 2
    excess = (got.detach().double() - expected).abs() / margin.clamp(min=1e-300)
    assert float(excess.max()) <= 1


def tensors(rows: Sequence[int], norm: Sequence[int], x: torch.dtype, gamma: torch.dtype) -> list[Tensor]:
    """x, gamma and dy."""
    generator = torch.Generator().manual_seed(len(rows) + sum(norm))
    shapes = ((*rows, *norm), norm, (*rows, *norm))
    values = [torch.randn(shape, generator=generator) for shape in shapes]
    return [value.to(dtype) for value, dtype in zip(values, (x, gamma, x), strict=True)]


def all_results(x: Tensor, gamma: Tensor, dy: Tensor) -> tuple[Tensor, ...]:
    """y, rstd, dx, dgamma."""
    y, rstd = ops.rms_norm(x, gamma)
    return y, rstd, *ops.rms_norm_grad(dy, x, rstd, gamma)


def test_schemas() -> None:
    assert (
        str(ops.rms_norm.default._schema)
        == "aclnn::rms_norm(Tensor x, Tensor gamma, float epsilon=9.9999999999999995e-07) -> (Tensor y, Tensor rstd)"
    )
    assert (
        str(ops.rms_norm_grad.default._schema)
        == "aclnn::rms_norm_grad(Tensor dy, Tensor x, Tensor rstd, Tensor gamma) -> (Tensor dx, Tensor dgamma)"
    )


@pytest.mark.parametrize("call", PARTIAL_CALLS, ids=str)
def test_gradients_of_one_result(call: Call, host_product: None) -> None:
    operator_checks.check_gradients(call)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [DTYPES[0], DTYPES[-1]])
def test_opcheck(dtype: tuple[torch.dtype, torch.dtype], requires_grad: bool) -> None:
    for rows, norm in (((3,), (2, 4)), ((), (6,))):
        x, gamma, dy = (tensor.requires_grad_(requires_grad) for tensor in tensors(rows, norm, *dtype))
        rstd = torch.rand(*rows, *[1] * len(norm), requires_grad=requires_grad)
        for operator, arguments in ((ops.rms_norm, (x, gamma)), (ops.rms_norm_grad, (dy, x, rstd, gamma))):
            operator_checks.opcheck(operator.default, arguments)


def test_third_derivatives(host_product: None) -> None:
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    gamma = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def gradient(x: Tensor, gamma: Tensor) -> Tensor:
        return torch.autograd.grad(ops.rms_norm(x, gamma)[0].sin().sum(), x, create_graph=True)[0]

    torch.autograd.gradgradcheck(gradient, (x, gamma))


SHAPES = [
    ((1,), (1,)),
    ((), (7,)),
    ((5,), (33,)),
    ((2, 3), (5, 7)),
    ((4,), (2, 3, 5)),
    ((70,), (64,)),
    ((1000,), (130,)),
    ((40,), (5000,)),
    ((3,), (100_003,)),
    ((1 << 17,), (8,)),
    ((1,), (1 << 21,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "norm"), SHAPES, ids=str)
def test_values(rows: tuple[int, ...], norm: tuple[int, ...], dtype: tuple[torch.dtype, torch.dtype]) -> None:
    x, gamma, dy = tensors(rows, norm, *dtype)
    results = all_results(x, gamma, dy)
    for got, expected, magnitude in zip(results, *reference(x, gamma, dy), strict=True):
        check_near(got, expected, magnitude)
    assert [result.dtype for result in results] == [x.dtype, torch.float32, x.dtype, torch.float32]
    assert [result.shape for result in results] == [x.shape, (*rows, *[1] * len(norm)), x.shape, gamma.shape]
    for result in results:
        assert result.is_contiguous()


@pytest.mark.parametrize(("rows", "norm"), SHAPES[:-2], ids=str)
def test_values_in_float64(rows: tuple[int, ...], norm: tuple[int, ...], host_product: None) -> None:
    x, gamma, dy = tensors(rows, norm, torch.float64, torch.float64)
    for got, expected, magnitude in zip(all_results(x, gamma, dy), *reference(x, gamma, dy), strict=True):
        assert got.dtype == torch.float64
        check_near(got, expected, 2 * magnitude)  # the reference rounds as often


@pytest.mark.parametrize("magnitude", [1e-30, 1e-3, 1e15])
def test_values_of_any_size(magnitude: float) -> None:
    x, gamma, dy = tensors((5,), (100,), torch.float32, torch.float32)
    x = x * magnitude
    for got, expected, size in zip(all_results(x, gamma, dy), *reference(x, gamma, dy), strict=True):
        check_near(got, expected, size)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("columns", [1, 5, 31, 32, 33, 64, 100])
def test_an_infinite_rstd_gives_the_formula_of_any_number_of_columns(columns: int, dtype: torch.dtype) -> None:
    ones = torch.ones(6, columns, dtype=dtype)
    rstd = torch.ones(6, 1, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    rstd[2] = float("inf")
    dx, dgamma = ops.rms_norm_grad(ones, ones, rstd, ones[0])
    assert dx[2].isneginf().all()  # (1 - inf * inf) * inf
    assert not dx[[0, 1, 3, 4, 5]].any()  # 1 - 1 * 1
    assert dgamma.isposinf().all()


def test_infinity_and_nan_stay_in_their_rows() -> None:
    x, gamma, dy = tensors((4,), (10,), torch.float32, torch.float32)
    x[1, 3], x[2, 5] = float("inf"), float("nan")
    y, rstd, dx, dgamma = all_results(x, gamma, dy)
    torch.testing.assert_close(y, TF.rms_norm(x, (10,), gamma, 1e-6), equal_nan=True)
    assert rstd.flatten()[1] == 0
    assert rstd.isnan().flatten().tolist() == [False, False, True, False]
    assert dx.isfinite().all(1).tolist() == [True, False, False, True]
    assert dgamma.isnan().all()  # 0 * inf of the second row only where x is inf, nan of the third everywhere


def test_known_answer() -> None:
    """The example of aclnnRmsNormGrad's document, whose rstd does not match its x."""
    x = torch.arange(1.0, 33).reshape(2, 1, 16)
    dx, dgamma = ops.rms_norm_grad(x, x, torch.tensor([1.0, 2.0]), torch.arange(1.0, 17))
    assert dx.flatten().tolist() == [
        *(-1155, -2308, -3459, -4608, -5755, -6900, -8043, -9184),
        *(-10323, -11460, -12595, -13728, -14859, -15988, -17115, -18240),
        *(-860030, -910584, -961134, -1011680, -1062222, -1112760, -1163294, -1213824),
        *(-1264350, -1314872, -1365390, -1415904, -1466414, -1516920, -1567422, -1617920),
    ]
    assert dgamma.tolist() == [
        579,
        652,
        731,
        816,
        907,
        1004,
        1107,
        1216,
        1331,
        1452,
        1579,
        1712,
        1851,
        1996,
        2147,
        2304,
    ]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_agrees_with_torch_on_its_samples(dtype: torch.dtype, host_product: None) -> None:
    info = next(op for op in op_db if op.name == "nn.functional.rms_norm")
    count = 0
    for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
        shape = sample.args[0] if sample.args else sample.kwargs["normalized_shape"]
        weight = sample.kwargs.get("weight")
        weight = torch.ones(shape, dtype=dtype, requires_grad=True) if weight is None else weight
        epsilon = sample.kwargs.get("eps")
        epsilon = torch.finfo(dtype).eps if epsilon is None else epsilon
        x = sample.input
        if epsilon < 0:
            with pytest.raises(aclnn_torch.AclnnError, match="epsilon"):
                ops.rms_norm(x, weight, epsilon)
            continue
        y, _ = ops.rms_norm(x, weight, epsilon)
        torchs = TF.rms_norm(x, shape, weight, epsilon)
        dy = torch.linspace(-2, 2, y.numel()).to(dtype).reshape(y.shape)
        torch.testing.assert_close(y, torchs)
        ours = torch.autograd.grad(y, (x, weight), dy)
        for got, expected in zip(ours, torch.autograd.grad(torchs, (x, weight), dy), strict=True):
            assert got.dtype == expected.dtype
            torch.testing.assert_close(got, expected)
        count += 1
    assert count >= 5


@pytest.fixture
def any_threads() -> Iterator[None]:
    """Restores the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def assert_same_bits(results: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for got, wanted in zip(results, expected, strict=True):
        assert torch.equal(got.flatten().view(torch.uint8), wanted.flatten().view(torch.uint8))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("rows", "norm"), [((5,), (7,)), ((1000,), (300,)), ((40,), (5000,)), ((3,), (100_003,)), ((2100,), (64,))], ids=str
)
def test_threads_change_no_bit(
    rows: tuple[int, ...], norm: tuple[int, ...], dtype: torch.dtype, any_threads: None
) -> None:
    arguments = tensors(rows, norm, dtype, dtype)
    torch.set_num_threads(1)
    expected = all_results(*arguments)
    for threads in (2, 3, 8):
        torch.set_num_threads(threads)
        assert_same_bits(all_results(*arguments), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_alignment_changes_no_bit(dtype: torch.dtype) -> None:
    x, gamma, dy = tensors((9,), (41,), dtype, dtype)
    expected = all_results(x, gamma, dy)

    def moved(tensor: Tensor, by: int) -> Tensor:
        return torch.cat([tensor.new_zeros(by), tensor.flatten()])[by:].view(tensor.shape)

    for shift in range(1, 33):
        assert_same_bits(all_results(moved(x, shift), moved(gamma, shift // 2), moved(dy, shift // 3)), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strides_change_no_bit(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    of_x, of_dy = (list(views((2, 3, 5, 7), dtype).values()) for _ in range(2))
    for x, dy in zip(of_x, [*of_dy[1:], of_dy[0]], strict=True):
        gamma = torch.randn(7, 5).to(dtype).T
        results = all_results(x, gamma, dy)
        assert_same_bits(results, all_results(*(tensor.contiguous() for tensor in (x, gamma, dy))))
        assert all(result.is_contiguous() for result in results)
    dy = torch.randn((), dtype=torch.float32).to(dtype).expand(2, 3, 5, 7)  # as the gradient of a sum is
    assert_same_bits(all_results(x, gamma, dy), all_results(x, gamma, dy.contiguous()))
    _, rstd = ops.rms_norm(x, gamma)
    strided = torch.stack([rstd, rstd], -1)[..., 0]
    assert_same_bits(ops.rms_norm_grad(dy, x, strided, gamma), ops.rms_norm_grad(dy, x, rstd, gamma))


def test_rstd_of_every_accepted_shape() -> None:
    x, gamma, dy = tensors((2, 3, 1), (4, 5), torch.float32, torch.float32)
    _, rstd = ops.rms_norm(x, gamma)
    assert rstd.shape == (2, 3, 1, 1, 1)
    expected = ops.rms_norm_grad(dy, x, rstd, gamma)
    for shape in ((2, 3), (2, 3, 1), (2, 3, 1, 1), (2, 3, 1, 1, 1, 1)):
        assert_same_bits(ops.rms_norm_grad(dy, x, rstd.reshape(shape), gamma), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_autograd_casts_dgamma_to_gammas_dtype(dtype: tuple[torch.dtype, torch.dtype]) -> None:
    x, gamma, dy = tensors((6,), (32,), *dtype)
    x.requires_grad_(), gamma.requires_grad_()
    y, rstd = ops.rms_norm(x, gamma)
    got = torch.autograd.grad(y, (x, gamma), dy)
    dx, dgamma = ops.rms_norm_grad(dy, x.detach(), rstd.detach(), gamma.detach())
    assert_same_bits(got, (dx, dgamma.to(gamma.dtype)))


def test_autograd_notices_what_was_overwritten() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    for which in (0, 1):
        leaf = x * 1
        y, rstd = ops.rms_norm(leaf, torch.ones(4))
        (leaf, rstd)[which].detach().add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    y = ops.rms_norm(x, torch.ones(4))[0].sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("enabled", [torch.bfloat16, torch.float16])
def test_autocast_leaves_rms_norm_alone_as_torchs(enabled: torch.dtype) -> None:
    for dtype in FLOATS:
        x, gamma, _ = tensors((3,), (8,), dtype, dtype)
        with torch.autocast("cpu", dtype=enabled):
            assert ops.rms_norm(x, gamma)[0].dtype == TF.rms_norm(x, (8,), gamma).dtype == dtype


def test_vmap_beyond_eight_dimensions() -> None:
    x, gamma = torch.randn(5, *[1] * 5, 2, 3, 4), torch.randn(3, 4)
    got = torch.vmap(ops.rms_norm, (0, None))(x, gamma)
    expected = ops.rms_norm(x.reshape(5, 2, 3, 4), gamma)
    assert [result.shape for result in got] == [x.shape, (5, *[1] * 5, 2, 1, 1)]
    assert_same_bits(got, expected)


def test_vmap_over_no_samples() -> None:
    gamma = torch.ones(0, 4)
    y, rstd = torch.vmap(ops.rms_norm, (None, 0))(torch.ones(3, 4), gamma)
    assert (y.shape, rstd.shape) == ((0, 3, 4), (0, 3, 1))


def test_empty_where_it_is_accepted() -> None:
    with aclnn_torch.product("Ascend950"):
        y, rstd, dx, dgamma = all_results(torch.ones(0, 4), torch.ones(4), torch.ones(0, 4))
        assert (y.shape, rstd.shape, dx.shape) == ((0, 4), (0, 1), (0, 4))
        assert dgamma.isnan().all()
    with aclnn_torch.product("host"):
        *_, dgamma = all_results(torch.ones(0, 4), torch.ones(4), torch.ones(0, 4))
        assert dgamma.tolist() == [0, 0, 0, 0]
        # Empty rows have no mean.
        y, rstd, dx, dgamma = all_results(torch.ones(2, 0, 3), torch.ones(0, 3), torch.ones(2, 0, 3))
        assert (y.shape, dx.shape, dgamma.shape) == ((2, 0, 3), (2, 0, 3), (0, 3))
        assert rstd.isnan().flatten().tolist() == [True, True]


def test_rules_of_older_products() -> None:
    with aclnn_torch.product("Ascend310P"):
        y, _ = ops.rms_norm(torch.ones(2, 16).half(), torch.ones(16).half())
        assert y.dtype == torch.float16
    with aclnn_torch.product("Ascend910"):
        x = torch.ones(2, 16, requires_grad=True)
        y, _ = ops.rms_norm(x, torch.ones(16))
        with pytest.raises(aclnn_torch.AclnnError, match="64") as caught:
            y.sum().backward()
        assert caught.value.status == 561002
        assert ops.rms_norm_grad(*[torch.ones(2, 64)] * 2, torch.ones(2), torch.ones(64))[0].shape == (2, 64)


def test_meta_and_the_run_refuse_the_same() -> None:
    for device in ("cpu", "meta"):
        x = torch.ones(3, 4, device=device)
        text = "gamma has shape [3], expected [4], the last dimensions of x; shapes are not broadcast, expand first"
        with pytest.raises(aclnn_torch.AclnnError, match=re.escape(text)) as caught:
            ops.rms_norm(x, torch.ones(3, device=device))
        assert caught.value.status == 561002
        text = "dy has shape [4, 3], expected [3, 4], as x has; shapes are not broadcast, expand first"
        with pytest.raises(aclnn_torch.AclnnError, match=re.escape(text)) as caught:
            ops.rms_norm_grad(x.reshape(4, 3), x, x[:, :1], x[0])
        assert caught.value.status == 561002


@pytest.mark.parametrize(
    ("x", "gamma", "text"), [((), (), "x has 0"), ((2,) * 9, (2,), "x has 9"), ((2,), (), "gamma has 0")]
)
def test_meta_and_the_run_refuse_the_same_ranks(x: tuple[int, ...], gamma: tuple[int, ...], text: str) -> None:
    for device in ("cpu", "meta"):
        with pytest.raises(aclnn_torch.AclnnError, match=text) as caught:
            ops.rms_norm(torch.ones(x, device=device), torch.ones(gamma, device=device))
        assert caught.value.status == 561002


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


TILING = (561002, "ACLNN_ERR_INNER_TILING_ERROR")
INVALID = (161002, "ACLNN_ERR_PARAM_INVALID")
BF16 = torch.bfloat16

# The call, its product, the words of the error, its status.
BAD_CALLS: dict[str, tuple[str, Callable[[], object], list[str], tuple[int, str]]] = {
    "float64 on Ascend910B": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(2, 4).double(), ones(4).double()),
        ["aclnnRmsNorm", "x DOUBLE", "rstdOut DOUBLE", "x FLOAT16, gamma FLOAT,", "Ascend910B", 'set_product("host")'],
        INVALID,
    ),
    "gamma of another 16-bit type": (
        "host",
        lambda: ops.rms_norm(ones(2, 4).half(), ones(4, dtype=BF16)),
        ["aclnnRmsNorm", "x FLOAT16, gamma BFLOAT16", "cast"],
        INVALID,
    ),
    "a 16-bit gamma for float32": (
        "Ascend950",
        lambda: ops.rms_norm(ones(2, 4), ones(4, dtype=BF16)),
        ["x FLOAT, gamma BFLOAT16", "cast"],
        INVALID,
    ),
    "dy of another dtype": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(2, 4).half(), ones(2, 4), ones(2), ones(4)),
        ["aclnnRmsNormGrad", "dy FLOAT16, x FLOAT", "cast"],
        INVALID,
    ),
    "rstd of 16 bits": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(2, 4).half(), ones(2, 4).half(), ones(2).half(), ones(4).half()),
        ["rstd FLOAT16", "rstd FLOAT,", "cast"],
        INVALID,
    ),
    "BFLOAT16 before Atlas A2": (
        "Ascend310P",
        lambda: ops.rms_norm(ones(2, 16, dtype=BF16), ones(16, dtype=BF16)),
        ["x BFLOAT16", "Ascend310P", "Ascend910B"],
        INVALID,
    ),
    "a float32 gamma before Atlas A2": (
        "Ascend910",
        lambda: ops.rms_norm(ones(2, 16).half(), ones(16)),
        ["x FLOAT16, gamma FLOAT,", "Ascend910", "Ascend910B"],
        INVALID,
    ),
    "integers": (
        "host",
        lambda: ops.rms_norm(ones(2, 4).int(), ones(4).int()),
        ["x INT32", "cast"],
        INVALID,
    ),
    "gamma is not x's last dimensions": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(2, 3, 4), ones(2, 4)),
        ["gamma", "[2, 4]", "[3, 4]", "last dimensions of x", "Ascend910B"],
        TILING,
    ),
    "gamma has more dimensions than x": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(4), ones(1, 4)),
        ["gamma", "[1, 4]", "[4]", "last dimensions of x"],
        TILING,
    ),
    "gamma without dimensions": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(4), ones()),
        ["gamma", "0 dimensions", "1 to 8"],
        TILING,
    ),
    "nine dimensions": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(*[1] * 8, 4), ones(4)),
        ["x", "9 dimensions", "1 to 8", "reshape"],
        TILING,
    ),
    "a negative epsilon": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(2, 4), ones(4), -1e-6),
        ["epsilon is -1e-06", ">= 0"],
        TILING,
    ),
    "rstd of too few rows": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(3, 4), ones(3, 4), ones(2, 1), ones(4)),
        ["aclnnRmsNormGrad", "rstd", "[2, 1]", "[3, 1]", "every row of x"],
        TILING,
    ),
    "rstd of every element": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(3, 4), ones(3, 4), ones(3, 4), ones(4)),
        ["rstd", "[3, 4]", "[3, 1]"],
        TILING,
    ),
    "rstd in another order": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(2, 3, 4), ones(2, 3, 4), ones(3, 2, 1), ones(4)),
        ["rstd", "[3, 2, 1]", "[2, 3, 1]"],
        TILING,
    ),
    "rstd without dimensions for two rows": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(2, 4), ones(2, 4), ones(), ones(4)),
        ["rstd", "[]", "[2, 1]"],
        TILING,
    ),
    "dy of another shape": (
        "Ascend910B",
        lambda: ops.rms_norm_grad(ones(4, 2), ones(2, 4), ones(2), ones(4)),
        ["dy", "[4, 2]", "[2, 4]", "expand"],
        TILING,
    ),
    "no columns": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(4, 0), ones(0)),
        ["x", "[4, 0]"],
        TILING,
    ),
    "tensors on different devices": (
        "Ascend910B",
        lambda: ops.rms_norm(torch.ones(2, 4, device="meta"), ones(4)),
        ["gamma", "cpu", "meta", "x"],
        INVALID,
    ),
    "a dtype that CANN lacks": (
        "Ascend910B",
        lambda: ops.rms_norm(ones(2, 4).to(torch.float8_e5m2fnuz), ones(4)),
        ["x", "Float8_e5m2fnuz", "cast"],
        INVALID,
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    product, call, words, (status, status_name) = BAD_CALLS[name]
    with aclnn_torch.product(product):
        operator_checks.check_error(call, words, status, status_name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_any_nan_of_float_stays_one(dtype: torch.dtype) -> None:
    """NaNs of gamma and rstd, in lower bits that a 16-bit result does not have."""
    nan = torch.tensor([0x7FFFFFFF], dtype=torch.int32).view(torch.float32)
    x, ones = torch.ones(4, 64, dtype=dtype), torch.ones(64)
    gamma = ones.clone()
    gamma[5] = nan
    y, rstd = ops.rms_norm(x, gamma)
    assert torch.equal(y.isnan(), gamma.isnan().expand(4, 64))
    assert ops.rms_norm_grad(x, x, rstd, gamma)[0].isnan().all()
    rstd[1] = nan
    dx, dgamma = ops.rms_norm_grad(x, x, rstd, ones)
    assert torch.equal(dx.isnan(), rstd.isnan().expand(4, 64))
    assert dgamma.isnan().all()
