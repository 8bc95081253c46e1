"""Calls in torch.profiler, and the trace of the host CANN."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import aclnn_torch
from aclnn_torch import functional as F
from tests import LONGEST, cabi
from tests.cabi import Dtype

from .conformance.machinery import Bools, Ints, Same, Scalar, Table, Tensor, all_tables, call

ROOT = Path(__file__).resolve().parents[1]
Events = list[dict[str, Any]]


def names_of(run: profile) -> list[str]:
    """The ranges of a profile, in order of their begin."""
    return [event.name for event in sorted(run.events(), key=lambda event: event.time_range.start)]


def backward_of_elu() -> None:
    x = torch.linspace(-1, 1, 6, requires_grad=True)
    F.elu(x).backward(torch.ones(6))


def test_operators_have_their_names_in_the_profiler() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as run:
        backward_of_elu()
    names = names_of(run)
    assert {"aclnn::elu", "aclnn::elu_backward"} <= set(names)
    assert not [name for name in names if name.startswith("aclnnElu")]


def test_stages_are_within_their_operator() -> None:
    with aclnn_torch.profile_stages(), profile(activities=[ProfilerActivity.CPU]) as run:
        backward_of_elu()
    ours = [name for name in names_of(run) if name.startswith("aclnn")]
    assert ours == [
        *("aclnn::elu", "aclnnEluGetWorkspaceSize", "aclnnElu"),
        *("aclnn::elu_backward", "aclnnEluBackwardGetWorkspaceSize", "aclnnEluBackward"),
    ]
    parents = {event.name: event.cpu_parent.name for event in run.events() if event.name.startswith("aclnnElu")}
    assert parents["aclnnElu"] == parents["aclnnEluGetWorkspaceSize"] == "aclnn::elu"
    assert parents["aclnnEluBackward"] == "aclnn::elu_backward"
    with profile(activities=[ProfilerActivity.CPU]) as run:
        backward_of_elu()
    assert "aclnnElu" not in names_of(run)


@pytest.mark.test_all
def test_the_environment_shows_stages_too() -> None:
    code = "from aclnn_torch import _C; print(_C.get_profile_stages())"
    for value, expected in (("1", "True\n"), ("0", "False\n")):
        environment = os.environ | {"ACLNN_TORCH_PROFILE_STAGES": value}
        assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment, text=True) == expected


def read(path: Path) -> Events:
    """The events of a trace whose end may be missing: all lines are complete."""
    text = path.read_text().rstrip()
    events = json.loads(text if text.endswith("]") else text.removesuffix(",") + "]")
    assert len(text.removesuffix("]").splitlines()) == 1 + len(events)
    return [event for event in events if event["ph"] == "X"]


def in_category(events: Events, category: str) -> Events:
    return [event for event in events if event["cat"] == category]


def test_a_call_is_three_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("what was there before")
    x = torch.linspace(-1, 1, 12, dtype=torch.float16).reshape(4, 3).t()[:, 1:]
    with aclnn_torch.trace(path):
        torch.ops.aclnn.elu(x, 1.5)
    torch.ops.aclnn.elu(x, 2.5)
    assert json.loads(path.read_text())  # including its end
    first, second, run = sorted(read(path), key=lambda event: ("stage 1", "stage 2", "run").index(event["cat"]))
    assert (first["name"], second["name"], run["name"]) == ("aclnnEluGetWorkspaceSize", "aclnnElu", "aclnnElu")
    # The operator chooses the order of dimensions in memory.
    out = first["args"]["arguments"].pop("out")
    assert (out["dtype"], out["shape"]) == ("FLOAT16", [3, 3])
    assert first["args"] == {
        "status": 0,
        "product": "Ascend910B",
        "arguments": {
            "self": {"dtype": "FLOAT16", "shape": [3, 3], "strides": [1, 3], "offset": 3},
            "alpha": {"dtype": "DOUBLE", "value": 1.5},
            "scale": {"dtype": "INT64", "value": 1},
            "inputScale": {"dtype": "INT64", "value": 1},
        },
    }
    assert second["args"] == {"status": 0, "workspaceSize": 0}
    assert run["args"] == {"status": 0}
    assert {(event["pid"], event["tid"]) for event in (first, second, run)} == {
        (os.getpid(), threading.get_native_id())
    }
    # Sequential, and the null stream computes within stage 2. Times are truncated to nanoseconds.
    assert first["ts"] + first["dur"] <= second["ts"] + 0.001
    assert second["ts"] <= run["ts"] + 0.001
    assert run["ts"] + run["dur"] <= second["ts"] + second["dur"] + 0.002


def kind_of(value: Any) -> str:
    """A trace's representation of an argument in an operator's table."""
    if isinstance(value, Tensor | Same):
        return "tensor"
    if isinstance(value, Scalar):
        return "scalar"
    return "list" if isinstance(value, Ints | Bools) else type(value).__name__


def shown_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "tensor" if "shape" in value else "scalar"
    return type(value).__name__


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.operator.api)
def test_every_operator_shows_its_arguments(table: Table, tmp_path: Path) -> None:
    """By name, in the order of its document, each with its type."""
    operator = table.operator
    with aclnn_torch.product("host"), aclnn_torch.trace(tmp_path / "trace.json"):
        call(operator, {}, "host")
    events = [event for event in read(tmp_path / "trace.json") if event["name"].startswith(operator.api)]
    assert Counter(event["cat"] for event in events) == {"stage 1": 1, "stage 2": 1, "run": 1}
    shown = in_category(events, "stage 1")[0]["args"]["arguments"]
    expected = {name.removesuffix("Optional"): kind_of(value) for name, value in operator.arguments.items()}
    assert list(shown) == list(expected)
    for name, value in shown.items():
        kinds = ("int", "float") if expected[name] == "float" else (expected[name],)  # JSON has one kind of number
        assert value is None or shown_kind(value) in kinds, name


def test_a_refused_call_shows_what_was_given_and_why(tmp_path: Path) -> None:
    x = torch.ones(2, 3, dtype=torch.bfloat16)
    with (
        aclnn_torch.product("Ascend910"),
        aclnn_torch.trace(tmp_path / "trace.json"),
        pytest.raises(aclnn_torch.AclnnError) as caught,
    ):
        torch.ops.aclnn.elu_backward(x, 1.5, 1.0, 1.0, False, x)
    (event,) = read(tmp_path / "trace.json")  # no second stage
    assert event["args"]["status"] == 161002
    assert event["args"]["product"] == "Ascend910"
    assert event["args"]["error"] in str(caught.value)
    assert "BFLOAT16" in event["args"]["error"]
    assert event["args"]["arguments"]["gradOutput"]["shape"] == [2, 3]
    assert event["args"]["arguments"]["isResult"] is False


def test_an_error_of_the_computation_is_shown(tmp_path: Path) -> None:
    with aclnn_torch.trace(tmp_path / "trace.json"), pytest.raises(aclnn_torch.AclnnError):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 7]))
    (run,) = in_category(read(tmp_path / "trace.json"), "run")
    assert run["args"]["status"] == 507015
    assert "7" in run["args"]["error"]


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    threads, calls = 8, 50
    tids = []

    def work() -> None:
        tids.append(threading.get_native_id())
        for _ in range(calls):
            F.selu(torch.ones(3))

    with aclnn_torch.trace(tmp_path / "trace.json"):
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    events = read(tmp_path / "trace.json")
    for category in ("stage 1", "stage 2", "run"):
        counts = Counter(event["tid"] for event in in_category(events, category))
        assert counts == {tid: calls for tid in tids}


FORKING = """
import os, sys, torch, aclnn_torch
def step():
    torch.ops.aclnn.selu(torch.ones(2))
    if not (child := os.fork()):
        torch.ops.aclnn.elu(torch.ones(2))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
