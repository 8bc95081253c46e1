"""aclnnConvolution and aclnnConvolutionBackward: refusals in the order of CANN's checkers, and results.
docs/emulation/operators.md lists the deliberate deviations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests import cabi
from tests.cabi import INNER_NULLPTR, PARAM_INVALID, PARAM_NULLPTR, RUNTIME_ERROR, Dtype, Format, round_to
from tests.conformance.machinery import (
    ANYWHERE,
    HOST,
    NOWHERE,
    WITH_BF16,
    Bools,
    Changes,
    Deviation,
    DtypeRow,
    Given,
    Ints,
    Operator,
    Reference,
    Row,
    Table,
    Tensor,
    Until,
    layouts,
    nulls,
    on_all,
)
from tests.conformance.provenance import RESULTS, Source, Sources, document, ops_nn

F32, F16, BF16, F64 = Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16, Dtype.DOUBLE
I32 = Dtype.INT32
NARROW = frozenset({"Ascend310P", "Ascend910"})  # no FP32 matrix units

# ---- cubeMathType (the functions' documents), HF32 (SetHF32TransMode of Ascend C)

KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32, USE_FP32_ADD, USE_HIGH_PREC_MODE = range(6)


def to_hf32(product: str, value: np.ndarray) -> np.ndarray:
    """FLOAT values with 11 bits of mantissa, 10 on Ascend950: to nearest even, beyond FLT_MAX inf, NaN kept."""
    dropped = 13 if product == "Ascend950" else 12
    with np.errstate(all="ignore"):
        quantum = np.ldexp(cabi.ulp(F32, np.where(np.isfinite(value), value, 1.0)), dropped)
        rounded = np.where(np.isfinite(value), np.rint(value / quantum) * quantum, value)
        return round_to(F32, np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, rounded), rounded))


def promoted(dtypes: Iterable[Dtype]) -> Dtype:
    """PromoteType of opbase among floating dtypes."""
    return reduce(lambda a, b: a if a == b else F64 if F64 in (a, b) else F32, dtypes)


def converted(given: Given, names: Sequence[str]) -> tuple[list[np.ndarray], Dtype]:
    """The tensors in the matrix units' dtype, and the dtype of the result."""
    dtype = promoted(given.arguments[name].dtype for name in names)
    mode, tensors = given.arguments["cubeMathType"], [given.inputs[name] for name in names]
    if dtype == F64:
        return tensors, F64
    if mode == USE_FP16 or (dtype == F32 and given.product in NARROW):
        return [round_to(F16, tensor) for tensor in tensors], F16
    if dtype == F32 and mode not in (KEEP_DTYPE, USE_FP32_ADD, USE_HIGH_PREC_MODE):
        return [to_hf32(given.product, tensor) for tensor in tensors], F32
    return tensors, dtype


# ---- formulas (the functions' documents)


@dataclass(frozen=True)
class Geometry:
    """The positions of a kernel's taps. A convolution maps a large tensor x, read at positions o * s - p + k * d, to a
    small one y at positions o; transposed, it maps y to x. Both are [batch, groups, channels, spatial...] here, and
    weight is [groups, channels of y, channels of x, kernel...]."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    def taps(self, small: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each tap of the kernel, and the slice of a padded x that it multiplies for all of y."""
        for tap in np.ndindex(*self.kernel):
            firsts = [k * d for k, d in zip(tap, self.dilation, strict=True)]
            yield (
                tap,
                tuple(
                    slice(first, first + s * (size - 1) + 1 if size else first, s)
                    for first, s, size in zip(firsts, self.stride, small, strict=True)
                ),
            )

    def padded(self, x: np.ndarray) -> np.ndarray:
        """x surrounded by zeros."""
        return np.pad(x, ((0, 0),) * 3 + self.padding)

    def forward(self, x: np.ndarray, weight: np.ndarray, small: Sequence[int]) -> np.ndarray:
        """y[o] = sum of x[o * s - p + k * d] * weight[k]."""
        x = self.padded(x)
        y = np.zeros((*x.shape[:2], weight.shape[1], *small))
        for tap, place in self.taps(small):
            y += np.einsum("bgx...,gyx->bgy...", x[(..., *place)], weight[(..., *tap)])
        return y

    def backward(self, y: np.ndarray, weight: np.ndarray, large: Sequence[int]) -> np.ndarray:
        """x[i] = sum of y[o] * weight[k] over i = o * s - p + k * d."""
        x = self.padded(np.zeros((*y.shape[:2], weight.shape[2], *large)))
        for tap, place in self.taps(y.shape[3:]):
            x[(..., *place)] += np.einsum("bgy...,gyx->bgx...", y, weight[(..., *tap)])
        inside = (slice(before, before + size) for (before, _), size in zip(self.padding, large, strict=True))
        return x[(..., *inside)]

    def filter(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """weight[k] = sum over the batch and o of y[o] * x[o * s - p + k * d]."""
        x = self.padded(x)
        weight = np.zeros((x.shape[1], y.shape[2], x.shape[2], *self.kernel))
        for tap, place in self.taps(y.shape[3:]):
            met = x[(..., *place)].reshape(*x.shape[:3], -1)
            weight[(..., *tap)] = np.einsum("bgyo,bgxo->gyx", y.reshape(*y.shape[:3], -1), met)
        return weight


def expanded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    """One value applies to all dimensions."""
    return values * count if len(values) == 1 else values


def geometry(arguments: dict) -> Geometry:
    """The geometry of a call."""
    kernel = arguments["weight"].shape[2:]
    stride, dilation = (expanded(arguments[name].values, len(kernel)) for name in ("stride", "dilation"))
    padding = expanded(arguments["padding"].values, len(kernel))
    if len(padding) == len(kernel):
        padding = tuple(value for value in padding for _ in range(2))
    return Geometry(kernel, stride, tuple(zip(padding[::2], padding[1::2], strict=True)), dilation)


def grouped(tensor: np.ndarray, groups: int) -> np.ndarray:
    """[batch, groups, channels, spatial...]"""
    return tensor.reshape(tensor.shape[0], groups, tensor.shape[1] // groups, *tensor.shape[2:])


def grouped_weight(weight: np.ndarray, groups: int) -> np.ndarray:
    """[groups, channels of y, channels of x, kernel...]: transposed or not, dimension 0 is that of y."""
    return weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])


def of_products(value: np.ndarray, magnitude: np.ndarray, count: int, dtype: Dtype, result: Dtype) -> Reference:
    """A sum of `count` products, and the sum of their magnitudes. Each product and each partial sum is rounded once to
    FP32, whatever the order: count * 2^-24 * magnitude. In DOUBLE the reference has the same error."""
    unit = 2.0**-52 if dtype == F64 else 2.0**-24
    return Reference(value, count * unit * magnitude, result)


def converted_bias(given: Given, dtype: Dtype) -> np.ndarray:
    """In the dtype of the products, or in FLOAT if the operator adds it in FLOAT."""
    in_float = given.arguments["transposed"] or (dtype == BF16 and given.product != "Ascend950")
    if dtype in (F32, F64) or (in_float and given.product not in NARROW):
        return given.inputs["bias"]
    return round_to(dtype, given.inputs["bias"])


def output(given: Given) -> Reference:
    """The convolution and the bias, in the matrix units' result dtype."""
    (source, weight), dtype = converted(given, ("input", "weight"))
    bias = [converted_bias(given, dtype)] if given.arguments["bias"] else []
    groups, shape, transposed = (given.arguments[name] for name in ("groups", "output", "transposed"))
    place, shape = geometry(given.arguments), shape.shape

    def apply(source: np.ndarray, weight: np.ndarray, bias: list[np.ndarray]) -> np.ndarray:
        to = place.backward if transposed else place.forward
        got = to(grouped(source, groups), grouped_weight(weight, groups), shape[2:]).reshape(shape)
        return got + bias[0].reshape(-1, *(1 for _ in shape[2:])) if bias else got

    count = weight.shape[0] // groups if transposed else weight.shape[1]
    magnitude = apply(np.abs(source), np.abs(weight), [np.abs(values) for values in bias])
    value = apply(source, weight, bias)
    return of_products(value, magnitude, count * math.prod(place.kernel) + len(bias), dtype, dtype)


def wanted(given: Given, index: int) -> bool:
    """True if a gradient is requested."""
    return given.arguments["outputMask"].values[index]


def empty(given: Given) -> bool:
    """True if there is nothing to sum."""
    return any(math.prod(given.arguments[name].shape) == 0 for name in ("input", "weight"))


def grad_input(given: Given) -> Reference | None:
    """The transposed convolution of gradOutput, in the matrix units' result dtype."""
    if not wanted(given, 0):
        return None
    (g, _, weight), dtype = converted(given, ("gradOutput", "input", "weight"))
    groups, shape = given.arguments["groups"], given.arguments["input"].shape
    if empty(given):
        return Reference(np.zeros(shape), 0.0)
    place = geometry(given.arguments)

    def apply(g: np.ndarray, weight: np.ndarray) -> np.ndarray:
        to = place.forward if given.arguments["transposed"] else place.backward
        return to(grouped(g, groups), grouped_weight(weight, groups), shape[2:]).reshape(shape)

    count = weight.shape[1] if given.arguments["transposed"] else weight.shape[0] // groups
    count *= math.prod(place.kernel)
    return of_products(apply(g, weight), apply(np.abs(g), np.abs(weight)), count, dtype, dtype)


