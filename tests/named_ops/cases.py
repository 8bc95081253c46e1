"""One or more calls of every named operator, with the expected results by torch's functions and by formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.named_ops.call import Attribute, Host, Input


@dataclass(frozen=True)
class Case:
    name: str
    inputs: Sequence[Input]
    expected: Sequence[Tensor]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    exact: bool = False
    sized: bool = False  # the outputs have spare memory


def _numbers(*shape: int, low: float = -2, high: float = 2, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low


def _grad(function: Callable[..., Tensor], *inputs: Tensor, by: int = 0, grad: Tensor | None = None) -> Tensor:
    """The gradient of an input by torch's autograd."""
    leaves = [x.clone().requires_grad_(i == by) for i, x in enumerate(inputs)]
    result = function(*leaves)
    result.backward(torch.ones_like(result) if grad is None else grad)
    gradient = leaves[by].grad
    assert gradient is not None
    return gradient


X = _numbers(3, 5)
Y = _numbers(3, 5, seed=1)
P = _numbers(3, 5, low=0.1, high=0.9)
G = _numbers(3, 5, seed=2)
IMAGE = _numbers(2, 4, 7, 8)
N = torch.arange(15, dtype=torch.int32).view(3, 5) - 7
J = torch.arange(15, dtype=torch.int32).view(3, 5) % 4 + 1
B = X > 0

UNARY: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "Abs": (torch.abs, X), "Acos": (torch.acos, P), "Acosh": (torch.acosh, P + 1), "Asin": (torch.asin, P),
    "Asinh": (torch.asinh, X), "Atan": (torch.atan, X), "Atanh": (torch.atanh, P), "Ceil": (torch.ceil, X),
    "Cos": (torch.cos, X), "Cosh": (torch.cosh, X), "Erf": (torch.erf, X), "Erfc": (torch.erfc, X),
    "Erfinv": (torch.erfinv, P), "Expm1": (torch.expm1, X), "Floor": (torch.floor, X), "Exp": (torch.exp, X),
    "IsFinite": (torch.isfinite, 1 / (X - X[0, 0])), "Log1p": (torch.log1p, P), "LogicalNot": (torch.logical_not, B),
    "Neg": (torch.neg, X), "Reciprocal": (torch.reciprocal, P), "Rsqrt": (torch.rsqrt, P), "Sign": (torch.sign, X),
    "Sin": (torch.sin, X), "Sinh": (torch.sinh, X), "Sqrt": (torch.sqrt, P), "Square": (torch.square, X),
    "Tan": (torch.tan, X), "Trunc": (torch.trunc, X), "BitwiseNot": (torch.bitwise_not, N),
    "Invert": (torch.bitwise_not, N), "Relu": (torch.relu, X), "Sigmoid": (torch.sigmoid, X), "Tanh": (torch.tanh, X),
    "Selu": (F.selu, X), "Mish": (F.mish, X), "HardSwish": (F.hardswish, 3 * X), "LogSigmoid": (F.logsigmoid, X),
    "FastGelu": (lambda x: x * torch.sigmoid(1.702 * x), X), "HardSigmoid": (F.hardsigmoid, 3 * X),
    "Swish": (F.silu, X), "ZerosLike": (torch.zeros_like, X), "OnesLike": (torch.ones_like, X),
    "Identity": (torch.clone, X), "TransData": (torch.clone, X), "Trace": (torch.trace, X),
}  # fmt: skip

BINARY: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor]] = {
    "Add": (torch.add, X, Y[0]), "Sub": (torch.sub, X, Y), "Mul": (torch.mul, X, Y), "RealDiv": (torch.div, X, P),
    "Div": (torch.div, X, P), "FloorDiv": (torch.floor_divide, N, J), "FloorMod": (torch.remainder, N, J),
    "Mod": (torch.fmod, N, J), "Pow": (torch.pow, P, Y), "Maximum": (torch.maximum, X, Y),
    "Minimum": (torch.minimum, X, Y), "Atan2": (torch.atan2, X, Y), "Xlogy": (torch.xlogy, X, P),
    "BitwiseAnd": (torch.bitwise_and, N, J), "BitwiseOr": (torch.bitwise_or, N, J),
    "BitwiseXor": (torch.bitwise_xor, N, J), "LeftShift": (torch.bitwise_left_shift, N, J),
    "RightShift": (torch.bitwise_right_shift, N, J), "Equal": (torch.eq, N, J), "NotEqual": (torch.ne, N, J),
    "Greater": (torch.gt, X, Y), "GreaterEqual": (torch.ge, X, Y), "Less": (torch.lt, X, Y),
    "LessEqual": (torch.le, X, Y), "LogicalAnd": (torch.logical_and, B, Y > 0),
    "LogicalOr": (torch.logical_or, B, Y > 0), "IsClose": (torch.isclose, X, X + 1e-6),
    "LogAddExp": (torch.logaddexp, X, Y), "Dot": (torch.dot, X[0], Y[0]),
    "TensorEqual": (lambda a, b: torch.tensor(torch.equal(a, b)), X, X.clone()),
    "Cross": (torch.linalg.cross, X.t(), Y.t()),
}  # fmt: skip

# The gradient of a function at x: an operator on (gradient, x), or on (x or the result, gradient).
GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "ReluGrad": torch.relu, "LogSigmoidGrad": F.logsigmoid, "HardSigmoidGrad": F.hardsigmoid,
    "HardSwishGrad": F.hardswish, "SiluGrad": F.silu, "MishGrad": F.mish, "HardShrinkGrad": F.hardshrink,
    "SoftShrinkGrad": F.softshrink, "FastGeluGrad": lambda x: x * torch.sigmoid(1.702 * x),
    "LeakyReluGrad": lambda x: F.leaky_relu(x, 0.0), "ThresholdGradV2D": lambda x: F.threshold(x, 0, 0),
}  # fmt: skip


def _elementwise() -> Iterator[Case]:
    for name, (function, x) in UNARY.items():
        yield Case(name, [x], [function(x)])
    for name, (binary, a, b) in BINARY.items():
        yield Case(name, [a, b], [binary(a, b)])
    for name, function in GRADIENTS.items():
        yield Case(name, [G, X], [_grad(function, X, grad=G)])
    yield Case("Round", [X * 10], [torch.round(X * 10)])
    yield Case("Round", [X * 10], [torch.round(X * 10, decimals=1)], {"decimals": 1})
    yield Case("Log", [P], [P.log()], {"base": -1.0})
    yield Case("Log", [P], [P.log2()], {"base": 2.0})
    holes = X.masked_fill(B, math.nan)
    yield Case("NanToNum", [holes], [torch.nan_to_num(holes, nan=3.0)], {"nan": 3.0})
    yield Case("AxpyV2", [X, Y, torch.tensor(2.0)], [X + 2 * Y])
    yield Case("Addcdiv", [X, Y, P, torch.tensor([0.5])], [torch.addcdiv(X, Y, P, value=0.5)])
    yield Case("Addcmul", [X, Y, P, torch.tensor([0.5])], [torch.addcmul(X, Y, P, value=0.5)])
    yield Case("Lerp", [X, Y, P], [torch.lerp(X, Y, P)])
    for name in ("ClipByValue", "ClipByValueV2"):
        yield Case(name, [X, torch.tensor(-1.0), torch.tensor(1.0)], [X.clamp(-1, 1)])
    blocks = _numbers(1, 48, 2, 2)
    others = _numbers(1, 32, 2, 2, seed=3)
    attributes = {"x1_c1_offset": 2, "x2_c1_offset": 0, "c1_len": 1}
    yield Case("StrideAdd", [blocks, others], [blocks[:, 32:48] + others[:, :16]], attributes)
    yield Case("SigmoidGrad", [X.sigmoid(), G], [_grad(torch.sigmoid, X, grad=G)])
    yield Case("TanhGrad", [X.tanh(), G], [_grad(torch.tanh, X, grad=G)])
    yield Case("SeluGrad", [G, F.selu(X)], [_grad(F.selu, X, grad=G)])
    yield Case("SwishGrad", [G, X, F.silu(X)], [_grad(F.silu, X, grad=G)])
    yield Case("HardtanhGrad", [X, G], [_grad(F.hardtanh, X, grad=G)])
    yield Case("HardShrink", [X], [F.hardshrink(X, 1)], {"lambd": 1.0})
    yield Case("SoftShrink", [X], [F.softshrink(X, 1)], {"lambd": 1.0})
    yield Case("LeakyRelu", [X], [F.leaky_relu(X, 0.2)], {"negative_slope": 0.2})
    yield Case("Elu", [X], [F.elu(X, 1.5)], {"alpha": 1.5})
    yield Case("EluGradV2", [G, X], [_grad(lambda x: F.elu(x, 1.5), X, grad=G)], {"alpha": 1.5, "is_result": False})
    yield Case("CeluV2", [X], [F.celu(X, 1.5)], {"alpha": 1.5})
    yield Case("SoftplusV2", [X], [F.softplus(X, 2, 1)], {"beta": 2.0, "threshold": 1.0})
    yield Case("ThresholdV2D", [X], [F.threshold(X, 0.5, 9)], {"threshold": 0.5, "value": 9.0})
    even = _numbers(3, 6)
    yield Case("GLU", [even], [F.glu(even, 1)], {"dim": 1})
    yield Case("GLUGrad", [X[:, :3], even], [_grad(F.glu, even, grad=X[:, :3])], {"dim": 1})


