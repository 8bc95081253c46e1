"""torch.npu.graph and its users: captured once, replayed with new contents."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

INLINE = os.environ.get("ACLNN_TORCH_INLINE_STREAMS") == "1"

pytestmark = [
    pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures with 0 and 1 alone"),
    pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match"),
]

# A failed capture stays underway for torch_npu's allocator, which then refuses all others.
after_a_failed_capture = pytest.mark.skipif(
    torch.__version__ < (2, 9), reason="torch_npu 2.7 and 2.8 capture nothing after a capture that failed"
)


def captured(function: Callable[[], Any], **options: Any) -> tuple[torch.npu.NPUGraph, Any]:
    """The function's result in a capture, and the graph, after a run on a side stream as torch's documents require."""
    side = torch.npu.Stream()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        function()
    torch.npu.current_stream().wait_stream(side)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, **options):
        result = function()
    return graph, result


def pair(*layers: nn.Module) -> tuple[nn.Module, nn.Module]:
    """A module on the NPU and an equal one on the CPU."""
    on_cpu = nn.Sequential(*layers)
    on_npu = type(on_cpu)(*(type(layer)(*arguments(layer)) for layer in layers)).npu()
    on_npu.load_state_dict(on_cpu.state_dict())
    return on_npu, on_cpu


def arguments(layer: nn.Module) -> tuple[int, ...]:
    """The constructor arguments of a layer."""
    return (layer.in_features, layer.out_features) if isinstance(layer, nn.Linear) else ()


def test_a_capture_computes_nothing_and_a_replay_reads_new_contents() -> None:
    x = torch.arange(4.0).npu()
    ran = torch.zeros(4).npu()
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    assert not torch.npu.is_current_stream_capturing()
    with torch.npu.graph(graph):
        assert torch.npu.is_current_stream_capturing()
        y = (x * 2 + 1).relu()
        ran += 1
    assert not torch.npu.is_current_stream_capturing()
    assert not ran.cpu().any()
    for i in range(3):
        x.fill_(i)
        graph.replay()
        assert torch.equal(y.cpu(), torch.full((4,), 2.0 * i + 1))
        assert torch.equal(ran.cpu(), torch.full((4,), i + 1.0))


def test_replays_are_in_the_order_of_their_stream() -> None:
    x = torch.zeros(1 << 16).npu()
    graph, _ = captured(lambda: x.mul_(2))
    streams = [torch.npu.Stream(), torch.npu.Stream()]
    x.fill_(1)
    torch.npu.synchronize()
    for i in range(10):
        with torch.npu.stream(streams[i % 2]):
            torch.npu.current_stream().wait_stream(streams[1 - i % 2])
            graph.replay()
            x.add_(1)
    torch.npu.synchronize()
    expected = 1.0
    for _ in range(10):
        expected = 2 * expected + 1
    assert torch.equal(x.cpu(), torch.full((1 << 16,), expected))


def test_a_fork_and_its_join() -> None:
    x = torch.ones(4).npu()
    side = torch.npu.Stream()

    def program() -> Tensor:
        a = x * 2
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            b = a + 1
        torch.npu.current_stream().wait_stream(side)
        return b * a

    graph, y = captured(program)
    for i in range(3):
        x.fill_(i)
        graph.replay()
        assert torch.equal(y.cpu(), torch.full((4,), (2.0 * i + 1) * 2 * i))


@after_a_failed_capture
def test_a_fork_without_a_join_is_an_error_and_the_device_goes_on() -> None:
    x = torch.ones(4).npu()
    side = torch.npu.Stream()
    with pytest.raises(RuntimeError, match="record an event at its end"), torch.npu.graph(torch.npu.NPUGraph()):
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            x.add_(1)
    assert torch.equal((x + 1).cpu(), torch.full((4,), 2.0))


@after_a_failed_capture
def test_what_waits_for_the_device_is_an_error_in_a_capture() -> None:
    x = torch.ones(4).npu()
    with pytest.raises(RuntimeError, match="the stream is being captured"), torch.npu.graph(torch.npu.NPUGraph()):
        x.sum().item()
    assert x.sum().item() == 4


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "foreach": True}),
        ("Adam", {"capturable": True}),
        ("AdamW", {"capturable": True, "foreach": True}),
    ],
)
def test_a_training_step(name: str, options: dict[str, Any]) -> None:
    """Loss, gradients and the optimizer's step in one graph, compared with the same steps on the CPU."""
    torch.manual_seed(0)
    module, reference = pair(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = getattr(torch.optim, name)(module.parameters(), lr=0.05, **options)
    on_cpu = {key: value for key, value in options.items() if key == "momentum"}
    reference_optimizer = getattr(torch.optim, name)(reference.parameters(), lr=0.05, **on_cpu)
    x, target = torch.zeros(3, 8).npu(), torch.zeros(3, 4).npu()

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(module(x), target)
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = captured(step)
    module.load_state_dict(reference.state_dict())
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()
    for _ in range(5):
        batch, wanted = torch.randn(3, 8), torch.randn(3, 4)
        x.copy_(batch)
        target.copy_(wanted)
        graph.replay()
        reference_optimizer.zero_grad()
        expected = F.mse_loss(reference(batch), wanted)
        expected.backward()
        reference_optimizer.step()
        torch.testing.assert_close(loss.cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(module.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=1e-3, atol=1e-4)


def test_graphed_callables() -> None:
    """Forward and backward are separate graphs."""
    torch.manual_seed(0)
    module, reference = pair(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    graphed = torch.npu.make_graphed_callables(module, (torch.randn(3, 8).npu().requires_grad_(),))
    for _ in range(3):
        batch = torch.randn(3, 8)
        ours, theirs = batch.npu().requires_grad_(), batch.clone().requires_grad_()
        module.zero_grad()
        reference.zero_grad()
        graphed(ours).square().sum().backward()
        reference(theirs).square().sum().backward()
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5)
        for a, b in zip(module.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.randn_like(x),
        lambda x: x.clone().uniform_(),
        lambda x: F.dropout(x, 0.5),
    ],
    ids=("randn", "uniform", "dropout"),
)
def test_every_replay_draws_other_random_numbers_and_a_seed_the_same(draw: Callable[[Tensor], Tensor]) -> None:
    x = torch.full((4096,), 0.5).npu()
    graph, drawn = captured(lambda: draw(x))
    rounds = []
    for seed in (5, None, 5):
        if seed is not None:
            torch.npu.manual_seed(seed)
        graph.replay()
        rounds.append(drawn.cpu().clone())
    assert not torch.equal(rounds[0], rounds[1])
    assert torch.equal(rounds[0], rounds[2])


def test_operators_of_torch_ops_aclnn_are_captured() -> None:
    import aclnn_torch

    x = torch.ones(4).npu()
    graph, y = captured(lambda: aclnn_torch.functional.elu(x, alpha=2.0))
    x.fill_(-1)
    graph.replay()
    torch.testing.assert_close(y.cpu(), F.elu(torch.full((4,), -1.0), alpha=2.0))


@pytest.mark.usefixtures("products_of_float32")
def test_convolution_normalization_attention_and_a_loss() -> None:
    """Operators with workspaces, and with several outputs."""
    torch.manual_seed(0)
    image, tokens, labels = torch.randn(2, 3, 8, 8), torch.randn(2, 4, 16, 8), torch.arange(8).repeat(2)
    weight, scale = torch.randn(4, 3, 3, 3), torch.randn(8)

    def program(image: Tensor, tokens: Tensor, labels: Tensor, weight: Tensor, scale: Tensor) -> list[Tensor]:
        normal = F.layer_norm(tokens, (8,), scale, scale)
        attended = (normal @ normal.transpose(-1, -2)).softmax(-1) @ normal
        return [F.conv2d(image, weight, padding=1), attended, F.cross_entropy(attended[0, 0], labels)]

    inputs = [torch.zeros_like(each).npu() for each in (image, tokens, labels, weight, scale)]
    graph, results = captured(lambda: program(*inputs))
    for _ in range(2):
        image, tokens, labels = image + 1, tokens * 2, labels.flip(0)
        values = (image, tokens, labels, weight, scale)
        for static, value in zip(inputs, values, strict=True):
            static.copy_(value)
        graph.replay()
        for ours, theirs in zip(results, program(*values), strict=True):
            torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)


