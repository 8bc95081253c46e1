"""The benchmarks are complete and their code works. No test checks speed."""

import contextlib
import csv
import dataclasses
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import jax_child, memory, models, plots, providers, report, results, run
from benchmarks.bars import BARS, Bar, judge
from benchmarks.cases import (
    CASES,
    CONVOLUTIONS,
    DTYPES,
    FUNCTIONS,
    LARGE_BYTES,
    MODES,
    OPERATORS,
    TINY_CONVOLUTIONS,
    Case,
    Convolution,
    Function,
    Model,
    Operator,
    PeakMemory,
    Vocabulary,
)
from benchmarks.jax_peer import Jax, JaxError
from benchmarks.measure import FULL, QUICK, Effort, Spread, measure
from benchmarks.providers import Provider, Settings
from benchmarks.results import COLUMNS, Row
from tests import inductor

TWO_TURNS = Effort(0, least=2, most=2, patience=0)
ALONE = Settings(threads=2, compile=False)


def tiny(case: Case) -> Case:
    """The same case at a trivial size: no kernel is wider than 16."""
    if isinstance(case.subject, Operator) and case.mode in ("large", "kernel", "curve", "cached"):
        return dataclasses.replace(case, shape=case.subject.shape(64))
    if case.mode in ("convolution", "scaling") and len(case.shape) > 2:
        _, channels, *sizes = case.shape
        return dataclasses.replace(case, shape=(1, channels, *(min(size, 16) for size in sizes)))
    if isinstance(case.subject, Vocabulary):
        return dataclasses.replace(case, shape=(40, 24, 70))
    return dataclasses.replace(case, shape=(256, 4096)) if isinstance(case.subject, PeakMemory) else case


def find(mode: str, name: str) -> Case:
    """The first case of a mode and a name, made tiny."""
    return next(tiny(case) for case in CASES if case.mode == mode and case.subject.name == name)


@pytest.fixture
def small_gemm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "GEMM_SIZE", 16)


def registered_operators() -> set[str]:
    """The public functional operators in the namespace, without overloads, in-place variants and internal ones."""
    names = {
        name.removeprefix("aclnn::").split(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aclnn::")
    }
    return {name for name in names if not name.startswith("_") and not name.endswith("_")}


CONVOLUTION_OPERATORS = {"convolution", "convolution_backward"}
# Measured together: the loss of a large vocabulary, forward and backward.
VOCABULARY_OPERATORS = {
    *("linear_cross_entropy", "fused_linear_online_max_sum"),
    *("fused_cross_entropy_loss_with_max_sum", "fused_linear_cross_entropy_loss_grad"),
}


# ---- The tables ----------------------------------------------------------------------------------


def test_every_registered_operator_is_measured_and_the_reverse():
    own = {operator.operator for operator in OPERATORS}
    assert not own & (CONVOLUTION_OPERATORS | VOCABULARY_OPERATORS)
    assert own | CONVOLUTION_OPERATORS | VOCABULARY_OPERATORS == registered_operators()


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_is_measured_in_every_mode(operator):
    found = {(case.mode, case.dtype) for case in CASES if case.subject is operator and case.mode != "scaling"}
    every = {(mode, dtype) for mode in ("large", "kernel", "cached") for dtype in DTYPES}
    assert found == every | {("curve", torch.float32), ("call", torch.float32)}


@pytest.mark.parametrize("layer", CONVOLUTIONS + TINY_CONVOLUTIONS, ids=lambda layer: layer.name)
def test_every_layer_is_measured_forward_and_backward(layer):
    mode, dtypes = ("convolution", DTYPES) if layer in CONVOLUTIONS else ("tiny_convolution", DTYPES[:1])
    names = {f"{operator}:{layer.name}" for operator in CONVOLUTION_OPERATORS}
    found = {(case.subject.name, case.dtype) for case in CASES if case.mode == mode and case.subject.name in names}
    assert found == {(name, dtype) for name in names for dtype in dtypes}


def test_the_layers_are_of_every_kind():
    ranks = {len(layer.kernel) for layer in CONVOLUTIONS}
    assert ranks == {1, 2, 3}
    assert any(layer.transposed for layer in CONVOLUTIONS)
    assert any(layer.channels_last for layer in CONVOLUTIONS)
    assert any(layer.groups == layer.images[1] > 1 for layer in CONVOLUTIONS)


@pytest.mark.parametrize("case", [case for case in CASES if case.mode in ("large", "kernel")], ids=str)
def test_large_is_at_least_64_mib(case):
    shape = torch.Size(case.shape)
    assert shape.numel() * case.dtype.itemsize >= LARGE_BYTES == 64 * 2**20


def test_functions_run_every_operator():
    ran = {operator for function in FUNCTIONS for operator in function.operators}
    assert ran | VOCABULARY_OPERATORS == registered_operators()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_a_function_runs_the_operators_it_names(function):
    names = set()

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, arguments=(), keywords=None):
            if called.namespace == "aclnn":
                names.add(called._opname)
            return called(*arguments, **(keywords or {}))

    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in function.inputs(function.shape, DTYPES[0])]
    with Calls():
        function.ours(*inputs).sum().backward()
    assert names == set(function.operators)
    assert all(x.grad is not None for x in inputs if x.requires_grad)


