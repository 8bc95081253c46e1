"""The benchmarks are complete and their plumbing works. How fast anything is, no test says."""

import csv
import dataclasses

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import run
from benchmarks.cases import BARS, CASES, KERNELS, LAYERS, Bar, Case, Kernel, Layer
from benchmarks.measure import Outcome, Spread, measure


def tiny(case: Case) -> Case:
    return dataclasses.replace(case, shape=case.kernel.tiny if isinstance(case.kernel, Layer) else (64,))


def find(kind: type[Kernel | Layer], mode: str, name: str) -> Case:
    """The first case of a row of a table, made tiny."""
    return next(
        tiny(case)
        for case in CASES
        if isinstance(case.kernel, kind) and case.mode == mode and case.kernel.name.startswith(name)
    )


def registered_operators() -> set[str]:
    """The public functional operators in the namespace: no overload, no in-place variant, nothing internal."""
    names = {
        name.removeprefix("aclnn::").split(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aclnn::")
    }
    return {name for name in names if not name.startswith("_") and not name.endswith("_")}


def test_every_registered_operator_is_measured_and_the_reverse():
    elementwise = {kernel.operator for kernel in KERNELS}
    others = {operator for layer in LAYERS for operator in layer.operators}
    assert not elementwise & others
    assert elementwise | others == registered_operators()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_every_kernel_is_measured_in_every_mode(kernel):
    found = {(case.mode, case.dtype) for case in CASES if case.kernel is kernel}
    assert ("call", torch.float32) in found
    assert {dtype for mode, dtype in found if mode == "kernel"} == {torch.float32, torch.bfloat16, torch.float16}
    assert (("forward+backward", torch.float32) in found) == (kernel.functions is not None)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_layer_is_measured_in_every_mode(layer):
    own = [case for case in CASES if case.kernel is layer]
    for mode in ("layer_call", "layer_forward+backward"):
        assert [(case.dtype, case.shape) for case in own if case.mode == mode] == [(torch.float32, layer.tiny)]
    steps = {(case.dtype, case.shape) for case in own if case.mode == "layer_step"}
    assert steps == {(dtype, shape) for dtype in layer.dtypes for shape in layer.shapes}


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_runs_the_operators_it_names(layer):
    names = set()

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            if function.namespace == "aclnn":
                names.add(function._opname)
            return function(*arguments, **(keywords or {}))

    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in layer.inputs(layer.tiny, torch.float32)]
    with Calls():
        layer.functions[0](*inputs).sum().backward()
    assert names == set(layer.operators)
    assert all(x.grad is not None for x in inputs if x.requires_grad)


def test_case_names_are_unique():
    assert len({str(case) for case in CASES}) == len(CASES)


# Two shapes of one layer are one when tiny.
@pytest.mark.parametrize("case", dict.fromkeys(map(tiny, CASES)), ids=str)
def test_case_runs_and_agrees_with_its_peer(case):
    outcome = measure(case, rounds=2)
    assert outcome.peer in outcome.peers
    assert "aclnn" in outcome.metrics
    assert "aclnn" not in outcome.peers
    for spread in (*outcome.metrics.values(), outcome.ratio):
        assert 0 < spread.p20 <= spread.median <= spread.p80


def test_wrong_results_are_not_timed():
    case = find(Kernel, "call", "elu_backward")
    wrong = dataclasses.replace(case.kernel, peer_arguments=lambda g, x: (g, 2.0, 1.0, 1.0, False, x))
    with pytest.raises(AssertionError, match="not close"):
        measure(dataclasses.replace(case, kernel=wrong), rounds=2)


def other_gradient(x: Tensor) -> Tensor:
    """The same numbers, whose gradient is another."""
    return x.detach() + 2 * (x - x.detach())


