"""Builds the package by running CMake; CMakeLists.txt defines the targets.

In the source tree this builds the core, for CPU tensors. With ``--cann``, or if it was built before, it also builds the
prefix, laid out as an installed CANN, for C++ programs and torch_npu. A wheel has both.

To build for another interpreter or machine, set these variables, as tests/wheels.py does: ACLNN_TORCH_DIR, the folder
of the torch to build against, and ACLNN_PYTHON_INCLUDE, the folders of Python's headers; CMAKE_TOOLCHAIN_FILE, which
CMake reads; and Python's own _PYTHON_HOST_PLATFORM.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import ClassVar

import cmake
import ninja
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import ExecError

ROOT = Path(__file__).resolve().parent
ELSEWHERE = ("ACLNN_TORCH_DIR", "ACLNN_PYTHON_INCLUDE")


def run(purpose: str, *command: str | Path, quiet: bool = True) -> None:
    """Runs a command that reports errors on stderr; if it fails, ends the build with one sentence."""
    if subprocess.run(command, stdout=subprocess.DEVNULL if quiet else None).returncode != 0:
        raise ExecError(
            f"aclnn_torch: {purpose} failed; what is missing or wrong is said above. Run the same again then"
        )


class CMakeBuild(build_ext):
    """Runs CMake, which rebuilds only what changed."""

    user_options: ClassVar = [*build_ext.user_options, ("cann", None, "build what looks like an installed CANN, too")]
    boolean_options: ClassVar = [*build_ext.boolean_options, "cann"]

    def initialize_options(self) -> None:
        """Sets the options' defaults."""
        super().initialize_options()
        self.cann = False

    def run(self) -> None:
        """Installs into the source tree for an editable install, otherwise into the wheel's tree."""
        in_place = self.inplace or self.editable_mode
        package = ROOT / "aclnn_torch" if in_place else Path(self.build_lib).resolve() / "aclnn_torch"
        elsewhere = {name: os.environ[name] for name in ELSEWHERE if name in os.environ}
        directory = ROOT / "build" / (f"wheel-{sysconfig.get_platform()}" if elsewhere else "release")
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of this file in one folder take turns
            self.build(package, directory, elsewhere)

    def build(self, package: Path, directory: Path, elsewhere: dict[str, str]) -> None:
        """Configures and builds in a directory, and installs into the package."""
        in_place = self.inplace or self.editable_mode
        program = Path(cmake.CMAKE_BIN_DIR) / "cmake"
        options = {
            "CMAKE_MAKE_PROGRAM": Path(ninja.BIN_DIR) / "ninja",
            "CMAKE_INSTALL_PREFIX": package,
            "ACLNN_PYTHON": sys.executable,
            "ACLNN_RELOCATABLE": "OFF" if in_place else "ON",
        }
        if not in_place:
            options["ACLNN_TORCH_NPU"] = ""  # a wheel supports any torch_npu for its torch
        options |= elsewhere
        defines = [f"-D{name}={value}" for name, value in options.items()]
        cache = directory / "CMakeCache.txt"
        if cache.exists() and f"CMAKE_CACHEFILE_DIR:INTERNAL={directory}\n" not in cache.read_text():
            defines.append("--fresh")  # the tree was moved
        run("configuring", program, "-S", ROOT, "-B", directory, "-G", "Ninja", *defines)
        quiet = [] if sys.stdout.isatty() else ["--quiet"]  # on a terminal, ninja shows progress in one line
        components = {"core": "core"}
        libraries = package / "cann" / "lib64"
        if self.cann or not in_place or libraries.exists() or importlib.util.find_spec("torch_npu"):
            components["cann"] = "all"
        for component, target in components.items():
            if component == "cann" and in_place and not libraries.exists():
                print("Building the host CANN for C++ programs and torch_npu; the first time takes minutes", flush=True)
            run("compiling", program, "--build", directory, "--target", target, "--", *quiet, quiet=False)
            run("installing", program, "--install", directory, "--component", component)

    def get_outputs(self) -> list[str]:
        """Returns nothing for setuptools to copy: the files are already in place."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """As get_outputs."""
        return {}


def requirements() -> list[str]:
    """The requirement on torch: the series that the binary part is built for."""
    try:
        if folder := os.environ.get("ACLNN_TORCH_DIR"):
            version = (Path(folder) / "version.py").read_text().partition("__version__ = '")[2]
        else:
            version = importlib.metadata.version("torch")
    except (OSError, importlib.metadata.PackageNotFoundError):
        return ["torch"]  # CMake reports the missing torch
    return [f"torch=={'.'.join(version.split('.')[:2])}.*"]


setup(
    install_requires=requirements(),
    ext_modules=[Extension("aclnn_torch._C", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