def test_case_names_are_unique():
    assert len({str(case) for case in CASES}) == len(CASES)


def test_quick_measures_every_mode_and_less():
    assert {case.mode for case in CASES if case.quick} == set(MODES)
    assert sum(case.quick for case in CASES) < 0.7 * len(CASES)
    assert QUICK.seconds < FULL.seconds
    assert 2 <= QUICK.least <= QUICK.most < FULL.most


@pytest.mark.parametrize(
    ("layer", "gflops"),
    [
        # 2 * images * output pixels * output channels * input channels of a group * kernel pixels
        (Convolution("", (8, 64, 56, 56), 64, (3, 3), padding=1), 2 * 8 * 56 * 56 * 64 * 64 * 9),
        (Convolution("", (8, 3, 224, 224), 64, (7, 7), stride=2, padding=3), 2 * 8 * 112 * 112 * 64 * 3 * 49),
        (Convolution("", (2, 8, 5, 5), 8, (3, 3), groups=8), 2 * 2 * 3 * 3 * 8 * 9),
        # Every input pixel is multiplied by every weight.
        (Convolution("", (2, 8, 5, 5), 4, (3, 3), stride=2, transposed=True), 2 * 2 * 5 * 5 * 8 * 4 * 9),
    ],
)
def test_flops(layer, gflops):
    backward, forward = layer.rows()
    assert forward.flops(layer.images) == gflops
    assert backward.flops(layer.images) == 2 * gflops


# ---- Providers and measuring ---------------------------------------------------------------------


def runs_in_no_time(case: Case) -> bool:
    """Excludes all but one of the 16-bit convolutions, for which torch takes a second even with few pixels."""
    return case.mode != "convolution" or case.dtype == torch.float32 or case.subject.name.endswith(":1d")


OPERATOR_CASES = [case for case in CASES if isinstance(case.subject, (Operator, Function)) and runs_in_no_time(case)]


# Several shapes of one operator are equal when tiny.
@pytest.mark.parametrize("case", dict.fromkeys(map(tiny, OPERATOR_CASES)), ids=str)
def test_case_runs_and_agrees_with_its_peers(case, small_gemm):
    rows = measure(case, ALONE, TWO_TURNS)
    peers = {peer for peer in MODES[case.mode][1] if peer not in ("torch.compile", "JAX")}
    if isinstance(case.subject, Operator) and case.subject.out is None:
        peers -= {"eager out="}
    if isinstance(case.subject, Operator) and case.subject.nothing is None:
        peers -= {"nothing asked"}
    if case.dtype == torch.float16:
        peers -= {"GEMM peak"}
    assert {row.provider.partition(":")[0] for row in rows} == {"aclnn"} | peers
    for row in rows:
        assert 0 < row.p20 <= row.median <= row.p80
        assert 0 < row.speedup_p20 <= row.speedup <= row.speedup_p80
        assert row.case == (case.mode, case.subject.name, case.dtype_name, case.size, 2)
        assert row.metric == MODES[case.mode][0]
    assert [row.speedup for row in rows if row.provider == "aclnn"] == [1.0]


VOCABULARY_CASES = dict.fromkeys(tiny(case) for case in CASES if case.mode == "vocabulary")


@pytest.mark.parametrize("case", VOCABULARY_CASES, ids=str)
def test_a_loss_of_a_vocabulary_runs_in_every_way(case, small_gemm):
    ran = set()

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, arguments=(), keywords=None):
            if called.namespace == "aclnn":
                ran.add(called._opname.removeprefix("_"))
            return called(*arguments, **(keywords or {}))

    with Calls():
        rows = measure(case, ALONE, TWO_TURNS)
    narrow = case.dtype != torch.float32
    assert ran == (VOCABULARY_OPERATORS if narrow else {"linear_cross_entropy"})
    expected = {"aclnn", "eager", "rows in parts"} | ({"CANN's three"} if narrow else set())
    if hasattr(torch.nn, "LinearCrossEntropyOptions"):
        expected |= {"chunks"}
    if case.dtype != torch.float16:
        expected |= {"GEMM peak"}
    assert {row.provider for row in rows} == expected
    assert all(row.metric == "GFLOP/s" and row.size == "40x24x70" for row in rows)


