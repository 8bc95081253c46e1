"""The plugin of pytest, `-p aclnn_torch.pytest`: a made-up project, whose tests choose no NPUs themselves."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import aclnn_torch
from aclnn_torch import host
from aclnn_torch import pytest as plugin

from .test_npu import needs_torch_npu, run

# Adding tensors of two NPUs fails later, on the first one's stream (docs/npu.md, "Mistakes").
PROJECT = {
    "pyproject.toml": """
[tool.pytest.ini_options]
addopts = "-p aclnn_torch.pytest --npu-devices 4 --npu-memory 64M --npu-strict"
""",
    "conftest.py": """
import torch
import pytest

assert not torch.npu.is_initialized()

@pytest.fixture
def one():
    return torch.ones(3, device="npu:0")

@pytest.fixture
def mistaken_at_the_end():
    yield
    torch.ones(3, device="npu:2") + torch.ones(3, device="npu:3")
""",
    "test_project.py": """
import os
import torch

def test_npus(one):
    assert one.sum().item() == 3
    assert torch.npu.device_count() == 4
    assert torch.npu.get_device_name() == os.environ.get("EXPECTED", "Ascend910B2")
    assert torch.npu.mem_get_info()[1] == 64 << 20

def test_mistake(one):
    torch.ones(3, device="npu:1") + one

def test_on_another(one):
    assert one.sum().item() == 3

def test_mistake_before_a_failure(one):
    one + torch.ones(3, device="npu:2")
    raise ValueError

def test_without_npus():
    pass

def test_end(mistaken_at_the_end):
    pass

def test_after():
    assert torch.ones(3, device="npu:3").sum().item() == 3
""",
}
RUN = ("-m", "aclnn_torch", "run", "--product", "Ascend910_93", "--devices", "4", "--memory", "64M")
RESULTS = [
    *("PASSED npus", "FAILED mistake", "PASSED on_another", "FAILED mistake_before_a_failure", "PASSED without_npus"),
    *("PASSED end", "ERROR end", "PASSED after"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def session(
    project: Path, *arguments: str, start: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """A session of pytest in the environment with torch_npu, in a shell without a CANN."""
    command = [*start, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", project / "pyproject.toml", project]
    return run([*command, *arguments], **environment)


def results(printed: str) -> list[str]:
    """Those of the tests, in their order."""
    return [f"{result} {name}" for name, result in re.findall(r"::test_(\w+) (PASSED|FAILED|ERROR)\b", printed)]


def header(printed: str) -> str:
    (line,) = re.findall(r"^NPUs:.*$", printed, re.MULTILINE)
    return line


@needs_torch_npu
def test_a_project_on_simulated_npus(project: Path) -> None:
    """An error that no call has raised fails the test that made it, and no other."""
    done = session(project)
    assert (done.returncode, results(done.stdout)) == (1, RESULTS), done.stdout + done.stderr
    version = aclnn_torch.__version__
    assert header(done.stdout) == f"NPUs: 4 simulated Ascend910B, 64M of memory each, strict (aclnn_torch {version})"
    for device, other in ((1, 0), (0, 2), (2, 3)):
        text = rf"^npu:{device} failed during this test: .*\n(.*\n)*?aclnnAdd: .* is in the memory of device {other}, "
        assert len(re.findall(text, done.stdout, re.MULTILINE)) == 1  # where CI is set, pytest's summary has it, too


@pytest.mark.test_all
@needs_torch_npu
def test_the_command_line_comes_before_the_project(project: Path) -> None:
    options = ("--npu-product", "Ascend950", "--npu-cann", "9.1", "-k", "npus")
    done = session(project, *options, EXPECTED="Ascend950PR_9589")
    assert done.returncode == 0, done.stdout + done.stderr
    assert header(done.stdout).startswith(
        "NPUs: 4 simulated Ascend950, 64M of memory each, checks of CANN 9.1, strict ("
    )


@pytest.mark.test_all
@needs_torch_npu
def test_processes_of_xdist_have_the_same_npus(project: Path) -> None:
    done = session(project, "--numprocesses=1")
    assert re.search(r"^=+ 2 failed, 5 passed, 1 error in ", done.stdout, re.MULTILINE), done.stdout + done.stderr


@pytest.mark.test_all
@needs_torch_npu
def test_the_npus_of_run_are_kept(project: Path) -> None:
    done = session(project, "--npu-devices", "1", "-k", "npus", start=RUN, EXPECTED="Ascend910_9391")
    assert done.returncode == 0, done.stdout + done.stderr
    assert header(done.stdout) == (
        f"NPUs: 4 simulated Ascend910_93, 64M of memory each (aclnn_torch {aclnn_torch.__version__}), "
        "chosen by the environment; options --npu-* have no effect"
    )


def refusal(**options: object) -> str:
    """What a session with these options ends with."""
    names = ("product", "devices", "memory", "strict", "cann")
    given = argparse.Namespace(**{f"npu_{name}": options.get(name) for name in names})
    with pytest.raises(pytest.UsageError) as caught:
        plugin.pytest_load_initial_conftests(SimpleNamespace(known_args_namespace=given))
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"product": "Ascend999"}, "aclnn_torch: aclHostSetProduct: Ascend999 does not name a product; "),
        ({"cann": "9.2"}, "9.2 does not name a release of CANN; the releases are 8.5, 9.0, 9.1 and later"),
        ({"devices": 65}, "aclnn_torch: devices is 65, expected a number from 1 to 64"),
        ({"memory": "2GB"}, "aclnn_torch: memory is 2GB, expected a number of bytes, with or without K, M, G or T "),
    ],
)
def test_bad_npus_are_refused(options: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "torch_npu_problem", lambda: None)
    assert text in refusal(**options)


def test_a_session_needs_torch_npu() -> None:
    """The tests' own environment has none."""
    assert refusal().startswith("aclnn_torch: torch_npu is not installed here; `pip install ")


