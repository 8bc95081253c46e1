"""aclnn_torch.decompositions(): the operators in ATen's terms, against the operators themselves."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import aclnn_torch
from tests import test_convolution
from tests.operator_checks import Call

# The sample calls of each operator's test module, which is called as its module in aclnn_torch/ops.
OPERATORS = [module.name for module in pkgutil.iter_modules(aclnn_torch.ops.__path__) if module.name[0] != "_"]
CALLS = [call for name in OPERATORS for call in importlib.import_module(f"tests.test_{name}").CALLS]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def operators() -> set[torch._ops.OpOverload]:
    """All that there are."""
    names = (name.split("::") for name in torch._C._dispatch_get_all_op_names())
    return {getattr(torch.ops.aclnn, name).default for library, name in names if library == "aclnn"}


def test_every_operator_has_one() -> None:
    assert set(aclnn_torch.decompositions()) == operators()


def check(call: Call, dtype: torch.dtype, tracing_mode: str, **tolerance: float) -> None:
    """The graph has no operator of ours left, and computes the same."""
    tensors = call.tensors(dtype)
    table = aclnn_torch.decompositions()
    graph = make_fx(call.on, decomposition_table=table, tracing_mode=tracing_mode)(*tensors)
    assert not [node for node in graph.graph.nodes if str(node.target).startswith("aclnn")]
    torch.testing.assert_close(graph(*tensors), call.on(*tensors), **tolerance)


@NAMED_CALLS
def test_for_any_sizes(call: Call, host_product: None) -> None:
    check(call, torch.float64, "symbolic")


# Not rms_norm_grad, which wants rstd in FLOAT, nor convolutions, which round as ATen likes.
@pytest.mark.parametrize(
    "call",
    [call for call in CALLS if "rms_norm_grad" not in call.name and call not in test_convolution.CALLS],
    ids=str,
)
def test_in_16_bits(call: Call, host_product: None) -> None:
    """Types and shapes too; values of about 1 may be rounded to either side."""
    check(call, torch.bfloat16, "real", rtol=2**-6, atol=2**-6)


def test_an_exported_program_for_a_backend_that_knows_aten_only() -> None:
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 8, 3), torch.nn.SELU(), torch.nn.Flatten(), torch.nn.RMSNorm(48))
    aclnn_torch.convert(model)
    x = torch.randn(3, 2, 8)
    program = torch.export.export(model, (x,))
    assert "aclnn" in str(program.graph)
    program = program.run_decompositions(torch.export.default_decompositions() | aclnn_torch.decompositions())
    assert "aclnn" not in str(program.graph)
    torch.testing.assert_close(program.module()(x), model(x), rtol=1e-5, atol=1e-6)


def test_selu_of_integers_stays() -> None:
    x = torch.arange(-4, 4, dtype=torch.int32)
    graph = make_fx(torch.ops.aclnn.selu, decomposition_table=aclnn_torch.decompositions())(x)
    assert torch.equal(graph(x), torch.ops.aclnn.selu(x))


def test_the_table_is_ones_own() -> None:
    aclnn_torch.decompositions().clear()
    assert aclnn_torch.decompositions()


def test_an_exported_loss() -> None:
    loss = torch.nn.CrossEntropyLoss()
    aclnn_torch.convert(loss)
    logits, labels = torch.randn(3, 4), torch.tensor([0, 3, 1])
    program = torch.export.export(loss, (logits, labels))
    assert "aclnn" in str(program.graph)
    program = program.run_decompositions(torch.export.default_decompositions() | aclnn_torch.decompositions())
    assert "aclnn" not in str(program.graph)
    torch.testing.assert_close(program.module()(logits, labels), loss(logits, labels))