def _moved() -> Iterator[Case]:
    yield Case("Cast", [X * 10], [(X * 10).to(torch.int32)], {"dst_type": 3}, exact=True)
    yield Case("Transpose", [IMAGE, Host.ints(0, 2, 3, 1)], [IMAGE.permute(0, 2, 3, 1)], exact=True)
    attributes: dict[str, Attribute] = {"perm": [1, 0], "shape": [5, 3], "transpose_first": True}
    yield Case("ConfusionTransposeD", [X], [X.t().reshape(5, 3)], attributes, exact=True)
    yield Case("Slice", [X, Host.ints(1, 0), Host.ints(2, -1)], [X[1:]], exact=True)
    sliced = [X, Host.ints(1, 0), Host.ints(3, 5), Host.ints(1, 2)]
    yield Case("StridedSlice", sliced, [X[1, ::2]], {"begin_mask": 2, "shrink_axis_mask": 1}, exact=True)
    yield Case("BroadcastTo", [X[0], Host.ints(3, 5)], [X[0].expand(3, 5)], exact=True)
    yield Case("Tile", [X, Host.ints(2, 1)], [X.repeat(2, 1)], exact=True)
    yield Case("ConcatD", [X, Y, G], [torch.cat([X, Y, G], 1)], {"concat_dim": 1, "N": 3}, exact=True)
    yield Case("Pack", [X, Y], [torch.stack([X, Y], 1)], {"axis": 1, "N": 2}, exact=True)
    yield Case("ReverseV2", [X, Host.ints(1)], [X.flip(1)], exact=True)
    yield Case("Roll", [X], [X.roll(2, 1)], {"shifts": [2], "dims": [1]}, exact=True)
    yield Case("Fill", [Host.ints(3, 5), torch.tensor(2.0)], [torch.full((3, 5), 2.0)], exact=True)
    yield Case("Diag", [X[0]], [torch.diag(X[0], 1)], {"diagonal": 1}, exact=True)
    yield Case("DiagPart", [X], [torch.diag(X, 1)], {"diagonal": 1}, exact=True)
    yield Case("Tril", [X], [X.tril(-1)], {"diagonal": -1}, exact=True)
    yield Case("Triu", [X], [X.triu(1)], {"diagonal": 1}, exact=True)
    yield Case("ShuffleChannel", [IMAGE], [F.channel_shuffle(IMAGE, 2)], {"group": 2}, exact=True)
    window = [X, Host.ints(2, 2), Host.ints(1, 5), Host.ints(1)]
    yield Case("AsStrided", window, [X.as_strided((2, 2), (1, 5), 1)], exact=True)
    target = torch.zeros(3, 5)
    view = [target, Host.ints(2, 2), Host.ints(1, 5), Host.ints(1)]
    source = [Y, Host.ints(2, 2), Host.ints(2, 1), Host.ints(0)]
    written = target.clone()
    written.as_strided((2, 2), (1, 5), 1).copy_(Y.as_strided((2, 2), (2, 1), 0))
    yield Case("ViewCopy", [*view, *source], [written], exact=True)
    yield Case("Pad", [X, Host.ints(1, 0, 2, 3)], [F.pad(X, (2, 3, 1, 0))], exact=True)
    padded = F.pad(IMAGE, (1, 2, 3, 0), mode="reflect")
    yield Case("MirrorPad", [IMAGE, Host.ints(0, 0, 0, 0, 3, 0, 1, 2)], [padded], {"mode": "REFLECT"}, exact=True)
    value = torch.tensor([9.0])
    constant = F.pad(X, (2, 3, 1, 0), value=9)
    yield Case("PadV3", [X, Host.ints(1, 0, 2, 3), value], [constant], {"mode": "constant"}, exact=True)
    edge = F.pad(IMAGE, (1, 2, 3, 0), mode="replicate")
    yield Case("PadV3", [IMAGE, Host.ints(0, 0, 0, 0, 3, 0, 1, 2), value], [edge], {"mode": "edge"}, exact=True)
    for mode, name in (("reflect", "reflect"), ("edge", "replicate")):
        grad = torch.ones_like(F.pad(IMAGE, (1, 2, 3, 0)))
        back = _grad(lambda x, name=name: F.pad(x, (1, 2, 3, 0), mode=name), IMAGE)
        yield Case("PadV3Grad", [grad, Host.ints(0, 0, 0, 0, 3, 0, 1, 2)], [back], {"mode": mode})


def _created() -> Iterator[Case]:
    numbers = [Host(torch.tensor(each)) for each in (2.0, 8.0, 1.5)]
    yield Case("Range", numbers, [torch.arange(2, 8, 1.5)])
    yield Case("RangeD", [torch.zeros(4)], [torch.arange(2, 8, 1.5)], {"start": 2.0, "limit": 8.0, "delta": 1.5})
    yield Case("Eye", [], [torch.eye(3, 4)], {"num_rows": 3, "num_columns": 4})
    yield Case("LinSpace", [numbers[0], numbers[1], Host.ints(5)], [torch.linspace(2, 8, 5)])
    attributes: dict[str, Attribute] = {"start": 0.0, "end": 3.0, "steps": 4, "base": 2.0}
    yield Case("LogSpaceD", [torch.zeros(4)], [torch.tensor([1.0, 2.0, 4.0, 8.0])], attributes)


def _reduced() -> Iterator[Case]:
    axis = Host.ints(1)
    for name, function in {
        "ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceProd": torch.prod, "ReduceMax": torch.amax,
        "ReduceMin": torch.amin, "ReduceLogSumExp": torch.logsumexp,
    }.items():  # fmt: skip
        yield Case(name, [X, axis], [function(X, 1)])
        yield Case(name, [X, axis], [function(X, 1, keepdim=True)], {"keep_dims": True})
    yield Case("ReduceAll", [B, axis], [B.all(1)])
    yield Case("ReduceAny", [B, axis], [B.any(1)])
    yield Case("ReduceMeanD", [X], [X.mean(1)], {"axes": [1]})
    mean = X.mean(1, keepdim=True).expand(3, 5).contiguous()
    yield Case("ReduceStdWithMean", [X, mean], [X.std(1)], {"dim": [1], "unbiased": True, "keepdim": False})
    inverse = (X.var(1, unbiased=False) + 0.5).rsqrt()
    attributes: dict[str, Attribute] = {
        "dim": [1], "unbiased": False, "keepdim": False, "invert": True, "epsilon": 0.5,
    }  # fmt: skip
    yield Case("ReduceStdWithMean", [X, mean], [inverse], attributes)
    powers = (X.abs() ** 3).sum(1)
    yield Case("LpNormReduceV2", [X], [powers], {"p": 3.0, "axes": [1], "keepdim": False})
    yield Case("LpNormUpdateV2", [powers], [powers ** (1 / 3)], {"p": 3.0})
    yield Case("Cumsum", [X, axis], [X.cumsum(1)])
    yield Case("Cumprod", [X, axis], [X.cumprod(1)])
    yield Case("Cummax", [X], [X.cummax(1).values, X.cummax(1).indices], {"dim": 1})
    yield Case("Cummin", [X], [X.cummin(1).values, X.cummin(1).indices], {"axis": 1})
    yield Case("Renorm", [X], [torch.renorm(X, 2, 0, 1.0)], {"p": 2.0, "dim": 0, "maxnorm": 1.0})
    yield Case("SoftmaxV2", [X], [X.softmax(1)], {"axes": [1]})
    yield Case("LogSoftmaxV2", [X], [X.log_softmax(1)], {"axes": [1]})
    yield Case("SoftmaxGrad", [X.softmax(1), G], [_grad(lambda x: x.softmax(1), X, grad=G)], {"axes": [1]})
    yield Case("LogSoftmaxGrad", [G, X.log_softmax(1)], [_grad(lambda x: x.log_softmax(1), X, grad=G)], {"axis": [1]})