def test_graphs_share_a_pool() -> None:
    x = torch.ones(1000).npu()
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    with torch.npu.graph(first):
        y = x * 2
    with torch.npu.graph(second, pool=first.pool()):
        z = y * 3
    x.fill_(2)
    first.replay()
    second.replay()
    assert torch.equal(z.cpu(), torch.full((1000,), 12.0))
    first.reset()
    second.reset()


def test_a_task_group_is_updated() -> None:
    x, out = torch.ones(4).npu(), torch.zeros(4).npu()
    graph, stream, updating = torch.npu.NPUGraph(), torch.npu.Stream(), torch.npu.Stream()
    with torch.npu.graph(graph, stream=stream):
        torch.npu.graph_task_group_begin(stream)
        torch.mul(x, 2.0, out=out)
        group = torch.npu.graph_task_group_end(stream)
        y = out + 1
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((4,), 3.0))
    with torch.npu.stream(updating):
        torch.npu.graph_task_update_begin(updating, group)
        torch.mul(x, 5.0, out=out)
        torch.npu.graph_task_update_end(updating)
    torch.npu.synchronize()
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((4,), 6.0))


@pytest.mark.skipif(INLINE, reason="inline, an execution cannot wait for what its thread does later")
def test_an_external_event_holds_a_replay_up_until_the_update() -> None:
    x, out = torch.ones(4).npu(), torch.zeros(4).npu()
    graph, stream, updating = torch.npu.NPUGraph(), torch.npu.Stream(), torch.npu.Stream()
    updated = torch.npu.ExternalEvent()
    with torch.npu.graph(graph, stream=stream):
        updated.wait(stream)
        updated.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        torch.mul(x, 2.0, out=out)
        group = torch.npu.graph_task_group_end(stream)
        y = out + 1
    for factor in (3.0, 7.0):
        graph.replay()
        with torch.npu.stream(updating):
            torch.npu.graph_task_update_begin(updating, group)
            torch.mul(x, factor, out=out)
            torch.npu.graph_task_update_end(updating)
            updated.record(updating)
        assert torch.equal(y.cpu(), torch.full((4,), factor + 1))