def peers_of(rows: list[Row]) -> list[str]:
    """The measured peers, with the rooflines merged."""
    return list(dict.fromkeys(row.provider.partition(":")[0] for row in rows))


def test_peers_that_take_too_long_for_a_vocabulary_are_named(monkeypatch):
    monkeypatch.setattr(providers, "LONGEST_CALL", 0.0)
    case = next(iter(VOCABULARY_CASES))
    with pytest.warns(UserWarning, match=r"eager is not timed: a call would take \d+ s"):
        rows = measure(case, ALONE, TWO_TURNS)
    assert peers_of(rows) == ["aclnn", "GEMM peak"]


@pytest.mark.test_all
@inductor.needed
def test_compiled_torch_is_a_peer():
    rows = measure(find("large", "elu"), Settings(), TWO_TURNS)
    assert peers_of(rows) == ["aclnn", "eager", "eager out=", "torch.compile", "roofline", "in cache"]


@pytest.fixture
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {"layers": 1, "width": 24, "heads": 2, "hidden": 16, "vocabulary": 64}
    monkeypatch.setattr(models, "LanguageModel", functools.partial(models.LanguageModel, **shape))
    monkeypatch.setattr(models, "VOCABULARY", 512)


@pytest.mark.test_all
@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case.subject, Model)], ids=str)
def test_training_steps_run(case, small_models):
    rows = measure(case, ALONE, TWO_TURNS)
    assert peers_of(rows) == ["aclnn", "eager", "rest of the step"]


def test_the_rest_of_a_step_is_what_is_not_in_our_operators(monkeypatch):
    """A step of 5 seconds: operators take 3 of the 4 that the profiled step takes; one operator calls another."""
    x = torch.ones(3)
    clock = iter([10.0, 14.0])
    monkeypatch.setattr(providers.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(providers.timeit, "timeit", lambda call, number: 5.0 * number)
    outer, other = (
        SimpleNamespace(name=name, cpu_time_total=1e6 * seconds, cpu_parent=None)
        for name, seconds in (("aclnn::elu", 3), ("aten::mm", 1))
    )
    between = SimpleNamespace(name="aten::mul", cpu_time_total=2.5e6, cpu_parent=outer)
    inner = SimpleNamespace(name="aclnn::silu", cpu_time_total=2e6, cpu_parent=between)
    events = [outer, other, between, inner]
    monkeypatch.setattr(providers, "profile", lambda: contextlib.nullcontext(SimpleNamespace(function_events=events)))
    assert providers.Rest(lambda: x).sample(2) == pytest.approx(5.0 / 4)


def test_the_profiler_sees_our_operators_and_what_they_take():
    x = torch.ones(2**20)
    with providers.profile() as profiler:
        torch.ops.aclnn.elu(x)
    (own,) = [event for event in profiler.function_events if event.name.startswith("aclnn::")]
    assert own.cpu_time_total > 0


def test_converted_models_compute_with_ours(small_models):
    names = set()

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, arguments=(), keywords=None):
            names.add(f"{called.namespace}::{called._opname}")
            return called(*arguments, **(keywords or {}))

    ours, torchs = models.steps("llama", torch.float32)
    with Calls():
        ours()
    assert {"aclnn::rms_norm", "aclnn::cross_entropy_loss"} <= names
    names.clear()
    with Calls():
        torchs()
    assert not any(name.startswith("aclnn::") for name in names)


def test_models_that_learn_otherwise_are_not_timed(small_models, monkeypatch):
    change = models.converted

    def other(model: torch.nn.Module) -> torch.nn.Module:
        ours = change(model)
        with torch.no_grad():
            next(ours.parameters()).mul_(2)
        return ours

    monkeypatch.setattr(models, "converted", other)
    with pytest.raises(AssertionError, match="not close"):
        models.steps("llama", torch.float32)


@pytest.mark.test_all
def test_peak_memory_counts_logits_and_gradient():
    rows, classes = 1024, 4096
    tensor = rows * classes * 4 / 2**20
    # Logits, their log softmax, and the gradients with respect to both, or some of these.
    assert 2 * tensor <= memory.peak("eager", (rows, classes), 1) <= 4.5 * tensor


@pytest.mark.test_all
def test_peak_memory_of_a_linear_layer_counts_gradients_and_no_inputs():
    rows, width, classes = 512, 64, 8192
    # The gradient of the matrix, and for torch logits, their log softmax and both gradients, or some of these.
    matrix, logits = (size * classes * 4 / 2**20 for size in (width, rows))
    assert matrix <= memory.peak("aclnn", (rows, width, classes), 1) <= memory.peak("eager", (rows, width, classes), 1)
    assert matrix + 2 * logits <= memory.peak("eager", (rows, width, classes), 1) <= matrix + 4.5 * logits


