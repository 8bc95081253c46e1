"""Sums, products and similar functions under torch_npu; csrc/cann/rows/elementwise, shape/copy_and_fill.cpp."""

from __future__ import annotations

from functools import partial

import torch
import torch_npu

from .aten_ops import Case, cases_of, check, on_npu

A = torch.linspace(-4, 4, 24).reshape(4, 6)
B = torch.linspace(3, 0.5, 24).reshape(6, 4).t()
ROW = torch.linspace(1, 2, 6)
N = torch.arange(-12, 12).reshape(4, 6)
J = torch.arange(1, 7)
MIXED = [
    (A, B),
    (A.half(), B.half()),
    (A.bfloat16(), B.bfloat16()),
    (A.double(), B.double()),
    (A, ROW),
    (A.half(), B),
    (A, J),
    (N, J),
    (N.int(), J.int()),
    (N, ROW),
    (torch.empty(0, 6), ROW),
]
INTEGERS_ALIKE = [pair for pair in MIXED if pair[0].is_floating_point() or not pair[1].is_floating_point()]
NUMBERED = [(A, 2.5), (A.half(), 2.5), (A.bfloat16(), -3), (N, 3), (N, 2.5), (A.double(), 0.1), (N.to(torch.uint8), 3)]
ALIKE = [(x, y) for x, y in NUMBERED if x.is_floating_point() or isinstance(y, int)]


def in_place(name: str, **keywords: object) -> partial[object]:
    return partial(getattr(torch.Tensor, name), **keywords)


TENSOR_FUNCTIONS = [
    ("Add", torch.add),
    ("Add", partial(torch.add, alpha=2)),
    ("Sub", torch.sub),
    ("Sub", partial(torch.sub, alpha=-3)),
    ("Mul", torch.mul),
    ("Div", torch.div),
    ("DivMod", partial(torch.div, rounding_mode="trunc")),
    ("DivMod", partial(torch.div, rounding_mode="floor")),
    ("FloorDivide", torch.floor_divide),
    ("RemainderTensorTensor", torch.remainder),
    ("FmodTensor", torch.fmod),
    ("PowTensorTensor", torch.pow),
]
NUMBER_FUNCTIONS = [
    ("Adds", torch.add),
    ("Adds", partial(torch.add, alpha=2)),
    ("Subs", partial(torch.sub, alpha=3)),
    ("Rsubs", torch.rsub),
    ("Muls", torch.mul),
    ("Divs", torch.div),
    ("DivMods", partial(torch.div, rounding_mode="trunc")),
    ("DivMods", partial(torch.div, rounding_mode="floor")),
    ("FloorDivides", torch.floor_divide),
    ("RemainderTensorScalar", torch.remainder),
    ("FmodScalar", torch.fmod),
    ("PowTensorScalar", torch.pow),
]
IN_PLACE_TENSOR = [
    ("InplaceAdd", in_place("add_", alpha=2)),
    ("InplaceSub", in_place("sub_", alpha=2)),
    ("InplaceMul", in_place("mul_")),
    ("InplaceDivMod", in_place("div_", rounding_mode="floor")),
    ("InplaceFloorDivide", in_place("floor_divide_")),
    ("InplaceRemainderTensorTensor", in_place("remainder_")),
    ("InplaceFmodTensor", in_place("fmod_")),
    ("InplacePowTensorTensor", in_place("pow_")),
]
IN_PLACE_NUMBER = [
    ("InplaceAdds", in_place("add_", alpha=2)),
    ("InplaceSubs", in_place("sub_", alpha=2)),
    ("InplaceMuls", in_place("mul_")),
    ("InplaceDivMods", in_place("div_", rounding_mode="trunc")),
    ("InplaceFloorDivides", in_place("floor_divide_")),
    ("InplaceRemainderTensorScalar", in_place("remainder_")),
    ("InplaceFmodScalar", in_place("fmod_")),
    ("InplacePowTensorScalar", in_place("pow_")),
]
POSITIVE = A.abs() + 0.5

