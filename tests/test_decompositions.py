"""aclnn_torch.decompositions(): the operators in ATen's terms, compared with the operators themselves."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import aclnn_torch
from tests import test_convolution
from tests.operators import OPERATORS
from tests.operators._info import Call

CALLS = [*(call for info in OPERATORS.values() for call in info.calls), *test_convolution.CALLS]
NAMED_CALLS = pytest.mark.parametrize("call", CALLS, ids=str)


def check(call: Call, dtype: torch.dtype, tracing_mode: str, **tolerance: float) -> None:
    """The graph has no operator of ours left, and gives the same results."""
    tensors = call.tensors(dtype)
    table = aclnn_torch.decompositions()
    graph = make_fx(call.on, decomposition_table=table, tracing_mode=tracing_mode)(*tensors)
    assert not [node for node in graph.graph.nodes if str(node.target).startswith("aclnn")]
    torch.testing.assert_close(graph(*tensors), call.on(*tensors), **tolerance)


@NAMED_CALLS
def test_for_any_sizes(call: Call, host_product: None) -> None:
    check(call, torch.float64, "symbolic")


# Without rms_norm_grad, which requires rstd in FLOAT, and convolutions, which round as ATen does.
@pytest.mark.parametrize(
    "call",
    [call for call in CALLS if "rms_norm_grad" not in call.name and call not in test_convolution.CALLS],
    ids=str,
)
def test_in_16_bits(call: Call, host_product: None) -> None:
    """Dtypes and shapes, too; values of about 1 may round to either side."""
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


def test_a_label_in_another_part_of_the_vocabulary() -> None:
    """Classes 2 to 6 of nine: the logit of another label is 0, on whichever side it lies."""
    x, weight, target = torch.randn(4, 3), torch.randn(5, 3), torch.tensor([1, 2, 6, 7])

    def part(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aclnn._linear_cross_entropy(x, weight, target, first_class=2, vocabulary_size=9)[:2]

    logits = x @ weight.t()
    lse = logits.logsumexp(1)
    expected = lse - torch.stack([torch.tensor(0.0), logits[1, 0], logits[2, 4], torch.tensor(0.0)])
    graph = make_fx(part, decomposition_table=aclnn_torch.decompositions())(x, weight, target)
    for function in (part, graph):
        torch.testing.assert_close(function(x, weight, target), (expected, lse))


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_one_gradient_of_a_linear_layers_loss(wanted: int) -> None:
    """output_mask; a gradient that is not wanted has no elements."""
    x, weight, bias, target = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5), torch.tensor([1, 0, 4, 2])
    mask = [i == wanted for i in range(3)]

    def gradients(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aclnn._linear_cross_entropy(x, weight, target, bias, output_mask=mask)[2:]

    leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(*leaves), target, reduction="sum")
    expected = [torch.empty(0)] * 3
    expected[wanted] = torch.autograd.grad(loss, leaves[wanted])[0]
    graph = make_fx(gradients, decomposition_table=aclnn_torch.decompositions())(x, weight, bias)
    for function in (gradients, graph):
        torch.testing.assert_close(list(function(x, weight, bias)), expected)
