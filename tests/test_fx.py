"""torch.fx: every function and module in a graph, converted models, and tools that work on graphs and modules."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch.ao.quantization import fuse_modules, fuse_modules_qat

import aclnn_torch
import aclnn_torch.functional as F
from tests.operators import FUNCTIONS, MODULES, FunctionCase, ModuleCase
from tests.operators._info import ROWS
from tests.operators.convolution import image
from tests.test_conversion import LlamaRMSNorm, build, outputs

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.ao.quantization.*:DeprecationWarning")

EACH_FUNCTION = pytest.mark.parametrize("case", FUNCTIONS, ids=str)
EACH_MODULE = pytest.mark.parametrize("case", MODULES, ids=str)


def functions_in(graph: fx.GraphModule) -> set[Any]:
    return {node.target for node in graph.graph.nodes if node.op == "call_function"}


@EACH_FUNCTION
def test_a_function_is_a_node(case: FunctionCase) -> None:
    """With all arguments as inputs of the graph, or only the tensors."""
    function, arguments = case.of(F), case.arguments
    expected = function(*arguments)
    assert torch.equal(fx.symbolic_trace(function)(*arguments), expected)
    graph = fx.symbolic_trace(lambda x: function(x, *arguments[1:]))
    assert functions_in(graph) == {function}
    for again in (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)), fx.symbolic_trace(graph)):
        assert torch.equal(again(arguments[0]), expected)
    assert torch.equal(fx.Transformer(graph).transform()(arguments[0]), expected)


@pytest.mark.parametrize("case", [case for case in FUNCTIONS if case.in_place], ids=str)
def test_in_place(case: FunctionCase) -> None:
    graph = fx.symbolic_trace(lambda x: case.of(F)(x, inplace=True))
    x = ROWS.clone()
    assert graph(x) is x
    assert torch.equal(x, case.of(F)(ROWS))


@EACH_MODULE
def test_a_module_is_traced(case: ModuleCase) -> None:
    module = case.of(aclnn_torch.nn)
    inputs = tuple(x.clone().requires_grad_() if x.is_floating_point() else x for x in case.inputs)
    leaves = [*inputs[:1], *module.parameters()]
    results = []
    for model in (module, fx.symbolic_trace(module), fx.symbolic_trace(torch.nn.ModuleList([module])[0])):
        y = model(*inputs)
        results.append([y, *torch.autograd.grad(y.square().sum(), leaves)])
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0], strict=True))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(mode: str) -> None:
    module = aclnn_torch.nn.Conv2d(2, 2, 3, padding=1, padding_mode=mode)
    assert torch.equal(fx.symbolic_trace(module)(image(2)), module(image(2)))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_output_size(dims: int) -> None:
    """A constant size, one from the graph's input, and none."""
    module = getattr(aclnn_torch.nn, f"ConvTranspose{dims}d")(2, 2, 3, stride=2)
    size = [12] * dims
    expected = module(image(dims), size)
    assert expected.shape[2:] == tuple(size)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.module(x, size)
            return result

    graph = fx.symbolic_trace(module)
    assert torch.equal(fx.symbolic_trace(Model())(image(dims)), expected)
    assert torch.equal(graph(image(dims), size), expected)
    assert torch.equal(graph(image(dims)), module(image(dims)))
    with pytest.raises(ValueError, match="requested an output size"):
        graph(image(dims), [99] * dims)


def test_a_converted_model() -> None:
    """With an RMSNorm of a library, a module in the graph, because its branch depends on a dtype at run time."""
    model, x = build(), torch.randn(5, 1, 6, 6)
    aclnn_torch.convert(model)
    graph = fx.symbolic_trace(model)
    assert {F.conv2d, F.elu, F.conv_transpose2d, F.selu, F.rms_norm} <= functions_in(graph)
    assert [node.target for node in graph.graph.nodes if node.op == "call_module"] == ["3", "5", "6"]
    assert all(torch.equal(one, other) for one, other in zip(outputs(graph, x), outputs(model, x), strict=True))
    assert torch.equal(fx.symbolic_trace(graph)(x), model(x))
    seen: list[str] = []

    class Recorder(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            seen.append(n.name)
            return super().run_node(n)

    assert torch.equal(Recorder(graph).run(x), model(x))
    assert seen == [node.name for node in graph.graph.nodes]


def test_a_librarys_norm_as_the_graphs_root() -> None:
    module, x = LlamaRMSNorm(4), ROWS.clone()
    expected = module(x)
    aclnn_torch.convert(module)
    torch.testing.assert_close(fx.symbolic_trace(module)(x), expected)


def test_features_from_the_middle_of_a_graph() -> None:
    """As in feature extractors: the graph returns other nodes, and unused ones are removed."""
    model, x = build(), torch.randn(5, 1, 6, 6)
    aclnn_torch.convert(model)
    graph = fx.symbolic_trace(model)
    nodes = {node.target: node for node in graph.graph.nodes if node.op == "call_function"}
    (end,) = [node for node in graph.graph.nodes if node.op == "output"]
    graph.graph.erase_node(end)
    graph.graph.output({"elu": nodes[F.elu], "selu": nodes[F.selu]})
    graph.graph.eliminate_dead_code()
    graph.recompile()
    features = graph(x)
    assert torch.equal(features["elu"], model[1](model[0](x)))
    assert torch.equal(features["selu"], model[2](features["elu"]))
    assert F.rms_norm not in functions_in(graph)


def convolutions() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(2, 2, 1),
        torch.nn.BatchNorm2d(2),
    )


FUSED = [["0", "1", "2"], ["3", "4"]]


@pytest.mark.parametrize("training", [False, True])
def test_fused_modules(training: bool) -> None:
    """torch's fusion requires exactly its own classes: it comes before convert, or after revert."""
    fuse = fuse_modules_qat if training else fuse_modules
    x = torch.randn(2, 1, 6, 6)
    expected = fuse(convolutions().train(training), FUSED)(x)
    model = convolutions().train(training)
    aclnn_torch.convert(model)
    with pytest.raises((AssertionError, NotImplementedError), match="Conv2d"):
        fuse(model, FUSED)
    aclnn_torch.revert(model)
    fused = fuse(model, FUSED)
    swapped = aclnn_torch.convert(fused)
    assert list(swapped.values()) == [torch.nn.Conv2d] * 2
    with torch.profiler.profile() as profile:
        got = fused(x)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["aclnn::convolution"] == 2
    assert "aten::convolution" not in counts


def test_a_convolution_fused_with_its_batch_norm() -> None:
    """This function copies a convolution of any class."""
    model, x = convolutions().eval(), torch.randn(2, 1, 6, 6)
    model[1].running_mean.uniform_()
    expected = model[1](model[0](x))
    aclnn_torch.convert(model)
    fused = torch.nn.utils.fusion.fuse_conv_bn_eval(model[0], model[1])
    assert type(fused) is aclnn_torch.nn.Conv2d
    torch.testing.assert_close(fused(x), expected, rtol=1e-5, atol=1e-5)