@pytest.fixture
def machine_with_an_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "davinci_manager").touch()
    monkeypatch.setenv("ASCEND_HOME_PATH", "/opt/cann")
    monkeypatch.setattr(plugin, "NODES", str(tmp_path / Path(plugin.NODES).name))
    assert plugin.chosen_by() is None
    (tmp_path / "davinci0").touch()
    monkeypatch.setattr(plugin, "_chosen_by", plugin.chosen_by())


@pytest.mark.usefixtures("machine_with_an_npu")
def test_the_npus_of_a_machine_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver makes a device /dev/davinciN for each."""
    monkeypatch.setitem(sys.modules, "torch_npu", sys)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    before = dict(os.environ)
    given = argparse.Namespace(npu_product="Ascend999")
    plugin.pytest_load_initial_conftests(SimpleNamespace(known_args_namespace=given))
    assert os.environ == before
    assert plugin.pytest_report_header() == (
        "NPUs: chosen by this machine, with the CANN in /opt/cann; options --npu-* have no effect"
    )


@pytest.mark.usefixtures("machine_with_an_npu")
def test_a_machine_whose_cann_is_not_set_up() -> None:
    text = refusal()
    assert text.startswith(
        "aclnn_torch: torch_npu cannot be loaded: No module named 'torch_npu'; ASCEND_HOME_PATH is /opt/"
    )
    assert "expected an installed CANN whose set_env.sh was sourced" in text


@pytest.mark.parametrize(("is_initialized", "expected"), [(True, [1]), (False, [])])
def test_npus_without_memory_are_left_alone(
    is_initialized: bool, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that several users share, a wait takes memory of an NPU that the tests do not use."""
    waited: list[int] = []
    npu = SimpleNamespace(
        is_initialized=lambda: is_initialized,
        device_count=lambda: 3,
        memory_reserved=[0, 1 << 21, 0].__getitem__,
        synchronize=waited.append,
    )
    monkeypatch.setattr(torch, "npu", npu, raising=False)
    assert plugin._failures() == ""
    assert waited == expected