# Results computed by the same ATen code on both devices are bitwise equal.
CASES = [
    *(Case(name, call, pair) for name, call in TENSOR_FUNCTIONS for pair in MIXED if "Pow" not in name),
    *(Case("PowTensorTensor", torch.pow, (x.abs(), y)) for x, y in MIXED if y is not B.t()),
    *(Case(name, call, pair) for name, call in NUMBER_FUNCTIONS for pair in NUMBERED if "Pow" not in name),
    *(Case("PowTensorScalar", torch.pow, (POSITIVE.to(x.dtype), y)) for x, y in NUMBERED),
    *(Case(name, call, pair) for name, call in IN_PLACE_TENSOR for pair in INTEGERS_ALIKE if "Pow" not in name),
    *(Case("InplacePowTensorTensor", torch.Tensor.pow_, (POSITIVE.to(d), B.to(d))) for d in (torch.half, torch.float)),
    *(Case(name, call, pair) for name, call in IN_PLACE_NUMBER for pair in ALIKE if "Pow" not in name),
    *(Case("InplacePowTensorScalar", torch.Tensor.pow_, (POSITIVE.to(d), 1.5)) for d in (torch.half, torch.float)),
    Case("InplaceDiv", torch.Tensor.div_, (A, B)),
    Case("InplaceDivs", torch.Tensor.div_, (A.half(), 3)),
    Case("PowScalarTensor", torch.pow, (2.5, A)),
    Case("PowScalarTensor", torch.pow, (2, J)),
    Case("RemainderScalarTensor", torch.remainder, (7.5, ROW)),
    Case("Rsub", torch.rsub, (A, B)),
    Case("Gcd", torch.gcd, (N + 20, J)),
    Case("Adds", lambda x: 1 - x + 2, (A,)),
    Case("AddV3", lambda x: torch.add(torch.tensor(2.5), x, alpha=3), (A,)),
    *(
        Case(name, call, (A.to(d), B.to(d), ROW.to(d)))
        for d in (torch.float, torch.half, torch.bfloat16)
        for name, call in [
            ("Addcmul", partial(torch.addcmul, value=0.5)),
            ("Addcdiv", partial(torch.addcdiv, value=-2)),
            ("InplaceAddcmul", in_place("addcmul_", value=2)),
            ("InplaceAddcdiv", in_place("addcdiv_", value=0.25)),
            ("Lerp", torch.lerp),
            ("InplaceLerp", in_place("lerp_")),
        ]
    ),
    *(Case("Lerps", torch.lerp, (A.to(d), B.to(d), 0.3)) for d in (torch.float, torch.half)),
    Case("InplaceLerps", torch.Tensor.lerp_, (A, B, 0.75)),
    Case("XLogYTensor", torch.xlogy, (A, B)),
    Case("XLogYScalarOther", torch.xlogy, (A, 2.5)),
    Case("InplaceXLogYScalarOther", torch.Tensor.xlogy_, (A, 2.5)),
    Case("XLogYScalarSelf", torch.xlogy, (2.5, B)),
    Case("LogAddExp", torch.logaddexp, (A, B)),
    Case("LogAddExp2", torch.logaddexp2, (A, B)),
    Case("Complex", torch.complex, (A, B)),
    Case("Polar", torch.polar, (A.abs(), B)),
    Case("AddRelu", torch.ops.aten._add_relu.Tensor, (A, B)),
    Case("InplaceAddRelu", torch.ops.aten._add_relu_.Tensor, (A, B)),
    # Copies with other strides, dtypes and shapes.
    *(
        Case("InplaceCopy", torch.Tensor.copy_, (torch.zeros(4, 6, dtype=to), A.to(of).t().contiguous().t()))
        for of in (torch.float32, torch.float16, torch.int64, torch.bool)
        for to in (torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.float64)
    ),
    Case("InplaceCopy", torch.Tensor.copy_, (torch.zeros(4, 6), ROW)),
    Case("InplaceCopy", torch.Tensor.contiguous, (B,)),
    Case("InplaceCopy", torch.Tensor.copy_, (torch.zeros(6, 8)[::2, 1:7], ROW)),
    *(
        Case("Cast", on_npu(torch_npu.npu_dtype_cast, torch.Tensor.to), (A, dtype))
        for dtype in (torch.half, torch.int32, torch.bool)
    ),
    Case("InplaceZero", torch.Tensor.zero_, (B,)),
    Case("InplaceOne", lambda x: torch.ones(2, 3, dtype=x.dtype, device=x.device), (N,)),
    *(Case("InplaceFillScalar", torch.Tensor.fill_, (x[:, ::2], 3)) for x in (A, N, A.half(), A > 0)),
    Case("InplaceFillTensor", torch.Tensor.fill_, (B, torch.tensor(2.5))),
]


@cases_of(CASES)
def test_arithmetic(case: Case) -> None:
    check(case)