@pytest.mark.parametrize(
    ("mode", "change"),
    [("layer_call", lambda y: 1.001 * y), ("layer_forward+backward", other_gradient), ("layer_step", other_gradient)],
)
def test_wrong_results_of_layers_are_not_timed(mode, change):
    case = find(Layer, mode, "rms_norm")
    call = case.kernel.call

    def differing(F, *inputs: Tensor) -> Tensor:
        return change(call(F, *inputs)) if F is torch.nn.functional else call(F, *inputs)

    with pytest.raises(AssertionError, match="not close"):
        measure(dataclasses.replace(case, kernel=dataclasses.replace(case.kernel, call=differing)), rounds=2)


def test_failed_stage_1_names_the_api_and_the_status():
    case = find(Kernel, "kernel", "elu_backward")
    negative = dataclasses.replace(case.kernel, arguments=lambda g, y: (g, -1.0, 1.0, 1.0, True, y))
    with pytest.raises(RuntimeError, match=r"aclnnEluBackward failed with status 161002"):
        measure(dataclasses.replace(case, kernel=negative), rounds=2)


@pytest.mark.parametrize(
    ("at_least", "ratio", "met"),
    [
        (True, 0.9, True),
        (True, 0.7, False),
        (False, 0.7, True),
        (False, 0.9, False),
        (True, 0.8, True),
        (False, 0.8, True),
    ],
)
def test_bar(at_least, ratio, met):
    assert Bar("us", 0.8, at_least).met(ratio) is met


def test_spread_is_median_and_fifths():
    assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0, 6.0]) == Spread(3.5, 2.0, 5.0)


def fake_outcome(case: Case, ratio: float) -> Outcome:
    metrics = {"aclnn": Spread(2.0, 1.5, 2.5), "peer": Spread(1.0, 0.5, 1.5)}
    return Outcome(case, metrics, ("peer",), "peer", Spread(ratio, ratio, ratio))


def test_command_writes_csv_and_judges(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run, "measure", lambda case, rounds: fake_outcome(case, 1.2))
    output = tmp_path / "results" / "out.csv"
    # 1.2 meets the bars of calls, the lower <= 1.25, and misses that of forward+backward, <= 1.15.
    assert run.main(["--quick", "--filter", "call", "--check", "--output", str(output)]) == 0
    assert run.main(["--quick", "--filter", "/forward+backward", "--check", "--output", str(output)]) == 1
    assert run.main(["--quick", "--filter", "/forward+backward", "--output", str(output)]) == 0
    with output.open() as file:
        rows = list(csv.DictReader(file))
    cases = [case for case in CASES if case.mode == "forward+backward"]
    assert len(rows) == 3 * len(cases)
    assert tuple(rows[0]) == run.COLUMNS
    assert rows[0]["kernel"] == cases[0].kernel.name
    assert [row["metric"] for row in rows[:3]] == ["us", "us", "ratio to peer"]
    assert [row["median"] for row in rows[:3]] == ["2", "1", "1.2"]
    assert torch.__version__ in rows[0]["machine"]
    printed = capsys.readouterr().out
    assert "PASS" in printed
    assert "FAIL" in printed


def test_command_lists_cases_and_refuses_an_unknown_filter(capsys):
    assert run.main(["--list"]) == 0
    assert capsys.readouterr().out.split() == [str(case) for case in CASES]
    with pytest.raises(SystemExit):
        run.main(["--filter", "no such case"])


def test_command_says_large_powers_of_two_and_shapes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run, "measure", lambda case, rounds: fake_outcome(case, 1.0))
    assert run.main(["--output", str(tmp_path / "out.csv")]) == 0
    printed = capsys.readouterr().out
    assert "2^24" in printed
    assert "8x64x56x56" in printed
    with (tmp_path / "out.csv").open() as file:
        assert [row["size"] for row in csv.DictReader(file)][::3] == [case.size for case in CASES]


def test_every_mode_has_rounds_and_fewer_when_quick():
    assert set(run.ROUNDS) == set(BARS)
    assert all(2 <= quick < all_rounds for all_rounds, quick in run.ROUNDS.values())


def test_every_mode_has_a_bar():
    assert {case.mode for case in CASES} == set(BARS)