def _products() -> Iterator[Case]:
    other = _numbers(5, 4)
    bias = _numbers(4, seed=5)
    yield Case("MatMul", [X, other], [X @ other])
    yield Case("MatMul", [X.t().contiguous(), other, bias], [X @ other + bias], {"transpose_x1": True})
    yield Case("MatMulV2", [X, other.t().contiguous()], [X @ other], {"transpose_x2": True})
    batch = _numbers(2, 3, 5)
    yield Case("BatchMatMul", [batch, batch], [batch @ batch.mT], {"adj_x2": True})
    yield Case("MatrixInverse", [torch.eye(3) * 2 + X[:, :3]], [torch.linalg.inv(torch.eye(3) * 2 + X[:, :3])])
    square = X[:, :3] + 3 * torch.eye(3)
    yield Case("LogMatrixDeterminant", [square], [*torch.linalg.slogdet(square)])
    yield Case("Qr", [square], [*torch.linalg.qr(square)])
    yield Case("Pdist", [X], [torch.pdist(X, 3.0)], {"p": 3.0})
    left, right = X.unsqueeze(1).expand(3, 3, 5).contiguous(), Y.unsqueeze(0).expand(3, 3, 5).contiguous()
    yield Case("Cdist", [left, right], [torch.cdist(X, Y)], {"p": 2.0})
    weights = _numbers(3, 3, seed=6)
    back = _grad(lambda a: torch.cdist(a, Y), X, grad=weights)
    wide = [t.unsqueeze(-1).expand(3, 3, 5).contiguous() for t in (weights, torch.cdist(X, Y))]
    yield Case("CdistGrad", [wide[0], left, right, wide[1]], [back], {"p": 2.0})


def _convolutions() -> Iterator[Case]:
    for name, dims in (("Conv2D", 2), ("Conv3D", 3)):
        convolve: Any = getattr(F, f"conv{dims}d")
        transpose: Any = getattr(F, f"conv_transpose{dims}d")
        x = _numbers(2, 4, *(6, 7, 5)[:dims])
        weight, bias = _numbers(6, 2, *(3,) * dims, seed=1), _numbers(6, seed=2)
        attributes: dict[str, Attribute] = {
            "strides": [1, 1, *(2,) * dims], "pads": [1] * 2 * dims, "dilations": [1] * (dims + 2), "groups": 2,
            "data_format": "NCHW" if dims == 2 else "NCDHW",
        }  # fmt: skip
        options = {"stride": 2, "padding": 1, "groups": 2}
        result = convolve(x, weight, bias, **options)
        grad = _numbers(*result.shape, seed=3)
        yield Case(name, [x, weight, bias], [result], attributes)

        def forward(a: Tensor, b: Tensor, convolve: Any = convolve, options: Any = options) -> Tensor:
            return convolve(a, b, **options)

        by_x, by_weight = (_grad(forward, x, weight, by=i, grad=grad) for i in range(2))
        sizes = (Host(torch.tensor(t.shape, dtype=torch.int32)) for t in (x, weight))
        yield Case(f"{name}BackpropInput", [next(sizes), weight, grad], [by_x], attributes)
        yield Case(f"{name}BackpropFilter", [x, next(sizes), grad], [by_weight], attributes)
        upwards = transpose(grad, weight, stride=2, padding=1, output_padding=1, groups=2)
        size = Host(torch.tensor(upwards.shape, dtype=torch.int32))
        more: dict[str, Attribute] = {**attributes, "output_padding": [0, 0, *(1,) * dims]}
        yield Case(f"{name}Transpose", [size, grad, weight], [upwards], more)
    x, weight = _numbers(2, 3, 6, 7), _numbers(3, 1, 3, 3, seed=1)
    attributes = {"strides": [1, 1, 1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1, 1, 1], "data_format": "NCHW"}
    result = F.conv2d(x, weight, padding=1, groups=3)
    grad = _numbers(*result.shape, seed=3)
    turned = weight.transpose(0, 1).contiguous()
    yield Case("DepthwiseConv2D", [x, turned], [result], attributes)

    def depthwise(a: Tensor, b: Tensor) -> Tensor:
        return F.conv2d(a, b, padding=1, groups=3)

    size = Host(torch.tensor(x.shape, dtype=torch.int32))
    yield Case(
        "DepthwiseConv2DBackpropInput", [size, turned, grad], [_grad(depthwise, x, weight, grad=grad)], attributes
    )
    size = Host(torch.tensor(weight.shape, dtype=torch.int32))
    back = _grad(depthwise, x, weight, by=1, grad=grad)
    yield Case("DepthwiseConv2DBackpropFilter", [x, size, grad], [back], attributes)


def _normalised() -> Iterator[Case]:
    gamma, beta = _numbers(5, seed=3), _numbers(5, seed=4)
    mean, variance = X.mean(1, keepdim=True), X.var(1, unbiased=False, keepdim=True)
    result = F.layer_norm(X, (5,), gamma, beta, 1e-5)
    attributes: dict[str, Attribute] = {"begin_norm_axis": 1, "epsilon": 1e-5}
    yield Case("LayerNorm", [X, gamma, beta], [result, mean, variance], attributes)
    yield Case("LayerNormV3", [X, gamma, beta], [result, mean, (variance + 1e-5).rsqrt()], attributes)

    def layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(x, (5,), g, b, 1e-5)

    back = [_grad(layer_norm, X, gamma, beta, by=i, grad=G) for i in range(3)]
    yield Case("LayerNormGrad", [G, X, variance, mean, gamma], back)
    rms = (X.square().mean(1, keepdim=True) + 1e-6).rsqrt()

    def rms_norm(x: Tensor, g: Tensor) -> Tensor:
        return F.rms_norm(x, (5,), g, 1e-6)

    yield Case("RmsNorm", [X, gamma], [rms_norm(X, gamma), rms], {"epsilon": 1e-6})
    yield Case("RmsNormGrad", [G, X, rms, gamma], [_grad(rms_norm, X, gamma, by=i, grad=G) for i in range(2)])
    weight, bias = _numbers(4, seed=5), _numbers(4, seed=6)
    grouped = IMAGE.reshape(2, 2, -1)
    moments = [grouped.mean(2), grouped.var(2, unbiased=False)]
    groups = F.group_norm(IMAGE, 2, weight, bias, 1e-3)
    attributes = {"num_groups": 2, "eps": 1e-3}
    yield Case("GroupNorm", [IMAGE, weight, bias], [groups, *moments], attributes)
    scale = (moments[1] + 1e-3).rsqrt()
    yield Case("GroupNormSwish", [IMAGE, weight, bias], [F.silu(groups), moments[0], scale], attributes)
    running = [_numbers(4, seed=7), _numbers(4, low=0.5, high=2, seed=8)]
    inferred = F.batch_norm(IMAGE, *running, weight, bias, eps=1e-3)
    yield Case("BNInfer", [IMAGE, weight, bias, *running], [inferred], {"epsilon": 1e-3})
    back_of = _grad(lambda x: F.batch_norm(x, *running, weight, bias, eps=1e-3), IMAGE)
    yield Case("BNInferGrad", [torch.ones_like(IMAGE), weight, running[1]], [back_of], {"epsilon": 1e-3})
    sums = [IMAGE.sum((0, 2, 3)), IMAGE.square().sum((0, 2, 3))]
    yield Case("BNTrainingReduce", [IMAGE], sums)
    sequence, length = _numbers(2, 3, 6), torch.tensor([4, 6], dtype=torch.int32)
    parts = []
    for each, count in zip(sequence, length.tolist(), strict=True):
        valid = each[:, :count]
        parts.append((each - valid.mean(1, keepdim=True)) / (valid.std(1, keepdim=True) + 1e-5))
    attributes = {"normalize_type": "per_feature", "epsilon": 1e-5}
    yield Case("NormalizeBatch", [sequence, length], [torch.stack(parts)], attributes)


def _whole(loss: str) -> str:
    """The reduction of the losses to one number; torch warns about the mean of kl_div."""
    return "sum" if loss == "KLDiv" else "mean"