@pytest.mark.test_all
def test_peak_memory_of_chunks_is_less():
    if "chunks" not in memory.OF_LINEAR_LAYERS:
        pytest.skip("this torch has no linear_cross_entropy")
    assert memory.peak("chunks", (512, 64, 8192), 1) < memory.peak("eager", (512, 64, 8192), 1)


@pytest.mark.test_all
def test_peak_memory_of_a_training_step_counts_model_and_optimizer():
    # Embedding and head; each has a gradient, and two numbers of Adam's.
    matrices = 2 * models.VOCABULARY * 128 * 4 / 2**20
    ours = memory.peak("aclnn", "finetune_llama", 1)
    assert 4 * matrices <= ours <= memory.peak("eager", "finetune_llama", 1)


def test_peak_memory_is_compared(monkeypatch):
    monkeypatch.setattr(memory, "peak", lambda name, work, threads: {"aclnn": 10.0, "eager": 30.0}[name])
    rows = measure(find("memory", "cross_entropy"), ALONE, TWO_TURNS)
    assert [(row.provider, row.metric, row.median, row.speedup) for row in rows] == [
        ("aclnn", "MiB", 10.0, 1.0),
        ("eager", "MiB", 30.0, 3.0),
    ]


def test_memory_is_measured_of_every_case(monkeypatch):
    asked = set()
    monkeypatch.setattr(memory, "peak", lambda name, work, threads: asked.add((name, work)) or 1.0)
    every = {"aclnn", "eager"} | ({"chunks"} if hasattr(torch.nn, "LinearCrossEntropyOptions") else set())
    for case in CASES:
        if case.mode.startswith("memory"):
            expected = every if case.subject.name == "linear_cross_entropy" else {"aclnn", "eager"}
            assert set(peers_of(measure(case, ALONE, TWO_TURNS))) == expected
            assert {(name, case.shape or "finetune_llama") for name in expected} <= asked


def test_scaling_takes_one_thread_and_gives_the_others_back():
    threads = []
    provider = providers.OneThread(lambda: threads.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        provider.sample(3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert threads == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("mode", "name"),
    [("call", "elu"), ("large", "rms_norm_grad"), ("kernel", "selu"), ("convolution", "convolution:1d")],
)
def test_wrong_results_are_not_timed(mode, name, small_gemm):
    case = find(mode, name)
    arguments = case.subject.arguments

    def differing(first: Tensor, *rest: Tensor) -> tuple:
        return arguments(first * 1.01, *rest)

    field = "cann" if mode == "kernel" else "arguments"
    wrong = dataclasses.replace(case.subject, **{field: differing})
    with pytest.raises(AssertionError, match="not close"):
        measure(dataclasses.replace(case, subject=wrong), ALONE, TWO_TURNS)


def test_wrong_gradients_of_functions_are_not_timed():
    case = find("forward+backward", "functional.rms_norm")
    call = case.subject.call

    def differing(F, *inputs: Tensor) -> Tensor:
        result = call(F, *inputs)
        # The same numbers with a different gradient.
        return result.detach() + 2 * (result - result.detach()) if F is torch.nn.functional else result

    wrong = dataclasses.replace(case.subject, call=differing)
    with pytest.raises(AssertionError, match="gradient of eager"):
        measure(dataclasses.replace(case, subject=wrong), ALONE, TWO_TURNS)


def test_a_peer_that_is_wrong_is_left_out():
    case = find("large", "elu")

    def out(results: tuple[Tensor, ...], x: Tensor):
        return lambda: results[0].fill_(7)

    with pytest.warns(UserWarning, match=r"large/elu/float32/64: not timed\. eager out="):
        rows = measure(dataclasses.replace(case, subject=dataclasses.replace(case.subject, out=out)), ALONE, TWO_TURNS)
    assert peers_of(rows) == ["aclnn", "eager", "roofline", "in cache"]


def test_failed_stage_1_names_the_api_and_the_status():
    case = find("kernel", "elu_backward:is_result")
    negative = dataclasses.replace(case.subject, cann=lambda g, y: (g, -1.0, 1.0, 1.0, True, y))
    with pytest.raises(RuntimeError, match=r"aclnnEluBackward failed with status 161002"):
        measure(dataclasses.replace(case, subject=negative), ALONE, TWO_TURNS)


def test_turns_are_fewer_when_they_are_long():
    effort = Effort(1.2, least=5, most=100, patience=4)
    turns = {0.001: 100, 0.1: 12, 0.5: 5, 1.0: 4, 2.0: 3, float("inf"): 3}
    assert {seconds: effort.turns(seconds) for seconds in turns} == turns


def test_spread_is_median_and_fifths():
    assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0]) == Spread(3.5, 2.0, 5.0)


