"""tools/install_torch.py, without a network: an available torch takes precedence."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent.parent / "tools" / "install_torch.py"
INSTALLED = version("torch")
WANTED = INSTALLED.partition("+")[0]


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an empty environment, without pip."""
    venv.create(tmp_path / "empty environment", with_pip=False)
    return tmp_path / "empty environment" / "bin" / "python"


def run(python: str | Path, wanted: str, like: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TORCH_INDEX")}
    return subprocess.run([python, PROGRAM, wanted, like], env=environment, capture_output=True, text=True)


def links(python: Path) -> list[Path]:
    """Links to packages that the environment shares."""
    return list(python.parent.parent.glob("lib/python*/site-packages/*.pth"))


@pytest.mark.test_all
def test_torch_of_the_environment_stays() -> None:
    """Regardless of the other interpreter's packages."""
    result = run(sys.executable, WANTED, "no such python")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"torch {INSTALLED}, ")


@pytest.mark.test_all
def test_torch_of_the_interpreter_is_shared(python: Path) -> None:
    """It is used in place, with its dependencies."""
    result = run(python, WANTED, sys.executable)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"torch {INSTALLED}, ")
    code = "import importlib.metadata as m; print(m.version('torch'), m.distribution('sympy').locate_file(''))"
    shared = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shared.split(maxsplit=1)[0] == INSTALLED
    assert Path(shared.split(maxsplit=1)[1].strip()) != python.parent.parent
    assert run(python, WANTED, "no such python").returncode == 0  # once shared, it belongs to the environment


@pytest.mark.test_all
def test_torch_beside_torch_npu_is_not_shared(python: Path, tmp_path: Path) -> None:
    """It would bring torch_npu, which this environment must not have."""
    (tmp_path / "npu" / "torch_npu").mkdir(parents=True)
    like = tmp_path / "like"
    like.write_text(f"#!/bin/sh\nPYTHONPATH='{tmp_path}/npu' exec '{sys.executable}' \"$@\"\n")
    like.chmod(0o755)
    assert run(python, WANTED, like).returncode == 1
    assert not links(python)


@pytest.mark.test_all
def test_another_version_is_not_taken(python: Path) -> None:
    """Nor is success reported if nothing could be installed; an empty environment has no pip."""
    result = run(python, "0.0.1", sys.executable)
    assert result.returncode == 1
    assert "no build for CPUs in reach" in result.stdout and "No module named pip" in result.stdout
    assert "torch 0.0.1 could not be installed" in result.stderr
    assert not links(python)
