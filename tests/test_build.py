"""csrc/build.py: the ninja file it writes, for paths that a shell would take apart."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import ninja
import pytest

ROOT = Path(__file__).resolve().parents[1]


def build_module(root: Path) -> Any:
    """csrc/build.py of the tree at `root`."""
    spec = importlib.util.spec_from_file_location("build_of_a_test", root / "csrc" / "build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.ROOT, module.CSRC, module.HOST = root, root / "csrc", root / "csrc" / "host_cann"
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The tree, under a path with spaces and a quote."""
    folder = tmp_path / "it's a  hut"
    folder.mkdir()
    (folder / "project").symlink_to(ROOT)
    return folder / "project"


@pytest.mark.parametrize("relocatable", [False, True])
@pytest.mark.parametrize("sanitizer", [None, "address", "fuzz"])
def test_commands_keep_paths_whole(
    sanitizer: str | None, relocatable: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every word of every command that names the place has all of it."""
    module = build_module(project)
    torch_npu = project.parent / "torch_npu"
    torch_npu.mkdir()
    (torch_npu / "version.py").write_text("__version__ = '2.13.0'\n")
    monkeypatch.setattr(module, "libfuzzer", lambda: project.parent / "libfuzzer.a")
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: None)
    directory = project.parent / "build"
    options: dict[str, Any] = {"relocatable": relocatable, "tests": True, "torch_npu": torch_npu}
    module.Build(project.parent / "package" / "aclnn_torch", directory, sanitizer, **options).run()
    monkeypatch.undo()

    command = [Path(ninja.BIN_DIR) / "ninja", "-C", directory, "-t", "commands"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    commands = [shlex.split(line) for line in lines if not line.startswith("ninja: ")]
    assert len(commands) > 50
    places = 0
    start, end = str(project.parent).split("  ")
    for word in (word for words in commands for word in words):
        assert word.count(start) == word.count(str(project.parent)), word
        assert word.count(end) == word.count(str(project.parent)), word
        places += word.count(str(project.parent))
    assert places > 4 * len(commands)
    words = {word for command in commands for word in command}
    assert f"-I{project / 'csrc'}" in words
    assert "-Wl,-rpath,$ORIGIN" in words
    assert ("-Wl,-rpath,$ORIGIN/../torch/lib" in words) == relocatable
    assert '-DACLNN_TORCH_NPU_VERSION="2.13.0"' in words