if len(sys.argv) > 1:
    with aclnn_torch.trace(sys.argv[1]):
        step()
else:
    step()
os.kill(os.getpid(), 9)  # nothing is written at the end
"""


def run_python(code: str, *arguments: str | Path, folder: Path, **environment: str) -> None:
    """A separate process with this tree's package, which may end in any way."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, env=variables, timeout=LONGEST)


@pytest.mark.test_all
def test_forked_processes(tmp_path: Path) -> None:
    """The environment's trace includes them, that of a with statement does not; both end with the process."""
    run_python(FORKING, folder=tmp_path, ACLNN_TORCH_TRACE="all.json")
    events = in_category(read(tmp_path / "all.json"), "stage 2")
    assert [event["name"] for event in events] == ["aclnnSelu", "aclnnElu"]
    assert len({event["pid"] for event in events}) == 2
    run_python(FORKING, "own.json", folder=tmp_path)
    events = in_category(read(tmp_path / "own.json"), "stage 2")
    assert [event["name"] for event in events] == ["aclnnSelu"]


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("value", "file"), [("1", "aclnn_torch_trace.json"), ("other.json", "other.json"), ("0", None), ("", None)]
)
def test_the_variable_names_the_file(value: str, file: str | None, tmp_path: Path) -> None:
    """An existing file is appended to, as by the ranks of a distributed program."""
    code = "import torch, aclnn_torch; torch.ops.aclnn.selu(torch.ones(2))"
    for _ in range(2 if file else 1):
        run_python(code, folder=tmp_path, ACLNN_TORCH_TRACE=value)
    assert [path.name for path in tmp_path.iterdir()] == ([file] if file else [])
    if file:
        assert len({event["pid"] for event in read(tmp_path / file)}) == 2


