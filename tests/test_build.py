"""CMakeLists.txt: the commands it makes, for paths that a shell would take apart."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import ninja
import pytest

from tests import builds


@pytest.fixture
def hut(tmp_path: Path) -> Path:
    """A folder whose path has spaces and a quote, with a torch_npu in it."""
    folder = tmp_path / "it's a  hut"
    (folder / "torch_npu").mkdir(parents=True)
    (folder / "torch_npu" / "version.py").write_text("__version__ = '2.13.0'\n")
    return folder


@pytest.mark.parametrize("relocatable", ["OFF", "ON"])
@pytest.mark.parametrize("sanitizer", ["", "address", "thread"])
def test_commands_keep_paths_whole(sanitizer: str, relocatable: str, hut: Path) -> None:
    """Every word of every command that names the place has all of it."""
    options = {
        "CMAKE_MAKE_PROGRAM": Path(ninja.BIN_DIR) / "ninja",
        "ACLNN_PYTHON": sys.executable,
        "ACLNN_RELOCATABLE": relocatable,
        "ACLNN_SANITIZER": sanitizer,
        "ACLNN_TORCH_NPU": hut / "torch_npu",
    }
    defines = [f"-D{name}={value}" for name, value in options.items()]
    directory = hut / "build"
    command = [builds.CMAKE, "-S", builds.ROOT, "-B", directory, "-G", "Ninja", *defines]
    subprocess.run(command, check=True, capture_output=True)
    command = [Path(ninja.BIN_DIR) / "ninja", "-C", directory, "-t", "commands", "all", "cpp_tests"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    commands = [shlex.split(line) for line in lines if not line.startswith("ninja: ")]
    assert len(commands) > 50
    places = 0
    start, end = str(hut).split("  ")
    for word in (word for words in commands for word in words):
        assert word.count(start) == word.count(str(hut)), word
        assert word.count(end) == word.count(str(hut)), word
        places += word.count(str(hut))
    assert places > 50
    words = {word.replace("\\$", "$") for command in commands for word in command}  # as the shell has it
    assert f"-I{builds.ROOT / 'csrc'}" in words
    assert ("-Wl,-rpath,$ORIGIN:$ORIGIN/../torch/lib" in words) == (relocatable == "ON")
    assert '-DACLNN_TORCH_NPU_VERSION="2.13.0"' in words
    assert len(json.loads((directory / "compile_commands.json").read_text())) > 50


def test_a_torch_npu_of_another_series(hut: Path) -> None:
    (hut / "torch_npu" / "version.py").write_text("__version__ = '2.7.1'\n")
    make = f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}"
    options = [make, f"-DACLNN_PYTHON={sys.executable}", f"-DACLNN_TORCH_NPU={hut / 'torch_npu'}"]
    command = [builds.CMAKE, "-S", builds.ROOT, "-B", hut / "build", "-G", "Ninja", *options]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "is 2.7.1, expected 2.13, which goes with torch here" in " ".join(result.stderr.split())