def test_speedups_are_of_equal_work_and_taken_within_a_turn(monkeypatch):
    """The second provider does 10 times the work in 20 times, then 30 times our time."""

    @dataclasses.dataclass(frozen=True)
    class Scripted(Provider):
        costs: Iterator[float] | None = None

        def sample(self, calls: int) -> float:
            return next(self.costs)

        def prepare(self) -> tuple[int, float]:
            return 1, 1.0

    field = {"aclnn": Scripted(print, 1e9, iter([1.0, 2.0])), "eager": Scripted(print, 1e10, iter([20.0, 60.0]))}

    class Made:
        def __enter__(self):
            return field

        def __exit__(self, *_):
            return None

    monkeypatch.setattr("benchmarks.measure.providers", lambda case, settings: Made())
    ours, eager = measure(find("convolution", "convolution:1d"), ALONE, TWO_TURNS)
    assert (ours.median, ours.speedup) == (0.75, 1.0)  # GFLOP/s for 1 and for 2 seconds
    assert (eager.speedup_p20, eager.speedup, eager.speedup_p80) == pytest.approx((2.2, 2.5, 2.8))


# ---- JAX -----------------------------------------------------------------------------------------

FAKE_JAX = """
import types
import numpy
__version__ = "fake"
lax = types.SimpleNamespace(rsqrt=lambda x: 1 / numpy.sqrt(x))
def jit(function):
    return function
def block_until_ready(x):
    return x
"""


