"""aclnn_torch.nn against torch.nn: the same constructors, parameters and results, on PyTorch's own module samples."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.common_modules import module_db

import aclnn_torch
from tests.operators import MODULES, ModuleCase

EACH_MODULE = pytest.mark.parametrize("case", MODULES, ids=str)


def pair(name: str, *args: Any, **kwargs: Any) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Our module and torch's, with the same parameters."""
    ours, torchs = getattr(aclnn_torch.nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    ours.load_state_dict(torchs.state_dict())
    return ours, torchs


def outcome(module: torch.nn.Module, inputs: list[Any], keywords: dict[str, Any]) -> list[Tensor]:
    """The result, and the gradients of the input and of all parameters."""
    leaves = [value.detach().clone().requires_grad_() if is_real(value) else value for value in inputs]
    y = module(*leaves, **keywords)
    wanted = [value for value in leaves if is_real(value)] + list(module.parameters())
    return [y.detach(), *torch.autograd.grad(y.sum() + (y * y).sum(), wanted)]


def is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


@EACH_MODULE
def test_as_torchs_on_its_samples(case: ModuleCase) -> None:
    """In float64 (product host), where both are exact up to roundings of the largest numbers that they add up; also
    what str() says of them."""
    name = case.name
    infos = [info for info in module_db if info.module_cls is getattr(torch.nn, name)]
    count = 0
    with aclnn_torch.product("host"):
        for info in infos:
            samples = info.module_inputs_func(info, "cpu", torch.float64, requires_grad=True, training=True)
            for sample in samples:
                construct, forward = sample.constructor_input, sample.forward_input
                if forward is None or any(is_real(value) and value.numel() == 0 for value in forward.args):
                    continue
                if name.endswith("CrossEntropyLoss") and is_real(forward.args[1]):
                    continue
                arguments = {"dtype": torch.float64} if issubclass(info.module_cls, _WITH_DTYPE) else {}
                ours, torchs = pair(name, *construct.args, **construct.kwargs, **arguments)
                assert str(ours) == str(torchs)
                got, expected = (outcome(module, list(forward.args), forward.kwargs) for module in (ours, torchs))
                for one, other in zip(got, expected, strict=True):
                    scale = max(1.0, float(other.nan_to_num().abs().max()))
                    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12 * scale, equal_nan=True)
                count += 1
    assert count >= case.least_samples


_WITH_DTYPE = (torch.nn.LayerNorm, torch.nn.RMSNorm, torch.nn.modules.conv._ConvNd)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [2, "same"])
@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d"])
def test_padding_modes(name: str, padding: int | str, mode: str) -> None:
    dims = int(name[-2])
    ours, torchs = pair(name, 2, 4, 4 if padding == "same" else 3, padding=padding, padding_mode=mode)
    x = torch.randn(2, 2, *[6] * dims)
    torch.testing.assert_close(ours(x), torchs(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
def test_output_size(name: str) -> None:
    dims = int(name[-2])
    ours, torchs = pair(name, 2, 3, 3, stride=2, padding=1)
    x = torch.randn(2, 2, *[4] * dims)
    for size in (7, 8):
        torch.testing.assert_close(ours(x, [size] * dims), torchs(x, [size] * dims), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="requested an output size"):
        ours(x, [9] * dims)


@EACH_MODULE
def test_state_dicts_load_either_way_and_copies_work(case: ModuleCase) -> None:
    ours, torchs = pair(case.name, *case.arguments, **case.keywords)
    torchs.load_state_dict(ours.state_dict())
    assert isinstance(ours, type(torchs))
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(twin) is type(ours)
        assert str(twin) == str(ours)
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    torchs.load_state_dict(torch.load(file, weights_only=True))


def test_cube_math_type_of_a_module() -> None:
    module = aclnn_torch.nn.Conv2d(1, 1, 1, bias=False)
    torch.nn.init.ones_(module.weight)
    x = torch.full((1, 1, 1, 1), 1 + 2.0**-12)
    assert module(x).item() == 1 + 2.0**-12
    assert "cube_math_type" not in str(module)
    module.cube_math_type = 3
    assert str(module).endswith("cube_math_type=3)")
    assert module(x).item() == 1.0