@pytest.mark.test_all
def test_cpp_programs_are_traced(tmp_path: Path) -> None:
    """The same for C++; on a created stream another thread computes."""
    command = [sys.executable, "-m", "aclnn_torch", "check", ROOT / "examples" / "cpp" / "rms_norm_grad.cpp"]
    environment = os.environ | {"ACLNN_TORCH_TRACE": str(tmp_path / "trace.json")}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    events = read(tmp_path / "trace.json")
    assert Counter((event["cat"], event["name"]) for event in events) == {
        ("stage 1", "aclnnRmsNormGradGetWorkspaceSize"): 1,
        ("stage 2", "aclnnRmsNormGrad"): 1,
        ("run", "aclnnRmsNormGrad"): 1,
    }
    assert in_category(events, "run")[0]["tid"] != in_category(events, "stage 2")[0]["tid"]


def test_numbers_are_told_exactly(tmp_path: Path) -> None:
    """Integers beyond INT64 and DOUBLE, and both parts of a complex number."""
    values = {"INT64": 2**53 + 1, "UINT64": 2**64 - 1, "COMPLEX64": 2 - 3j}
    scalars = [cabi.create_scalar(value, Dtype[name]) for name, value in values.items()]
    with aclnn_torch.trace(tmp_path / "trace.json"):
        cabi.host().aclnnEluGetWorkspaceSize(None, *scalars, None, None, None)
    for scalar in scalars:
        cabi.host().aclDestroyScalar(scalar)
    (event,) = in_category(read(tmp_path / "trace.json"), "stage 1")
    given = list(event["args"]["arguments"].values())[1:4]
    assert given == [
        {"dtype": "INT64", "value": 2**53 + 1},
        {"dtype": "UINT64", "value": 2**64 - 1},
        {"dtype": "COMPLEX64", "value": [2, -3]},
    ]

    code = "import sys; from tests.aten_ops.sweep import run_calls; run_calls(sys.argv[1:])"
    split = f"aclnnSplitTensor self=FLOAT[2] splitSections={2**64 - 1} dim=0 out={{FLOAT[2]}}"
    run_python(code, split, folder=tmp_path, ACLNN_TORCH_TRACE=str(tmp_path / "row.json"))
    (event,) = in_category(read(tmp_path / "row.json"), "stage 1")
    assert event["args"]["arguments"]["splitSections"] == 2**64 - 1


def stages(path: Path) -> list[str]:
    return [event["name"] for event in in_category(read(path), "stage 2")]


