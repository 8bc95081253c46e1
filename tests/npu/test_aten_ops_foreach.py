"""Lists of tensors and optimisers under torch_npu; csrc/cann/rows/foreach, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from .aten_ops import Case, cases_of, check, numbers

LISTS = [
    [numbers(3, 4), numbers(5, seed=1), numbers(2, 3, seed=2).t(), numbers(0), numbers(seed=4)],
    [numbers(3, 4).half(), numbers(5, seed=1).half()],
    [numbers(3, 4).bfloat16(), numbers(5, seed=1).bfloat16()],
    [numbers(2, seed=i) for i in range(70)],
]
POSITIVE = [x.abs() + 0.5 for x in LISTS[0]]
SMALL = [x.clamp(-0.9, 0.9) for x in LISTS[0]]


def others(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.flip(0) + 2 if x.dim() else x + 2 for x in tensors]


FUNCTIONS = "abs ceil cos cosh erf erfc exp expm1 floor frac neg reciprocal round sigmoid sign sin sinh tan tanh trunc"
OF_POSITIVE = "log log10 log1p log2 sqrt"
OF_SMALL = "acos asin atan"
ROUNDING = ("ceil", "floor", "frac", "round", "trunc")


def unary(names: str, tensors: list[torch.Tensor]) -> list[Case]:
    return [
        Case(
            "ForeachRoundOffNumberV2" if name in ROUNDING else f"Foreach{name.capitalize()}",
            getattr(torch, f"_foreach_{name}{suffix}"),
            (tensors,),
        )
        for name in names.split()
        for suffix in ("", "_")
    ]


def parameters(optimiser: type[torch.optim.Optimizer], steps: int = 3, **options: Any) -> Callable[..., Any]:
    """The parameters after some steps of an optimiser."""

    def call(tensors: list[torch.Tensor], gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        leaves = [x.clone().requires_grad_() for x in tensors]
        stepper = optimiser(leaves, **options)
        for step in range(steps):
            for leaf, gradient in zip(leaves, gradients, strict=True):
                leaf.grad = gradient * (step + 1)
            stepper.step()
        return leaves

    return call


def clipped(tensors: list[torch.Tensor], **options: Any) -> list[torch.Tensor]:
    """Gradients after clipping, and their norm."""
    leaves = [torch.zeros_like(x).requires_grad_() for x in tensors]
    for leaf, gradient in zip(leaves, tensors, strict=True):
        leaf.grad = gradient.clone()
    norm = torch.nn.utils.clip_grad_norm_(leaves, 1.0, **options)
    return [norm, *(leaf.grad for leaf in leaves)]


OPTIMISERS = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {"lr": 0.1, "weight_decay": 0.01}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.1}),
    (torch.optim.RMSprop, {"lr": 0.1, "momentum": 0.5, "centered": True}),
    (torch.optim.Adagrad, {"lr": 0.1}),
    (torch.optim.Adadelta, {}),
    (torch.optim.Adamax, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.RAdam, {}),
]
DECIMALS = 2**-21
WEIGHTS = [numbers(3, 4), numbers(5, seed=1), numbers(2, 3, seed=2)]
SLOPES = [numbers(3, 4, seed=3), numbers(5, seed=4), numbers(2, 3, seed=5)]

CASES = [
    *(case for tensors in LISTS for case in unary(FUNCTIONS, tensors)),
    *unary(OF_POSITIVE, POSITIVE),
    *unary(OF_SMALL, SMALL),
    *(
        Case(name, call, (tensors,), product="910" if name == "ForeachMinimumScalarV2" else "")
        for tensors in LISTS
        for name, call in [
            ("ForeachAddScalarV2", lambda x: torch._foreach_add(x, 1.5)),
            ("ForeachSubScalarV2", lambda x: torch._foreach_sub_(x, 1.5)),
            ("ForeachMulScalarV2", lambda x: torch._foreach_mul_(x, 3)),
            ("ForeachDivScalarV2", lambda x: torch._foreach_div(x, 3.0)),
            ("ForeachPowScalarV2", lambda x: torch._foreach_pow(x, 2)),
            ("ForeachMaximumScalarV2", lambda x: torch._foreach_clamp_min(x, 0.25)),
            ("ForeachMinimumScalarV2", lambda x: torch._foreach_minimum_(x, 0.25)),
            ("ForeachAddScalarList", lambda x: torch._foreach_add(x, [0.5 * i for i in range(len(x))])),
            ("ForeachSubScalarList", lambda x: torch._foreach_sub(x, [0.5 * i for i in range(len(x))])),
            ("ForeachMulScalarList", lambda x: torch._foreach_mul(x, [0.5 * i for i in range(len(x))])),
            ("ForeachDivScalarList", lambda x: torch._foreach_div_(x, [0.5 + i for i in range(len(x))])),
            ("ForeachPowScalarList", lambda x: torch._foreach_pow(x, [1.0 + i % 3 for i in range(len(x))])),
            ("ForeachMaximumScalarList", lambda x: torch._foreach_maximum(x, [0.1 * i for i in range(len(x))])),
            ("ForeachMinimumScalarList", lambda x: torch._foreach_minimum(x, [0.1 * i for i in range(len(x))])),
            ("ForeachNorm", torch._foreach_norm),
            ("ForeachNorm", lambda x: torch._foreach_norm(x, 1)),
            ("ForeachPowScalarAndTensor", lambda x: torch._foreach_pow(2.0, x)),
            ("ForeachZeroInplace", torch._foreach_zero_),
        ]
    ),
    *(
        Case(name, call, (tensors, others(tensors)))
        for tensors in LISTS
        for name, call in [
            ("ForeachAddListV2", lambda x, y: torch._foreach_add(x, y, alpha=2)),
            ("ForeachSubListV2", lambda x, y: torch._foreach_sub_(x, y, alpha=3)),
            ("ForeachMulList", torch._foreach_mul),
            ("ForeachDivList", torch._foreach_div_),
            ("ForeachPowList", lambda x, y: torch._foreach_pow(y, x)),
            ("ForeachMaximumList", torch._foreach_maximum),
            ("ForeachMinimumList", torch._foreach_minimum_),
            ("ForeachLerpScalar", lambda x, y: torch._foreach_lerp(x, y, 0.25)),
            ("ForeachLerpList", lambda x, y: torch._foreach_lerp_(x, y, y)),
            ("ForeachAddcmulScalarV2", lambda x, y: torch._foreach_addcmul(x, y, y, 0.5)),
            ("ForeachAddcdivScalarV2", lambda x, y: torch._foreach_addcdiv_(x, x, y, 0.5)),
            ("ForeachCopy", torch._foreach_copy_),
        ]
    ),
    *(
        Case("", parameters(optimiser, foreach=foreach, **options), (WEIGHTS, SLOPES), tolerance, tolerance)
        for optimiser, options in OPTIMISERS
        # By default, lists are processed together on the NPU and one by one on the CPU.
        for foreach, tolerance in ((None, DECIMALS), (True, 0), (False, 0))
    ),
    Case(
        "FusedSgd", parameters(torch.optim.SGD, lr=0.1, momentum=0.9, fused=True), (WEIGHTS, SLOPES), DECIMALS, DECIMALS
    ),
    Case(
        "FusedSgd",
        parameters(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, fused=True),
        (WEIGHTS, SLOPES),
        DECIMALS,
        DECIMALS,
    ),
    Case(
        "ApplyAdamWV2", parameters(torch.optim.AdamW, lr=0.1, fused=True), (WEIGHTS, SLOPES), 4 * DECIMALS, 4 * DECIMALS
    ),
    Case(
        "ApplyAdamWV2",
        parameters(torch.optim.AdamW, lr=0.1, amsgrad=True, maximize=True, fused=True),
        (WEIGHTS, SLOPES),
        4 * DECIMALS,
        4 * DECIMALS,
    ),
    *(
        Case("FusedAdam", parameters(torch.optim.Adam, fused=True, **options), (WEIGHTS, SLOPES), product="950")
        for options in ({"lr": 0.1}, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1})
    ),
    Case("ForeachNorm", clipped, (SLOPES,)),
    Case("", partial(clipped, foreach=False), (SLOPES,)),
    Case("", partial(clipped, norm_type=float("inf")), (SLOPES,)),
    *(
        Case(
            "ForeachNonFiniteCheckAndUnscale",
            torch._amp_foreach_non_finite_check_and_unscale_,
            (gradients, torch.tensor([0.0]), torch.tensor([0.125])),
        )
        for gradients in (SLOPES, [*SLOPES, torch.tensor([1.0, float("inf")])], [SLOPES[0].half()])
    ),
    *(
        Case(
            "AmpUpdateScale",
            partial(torch._amp_update_scale_, scale_growth_factor=2.0, scale_backoff_factor=0.5, growth_interval=3),
            (torch.tensor([8.0]), torch.tensor([steps], dtype=torch.int32), torch.tensor([found])),
        )
        for steps, found in ((0, 0.0), (2, 0.0), (2, 1.0))
    ),
]


@cases_of(CASES)
def test_foreach(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_gradient_scaler(bad: float | None) -> None:
    """Non-finite gradients skip the step and lower the scale."""
    weight = torch.ones(3, device="npu", requires_grad=True)
    stepper = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("npu", init_scale=8.0, growth_interval=1)
    factor = torch.tensor([1.0, 2.0, 4.0 if bad is None else bad]).npu()
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(stepper)
    scaler.update()
    expected = [0.5, 0.0, -1.0] if bad is None else [1.0, 1.0, 1.0]
    assert weight.detach().cpu().tolist() == expected
    assert scaler.get_scale() == (16.0 if bad is None else 4.0)
