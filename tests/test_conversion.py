"""aclnn_torch.convert and revert."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import Tensor

import aclnn_torch
from tests import inductor


class LlamaRMSNorm(torch.nn.Module):
    """As in model libraries: the scaled values are rounded before the multiplication by the weight."""

    def __init__(self, size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        wide = hidden_states.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * scaled.to(hidden_states.dtype)

    def extra_repr(self) -> str:
        return f"{tuple(self.weight.shape)}, eps={self.variance_epsilon}"


class GemmaRMSNorm(LlamaRMSNorm):
    """Another formula: the weight is an offset from 1."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) * (1 + 1 / self.weight)


class OffsetRMSNorm(LlamaRMSNorm):
    """The same with 1 as a buffer, which a copy without values lacks."""

    def __init__(self, size: int):
        super().__init__(size)
        self.register_buffer("offset", torch.ones(()))

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) * (1 + self.offset / self.weight)


class CountingRMSNorm(LlamaRMSNorm):
    """Computes the formula, and counts its calls in a buffer, which another forward would not do."""

    def __init__(self, size: int):
        super().__init__(size)
        self.register_buffer("weight_uses", torch.zeros(()))

    def forward(self, hidden_states: Tensor) -> Tensor:
        self.weight_uses += 1
        return super().forward(hidden_states)


class DropoutRMSNorm(LlamaRMSNorm):
    """Computes the formula except in training."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return torch.nn.functional.dropout(super().forward(hidden_states), 0.5, self.training)


class ResidualRMSNorm(LlamaRMSNorm):
    """Computes something else with an additional argument."""

    def forward(self, hidden_states: Tensor, residual: Tensor | None = None) -> Tensor:
        return super().forward(hidden_states if residual is None else hidden_states + residual)


class PreparedRMSNorm(LlamaRMSNorm):
    """Needs what the model gives it before its forward."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) * self.model_scale


class GatedRMSNorm(LlamaRMSNorm):
    """A forward with another signature."""

    def forward(self, hidden_states: Tensor, gate: Tensor) -> Tensor:
        return super().forward(hidden_states) * gate


def build() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ELU(),
        torch.nn.Sequential(torch.nn.ConvTranspose2d(4, 2, 3), torch.nn.SELU()),
        torch.nn.Flatten(),
        torch.nn.RMSNorm(72),
        LlamaRMSNorm(72, 1e-5),
        torch.nn.Linear(72, 3),
    )


def test_convert_swaps_in_place_and_revert_undoes_it() -> None:
    model, reference = build(), build()
    parameters, classes = list(model.parameters()), [type(module) for module in model.modules()]
    x = torch.randn(5, 1, 6, 6)
    calls = []
    model[0].register_forward_hook(lambda *_: calls.append(1))

    swapped = aclnn_torch.convert(model)
    assert swapped == {
        "0": torch.nn.Conv2d,
        "1": torch.nn.ELU,
        "2.0": torch.nn.ConvTranspose2d,
        "2.1": torch.nn.SELU,
        "4": torch.nn.RMSNorm,
        "5": LlamaRMSNorm,
    }
    assert type(model[0]) is aclnn_torch.nn.Conv2d
    assert isinstance(model[5], LlamaRMSNorm)
    assert str(model) == str(reference)
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    for a, b in zip(outputs(model, x), outputs(reference, x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert calls == [1]
    assert aclnn_torch.convert(model) == {}

    back = aclnn_torch.revert(model)
    assert list(back) == list(swapped)
    assert back["0"] is aclnn_torch.nn.Conv2d
    assert [type(module) for module in model.modules()] == classes
    assert aclnn_torch.revert(model) == {}


def outputs(model: torch.nn.Module, x: Tensor) -> list[Tensor]:
    y = model(x)
    return [y, *torch.autograd.grad(y.square().sum(), list(model.parameters()))]


def test_the_model_itself_may_be_swapped() -> None:
    module = torch.nn.Conv1d(1, 1, 1)
    assert aclnn_torch.convert(module) == {"": torch.nn.Conv1d}
    assert type(module) is aclnn_torch.nn.Conv1d


def test_a_converted_model_calls_our_operators_only() -> None:
    model = build()
    aclnn_torch.convert(model)
    with torch.profiler.profile() as profile:
        model(torch.randn(5, 1, 6, 6)).sum().backward()
    names = {event.key for event in profile.key_averages()}
    wanted = {"convolution", "convolution_backward", "rms_norm", "rms_norm_grad", "elu", "elu_backward", "selu"}
    assert {f"aclnn::{name}" for name in wanted} <= names


@pytest.mark.parametrize(
    "module",
    [
        GemmaRMSNorm(8),
        OffsetRMSNorm(8),
        CountingRMSNorm(8),
        DropoutRMSNorm(8).eval(),
        ResidualRMSNorm(8),
        PreparedRMSNorm(8),
        GatedRMSNorm(8),
        torch.nn.GroupNorm(2, 8),
        torch.nn.Linear(8, 8),
    ],
    ids=lambda module: type(module).__name__,
)
def test_what_computes_something_else_is_left_alone(module: torch.nn.Module) -> None:
    before = type(module)
    assert aclnn_torch.convert(torch.nn.Sequential(module)) == {}
    assert type(module) is before


def test_subclasses_are_left_alone() -> None:
    class Special(torch.nn.Conv2d):
        pass

    assert aclnn_torch.convert(Special(1, 1, 1)) == {}


def test_models_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = build()
    assert "5" in aclnn_torch.convert(model)
    assert model(torch.empty(5, 1, 6, 6, device="meta")).shape == (5, 3)


def test_a_converted_library_module_is_copied_and_saved() -> None:
    model = torch.nn.Sequential(LlamaRMSNorm(8))
    aclnn_torch.convert(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    x = torch.randn(2, 8)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(file, weights_only=False)):
        assert torch.equal(twin(x), model(x))
        assert isinstance(twin[0], LlamaRMSNorm)
        assert list(aclnn_torch.revert(twin)) == ["0"]
        assert type(twin[0]) is LlamaRMSNorm


def test_16_bit_results_differ_by_the_librarys_rounding_only() -> None:
    module = LlamaRMSNorm(64).bfloat16()
    torch.nn.init.uniform_(module.weight, 0.5, 2)
    x = torch.randn(10, 64).bfloat16()
    expected = module(x)
    aclnn_torch.convert(module)
    torch.testing.assert_close(module(x), expected, rtol=2**-7, atol=0)


@pytest.mark.parametrize("x", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("weight", [torch.bfloat16, torch.float16, torch.float32])
def test_the_dtype_of_a_librarys_result_stays(x: torch.dtype, weight: torch.dtype) -> None:
    module = LlamaRMSNorm(8).to(weight)
    value = torch.randn(2, 8).to(x)
    expected = module(value)
    assert aclnn_torch.convert(module)
    torch.testing.assert_close(module(hidden_states=value), expected)
    with pytest.raises(ValueError, match="too many values"):
        module(value, value)


def test_defaults_of_dtype_and_device_do_not_matter() -> None:
    modules = [LlamaRMSNorm(8), LlamaRMSNorm(8)]
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert aclnn_torch.convert(modules[0])
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert aclnn_torch.convert(modules[1])


def test_a_converted_model_compiles() -> None:
    torch._dynamo.reset()
    model = build()
    aclnn_torch.convert(model)
    x = torch.randn(5, 1, 6, 6)
    compiled = torch.compile(model, fullgraph=True, backend=inductor.BACKEND)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