def _losses() -> Iterator[Case]:
    none, mean = {"reduction": "none"}, {"reduction": "mean"}
    signs = Y.sign()
    losses: dict[str, tuple[Callable[..., Tensor], Tensor, Tensor]] = {
        "MseLoss": (F.mse_loss, X, Y), "LpLoss": (F.l1_loss, X, Y), "SmoothL1LossV2": (F.smooth_l1_loss, X, Y),
        "SoftMarginLoss": (F.soft_margin_loss, X, signs), "BinaryCrossEntropy": (F.binary_cross_entropy, P, P.flip(0)),
        "SigmoidCrossEntropyWithLogitsV2": (F.binary_cross_entropy_with_logits, X, P), "KLDiv": (F.kl_div, X, P),
    }  # fmt: skip
    for name, (loss, a, b) in losses.items():
        yield Case(name, [a, b], [loss(a, b, reduction="none")], {**none})
        whole = _whole(name)
        yield Case(name, [a, b], [loss(a, b, reduction=whole)], {"reduction": whole})
    # The gradients, each with its own order of inputs.
    order: dict[str, tuple[str, Callable[[Tensor, Tensor, Tensor], list[Tensor]]]] = {
        "MseLoss": ("MseLossGrad", lambda a, b, g: [a, b, g]),
        "LpLoss": ("L1LossGrad", lambda a, b, g: [g, a, b]),
        "SmoothL1LossV2": ("SmoothL1LossGradV2", lambda a, b, g: [a, b, g]),
        "SoftMarginLoss": ("SoftMarginLossGrad", lambda a, b, g: [a, b, g]),
        "BinaryCrossEntropy": ("BinaryCrossEntropyGrad", lambda a, b, g: [a, b, g]),
        "SigmoidCrossEntropyWithLogitsV2": ("SigmoidCrossEntropyWithLogitsGradV2", lambda a, b, g: [a, b, g]),
        "KLDiv": ("KlDivLossGrad", lambda a, b, g: [g, a, b]),
    }
    for forward, (name, arranged) in order.items():
        loss, a, b = losses[forward]
        each = _grad(lambda x, y, loss=loss: loss(x, y, reduction="none"), a, b, grad=G)
        yield Case(name, arranged(a, b, G), [each], {**none})
        whole = _whole(forward)
        of_whole = _grad(lambda x, y, loss=loss, whole=whole: loss(x, y, reduction=whole), a, b)
        yield Case(name, arranged(a, b, torch.ones(())), [of_whole], {"reduction": whole})
    target, weight = torch.tensor([1, 4, 2], dtype=torch.int32), _numbers(5, low=0.1, high=1)
    labels = target.long()
    total = weight[labels].sum()
    nll = F.nll_loss(X, labels, weight)
    yield Case("NLLLoss", [X, target, weight], [nll, total], {**mean, "ignore_index": -100})
    back = _grad(lambda x: F.nll_loss(x, labels, weight), X)
    yield Case("NLLLossGrad", [X, torch.ones(1), target, weight, total], [back], {**mean})
    places = torch.tensor([[1, 3, -1, 0, 0], [0, -1, 0, 0, 0], [2, 4, 1, -1, 0]], dtype=torch.int32)
    marks = torch.zeros(3, 5, dtype=torch.int32)
    for row, columns in enumerate(([1, 3], [0], [2, 4, 1])):
        marks[row, columns] = 1
    margin = F.multilabel_margin_loss(X, places.long())
    yield Case("MultilabelMarginLoss", [X, places], [margin, marks], {**mean})
    soft = P / P.sum(1, keepdim=True)
    cross = [-(soft * X.log_softmax(1)).sum(1), X.softmax(1) - soft]
    yield Case("SoftmaxCrossEntropyWithLogits", [X, soft], cross)


def _indexed() -> Iterator[Case]:
    index = torch.tensor([2, 0, 2], dtype=torch.int32)
    rows = index.long()
    yield Case("GatherV2", [X, index, Host.ints(0)], [X[rows]], exact=True)
    yield Case("GatherV2D", [X, index], [X[:, rows]], {"axis": 1}, exact=True)
    yield Case("Gather", [X, index - 3], [X[rows - 3]], exact=True)
    places = torch.tensor([[0, 4], [1, 1], [3, 2]])
    yield Case("GatherElements", [X, places], [X.gather(1, places)], {"dim": 1}, exact=True)
    updates = _numbers(3, 2, seed=9)
    yield Case("ScatterElements", [X, places, updates], [X.scatter(1, places, updates)], {"axis": 1}, exact=True)
    added = X.scatter_add(1, places, updates)
    yield Case("ScatterElements", [X, places, updates], [added], {"axis": 1, "reduction": "add"})
    two = torch.tensor([2, 0])
    replaced = X.index_copy(0, two, Y[:2])
    yield Case("ScatterUpdate", [X, two, Y[:2]], [replaced], exact=True)
    yield Case("ScatterNdUpdate", [X, two.unsqueeze(1), Y[:2]], [replaced], exact=True)
    yield Case("ScatterNdAdd", [X, two.unsqueeze(1), Y[:2]], [X.index_add(0, two, Y[:2])])
    alpha = torch.tensor(2.0)
    yield Case("InplaceIndexAdd", [X, two, Y[:2], alpha], [X.index_add(0, two, Y[:2], alpha=2)], {"axis": 0})
    put = X.clone()
    put[two] = Y[:2]
    yield Case("IndexPutV2", [X, Y[:2], Host.ints(1), Host.ints(1), two], [put], {"accumulate": False}, exact=True)
    ones, filled = torch.ones(3, 5), torch.zeros(3, 5)
    ones[:, 1], filled[:, 1] = 0, 7
    yield Case("IndexFillD", [X, ones, filled], [X.index_fill(1, torch.tensor([1]), 7)], {"dim": 1})
    yield Case("MaskedFill", [X, B, torch.tensor(3.0)], [X.masked_fill(B, 3)], exact=True)
    yield Case("MaskedScatter", [X, B, Y], [X.masked_scatter(B, Y)], exact=True)
    batch = torch.zeros(2, 3, 6)
    start, end = torch.tensor([[0, 2], [4, 4]], dtype=torch.int32), torch.tensor([[2, 3], [6, 4]], dtype=torch.int32)
    expected = batch.clone()
    expected[0, :, 0:2], expected[1, :, 2:3], expected[0, :, 4:6] = 5, 5, 7
    values = torch.tensor([5.0, 7.0])
    yield Case("MaskedFillRange", [batch, start, end, values], [expected], {"axis": 2}, exact=True)
    yield Case("FillDiagonal", [X], [X.clone().fill_diagonal_(4)], {"fill_value": 4.0, "wrap": False}, exact=True)
    hot = F.one_hot(rows, 4).float() * 2 - 1
    depth = Host(torch.tensor(4, dtype=torch.int32))
    yield Case("OneHot", [index, depth, torch.tensor(1.0), torch.tensor(-1.0)], [hot], {"axis": -1}, exact=True)
    yield Case("OneHotD", [index, torch.tensor(1.0), torch.tensor(-1.0)], [hot], {"axis": -1, "depth": 4}, exact=True)
    back = _grad(lambda w: F.embedding(rows, w), torch.zeros(4, 5), grad=X)
    yield Case("EmbeddingDenseGrad", [X, index], [back], {"num_weights": 4, "padding_idx": -1})
    ordered = X.sort(1).values
    yield Case("SearchSorted", [ordered, Y], [torch.searchsorted(ordered, Y, right=True)], {"right": True}, exact=True)
    yield Case("MaskedSelect", [X, B], [X.masked_select(B)], exact=True, sized=True)
    yield Case("NonZero", [B], [B.nonzero()], {"transpose": False}, exact=True, sized=True)