@pytest.fixture
def fake_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a module named jax where child processes find it."""

    def make(source: str) -> str:
        (tmp_path / "jax.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return sys.executable

    return make


# What jax's documentation lists in jax.nn that takes a tensor and no number that it cannot do without.
IN_JAX_NN = (
    *(
        "celu",
        "elu",
        "gelu",
        "hard_sigmoid",
        "hard_silu",
        "hard_swish",
        "hard_tanh",
        "leaky_relu",
        "log_sigmoid",
        "mish",
    ),
    *(
        "relu",
        "relu6",
        "selu",
        "sigmoid",
        "silu",
        "soft_sign",
        "softplus",
        "sparse_plus",
        "sparse_sigmoid",
        "squareplus",
    ),
    *("swish", "tanh"),
)


def test_jax_has_every_operator():
    ours_alone = VOCABULARY_OPERATORS - {"linear_cross_entropy"}
    in_files = set(jax_child.functions(SimpleNamespace(numpy=None, lax=None)))
    found = {name.replace("_", "") for name in IN_JAX_NN}
    in_nn = {name for name in registered_operators() if name.removesuffix("_backward").replace("_", "") in found}
    assert in_files | in_nn == registered_operators() - ours_alone


def test_jax_s_own_functions_are_found_and_differentiated():
    """By their names without underscores; they compute in float32."""
    pulled = []

    def vjp(function, x):
        pulled.append((function, x.dtype))
        return function(x), lambda g: (g * 3,)

    twice = SimpleNamespace(hard_swish=lambda x: 2 * x)
    jax = SimpleNamespace(nn=twice, vjp=vjp)
    x = np.array([1.0, -2.0], np.float16)
    result, gradient = jax_child.of_nn(jax, "hardswish")(x), jax_child.of_nn(jax, "hardswish_backward")(x, x)
    assert (result.dtype, result.tolist()) == (np.float16, [2.0, -4.0])
    assert (gradient.dtype, gradient.tolist()) == (np.float16, [3.0, -6.0])
    assert pulled == [(twice.hard_swish, np.float32)]
    with pytest.raises(KeyError, match="hardswash"):
        jax_child.of_nn(jax, "hardswash")


def test_jax_takes_its_turns(fake_jax):
    with Jax(fake_jax(FAKE_JAX), threads=1) as jax:
        assert jax.version == "fake"
        x, gain = torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0])
        y, rstd = jax.load("rms_norm", {"epsilon": 0.0}, (x, gain))
        torch.testing.assert_close(rstd, torch.tensor([[12.5**-0.5]]))
        torch.testing.assert_close(y, x * gain * 12.5**-0.5)
        assert 0 < jax.time(3) < 1
        for mode, limit in (("call", []), ("cached", []), ("large", ["roofline", "in cache"])):
            rows = measure(find(mode, "rms_norm"), Settings(2, jax, compile=False), TWO_TURNS)
            assert peers_of(rows) == ["aclnn", "eager", "JAX", *limit]


def test_jax_that_is_wrong_is_left_out(fake_jax):
    wrong = FAKE_JAX.replace("return function\n", "return lambda *arrays: 1 + function(*arrays)\n")
    case = find("cached", "elu")
    with (
        Jax(fake_jax(wrong), threads=1) as jax,
        pytest.warns(UserWarning, match="JAX"),
    ):
        rows = measure(case, Settings(2, jax, compile=False), TWO_TURNS)
    assert [row.provider for row in rows] == ["aclnn", "eager"]


def test_jax_says_what_failed(fake_jax):
    failing = FAKE_JAX.replace("return function\n", "raise ValueError('no such thing')\n")
    with Jax(fake_jax(failing), threads=1) as jax:
        with pytest.raises(JaxError, match="ValueError: no such thing"):
            jax.load("elu", {}, (torch.zeros(3),))
        jax.unload()  # the process stays alive


def test_jax_that_ends_is_an_error(fake_jax):
    ending = FAKE_JAX.replace("return function\n", "import os; os._exit(3)\n")
    with Jax(fake_jax(ending), threads=1) as jax, pytest.raises(JaxError, match="ended with code 3"):
        jax.load("elu", {}, (torch.zeros(3),))


@pytest.mark.test_all
@pytest.mark.parametrize("absent", ["module", "interpreter"])
def test_absent_jax_is_skipped_with_a_line(absent, fake_jax, tmp_path, capsys):
    python = fake_jax("raise ImportError('no jax here')") if absent == "module" else str(tmp_path / "none")
    arguments = ["--quick", "--filter", "call/elu/", "--jax", python, "--output", str(tmp_path / "out.csv")]
    assert run.main(arguments) == 0
    printed = capsys.readouterr().out
    assert len(re.findall("JAX is skipped: .*", printed)) == 1
    assert ("no jax here" if absent == "module" else "No such file") in printed


# ---- Bars ----------------------------------------------------------------------------------------


def row(speedup: float = 1.0, **changes) -> Row:
    common = {"kernel": "elu", "provider": "eager", "mode": "large", "dtype": "float32", "size": "8", "threads": 2}
    numbers = {"median": 1.0, "p20": 1.0, "p80": 1.0, "speedup_p20": speedup, "speedup_p80": speedup}
    return Row(**{**common, "metric": "ms", "speedup": speedup, **numbers, **changes})


def test_every_mode_has_a_bar_but_the_curve():
    modes = {mode for bar in BARS if bar.peer != "JAX" for mode in bar.modes}
    assert modes == set(MODES) - {"curve"}
    for bar in BARS:
        assert bar.mean or bar.worst
        assert any(bar.peer in MODES[mode][1] for mode in bar.modes)


@pytest.mark.parametrize(
    ("speedups", "met"),
    [((4, 9), True), ((3, 12), True), ((2.9, 20), False), ((3, 11), False), ((6, 6), True)],
)
def test_bar_asks_for_the_mean_and_the_worst(speedups, met):
    bar = Bar("work", "eager", ("large",), mean=6, worst=3)
    rows = [row(speedup, kernel=f"elu:{number}") for number, speedup in enumerate(speedups)]
    rows += [row(0.1, mode="call"), row(0.1, provider="JAX")]  # to which it does not apply
    (verdict,) = judge(rows, [bar])
    assert verdict.met is met
    assert verdict.mean == pytest.approx((speedups[0] * speedups[1]) ** 0.5)
    assert verdict.worst.speedup == min(speedups)
    assert verdict.rows == 2


def test_bar_without_rows_is_not_judged():
    assert judge([row()], [Bar("work", "eager", ("call",), worst=1)]) == []


def test_every_number_of_threads_is_judged():
    verdicts = judge([row(2.0), row(0.5, threads=1)], [Bar("work", "eager", ("large",), worst=1)])
    assert [(verdict.threads, verdict.met) for verdict in verdicts] == [(2, True), (1, False)]


def test_dtypes_and_operators_narrow_a_bar():
    bar = Bar("work", "eager", ("large",), worst=1, dtypes=("float16",), operators=("selu",))
    rows = [row(0.1), row(0.1, dtype="float16"), row(0.1, kernel="selu"), row(2.0, kernel="selu", dtype="float16")]
    (verdict,) = judge(rows, [bar])
    assert verdict.met
    assert verdict.rows == 1


def test_the_fastest_roofline_counts():
    bar = Bar("work", "roofline", ("kernel",), worst=0.85)
    rows = [row(speedup, mode="kernel", provider=f"roofline: {speedup}") for speedup in (1.2, 0.8, 0.9)]
    (verdict,) = judge(rows, [bar])
    assert (verdict.rows, verdict.worst.speedup, verdict.met) == (1, 0.8, False)


def test_a_limit_says_what_the_machine_allows():
    """Rows at 4 and 8 times eager's speed that reach half and all of the fastest roofline."""
    bar = Bar("work", "eager", ("large",), mean=12)
    roofs = [row(0.5, provider="roofline: a"), row(0.7, provider="roofline: b")]
    other = [row(8.0, kernel="selu"), row(1.1, kernel="selu", provider="roofline: a")]  # faster than its roofline
    (verdict,) = judge([row(4.0), *roofs, *other], [bar])
    assert verdict.limit == pytest.approx((8.0, 8.0))
    assert not verdict.met
    # The limit of a row without a roofline is unknown.
    (verdict,) = judge([row(4.0), *roofs, row(8.0, kernel="selu")], [bar])
    assert verdict.limit is None