def grad_weight(given: Given) -> Reference | None:
    """In FP32; zeros if an operand is empty."""
    if not wanted(given, 1):
        return None
    (g, source, _), dtype = converted(given, ("gradOutput", "input", "weight"))
    groups, shape = given.arguments["groups"], given.arguments["gradWeight"].shape
    if empty(given):
        return Reference(np.zeros(shape), 0.0)
    place = geometry(given.arguments)

    def apply(g: np.ndarray, source: np.ndarray) -> np.ndarray:
        x, y = (g, source) if given.arguments["transposed"] else (source, g)
        return place.filter(grouped(x, groups), grouped(y, groups)).reshape(shape)

    small = source if given.arguments["transposed"] else g
    count = small.shape[0] * math.prod(small.shape[2:])
    return of_products(apply(g, source), apply(np.abs(g), np.abs(source)), count, dtype, F64 if dtype == F64 else F32)


def grad_bias(given: Given) -> Reference | None:
    """The sum of the unconverted gradOutput, in its dtype; zeros if it is empty."""
    if not wanted(given, 2):
        return None
    g, dtype = given.inputs["gradOutput"], given.arguments["gradOutput"].dtype
    if empty(given):
        return Reference(np.zeros(given.arguments["gradBias"].shape), 0.0)
    axes = (0, *range(2, g.ndim))
    count = math.prod(g.shape[axis] for axis in axes)
    return of_products(g.sum(axes), np.abs(g).sum(axes), count, dtype, dtype)


# ---- prototypes (the functions' documents)

GENERIC = tuple(np.random.default_rng(0).standard_normal(101))
SHORT = (1.0, -0.5, 0.75, 2.0, -1.25)  # exact in every floating dtype


def values(dtype: Dtype, name: str) -> Sequence[float]:
    """Values that each dtype rounds differently; a bias is exact, so that its conversion has no effect."""
    start = {"gradOutput": 0, "input": 17, "weight": 50}
    return SHORT if name == "bias" else np.roll(GENERIC, start[name])


