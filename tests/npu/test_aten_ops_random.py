"""Random numbers under torch_npu; csrc/cann/rows/random.

The numbers differ from the CPU's and from a device's: tested are their dependence on the seed, their distribution, and
properties of each number.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from .aten_ops import Case, on_product, operators_of

N = 40_000
DEVICE = "npu:0"


def like(dtype: torch.dtype = torch.float) -> torch.Tensor:
    return torch.empty(N, dtype=dtype, device=DEVICE)


# They are not compared with the CPU.
CASES = [
    Case("InplaceUniform", lambda: like().uniform_(-1, 3), ()),
    Case("InplaceNormal", lambda: like().normal_(2, 3), ()),
    Case("NormalFloatFloat", lambda: torch.normal(2.0, 3.0, (N,), device=DEVICE), ()),
    Case("NormalTensorFloat", lambda: torch.normal(torch.full((N,), 2.0, device=DEVICE), 3.0), ()),
    Case("NormalFloatTensor", lambda: torch.normal(2.0, torch.full((N,), 3.0, device=DEVICE)), ()),
    Case("NormalTensorTensor", lambda: torch.normal(*(torch.full((N,), x, device=DEVICE) for x in (2.0, 3.0))), ()),
    Case("InplaceRandom", lambda: torch.randint(3, 9, (N,), device=DEVICE), ()),
    Case("InplaceRandomWithoutFromTo", lambda: like().random_(), (), product="950"),
    Case("Randperm", lambda: torch.randperm(N, device=DEVICE), ()),
    Case("InplaceBernoulli", lambda: like().bernoulli_(0.25), ()),
    Case("InplaceBernoulliTensor", lambda: like().bernoulli_(torch.full((N,), 0.25, device=DEVICE)), ()),
    Case(
        "Multinomial", lambda: torch.multinomial(torch.tensor([1.0, 0.0, 3.0], device=DEVICE), N, replacement=True), ()
    ),
    Case("SimThreadExponential", lambda: like().exponential_(0.5), (), product="950"),
    Case("DropoutGenMaskV2 DropoutDoMask", lambda: dropped_and_gradient(), (), product="910"),
    Case("DropoutV3 DropoutV3Grad", lambda: dropped_and_gradient(), (), product="950"),
]
RANDOM = {case.functions: case.call for case in CASES}


def dropped_and_gradient() -> torch.Tensor:
    """A dropout's result and the gradient of its argument, in two rows."""
    x = torch.ones(N, device=DEVICE, requires_grad=True)
    y = F.dropout(x, 0.25)
    return torch.stack([y.detach(), *torch.autograd.grad(y, x, torch.ones_like(y))])


# Expected mean and standard deviation.
MOMENTS = {
    "InplaceUniform": (1, 4 / 12**0.5),
    "InplaceNormal": (2, 3),
    "NormalFloatFloat": (2, 3),
    "NormalTensorFloat": (2, 3),
    "NormalFloatTensor": (2, 3),
    "NormalTensorTensor": (2, 3),
    "InplaceRandom": (5.5, (35 / 12) ** 0.5),
    "InplaceBernoulli": (0.25, 0.1875**0.5),
    "InplaceBernoulliTensor": (0.25, 0.1875**0.5),
    "Multinomial": (1.5, 0.75**0.5),
    "SimThreadExponential": (2, 2),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_seed_decides(case: Case) -> None:
    if not on_product(case.product):
        pytest.skip(f"torch_npu calls {case.functions} on Ascend{case.product} alone")
    torch.manual_seed(5)
    first, ran = operators_of(case.call)
    assert set(case.functions.split()) <= set(ran)
    second = case.call()
    assert not torch.equal(first.cpu(), second.cpu())
    torch.manual_seed(5)
    assert torch.equal(case.call().cpu(), first.cpu())
    assert torch.equal(case.call().cpu(), second.cpu())
    torch.manual_seed(6)
    assert not torch.equal(case.call().cpu(), first.cpu())


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    """Within five standard errors; the seed is fixed."""
    torch.manual_seed(1)
    mean, deviation = MOMENTS[name]
    numbers = RANDOM[name]().cpu().double()
    assert abs(numbers.mean() - mean) < 5 * deviation / N**0.5
    assert abs(numbers.std() - deviation) < 5 * deviation / N**0.5


def test_ranges() -> None:
    torch.manual_seed(2)
    uniform = RANDOM["InplaceUniform"]()
    assert -1 <= uniform.min() < -0.99
    assert 2.99 < uniform.max() < 3
    assert RANDOM["InplaceRandom"]().unique().tolist() == [3, 4, 5, 6, 7, 8]
    assert RANDOM["Randperm"]().sort().values.tolist() == list(range(N))
    assert RANDOM["InplaceBernoulli"]().unique().tolist() == [0, 1]
    drawn = torch.multinomial(torch.tensor([[0.0, 1, 1, 0]], device=DEVICE), 2)
    assert sorted(drawn[0].tolist()) == [1, 2]


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.double])
def test_other_types(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    assert like(dtype).uniform_().cpu().double().mean() == pytest.approx(0.5, abs=0.01)
    assert like(dtype).normal_().cpu().double().std() == pytest.approx(1, abs=0.02)


def test_numbers_do_not_depend_on_strides() -> None:
    torch.manual_seed(4)
    straight = torch.empty(30, 20, device=DEVICE).uniform_()
    torch.manual_seed(4)
    turned = torch.empty(20, 30, device=DEVICE).t().uniform_()
    assert torch.equal(straight.cpu(), turned.cpu())


@pytest.mark.parametrize("dtype", [torch.float, torch.half, torch.bfloat16])
@pytest.mark.parametrize("shape", [(N,), (77, 3), (0,)])
@pytest.mark.parametrize("probability", [0.25, 0.0, 1.0])
def test_dropout(dtype: torch.dtype, shape: tuple[int, ...], probability: float) -> None:
    """Kept elements are scaled, forward and backward alike; dropped ones have no gradient."""
    torch.manual_seed(7)
    x = torch.ones(shape, dtype=dtype, device=DEVICE, requires_grad=True)
    y = F.dropout(x, probability)
    (gradient,) = torch.autograd.grad(y, x, torch.full_like(y, 2))
    y, gradient = y.detach().cpu().float(), gradient.cpu().float()
    scale = torch.tensor(1 / (1 - probability) if probability < 1 else 0.0).to(dtype).float()
    assert set(y.unique().tolist()) <= {0.0, scale.item()}
    torch.testing.assert_close(gradient, 2 * y)
    if shape == (N,):
        assert (y != 0).float().mean() == pytest.approx(1 - probability, abs=0.015)
    torch.manual_seed(7)
    assert torch.equal(F.dropout(x.detach(), probability).cpu().float(), y)


def test_initialisers_train_alike() -> None:
    for initialise in (torch.nn.init.xavier_uniform_, torch.nn.init.kaiming_normal_, torch.nn.init.trunc_normal_):
        torch.manual_seed(8)
        first = initialise(torch.empty(30, 20, device=DEVICE))
        torch.manual_seed(8)
        assert torch.equal(initialise(torch.empty(30, 20, device=DEVICE)).cpu(), first.cpu())
        assert 0 < first.cpu().std() < 2