def test_the_slowest_of_several_limits_counts():
    """Arithmetic that takes half of the time, or more than the memory traffic: 0.8 of it."""
    bar = Bar("work", "roofline", ("kernel",), worst=0.85)
    roof = row(0.6, mode="kernel", provider="roofline: a")
    for cached, limit in ((0.5, 1.0), (0.75, 0.8)):
        (verdict,) = judge([roof, row(cached, mode="kernel", provider="in cache")], [bar])
        assert verdict.limit == pytest.approx((limit, limit))


def test_a_bar_per_operator_takes_the_least():
    bar = Bar("work", "JAX", ("large", "call"), mean=1.5, each_operator=True)
    fast = [row(9.0, provider="JAX"), row(9.0, provider="JAX", mode="call")]
    slow = [row(1.0, provider="JAX", kernel="selu"), row(2.0, provider="JAX", kernel="selu:x")]
    (verdict,) = judge([*fast, *slow], [bar])
    assert (verdict.mean_of, verdict.met) == ("selu", False)
    assert verdict.mean == pytest.approx(2**0.5)


@pytest.mark.parametrize(("eager", "met"), [(84.0, False), (86.0, True)])
def test_parity_is_enough_at_the_gemm_peak(eager, met):
    bar = Bar("work", "eager", ("convolution",), mean=1.3, worst=0.97, parity=0.85)
    layer = {"mode": "convolution", "kernel": "convolution_backward:a"}
    peak = row(0.9, **layer, provider="GEMM peak", median=100.0)
    (verdict,) = judge([row(1.0, **layer, median=eager), peak], [bar])
    assert verdict.met is met
    # At least parity.
    (verdict,) = judge([row(0.96, **layer, median=eager), peak], [bar])
    assert not verdict.met


# ---- Results, tables, plots, commands ------------------------------------------------------------