def _sorted() -> Iterator[Case]:
    ordered = X.sort(dim=1, descending=True, stable=True)
    attributes: dict[str, Attribute] = {"axis": 1, "descending": True}
    yield Case("Sort", [X], [ordered.values, ordered.indices.to(torch.int32)], attributes, exact=True)
    yield Case("SortV2", [X], [ordered.values], attributes, exact=True)
    best = X.topk(2, 1)
    k = Host(torch.tensor([2], dtype=torch.int32))
    yield Case("TopKV2", [X, k], [best.values, best.indices.to(torch.int32)], {"dim": 1}, exact=True)
    dimension = Host(torch.tensor(1, dtype=torch.int32))
    yield Case("ArgMaxV2", [X, dimension], [X.argmax(1)], exact=True)
    yield Case("ArgMin", [X, dimension], [X.argmin(1)], exact=True)
    for name, extreme in (("ArgMaxWithValue", X.max(1)), ("ArgMinWithValue", X.min(1))):
        yield Case(name, [X], [extreme.indices.to(torch.int32), extreme.values], {"dimension": 1}, exact=True)
    index = torch.tensor([4, 0, 2], dtype=torch.int32)
    updates = _numbers(3, seed=4)
    scattered = X.scatter(1, index.long().unsqueeze(1), updates.unsqueeze(1))
    yield Case("ArgMaxGrad", [X, index, updates], [scattered], {"dimension": 1}, exact=True)
    yield Case("Histogram", [X], [X.histc(4, -2, 2)], {"bins": 4, "min": -2.0, "max": 2.0})
    counts = torch.bincount(J.flatten(), minlength=6).float()
    yield Case("Bincount", [J.flatten(), Host(torch.tensor(6)), torch.empty(0)], [counts], exact=True)
    values, inverse, number = J.unique(return_inverse=True, return_counts=True)
    attributes = {"sorted": True, "return_inverse": True, "return_counts": True}
    yield Case("UniqueWithCountsAndSorting", [J], [values, inverse, number], attributes, exact=True, sized=True)
    runs = torch.tensor([1, 1, 2, 2, 2, 1])
    consecutive = runs.unique_consecutive(return_inverse=True, return_counts=True)
    attributes = {"return_idx": True, "return_counts": True}
    yield Case("UniqueConsecutive", [runs], [*consecutive], attributes, exact=True, sized=True)


def _pooled() -> Iterator[Case]:
    attributes: dict[str, Attribute] = {
        "ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1], "pads": [1, 1, 0, 0], "ceil_mode": False, "exclusive": True,
        "padding_mode": "CALCULATED", "data_format": "NCHW",
    }  # fmt: skip

    def average(x: Tensor) -> Tensor:
        return F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), count_include_pad=False)

    pooled = average(IMAGE)
    grad = _numbers(*pooled.shape, seed=3)
    yield Case("AvgPoolV2", [IMAGE], [pooled], attributes)
    shape = Host(torch.tensor(IMAGE.shape))
    yield Case("AvgPoolV2Grad", [shape, grad], [_grad(average, IMAGE, grad=grad)], attributes)
    volume = _numbers(1, 2, 4, 5, 6)

    def average3(x: Tensor) -> Tensor:
        return F.avg_pool3d(x, 2, 2, 1)

    pooled = average3(volume)
    grad = _numbers(*pooled.shape, seed=3)
    attributes = {"ksize": [2, 2, 2], "strides": [2, 2, 2], "pads": [1] * 6, "data_format": "NCDHW"}
    yield Case("AvgPool3D", [volume], [pooled], attributes)
    back = _grad(average3, volume, grad=grad)
    yield Case("AvgPool3DGrad", [Host(torch.tensor(volume.shape)), grad], [back], attributes)
    yield Case("AdaptiveAvgPool2d", [IMAGE], [F.adaptive_avg_pool2d(IMAGE, (3, 4))], {"output_size": [3, 4]})
    grad = _numbers(2, 4, 3, 4, seed=3)
    back = _grad(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), IMAGE, grad=grad)
    yield Case("AdaptiveAvgPool2dGrad", [grad], [back], {"orig_input_shape": list(IMAGE.shape)})

    def largest(x: Tensor) -> Tensor:
        return F.max_pool2d(x, 3, 2, 1)

    pooled = largest(IMAGE)
    grad = _numbers(*pooled.shape, seed=3)
    attributes = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "pads": [1, 1, 1, 1], "ceil_mode": False}
    mask = torch.zeros(2, 4, 9, 2, dtype=torch.int16)
    undilated = [1, 1, 1, 1]
    yield Case("MaxPoolWithArgmaxV1", [IMAGE], [pooled, mask], {**attributes, "dilation": undilated})
    back = _grad(largest, IMAGE, grad=grad)
    yield Case("MaxPoolGradWithArgmaxV1", [IMAGE, grad, mask], [back], {**attributes, "dilations": undilated})

    def largest3(x: Tensor) -> Tensor:
        return F.max_pool3d(x, 2, 2)

    pooled = largest3(volume)
    grad = _numbers(*pooled.shape, seed=3)
    attributes = {"ksize": [1, 1, 2, 2, 2], "strides": [1, 1, 2, 2, 2], "pads": [0] * 6}
    attributes |= {"padding": "CALCULATED", "data_format": "NCDHW"}
    yield Case("MaxPool3D", [volume], [pooled], attributes)
    yield Case("MaxPool3DGrad", [volume, pooled, grad], [_grad(largest3, volume, grad=grad)], attributes)


def _resized() -> Iterator[Case]:
    def interpolated(mode: str, **options: Any) -> Callable[[Tensor], Tensor]:
        return lambda x: F.interpolate(x, (5, 9), mode=mode, **options)

    size = Host(torch.tensor([5, 9], dtype=torch.int32))
    grad = _numbers(2, 4, 5, 9, seed=3)
    original = Host(torch.tensor([7, 8], dtype=torch.int32))
    bilinear = interpolated("bilinear", align_corners=True)
    attributes: dict[str, Attribute] = {"align_corners": True, "half_pixel_centers": False}
    yield Case("ResizeBilinearV2", [IMAGE, size], [bilinear(IMAGE)], attributes)
    yield Case("ResizeBilinearV2Grad", [grad, IMAGE], [_grad(bilinear, IMAGE, grad=grad)], attributes)
    nearest = interpolated("nearest")
    yield Case("ResizeNearestNeighborV2", [IMAGE, size], [nearest(IMAGE)], {"align_corners": False})
    yield Case("ResizeNearestNeighborV2Grad", [grad, original], [_grad(nearest, IMAGE, grad=grad)])
    numbers = Host(torch.ones(4))
    sizes = [Host(torch.tensor(t.shape)) for t in (grad, IMAGE)]
    attributes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    yield Case("Resize", [IMAGE, numbers, numbers, sizes[0]], [nearest(IMAGE)], attributes)
    back = _grad(nearest, IMAGE, grad=grad)
    yield Case("ResizeGrad", [grad, numbers, numbers, sizes[1]], [back], attributes)
    cubic = interpolated("bicubic", align_corners=False)
    attributes = {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75}
    yield Case("ResizeD", [IMAGE], [cubic(IMAGE)], {**attributes, "sizes": [5, 9]})
    back = _grad(cubic, IMAGE, grad=grad)
    attributes = {**attributes, "original_size": [2, 4, 7, 8]}
    yield Case("ResizeGradD", [grad], [back], attributes)
    in_hwnc = back.permute(2, 3, 0, 1).reshape(back.shape)
    yield Case("ResizeGradD", [grad.permute(2, 3, 0, 1)], [in_hwnc], {**attributes, "data_format": "HWNC"})
    volume = _numbers(1, 2, 3, 4, 5)
    target = (4, 6, 3)
    grad = _numbers(1, 2, *target, seed=3)
    for name, options in (("UpsampleNearest3d", {"mode": "nearest"}), ("UpsampleTrilinear3d", {"mode": "trilinear"})):

        def scaled(x: Tensor, options: Any = options) -> Tensor:
            return F.interpolate(x, target, **options)

        shape: dict[str, Attribute] = {"output_size": list(target)}
        yield Case(name, [volume], [scaled(volume)], shape)
        yield Case(f"{name}Grad", [grad], [_grad(scaled, volume, grad=grad)], {**shape, "input_size": [1, 2, 3, 4, 5]})


