"""Kernels of upstream's Triton on simulated NPUs, compared with the formulas of Triton's documentation in NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cann import extension, libdevice

from tests import LONGEST

HERE = Path(__file__)
FLOATS = [torch.float16, torch.bfloat16, torch.float32]


def line_of(text: str) -> int:
    """The number of the only line of this file that ends with a comment."""
    (number,) = (i for i, line in enumerate(HERE.read_text().split("\n"), 1) if line.endswith(f"# {text}"))
    return number


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Random numbers, the same in every call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype).npu()


def exact(tensor: Tensor) -> np.ndarray:
    """The tensor's elements in float64 or int64."""
    return tensor.cpu().to(torch.float64 if tensor.is_floating_point() else torch.int64).numpy()


@triton.jit
def add_kernel(x, y, out, n, SIZE: tl.constexpr):
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = places < n
    tl.store(out + places, tl.load(x + places, mask=mask) + tl.load(y + places, mask=mask, other=0.0), mask=mask)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_are_rounded_to_the_elements_type(dtype: torch.dtype) -> None:
    x, y = numbers(1000, dtype=dtype), numbers(1000, dtype=dtype, seed=1)
    out = torch.full((1000,), 7.0, dtype=dtype).npu()
    add_kernel[(4,)](x, y, out, 900, SIZE=256)
    expected = torch.cat([(x.cpu().double() + y.cpu().double()).to(dtype)[:900], torch.full((100,), 7.0, dtype=dtype)])
    assert torch.equal(out.cpu(), expected)


