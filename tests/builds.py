"""Builds the tests need in addition to the package: the C++ tests, and the variants with sanitizers."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import cmake
import ninja

ROOT = Path(__file__).resolve().parent.parent
CMAKE = Path(cmake.CMAKE_BIN_DIR) / "cmake"
# The compiler, with the caller's prefix and options, as in CXX="ccache g++".
CXX = shlex.split(os.environ.get("CXX", "g++"))


def configure(preset: str, *options: str) -> Path:
    """The folder of a variant of CMakePresets.json, configured with this Python."""
    defines = [f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}", f"-DACLNN_PYTHON={sys.executable}", *options]
    subprocess.run([CMAKE, "--preset", preset, *defines], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build" / preset


def build(preset: str, *targets: str, options: tuple[str, ...] = ()) -> Path:
    """Builds targets of a variant, or everything installed; returns its folder, with the programs in `tests`."""
    folder = configure(preset, *options)
    command = [CMAKE, "--build", folder, *(f"--target={target}" for target in targets), "--", "--quiet"]
    subprocess.run(command, check=True)
    return folder


def copy_sources(folder: Path) -> None:
    """Copies the Python package into a variant's folder of binaries, and removes older modules."""
    for module in (folder / "aclnn_torch").rglob("*.py"):
        module.unlink()
    binaries = shutil.ignore_patterns("lib", "cann", "*.so", "__pycache__")
    shutil.copytree(ROOT / "aclnn_torch", folder / "aclnn_torch", ignore=binaries, dirs_exist_ok=True)


def cpp_tests() -> Path:
    """The folder of the C++ tests' programs; builds them if it is empty."""
    folder = ROOT / "build" / "release" / "tests"
    names = [path.stem for tests in ("cpp", "reliability") for path in (ROOT / "tests" / tests).glob("test_*.cpp")]
    if not all((folder / name).exists() for name in [*names, "libfaults.so", "fuzz_replay"]):
        build("release", "cpp_tests")
    return folder
