"""CMakeLists.txt: its commands for paths with characters that are special in a shell."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import ninja
import pytest
import torch

from tests import builds

SERIES = ".".join(torch.__version__.split(".")[:2])


@pytest.fixture
def hut(tmp_path: Path) -> Path:
    """A folder whose path has spaces and a quote, with a torch_npu that matches torch."""
    folder = tmp_path / "it's a  hut"
    (folder / "torch_npu").mkdir(parents=True)
    (folder / "torch_npu" / "version.py").write_text(f"__version__ = '{SERIES}.0'\n")
    return folder


def configure(directory: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """CMake's output for it."""
    tools = [f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}", f"-DACLNN_PYTHON={sys.executable}"]
    command = [builds.CMAKE, "-S", builds.ROOT, "-B", directory, "-G", "Ninja", *tools, *options]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)


def commands_of(directory: Path, *targets: str) -> list[list[str]]:
    """The commands that ninja would run."""
    command = [Path(ninja.BIN_DIR) / "ninja", "-C", directory, "-t", "commands", *targets]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [shlex.split(line) for line in lines if not line.startswith("ninja: ")]


@pytest.mark.parametrize(
    ("sanitizer", "relocatable"),
    [
        pytest.param(
            sanitizer, relocatable, marks=() if (sanitizer, relocatable) == ("", "ON") else pytest.mark.test_all
        )
        for sanitizer in ("", "address", "thread")
        for relocatable in ("OFF", "ON")
    ],
)
def test_commands_keep_paths_whole(sanitizer: str, relocatable: str, hut: Path) -> None:
    """Every word of every command that contains the path contains all of it."""
    options = {
        "ACLNN_RELOCATABLE": relocatable,
        "ACLNN_SANITIZER": sanitizer,
        "ACLNN_TORCH_NPU": hut / "torch_npu",
    }
    defines = [f"-D{name}={value}" for name, value in options.items()]
    directory = hut / "build"
    result = configure(directory, *defines)
    assert result.returncode == 0, result.stderr
    commands = commands_of(directory, "all", "cpp_tests")
    assert len(commands) > 50
    places = 0
    start, end = str(hut).split("  ")
    for word in (word for words in commands for word in words):
        assert word.count(start) == word.count(str(hut)), word
        assert word.count(end) == word.count(str(hut)), word
        places += word.count(str(hut))
    assert places > 50
    words = {word.replace("\\$", "$") for command in commands for word in command}  # after the shell's unquoting
    assert f"-I{builds.ROOT / 'csrc'}" in words
    assert ("-Wl,-rpath,$ORIGIN:$ORIGIN/../torch/lib" in words) == (relocatable == "ON")
    assert f'-DACLNN_TORCH_NPU_VERSION="{SERIES}.0"' in words
    assert len(json.loads((directory / "compile_commands.json").read_text())) > 50


CCACHE = [
    *(str(builds.CMAKE), "-E", "env", f"CCACHE_BASEDIR={builds.ROOT}", "CCACHE_NOHASHDIR=1"),
    *("CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime", "{hut}/ccache"),
]


@pytest.mark.parametrize(
    ("script", "options", "launcher"),
    [
        ('exec "$@"', [], CCACHE),
        pytest.param('exec "$@"', ["-DACLNN_CCACHE=OFF"], [], marks=pytest.mark.test_all),
        pytest.param(
            'exec "$@"', ["-DCMAKE_CXX_COMPILER_LAUNCHER=/usr/bin/env"], ["/usr/bin/env"], marks=pytest.mark.test_all
        ),
        ("exit 1", [], []),
    ],
    ids=["there", "not wanted", "another launcher", "broken, as where HOME cannot be written"],
)
def test_ccache_is_used_where_it_is(script: str, options: list[str], launcher: list[str], hut: Path) -> None:
    """With the options that let trees share objects, and precompiled headers, too."""
    (hut / "ccache").write_text(f"#!/bin/sh\n{script}\n")
    (hut / "ccache").chmod(0o755)
    path = os.pathsep.join([str(hut), os.environ["PATH"]])
    result = configure(hut / "build", *options, PATH=path, CXX="g++", CMAKE_CXX_COMPILER_LAUNCHER="")
    assert result.returncode == 0, result.stderr
    commands = [words for words in commands_of(hut / "build", "all") if "-c" in words]
    assert len(commands) > 50
    expected = [word.format(hut=hut) for word in launcher]
    for words in commands:
        assert words[: len(expected)] == expected
        assert words[len(expected)].endswith("/g++"), words
        assert ("-fpch-preprocess" in words) == (launcher == CCACHE)