def _boxes() -> Iterator[Case]:
    anchors = torch.tensor([[1.0, 2, 3, 4], [3, 4, 5, 6]])
    truths = torch.tensor([[5.0, 6, 7, 8], [7, 8, 9, 12]])
    # The vendor computes in FLOAT16 for every type: 4 / 3 is 1.3330, over 0.1 13.328.
    encoded = torch.tensor([[13.328125, 13.328125, 0, 0], [13.328125, 16.671875, 0, 2.5546875]])
    attributes: dict[str, Attribute] = {"means": [0.0] * 4, "stds": [0.1, 0.1, 0.2, 0.2]}
    yield Case("BoundingBoxEncode", [anchors, truths], [encoded], attributes)
    deltas = torch.tensor([[0.5, -0.5, 0, 0], [0, 0, 9, 0]])
    # Sizes of 3; the second grows by at most 10: centres (2 + 1.5, 3 - 1.5) and (4, 5).
    decoded = torch.tensor([[2.5, 0.5, 4.5, 2.5], [0, 4, 7, 6]])
    attributes = {"means": [0.0] * 4, "stds": [1.0] * 4, "max_shape": [8, 8], "wh_ratio_clip": 0.1}
    yield Case("BoundingBoxDecode", [anchors, deltas], [decoded], attributes)
    # Common areas of 1, sides of 2 and 1.
    a, b = torch.tensor([[0.0, 0, 2, 2], [4, 4, 5, 5]]), torch.tensor([[1.0, 1, 3, 3]])
    side = 2.01**2
    yield Case("Iou", [a, b], [torch.tensor([[1 / (2 * side - 1), 0]])], {"mode": "iou", "eps": 0.01})
    yield Case("Iou", [a, b], [torch.tensor([[1 / side, 0]])], {"mode": "iof", "eps": 0.01})
    columns = [t.t().contiguous() for t in (a[:1], b)]
    attributes = {"trans": False, "is_cross": False, "mode": "iou"}
    # 1 of 7 is common; the enclosing box has area 9 and squared diagonal 18, the centres' squared distance is 2.
    yield Case("GIoU", columns, [torch.tensor([[1 / 7 - 2 / 9]])], attributes)
    yield Case("DIoU", columns, [torch.tensor([[1 / 7 - 2 / 18]])], attributes)
    yield Case("CIoU", columns, [torch.tensor([[1 / 7 - 2 / 18]]), torch.zeros(1, 1)], attributes)
    crossed = [torch.rand(4, 3, generator=torch.Generator().manual_seed(7)) + 0.5 for _ in range(1)]
    boxes, others = crossed[0], crossed[0].flip(1)[:, :2].contiguous() * 1.1
    for name, kind in (("GIoU", "general"), ("DIoU", "distance"), ("CIoU", "complete")):
        options: dict[str, Attribute] = {"trans": True, "is_cross": True, "mode": "iou"}
        value = _overlap(boxes, others, kind)
        extra = [_angles(boxes, others)] if kind == "complete" else []
        yield Case(name, [boxes, others], [value, *extra], options)
        weights = _numbers(2, 3, seed=8)
        back = [_grad(lambda x, y, k=kind: _overlap(x, y, k), boxes, others, by=i, grad=weights) for i in range(2)]
        yield Case(f"{name}Grad", [weights, boxes, others], back, options)
    anchor = torch.tensor([[[44.2877], [9.1412], [88.7575], [25.8879], [64.8047]]])
    truth = torch.tensor([[[39.1763], [0.9838], [78.1028], [29.5997], [51.5907]]])
    centre, other = (anchor[0, :2] + anchor[0, 2:4]) / 2, (truth[0, :2] + truth[0, 2:4]) / 2
    size, ratio = anchor[0, 2:4] - anchor[0, :2], (truth[0, 2:4] - truth[0, :2]) / (anchor[0, 2:4] - anchor[0, :2])
    turned = torch.tan(truth[0, 4:].deg2rad()) - torch.tan(anchor[0, 4:].deg2rad())
    encoded = torch.cat([(other - centre) / size, ratio.log(), turned]).unsqueeze(0)
    yield Case("RotatedBoxEncode", [anchor, truth], [encoded], {"weight": [1.0] * 5})
    yield Case("RotatedBoxDecode", [anchor, encoded], [truth], {"weight": [1.0] * 5})
    low = math.log(1e-6)
    first, second = torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[0.5, 0, 1.5, 0]])
    stride = torch.tensor([4], dtype=torch.int32)
    # Centres (1, 1) and (1, 0), sizes 2 by 2 and 1 by 0.
    placed = torch.tensor([[0.5, 0.25, math.log(0.5), low]])
    yield Case("YoloBoxesEncode", [first, second, stride], [placed])
    flags = torch.zeros(2, 3, 2, dtype=torch.uint8)
    flags[0, 1] = 1  # the centre (6, 2) in cells of 4 by 4
    attributes = {"featmap_size": [2, 3], "strides": [4, 4], "num_base_anchors": 2}
    yield Case("AnchorResponseFlags", [torch.tensor([[4.0, 0, 8, 4]])], [flags.flatten()], attributes, exact=True)
    inputs = [
        torch.tensor([-1.0, -1, -1, -1]), torch.tensor([[0.9, 0.1, 0.2, 0.3], [0.1, 0.2, 0.4, 0.9]]),
        torch.tensor([1, 1, 1, 0], dtype=torch.uint8), torch.tensor([0.9, 0.2, 0.4, 0.9]),
        torch.tensor([0, 1, 1, 1], dtype=torch.int32), torch.tensor([0.9, 0.4]),
        torch.tensor([0, 2], dtype=torch.int32), torch.tensor(2, dtype=torch.int32),
    ]  # fmt: skip
    attributes = {"pos_iou_thr": 0.5, "min_pos_iou": 0.1, "gt_max_assign_all": True}
    yield Case("GridAssignPositive", inputs, [torch.tensor([1.0, -1, 2, -1])], attributes, exact=True)
    rotated = torch.tensor([[[0.0, 10], [0, 10], [4, 2], [2, 2], [90, 0]]])
    query = torch.tensor([[[0.0], [0], [4], [2], [0]]])
    # Two boxes of 4 by 2 at right angles overlap in 2 by 2.
    yield Case("RotatedOverlaps", [rotated, query], [torch.tensor([[[4.0], [0]]])], {"trans": False})
    yield Case("RotatedIou", [rotated, query], [torch.tensor([[[4 / 12], [0]]])], {"trans": False, "mode": "iou"})
    every = torch.tensor([[0.0, 0, 4, 2, 90], [0, 0, 4, 2, 0], [10, 10, 2, 2, 0]])
    chosen = torch.tensor([1, 2], dtype=torch.int32)
    attributes = {"iou_threshold": 0.2, "score_threshold": 0.0, "max_output_size": -1, "mode": 0}
    scores = torch.tensor([0.5, 0.9, 0.7])
    labels = torch.zeros((), dtype=torch.int32)
    kept = [every[chosen.long()], chosen]
    yield Case("RotatedNMS", [every, scores, labels], kept, attributes, exact=True, sized=True)
    plain = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 3], [10, 10, 12, 12]])
    with_scores = torch.cat([plain, scores.unsqueeze(1)], 1)
    order, mask = torch.arange(3, dtype=torch.int32), torch.tensor([1, 0, 1], dtype=torch.uint8)
    yield Case("NMSWithMask", [with_scores], [with_scores, order, mask], {"iou_threshold": 0.5}, exact=True)
    selected = [torch.tensor([1, 2, 0, 0], dtype=torch.int32), torch.tensor([2], dtype=torch.int32)]
    limits = [torch.tensor(4, dtype=torch.int32), torch.tensor(0.5), torch.tensor(0.1)]
    yield Case("NonMaxSuppressionV4", [plain, scores, *limits], selected, exact=True)
    of_classes = torch.stack([scores, scores.flip(0)], 1).unsqueeze(0)
    # Of class 0, boxes 1 and 2 remain with 0.9 and 0.7; of class 1, boxes 1 and 2 (box 0's competitor) with 0.9 and
    # 0.5.
    result = [
        torch.stack([plain[1], plain[1], plain[2]]).unsqueeze(0), torch.tensor([[0.9, 0.9, 0.7]]),
        torch.tensor([[0.0, 1, 0]]), torch.tensor([3], dtype=torch.int32),
    ]  # fmt: skip
    attributes = {"score_threshold": 0.2, "iou_threshold": 0.5, "max_size_per_class": 4, "max_total_size": 3}
    inputs = [plain.view(1, 3, 1, 4), of_classes]
    yield Case("BatchMultiClassNonMaxSuppression", inputs, result, attributes, exact=True)


def _angles(boxes: Tensor, truths: Tensor) -> Tensor:
    return (truths[2] / truths[3]).atan().unsqueeze(1) - (boxes[2] / boxes[3]).atan()


def _overlap(boxes: Tensor, truths: Tensor, kind: str) -> Tensor:
    """Intersections of boxes (x, y, width, height), (4, N), with others, (4, M): (M, N)."""
    (ax, ay, aw, ah), (bx, by, bw, bh) = boxes, (each.unsqueeze(1) for each in truths)
    left, right = torch.maximum(ax - aw / 2, bx - bw / 2), torch.minimum(ax + aw / 2, bx + bw / 2)
    top, bottom = torch.maximum(ay - ah / 2, by - bh / 2), torch.minimum(ay + ah / 2, by + bh / 2)
    common = (right - left).clamp_min(0) * (bottom - top).clamp_min(0)
    whole = aw * ah + bw * bh - common
    width = torch.maximum(ax + aw / 2, bx + bw / 2) - torch.minimum(ax - aw / 2, bx - bw / 2)
    height = torch.maximum(ay + ah / 2, by + bh / 2) - torch.minimum(ay - ah / 2, by - bh / 2)
    iou = common / whole
    if kind == "general":
        return iou - (width * height - whole) / (width * height)
    distance = iou - ((ax - bx) ** 2 + (ay - by) ** 2) / (width**2 + height**2)
    if kind == "distance":
        return distance
    v = 4 / math.pi**2 * _angles(boxes, truths) ** 2
    return distance - v * (v / (1 - iou + v)).detach()


