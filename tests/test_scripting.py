"""torch.jit.script, which torch has deprecated, is refused with a text; torch.jit.trace is not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from tests.operators import FUNCTIONS, MODULES, FunctionCase, ModuleCase
from tests.test_conversion import LlamaRMSNorm

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.*deprecated:DeprecationWarning")
WAY_OUT = "cannot be scripted, expected .* torch.compile, torch.export or torch.jit.trace"


def calls_a_function(x: Tensor) -> Tensor:
    """Uses a function, as a user's function would."""
    return F.elu(x)


@pytest.mark.parametrize("name", F.__all__)
def test_functions(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"aclnn_torch\.functional\.{name} {WAY_OUT}"):
        torch.jit.script(getattr(F, name))


def test_a_function_that_calls_one() -> None:
    with pytest.raises(NotImplementedError, match=rf"aclnn_torch\.functional\.elu {WAY_OUT}"):
        torch.jit.script(calls_a_function)


@pytest.mark.parametrize("case", MODULES, ids=str)
def test_modules(case: ModuleCase) -> None:
    """Alone and inside other modules."""
    module = case.of(aclnn_torch.nn)
    for model in (module, torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(module))):
        with pytest.raises(NotImplementedError, match=rf"aclnn_torch\.nn\.{case.name} {WAY_OUT}"):
            torch.jit.script(model)


def test_a_converted_norm_of_a_library() -> None:
    model = torch.nn.Sequential(LlamaRMSNorm(4))
    aclnn_torch.convert(model)
    with pytest.raises(NotImplementedError, match=f"a converted RMSNorm module {WAY_OUT}"):
        torch.jit.script(model)
    aclnn_torch.revert(model)
    torch.jit.script(torch.nn.Sequential(torch.nn.ELU()))


@pytest.mark.parametrize("case", FUNCTIONS, ids=str)
def test_traces(case: FunctionCase) -> None:
    function, arguments = case.of(F), case.arguments
    traced = torch.jit.trace(lambda x: function(x, *arguments[1:]), arguments[:1], check_trace=False)
    assert torch.equal(traced(arguments[0]), function(*arguments))


def test_operators_can_be_scripted() -> None:
    script = torch.jit.CompilationUnit("def f(x: Tensor):\n    return torch.ops.aclnn.elu(x, 1.5)\n")
    x = torch.linspace(-2, 2, 5)
    assert torch.equal(script.f(x), F.elu(x, 1.5))