def test_traces_within_one_another(tmp_path: Path) -> None:
    """Each contains the calls made while it is active, whichever ends first."""
    first, second, third = (tmp_path / f"{name}.json" for name in ("first", "second", "third"))
    x = torch.ones(2)
    with aclnn_torch.trace(first):
        F.elu(x)
        with aclnn_torch.trace(second):
            F.selu(x)
            with aclnn_torch.trace(third):
                F.layer_norm(x, (2,))
        F.gelu(x)
        with aclnn_torch.trace(second):
            F.elu(x)
    F.elu(x)
    assert stages(first) == ["aclnnElu", "aclnnSelu", "aclnnLayerNorm", "aclnnGeluV2", "aclnnElu"]
    assert stages(second) == ["aclnnElu"]  # the file was replaced
    assert stages(third) == ["aclnnLayerNorm"]
    for path in (first, second, third):
        assert json.loads(path.read_text())  # including its end


def test_traces_that_overlap(tmp_path: Path) -> None:
    one, other = aclnn_torch.trace(tmp_path / "one.json"), aclnn_torch.trace(tmp_path / "other.json")
    x = torch.ones(2)
    with one:
        F.elu(x)
        other.__enter__()
        F.selu(x)
    F.layer_norm(x, (2,))
    other.__exit__(None, None, None)
    F.elu(x)
    assert stages(tmp_path / "one.json") == ["aclnnElu", "aclnnSelu"]
    assert stages(tmp_path / "other.json") == ["aclnnSelu", "aclnnLayerNorm"]


@pytest.mark.test_all
def test_a_trace_beside_the_environments(tmp_path: Path) -> None:
    code = """
import torch, aclnn_torch
with aclnn_torch.trace("own.json"):
    torch.ops.aclnn.elu(torch.ones(2))
torch.ops.aclnn.selu(torch.ones(2))
"""
    run_python(code, folder=tmp_path, ACLNN_TORCH_TRACE="all.json")
    assert stages(tmp_path / "own.json") == ["aclnnElu"]
    assert stages(tmp_path / "all.json") == ["aclnnElu", "aclnnSelu"]


def test_one_file_for_two_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with aclnn_torch.trace(path):
        F.elu(torch.ones(2))
        with pytest.raises(ValueError, match=r"trace\.json is being written by another trace"):
            aclnn_torch.trace(path).__enter__()
        with pytest.raises(aclnn_torch.AclnnError, match=r"another trace is already writing .*trace\.json"):
            aclnn_torch._C.trace(str(path))
    assert stages(path) == ["aclnnElu"]


@pytest.mark.filterwarnings("error")
def test_many_traces(tmp_path: Path) -> None:
    """More than the maximum: the error does not affect active traces."""
    with contextlib.ExitStack() as stack:
        for i in range(15):
            stack.enter_context(aclnn_torch.trace(tmp_path / f"{i}.json"))
        with pytest.raises(aclnn_torch.AclnnError, match="15 traces are already active") as caught:
            stack.enter_context(aclnn_torch.trace(tmp_path / "15.json"))
        assert caught.value.status == 300000
        assert not (tmp_path / "15.json").exists()
        F.elu(torch.ones(2))
    assert all(stages(tmp_path / f"{i}.json") == ["aclnnElu"] for i in range(15))
    with pytest.raises(aclnn_torch.AclnnError, match="no trace is writing") as caught:
        aclnn_torch._C.end_trace(str(tmp_path / "0.json"))
    assert caught.value.status == 100000


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "no" / "trace.json"
    with pytest.raises(FileNotFoundError) as missing, aclnn_torch.trace(path):
        pass
    assert missing.value.filename == str(path)
    with pytest.raises(IsADirectoryError), aclnn_torch.trace(tmp_path):
        pass
    with pytest.raises(aclnn_torch.AclnnError, match="cannot be opened for writing: No such file") as caught:
        aclnn_torch._C.trace(str(path))
    assert caught.value.status == 100000
    with aclnn_torch.trace(tmp_path / "trace.json"):  # nothing is left of the failed ones
        F.elu(torch.ones(2))
    assert stages(tmp_path / "trace.json") == ["aclnnElu"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """The link's target, and files with another name, are unchanged; the trace is accessible to its user only."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "symbolic").symlink_to(victim)
    (tmp_path / "hard").hardlink_to(victim)
    for name in ("symbolic", "hard"):
        with aclnn_torch.trace(tmp_path / name):
            F.elu(torch.ones(2))
        assert stages(tmp_path / name) == ["aclnnElu"]
        assert (tmp_path / name).lstat().st_mode & 0o777 == 0o600
    assert victim.read_text() == "precious"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device or address"), aclnn_torch.trace(tmp_path / "pipe"):
        pass


def test_a_full_disk_at_the_beginning() -> None:
    with pytest.raises(OSError, match="No space left on device") as caught, aclnn_torch.trace("/dev/full"):
        pass
    assert caught.value.filename == "/dev/full"


FULL_DISK = """
import resource, sys, warnings, torch, aclnn_torch
def work():
    for _ in range(50):
        torch.ops.aclnn.elu(torch.ones(2))
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))  # a file cannot grow beyond it
try:
    with aclnn_torch.trace("trace.json"):
        work()