def test_a_graph_of_the_second_device() -> None:
    x = torch.ones(4, device="npu:1")
    with torch.npu.device(1):
        graph, y = captured(lambda: x * 2, stream=torch.npu.Stream())
        x.fill_(4)
        graph.replay()
        assert torch.equal(y.cpu(), torch.full((4,), 8.0))


def test_a_graph_is_dumped(tmp_path: Path) -> None:
    x = torch.ones(4).npu()
    graph = torch.npu.NPUGraph()
    graph.enable_debug_mode()
    with torch.npu.graph(graph):
        x.mul_(2).relu_()
    path = tmp_path / "graph.json"
    graph.debug_dump(str(path))
    assert [event["name"] for event in json.loads(path.read_text())] == ["aclnnInplaceMuls", "aclnnInplaceRelu"]


@pytest.mark.skipif(
    torch.__version__ < (2, 9) and importlib.util.find_spec("triton") is not None,
    reason="torch_npu 2.7 and 2.8 take any Triton, which torch's build for CUDA brings, for the one of Ascend",
)
def test_compiled_by_the_backend_of_graphs() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).npu()
    compiled = torch.compile(module, backend="npugraphs")
    with torch.no_grad():
        for i in range(4):
            x = torch.full((2, 8), float(i)).npu()
            torch.testing.assert_close(compiled(x).cpu(), module(x).cpu())
