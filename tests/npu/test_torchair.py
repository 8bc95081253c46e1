"""torch.compile through torch_npu's backends that end in graphs, torchair and npugraph_ex, compared with the CPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

pytestmark = [
    pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures with 0 and 1 alone"),
    pytest.mark.filterwarnings("ignore"),  # torch_npu's own, in every compilation
]

close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


def torchair() -> Any:
    """The module, which needs protobuf."""
    pytest.importorskip("google.protobuf", reason="torchair needs protobuf, which `make npu` installs")
    return importlib.import_module("torchair")


def config_of(options: dict[str, Any]) -> Any:
    """Torchair's configuration in the mode that captures graphs. An option's name is its path."""
    config = torchair().CompilerConfig()
    config.mode = "reduce-overhead"
    for path, value in options.items():
        *groups, name = path.split(".")
        group = config
        for part in groups:
            group = getattr(group, part)
        setattr(group, name, value)
    return config


def compiled(function: Any, backend: str, options: dict[str, Any] | None = None, *, dynamic: bool = False) -> Any:
    """The function, compiled without a break of the graph."""
    named: dict[str, Any] = {"backend": "npugraph_ex", "options": options or {}}
    if backend == "reduce-overhead":
        named = {"backend": torchair().get_npu_backend(compiler_config=config_of(options or {}))}
    return torch.compile(function, fullgraph=True, dynamic=dynamic, **named)


@pytest.fixture(autouse=True)
def _every_test_compiles_anew() -> Iterator[None]:
    yield
    torch._dynamo.reset()


@pytest.fixture(params=["reduce-overhead", "npugraph_ex"])
def backend(request: pytest.FixtureRequest) -> str:
    """The way to torch_npu's graphs."""
    return request.param


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each replay of a graph."""
    seen: list[int] = []
    replay = torch.npu.NPUGraph.replay

    def counted(graph: Any) -> Any:
        seen.append(id(graph))
        return replay(graph)

    monkeypatch.setattr(torch.npu.NPUGraph, "replay", counted)
    return seen


class Network(nn.Module):
    """Two layers. torch_npu's gelu is the formula of the hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.gelu(self.first(x), approximate="tanh"))


def pair() -> tuple[nn.Module, nn.Module]:
    """The network on the CPU and an equal one on the NPU."""
    torch.manual_seed(0)
    on_cpu, on_npu = Network(), Network()
    on_npu.load_state_dict(on_cpu.state_dict())
    return on_cpu, on_npu.npu()


@torch.no_grad()
def compare(on_cpu: Callable[..., Any], on_npu: Callable[..., Any], *sizes: int) -> None:
    """The network's results, for batches of these sizes."""
    for size in sizes:
        x = torch.randn(size, 8)
        close(on_npu(x.npu()).cpu(), on_cpu(x))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_each_size_is_captured_once_and_replayed(backend: str, dynamic: bool, replays: list[int]) -> None:
    """A capture computes nothing, so that each call ends in a replay."""
    on_cpu, on_npu = pair()
    sizes = (3, 5, 3, 7, 1, 5)
    compare(on_cpu, compiled(on_npu, backend, dynamic=dynamic), *sizes)
    assert len(replays) == len(sizes)
    assert len(set(replays)) == len(set(sizes))


def test_a_cache_of_keys_is_written_in_place(backend: str, replays: list[int]) -> None:
    def step(cache: Tensor, new: Tensor, position: Tensor) -> Tensor:
        cache.index_copy_(1, position, new)
        return torch.softmax(new @ cache.transpose(1, 2), -1) @ cache

    run = compiled(step, backend)
    on_cpu = torch.zeros(2, 6, 4)
    on_npu = on_cpu.npu()
    address = on_npu.data_ptr()
    for i in range(5):
        new, position = torch.randn(2, 1, 4), torch.tensor([i])
        with torch.no_grad():
            close(run(on_npu, new.npu(), position.npu()).cpu(), step(on_cpu, new, position))
        close(on_npu.cpu(), on_cpu)
    assert on_npu.data_ptr() == address
    assert len(replays) == 5