@triton.jit
def integer_kernel(x, y, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + SIZE + i, a % b)
    tl.store(out + 2 * SIZE + i, (a << 3) ^ (b >> 1))
    tl.store(out + 3 * SIZE + i, tl.minimum(a, b) * tl.maximum(a, b))
    tl.store(out + 4 * SIZE + i, tl.where(a > b, tl.abs(a), -b))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_around_and_divide_towards_zero(dtype: torch.dtype) -> None:
    """Division and remainder have C's semantics, as Triton documents them for integers."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-100, 100, (128,), generator=generator).to(dtype)
    y = torch.randint(1, 50, (128,), generator=generator).to(dtype) * (1 - 2 * (torch.arange(128) % 2)).to(dtype)
    out = torch.zeros(5 * 128, dtype=dtype).npu()
    integer_kernel[(1,)](x.npu(), y.npu(), out, SIZE=128)
    a, b = exact(x), exact(y)
    quotient = np.trunc(a / b).astype(np.int64)
    expected = [
        *(quotient, a - quotient * b, (a << 3) ^ (b >> 1), np.minimum(a, b) * np.maximum(a, b)),
        np.where(a > b, np.abs(a), -b),
    ]
    wrapped = np.concatenate(expected).astype(str(dtype).removeprefix("torch."))
    np.testing.assert_array_equal(out.cpu().numpy(), wrapped)


@triton.jit
def combine_smaller(a, b):
    return tl.where(a * a < b * b, a, b)


@triton.jit
def reduce_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    block = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(out + rows, tl.sum(block, axis=1))
    tl.store(out + ROWS + rows, tl.max(block, axis=1))
    tl.store(out + 2 * ROWS + rows, tl.argmax(block, axis=1))
    tl.store(out + 3 * ROWS + rows, tl.argmin(block, axis=1))
    tl.store(out + 4 * ROWS + rows, tl.reduce(block, 1, combine_smaller))
    tl.store(out + 5 * ROWS + columns, tl.min(block, axis=0))
    tl.store(out + 5 * ROWS + COLUMNS, tl.sum(block))


@pytest.mark.parametrize("shape", [(8, 16), (5, 12), (1, 3), (4, 1)])
def test_reductions(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = numbers(rows, columns)
    if columns > 2:
        x[0, 1] = x[0, 2] = 9  # argmax returns the first of equals
    out = torch.zeros(5 * rows + columns + 1).npu()
    reduce_kernel[(1,)](x, out, ROWS=rows, COLUMNS=columns)
    a = exact(x)
    least = a[np.arange(rows), np.abs(a).argmin(1)]
    expected = [a.sum(1), a.max(1), a.argmax(1), a.argmin(1), least, a.min(0), [a.sum()]]
    np.testing.assert_allclose(exact(out), np.concatenate(expected), rtol=1e-6, atol=1e-6)


@triton.jit
def follow(a_factor, a_term, b_factor, b_term):
    """First a, then b, of the functions factor * x + term."""
    return a_factor * b_factor, a_term * b_factor + b_term


@triton.jit
def scan_kernel(x, y, out, SIZE: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.cumsum(a, reverse=REVERSE))
    tl.store(out + SIZE + i, tl.cumprod(a, reverse=REVERSE))
    factor, term = tl.associative_scan((a, b), 0, follow, reverse=REVERSE)
    tl.store(out + 2 * SIZE + i, factor)
    tl.store(out + 3 * SIZE + i, term)


@pytest.mark.parametrize("size", [1, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_keep_the_order_of_their_function(size: int, reverse: bool) -> None:
    x, y = numbers(size), numbers(size, seed=1)
    out = torch.zeros(4 * size).npu()
    scan_kernel[(1,)](x, y, out, SIZE=size, REVERSE=reverse)
    step = -1 if reverse else 1
    a, b = exact(x)[::step], exact(y)[::step]
    factors, terms = [a[0]], [b[0]]
    for factor, term in zip(a[1:], b[1:], strict=True):
        terms.append(terms[-1] * factor + term)
        factors.append(factors[-1] * factor)
    expected = [np.cumsum(a), np.cumprod(a), factors, terms]
    np.testing.assert_allclose(exact(out), np.concatenate([row[::step] for row in expected]), rtol=1e-5, atol=1e-6)


@triton.jit
def dot_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + n[:, None] * K + k[None, :])
    start = tl.load(c + m[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(left, tl.trans(right), start, out_dtype=start.dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int8])
def test_dot_adds_exact_products(dtype: torch.dtype) -> None:
    a, b = ((10 * numbers(*shape, seed=seed)).round().to(dtype) for seed, shape in enumerate([(16, 24), (5, 24)]))
    c = torch.arange(80).reshape(16, 5).to(torch.int32 if dtype == torch.int8 else torch.float32).npu()
    expected = exact(c) + exact(a) @ exact(b).T  # below 2^24, so that sums are exact
    dot_kernel[(1,)](a, b, c, M=16, N=5, K=24)
    np.testing.assert_array_equal(exact(c), expected)


@triton.jit
def twice_or_half(x, is_twice):
    if is_twice:
        return 2.0 * x
    return 0.5 * x


@triton.jit
def control_kernel(x, out, n):
    place = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    if place >= n:
        return
    value = tl.load(x + place)
    rounds = 0
    while value < 100.0:
        value = value * 3.0 + 1.0
        rounds += 1
    total = 0.0
    for i in range(n, place, -2):
        if i % 3 == 0:
            total += i
        elif i % 3 == 1:
            total -= value
    tl.store(out + place, twice_or_half(total, rounds % 2 == 0) + rounds)


def test_control_flow() -> None:
    x, out = numbers(10).abs(), torch.full((12,), -5.0).npu()
    control_kernel[(4, 3)](x, out, 10)
    expected = [-5.0] * 12
    for place, value in enumerate(exact(x)):
        rounds, total = 0, 0.0
        while value < 100:
            value, rounds = value * 3 + 1, rounds + 1
        for i in range(10, place, -2):
            total += i if i % 3 == 0 else -value if i % 3 == 1 else 0
        expected[place] = total * (2 if rounds % 2 == 0 else 0.5) + rounds
    np.testing.assert_allclose(exact(out), expected, rtol=1e-5)


@triton.jit
def block_kernel(x, out, rows, columns, SIZE: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (SIZE, SIZE), (1, 0))
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for _ in range(0, columns, SIZE):
        total += tl.load(source, boundary_check=(0, 1), padding_option="zero")
        source = tl.advance(source, (0, SIZE))
    target = tl.make_block_ptr(out, (rows, SIZE), (SIZE, 1), (0, 0), (SIZE, SIZE), (1, 0))
    tl.store(target, total, boundary_check=(0, 1))


@triton.jit
def descriptor_kernel(x, out, rows, columns, SIZE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[SIZE, SIZE])
    target = tl.make_tensor_descriptor(out, shape=[rows, SIZE], strides=[SIZE, 1], block_shape=[SIZE, SIZE])
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for begin in range(0, columns, SIZE):
        total += source.load([0, begin])
    target.store([0, 0], total)


@pytest.mark.parametrize("kernel", [block_kernel, descriptor_kernel])
def test_blocks_end_at_the_tensors_end(kernel: Callable[..., None]) -> None:
    rows, columns, size = 6, 20, 8
    x, out = numbers(rows, columns), torch.full((size, size), 3.0).npu()
    kernel[(1,)](x, out, rows, columns, SIZE=size)
    expected = np.full((size, size), 3.0)
    padded = np.pad(exact(x), ((0, 0), (0, 4)))
    expected[:rows] = padded.reshape(rows, 3, size).sum(1)
    np.testing.assert_allclose(exact(out), expected, rtol=1e-6, atol=1e-6)


@triton.jit
def shape_kernel(x, out, indices, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    b = a + 100
    even, odd = tl.split(tl.reshape(a, (SIZE // 2, 2)))
    j, k = tl.arange(0, SIZE // 2), tl.arange(0, 2 * SIZE)
    tl.store(out + j, even - odd)
    tl.store(out + SIZE + k, tl.interleave(a, b))
    tl.store(out + 3 * SIZE + k, tl.cat(a, b, can_reorder=True))
    tl.store(out + 5 * SIZE + i, tl.gather(a, tl.load(indices + i), 0))
    tl.store(out + 6 * SIZE + i, tl.sort(a))
    tl.store(out + 7 * SIZE + i, tl.flip(a, 0))
    tl.store(out + 8 * SIZE + i, tl.histogram(tl.load(indices + i), SIZE))


def test_shapes() -> None:
    size = 8
    x = numbers(size)
    indices = torch.tensor([3, 3, 0, 7, 5, 5, 5, 1], dtype=torch.int32)
    out = torch.zeros(9 * size).npu()
    shape_kernel[(1,)](x, out, indices.npu(), SIZE=size)
    a = exact(x)
    b = (x.cpu() + 100).double().numpy()
    expected = [
        *((x[::2] - x[1::2]).cpu().numpy(), np.zeros(4), np.stack([a, b], 1).ravel(), a, b, a[indices.numpy()]),
        *(np.sort(a), a[::-1], np.bincount(indices, minlength=size)),
    ]
    np.testing.assert_array_equal(exact(out), np.concatenate(expected))


@triton.jit
def atomic_kernel(counts, values, old):
    program = tl.program_id(0)
    tl.store(old + program, tl.atomic_add(counts + program % 2, 1))
    tl.atomic_max(counts + 2, program)
    tl.atomic_cas(counts + 3, 0, program + 1)
    tl.atomic_add(values + tl.arange(0, 2), 0.5, mask=tl.arange(0, 2) == 0)


def test_atomic_operations() -> None:
    counts, values = torch.zeros(4, dtype=torch.int32).npu(), torch.zeros(2).npu()
    old = torch.zeros(6, dtype=torch.int32).npu()
    atomic_kernel[(6,)](counts, values, old)
    assert counts.tolist() == [3, 3, 5, 1]
    assert values.tolist() == [3.0, 0.0]
    assert sorted(old.tolist()) == [0, 0, 1, 1, 2, 2]


@triton.jit
def random_kernel(out, seed, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.randint(seed, i))


def philox(counter: int, key: int) -> int:
    """The first word of Philox 4x32 with ten rounds, as Salmon et al. define it."""
    words, keys = [counter, 0, 0, 0], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [
            *((second >> 32) ^ words[1] ^ keys[0], second & 0xFFFFFFFF),
            *((first >> 32) ^ words[3] ^ keys[1], first & 0xFFFFFFFF),
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words[0]


def test_random_numbers_are_philox() -> None:
    out = torch.zeros(16, dtype=torch.int32).npu()
    random_kernel[(1,)](out, 12345, SIZE=16)
    assert [number & 0xFFFFFFFF for number in out.tolist()] == [philox(i, 12345) for i in range(16)]


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "ceil": np.ceil, "abs": np.abs, "rsqrt": lambda x: x**-0.5, "tanh": np.tanh, "tan": np.tan,
    "atan": np.arctan, "log1p": np.log1p, "expm1": np.expm1, "sinh": np.sinh, "cosh": np.cosh, "trunc": np.trunc,
    "reciprocal": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0), "asinh": np.arcsinh, "log10": np.log10,
    "nearbyint": np.rint, "isnan": np.isnan, "signbit": np.signbit,
}  # fmt: skip


@triton.jit
def function_kernel(x, out, FUNCTION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, FUNCTION(tl.load(x + i)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_libdevice(name: str) -> None:
    x, out = numbers(64).abs() + 0.25, torch.zeros(64).npu()
    function_kernel[(1,)](x, out, FUNCTION=getattr(libdevice, name), SIZE=64)
    np.testing.assert_allclose(exact(out), FUNCTIONS[name](exact(x)), rtol=1e-6, atol=1e-7)


@triton.jit
def slice_kernel(x, out, begin, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    block = tl.load(x + i[:, None] * SIZE + i[None, :])
    part = extension.extract_slice(block, (1, begin), (2, 3), (2, 1))
    block = extension.insert_slice(block, -part, (begin, 0), (2, 3), (1, 2))
    block += extension.get_element(block, (begin, SIZE - 1))
    tl.store(out + i[:, None] * SIZE + i[None, :], extension.flip(block, 1))
    tl.store(out + SIZE * SIZE + i, extension.sort(tl.reshape(part, (SIZE,)), descending=True))


def test_slices_of_triton_ascend() -> None:
    """A length of six is no power of two either."""
    size = 6
    x, out = numbers(size, size), torch.zeros(size * size + size).npu()
    slice_kernel[(1,)](x, out, 2, SIZE=size)
    a = x.cpu().numpy().copy()
    part = a[1:4:2, 2:5].copy()
    a[2:4, 0:5:2] = -part
    a += a[2, size - 1]
    expected = np.concatenate([a[:, ::-1].ravel(), -np.sort(-part.ravel())])
    np.testing.assert_array_equal(out.cpu().numpy(), expected)


def test_a_launch_follows_the_work_of_its_stream() -> None:
    side = torch.npu.Stream()
    x = torch.zeros(1 << 20).npu()
    torch.npu.synchronize()
    with torch.npu.stream(side):
        for _ in range(20):
            x += 1
        add_kernel[(1024,)](x, x, x, x.numel(), SIZE=1024)
        x += 1
    side.synchronize()
    assert x.unique().tolist() == [41.0]


def test_a_launch_copies_no_memory() -> None:
    big = torch.zeros(64 << 20, dtype=torch.uint8).npu()
    x = big.view(torch.float32)[1000:1100]
    x.fill_(2)
    torch.npu.synchronize()
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.memory_allocated()
    add_kernel[(1,)](x, x, x, 100, SIZE=128)
    torch.npu.synchronize()
    assert torch.npu.max_memory_allocated() == before
    assert big.view(torch.float32)[998:1102].tolist() == [0.0] * 2 + [4.0] * 100 + [0.0] * 2


def test_a_graph_captures_and_replays_kernels() -> None:
    x, y, out = numbers(300), numbers(300, seed=1), torch.zeros(300).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        doubled = x * 2
        add_kernel[(3,)](doubled, y, out, 300, SIZE=128)
        out *= 3
    assert not out.any()
    for _ in range(2):
        x += 1
        graph.replay()
        expected = (x * 2 + y) * 3
        assert torch.equal(out, expected)


def test_the_driver_answers_for_the_npu() -> None:
    driver = triton.runtime.driver.active
    properties = driver.utils.get_device_properties(0)
    assert (properties["num_aicore"], properties["num_vectorcore"]) == (24, 48)  # Ascend910B2
    target = driver.get_current_target()
    assert (target.backend, target.arch) == ("npu", torch.npu.get_device_name(0))


def test_autotuning_tries_every_configuration() -> None:
    tried = []

    def note(arguments: dict[str, object], reset_only: bool = False) -> None:
        tried.append(arguments["SIZE"])

    configurations = [triton.Config({"SIZE": size}, pre_hook=note, num_warps=4) for size in (64, 128)]
    x, out = numbers(500), torch.zeros(500).npu()
    tuned = triton.autotune(configurations, key=["n"])(add_kernel)
    tuned[lambda meta: (triton.cdiv(500, meta["SIZE"]),)](x, x, out, 500)
    assert {64, 128} <= set(tried)
    assert torch.equal(out, x + x)


def test_the_second_npu() -> None:
    with torch.npu.device(1):
        x = torch.arange(10.0).to("npu:1")
        out = torch.zeros_like(x)
        add_kernel[(1,)](x, x, out, 10, SIZE=16)
        assert out.tolist() == (2 * x).tolist()


def test_tensors_elsewhere_are_refused_by_name() -> None:
    x = torch.zeros(4).npu()
    with pytest.raises(ValueError) as caught:
        add_kernel[(1,)](x, torch.zeros(4), x, 4, SIZE=4)
    assert str(caught.value) == "add_kernel: argument y is on cpu, but the kernel runs on npu:0; move it there"
    with pytest.raises(ValueError, match="argument out is on npu:1, but the kernel runs on npu:0"):
        add_kernel[(1,)](x, x, torch.zeros(4).to("npu:1"), 4, SIZE=4)


@triton.jit
def assembly_kernel(x):
    tl.store(x, tl.inline_asm_elementwise("", "=r,r", [tl.load(x)], dtype=tl.int32, is_pure=True, pack=1))  # assembly


def test_what_is_not_computed_is_refused_with_its_line() -> None:
    with pytest.raises(NotImplementedError) as caught:
        assembly_kernel[(1,)](torch.zeros(1, dtype=torch.int32).npu())
    place = f"assembly_kernel: {HERE}:{line_of('assembly')}"
    assert str(caught.value) == f"{place}: simulated NPUs do not compute the operation tt.elementwise_inline_asm"


FAILING = """
import torch, torch_npu, triton, triton.language as tl
from tests.clients.test_triton import {kernel}
x = torch.zeros(64, dtype=torch.int32).npu()
try:
    {kernel}[{grid}]({arguments})
    torch.npu.synchronize()
