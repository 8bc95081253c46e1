"""The benchmarks are complete and their plumbing works. How fast anything is, no test says."""

import csv
import dataclasses

import pytest
import torch

from benchmarks import run
from benchmarks.cases import BARS, CASES, KERNELS, Bar, Case
from benchmarks.measure import Outcome, Spread, measure


def tiny(case: Case) -> Case:
    return dataclasses.replace(case, size=64)


def registered_operators() -> set[str]:
    """The public functional operators in the namespace: no overload, no in-place variant, nothing internal."""
    names = {
        name.removeprefix("aclnn::").split(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aclnn::")
    }
    return {name for name in names if not name.startswith("_") and not name.endswith("_")}


def test_every_registered_operator_has_a_kernel_and_the_reverse():
    assert {kernel.operator for kernel in KERNELS} == registered_operators()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_every_kernel_is_measured_in_every_mode(kernel):
    found = {(case.mode, case.dtype) for case in CASES if case.kernel is kernel}
    assert ("call", torch.float32) in found
    assert {dtype for mode, dtype in found if mode == "kernel"} == {torch.float32, torch.bfloat16, torch.float16}
    assert (("forward+backward", torch.float32) in found) == (kernel.functions is not None)


def test_case_names_are_unique():
    assert len({str(case) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [tiny(case) for case in CASES], ids=str)
def test_case_runs_and_agrees_with_its_peer(case):
    outcome = measure(case, rounds=2)
    assert outcome.peer in outcome.peers
    assert "aclnn" in outcome.metrics
    assert "aclnn" not in outcome.peers
    for spread in (*outcome.metrics.values(), outcome.ratio):
        assert 0 < spread.p20 <= spread.median <= spread.p80


def test_wrong_results_are_not_timed():
    case = next(tiny(case) for case in CASES if case.mode == "call" and case.kernel.operator == "elu_backward")
    wrong = dataclasses.replace(case.kernel, peer_arguments=lambda g, x: (g, 2.0, 1.0, 1.0, False, x))
    with pytest.raises(AssertionError, match="not close"):
        measure(dataclasses.replace(case, kernel=wrong), rounds=2)


def test_failed_stage_1_names_the_api_and_the_status():
    case = next(case for case in CASES if case.mode == "kernel" and case.kernel.operator == "elu_backward")
    negative = dataclasses.replace(case.kernel, arguments=lambda g, y: (g, -1.0, 1.0, 1.0, True, y))
    with pytest.raises(RuntimeError, match=r"aclnnEluBackward failed with status 161002"):
        measure(dataclasses.replace(case, kernel=negative, size=64), rounds=2)


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
    # 1.2 meets the bar of a call, <= 1.25, and misses that of forward+backward, <= 1.15.
    assert run.main(["--quick", "--filter", "call", "--check", "--output", str(output)]) == 0
    assert run.main(["--quick", "--filter", "forward+backward", "--check", "--output", str(output)]) == 1
    assert run.main(["--quick", "--filter", "forward+backward", "--output", str(output)]) == 0
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


def test_every_mode_has_a_bar():
    assert {case.mode for case in CASES} == set(BARS)