def test_a_torch_npu_of_another_series(hut: Path) -> None:
    (hut / "torch_npu" / "version.py").write_text("__version__ = '2.6.1'\n")
    result = configure(hut / "build", f"-DACLNN_TORCH_NPU={hut / 'torch_npu'}")
    assert result.returncode != 0
    assert f"is 2.6.1, expected {SERIES}, which goes with torch here" in " ".join(result.stderr.split())


@pytest.fixture
def other_torch(tmp_path: Path) -> Path:
    """A torch with a given version; everything else is the installed one."""
    folder = tmp_path / "torch"
    folder.mkdir()
    for name in ("include", "lib"):
        (folder / name).symlink_to(Path(torch.__file__).parent / name)
    return folder


@pytest.mark.parametrize("version", ["2.6.1", "1.13.1+cpu"])
def test_a_torch_too_old_stops_the_build(other_torch: Path, version: str) -> None:
    (other_torch / "version.py").write_text(f"__version__ = '{version}'\n")
    result = configure(other_torch / "build", f"-DACLNN_TORCH_DIR={other_torch}")
    assert result.returncode != 0
    assert f"is {version}, expected torch>=2.7,<2.16; pip install" in " ".join(result.stderr.split())


PRECISION = "torch.backends.mkldnn.conv.fp32_precision (since 2.9)"
LOSS = "torch.nn.functional.linear_cross_entropy (since 2.11)"
TAGS = "tags of operators in place (since 2.13)"


@pytest.mark.parametrize(
    "version, lacks",
    [
        ("2.7.1+cu126", [PRECISION, LOSS, TAGS]),
        pytest.param("2.10.0", [LOSS, TAGS], marks=pytest.mark.test_all),
        pytest.param("2.12.1", [TAGS], marks=pytest.mark.test_all),
        pytest.param("2.13.0", [], marks=pytest.mark.test_all),
    ],
)
def test_what_an_older_torch_lacks_is_said_once(other_torch: Path, version: str, lacks: list[str]) -> None:
    (other_torch / "version.py").write_text(f"__version__ = '{version}'\n")
    text = f"torch {version} lacks {', '.join(lacks)}; docs/compatibility.md says what aclnn_torch does without"
    for first in (True, False):
        result = configure(other_torch / "build", f"-DACLNN_TORCH_DIR={other_torch}")
        assert result.returncode == 0, result.stderr
        said = " ".join(result.stderr.split())
        assert (text in said) == (first and bool(lacks)), said
        assert (" lacks " in said) == (first and bool(lacks)), said


@pytest.mark.parametrize(
    "version, warns",
    [
        pytest.param("2.13.1", False, marks=pytest.mark.test_all),
        ("2.15.9+cu132", False),
        ("2.16.0", True),
        pytest.param("3.0", True, marks=pytest.mark.test_all),
    ],
)
def test_a_torch_that_nobody_has_tried_is_warned_of(other_torch: Path, version: str, warns: bool) -> None:
    (other_torch / "version.py").write_text(f"__version__ = '{version}'\n")
    result = configure(other_torch / "build", f"-DACLNN_TORCH_DIR={other_torch}")
    assert result.returncode == 0, result.stderr
    text = f"is {version}, which aclnn_torch was never built with"
    assert (text in " ".join(result.stderr.split())) == warns
    built_for = other_torch / "build" / "package" / "aclnn_torch" / "lib" / "torch_version.txt"
    assert built_for.read_text() == f"{version}\n"
