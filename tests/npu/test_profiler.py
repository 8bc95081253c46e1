"""torch_npu.profiler on the host CANN: its timeline and tables of a training step, and incorrect use."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_npu
from torch import nn
from torch_npu import profiler

from tests import LONGEST

BOTH = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]
STEPS = 2
# With stacks, torch_npu 2.8 reads a null pointer in Python 3.13, in the function that it sets to trace calls.
STACKS = not torch.__version__.startswith("2.8.") or sys.version_info < (3, 13)


def training_step() -> Callable[[], None]:
    layer = nn.Linear(32, 64).npu()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.randn(16, 32).npu()

    def step() -> None:
        torch.relu(layer(x)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.npu.synchronize()  # so that none of it runs in the next step

    step()
    return step


def results_of(folder: Path) -> Path:
    (found,) = folder.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT")
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tasks_of(path: Path, name: str) -> list[dict[str, Any]]:
    """The device tasks with the name in a timeline, which also has calls of that name."""
    return [
        event
        for event in json.loads(path.read_text())
        if event["name"] == name and "Task Type" in event.get("args", {})
    ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two training steps after a warm-up step."""
    folder = tmp_path_factory.mktemp("profile")
    step = training_step()
    with profiler.profile(
        activities=BOTH,
        schedule=profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        profile_memory=True,
        with_stack=STACKS,
        experimental_config=profiler._ExperimentalConfig(
            profiler_level=profiler.ProfilerLevel.Level1, mstx=True, data_simplification=False
        ),
    ) as profile:
        for number in range(1 + STEPS):
            mark = torch_npu.npu.mstx.range_start(f"step {number}")
            step()
            torch_npu.npu.mstx.range_end(mark)
            profile.step()
    return results_of(folder)


@pytest.fixture(scope="module")
def timeline(results: Path) -> list[dict[str, Any]]:
    return json.loads((results / "trace_view.json").read_text())


def test_the_table_of_operators_has_shapes_and_types(results: Path) -> None:
    kernels = rows(results / "kernel_details.csv")
    products = [kernel for kernel in kernels if kernel["Name"] == "aclnnAddmm"]
    assert len(products) == STEPS
    for product in products:
        assert product["Type"] == "Addmm"
        assert product["Input Shapes"].strip('"') == "64;16,32;32,64"
        assert product["Output Shapes"].strip('"') == "16,64"
        assert product["Input Data Types"] == "FLOAT;FLOAT;FLOAT"
        assert product["Output Formats"] == "ND"
        assert float(product["Duration(us)"]) > 0
    assert {kernel["Step Id"] for kernel in kernels} == {"1", "2"}
    starts = [float(kernel["Start Time(us)"]) for kernel in kernels]
    assert starts == sorted(starts)


def test_tables_count_what_ran(results: Path) -> None:
    kernels = rows(results / "kernel_details.csv")
    for row in rows(results / "op_statistic.csv"):
        assert int(row["Count"]) == sum(kernel["Type"] == row["OP Type"] for kernel in kernels)
    calls = {row["API Name"]: int(row["Count"]) for row in rows(results / "api_statistic.csv")}
    assert calls["aclnnAddmmGetWorkspaceSize"] == calls["aclnnAddmm"] == STEPS
    steps = rows(results / "step_trace_time.csv")
    assert [row["Step"] for row in steps] == ["1", "2"]
    for row in steps:
        kernel_time = sum(float(kernel["Duration(us)"]) for kernel in kernels if kernel["Step Id"] == row["Step"])
        assert float(row["Computing"]) == pytest.approx(kernel_time, abs=1)


def test_operators_of_torch_have_the_time_of_their_kernels(results: Path) -> None:
    operators = {row["Name"]: row for row in rows(results / "operator_details.csv")}
    assert "16,32" in operators["aten::linear"]["Input Shapes"]
    assert float(operators["aten::linear"]["Device Total Duration(us)"]) > 0
    assert any("test_profiler.py" in row.get("Call Stack", "") for row in operators.values()) == STACKS


def test_tables_of_memory(results: Path) -> None:
    assert any(row["Name"] == "aten::addmm" for row in rows(results / "operator_memory.csv"))
    assert rows(results / "memory_record.csv")


def test_arrows_lead_from_calls_to_tasks(results: Path, timeline: list[dict[str, Any]]) -> None:
    tasks = tasks_of(results / "trace_view.json", "aclnnMm")
    assert len(tasks) == STEPS
    for task in tasks:
        arrows = [
            event
            for event in timeline
            if event.get("cat") == "HostToDevice" and event["ph"] == "f" and event["tid"] == task["tid"]
        ]
        (arrow,) = (event for event in arrows if float(event["ts"]) == float(task["ts"]))
        (begin,) = (
            event
            for event in timeline
            if event.get("cat") == "HostToDevice" and event["ph"] == "s" and event["id"] == arrow["id"]
        )
        assert float(begin["ts"]) <= float(task["ts"])


def test_marks_are_in_the_timeline(timeline: list[dict[str, Any]]) -> None:
    names = {event["name"] for event in timeline if event["ph"] == "X"}
    assert {"step 1", "step 2"} <= names


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("level", ["Level_none", "Level0", "Level1", "Level2"])
def test_levels(level: str, folder: Path) -> None:
    step = training_step()
    config = profiler._ExperimentalConfig(profiler_level=getattr(profiler.ProfilerLevel, level))
    with profiler.profile(
        activities=BOTH, on_trace_ready=profiler.tensorboard_trace_handler(str(folder)), experimental_config=config
    ):
        step()
    assert len(tasks_of(results_of(folder) / "trace_view.json", "aclnnAddmm")) == (level != "Level_none")


def test_a_trace_is_exported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # torch_npu stores its records in the current folder meanwhile
    step = training_step()
    with profiler.profile(activities=BOTH) as profile:
        step()
    path = folder / "trace.json"
    profile.export_chrome_trace(str(path))
    assert "aclnnAddmm" in path.read_text()


MISTAKES = """
import sys, torch, torch_npu
from torch_npu import profiler
out = sys.argv[2]
torch.ones(2).npu()
both = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]
def make(folder):
    return profiler.profile(activities=both, on_trace_ready=profiler.tensorboard_trace_handler(folder))
if sys.argv[1] == "stopped twice":
    one = make(out)
    one.start(); torch.ones(2).npu().add(1); one.stop(); one.stop()
elif sys.argv[1] == "two at a time":
    one, two = make(out), make(out)
    one.start(); two.start()
    torch.ones(2).npu().add(1)
    two.stop(); one.stop()
elif sys.argv[1] == "never stopped":
    make(out).start()
    torch.ones(2).npu().add(1).cpu()
print((torch.ones(2).npu() + 1).sum().item())
"""


@pytest.mark.parametrize("mistake", ["stopped twice", "two at a time", "never stopped"])
def test_a_program_outlives_its_mistakes(mistake: str, folder: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-W", "ignore", "-c", MISTAKES, mistake, str(folder)]
    temporary = folder / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=LONGEST
    )
    assert done.returncode == 0, done.stderr
    assert "4.0" in done.stdout.splitlines()
    assert not list(temporary.iterdir())
    assert set(os.listdir("/dev/shm")) <= before