except OSError as error:
    assert "trace.json lacks calls" in str(error) and "File too large" in str(error), error
else:
    raise AssertionError("no error")
with warnings.catch_warnings(record=True) as caught:
    try:
        with aclnn_torch.trace("trace.json"):
            work()
            1 / 0
    except ZeroDivisionError:
        pass
(warning,) = caught
assert "trace.json lacks the calls from here on" in str(warning.message), warning
assert warning.filename == "<string>", warning
with aclnn_torch.trace("short.json"):
    torch.ops.aclnn.elu(torch.ones(2))
print("done")
"""


@pytest.mark.test_all
def test_a_disk_that_becomes_full(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FULL_DISK]
    assert subprocess.check_output(command, cwd=tmp_path, env=environment, text=True, timeout=LONGEST) == "done\n"
    assert stages(tmp_path / "short.json") == ["aclnnElu"]


# Values for ACLNN_TORCH_TRACE.
EACH_UNWRITABLE = pytest.mark.parametrize(
    ("file", "reason"), [("no/trace.json", "No such file or directory"), ("/dev/full", "No space left on device")]
)


@EACH_UNWRITABLE
def test_python_warns_of_an_unwritable_trace(file: str, reason: str, tmp_path: Path) -> None:
    """At the line of the import, or at the end; calls work."""
    code = "import torch\nimport aclnn_torch\nprint(torch.ops.aclnn.selu(torch.zeros(2)).tolist())"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "ACLNN_TORCH_TRACE": file}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert ran.stdout == "[0.0, 0.0]\n"
    (warning,) = [line for line in ran.stderr.splitlines() if "Warning" in line]
    assert "UserWarning: ACLNN_TORCH_TRACE" in warning
    assert file in warning
    assert reason in warning
    assert warning.startswith("<string>:2:") or file == "/dev/full"


@EACH_UNWRITABLE
def test_the_c_interface_tells_of_an_unwritable_trace(file: str, reason: str, tmp_path: Path) -> None:
    """Once, after the message of the call that found it."""
    code = f"""
import ctypes
library = ctypes.CDLL({str(aclnn_torch.host.PREFIX / "lib64" / "libopapi.so")!r}, ctypes.RTLD_GLOBAL)
for name in ("aclGetRecentErrMsg", "aclHostTraceProblem"):
    getattr(library, name).restype = ctypes.c_char_p
for _ in range(2):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    status = library.aclnnEluGetWorkspaceSize(*[None] * 5, ctypes.byref(size), ctypes.byref(executor))
    print(status, library.aclGetRecentErrMsg())
print(library.aclHostTraceProblem())
"""
    environment = os.environ | {"ACLNN_TORCH_TRACE": file}
    ran = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True)
    first, second, problem = ran.splitlines()
    assert first.startswith("161001 b'aclnnElu")  # the call's own message is the newest
    assert "ACLNN_TORCH_TRACE" in first
    assert reason in first
    assert "ACLNN_TORCH_TRACE" not in second
    assert "ACLNN_TORCH_TRACE" in problem
    assert reason in problem


@pytest.mark.test_all
@EACH_UNWRITABLE
def test_doctor_tells_of_an_unwritable_trace(file: str, reason: str, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "ACLNN_TORCH_TRACE": file}
    command = [sys.executable, "-m", "aclnn_torch", "doctor", "--json"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LONGEST)
    (finding,) = [finding for finding in json.loads(ran.stdout) if finding["name"] == "trace"]
    assert ran.returncode == 1
    assert not finding["works"]
    assert reason in finding["advice"]
