"""torch.ops.aclnn.convolution and convolution_backward, against torch's own and against float64."""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as fwad
import torch.nn.functional as TF
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch
import aclnn_torch.functional as F
from tests import cabi, operator_checks
from tests.operator_checks import FLOATS, Call, views

ops = torch.ops.aclnn
aten = torch.ops.aten

ROOT = Path(__file__).resolve().parents[1]

KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32 = range(4)
ALL = [True, True, True]
# Half the distance between neighbours: relative, and absolute for subnormals.
ROUNDING = {
    torch.float64: (2.0**-53, 0.0),
    torch.float32: (2.0**-24, 2.0**-150),
    torch.float16: (2.0**-11, 2.0**-25),
    torch.bfloat16: (2.0**-8, 2.0**-134),
}


@dataclass(frozen=True)
class Case:
    """One convolution: shapes and parameters."""

    name: str
    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    transposed: bool = False
    output_padding: tuple[int, ...] = (0,)
    groups: int = 1
    bias: bool = True

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return self.weight[1] * self.groups if self.transposed else self.weight[0]

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The arguments of both operators after the tensors and bias_sizes."""
        arrays = [list(values) for values in (self.stride, self.padding, self.dilation)]
        return (*arrays, self.transposed, list(self.output_padding), self.groups)

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of the output."""
        arguments = [torch.empty(shape, device="meta") for shape in (self.input, self.weight)]
        return tuple(aten.convolution(*arguments, None, *self.expanded).shape)

    @property
    def expanded(self) -> tuple[Any, ...]:
        """The parameters with one value per spatial dimension, as ATen requires."""
        spatial = len(self.input) - 2
        return tuple(p * spatial if isinstance(p, list) and len(p) == 1 else p for p in self.parameters)

    def tensors(
        self, dtype: torch.dtype = torch.float32, seed: int = 0
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Input, weight, bias and gradOutput."""
        generator = torch.Generator().manual_seed(seed)
        shapes = (self.input, self.weight, (self.channels,), self.output)
        x, w, b, g = (torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes)
        return x, w, b if self.bias else None, g

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("1-D", (2, 2, 5), (3, 2, 2)),
    Case("1-D strided", (2, 2, 6), (2, 2, 2), stride=(2,), padding=(1,), dilation=(2,)),
    Case("1-D transposed", (2, 2, 4), (2, 3, 2), stride=(2,), padding=(1,), output_padding=(1,), transposed=True),
    Case("2-D", (2, 2, 4, 3), (2, 2, 2, 3), padding=(1,)),
    Case("2-D grouped", (2, 4, 3, 3), (2, 2, 2, 2), stride=(2, 1), padding=(1, 0), groups=2, bias=False),
    Case("2-D depthwise", (2, 3, 4, 4), (3, 1, 3, 3), padding=(1, 1), groups=3),
    Case(
        "2-D transposed grouped",
        (2, 4, 3, 2),
        (4, 1, 2, 2),
        stride=(2, 2),
        dilation=(2, 1),
        output_padding=(1, 0),
        groups=2,
        transposed=True,
    ),
    Case("3-D", (2, 1, 3, 3, 2), (2, 1, 2, 2, 2), padding=(1, 0, 0)),
    Case(
        "3-D transposed", (2, 2, 2, 2, 2), (2, 1, 2, 1, 2), stride=(2, 1, 1), output_padding=(1, 0, 0), transposed=True
    ),
]
LARGER = [
    Case("1-D", (3, 16, 40), (8, 16, 5), padding=(2,)),
    Case("2-D", (2, 16, 14, 15), (24, 16, 3, 3), stride=(2, 1), padding=(1,)),
    Case("2-D grouped", (2, 16, 9, 9), (32, 4, 3, 3), groups=4, dilation=(2, 2)),
    Case("2-D depthwise", (2, 12, 9, 9), (24, 1, 3, 3), padding=(1,), groups=12),
    Case("2-D pointwise", (2, 16, 9, 9), (8, 16, 1, 1), bias=False),
    Case("2-D transposed", (2, 8, 7, 6), (8, 4, 3, 3), stride=(2,), output_padding=(1,), groups=2, transposed=True),
    Case("3-D", (2, 4, 6, 7, 8), (6, 4, 3, 3, 2), padding=(1,)),
    Case("3-D transposed", (1, 6, 4, 4, 3), (6, 4, 2, 3, 2), stride=(2, 1, 2), padding=(1, 0, 1), transposed=True),
]
NAMED_CASES = pytest.mark.parametrize("case", LARGER, ids=str)
# Problems of every algorithm, some at the limits of its range; ALGORITHMS has one of each.
LARGEST = [
    Case("1-D large", (2, 16, 400), (24, 16, 5), padding=(2,)),
    Case("1-D depthwise large", (2, 40, 700), (40, 1, 4), padding=(3,), groups=40),
    Case("1-D pointwise large", (2, 24, 300), (32, 24, 1)),
    Case("2-D large", (2, 16, 20, 20), (32, 16, 3, 3), padding=(1,)),
    Case("2-D large, odd channels", (2, 17, 20, 20), (24, 17, 3, 3), padding=(1,)),
    Case("2-D large, odd channels of an odd batch", (3, 17, 20, 21), (25, 17, 3, 3), padding=(1,)),
    Case("2-D large weight", (3, 512, 4, 5), (264, 512, 3, 3), padding=(1,)),
    Case("2-D large weight, strided", (3, 512, 8, 9), (264, 512, 3, 3), stride=(2,), padding=(1,)),
    Case("2-D large, odd groups", (3, 57, 19, 20), (51, 19, 3, 3), padding=(1,), groups=3),
    Case("2-D large, odd channels, strided and dilated", (2, 40, 33, 31), (18, 40, 3, 3), (2, 3), (2, 1), (1, 4)),
    Case("2-D large, few channels", (2, 3, 41, 40), (24, 3, 7, 7), stride=(2,), padding=(3,)),
    Case("2-D transposed to few channels", (2, 40, 21, 20), (40, 3, 4, 4), stride=(2,), padding=(1,), transposed=True),
    Case("2-D shallow, to many positions", (1, 16, 182, 180), (32, 16, 3, 3), padding=(1,)),
    Case("1-D large strided", (2, 16, 401), (32, 16, 7), stride=(3,), padding=(2,)),
    Case("1-D transposed large", (2, 32, 201), (32, 16, 7), stride=(3,), padding=(2,), transposed=True),
    Case("2-D large, one image", (1, 48, 24, 24), (16, 48, 3, 3), padding=(1,)),
    Case("2-D large strided", (2, 16, 33, 31), (32, 16, 3, 3), stride=(2,), padding=(1,)),
    Case("2-D largest", (1, 16, 44, 42), (32, 16, 3, 3), padding=(1,)),
    Case("2-D largest strided", (2, 32, 44, 42), (48, 32, 3, 3), stride=(2,), padding=(1,)),
    Case("2-D small images", (4, 64, 6, 6), (48, 64, 3, 3), padding=(1,)),
    Case("2-D images of the weight's sizes", (64, 64, 3, 3), (64, 64, 3, 3), padding=(1,)),
    Case("2-D depthwise large", (2, 24, 41, 40), (24, 1, 5, 5), stride=(2,), padding=(2,), groups=24),
    Case("2-D depthwise to many", (2, 16, 24, 24), (48, 1, 3, 3), padding=(1,), groups=16),
    Case("2-D pointwise large", (2, 32, 20, 20), (48, 32, 1, 1)),
    Case("2-D pointwise small images", (4, 96, 6, 6), (64, 96, 1, 1)),
    Case("2-D pointwise strided", (2, 32, 31, 40), (48, 32, 1, 1), stride=(2, 3)),
    Case("2-D pointwise strided to single positions", (1, 32, 2, 3), (48, 32, 1, 1), stride=(2, 3)),
    Case("3-D pointwise strided, grouped", (2, 16, 5, 8, 9), (24, 4, 1, 1, 1), stride=(3, 1, 2), groups=4),
    Case("2-D depthwise, few channels", (2, 5, 24, 24), (5, 1, 3, 3), padding=(1,), groups=5),
    Case("2-D pointwise transposed", (2, 32, 20, 20), (32, 48, 1, 1), transposed=True),
    Case("2-D patches", (2, 3, 32, 40), (24, 3, 8, 8), stride=(8,)),
    Case("2-D patches of many channels", (2, 16, 24, 24), (40, 16, 2, 3), stride=(2, 3)),
    Case("3-D patches", (2, 2, 6, 8, 12), (48, 2, 3, 4, 4), stride=(3, 4, 4)),
    Case("1-D patches", (3, 5, 96), (80, 5, 8), stride=(8,)),
    Case("2-D patches, transposed", (2, 40, 10, 9), (40, 3, 4, 4), stride=(4,), transposed=True),
    Case("2-D transposed large", (2, 16, 16, 16), (16, 32, 3, 3), stride=(2,), padding=(1,), transposed=True),
    Case("2-D transposed depthwise", (2, 32, 24, 24), (32, 1, 3, 3), stride=(2,), groups=32, transposed=True),
    Case("3-D large", (2, 8, 8, 10, 10), (12, 8, 3, 3, 3), padding=(1,)),
    # The output has a single column: oneDNN's own BFLOAT16 is wrong there.
    Case("2-D to one column", (8, 64, 30, 2), (64, 64, 3, 3), stride=(2,), padding=(1,)),
    Case("2-D transposed from one column", (4, 32, 20, 1), (32, 48, 3, 3), stride=(2,), padding=(1,), transposed=True),
    Case("3-D to one column", (2, 16, 8, 8, 2), (24, 16, 3, 3, 3), stride=(2,), padding=(1,)),
    Case(
        "2-D transposed, wide output padding",
        (2, 16, 24, 24),
        (16, 32, 3, 3),
        padding=(1,),
        dilation=(2,),
        output_padding=(1,),
        transposed=True,
    ),
    Case("2-D dilated", (1, 16, 7, 7), (16, 16, 3, 3), padding=(36,), dilation=(36,)),
    Case("1-D without padding", (5, 24, 30), (16, 24, 5), stride=(2,), dilation=(3,)),
    Case("2-D without padding", (5, 24, 9, 8), (16, 24, 3, 4)),
    Case("2-D without padding, dilated", (5, 24, 9, 10), (16, 24, 3, 2), dilation=(2, 3)),
    # Input elements that no product reads, between and after those that are read.
    Case("2-D without padding, with gaps", (5, 24, 16, 14), (16, 24, 2, 3), stride=(3, 4)),
    Case("2-D without padding to single positions", (7, 40, 4, 3), (48, 40, 4, 3)),
    Case("3-D without padding", (3, 12, 5, 6, 7), (16, 12, 3, 2, 3), stride=(1, 2, 1), dilation=(1, 1, 2)),
]


def convolution(case: Case, x: Tensor, w: Tensor, b: Tensor | None, **kwargs: Any) -> Tensor:
    return ops.convolution(x, w, b, *case.parameters, **kwargs)


def backward(
    case: Case, g: Tensor, x: Tensor, w: Tensor, mask: Sequence[bool] = ALL, **kwargs: Any
) -> tuple[Tensor | None, ...]:
    return ops.convolution_backward(g, x, w, [case.channels], *case.parameters, list(mask), **kwargs)


def torchs(case: Case, x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    return aten.convolution(x, w, b, *case.expanded)


def torchs_backward(
    case: Case, g: Tensor, x: Tensor, w: Tensor, mask: Sequence[bool] = ALL
) -> tuple[Tensor | None, ...]:
    return aten.convolution_backward(g, x, w, [case.channels], *case.expanded, list(mask))


def forward_call(case: Case) -> Call:
    shapes = [case.input, case.weight, (case.channels,)][: 3 if case.bias else 2]

    def function(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        return convolution(case, x, w, b)

    return Call(function, shapes, [None] * len(shapes), case.name, [True, False, False][: len(shapes)])


def backward_call(case: Case, mask: Sequence[bool]) -> Call:
    def function(g: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        return tuple(gradient for gradient in backward(case, g, x, w, mask) if gradient is not None)

    wanted = "".join(name for name, wants in zip("iwb", mask, strict=True) if wants)
    name = f"{case.name} backward {wanted}"
    return Call(function, [case.output, case.input, case.weight], [None] * 3, name, [True, True, False])


BACKWARD_CALLS = [
    backward_call(CASES[0], ALL),
    backward_call(CASES[3], (True, False, False)),
    backward_call(CASES[4], (False, True, False)),
    backward_call(CASES[6], (True, True, False)),
    backward_call(CASES[5], (True, False, True)),
    backward_call(CASES[7], (False, True, True)),
]
CALLS = [*map(forward_call, CASES), *BACKWARD_CALLS]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)
# For compilers the parameters are constants, so a few cases are enough.
COMPILED_CALLS = pytest.mark.parametrize(
    "call", [CALLS[2], CALLS[4], CALLS[7], BACKWARD_CALLS[0], BACKWARD_CALLS[3]], ids=str
)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For many small calls, in which threads would mostly wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_schemas() -> None:
    """ATen's schemas, plus cube_math_type."""
    for ours, theirs in ((ops.convolution, aten.convolution), (ops.convolution_backward, aten.convolution_backward)):
        expected = str(theirs.default._schema).replace("aten::", "aclnn::")
        expected = expected.replace(") -> ", ", *, int? cube_math_type=None) -> ")
        assert str(ours.default._schema) == expected
        assert torch.Tag.pt2_compliant_tag in ours.default.tags


@NAMED_CALLS
def test_gradients(call: Call, host_product: None, one_thread: None) -> None:
    operator_checks.check_gradients(call)


# Without the calls whose results do not depend on all tensors.
@pytest.mark.parametrize("call", [*map(forward_call, CASES), BACKWARD_CALLS[0], BACKWARD_CALLS[3]], ids=str)
def test_transforms(call: Call, host_product: None, one_thread: None) -> None:
    operator_checks.check_transforms(call)


@COMPILED_CALLS
def test_compilers(call: Call) -> None:
    operator_checks.check_compilers(call, torch.float32)


@COMPILED_CALLS
def test_compiled_autograd(call: Call) -> None:
    operator_checks.check_compiled_autograd(call, torch.float32)


@pytest.mark.parametrize("requires_grad", [pytest.param(False, marks=pytest.mark.test_all), True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcheck(case: Case, requires_grad: bool) -> None:
    x, w, b, g = (t if t is None else t.requires_grad_(requires_grad) for t in case.tensors())
    arguments = (x, w, b, *case.parameters)
    operator_checks.opcheck(ops.convolution.default, arguments)
    for mask in ([True, True, True], [False, True, False]):
        arguments = (g, x, w, [case.channels], *case.parameters, mask)
        operator_checks.opcheck(ops.convolution_backward.default, arguments)


# ---- Values


def check_rounded(got: Tensor, exact: Tensor, magnitude: Tensor, products: int, dtype: torch.dtype) -> None:
    """`got` is a sum of this many products in FP32, rounded to a dtype.

    Each addition and product of the sum, and the bias, costs at most one rounding of the partial sum, which in
    magnitude is at most the sum of magnitudes.
    """
    unit, least = ROUNDING[dtype]
    sum_error = (products + 2) * 2**-24 * magnitude
    bound = sum_error + unit * (exact.abs() + sum_error) + least
    error = (got.double() - exact).abs()
    worst = (error / bound.clamp(min=1e-300)).max().item() if error.numel() else 0.0
    assert worst <= 1, f"an error is {worst:.3g} of what rounding explains"


def check_values(case: Case, g: Tensor, x: Tensor, w: Tensor, b: Tensor | None) -> None:
    """Output and gradients are within the rounding bounds."""
    dtype = x.dtype
    exact = [None if t is None else t.double() for t in (x, w, b, g)]
    sizes = [None if t is None else t.abs() for t in exact]
    kernel = w[0, 0].numel()

    y = convolution(case, x, w, b)
    inward = (w.shape[0] // case.groups if case.transposed else w.shape[1]) * kernel
    check_rounded(y, torchs(case, *exact[:3]), torchs(case, *sizes[:3]), inward, dtype)
    assert y.dtype == dtype

    outward = (w.shape[1] if case.transposed else w.shape[0] // case.groups) * kernel
    places = g.shape[0] * max(g[0, 0].numel(), x[0, 0].numel())
    gradients = backward(case, g, x, w)
    expected = torchs_backward(case, exact[3], exact[0], exact[1])
    magnitudes = torchs_backward(case, sizes[3], sizes[0], sizes[1])
    for got, e, m, n in zip(gradients, expected, magnitudes, (outward, places, places), strict=True):
        assert got.dtype == dtype
        check_rounded(got, e, m, n, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", [*LARGER, *LARGEST], ids=str)
def test_values(case: Case, dtype: torch.dtype) -> None:
    x, w, b, g = case.tensors(dtype)
    check_values(case, g, x, w, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", [case for case in LARGEST if len(case.input) > 3], ids=str)
def test_values_of_channels_last(case: Case, dtype: torch.dtype) -> None:
    x, w, b, g = case.tensors(dtype)
    layout = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    check_values(case, *(t.contiguous(memory_format=layout) for t in (g, x, w)), b)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", [case for case in LARGEST if "depthwise" in case.name], ids=str)
def test_depthwise_bits_do_not_depend_on_threads(case: Case, dtype: torch.dtype, last: bool, one_thread: None) -> None:
    x, w, b, g = case.tensors(dtype)
    if last and x.dim() == 4:
        g, x, w = (t.contiguous(memory_format=torch.channels_last) for t in (g, x, w))
    y, gradients = convolution(case, x, w, b), backward(case, g, x, w)
    for threads in (2, 3, 5):
        torch.set_num_threads(threads)
        assert torch.equal(convolution(case, x, w, b), y)
        for gradient, expected in zip(backward(case, g, x, w), gradients, strict=True):
            assert torch.equal(gradient, expected)


# ---- The list of algorithms


LIST = ROOT / "csrc" / "host_cann" / "ops" / "convolution" / "list.cpp"
# The entries in order: the algorithm's type and the entry's name.
ENTRIES = re.findall(r'^ +entry<(\w+)>\("([^"]+)", ', LIST.read_text(), re.MULTILINE)


@dataclass(frozen=True)
class Taken:
    """A result for which an algorithm is chosen."""

    result: str
    case: Case
    dtype: torch.dtype = torch.float32
    channels_last: bool = False
    marks: tuple[pytest.MarkDecorator, ...] = ()


def case_named(name: str) -> Case:
    (found,) = (case for case in LARGEST if case.name == name)
    return found


ALGORITHMS = {
    "direct: tiny": Taken("gradWeight", Case("CANN's example", (2, 2, 7, 7), (2, 2, 3, 3), padding=(1,))),
    "depthwise: channels-last": Taken("output", case_named("2-D depthwise large"), channels_last=True),
    "direct: depthwise": Taken("output", case_named("2-D depthwise large")),
    "pointwise: BFLOAT16 by ATen": Taken(
        "gradInput", case_named("2-D pointwise large"), torch.bfloat16, marks=(operator_checks.NEEDS_AMX_BFLOAT16,)
    ),
    "pointwise: wide": Taken("gradWeight", case_named("2-D pointwise large")),
    "pointwise": Taken("output", case_named("2-D pointwise small images")),
    "patches": Taken("gradInput", case_named("2-D patches")),
    "implicit GEMM: BFLOAT16": Taken(
        "gradWeight",
        case_named("2-D large, odd channels"),
        torch.bfloat16,
        marks=(operator_checks.BFLOAT16_IS_OURS, operator_checks.NEEDS_BFLOAT16_PRODUCTS),
    ),
    "ATen: wide BFLOAT16": Taken(
        "gradInput",
        case_named("2-D largest strided"),
        torch.bfloat16,
        marks=(operator_checks.NEEDS_AVX512_BFLOAT16,),
    ),
    "ATen: BFLOAT16": Taken(
        "output", case_named("2-D small images"), torch.bfloat16, marks=(operator_checks.NEEDS_AVX512_BFLOAT16,)
    ),
    "im2col": Taken("gradInput", case_named("2-D without padding")),
    "implicit GEMM: few channels": Taken("output", case_named("2-D large, few channels")),
    "implicit GEMM: 1-D, odd channels": Taken("gradInput", case_named("2-D large, odd channels")),
    "implicit GEMM: large weight": Taken("gradWeight", case_named("2-D large weight")),
    "ATen: slow channels-first": Taken("output", case_named("2-D transposed large")),
    "ATen: large gradient": Taken("gradInput", case_named("2-D largest strided")),
    "ATen: any": Taken("output", case_named("2-D large")),
}


def algorithms_of(call: Callable[[], Any], path: Path) -> dict[str, str]:
    """The algorithms of a call's results, from its trace."""
    with aclnn_torch.trace(path):
        call()
    (event,) = (event for event in json.loads(path.read_text()) if event.get("cat") == "stage 1")
    return event["args"].get("algorithm", {})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=ALGORITHMS[name].marks if name in ALGORITHMS else ()) for _, name in ENTRIES]
)
def test_every_entry_of_the_list_is_taken(name: str, tmp_path: Path) -> None:
    """Each entry has a case above, whose values are checked, too."""
    taken = ALGORITHMS[name]
    x, w, b, g = taken.case.tensors(taken.dtype)
    if taken.channels_last:
        g, x, w = (t.contiguous(memory_format=torch.channels_last) for t in (g, x, w))
    forward = algorithms_of(lambda: convolution(taken.case, x, w, b), tmp_path / "forward")
    gradients = algorithms_of(lambda: backward(taken.case, g, x, w), tmp_path / "backward")
    assert (set(forward), set(gradients)) == ({"output"}, {"gradInput", "gradWeight"})
    assert {**forward, **gradients}[taken.result] == name
    check_values(taken.case, g, x, w, b)


def test_patches_make_both_gradients_channels_last(tmp_path: Path) -> None:
    x, w, _, g = case_named("2-D patches").tensors(torch.float32)
    g, x, w = (t.contiguous(memory_format=torch.channels_last) for t in (g, x, w))
    chosen = algorithms_of(lambda: backward(case_named("2-D patches"), g, x, w), tmp_path / "trace")
    assert chosen == {"gradInput": "patches", "gradWeight": "patches"}


def test_no_algorithm_without_products(tmp_path: Path) -> None:
    """gradBias alone, no channels, and a refused call."""
    case = LARGER[1]
    x, w, b, g = case.tensors()
    assert algorithms_of(lambda: backward(case, g, x, w, (False, False, True)), tmp_path / "bias") == {}
    with aclnn_torch.product("host"):
        assert algorithms_of(lambda: convolution(case, x[:, :0], w[:, :0], b), tmp_path / "empty") == {}

    def refused() -> None:
        with pytest.raises(aclnn_torch.AclnnError, match="DOUBLE"):
            convolution(case, x.double(), w.double(), None)

    assert algorithms_of(refused, tmp_path / "refused") == {}


def test_the_list_is_documented() -> None:
    """docs/convolution.md has the entries of the list in order, each with its algorithm's file."""
    rows = re.findall(
        r"^\| (.+?) \| .+ \| `(\w+)` \| .+ \|$", (ROOT / "docs" / "convolution.md").read_text(), re.MULTILINE
    )
    files = {
        algorithm: re.sub(r"(?<!^)(?=[A-Z])", "_", algorithm.replace("GEMM", "Gemm")).lower()
        for algorithm, _ in ENTRIES
    }
    assert rows == [(name, files[algorithm]) for algorithm, name in ENTRIES]
    assert ENTRIES and ENTRIES[-1] == ("AtenConvolution", "ATen: any")
    for file in files.values():
        assert (LIST.parent / f"{file}.h").exists()


@pytest.mark.parametrize("case", LARGER, ids=str)
def test_float64_on_host(case: Case, host_product: None) -> None:
    x, w, b, g = case.tensors(torch.float64)
    for cube_math_type in range(4):  # only affects narrower types
        ours = convolution(case, x, w, b, cube_math_type=cube_math_type)
        torch.testing.assert_close(ours, torchs(case, x, w, b), rtol=1e-13, atol=1e-13)
        gradients = backward(case, g, x, w, cube_math_type=cube_math_type)
        torch.testing.assert_close(gradients, torchs_backward(case, g, x, w), rtol=1e-13, atol=1e-12)


def test_every_mask() -> None:
    case = LARGER[1]
    x, w, _, g = case.tensors()
    everything = backward(case, g, x, w)
    for mask in itertools.product((False, True), repeat=3):
        for gradient, expected, wanted in zip(backward(case, g, x, w, mask), everything, mask, strict=True):
            assert (gradient is not None) == wanted
            if wanted:
                torch.testing.assert_close(gradient, expected)


# ---- The products' dtype: cubeMathType


def round_to_bits(value: Tensor, mantissa: int) -> Tensor:
    """float32 with fewer bits of mantissa, to nearest even."""
    fraction, exponent = torch.frexp(value.double())
    rounded = torch.ldexp(torch.round(torch.ldexp(fraction, torch.tensor(mantissa + 1))), exponent - mantissa - 1)
    return torch.where(value.isfinite(), rounded.float(), value)


def as_hf32(value: Tensor) -> Tensor:
    """HF32 of the current product: 10 bits of mantissa on Ascend950, 11 before."""
    return round_to_bits(value, 10 if aclnn_torch.get_product() == "Ascend950" else 11)


def as_half(value: Tensor) -> Tensor:
    return value.half().float()


def one(value: float) -> Tensor:
    return torch.full((1, 1, 1), value)


@pytest.mark.parametrize(
    ("dtype", "cube_math_type"),
    [*((dtype, KEEP_DTYPE) for dtype in (*FLOATS, torch.float64)), (torch.float32, USE_HF32)],
    ids=str,
)
@pytest.mark.parametrize("case", [replace(case, bias=True) for case in (*LARGER, *LARGEST)], ids=str)
def test_a_bias_costs_one_rounding(case: Case, dtype: torch.dtype, cube_math_type: int, host_product: None) -> None:
    """The result is rounded once, however large the bias is: partial sums are not rounded at its magnitude.

    16 bits are an exception: their FLOAT sums may be, because they have more bits than the result.
    """
    scale = 2.0**-12  # so that the biases fit into FLOAT16
    x, w, bias, _ = case.tensors(torch.float64)
    x, w = (x * scale).to(dtype), w.to(dtype)
    if cube_math_type == USE_HF32:
        x, w = as_hf32(x), as_hf32(w)
    sums = torchs(case, x.double(), w.double(), None)
    magnitude = torchs(case, x.double().abs(), w.double().abs(), None)
    products = (w.shape[0] // case.groups if case.transposed else w.shape[1]) * w[0, 0].numel()
    # The reference has DOUBLE's rounding errors.
    unit, times = (2.0**-53, 2) if dtype == torch.float64 else (2.0**-24, 1)
    relative, least = ROUNDING[dtype]
    formats = [torch.contiguous_format]
    if x.dim() > 3:
        formats.append(torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    for ratio, layout in itertools.product((1e3, 1e6), formats):
        b = (bias * scale * ratio).to(dtype)
        added = b.double().reshape(-1, *[1] * (x.dim() - 2))
        exact = sums + added
        summed = magnitude + added.abs() if dtype.itemsize == 2 else magnitude
        sum_error = times * (products + 2) * unit * summed
        bound = sum_error + times * relative * (exact.abs() + sum_error) + least
        factors = [t.contiguous(memory_format=layout) for t in (x, w)]
        y = convolution(case, *factors, b, cube_math_type=cube_math_type)
        worst = ((y.double() - exact).abs() / bound).max().item()
        assert worst <= 1, f"{ratio:g}, {layout}: {worst:.3g} of what rounding explains"


# FP32 value, HF32 on Atlas A2 and A3, HF32 on Ascend950: rounded by hand, ties to even.
HF32_VALUES = [
    (0.33333334, 0.3333740234375, 0.333251953125),
    (1.1, 1.10009765625, 1.099609375),
    (3.1415927, 3.1416015625, 3.140625),
    (0.001, 0.0009999275207519531, 0.0010004043579101562),
    (1 + 2**-12, 1.0, 1.0),
    (1 + 3 * 2**-12, 1 + 2**-10, 1 + 2**-10),
    (1 + 2**-11, 1.00048828125, 1.0),
    (1 + 3 * 2**-11, 1 + 3 * 2**-11, 1 + 2**-9),
    (65504.0, 65504.0, 65504.0),
    (3.4028234663852886e38, float("inf"), float("inf")),
    (float("inf"), float("inf"), float("inf")),
    (float("nan"), float("nan"), float("nan")),
]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("cube_math_type", [ALLOW_FP32_DOWN_PRECISION, USE_HF32])
@pytest.mark.parametrize("product", ["Ascend910B", "Ascend910_93", "Ascend950", "host"])
def test_hf32_values(product: str, cube_math_type: int, sign: int) -> None:
    case = Case("one", (1, 1, 1), (1, 1, 1))
    with aclnn_torch.product(product):
        for value, with_11_bits, with_10_bits in HF32_VALUES:
            x = one(sign * value)
            expected = one(sign * (with_10_bits if product == "Ascend950" else with_11_bits))
            for factors in ((x, one(1.0)), (one(1.0), x)):
                y = convolution(case, *factors, None, cube_math_type=cube_math_type)
                torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)
            gradients = backward(case, x, one(1.0), one(1.0), cube_math_type=cube_math_type)
            torch.testing.assert_close(gradients[0], expected, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(gradients[1], expected, rtol=0, atol=0, equal_nan=True)
            # The bias is added, not multiplied, and its gradient is a sum of gradOutput.
            torch.testing.assert_close(gradients[2], x.flatten(), rtol=0, atol=0, equal_nan=True)
            y = convolution(case, one(0.0), one(0.0), x.flatten(), cube_math_type=cube_math_type)
            torch.testing.assert_close(y, x, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("product", ["Ascend910B", "Ascend950"])
@NAMED_CASES
def test_hf32_is_fp32_of_rounded_factors(case: Case, product: str) -> None:
    with aclnn_torch.product(product):
        x, w, b, g = case.tensors()
        ours = convolution(case, x, w, b, cube_math_type=USE_HF32)
        assert torch.equal(ours, convolution(case, as_hf32(x), as_hf32(w), b))
        gradients = backward(case, g, x, w, cube_math_type=USE_HF32)
        expected = backward(case, as_hf32(g), as_hf32(x), as_hf32(w), (True, True, False))
        assert torch.equal(gradients[0], expected[0])
        assert torch.equal(gradients[1], expected[1])
        assert torch.equal(gradients[2], backward(case, g, x, w)[2])


@pytest.mark.parametrize(
    ("product", "cube_math_type"), [("Ascend910B", 2), ("Ascend950", 2), ("Ascend310P", 1), ("Ascend910", 2)]
)
@NAMED_CASES
def test_fp16_is_fp32_of_rounded_factors(case: Case, product: str, cube_math_type: int) -> None:
    if len(case.input) == 5 and product in ("Ascend310P", "Ascend910"):
        case = replace(LARGER[0], name="no 3-D")
    with aclnn_torch.product(product):
        x, w, b, g = case.tensors()
        ours = convolution(case, x, w, b, cube_math_type=cube_math_type)
        # From Ascend910B on, a transposed convolution adds its bias in FLOAT.
        keeps_bias = b is None or (case.transposed and product in ("Ascend910B", "Ascend950"))
        with aclnn_torch.product("Ascend910B"):
            expected = convolution(case, as_half(x), as_half(w), b if keeps_bias else as_half(b))
        assert torch.equal(ours, as_half(expected))
        assert ours.dtype == torch.float32
        gradients = backward(case, g, x, w, cube_math_type=cube_math_type)
        with aclnn_torch.product("Ascend910B"):
            expected = backward(case, as_half(g), as_half(x), as_half(w), (True, True, False))
        assert torch.equal(gradients[0], as_half(expected[0]))
        assert torch.equal(gradients[1], expected[1])  # produced in FP32
        # The sum of the unrounded gradOutput.
        torch.testing.assert_close(
            gradients[2].double(), g.double().transpose(0, 1).flatten(1).sum(1), rtol=1e-5, atol=1e-4
        )


def test_bfloat16_becomes_fp16_when_asked() -> None:
    case = LARGER[1]
    x, w, b, g = case.tensors(torch.bfloat16)
    x[0, 0, 0, 0] = 70000.0  # beyond FP16
    y = convolution(case, x, w, b, cube_math_type=USE_FP16)
    expected = as_half(convolution(case, as_half(x.float()), as_half(w.float()), as_half(b.float())))
    torch.testing.assert_close(y, expected.bfloat16(), rtol=0, atol=0, equal_nan=True)
    assert y.isinf().any()
    for cube_math_type in (ALLOW_FP32_DOWN_PRECISION, USE_HF32):  # they only affect FP32
        unchanged = convolution(case, x, w, b, cube_math_type=cube_math_type)
        assert torch.equal(unchanged, convolution(case, x, w, b))
    gradient = backward(case, g, x, w, cube_math_type=USE_FP16)[2]
    assert torch.equal(gradient, backward(case, g, x, w)[2])


# Cases in which implicit GEMM computes a result; torch's own dilated convolution multiplies zeros.
IMPLICIT_GEMM = [
    *(case for case in LARGEST if case.name == "2-D large, odd channels"),
    Case("1-D", (2, 16, 90), (32, 16, 5), padding=(2,)),
    Case("2-D large weight", (2, 512, 4, 4), (512, 512, 3, 3), padding=(1,)),
    Case("2-D large weight, strided", (2, 512, 7, 7), (512, 512, 3, 3), stride=(2,), padding=(1,)),
]
FEW_CHANNELS = [case for case in LARGEST if "few channels" in case.name and case.groups == 1]


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("factor", ["weight", "gradient"])
@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        *((case, torch.float32) for case in (*IMPLICIT_GEMM, *FEW_CHANNELS)),
        # oneDNN, which computes some of the gradients, multiplies zeros.
        *(
            pytest.param(case, torch.bfloat16, marks=operator_checks.BFLOAT16_IS_OURS)
            for case in IMPLICIT_GEMM
            if case.name != "2-D large weight"
        ),
    ],
    ids=str,
)
@pytest.mark.skipif(
    platform.machine() == "aarch64",
    reason="ATen, which computes what is not finite, multiplies the zeros there, for torch as for us",
)
def test_what_is_not_finite_meets_no_zero_around_an_image(
    case: Case, factor: str, bad: float, dtype: torch.dtype, tmp_path: Path
) -> None:
    x, w, b, g = case.tensors(dtype)
    taken = algorithms_of(lambda: convolution(case, x, w, b), tmp_path / "forward")
    taken |= algorithms_of(lambda: backward(case, g, x, w), tmp_path / "backward")
    assert any(name.startswith("implicit GEMM") for name in taken.values())
    (w if factor == "weight" else g).flatten()[-1] = bad
    # The sums that have a product with it: computed with numbers that are 0 except for that one.
    marked = [(~t.isfinite()).double() for t in (w, g)]
    ones = [torch.ones_like(t, dtype=torch.double) for t in (x, w, g)]
    reached_output = torchs(case, ones[0], marked[0], None) > 0
    of_weight = torchs_backward(case, ones[2], ones[0], marked[0])[0] > 0
    of_gradient = [t > 0 for t in torchs_backward(case, marked[1], ones[0], ones[1])[:2]]
    y, gradients = convolution(case, x, w, b), backward(case, g, x, w)
    assert torch.equal(~y.isfinite(), reached_output)
    assert torch.equal(~gradients[0].isfinite(), of_weight | of_gradient[0])
    assert torch.equal(~gradients[1].isfinite(), of_gradient[1])
    assert y.isfinite().any() and gradients[1].isfinite().any()


def test_fp16_overflows_to_infinity() -> None:
    case = Case("one", (1, 1, 1), (1, 1, 1))
    for value, expected in ((65519.0, 65504.0), (65520.0, float("inf")), (-65520.0, float("-inf"))):
        y = convolution(case, one(value), one(1.0), None, cube_math_type=USE_FP16)
        assert y.item() == expected
    for value, expected in ((2**-24, 2**-24), (2**-25, 0.0), (1.5 * 2**-24, 2**-23), (1 + 2**-11, 1.0)):
        assert convolution(case, one(value), one(1.0), None, cube_math_type=USE_FP16).item() == expected


@pytest.mark.parametrize("other", [torch.float16, torch.bfloat16])
def test_mixed_dtypes_are_promoted(other: torch.dtype) -> None:
    case = LARGER[1]
    x, w, b, g = case.tensors()
    narrow = w.to(other)
    y = convolution(case, x, narrow, b)
    assert y.dtype == torch.float32
    assert torch.equal(y, convolution(case, x, narrow.float(), b))
    gradients = backward(case, g, x, narrow)
    expected = backward(case, g, x, narrow.float())
    assert [gradient.dtype for gradient in gradients] == [torch.float32, other, torch.float32]
    for gradient, wide in zip(gradients, expected, strict=True):
        assert torch.equal(gradient, wide.to(gradient.dtype))
    # FP16 and BF16 promote to FP32.
    y = convolution(case, x.half(), w.bfloat16(), None)
    assert y.dtype == torch.float32
    assert torch.equal(y, convolution(case, x.half().float(), w.bfloat16().float(), None))


@pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "conv"), reason="torch has this setting since 2.9")
@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_torchs_fp32_setting_does_not_shorten_products(precision: str) -> None:
    case = replace(LARGER[1], weight=(32, 16, 3, 3))  # computed by oneDNN, which respects the setting
    x, w, b, g = case.tensors()
    convolutions = torch.backends.mkldnn.conv
    before = convolutions.fp32_precision
    convolutions.fp32_precision = precision
    try:
        y, gradients = convolution(case, x, w, b), backward(case, g, x, w)
    finally:
        convolutions.fp32_precision = before
    assert torch.equal(y, torchs(case, x.double(), w.double(), b.double()).float())
    expected = torchs_backward(case, g.double(), x.double(), w.double())
    assert torch.equal(gradients[0], expected[0].float())
    assert torch.equal(gradients[1], expected[1].float())


# ---- Memory


def layouts(shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Tensor]:
    """One tensor's values in different memory layouts."""
    torch.manual_seed(1)
    result = views(shape, dtype) if len(shape) == 4 else {"contiguous": torch.randn(shape).to(dtype)}
    if len(shape) == 5:
        result["channels last"] = result["contiguous"].contiguous(memory_format=torch.channels_last_3d)
    result["expanded"] = torch.randn(1, *shape[1:]).to(dtype).expand(shape)
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("case", [LARGER[1], LARGER[5], LARGER[6]], ids=str)
def test_layouts(case: Case, dtype: torch.dtype) -> None:
    """Values depend on the layout only by rounding, and outputs have the same layout as torch's."""
    _, _, b, g = case.tensors(dtype)
    b = b if b is None else b.repeat_interleave(2)[::2]
    products = case.weight[0] // case.groups if case.transposed else case.weight[1]
    products *= math.prod(case.weight[2:])
    for x, w in itertools.product(layouts(case.input, dtype).values(), layouts(case.weight, dtype).values()):
        y = convolution(case, x, w, b)
        exact = [None if t is None else t.double() for t in (x, w, b)]
        magnitude = torchs(case, *(None if t is None else t.abs() for t in exact))
        check_rounded(y, torchs(case, *exact), magnitude, products, dtype)
        wide = torchs(case, *(None if t is None else t.float() for t in (x, w, b)))
        assert y.stride() == wide.stride()
        for gradient in (g, g.transpose(-1, -2).contiguous().transpose(-1, -2), g[:1].expand(g.shape)):
            gradients = backward(case, gradient, x, w)
            expected = backward(case, gradient.contiguous(), x.contiguous(), w.contiguous())
            torch.testing.assert_close(gradients, expected, rtol=1e-3 if dtype == torch.float16 else 1e-5, atol=1e-4)
            wide = torchs_backward(case, gradient.float(), x.float(), w.float())
            assert gradients[0].stride() == wide[0].stride()


def test_empty_batch_and_channels() -> None:
    case = Case("no batch", (0, 2, 5, 5), (3, 2, 3, 3))
    x, w, b, g = case.tensors()
    assert convolution(case, x, w, b).shape == (0, 3, 3, 3)
    grad_input, grad_weight, grad_bias = backward(case, g, x, w)
    assert grad_input.shape == x.shape
    assert torch.equal(grad_weight, torch.zeros_like(w))
    assert torch.equal(grad_bias, torch.zeros(3))

    case = Case("no channels", (2, 0, 5, 5), (3, 0, 3, 3))
    b = torch.randn(3)
    x, w = torch.empty(case.input), torch.empty(case.weight)
    with pytest.raises(aclnn_torch.AclnnError, match="host"):
        convolution(case, x, w, b)
    with aclnn_torch.product("host"):
        assert torch.equal(convolution(case, x, w, b), b.view(1, 3, 1, 1).expand(2, 3, 3, 3))
        assert not convolution(case, x, w, None).any()


def test_inner_calls_are_nobodys() -> None:
    """The caller's modes and transforms do not see the host CANN's internal calls."""
    seen = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    case = LARGER[1]
    x, w, b, g = case.tensors(torch.float16)
    with Recorder():
        convolution(case, x, w, b)
        backward(case, g, x, w)
    assert seen == [ops.convolution.default, ops.convolution_backward.default]
    with torch.inference_mode():
        assert torch.equal(convolution(case, x, w, b), convolution(case, x.clone(), w, b))


# ---- Autograd and autocast


def test_gradients_are_made_only_where_needed() -> None:
    case = LARGER[1]
    x, w, b, _ = case.tensors()
    for needed in itertools.product((False, True), repeat=3):
        if not any(needed):
            continue
        leaves = [t.clone().requires_grad_(n) for t, n in zip((x, w, b), needed, strict=True)]
        calls = []

        class Recorder(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func is ops.convolution_backward.default:
                    calls.append(tuple(args[-1]))  # noqa: B023
                return func(*args, **(kwargs or {}))

        y = convolution(case, *leaves)
        with Recorder():
            y.square().sum().backward()
        assert calls == [needed]
        assert [leaf.grad is not None for leaf in leaves] == list(needed)


def test_cube_math_type_reaches_every_derivative() -> None:
    case = LARGER[0]
    x, w, b, _ = (t.requires_grad_() for t in case.tensors())
    types = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (ops.convolution.default, ops.convolution_backward.default):
                types.append((kwargs or {}).get("cube_math_type", 0))
            return func(*args, **(kwargs or {}))

    with Recorder():
        y = convolution(case, x, w, b, cube_math_type=USE_HF32)
        grads = torch.autograd.grad(y.square().sum(), (x, w, b), create_graph=True)
        sum(gradient.square().sum() for gradient in grads).backward()
    assert len(types) >= 4
    assert set(types) == {USE_HF32}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_as_torchs(dtype: torch.dtype) -> None:
    case = LARGER[1]
    x, w, b, _ = case.tensors()
    w.requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        y = convolution(case, x, w, b)
        assert y.dtype == TF.conv2d(x, w, b).dtype == dtype
    y.float().square().sum().backward()
    assert w.grad.dtype == torch.float32
    with aclnn_torch.product("host"), torch.autocast("cpu", dtype=dtype):
        assert convolution(case, x.double(), w.double(), b.double()).dtype == torch.float64


# ---- Bad input


def bad(case: Case, **kwargs: Any) -> Tensor:
    return convolution(case, torch.ones(case.input), torch.ones(case.weight), None, **kwargs)


def test_tangents_have_the_dtype_of_what_they_belong_to() -> None:
    """An FP32 bias makes the output of FP16 tensors FP32, whichever of them has a tangent."""
    case = LARGER[1]
    x, w, b, _ = case.tensors()
    x, w = x.half(), w.half()
    with fwad.dual_level():
        dual = fwad.make_dual(x, torch.ones_like(x))
        primal, tangent = fwad.unpack_dual(convolution(case, dual, w, b))
    assert (primal.dtype, tangent.dtype) == (torch.float32, torch.float32)


@pytest.mark.parametrize(
    "changes", [{"padding": (2**63 - 1,)}, {"dilation": (2**63 - 1,)}, {"stride": (2**31,)}], ids=str
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_sizes_that_would_overflow(changes: dict[str, Any], device: str) -> None:
    """Output sizes that would wrap around to plausible values in 64 bits."""
    case = replace(TWO, **changes)
    [(name, [value])] = changes.items()
    text = (
        f"aclnnConvolutionGetWorkspaceSize failed with status 161002 (ACLNN_ERR_PARAM_INVALID): {name} is [{value}], "
    )
    text += "expected values < 2^31 (product Ascend910B)"
    with pytest.raises(aclnn_torch.AclnnError, match=re.escape(text)) as caught:
        convolution(case, torch.ones(case.input, device=device), torch.ones(case.weight, device=device), None)
    assert caught.value.status == 161002


def bad_backward(case: Case, output: tuple[int, ...], **kwargs: Any) -> tuple[Tensor | None, ...]:
    return backward(case, torch.ones(output), torch.ones(case.input), torch.ones(case.weight), **kwargs)


TWO = Case("2-D", (2, 4, 5, 5), (6, 4, 3, 3))
BAD_CALLS = {
    "channels": (
        lambda: bad(replace(TWO, input=(2, 3, 5, 5))),
        ["input has shape [2, 3, 5, 5], expected 4 channels for weight of shape [6, 4, 3, 3] and 1 groups"],
    ),
    "groups that do not divide": (
        lambda: bad(replace(TWO, input=(2, 16, 5, 5), groups=4)),
        ["groups is 4", "[6, 4, 3, 3]", "divide"],
    ),
    "groups that do not divide, backward": (
        lambda: bad_backward(replace(TWO, input=(2, 16, 5, 5), groups=4), (2, 6, 3, 3)),
        ["aclnnConvolutionBackward", "groups is 4", "divide"],
    ),
    "no groups": (lambda: bad(replace(TWO, groups=0)), ["groups is 0, expected 1 to 65535"]),
    "groups beyond int": (lambda: bad(replace(TWO, groups=2**32 + 1)), ["groups is 4294967297, expected 1 to 65535"]),
    "output_padding without transposed": (
        lambda: bad(replace(TWO, output_padding=(0, 1))),
        ["outputPadding is [0, 1], expected zeros when transposed is false"],
    ),
    "output_padding without transposed, backward": (
        lambda: bad_backward(replace(TWO, output_padding=(1, 1)), (2, 6, 3, 3)),
        ["outputPadding is [1, 1], expected zeros when transposed is false"],
    ),
    "output_padding not below the stride": (
        lambda: bad(Case("", (2, 4, 5, 5), (4, 6, 3, 3), output_padding=(1,), transposed=True)),
        ["outputPadding is 1", "stride (1)", "dilation (1)"],
    ),
    "negative padding": (lambda: bad(replace(TWO, padding=(1, -1))), ["padding is [1, -1], expected values >= 0"]),
    "stride of 0": (lambda: bad(replace(TWO, stride=(0,))), ["stride is [0], expected values >= 1"]),
    "dilation of 0": (lambda: bad(replace(TWO, dilation=(1, 0))), ["dilation is [1, 0], expected values >= 1"]),
    "too many strides": (
        lambda: bad(replace(TWO, stride=(1, 1, 1))),
        ["stride has 3 values, expected 1 or 2 (one per spatial dimension)"],
    ),
    "kernel larger than the input": (
        lambda: bad(replace(TWO, weight=(6, 4, 7, 3))),
        ["[6, 4, 7, 3]", "[2, 4, 5, 5]", "within the padded input"],
    ),
    "no batch dimension": (
        lambda: bad(Case("", (5, 5), (6, 4, 3, 3))),
        ["input", "[5, 5]", "3, 4 or 5 dimensions", "unsqueeze"],
    ),
    "rank mismatch": (lambda: bad(Case("", (2, 4, 5), (6, 4, 3, 3))), ["weight", "[6, 4, 3, 3]", "[2, 4, 5]"]),
    "bias of another length": (
        lambda: convolution(TWO, torch.ones(TWO.input), torch.ones(TWO.weight), torch.ones(4)),
        ["bias", "[4]", "[6]"],
    ),
    "unknown cube_math_type": (
        lambda: bad(TWO, cube_math_type=260),
        ["cubeMathType is 260, expected 0 (KEEP_DTYPE)", "or 5 (USE_HIGH_PREC_MODE)"],
    ),
    "gradient of another size": (
        lambda: bad_backward(TWO, (2, 6, 3, 4)),
        ["gradOutput", "[2, 6, 3, 4]", "expected 3 at dimension 3"],
    ),
    "gradient of another batch": (lambda: bad_backward(TWO, (3, 6, 3, 3)), ["gradOutput", "batch"]),
    "gradient of other channels": (
        lambda: bad_backward(TWO, (2, 5, 3, 3)),
        ["gradOutput has shape [2, 5, 3, 3], expected 6 channels for weight of shape [6, 4, 3, 3] and 1 groups"],
    ),
    "gradient of more dimensions": (
        lambda: bad_backward(TWO, (1, 2, 6, 3, 3)),
        ["gradOutput has shape [1, 2, 6, 3, 3], expected as many dimensions as input (shape [2, 4, 5, 5])"],
    ),
    "gradient of fewer dimensions": (
        lambda: bad_backward(TWO, (6, 3, 3)),
        ["gradOutput has shape [6, 3, 3], expected as many dimensions as input (shape [2, 4, 5, 5])"],
    ),
    "float64 on Ascend910B": (
        lambda: convolution(TWO, torch.ones(TWO.input).double(), torch.ones(TWO.weight).double(), None),
        ["input", "DOUBLE", "Ascend910B", "host product"],
    ),
    "3-D groups with a float32 gradient of FP16 products": (
        lambda: bad_backward(
            Case("", (1, 4, 3, 3, 3), (4, 2, 2, 2, 2), groups=2), (1, 4, 2, 2, 2), cube_math_type=USE_FP16
        ),
        ["gradWeight", "FLOAT", "groups 2", "16-bit gradWeight"],
    ),
    "integers": (
        lambda: convolution(TWO, torch.ones(TWO.input).int(), torch.ones(TWO.weight).int(), None),
        ["input", "INT32", "FLOAT, FLOAT16, BFLOAT16"],
    ),
    "8-bit floats": (
        lambda: convolution(
            TWO, torch.ones(TWO.input).to(torch.float8_e4m3fn), torch.ones(TWO.weight).to(torch.float8_e4m3fn), None
        ),
        ["input", "FLOAT8_E4M3FN", "not emulate"],
    ),
    "tensors on different devices": (
        lambda: convolution(TWO, torch.ones(TWO.input), torch.ones(TWO.weight, device="meta"), None),
        ["weight", "meta", "cpu"],
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*BAD_CALLS[name])


def test_bias_sizes_missing() -> None:
    x, w, _, g = TWO.tensors()
    operator_checks.check_error(
        lambda: ops.convolution_backward(g, x, w, None, *TWO.parameters, ALL),
        ["biasSizes is null"],
        cabi.PARAM_NULLPTR,
        "ACLNN_ERR_PARAM_NULLPTR",
    )
    assert ops.convolution_backward(g, x, w, None, *TWO.parameters, [True, True, False])[2] is None


@pytest.mark.parametrize("product", ["Ascend310P", "Ascend910"])
def test_products_without_fp32_matrix_units(product: str) -> None:
    three = Case("3-D", (2, 4, 5, 5, 5), (6, 4, 3, 3, 3))
    with aclnn_torch.product(product):
        for cube_math_type in (KEEP_DTYPE, USE_HF32):
            words = [f"cubeMathType is {cube_math_type}", "FLOAT", "pass 1 or 2", product]
            operator_checks.check_error(lambda t=cube_math_type: bad(TWO, cube_math_type=t), words)
            operator_checks.check_error(
                lambda t=cube_math_type: bad_backward(TWO, (2, 6, 3, 3), cube_math_type=t), words
            )
            x, w, *_ = (None if t is None else t.half() for t in TWO.tensors())
            assert torch.equal(
                convolution(TWO, x, w, None, cube_math_type=cube_math_type), convolution(TWO, x, w, None)
            )
        words = ["5 dimensions", "3-D", "Ascend910B", product]
        operator_checks.check_error(lambda: bad(three, cube_math_type=USE_FP16), words)
        operator_checks.check_error(lambda: bad_backward(three, (2, 6, 3, 3, 3), cube_math_type=USE_FP16), words)
        operator_checks.check_error(
            lambda: convolution(TWO, torch.ones(TWO.input).bfloat16(), torch.ones(TWO.weight).bfloat16(), None),
            ["BFLOAT16", product, "FLOAT, FLOAT16", "Ascend910B"],
        )


@pytest.mark.parametrize("release", cabi.CANN_RELEASES)
def test_cube_math_types_by_release_of_cann(release: str) -> None:
    """The operators take those of the C functions. 4 and 5 (USE_FP32_ADD, USE_HIGH_PREC_MODE) compute as 0 does."""
    x, w, b, g = TWO.tensors()
    last = {"8.5": (5, 5), "9.0": (5, 5), "9.1": (4, 4), "later": (4, 3)}[release]
    with aclnn_torch.cann_release(release):
        for call, most in zip(
            (lambda t: convolution(TWO, x, w, b, cube_math_type=t), lambda t: backward(TWO, g, x, w, cube_math_type=t)),
            last,
            strict=True,
        ):
            for cube_math_type in range(4, 6):
                if cube_math_type <= most:
                    torch.testing.assert_close(call(cube_math_type), call(KEEP_DTYPE), rtol=0, atol=0)
                else:
                    names = ("3 (USE_HF32)", "4 (USE_FP32_ADD)")
                    words = [f"cubeMathType is {cube_math_type}, expected 0 (KEEP_DTYPE)", f"or {names[most - 3]}"]
                    operator_checks.check_error(lambda t=cube_math_type, call=call: call(t), words)


# ---- Through the C ABI: calls that torch's operators cannot express


class Descriptors:
    """aclTensors and arrays, destroyed at the end."""

    def __init__(self) -> None:
        self._owned: list[tuple[Any, int]] = []

    def tensor(self, base: np.ndarray, view: np.ndarray | None = None, format: cabi.Format = cabi.Format.ND) -> int:
        """A view of an array, with any strides; uint16 represents BFLOAT16 bits."""
        view = base if view is None else view
        offset = (view.ctypes.data - base.ctypes.data) // base.itemsize
        strides = [stride // base.itemsize for stride in view.strides]
        names = {"float32": cabi.Dtype.FLOAT, "float16": cabi.Dtype.FLOAT16, "uint16": cabi.Dtype.BF16}
        dtype = names[base.dtype.name]
        handle = cabi.host().aclCreateTensor(
            cabi.int64s(view.shape),
            view.ndim,
            dtype,
            cabi.int64s(strides),
            offset,
            format,
            cabi.int64s([base.size]),
            1,
            base.ctypes.data,
        )
        self._owned.append((cabi.host().aclDestroyTensor, handle))
        return int(handle)

    def ints(self, *values: int) -> int:
        handle = cabi.create_int_array(values)
        self._owned.append((cabi.host().aclDestroyIntArray, handle))
        return handle

    def bools(self, *values: bool) -> int:
        handle = cabi.create_bool_array(values)
        self._owned.append((cabi.host().aclDestroyBoolArray, handle))
        return handle

    def destroy(self) -> None:
        for destroy, handle in self._owned:
            assert destroy(ctypes.c_void_p(handle)) == cabi.SUCCESS


@pytest.fixture
def described() -> Iterator[Descriptors]:
    descriptors = Descriptors()
    with cabi.product("Ascend910B"):
        yield descriptors
    descriptors.destroy()


def run(api: str, arguments: Sequence[Any]) -> None:
    """Both stages, without writes outside the workspace."""
    first = cabi.Stage1(api, arguments)
    assert first.status == cabi.SUCCESS, first.text
    assert first.run() == cabi.SUCCESS, cabi.error_text()
    assert first.workspace.untouched()


@pytest.mark.parametrize("transposed", [False, True])
def test_asymmetric_padding(described: Descriptors, transposed: bool) -> None:
    """top, bottom, left, right: the convolution of a zero-padded input; transposed, a part of the output."""
    top, bottom, left, right = 2, 0, 1, 3
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 6, 5)).astype(np.float32)
    w = rng.standard_normal((3, 3, 3, 2)).astype(np.float32)
    b = rng.standard_normal(3).astype(np.float32)
    leaves = [torch.from_numpy(array).double().requires_grad_() for array in (x, w, b)]
    if transposed:
        whole = TF.conv_transpose2d(*leaves, stride=2, output_padding=1)
        expected = whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    else:
        expected = TF.conv2d(TF.pad(leaves[0], (left, right, top, bottom)), *leaves[1:], stride=2)
    g = rng.standard_normal(expected.shape).astype(np.float32)
    expected_gradients = torch.autograd.grad(expected, leaves, torch.from_numpy(g).double())

    y = np.empty(expected.shape, np.float32)
    t, n = described.tensor, described.ints
    pads, out = n(top, bottom, left, right), n(1, 1) if transposed else n(0, 0)
    run(
        "aclnnConvolution",
        [t(x), t(w), t(b), n(2, 2), pads, n(1, 1), transposed, out, 1, t(y), KEEP_DTYPE],
    )
    torch.testing.assert_close(torch.from_numpy(y).double(), expected, rtol=1e-5, atol=1e-5)

    gradients = [np.empty_like(array) for array in (x, w, b)]
    mask = described.bools(True, True, True)
    run(
        "aclnnConvolutionBackward",
        [t(g), t(x), t(w), n(3), n(2, 2), pads, n(1, 1), transposed, out, 1, mask, KEEP_DTYPE, *map(t, gradients)],
    )
    for got, want in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(torch.from_numpy(got).double(), want, rtol=1e-5, atol=1e-4)


def test_doubled_padding_of_a_row(described: Descriptors) -> None:
    x, w, y = (np.arange(n, dtype=np.float32).reshape(1, 1, -1) for n in (4, 2, 6))
    t, n = described.tensor, described.ints
    run("aclnnConvolution", [t(x), t(w), None, n(1), n(3, 0), n(1), False, None, 1, t(y), KEEP_DTYPE])
    assert y.ravel().tolist() == [0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_any_strides(described: Descriptors, dtype: type) -> None:
    """Reversed inputs and outputs, with gaps."""
    rng = np.random.default_rng(0)

    def backwards(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        base = rng.integers(-4, 5, np.prod(shape) * 2).astype(dtype)
        return base, base.reshape(*shape, 2)[..., 0][..., ::-1, ::-1]

    (xs, x), (ws, w), (gs, g) = backwards(2, 3, 5, 4), backwards(4, 3, 3, 2), backwards(2, 4, 3, 3)
    (ys, y), (dxs, dx), (dws, dw), (dbs, db) = (
        backwards(2, 4, 3, 3), backwards(2, 3, 5, 4), backwards(4, 3, 3, 2), backwards(1, 4)
    )  # fmt: skip
    t, n = described.tensor, described.ints
    arrays = (n(1), n(0), n(1), False, n(0))
    gaps = [base.reshape(-1, 2)[:, 1].copy() for base in (ys, dxs, dws)]
    inputs = (t(xs, x), t(ws, w))
    run("aclnnConvolution", [*inputs, None, *arrays, 1, t(ys, y), KEEP_DTYPE])
    mask = described.bools(True, True, True)
    outputs = (t(dxs, dx), t(dws, dw), t(dbs, db[0]))
    run("aclnnConvolutionBackward", [t(gs, g), *inputs, n(4), *arrays, 1, mask, KEEP_DTYPE, *outputs])

    # Integers, so that sums are exact.
    exact = [torch.from_numpy(array.astype(np.float64)) for array in (x, w, g)]
    np.testing.assert_array_equal(y, TF.conv2d(exact[0], exact[1]).numpy())
    expected = torchs_backward(Case("", x.shape, w.shape), exact[2], exact[0], exact[1])
    for got, want in zip((dx, dw, db[0]), expected, strict=True):
        np.testing.assert_array_equal(got, want.numpy())
    for base, gap in zip((ys, dxs, dws), gaps, strict=True):
        np.testing.assert_array_equal(base.reshape(-1, 2)[:, 1], gap)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("size", [5, 20])
def test_results_in_the_memory_of_inputs(described: Descriptors, size: int, groups: int, kernel: int) -> None:
    """Results and inputs of the same shape: everything is read before it is overwritten."""
    rng = np.random.default_rng(0)
    shapes = ((2, 32, size, size), (2, 32, size, size), (32, 32 // groups, kernel, kernel))
    arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    pads = (kernel // 2,)
    case = Case("", shapes[1], shapes[2], padding=pads, groups=groups)
    expected = torchs_backward(case, *(torch.from_numpy(array).double() for array in arrays))
    t, n = described.tensor, described.ints
    parameters = (n(1), n(*pads), n(1), False, n(0))
    mask = described.bools(True, True, True)
    for target in range(2):
        g, x, w = (array.copy() for array in arrays)
        outputs = ((g, x)[target], w, np.empty(32, np.float32))
        run(
            "aclnnConvolutionBackward",
            [t(g), t(x), t(w), n(32), *parameters, groups, mask, KEEP_DTYPE, *map(t, outputs)],
        )
        for got, want in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(got, want.numpy())
    y = arrays[1].copy()
    expected_output = torchs(case, *(torch.from_numpy(array).double() for array in arrays[1:]), None)
    run("aclnnConvolution", [t(y), t(arrays[2]), None, *parameters, groups, t(y), KEEP_DTYPE])
    np.testing.assert_array_equal(y, expected_output.numpy())


def test_wider_results_of_16_bit_products(described: Descriptors) -> None:
    """Results are rounded to the products' dtype once, where they are computed, and then cast."""
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 7, 7), (2, 3, 7, 7), (3, 3, 1, 1))
    g, x, w = (rng.integers(-4, 5, shape).astype(np.float16) for shape in shapes)
    case = Case("", x.shape, w.shape)
    wide = [torch.from_numpy(array).double() for array in (g, x, w)]
    t, n = described.tensor, described.ints
    parameters = (n(1), n(0), n(1), False, n(0))
    dx, dw, db = np.empty(x.shape, np.float32), np.empty(w.shape, np.float16), np.empty(3, np.float32)
    mask = described.bools(True, True, True)
    outputs = map(t, (dx, dw, db))
    run("aclnnConvolutionBackward", [t(g), t(x), t(w), n(3), *parameters, 1, mask, KEEP_DTYPE, *outputs])
    for got, want in zip((dx, dw, db), torchs_backward(case, *wide), strict=True):
        np.testing.assert_array_equal(got, want.numpy())
    y = np.empty(g.shape, np.float32)
    run("aclnnConvolution", [t(x), t(w), None, *parameters, 1, t(y), KEEP_DTYPE])
    np.testing.assert_array_equal(y, torchs(case, *wide[1:], None).numpy())


def test_wider_gradient_of_bfloat16_implicit_gemm(described: Descriptors) -> None:
    """The same values as in BFLOAT16, for channels and images whose pairs are incomplete."""
    case = Case("", (3, 17, 20, 21), (25, 17, 3, 3), padding=(1,))
    x, w, _, g = case.tensors(torch.bfloat16)
    narrow = backward(case, g, x, w)
    t, n = described.tensor, described.ints
    bits = [tensor.view(torch.uint16).numpy() for tensor in (g, x, w)]
    dx, dw = np.empty(x.shape, np.float32), np.empty(w.shape, np.uint16)
    g_, x_, w_, dw_ = map(t, (*bits, dw))
    mask = described.bools(True, True, False)
    parameters = (n(1, 1), n(1, 1), n(1, 1), False, n(0, 0), 1)
    run("aclnnConvolutionBackward", [g_, x_, w_, n(25), *parameters, mask, KEEP_DTYPE, t(dx), dw_, None])
    assert torch.equal(torch.from_numpy(dx), narrow[0].float())
    assert torch.equal(torch.from_numpy(dw).view(torch.bfloat16), narrow[1])


def test_gradients_in_other_dtypes(described: Descriptors) -> None:
    """gradInput is rounded to the products' dtype before the cast, gradWeight is not, gradBias to gradOutput's."""
    x, w = np.full((1, 1, 1), 1 + 2**-12, np.float32), np.full((1, 1, 1), 1 + 2**-10, np.float32)
    g = np.full((1, 1, 2), 1 + 2**-10, np.float16)
    x2 = np.concatenate([x, x], axis=2)
    outputs = [np.empty(s, np.float32) for s in ((1, 1, 2), (1, 1, 1), (1,))]
    t, n = described.tensor, described.ints
    mask = described.bools(True, True, True)
    arrays = (n(1), n(0), n(1), False, n(0))
    run(
        "aclnnConvolutionBackward",
        [t(g), t(x2), t(w), n(1), *arrays, 1, mask, USE_FP16, *map(t, outputs)],
    )
    exact = (1 + 2**-10) ** 2
    assert outputs[0].ravel().tolist() == [float(np.float16(exact))] * 2
    assert outputs[1].item() == 2 * (1 + 2**-10)  # from inputs that became 1
    assert outputs[2].item() == 2 * (1 + 2**-10)


@pytest.mark.parametrize("size", [2, 4])
def test_mask_of_another_length(described: Descriptors, size: int) -> None:
    x, w, g = (np.ones(shape, np.float32) for shape in ((1, 1, 3), (1, 1, 2), (1, 1, 2)))
    t, n = described.tensor, described.ints
    mask = described.bools(*[True] * size)
    arrays = (n(1), n(0), n(1), False, n(0))
    arguments = [t(g), t(x), t(w), n(1), *arrays, 1, mask, KEEP_DTYPE, t(x.copy()), t(w.copy()), t(np.ones(1, "f"))]
    first = cabi.Stage1("aclnnConvolutionBackward", arguments)
    assert first.status == cabi.PARAM_NULLPTR
    assert "outputMask" in first.text
    assert str(size) in first.text


def test_known_answer(described: Descriptors) -> None:
    """The example of aclnnConvolutionBackward's document: float ones read as FP16, so 0 and 1.875 alternate."""
    ones = np.tile(np.array([0.0, 1.875], np.float16), 98)
    g, x = ones.reshape(2, 2, 7, 7), ones.copy().reshape(2, 2, 7, 7)
    w = ones[:4].copy().reshape(2, 2, 1, 1)
    outputs = [np.empty_like(x), np.empty_like(w), np.empty(2, np.float16)]
    t, n = described.tensor, described.ints
    mask = described.bools(True, True, True)
    nchw = cabi.Format.NCHW
    run(
        "aclnnConvolutionBackward",
        [
            *(t(array, format=nchw) for array in (g, x, w)),
            *(n(2), n(1, 1), n(0, 0), n(1, 1), False, n(0, 0), 1, mask, KEEP_DTYPE),
            *(t(outputs[0], format=nchw), t(outputs[1], format=nchw), t(outputs[2])),
        ],
    )
    assert np.unique(outputs[0][:, 0]).tolist() == [0.0]
    assert np.unique(outputs[0][:, 1]).tolist() == [3.515625]
    assert outputs[1].ravel().tolist() == [168.75, 0.0, 0.0, 175.75]
    assert outputs[2].tolist() == [90.0, 93.75]


def test_a_long_bias_with_gaps() -> None:
    """Independent of the previous call's memory; its output had as many channels as the gaps are long."""
    ops.convolution(torch.randn(1, 1, 2, 2), torch.randn(3, 1, 1, 1), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    case = Case("long bias", (1, 1, 2, 2), (8192, 1, 1, 1))
    x, w, _, _ = case.tensors(torch.float32)
    bias = torch.randn(8192 * 3)[::3]
    assert torch.equal(convolution(case, x, w, bias), convolution(case, x, w, bias.contiguous()))


def test_vmap_over_no_examples() -> None:
    weight = torch.ones(6, 4, 3, 3)
    assert torch.func.vmap(lambda x: F.conv2d(x, weight))(torch.ones(0, 2, 4, 5, 5)).shape == (0, 2, 6, 3, 3)
    assert torch.func.vmap(F.conv2d)(torch.ones(0, 2, 4, 5, 5), torch.ones(0, 6, 4, 3, 3)).shape == (0, 2, 6, 3, 3)