@dataclass(frozen=True)
class Problem:
    """A valid convolution; the defaults use every parameter."""

    batch: int = 2
    channels: int = 4  # of the input
    results: int = 6  # of the output
    sizes: tuple[int, ...] = (5, 6)
    kernel: tuple[int, ...] = (3, 2)
    stride: tuple[int, ...] = (2, 1)
    padding: tuple[int, ...] = (1, 0)
    dilation: tuple[int, ...] = (1, 2)
    transposed: bool = False
    output_padding: tuple[int, ...] = (0, 0)
    groups: int = 2

    @property
    def input(self) -> tuple[int, ...]:
        """The shape of the input."""
        return (self.batch, self.channels, *self.sizes)

    @property
    def weight(self) -> tuple[int, ...]:
        """The shape of the weight."""
        if self.transposed:
            return (self.channels, self.results // self.groups, *self.kernel)
        return (self.results, self.channels // self.groups, *self.kernel)

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of the output."""
        rank = len(self.sizes)
        padding = expanded(self.padding, rank)
        around = (
            [2 * p for p in padding] if len(padding) == rank else [padding[0] + padding[1], padding[2] + padding[3]]
        )
        spans = [d * (k - 1) + 1 for d, k in zip(expanded(self.dilation, rank), self.kernel, strict=True)]
        dims = zip(
            self.sizes, expanded(self.stride, rank), around, spans, expanded(self.output_padding, rank), strict=True
        )
        if self.transposed:
            spatial = tuple((size - 1) * s - p + span + more for size, s, p, span, more in dims)
        else:
            spatial = tuple((size + p - span) // s + 1 for size, s, p, span, _ in dims)
        return (self.batch, self.results, *spatial)

    def parameters(self) -> Changes:
        """The arguments of both operators other than tensors."""
        return {
            "stride": Ints(self.stride),
            "padding": Ints(self.padding),
            "dilation": Ints(self.dilation),
            "transposed": self.transposed,
            "outputPadding": Ints(self.output_padding),
            "groups": self.groups,
        }

    def forward(self) -> Changes:
        """Changes that turn it into a call of aclnnConvolution."""
        shapes = {"input": self.input, "weight": self.weight, "bias": (self.results,), "output": self.output}
        return {**{f"{name}.shape": shape for name, shape in shapes.items()}, **self.parameters()}

    def backward(self) -> Changes:
        """Changes that turn it into a call of aclnnConvolutionBackward."""
        shapes = {"gradOutput": self.output, "input": self.input, "weight": self.weight}
        shapes |= {"gradInput": self.input, "gradWeight": self.weight, "gradBias": (self.results,)}
        sizes = {"biasSizes": Ints((self.results,))}
        return {**{f"{name}.shape": shape for name, shape in shapes.items()}, **sizes, **self.parameters()}


def of_size(rows: int, columns: int) -> Problem:
    """A one-dimensional problem."""
    return Problem(rows, 2, 3, (columns,), (3,), (1,), (1,), (1,), False, (0,), 1)


DEFAULT = Problem()
TRANSPOSED = replace(DEFAULT, transposed=True, output_padding=(1, 0))
ONE_D = Problem(2, 4, 6, (7,), (3,), (2,), (1,), (1,), groups=2, output_padding=(0,))
THREE_D = Problem(2, 4, 6, (3, 4, 5), (2, 3, 1), (1, 2, 1), (1, 0, 0), (1, 1, 1), groups=2, output_padding=(0, 0, 0))
THREE_D_WHOLE = replace(THREE_D, groups=1)
DEPTHWISE = replace(DEFAULT, results=8, groups=4)
FOUR_PADDINGS = replace(DEFAULT, padding=(2, 1, 0, 1))

TENSOR = Tensor(F16)


def format_of(shape: tuple[int, ...]) -> Format:
    """The format that CANN's checkers accept at every rank; a bias is always ND."""
    return {3: Format.NCL, 4: Format.NCHW, 5: Format.NCDHW}.get(len(shape), Format.ND)


FORWARD = Operator(
    "aclnnConvolution",
    {
        "input": replace(TENSOR, shape=DEFAULT.input),
        "weight": replace(TENSOR, shape=DEFAULT.weight),
        "bias": replace(TENSOR, shape=(DEFAULT.results,)),
        **DEFAULT.parameters(),
        "output": replace(TENSOR, shape=DEFAULT.output),
        "cubeMathType": KEEP_DTYPE,
    },
    {"output": output},
    values,
    format_of=format_of,
    optional=frozenset({"bias", "outputPadding"}),
    sizes=lambda rows, columns: of_size(rows, columns).forward(),
    empty=replace(DEFAULT, batch=0).forward(),
)
BACKWARD = Operator(
    "aclnnConvolutionBackward",
    {
        "gradOutput": replace(TENSOR, shape=DEFAULT.output),
        "input": replace(TENSOR, shape=DEFAULT.input),
        "weight": replace(TENSOR, shape=DEFAULT.weight),
        "biasSizes": Ints((DEFAULT.results,)),
        **DEFAULT.parameters(),
        "outputMask": Bools((True, True, True)),
        "cubeMathType": KEEP_DTYPE,
        "gradInput": replace(TENSOR, shape=DEFAULT.input),
        "gradWeight": replace(TENSOR, shape=DEFAULT.weight),
        "gradBias": replace(TENSOR, shape=(DEFAULT.results,)),
    },
    {"gradInput": grad_input, "gradWeight": grad_weight, "gradBias": grad_bias},
    values,
    format_of=format_of,
    optional=frozenset({"biasSizes", "gradInput", "gradWeight", "gradBias"}),
    sizes=lambda rows, columns: of_size(rows, columns).backward(),
    empty={
        **replace(DEFAULT, batch=0).backward(),
        **{"outputMask": Bools((True, False, False)), "gradWeight": None, "gradBias": None},
    },
)

# ---- Checks shared by both

_FORWARD = "conv/convolution_forward/op_host/op_api/aclnn_convolution.cpp"
_CHECKER = "conv/convolution_backward/op_api/convolution_backward_checker.cpp"
_BACKWARD = "conv/convolution_backward/op_api/aclnn_convolution_backward.cpp"
UNEMULATED = (Dtype.HIFLOAT8, Dtype.FLOAT8_E4M3FN, Dtype.FLOAT8_E5M2)
WIDE = ANYWHERE - NARROW


def formatted(operator: Operator, format: Format) -> Changes:
    """A format on all tensors except one-dimensional ones."""
    return {f"{name}.format": format for name in operator.tensors if name not in ("bias", "gradBias")}


def parameter_rows(numbers: dict[str, str]) -> list[Row]:
    """Invalid values of the parameters, by the number of each check, in order."""
    wrong: dict[str, tuple[tuple[int, ...], ...]]
    wrong = {"stride": ((2, 0), (-3,)), "padding": ((1, -1),), "dilation": ((0, 2), (-2,))}
    return [
        Row(number, f"{name} {given}", {f"{name}.values": given}, words=(name, str(min(given))))
        for name, number in numbers.items()
        for given in wrong[name]
    ]


def length_rows(number: str, names: Sequence[str]) -> list[Row]:
    """Arrays whose length is neither one nor the number of dimensions."""
    wrong = {"stride": (2, 1, 1), "padding": (1, 0, 0), "dilation": (1, 2, 1), "outputPadding": (0, 0, 0)}
    return [
        Row(number, f"{name} of {len(length)}", {f"{name}.values": length}, words=(name, str(len(length))))
        for name in names
        for length in (wrong[name], ())
    ]


def group_rows(number: str) -> list[Row]:
    """Invalid values of groups."""
    return [
        Row(number, f"groups {groups}", {"groups": groups}, words=("groups", str(groups), "65535"))
        for groups in (0, -1)
    ]


def many_groups(transposed: bool, spatial: int) -> Problem:
    """One more than the document allows."""
    ones, zeros = (1,) * spatial, (0,) * spatial
    return Problem(1, 65536, 65536, ones, ones, ones, zeros, ones, transposed, zeros, 65536)


# The values of cubeMathType that earlier releases took.
TAKEN = {USE_FP32_ADD: Until("9.1", ANYWHERE), USE_HIGH_PREC_MODE: Until("9.0", ANYWHERE)}


def taken_row(operator: Operator, number: str, mode: int, accepted: frozenset[str], dtype: Dtype = F32) -> Row:
    """A value of cubeMathType that earlier releases took, on some products."""
    changes = {**on_all(operator, "dtype", dtype), "cubeMathType": mode}
    until = TAKEN[mode]._replace(accepted=accepted)
    return Row(number, f"{dtype.name}, mode {mode}", changes, words=("cubeMathType", str(mode)), until=until)


def mode_rows(operator: Operator, number: str, last: str, most: int) -> list[Row]:
    """Invalid values of cubeMathType, and the requirements of products without FP32 matrix units."""
    floats = on_all(operator, "dtype", F32)
    return [
        *(
            Row(
                number,
                f"cubeMathType {mode}",
                {"cubeMathType": mode},
                words=("cubeMathType", str(mode)),
                until=TAKEN.get(mode),
            )
            for mode in (most + 1, -1, 127)
        ),
        Row(last, "floats kept", floats, WIDE, words=("cubeMathType", "0", "FLOAT", "1")),
        Row(last, "floats as HF32", {**floats, "cubeMathType": USE_HF32}, WIDE, words=("cubeMathType", "3", "FLOAT")),
    ]


def same_on_all(operator: Operator, call: Callable[[Problem], Changes]) -> list[Row]:
    """Calls that both operators accept on every product."""
    alike = replace(DEFAULT, stride=(2,), padding=(1,), dilation=(1,), output_padding=(0,))
    narrow, at_once = replace(TRANSPOSED, output_padding=(0, 1)), replace(DEFAULT, kernel=(7, 6), dilation=(1, 1))
    cases: dict[str, Changes] = {
        **{f"mode {mode}": {"cubeMathType": mode} for mode in range(4)},
        **{f"floats, mode {mode}": {**on_all(operator, "dtype", F32), "cubeMathType": mode} for mode in (1, 2)},
        "1-D": call(ONE_D),
        "1-D as ND": {**call(ONE_D), **formatted(operator, Format.ND)},
        "1-D transposed": call(replace(ONE_D, transposed=True, output_padding=(1,))),
        "2-D as ND": formatted(operator, Format.ND),
        "2-D transposed": call(TRANSPOSED),
        "2-D transposed as ND": {**call(TRANSPOSED), **formatted(operator, Format.ND)},
        "outputPadding below the dilation": call(narrow),
        "one value for all dimensions": call(alike),
        "four paddings": call(FOUR_PADDINGS),
        "four paddings, transposed": call(replace(TRANSPOSED, padding=(2, 1, 0, 1))),
        "padding 0": call(replace(DEFAULT, padding=(0, 0))),
        "padding beyond the kernel": call(replace(DEFAULT, padding=(4, 5))),
        "one group": call(replace(DEFAULT, groups=1)),
        "depthwise": call(DEPTHWISE),
        "depthwise transposed": call(replace(DEPTHWISE, transposed=True)),
        "as many groups as there can be": call(
            Problem(1, 65535, 65535, (1,), (1,), (1,), (0,), (1,), False, (0,), 65535)
        ),
        "kernel as large as the padded input": call(at_once),
        "stride past the input": call(replace(DEFAULT, stride=(64, 300))),
        "one pixel": call(Problem(1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1), groups=1)),
    }
    return [Row("-", condition, changes, ANYWHERE) for condition, changes in cases.items()]


def unchecked(number: str, cases: dict[str, Changes], accepted: frozenset[str] = ANYWHERE) -> list[Row]:
    """Calls that succeed."""
    return [Row(number, condition, changes, accepted) for condition, changes in cases.items()]


# ---- aclnnConvolutionBackward: conditions

ALL = (True, True, True)
NO_INPUT, NO_WEIGHT, NO_BIAS = (Bools(tuple(i != index for i in range(3))) for index in range(3))

# Refusals of the operators inside CANN's own, for products that have them.

A2_AND_A3 = frozenset({"Ascend910B", "Ascend910_93"})
PUBLISHED = A2_AND_A3 | {"Ascend950"}  # their 3-D operators are published
ON_950 = (frozenset({"Ascend950"}), INNER_NULLPTR)
ON_PUBLISHED = (PUBLISHED, INNER_NULLPTR)
ONLY_INPUT: Changes = {"outputMask": Bools((True, False, False)), "gradWeight": None, "gradBias": None}
ONLY_WEIGHT: Changes = {"outputMask": Bools((False, True, False)), "gradInput": None, "gradBias": None}

_INPUT_GRADIENT = "conv/conv3d_backprop_input_v2/op_host/op_tiling/common/conv_backprop_input_context_utils.cpp"
_WEIGHT_GRADIENT = "conv/conv3d_backprop_filter_v2/op_host/op_tiling/common/conv_backprop_filter_context_utils.cpp"
# The checker divides the channels of depthwise convolutions only; the older operators are not published.
UNEVEN = ops_nn(_INPUT_GRADIENT, "CheckGroupsDivisibility")


def volume(sizes: tuple[int, ...], **changes: Any) -> Problem:
    """A 3-D convolution of one image with one tap."""
    ones, none = (1,) * 3, (0,) * 3
    thin = Problem(1, 1, 1, sizes, ones, ones, none, ones, False, none, 1)
    return replace(thin, **changes)


def flat(sizes: tuple[int, ...], **changes: Any) -> Problem:
    """The same for a line or a plane."""
    ones, none = (1,) * len(sizes), (0,) * len(sizes)
    return replace(Problem(1, 1, 1, sizes, ones, ones, none, ones, False, none, 1), **changes)


def wide_rows(width: int) -> Problem:
    """Rows of which a kernel of 3 reads four at once, in groups."""
    return replace(volume((1, 4, width), kernel=(1, 3, 3), padding=(0, 1, 1), groups=2), channels=2, results=2)


def in_volumes(
    number: str,
    condition: str,
    changes: Changes,
    code: int,
    refusing: frozenset[str],
    source: Source | None = None,
    without: frozenset[str] = NARROW,
) -> Row:
    """A row in three dimensions, which products without 3-D convolutions refuse as such."""
    accepted = ANYWHERE - refusing - without
    return Row(number, condition, changes, accepted, code, ("host",), source, (without, PARAM_INVALID))


# All checks in order; some apply only on some products.
BACKWARD_ORDER = [
    *nulls(BACKWARD),
    Row("3", "outputMask of 2", {"outputMask": Bools(ALL[:2])}, code=PARAM_NULLPTR, words=("outputMask", "2", "3")),
    Row(
        "3", "outputMask of 4", {"outputMask": Bools((*ALL, True))}, code=PARAM_NULLPTR, words=("outputMask", "4", "3")
    ),
    Row("4", "gradInput null", {"gradInput": None}, code=PARAM_NULLPTR, words=("gradInput",)),
    Row("4", "gradWeight null", {"gradWeight": None}, code=PARAM_NULLPTR, words=("gradWeight",)),
    Row("4", "gradBias null", {"gradBias": None}, code=PARAM_NULLPTR, words=("gradBias",)),
    Row("own rule", "biasSizes null", {"biasSizes": None}, code=PARAM_NULLPTR, words=("biasSizes",)),
    Row("5", "gradOutput of integers", {"gradOutput.dtype": I32}, words=("gradOutput", "INT32", "FLOAT16")),
    Row("5", "input complex", {"input.dtype": Dtype.COMPLEX64}, words=("input", "COMPLEX64", "FLOAT16")),
    Row("5", "weight bool", {"weight.dtype": Dtype.BOOL}, words=("weight", "BOOL", "FLOAT16")),
    Row("5", "gradInput of integers", {"gradInput.dtype": I32}, words=("gradInput", "INT32", "FLOAT16")),
    Row("5", "gradWeight complex", {"gradWeight.dtype": Dtype.COMPLEX64}, words=("gradWeight", "COMPLEX64")),
    Row("5", "gradBias bool", {"gradBias.dtype": Dtype.BOOL}, words=("gradBias", "BOOL", "FLOAT16")),
    *(
        Row("6", f"{name} of another dtype", {f"{name}.dtype": F32}, ANYWHERE - {"Ascend950"}, words=(name, "FLOAT"))
        for name in ("gradInput", "gradWeight", "gradBias")
    ),
    Row("7", "gradOutput NHWC", {"gradOutput.format": Format.NHWC}, words=("gradOutput", "format 1", "NCHW")),
    Row("7", "input NCL", {"input.format": Format.NCL}, words=("input", "format 47", "NCHW")),
    Row("7", "gradInput NDHWC", {"gradInput.format": Format.NDHWC}, words=("gradInput", "format 27", "NCHW")),
    Row("7", "gradWeight FRACTAL_NZ", {"gradWeight.format": Format.FRACTAL_NZ}, words=("gradWeight", "format 29")),
    Row("8", "gradBias NCHW", {"gradBias.format": Format.NCHW}, NARROW | HOST, words=("gradBias", "format 0", "ND")),
    *parameter_rows({"stride": "9", "padding": "10", "dilation": "11"}),
    Row("12", "outputPadding, not transposed", {"outputPadding.values": (0, 1)}, words=("outputPadding", "1")),
    *group_rows("13"),
    *mode_rows(BACKWARD, "14", "15", USE_HF32),
    Row("18", "weight of another rank", {"weight.shape": (6, 2, 6)}, words=("weight",)),
    Row("19", "gradOutput empty", {"gradOutput.shape": (2, 6, 0, 4)}, words=("gradOutput",)),
    Row("20", "gradInput of another shape", {"gradInput.shape": (2, 4, 6, 5)}, words=("gradInput", "2, 4, 5, 6")),
    Row("20", "gradWeight of another shape", {"gradWeight.shape": (6, 2, 2, 3)}, words=("gradWeight", "6, 2, 3, 2")),
    Row("21", "gradBias of another length", {"gradBias.shape": (5,)}, words=("gradBias", "5", "6")),
    Row("21", "gradBias of two dimensions", {"gradBias.shape": (6, 1)}, words=("gradBias", "6")),
    *length_rows("22", ("stride", "dilation", "padding", "outputPadding")),
    Row("23", "groups", {"groups": 3}, words=("input", "groups", "6")),
    Row("25", "gradOutput of other sizes", {"gradOutput.shape": (2, 6, 3, 5)}, words=("gradOutput", "2, 6, 3, 5", "4")),
]

FLAT = Problem(2, 4, 6, (), (), groups=2, stride=(), padding=(), dilation=(), output_padding=())
FOUR_D = Problem(1, 2, 2, (2,) * 4, (1,) * 4, (1,) * 4, (0,) * 4, (1,) * 4, output_padding=(0,) * 4)
NO_BATCH = replace(DEFAULT, batch=0)
NO_CHANNELS = replace(DEFAULT, channels=0)
NO_PIXELS = replace(DEFAULT, sizes=(0, 6), padding=(2, 0))
NO_BATCH_TRANSPOSED = replace(TRANSPOSED, batch=0)
NO_PIXELS_TRANSPOSED = replace(TRANSPOSED, sizes=(0, 6), padding=(0, 0))


def of_channels(problem: Problem, **channels: int) -> Changes:
    """gradOutput, input and gradInput with other channel counts than the weight's."""
    other = replace(problem, **channels).backward()
    return {**problem.backward(), **{key: value for key, value in other.items() if not key.endswith("eight.shape")}}


BACKWARD_MORE = [
    Row("7", "weight NCDHW", {"weight.format": Format.NCDHW}, words=("weight", "format 30", "NCHW")),
    Row("18", "gradOutput of another rank", {"gradOutput.shape": (2, 6, 12)}, words=("gradOutput",)),
    *(
        Row("5", f"{dtype.name}", on_all(BACKWARD, "dtype", dtype), words=("gradOutput", dtype.name, "emulate"))
        for dtype in UNEMULATED
    ),
    Row("5", "bfloat16", on_all(BACKWARD, "dtype", BF16), WITH_BF16, words=("gradOutput", "BFLOAT16", "Ascend910B")),
    Row("5", "doubles", on_all(BACKWARD, "dtype", F64), HOST, words=("gradOutput", "DOUBLE", "host")),
    Row("5", "gradBias double", {"gradBias.dtype": F64}, HOST, words=("gradBias", "DOUBLE", "host")),
    Row("5", "masked off", {"outputMask": NO_WEIGHT, "gradWeight.dtype": I32}, words=("gradWeight", "INT32")),
    Row(
        "7",
        "one-dimensional NCHW",
        {**ONE_D.backward(), "input.format": Format.NCHW},
        words=("input", "format 0", "NCL"),
    ),
    Row("7", "masked off", {"outputMask": NO_INPUT, "gradInput.format": Format.NHWC}, words=("gradInput", "format 1")),
    Row("7", "rank 2", FLAT.backward(), words=("gradOutput", "dimensions")),
    Row("7", "rank 6", FOUR_D.backward(), words=("gradOutput", "dimensions")),
    Row(
        "12", "outputPadding < 0", {**TRANSPOSED.backward(), "outputPadding.values": (1, -1)}, words=("outputPadding",)
    ),
    Row(
        "12",
        "3-D transposed, outputPadding as large as the stride",
        replace(THREE_D_WHOLE, transposed=True, output_padding=(1, 0, 0)).backward(),
        words=("outputPadding",),
    ),
    Row(
        "12",
        "3-D transposed, one outputPadding as large as the last stride",
        replace(
            THREE_D_WHOLE, transposed=True, stride=(2, 2, 1), dilation=(2, 2, 2), padding=(1, 1, 1), output_padding=(1,)
        ).backward(),
        words=("outputPadding",),
    ),
    taken_row(BACKWARD, "14", USE_FP32_ADD, WIDE),
    taken_row(BACKWARD, "14", USE_HIGH_PREC_MODE, ANYWHERE),
    taken_row(BACKWARD, "14", USE_HIGH_PREC_MODE, ANYWHERE, F16),
    Row("15", "one float", {"gradOutput.dtype": F32, "gradBias.dtype": F32}, WIDE, words=("cubeMathType", "FLOAT")),
    Row("18", "input of another rank", {"input.shape": (2, 4, 30), "gradInput.shape": (2, 4, 30)}, words=("input",)),
    Row("19", "weight empty", {"weight.shape": (6, 2, 0, 2), "gradWeight.shape": (6, 2, 0, 2)}, words=("weight",)),
    Row(
        "20", "masked off", {"outputMask": NO_INPUT, "gradInput.shape": (2, 4, 5, 1)}, words=("gradInput", "2, 4, 5, 6")
    ),
    Row(
        "20",
        "masked off",
        {"outputMask": NO_WEIGHT, "gradWeight.shape": (6, 2, 3, 1)},
        words=("gradWeight", "6, 2, 3, 2"),
    ),
    Row("21", "masked off", {"outputMask": NO_BIAS, "gradBias.shape": (5,)}, words=("gradBias", "6")),
    Row("22", "stride of 4", {"stride.values": (2, 1, 2, 1)}, words=("stride", "4")),
    Row("23", "gradOutput's channels", of_channels(DEFAULT, results=8), words=("weight",)),
    Row("23", "input's channels, uneven", of_channels(DEFAULT, channels=5), words=("input",)),
    Row("23", "input's channels", of_channels(DEFAULT, channels=6), words=("input",)),
    Row(
        "23",
        "uneven groups",
        replace(DEFAULT, results=5).backward(),
        words=("groups", "2", "5"),
        source=UNEVEN,
        other=ON_950,
    ),
    Row(
        "23",
        "depthwise, uneven",
        replace(DEPTHWISE, results=6).backward(),
        words=("groups", "4", "6"),
        other=ON_950,
    ),
    Row(
        "23",
        "depthwise, too few",
        replace(DEPTHWISE, results=3).backward(),
        words=("groups", "4", "3"),
        other=ON_950,
    ),
    Row("23", "3-D, uneven groups", replace(THREE_D, results=5).backward(), source=UNEVEN, other=ON_PUBLISHED),
    Row("23", "transposed, input's channels", of_channels(TRANSPOSED, channels=6), words=("input",)),
    Row("23", "transposed, gradOutput's channels", of_channels(TRANSPOSED, results=8), words=("gradOutput",)),
    Row("23", "transposed, groups", {**TRANSPOSED.backward(), "groups": 3}, words=("gradOutput", "groups", "9")),
    Row("25", "1-D", {**ONE_D.backward(), "gradOutput.shape": (2, 6, 5)}, words=("gradOutput", "5", "4")),
    Row(
        "25",
        "transposed",
        {**TRANSPOSED.backward(), "gradOutput.shape": (2, 6, 5, 6)},
        words=("gradOutput", "2, 6, 5, 6", "10"),
    ),
    Row("25", "gradOutput of another batch", {"gradOutput.shape": (3, 6, 3, 4)}, words=("gradOutput", "3", "2")),
    Row("25", "kernel too large", {"dilation.values": (4, 2)}),
    Row("24", "3-D", {**THREE_D_WHOLE.backward(), "gradOutput.shape": (2, 6, 4, 1, 6)}, words=("gradOutput",)),
    Row(
        "24",
        "3-D transposed, without outputPadding",
        {
            **replace(THREE_D_WHOLE, transposed=True, output_padding=(0, 1, 0)).backward(),
            "outputPadding.values": (0, 0, 0),
        },
        WIDE,
    ),
    Row(
        "24",
        "3-D transposed, gradOutput of other sizes",
        {
            **replace(THREE_D_WHOLE, transposed=True, output_padding=(0, 2, 0)).backward(),
            "outputPadding.values": (0, 0, 0),
        },
        words=("gradOutput", "stride"),
    ),
    Row("24", "3-D, kernel too large", {**THREE_D_WHOLE.backward(), "dilation.values": (9, 1, 1)}),
    Row("26", "3-D", THREE_D_WHOLE.backward(), WIDE, words=("3-D", "Ascend910B")),
    Row("26", "3-D transposed", replace(THREE_D_WHOLE, transposed=True).backward(), WIDE, words=("Ascend910B",)),
    Row("26", "3-D as ND", {**THREE_D_WHOLE.backward(), **formatted(BACKWARD, Format.ND)}, WIDE),
    Row("28", "3-D, groups", THREE_D.backward(), WIDE),
    Row("28", "3-D, groups, floats", {**THREE_D.backward(), **on_all(BACKWARD, "dtype", F32)}, WIDE),
    Row(
        "28",
        "3-D, groups, FP32 gradWeight of 16-bit tensors",
        {**THREE_D.backward(), "gradWeight.dtype": F32},
        HOST,  # Ascend950 refuses it for row 6
    ),
    Row(
        "28",
        "3-D, groups, floats as FP16",
        {**THREE_D.backward(), **on_all(BACKWARD, "dtype", F32), "cubeMathType": USE_FP16},
        HOST | {"Ascend950"},
    ),
    *(
        in_volumes("29", f"3-D, {condition}", changes, INNER_NULLPTR, NOWHERE)
        for condition, changes in (
            ("a kernel that moves by itself", volume((1, 128, 1), kernel=(1, 64, 1), stride=(1, 64, 1)).backward()),
            ("stride 64, only gradWeight", {**volume((1, 65, 1), stride=(1, 64, 1)).backward(), **ONLY_WEIGHT}),
            (
                "transposed, stride 64, only gradWeight",
                {**volume((1, 2, 1), stride=(1, 64, 1), transposed=True).backward(), **ONLY_WEIGHT},
            ),
            (
                "dilation 256 of one tap, only gradInput",
                {**volume((1, 2, 1), dilation=(1, 256, 1)).backward(), **ONLY_INPUT},
            ),
            ("width 4097", volume((1, 1, 4097)).backward()),
            ("groups, rows within a core's memory", wide_rows(4056).backward()),
        )
    ),
    *(
        Row(
            "29",
            f"groups 65536{name}",
            many_groups(transposed, spatial).backward(),
            words=("groups", "65536", "65535"),
            source=ops_nn(_INPUT_GRADIENT, "CheckGroupsAndFilterRange"),
            other=ON_PUBLISHED if spatial == 3 else ON_950,
        )
        for name, transposed, spatial in (("", False, 1), (", transposed", True, 2), (", 3-D", False, 3))
    ),
    Row(
        "29",
        "3-D, gradOutput of another batch",
        {**THREE_D_WHOLE.backward(), "gradOutput.shape": (3, *THREE_D_WHOLE.output[1:])},
        words=("gradOutput", "3", "2"),
        source=ops_nn(_INPUT_GRADIENT, "CheckBatchConsistency"),
        other=ON_PUBLISHED,
    ),
    *(
        in_volumes("29", condition, changes, INNER_NULLPTR, A2_AND_A3, source)
        for condition, changes, source in (
            (
                "3-D, stride 64 in H",
                volume((1, 65, 1), stride=(1, 64, 1)).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckAttrs"),
            ),
            (
                "3-D, stride 256 in D",
                volume((257, 1, 1), stride=(256, 1, 1)).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckAttrs"),
            ),
            (
                "3-D, dilation 256 in W",
                volume((1, 1, 257), kernel=(1, 1, 2), dilation=(1, 1, 256)).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckDilationsRangeInParams"),
            ),
            (
                "3-D, padding 256 in D",
                volume((1, 1, 1), padding=(256, 0, 0)).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckPadRange"),
            ),
            (
                "3-D, kernel 512 in H",
                volume((1, 513, 1), kernel=(1, 512, 1)).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckGroupsAndFilterRange"),
            ),
            (
                "3-D, floats of width 4097",
                {**volume((1, 1, 4097), kernel=(1, 1, 2)).backward(), **on_all(BACKWARD, "dtype", F32)},
                ops_nn(_INPUT_GRADIENT, "CheckAlignAndSizeLimits"),
            ),
            (
                "3-D, groups, rows beyond a core's memory",
                wide_rows(4057).backward(),
                ops_nn(_INPUT_GRADIENT, "CheckL1SizeLimit"),
            ),
            (
                "3-D, dilation 256 in H, only gradWeight",
                {**volume((1, 257, 1), kernel=(1, 2, 1), dilation=(1, 256, 1)).backward(), **ONLY_WEIGHT},
                ops_nn(_WEIGHT_GRADIENT, "CheckDilationsRange"),
            ),
            (
                "3-D, padding 256 in W, only gradWeight",
                {**volume((1, 1, 1), padding=(0, 0, 256)).backward(), **ONLY_WEIGHT},
                ops_nn(_WEIGHT_GRADIENT, "CheckPadsRange"),
            ),
        )
    ),
    *(
        in_volumes("30", condition, changes, INNER_NULLPTR, PUBLISHED)
        for condition, changes in (
            ("3-D transposed, stride 64 in H", volume((1, 2, 1), stride=(1, 64, 1), transposed=True).backward()),
            (
                "3-D transposed, dilation 256 in W",
                volume((1, 1, 1), dilation=(1, 1, 256), transposed=True).backward(),
            ),
        )
    ),
    *(
        Row("30", condition, problem.backward(), ANYWHERE - {"Ascend950"}, INNER_NULLPTR)
        for condition, problem in (
            ("2-D transposed, stride 64", flat((2, 1), stride=(64, 1), transposed=True)),
            ("2-D transposed, dilation 256", flat((1, 1), dilation=(1, 256), transposed=True)),
            ("2-D transposed, kernel 512", flat((1, 1), kernel=(1, 512), transposed=True)),
            ("1-D transposed, stride 64", flat((2,), stride=(64,), transposed=True)),
        )
    ),
    # Empty tensors. On products without FP32 matrix units, checks 18 to 25 apply to them, too.
    Row("16", "no batch", NO_BATCH.backward(), WIDE, words=("gradOutput",)),
    Row("16", "no channels", NO_CHANNELS.backward(), WIDE, words=("weight",)),
    Row("16", "no batch, transposed", NO_BATCH_TRANSPOSED.backward(), WIDE, words=("gradOutput",)),
    Row("16", "no batch, gradients of other shapes", {**NO_BATCH.backward(), "gradWeight.shape": (7, 1, 3, 2)}, WIDE),
    Row("16", "no batch, gradOutput of other channels than weight", of_channels(NO_BATCH, results=5), WIDE),
    Row(
        "16",
        "no batch, transposed, channels of gradOutput",
        {**NO_BATCH_TRANSPOSED.backward(), "gradOutput.shape": (0, 5, 10, 8)},
        WIDE,
    ),
    Row("17", "no pixels", NO_PIXELS.backward(), words=("input", "0")),
    Row("17", "no batch, biasSizes of 2", {**NO_BATCH.backward(), "biasSizes": Ints((6, 6))}),
    Row("17", "no batch, biasSizes of none", {**NO_BATCH.backward(), "biasSizes": Ints(())}),
    Row("17", "no batch, another biasSizes", {**NO_BATCH.backward(), "biasSizes": Ints((5,))}),
    Row("17", "no batch, biasSizes of weight", {**of_channels(NO_BATCH, results=5), "biasSizes": Ints((6,))}),
    Row("17", "no batch, transposed, another biasSizes", {**NO_BATCH_TRANSPOSED.backward(), "biasSizes": Ints((3,))}),
    Row("17", "no batch, biasSizes null", {**NO_BATCH.backward(), "biasSizes": None}, code=PARAM_NULLPTR),
    Row("17", "no batch, stride of 3", {**NO_BATCH.backward(), "stride.values": (2, 1, 1)}),
    Row("17", "no batch, uneven groups", replace(NO_BATCH, results=5).backward()),
    Row("17", "no batch, channels", of_channels(NO_BATCH, channels=6)),
    Row("17", "no channels, but the weight's", of_channels(replace(NO_BATCH, channels=4), channels=0)),
    Row("17", "no batch, transposed, channels", of_channels(NO_BATCH_TRANSPOSED, channels=6)),
    Row("17", "no channels, transposed", replace(TRANSPOSED, channels=0).backward()),
    Row(
        "17",
        "no pixels, transposed, channels of gradOutput",
        {**NO_PIXELS_TRANSPOSED.backward(), "gradOutput.shape": (2, 5, 2, 8), "outputMask": NO_INPUT},
        words=("gradOutput", "5", "6"),
    ),
    Row("17", "no batch, kernel too large", {**NO_BATCH.backward(), "dilation.values": (4, 2)}),
]

BACKWARD_ACCEPTED = [
    *same_on_all(BACKWARD, Problem.backward),
    *unchecked(
        "4",
        {
            "only gradInput": {"outputMask": Bools((True, False, False)), "gradWeight": None, "gradBias": None},
            "only gradWeight": {"outputMask": Bools((False, True, False)), "gradInput": None, "gradBias": None},
            "only gradBias": {"outputMask": Bools((False, False, True)), "gradInput": None, "gradWeight": None},
            "nothing, all null": {
                **{"outputMask": Bools((False,) * 3), "gradInput": None, "gradWeight": None},
                **{"gradBias": None, "biasSizes": None},
            },
            **{
                f"outputMask {mask}, none null": {"outputMask": Bools(mask)}
                for mask in product((True, False), repeat=3)
            },
        },
    ),
    *unchecked(
        "22",
        {"transposed, outputPadding of 4": {**TRANSPOSED.backward(), "outputPadding.values": (1, 5, 0, 0)}},
    ),
    *unchecked(
        "24",
        {
            "transposed, another outputPadding": {**TRANSPOSED.backward(), "outputPadding.values": (0, 0)},
            "transposed, outputPadding beyond the stride": {**TRANSPOSED.backward(), "outputPadding.values": (7, 9)},
            "1-D transposed, without outputPadding": {
                **replace(ONE_D, transposed=True, output_padding=(1,)).backward(),
                "outputPadding.values": (0,),
            },
        },
    ),
    *unchecked("own rule", {"biasSizes null, no gradBias": {"outputMask": NO_BIAS, "biasSizes": None}}),
    *unchecked("17", {"biasSizes of another length": {"biasSizes": Ints((1, 2))}, "of none": {"biasSizes": Ints(())}}),
    *unchecked(
        "17",
        {
            "no pixels, no gradInput": {**NO_PIXELS.backward(), "outputMask": NO_INPUT},
            "no pixels, transposed, no gradInput": {**NO_PIXELS_TRANSPOSED.backward(), "outputMask": NO_INPUT},
        },
    ),
]

# ---- aclnnConvolution: conditions

REGISTERED = ops_nn(_FORWARD, "UpdateOutputDtype", "ConvL0Warper")
WITHOUT_VOLUMES = frozenset({"Ascend910"})

FORWARD_ORDER = [
    *nulls(FORWARD),
    Row("2", "input of integers", {"input.dtype": I32}, words=("input", "INT32", "FLOAT16")),
    Row("2", "weight complex", {"weight.dtype": Dtype.COMPLEX64}, words=("weight", "COMPLEX64", "FLOAT16")),
    Row("2", "output of integers", {"output.dtype": I32}, words=("output", "INT32", "FLOAT16")),
    Row("2", "bias bool", {"bias.dtype": Dtype.BOOL}, words=("bias", "BOOL", "FLOAT16")),
    Row("3", "weight of another rank", {"weight.shape": (6, 2, 6)}, words=("weight",)),
    Row("3", "bias of another length", {"bias.shape": (5,)}, words=("bias", "5", "6")),
    Row("3", "bias of two dimensions", {"bias.shape": (6, 1)}, words=("bias", "6")),
    *length_rows("3", ("stride", "dilation", "padding")),
    Row("4", "input NHWC", {"input.format": Format.NHWC}, words=("input", "format 1", "NCHW")),
    Row("4", "weight NCL", {"weight.format": Format.NCL}, words=("weight", "format 47", "NCHW")),
    Row("5", "kernel empty", {"weight.shape": (6, 2, 0, 2)}, words=("weight", "0")),
    *parameter_rows({"stride": "5", "dilation": "5"}),
    *group_rows("5"),
    Row("5", "groups", {"groups": 3}, words=("input", "groups", "6")),
    Row("6", "output of other sizes", {"output.shape": (2, 6, 3, 5)}, words=("output", "2, 6, 3, 5", "4")),
    *mode_rows(FORWARD, "7", "7", USE_FP32_ADD),
]
FORWARD_MORE = [
    Row("1", "outputPadding null, transposed", {**TRANSPOSED.forward(), "outputPadding": None}, code=PARAM_NULLPTR),
    *(
        Row("2", f"{dtype.name}", on_all(FORWARD, "dtype", dtype), words=("input", dtype.name, "emulate"))
        for dtype in UNEMULATED
    ),
    Row("2", "bfloat16", on_all(FORWARD, "dtype", BF16), WITH_BF16, words=("input", "BFLOAT16", "Ascend910B")),
    Row("2", "doubles", on_all(FORWARD, "dtype", F64), HOST, words=("input", "DOUBLE", "host")),
    Row("2", "output double", {"output.dtype": F64}, HOST, words=("output", "DOUBLE", "host")),
    Row("3", "rank 2", FLAT.forward(), words=("input", "dimensions")),
    Row("3", "rank 6", FOUR_D.forward(), words=("input", "dimensions")),
    Row("3", "input of another rank", {"input.shape": (2, 4, 30)}),
    Row("3", "output of another rank", {"output.shape": (2, 6, 12)}, words=("output",)),
    Row("3", "transposed, bias", {**TRANSPOSED.forward(), "bias.shape": (3,)}, words=("bias", "3", "6")),
    Row(
        "3",
        "transposed, outputPadding of 3",
        {**TRANSPOSED.forward(), "outputPadding.values": (1, 0, 0)},
        words=("outputPadding", "3"),
    ),
    Row(
        "4",
        "one-dimensional NCHW",
        {**ONE_D.forward(), "input.format": Format.NCHW},
        words=("input", "format 0", "NCL"),
    ),
    Row("4", "output NCDHW", {"output.format": Format.NCDHW}, words=("output", "format 30")),
    Row("4", "output of another format", {"output.format": Format.ND}, words=("output", "format 2")),
    Row("4", "bias NHWC", {"bias.format": Format.NHWC}, words=("bias", "format 1")),
    Row("5", "input's channels", {"input.shape": (2, 6, 5, 6)}, words=("input",)),
    Row("5", "uneven groups", replace(DEFAULT, results=5).forward(), words=("groups", "2", "5")),
    Row("5", "depthwise, uneven", replace(DEPTHWISE, results=6).forward(), words=("groups", "4", "6")),
    Row("5", "transposed, input's channels", {**TRANSPOSED.forward(), "input.shape": (2, 6, 5, 6)}, words=("input",)),
    Row("5", "outputPadding < 0", {**TRANSPOSED.forward(), "outputPadding.values": (1, -1)}, words=("outputPadding",)),
    Row(
        "5",
        "outputPadding as large as stride and dilation",
        replace(TRANSPOSED, output_padding=(2, 0)).forward(),
        words=("outputPadding", "2"),
    ),
    Row("5", "kernel too large", {"dilation.values": (4, 2)}),
    Row(
        "5",
        "transposed, a kernel of no size",
        flat((1,), kernel=(0,), transposed=True).forward(),
        HOST | {"Ascend950"},
        words=("weight", "0"),
    ),
    Row(
        "6",
        "transposed, a kernel of no size where output has one",
        flat((2,), kernel=(0,), transposed=True).forward(),
        HOST,
        words=("weight", "1, 1, 0"),
        source=ops_nn(_FORWARD, "CheckEmptyTensorTransposed"),
    ),
    Row("6", "output of another batch", {"output.shape": (3, 6, 3, 4)}, words=("output", "3, 6, 3, 4", "2")),
    Row("6", "output of other channels", {"output.shape": (2, 5, 3, 4)}, words=("output", "2, 5, 3, 4", "6")),
    Row("6", "1-D", {**ONE_D.forward(), "output.shape": (2, 6, 5)}, words=("output",)),
    Row("6", "transposed", {**TRANSPOSED.forward(), "output.shape": (2, 6, 5, 6)}, words=("output",)),
    Row("6", "no channels", replace(DEFAULT, channels=0).forward(), HOST, words=("input", "output")),
    Row("6", "no pixels", NO_PIXELS.forward(), HOST, words=("input", "output")),
    Row("6", "no channels, transposed", replace(TRANSPOSED, channels=0).forward(), HOST, words=("input", "channels")),
    Row(
        "6",
        "no pixels, transposed",
        replace(TRANSPOSED, sizes=(0, 6)).forward(),
        ANYWHERE - {"Ascend950"},
        words=("input", "spatial"),
        source=ops_nn(_FORWARD, "CheckEmptyTensorTransposed"),
    ),
    *(
        Row(
            "6",
            f"{name} transposed, a kernel beyond the padding",
            problem.forward(),
            HOST | {"Ascend950"},
            words=("padding", str(over)),
            source=ops_nn(_FORWARD, "padBinaryValid"),
            until=Until("9.0", HOST),
        )
        for name, problem, over in (
            ("1-D", flat((2,), kernel=(257,), transposed=True), 256),
            ("2-D", flat((2, 1), kernel=(301, 1), padding=(44, 0), transposed=True), 256),
            ("2-D with four paddings", flat((1, 2), kernel=(1, 257), padding=(0, 0, 1, 1), transposed=True), 256),
        )
    ),
    in_volumes(
        "6",
        "3-D transposed, a padding beyond the kernel",
        volume((1, 3, 1), padding=(0, 1, 0), transposed=True).forward(),
        PARAM_INVALID,
        A2_AND_A3,
        ops_nn(_FORWARD, "padBinaryValid"),
    )._replace(until=Until("9.0", HOST)),
    taken_row(FORWARD, "7", USE_HIGH_PREC_MODE, ANYWHERE),
    Row("7", "floats with FP32 sums", {**on_all(FORWARD, "dtype", F32), "cubeMathType": USE_FP32_ADD}, WIDE),
    Row("7", "one float", {"weight.dtype": F32}, WIDE, words=("cubeMathType", "0", "FLOAT")),
    Row("8", "3-D", THREE_D.forward(), WIDE | {"Ascend310P"}, words=("3-D", "Ascend910B")),
    Row("8", "3-D as ND", {**THREE_D.forward(), **formatted(FORWARD, Format.ND)}, WIDE | {"Ascend310P"}),
    Row(
        "8",
        "3-D, floats as FP16",
        {**THREE_D.forward(), **on_all(FORWARD, "dtype", F32), "cubeMathType": 1},
        WIDE,
        words=("3-D", "Ascend910B"),
    ),
    Row("8", "3-D transposed", replace(THREE_D, transposed=True).forward(), WIDE, words=("Ascend910B",)),
    Row("8", "3-D, a bias of floats", {**THREE_D.forward(), "bias.dtype": F32}, WIDE | {"Ascend310P"}),
    *(
        Row("9", condition, problem.forward(), code=RUNTIME_ERROR, words=("padding", "-1"))
        for condition, problem in (
            ("padding < 0", replace(DEFAULT, padding=(1, -1))),
            ("transposed, padding < 0", replace(TRANSPOSED, padding=(1, -1))),
        )
    ),
    Row(
        "9",
        "transposed, output of floats",
        {**TRANSPOSED.forward(), "output.dtype": F32},
        NARROW | HOST,
        RUNTIME_ERROR,
        ("output", "FLOAT", "FLOAT16"),
        REGISTERED,
    ),
    Row(
        "9",
        "1-D transposed, one position to floats",
        {**flat((1,), kernel=(3,), transposed=True).forward(), "output.dtype": F32, "bias": None},
        NARROW | HOST | {"Ascend950"},
        RUNTIME_ERROR,
        source=REGISTERED,
    ),
    Row(
        "9",
        "groups 65536, transposed",
        many_groups(True, 2).forward(),
        words=("groups", "65536", "65535"),
        source=ops_nn(_INPUT_GRADIENT, "CheckAttrs"),
        other=(frozenset({"Ascend950"}), RUNTIME_ERROR),
    ),
    Row(
        "9",
        "groups 65536, 3-D transposed",
        many_groups(True, 3).forward(),
        words=("groups", "65536", "65535"),
        source=ops_nn(_INPUT_GRADIENT, "CheckAttrs"),
        other=(PUBLISHED, RUNTIME_ERROR),
    ),
    *(
        in_volumes("9", f"3-D transposed, {condition}", changes, RUNTIME_ERROR, A2_AND_A3, source)
        for condition, changes, source in (
            (
                "stride 64 in H",
                volume((1, 2, 1), stride=(1, 64, 1), transposed=True).forward(),
                ops_nn(_INPUT_GRADIENT, "CheckAttrs"),
            ),
            (
                "dilation 256 in H",
                volume((1, 3, 1), kernel=(1, 2, 1), padding=(0, 1, 0), dilation=(1, 256, 1), transposed=True).forward(),
                ops_nn(_INPUT_GRADIENT, "CheckDilationsRangeInParams"),
            ),
            (
                "padding 256 in D",
                volume((513, 1, 1), padding=(256, 0, 0), transposed=True).forward(),
                ops_nn(_INPUT_GRADIENT, "CheckPadRange"),
            ),
            (
                "floats of width 4097",
                {**volume((1, 1, 4097), transposed=True).forward(), **on_all(FORWARD, "dtype", F32)},
                ops_nn(_INPUT_GRADIENT, "CheckAlignAndSizeLimits"),
            ),
            (
                "groups, rows beyond a core's memory",
                replace(wide_rows(4057), transposed=True).forward(),
                ops_nn(_INPUT_GRADIENT, "CheckL1SizeLimit"),
            ),
        )
    ),
    *(
        in_volumes("9", f"3-D transposed, {condition}", problem.forward(), RUNTIME_ERROR, NOWHERE)
        for condition, problem in (
            ("width 4097", volume((1, 1, 4097), transposed=True)),
            ("groups, rows within a core's memory", replace(wide_rows(4056), transposed=True)),
        )
    ),
    # CANN's stage 1 succeeds, and stage 2 finds no operator.
    Row("10", "groups 65536", many_groups(False, 1).forward(), words=("groups", "65536", "65535"), other=ON_950),
    Row("10", "groups 65536, 3-D", many_groups(False, 3).forward(), words=("groups", "65536", "65535"), other=ON_950),
    *(
        in_volumes("10", f"3-D, {condition}", problem.forward(), INNER_NULLPTR, refusing, without=WITHOUT_VOLUMES)
        for condition, problem, refusing in (
            ("stride 64 in H", volume((1, 2, 1), stride=(1, 64, 1)), PUBLISHED),
            ("dilation 256 in W", volume((1, 1, 2), dilation=(1, 1, 256)), PUBLISHED),
            ("padding 256 in H", volume((1, 2, 1), padding=(0, 256, 0)), PUBLISHED),
            ("kernel 512 in H", volume((1, 513, 1), kernel=(1, 512, 1)), PUBLISHED),
            ("kernel of 4096 taps", volume((1, 64, 65), kernel=(1, 64, 64)), PUBLISHED),
            ("groups, rows beyond a core's memory", wide_rows(4097), A2_AND_A3),
            ("one tap, rows beyond a core's memory", volume((1, 2, 8193)), A2_AND_A3),
            ("stride 1000001 in D", volume((2, 1, 1), stride=(1000001, 1, 1)), frozenset({"Ascend950"})),
        )
    ),
    *(
        Row("10", condition, problem.forward(), ANYWHERE - {"Ascend950"}, INNER_NULLPTR, ("stride", "1000001"))
        for condition, problem in (
            ("stride 1000001", flat((2, 1), stride=(1000001, 1))),
            ("1-D, stride 1000001", flat((2,), stride=(1000001,))),
        )
    ),
    *(
        in_volumes("10", f"3-D, {condition}", changes, INNER_NULLPTR, NOWHERE, without=WITHOUT_VOLUMES)
        for condition, changes in (
            (
                "stride 63, dilation and padding 255",
                volume((1, 2, 1), stride=(1, 63, 63), padding=(0, 255, 255)).forward(),
            ),
            ("stride 64, a matrix product", volume((1, 1, 1), stride=(1, 64, 64)).forward()),
            ("groups, rows within a core's memory", {**wide_rows(4096).forward(), "bias": None}),
            ("stride 256, dilation 256 in D", volume((2, 2, 2), stride=(256, 1, 1), dilation=(256, 1, 1)).forward()),
            ("rows of columns within a core's memory", volume((1, 4, 5000), kernel=(1, 3, 3)).forward()),
        )
    ),
]
FORWARD_ACCEPTED = [
    *same_on_all(FORWARD, Problem.forward),
    *unchecked("1", {"no bias": {"bias": None}, "outputPadding null": {"outputPadding": None}}),
    *unchecked(
        "4",
        {
            f"bias {format.name}": {"bias.format": format}
            for format in (Format.NCL, Format.NCHW, Format.NCDHW, Format.ND)
        },
    ),
    *unchecked("-", {"no batch": NO_BATCH.forward()}),
    *unchecked(
        "5",
        {
            "no batch, kernel too large": {
                **NO_BATCH.forward(),
                "dilation.values": (4, 2),
                "output.shape": (0, 6, 0, 4),
            },
            "no batch, kernel larger by one": {
                **replace(NO_BATCH, sizes=(6, 6)).forward(),
                "dilation.values": (4, 2),
                "output.shape": (0, 6, 1, 4),
            },
        },
    ),
    *unchecked(
        "6",
        {
            "transposed, output of no size": flat((1, 1), kernel=(2, 2), padding=(1, 1), transposed=True).forward(),
            "transposed, a kernel as large as the padding lets": flat((2,), kernel=(256,), transposed=True).forward(),
        },
    ),
    *unchecked("7", {"mode 4": {"cubeMathType": USE_FP32_ADD}, "a bias of floats": {"bias.dtype": F32}}),
    *unchecked(
        "9",
        {
            "transposed, output of floats, mode 2": {
                **TRANSPOSED.forward(),
                "output.dtype": F32,
                "cubeMathType": USE_FP16,
            }
        },
    ),
    *unchecked("10", {"a matrix product of stride 1000001": flat((1, 1), stride=(1000001, 1)).forward()}),
]

# ---- dtypes: the products whose checkers accept each, and those that compute it with KEEP_DTYPE

SUPPORTED = {F16: ANYWHERE, F32: ANYWHERE, BF16: WITH_BF16, F64: HOST}
KEPT = {**SUPPORTED, F32: WIDE}


def accepts(dtypes: dict[str, Dtype], product: str) -> bool:
    """Each tensor has one of the product's dtypes; with KEEP_DTYPE no float reaches FP16 matrix units; and on Ascend950
    the gradients have the dtypes of their tensors."""
    if any(product not in SUPPORTED.get(dtype, NOWHERE) for dtype in dtypes.values()):
        return False
    if product in NARROW:
        names = ("gradOutput", "input", "weight") if "gradOutput" in dtypes else ("input", "weight")
        return promoted(dtypes[name] for name in names) == F16
    if product == "Ascend950" and "gradOutput" in dtypes:
        gradients = (("gradInput", "input"), ("gradWeight", "weight"), ("gradBias", "gradOutput"))
        return all(dtypes[gradient] == dtypes[tensor] for gradient, tensor in gradients)
    return True


# ---- any call


def any_problem(draw: st.DrawFn) -> Problem:
    """A small convolution of any kind."""
    rank, transposed = draw(st.sampled_from((1, 2, 2, 3))), draw(st.booleans())
    few, groups = st.integers(1, 3), draw(st.sampled_from((1, 1, 2, 3)))

    def dims(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(values) for _ in range(rank))

    kernel, stride, dilation, padding = dims(few), dims(few), dims(st.integers(1, 2)), dims(st.integers(0, 2))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if transposed:
        sizes = dims(few)
        more = tuple(draw(st.integers(0, s - 1)) for s in stride)
        full = [(size - 1) * s + span for size, s, span in zip(sizes, stride, spans, strict=True)]
        padding = tuple(min(p, (size - 1) // 2) for p, size in zip(padding, full, strict=True))
    else:
        more = (0,) * rank
        sizes = tuple(max(span - 2 * p, 1) + draw(st.integers(0, 3)) for span, p in zip(spans, padding, strict=True))
    if rank == 2 and draw(st.booleans()):
        before, after = padding, tuple(draw(st.integers(p, p + 1)) if not transposed else p for p in padding)
        padding = (before[0], after[0], before[1], after[1])
    if len(set(stride)) == 1 and draw(st.booleans()):
        stride = stride[:1]
    return Problem(
        draw(st.integers(1, 3)),
        groups * draw(few),
        groups * draw(few),
        sizes,
        kernel,
        stride,
        padding,
        dilation,
        transposed,
        more,
        groups,
    )


def any_call(draw: st.DrawFn, operator: Operator) -> Changes:
    """Any problem, layout, dtypes, mode and mask."""
    problem = any_problem(draw)
    changes = problem.forward() if operator is FORWARD else problem.backward()
    usual = draw(st.sampled_from((F32, F16, BF16, F64)))
    mixed = usual != F64 and draw(st.booleans())
    changes["cubeMathType"] = KEEP_DTYPE if usual == F64 else draw(st.integers(0, 3))
    for name in operator.tensors:
        dtype = draw(st.sampled_from((F32, F16, BF16))) if mixed and name != "bias" else usual
        changes[name] = Tensor(dtype, **draw(layouts(changes.pop(f"{name}.shape"), zero_stride=operator.reads(name))))
    if operator is FORWARD:
        return {**changes, "bias": None} if draw(st.booleans()) else changes
    mask = Bools(tuple(draw(st.booleans()) for _ in range(3)))
    absent = {
        name: None for name, on in zip(operator.outputs, mask.values, strict=True) if not on and draw(st.booleans())
    }
    return {**changes, "outputMask": mask, **absent}


# ---- where the host differs from CANN on purpose

DEVIATIONS = (
    Deviation("aclnnConvolution(Backward)?", "2|5", r"HIFLOAT8|FLOAT8_\w+", "convolution"),
    Deviation("aclnnConvolutionBackward", "own rule", "biasSizes null.*", "convolution"),
    Deviation("aclnnConvolutionBackward", "25", ".*", "convolution"),
    Deviation("aclnnConvolution(Backward)?", "-", "one value for all dimensions", "convolution"),
    Deviation("aclnnConvolution", "10", ".*", "convolution"),
    Deviation("aclnnConvolutionBackward", "30", ".*", "convolution"),
    Deviation("aclnnConvolution", "-|8", ".* as ND", "convolution"),
    Deviation("aclnnConvolutionBackward", "-|26", "[23]-D.* as ND", "convolution"),
)


# ---- where the rows come from

SOURCES = {
    "aclnnConvolution": Sources(
        {
            "1": ops_nn(_FORWARD, "NullptrChecker::Check"),
            "2": ops_nn(_FORWARD, "NullptrChecker::Check", "DtypeChecker::Check"),
            "3": ops_nn(_FORWARD, "DimChecker::Check"),
            "4": ops_nn(_FORWARD, "FormatChecker::Check"),
            "5": ops_nn(_FORWARD, "ValueChecker::Check"),
            "6": ops_nn(_FORWARD, "ConvXdChecker::Check"),
            "7": ops_nn(_FORWARD, "HardwareLimitChecker::Check"),
            "8": document("conv/convolution_forward/docs/aclnnConvolution.md"),  # no checker tests the product
            "9": ops_nn("conv/common/op_host/conv_forward_infershape.cpp", "CheckPositivePads"),
        },
        ops_nn(_FORWARD, "CheckConvParams"),
        {
            r"(floats, )?mode \d": ops_nn(_FORWARD, "HardwareLimitChecker::Check"),
            "1-D|[12]-D transposed": ops_nn(_FORWARD, "DimChecker::CheckTensorDimensions"),
            "four paddings.*": ops_nn(_FORWARD, "DimChecker::CheckParameterSizes"),
            "padding .*|kernel as large as the padded input|stride past the input": ops_nn(
                _FORWARD, "ValueChecker::CheckPad"
            ),
            "one group|depthwise.*|as many groups as there can be": ops_nn(
                _FORWARD, "ValueChecker::CheckChannelAndGroups"
            ),
            "one pixel": ops_nn(_FORWARD, "ValueChecker::CheckShape"),
            "no batch": ops_nn(_FORWARD, "ValueChecker::CheckEmptyTensor"),
            "outputPadding below the dilation": ops_nn(_FORWARD, "ConvXdChecker::Check"),
        },
    ),
    "aclnnConvolutionBackward": Sources(
        {
            "1": RESULTS,
            **dict.fromkeys("234", ops_nn(_CHECKER, "CheckNotNull")),
            "5": ops_nn(_CHECKER, "CheckDtypeValid"),
            "6": ops_nn(_CHECKER, "CheckDataTypeValidForGradInput"),
            "7": ops_nn(_CHECKER, "CheckFormatValid"),
            **dict.fromkeys(("9", "10", "11", "12", "13"), ops_nn(_CHECKER, "CheckConvParams")),
            "14": ops_nn(_CHECKER, "CheckCubeMathTypeConvBackward"),
            "15": ops_nn(_CHECKER, "CheckCubeMathTypeConvBackward"),
            "17": ops_nn(_CHECKER, "CheckEmptyTensor", "CheckShapeEmpty"),
            **dict.fromkeys(("18", "19", "20", "21", "22"), ops_nn(_CHECKER, "CheckConvShape")),
            "23": ops_nn(_CHECKER, "CheckConvChannelAndGroup"),
            "24": ops_nn(_CHECKER, "CheckConvShapePlus"),
            "26": ops_nn(_BACKWARD, "aclnnConvolutionBackwardGetWorkspaceSize"),
            "28": ops_nn(_BACKWARD, "CheckSupportedForConv3dBackpropFilter"),
            "29": ops_nn(_INPUT_GRADIENT, "CheckParams", "CheckAttrs"),
        },
        ops_nn(_CHECKER, "CheckParams"),
        {
            r"(floats, )?mode \d": ops_nn(_CHECKER, "CheckCubeMathTypeConvBackward"),
            "1-D|[12]-D transposed": ops_nn(_CHECKER, "CheckConvShape"),
            "1-D as ND": ops_nn(_CHECKER, "CheckFormatValid"),
            "four paddings.*": ops_nn(_CHECKER, "CheckConvShape"),
            "padding .*|outputPadding .*|stride past the input": ops_nn(_CHECKER, "CheckConvParams"),
            "one group|depthwise.*|as many groups as there can be": ops_nn(_CHECKER, "CheckConvChannelAndGroup"),
            "kernel as large as the padded input|one pixel": ops_nn(_CHECKER, "CheckParams"),
        },
    ),
}


def table(
    operator: Operator, call: Callable[[Problem], Changes], order: list[Row], more: list[Row], accepted: list[Row]
) -> Table:
    """The parts that the two tables share."""
    shaped = (ONE_D, DEFAULT, TRANSPOSED, DEPTHWISE, THREE_D)
    return Table(
        operator,
        checks=[row for row in order if not row.accepted],
        more=[*(row for row in order if row.accepted), *more],
        accepted=accepted,
        dtypes=[DtypeRow((dtype,) * len(operator.tensors), products) for dtype, products in KEPT.items()],
        shapes=[call(problem) for problem in shaped],
        calls=lambda draw: any_call(draw, operator),
        sources=SOURCES[operator.api],
        accepts=accepts,
    )


TABLES = (
    table(FORWARD, Problem.forward, FORWARD_ORDER, FORWARD_MORE, FORWARD_ACCEPTED),
    table(BACKWARD, Problem.backward, BACKWARD_ORDER, BACKWARD_MORE, BACKWARD_ACCEPTED),
)