def _regions() -> Iterator[Case]:
    image = torch.arange(1.0, 37).view(1, 1, 6, 6)
    rois = torch.tensor([[0.0, -2, -2, 22, 22]])
    aligned = torch.tensor([[[[4.5, 6.5, 8.5], [16.5, 18.5, 20.5], [28.5, 30.5, 32.5]]]])
    attributes: dict[str, Attribute] = {
        "spatial_scale": 0.25, "pooled_height": 3, "pooled_width": 3, "sample_num": 2, "roi_end_mode": 0,
    }  # fmt: skip
    yield Case("ROIAlign", [image, rois], [aligned], attributes)
    # Each cell is the mean of 2 by 2 elements.
    shape: dict[str, Attribute] = {**attributes, "xdiff_shape": [1, 1, 6, 6]}
    yield Case("ROIAlignGrad", [torch.ones(1, 1, 3, 3), rois], [torch.full((1, 1, 6, 6), 0.25)], shape)
    x = torch.arange(64.0).view(1, 4, 4, 4)
    boxes = torch.tensor([0.0, 0, 0, 3, 3]).view(1, 5, 1)
    # A quarter from each of the four channels.
    quarters = [x[0, 0, :2, :2], x[0, 1, :2, 2:], x[0, 2, 2:, :2], x[0, 3, 2:, 2:]]
    pooled = torch.stack([q.mean() for q in quarters]).view(1, 1, 2, 2)
    attributes = {"spatial_scale": 1.0, "output_dim": 1, "group_size": 2}
    yield Case("PSROIPoolingV2", [x, boxes], [pooled], attributes)
    back = torch.zeros(1, 4, 4, 4)
    back[0, 0, :2, :2] = back[0, 1, :2, 2:] = back[0, 2, 2:, :2] = back[0, 3, 2:, 2:] = 0.25
    yield Case("PSROIPoolingGradV2D", [torch.ones(1, 1, 2, 2), boxes], [back], {**attributes, "input_size": [4, 4]})
    images = _numbers(1, 3, 3, 2)  # N, H, W, C
    offsets = torch.zeros(1, 3, 3, 3)
    offsets[..., 0], offsets[..., 2] = 0.5, 2.0  # half an element to the right, times 2
    shifted = images + F.pad(images, (0, 0, 0, 1))[:, :, 1:]
    attributes = {
        "strides": [1, 1, 1, 1], "pads": [0, 0, 0, 0], "ksize": [1, 1], "dilations": [1, 1, 1, 1],
        "data_format": "NHWC", "deformable_groups": 1, "modulated": True,
    }  # fmt: skip
    yield Case("DeformableOffsets", [images, offsets], [shifted], attributes)
    grad = _numbers(1, 3, 3, 2, seed=5)
    of_images = grad + F.pad(grad, (0, 0, 1, 0))[:, :, :3]
    right = F.pad(images, (0, 0, 0, 1))[:, :, 1:]
    of_offsets = torch.zeros(1, 3, 3, 3)
    of_offsets[..., 0] = (grad * 2 * (right - images)).sum(-1)
    below = F.pad(images, (0, 0, 0, 0, 0, 1))[:, 1:]
    below_right = F.pad(below, (0, 0, 0, 1))[:, :, 1:]
    of_offsets[..., 1] = (grad * 2 * ((below + below_right) / 2 - (images + right) / 2)).sum(-1)
    of_offsets[..., 2] = (grad * (images + right) / 2).sum(-1)
    yield Case("DeformableOffsetsGrad", [grad, images, offsets], [of_images, of_offsets], attributes)


def _random() -> Iterator[Case]:
    # If everything is kept, or there is no choice, nothing is random.
    one = Host(torch.tensor(1.0))
    ones = torch.ones(15, dtype=torch.uint8)
    yield Case("DropOutGenMaskV3", [Host.ints(3, 5), one], [ones], {"seed": 1, "seed2": 0}, exact=True)
    seed = Host(torch.tensor(1, dtype=torch.int32))
    full = torch.full((16,), 255, dtype=torch.uint8)
    yield Case(
        "StatelessDropOutGenMask", [Host.ints(3, 5), one, seed, Host.ints(0), Host.ints(0, 0)], [full], exact=True
    )
    half = Host(torch.tensor(0.5))
    bits = torch.zeros(16, dtype=torch.uint8)
    bits[0] = 0b00000101
    kept = torch.zeros(3, 5)
    kept[0, 0], kept[0, 2] = 2 * X[0, 0], 2 * X[0, 2]
    yield Case("DropOutDoMask", [X, bits, half], [kept])
    yield Case("DropOutDoMaskV3", [X, B.to(torch.uint8), half], [2 * X * B])
    softmax = (X + 0.5 * Y).softmax(1)
    attributes: dict[str, Attribute] = {"alpha": 0.5, "input_keep_prob": 0.5, "axis": [-1]}
    mask = B.to(torch.uint8)
    yield Case("AxpyWithSoftmaxAndDropOutDoMask", [X, Y, mask], [softmax, 2 * softmax * B], attributes)

    def dropped(y: Tensor) -> Tensor:
        return 2 * (X + 0.5 * y).softmax(1) * B

    back = _grad(dropped, Y, grad=G)
    attributes = {"alpha": 0.5, "input_keep_prob": 0.5, "axes": [-1]}
    yield Case("DropoutWithMulsAndSoftmaxGrad", [G, mask, softmax], [back], attributes)
    chosen = [torch.tensor([[0], [2], [0]], dtype=torch.int32), torch.tensor([True, True, False])]
    attributes = {"count": 3, "seed": 1, "seed2": 0}
    yield Case("RandomChoiceWithMask", [torch.tensor([True, False, True, False])], chosen, attributes, exact=True)


def _recurrent() -> Iterator[Case]:
    steps, batch, features, hidden = 3, 2, 4, 5
    x, h0, c0 = _numbers(steps, batch, features), _numbers(1, batch, hidden, seed=1), _numbers(1, batch, hidden, seed=2)
    for gates, kind in ((4, "LSTM"), (3, "GRU")):
        of_input = _numbers(features, gates * hidden, seed=3)
        of_hidden = _numbers(hidden, gates * hidden, seed=4)
        biases = [_numbers(gates * hidden, seed=i) for i in (5, 6)]
        yield from (_lstm if kind == "LSTM" else _gru)(x, h0, c0, of_input, of_hidden, biases)