def test_arguments_and_their_views_are_changed_in_place(backend: str) -> None:
    def change(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        y[0].mul_(x.sum())
        x[:, 1:].copy_(y[:, :-1])
        return x * y

    run = compiled(change, backend)
    for _ in range(3):
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        x_npu, y_npu = x.npu(), y.npu()
        with torch.no_grad():
            close(run(x_npu, y_npu).cpu(), change(x, y))
        close(x_npu.cpu(), x)
        close(y_npu.cpu(), y)


def test_training(backend: str) -> None:
    on_cpu, on_npu = pair()
    run = compiled(on_npu, backend)
    steps = [(module, torch.optim.SGD(module.parameters(), lr=0.1)) for module in (on_cpu, on_npu)]
    for _ in range(3):
        x = torch.randn(3, 8)
        for (_, optimizer), forward, batch in zip(steps, (on_cpu, run), (x, x.npu()), strict=True):
            optimizer.zero_grad()
            forward(batch).square().sum().backward()
            optimizer.step()
    for actual, expected in zip(on_npu.parameters(), on_cpu.parameters(), strict=True):
        close(actual.grad.cpu(), expected.grad)
        close(actual.detach().cpu(), expected.detach())


def test_each_call_draws_new_random_numbers(backend: str) -> None:
    run = compiled(lambda x: F.dropout(x, 0.5), backend)
    x = torch.ones(1000).npu()
    with torch.no_grad():
        first, second = run(x).cpu(), run(x).cpu()
    assert not torch.equal(first, second)
    for result in (first, second):
        assert sorted(set(result.tolist())) == [0, 2]
        assert 400 < result.count_nonzero() < 600  # six standard deviations


def test_streams_and_events_in_a_graph() -> None:
    """Torchair's own mode fails on them under torch 2.13, before it calls CANN."""
    side = torch.npu.Stream()

    def function(x: Tensor, y: Tensor) -> Tensor:
        doubled, multiplied = torch.npu.Event(), torch.npu.Event()
        a = x * 2
        doubled.record()
        with torch.npu.stream(side):
            doubled.wait()
            b = a @ y
            multiplied.record()
        c = x + 1
        multiplied.wait()
        return b + c

    run = compiled(function, "npugraph_ex")
    for _ in range(3):
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        with torch.no_grad():
            close(run(x.npu(), y.npu()).cpu(), x * 2 @ y + x + 1)


def test_a_scope_puts_operators_on_a_stream_of_its_own() -> None:
    """Tagged events order the two streams; the capture fails where the first stream does not wait for the second."""
    air = torchair()
    doubled, multiplied = (air.ops.npu_create_tagged_event(tag=tag) for tag in ("doubled", "multiplied"))

    def function(x: Tensor, y: Tensor) -> Tensor:
        a = x * 2
        air.ops.npu_tagged_event_record(doubled)
        with air.scope.npu_stream_switch("side", 3):
            air.ops.npu_tagged_event_wait(doubled)
            b = a @ y
            air.ops.npu_tagged_event_record(multiplied)
        c = x + 1
        air.ops.npu_tagged_event_wait(multiplied)
        return b + c

    run = compiled(function, "reduce-overhead")
    for _ in range(3):
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        with torch.no_grad():
            close(run(x.npu(), y.npu()).cpu(), x * 2 @ y + x + 1)


def test_a_scope_limits_the_cores(backend: str) -> None:
    scope = (torchair() if backend == "reduce-overhead" else importlib.import_module("npugraph_ex")).scope
    before = torch.npu.get_stream_limit(torch.npu.current_stream())

    def function(x: Tensor, y: Tensor) -> Tensor:
        with scope.limit_core_num(4, 5):
            product = x @ y
        return product + x

    run = compiled(function, backend)
    for _ in range(2):
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        with torch.no_grad():
            close(run(x.npu(), y.npu()).cpu(), x @ y + x)
    assert torch.npu.get_stream_limit(torch.npu.current_stream()) == before


def test_a_compiled_function_is_kept_in_a_file(backend: str, tmp_path: Path, replays: list[int]) -> None:
    """A second process would find it as the second object does, which does not write it again."""
    package = torchair() if backend == "reduce-overhead" else importlib.import_module("npugraph_ex")
    named: dict[str, Any] = {"config": config_of({})} if backend == "reduce-overhead" else {"options": {}}

    class Cached(nn.Module):
        def __init__(self, network: nn.Module) -> None:
            super().__init__()
            self.network = network
            self.run = package.inference.cache_compile(self.compute, cache_dir=str(tmp_path), dynamic=False, **named)

        def compute(self, x: Tensor) -> Tensor:
            return self.network(x)

        def forward(self, x: Tensor) -> Tensor:
            return self.run(x)

    on_cpu, on_npu = pair()
    compare(on_cpu, Cached(on_npu), 3, 3)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    written = file.stat().st_mtime_ns
    torch._dynamo.reset()
    compare(on_cpu, Cached(on_npu), 3, 3)
    assert file.stat().st_mtime_ns == written
    assert len(replays) == 4


GROUP = "debug.aclgraph"
OPTIONS = {
    "reduce-overhead": {
        "debug.run_eagerly": True,
        f"{GROUP}.disable_mempool_reuse_in_same_fx": True,
        f"{GROUP}.static_capture_size_limit": 1,
        f"{GROUP}.clone_input": False,
        f"{GROUP}.enable_output_clone": True,
        f"{GROUP}.disable_reinplace_inplaceable_ops_pass": True,
        f"{GROUP}.disable_reinplace_input_mutated_ops_pass": True,
        "experimental_config.frozen_parameter": True,
        "experimental_config.keep_inference_input_mutations": False,
        "experimental_config.npu_fx_pass": True,
        "experimental_config.aclgraph._aclnn_static_shape_kernel": True,
    },
    "npugraph_ex": {
        "force_eager": True,
        "reuse_graph_pool_in_same_fx": False,
        "capture_limit": 1,
        "clone_input": False,
        "clone_output": True,
        "frozen_parameter": True,
        "remove_noop_ops": False,
        "remove_cat_ops": False,
        "inplace_pass": False,
        "input_inplace_pass": False,
        "pattern_fusion_pass": False,
        "static_kernel_compile": True,  # there are no kernels to compile
    },
}


@pytest.mark.parametrize(
    ("backend", "option"), [(backend, option) for backend in OPTIONS for option in OPTIONS[backend]]
)
def test_options_leave_the_results_alone(
    backend: str, option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # some leave files
    on_cpu, on_npu = pair()
    try:
        run = compiled(on_npu, backend, {option: OPTIONS[backend][option]})
    except (AttributeError, ValueError) as error:
        pytest.skip(f"not in this torch_npu: {error}")
    compare(on_cpu, run, 3, 3, 5)


def test_graphs_share_a_pool(backend: str, replays: list[int]) -> None:
    pool = torch.npu.graph_pool_handle()
    option = "aclgraph_config.use_custom_pool" if backend == "reduce-overhead" else "use_graph_pool"
    modules = [pair() for _ in range(2)]
    runs = [(on_cpu, compiled(on_npu, backend, {option: pool})) for on_cpu, on_npu in modules]
    for on_cpu, run in runs * 2:
        compare(on_cpu, run, 3)
    assert len(set(replays)) == 2


NO_ENGINE = (
    "GE: the host CANN does not have CANN's graph engine, for which torchair compiles with config.mode = "
    '"max-autotune" (its default) and in dynamo_export; set config.mode = "reduce-overhead", or call '
    'torch.compile(..., backend="npugraph_ex")'
)


@pytest.mark.parametrize("way", ["get_npu_backend", "by name", "dynamo_export"])
def test_the_graph_engine_is_refused_in_the_call(way: str, tmp_path: Path) -> None:
    air = torchair()
    _, on_npu = pair()
    x = torch.randn(3, 8).npu()
    with torch.no_grad(), pytest.raises(Exception, match="GE:") as caught:
        if way == "dynamo_export":
            air.dynamo_export(x, model=on_npu, export_path=str(tmp_path))
        else:
            torch.compile(on_npu, backend=air.get_npu_backend() if way == "get_npu_backend" else "npu")(x)
    assert NO_ENGINE in str(caught.value)
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)  # the NPU goes on


def test_fused_kernels_are_refused() -> None:
    """There are none on a host, and no public document says what their options may be."""
    _, on_npu = pair()
    run = compiled(on_npu, "npugraph_ex", {"super_kernel_optimize": True})
    text = "aclskOptimize: not supported by the host CANN: it has no kernels that could be fused; leave"
    with torch.no_grad(), pytest.raises(RuntimeError, match=text):
        run(torch.randn(3, 8).npu())