def fake_rows(case: Case, settings: Settings, effort: Effort) -> list[Row]:
    """Rows that are 1.2 times as fast as each peer."""
    place = (case.subject.name, case.mode, case.dtype_name, case.size)
    kernel, mode, dtype, size = place
    common = {"kernel": kernel, "mode": mode, "dtype": dtype, "size": size, "threads": settings.threads}
    peers = [(peer, 1.2) for peer in MODES[case.mode][1] if peer != "JAX"]
    return [
        row(speedup, **common, provider=provider, metric=MODES[case.mode][0])
        for provider, speedup in [("aclnn", 1.0), *peers]
    ]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Runs the command with made-up measurements, writing into a folder of the test."""
    monkeypatch.setattr(run, "measure", fake_rows)

    def call(*arguments: str) -> int:
        output = ["--jax", str(tmp_path / "none"), "--output", str(tmp_path / "results" / "out.csv")]
        return run.main([*arguments, *output])

    return call


def test_command_writes_csv_and_judges(command, tmp_path, capsys):
    # 1.2 times meets the bar of calls and misses that of cached calls.
    assert command("--quick", "--filter", "call/elu/", "--check", "--threads", "1") == 0
    assert "PASS" in capsys.readouterr().out
    assert command("--quick", "--filter", "cached/elu/", "--check", "--threads", "1") == 1
    assert "FAIL" in capsys.readouterr().out
    assert command("--quick", "--filter", "cached/elu/", "--threads", "1") == 0
    with (tmp_path / "results" / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == COLUMNS
    assert {"kernel", "provider", "mode", "dtype", "size", "threads", "metric", "median", "p20", "p80"} < set(COLUMNS)
    cases = [case for case in CASES if case.quick and case.mode == "cached" and case.subject.name == "elu"]
    assert len(lines) == 2 * len(cases)
    assert [line["provider"] for line in lines[:2]] == ["aclnn", "eager"]
    assert [line["speedup"] for line in lines[:2]] == ["1", "1.2"]
    assert torch.__version__ in lines[0]["machine"]
    assert "1 threads" in lines[0]["machine"]


def test_command_measures_every_number_of_threads(command, tmp_path):
    before = torch.get_num_threads()
    assert (
        command(
            *("--quick", "--filter", "call/elu/", "--filter", "scaling/elu/", "--filter", "memory/"),
            *("--threads", "2", "--threads", "1"),
        )
        == 0
    )
    assert torch.get_num_threads() == before
    rows = results.read([tmp_path / "results" / "out.csv"])
    modes = {(row.mode, row.threads) for row in rows}
    # One thread cannot scale, and uses no additional memory.
    assert modes == {("call", 2), ("scaling", 2), ("memory", 2), ("call", 1)}
    assert {re.findall(r"(\d) threads", row.machine)[0] for row in rows} == {"1", "2"}


def test_command_lists_and_filters(command, capsys):
    assert run.main(["--list", "--threads", "2"]) == 0
    assert capsys.readouterr().out.split() == [str(case) for case in CASES]
    assert run.main(["--list", "--quick", "--filter", "call/", "--filter", "memory/", "--threads", "2"]) == 0
    listed = capsys.readouterr().out.split()
    assert listed == [str(case) for case in CASES if case.quick and ("call/" in str(case) or "memory/" in str(case))]
    with pytest.raises(SystemExit):
        command("--filter", "no such case")


def test_machine_is_named_without_host_or_path():
    name = run.machine()
    assert torch.backends.cpu.get_cpu_capability() in name
    assert torch.__version__ in name
    assert f"{torch.get_num_threads()} threads" in name
    assert "/" not in name.replace(torch.__version__, "")


def test_results_of_several_files_are_one_and_the_last_counts(tmp_path):
    for number, rows in enumerate(([row(1.0), row(1.0, size="9")], [row(2.0)])):
        with results.Writer(tmp_path / f"{number}.csv", f"machine {number}") as file:
            file.write(rows)
    read = results.read([tmp_path / "0.csv", tmp_path / "1.csv"])
    assert [(row.size, row.speedup, row.machine) for row in read] == [("8", 2.0, "machine 1"), ("9", 1.0, "machine 0")]


def test_report_judges_files(tmp_path, capsys):
    with results.Writer(tmp_path / "out.csv", "some machine") as file:
        file.write([row(1.0, provider="aclnn"), row(0.5)])
    arguments = [str(tmp_path / "out.csv"), "--plots", str(tmp_path / "plots")]
    assert report.main(arguments) == 0
    assert report.main([*arguments, "--check"]) == 1
    printed = capsys.readouterr().out
    assert "some machine" in printed
    assert "0 of 1 bars met" in printed


def test_report_as_markdown_has_threads_beside_one_another(tmp_path, capsys):
    with results.Writer(tmp_path / "out.csv", "some machine") as file:
        file.write([row(8.0), row(2.0, kernel="selu"), row(30.0, threads=1)])
    assert report.main([str(tmp_path / "out.csv"), "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("| 2 threads: mean; worst | 1 thread: mean; worst |")
    assert lines[2].endswith("| 4; 2 | 30; 30 |")


def test_report_as_markdown_has_the_limit_of_a_bar_that_is_missed(tmp_path, capsys):
    with results.Writer(tmp_path / "out.csv", "some machine") as file:
        file.write([row(8.0), row(0.8, provider="roofline: a"), row(30.0, threads=1)])
        file.write([row(0.8, provider="roofline: a", threads=1)])
    assert report.main([str(tmp_path / "out.csv"), "--markdown"]) == 0
    assert capsys.readouterr().out.splitlines()[2].endswith("| 8; 8 (limit 10; 10) | 30; 30 |")


@pytest.mark.test_all
@pytest.mark.parametrize("modes", [tuple(MODES), ("memory",)], ids=["all", "without_anything_to_draw"])
def test_plots_are_written(modes, tmp_path):
    rows = [row for case in CASES if case.mode in modes for row in fake_rows(case, ALONE, QUICK)]
    pictures = plots.save(rows, tmp_path / "plots")
    assert [path.name for path in pictures] == [
        "speedups.png",
        "bandwidth.png",
        "convolutions.png",
        "calls.png",
        "memory.png",
        "overview.png",
    ]
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_commands_of_the_documents_exist():
    """Options shown in documents and Makefile exist."""
    root = Path(__file__).parents[1]
    texts = "".join((root / name).read_text() for name in ("Makefile", "README.md", "docs/benchmarks.md"))
    shown = set(re.findall(r"benchmarks\.run ((?:[^\n`]|\\\n)*)", texts))
    assert shown
    parser_options = set(re.findall(r'"(--[a-z-]+)"', Path(run.__file__).read_text()))
    for line in shown:
        assert set(re.findall(r"--[a-z-]+", line)) <= parser_options, line