def _lstm(x: Tensor, h0: Tensor, c0: Tensor, wx: Tensor, wh: Tensor, biases: list[Tensor]) -> Iterator[Case]:
    def run(x: Tensor, h: Tensor, c: Tensor, wx: Tensor, wh: Tensor, b: Tensor) -> list[Tensor]:
        """y, h, c, i, j, f, o and tanh(c) of each step."""
        h, c, all_steps = h[0], c[0], []
        for step in x:
            i, f, j, o = (step @ wx + h @ wh + b).chunk(4, -1)
            i, f, j, o = i.sigmoid(), f.sigmoid(), j.tanh(), o.sigmoid()
            c = f * c + i * j
            h = o * c.tanh()
            all_steps.append((h, h, c, i, j, f, o, c.tanh()))
        return [torch.stack(each) for each in zip(*all_steps, strict=True)]

    bias = biases[0]
    outputs = run(x, h0, c0, wx, wh, bias)
    cell: dict[str, Attribute] = {"cell_type": "LSTM", "direction": "UNIDIRECTIONAL", "cell_clip": -1.0}
    attributes = {**cell, "gate_order": "ifjo"}
    w = torch.cat([wx, wh])

    def of_cann(parameter: Tensor) -> Tensor:
        """In CANN's own order of gates."""
        i, f, j, o = parameter.chunk(4, -1)
        return torch.cat([i, j, f, o], -1)

    yield Case("DynamicRNN", [x, w, bias, None, h0, c0], outputs, attributes)
    backwards = [each.flip(0) for each in run(x.flip(0), h0, c0, wx, wh, bias)]
    yield Case("DynamicRNN", [x, w, bias, None, h0, c0], backwards, {**attributes, "direction": "REDIRECTIONAL"})
    yield Case("DynamicRNN", [x, of_cann(w), of_cann(bias), None, h0, c0], outputs, cell)
    yield Case("DynamicRNNV2", [x, wx, wh, bias, None, h0, c0], outputs, {**attributes, "stateful": False})
    yield Case("DynamicRNNV2", [x, of_cann(wx), of_cann(wh), of_cann(bias), None, h0, c0], outputs, cell)
    dy, dh, dc = _numbers(*outputs[0].shape, seed=7), _numbers(*h0.shape, seed=8), _numbers(*c0.shape, seed=9)
    leaves = [t.clone().requires_grad_() for t in (x, h0, c0, wx, wh, bias)]
    y, h, c, *_ = run(*leaves)
    ((y * dy).sum() + (h[-1:] * dh).sum() + (c[-1:] * dc).sum()).backward()
    of_x, of_h, of_c, of_wx, of_wh, of_b = (leaf.grad for leaf in leaves)
    unused = torch.zeros(())
    trace = [outputs[1], outputs[2], dy, dh, dc, *outputs[3:]]
    inputs = [x, w, bias, outputs[0], h0, c0, *trace, unused, torch.zeros((), dtype=torch.uint8), *[unused] * 3]
    of_w = torch.cat([of_wx, of_wh])
    yield Case("DynamicRNNGrad", inputs, [of_w, of_b, of_x, of_h, of_c], attributes)
    inputs = [x, of_cann(w), *inputs[2:]]
    yield Case("DynamicRNNGrad", inputs, [of_cann(of_w), of_cann(of_b), of_x, of_h, of_c], cell)
    inputs = [x, wx, wh, outputs[0], h0, c0, *trace, *[unused] * 4, torch.zeros((), dtype=torch.uint8)]
    yield Case("DynamicRNNV2Grad", inputs, [of_wx, of_wh, of_b, of_x, of_h, of_c], attributes)
    inputs = [x, of_cann(wx), of_cann(wh), *inputs[3:]]
    results = [of_cann(of_wx), of_cann(of_wh), of_cann(of_b), of_x, of_h, of_c]
    yield Case("DynamicRNNV2Grad", inputs, results, cell)


def _gru(x: Tensor, h0: Tensor, _: Tensor, wx: Tensor, wh: Tensor, biases: list[Tensor]) -> Iterator[Case]:
    def run(x: Tensor, h: Tensor, wx: Tensor, wh: Tensor, bx: Tensor, bh: Tensor) -> list[Tensor]:
        """y, h, update, reset, new and the new state's part of the hidden one, of each step."""
        h, all_steps = h[0], []
        for step in x:
            (xr, xz, xn), (hr, hz, hn) = (step @ wx + bx).chunk(3, -1), (h @ wh + bh).chunk(3, -1)
            r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
            n = (xn + r * hn).tanh()
            h = (1 - z) * n + z * h
            all_steps.append((h, h, z, r, n, hn))
        return [torch.stack(each) for each in zip(*all_steps, strict=True)]

    outputs = run(x, h0, wx, wh, *biases)
    attributes: dict[str, Attribute] = {"direction": "UNIDIRECTIONAL", "gate_order": "rzh", "reset_after": True}
    yield Case("DynamicGRUV2", [x, wx, wh, *biases, None, h0], outputs, attributes)
    dy, dh = _numbers(*outputs[0].shape, seed=7), _numbers(*h0.shape, seed=8)
    leaves = [t.clone().requires_grad_() for t in (x, h0, wx, wh, *biases)]
    y = run(*leaves)[0]
    ((y * dy).sum() + (y[-1:] * dh).sum()).backward()
    of_x, of_h, of_wx, of_wh, of_bx, of_bh = (leaf.grad for leaf in leaves)
    inputs = [x, wx, wh, outputs[0], h0, outputs[1], dy, dh, *outputs[2:], None, None]
    yield Case("DynamicGRUV2Grad", inputs, [of_wx, of_wh, of_bx, of_bh, of_x, of_h], attributes)


def _steps() -> Iterator[Case]:
    m, v = _numbers(3, 5, seed=4), P.flip(0)

    def numbers(*values: float) -> list[Tensor]:
        return [torch.tensor(value) for value in values]

    lr, b1, b2, eps = 0.1, 0.9, 0.99, 1e-3
    next_m, next_v = m * b1 + G * (1 - b1), v * b2 + G * G * (1 - b2)
    rate = lr * math.sqrt(1 - 0.98) / (1 - 0.81)
    result = [X - rate * next_m / (next_v.sqrt() + eps), next_m, next_v]
    yield Case("ApplyAdamD", [X, m, v, *numbers(0.81, 0.98, lr, b1, b2, eps), G], result)
    decayed = X * (1 - lr * 0.1)
    corrected = next_m / (1 - 0.81 * b1) / ((next_v / (1 - 0.98 * b2)).sqrt() + eps)
    result = [decayed - lr * corrected, next_m, next_v]
    inputs = [X, m, v, *numbers(0.81, 0.98, lr, 0.1, b1, b2, eps), G, None]
    yield Case("ApplyAdamW", inputs, result, {"amsgrad": False, "maximize": False})
    result = [X - lr * (next_m / (next_v.sqrt() + eps) + 0.1 * X), next_m, next_v]
    inputs = [X, m, v, *numbers(lr, b1, b2, eps), G, *numbers(-1, 0, 0.1)]
    yield Case("ApplyAdamV2", inputs, result, {"adam_mode": "adam"})


def _quantised() -> Iterator[Case]:
    # All data at one value: the scale for which it is the last code has no error.
    data = torch.full((8,), 2.0)
    bins = torch.tensor([0, 0, 0, 8], dtype=torch.int32)
    attributes: dict[str, Attribute] = {
        "min_percentile": 1.0, "max_percentile": 1.0, "search_range": [1.0, 2.0], "search_step": 0.25,
        "with_offset": False,
    }  # fmt: skip
    # 3 of 4 bins are before it: the span ends at 1.5, and 1.5 * 1.25 / 127 is nearest to 2 / 127.
    steps = [1.5 * (1 + 0.25 * i) / 127 for i in range(4)]
    errors = [abs(min(round(2 / s), 127) * s - 2) for s in steps]
    best = torch.tensor([steps[errors.index(min(errors))]])
    limits = [torch.tensor([0.0]), torch.tensor([2.0])]
    yield Case("IFMR", [data, *limits, bins], [best, torch.zeros(1)], attributes)
    # With an offset, the codes -128 to 127 span -1 to 3 of 4 bins, 1.25: the first scale has no error.
    scale = (1.25 + 1) / 255
    data = torch.tensor([-113.0, 142, 0, 50]) * scale
    bins, limits = torch.tensor([1, 2, 3, 4], dtype=torch.int32), [torch.tensor([-1.0]), torch.tensor([2.0])]
    best = [torch.tensor([scale]), torch.tensor([113.0 - 128])]
    yield Case("IFMR", [data, *limits, bins], best, attributes | {"with_offset": True})
    signs = torch.tensor([1.0, -1, 0, -2, 3, -1, -1, -1, 5])
    packed = torch.tensor([[0b00010101, 0b00000001]], dtype=torch.uint8)
    yield Case("SignBitsPack", [signs], [packed], {"size": 1}, exact=True)
    unpacked = torch.tensor([[1.0, -1, 1, -1, 1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1]])
    yield Case("SignBitsUnpack", [packed.flatten()], [unpacked], {"size": 1, "dtype": 0}, exact=True)
    status = torch.zeros(8)
    yield Case("NPUAllocFloatStatus", [], [status], exact=True)
    yield Case("NPUGetFloatStatusV2", [], [status], exact=True)
    yield Case("NPUGetFloatDebugStatus", [], [status], exact=True)
    yield Case("NPUGetFloatStatus", [status], [status], exact=True)
    yield Case("NPUClearFloatStatus", [status], [status], exact=True)
    yield Case("NPUClearFloatStatusV2", [], [])
    yield Case("NPUClearFloatDebugStatus", [], [])


def cases() -> list[Case]:
    families = (
        _elementwise, _moved, _created, _reduced, _products, _convolutions, _normalised, _losses, _indexed, _sorted,
        _pooled, _resized, _boxes, _regions, _random, _recurrent, _steps, _quantised,
    )  # fmt: skip
    return [case for family in families for case in family()]