except RuntimeError as error:
    print(error)
"""


@triton.jit
def far_kernel(x, distance):
    tl.store(x + tl.program_id(1).to(tl.int64) * distance, 1)  # far


@triton.jit(debug=True)
def careful_kernel(x):
    tl.device_assert(tl.load(x) > tl.program_id(0) - 2, "too many programs")  # careful


@triton.jit
def outside_kernel(x, begin):
    tl.store(x, tl.max(extension.extract_slice(tl.load(x + tl.arange(0, 8)), (begin,), (4,), (1,)), 0))  # outside


def failure(kernel: str, grid: str, arguments: str, **variables: str) -> str:
    """What a program prints whose kernel fails; the NPU of this process works on."""
    program = FAILING.format(kernel=kernel, grid=grid, arguments=arguments)
    command = [sys.executable, "-W", "ignore", "-c", program]
    root = HERE.parents[2]
    path = os.pathsep.join([str(root), os.environ["PYTHONPATH"]])
    environment = os.environ | {"PYTHONPATH": path} | variables
    result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=LONGEST)
    return result.stdout


@pytest.mark.parametrize("strict", ["0", "1"])
def test_an_access_outside_of_device_memory_names_line_and_program(strict: str) -> None:
    text = failure("far_kernel", "(1, 3)", "x, 1 << 40", ACLNN_TORCH_STRICT=strict)
    assert f"far_kernel: {HERE}:{line_of('far')}, program (0, 1, 0): writes 4 bytes at 0x" in text
    assert "which is not device memory; check the mask and the sizes that the kernel gets" in text
    assert "507015" in text


def test_a_failed_assertion_names_line_and_program() -> None:
    text = failure("careful_kernel", "(5,)", "x")
    assert (
        f"careful_kernel: {HERE}:{line_of('careful')}, program (2, 0, 0): assertion failed: too many programs" in text
    )


def test_a_slice_outside_of_its_tensor_names_line_and_program() -> None:
    text = failure("outside_kernel", "(1,)", "x, 5")
    place = f"outside_kernel: {HERE}:{line_of('outside')}, program (0, 0, 0)"
    assert f"{place}: a slice takes elements 5 to 8 of dimension 0, which has 8" in text


def test_strict_mode_opens_the_memory_that_a_kernel_uses() -> None:
    text = failure("add_kernel", "(1,)", "x, x, x, 64, SIZE=64) and print(x.sum().item()", ACLNN_TORCH_STRICT="1")
    assert text == "0\n"


def test_the_backend_is_active_on_simulated_npus_only() -> None:
    program = "from triton.backends import backends; print(backends['aclnn'].driver.is_active())"
    for home, answer in (("/nowhere", "False\n"), (os.environ["ASCEND_HOME_PATH"], "True\n")):
        environment = os.environ | {"ASCEND_HOME_PATH": home, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
        assert result.stdout == answer
