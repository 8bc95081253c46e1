"""Brings torch into the environment whose Python runs this: ``python tools/install_torch.py VERSION PYTHON``.

torch's build for CUDA, which is what PyPI has for Linux, takes 5 GB; its build for CPUs less than 1 GB. So the first of
these is taken that there is, and what it is, and how large, is printed:

1. the torch that the environment has already,
2. the torch of PYTHON, another interpreter of the same version: it is used where it lies,
3. the build for CPUs, from pip's own sources or the index that the variable TORCH_INDEX names, which is asked once,
4. what pip finds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
# Imported, because one whose dependencies are elsewhere would be none. Beside torch_npu torch wants a CANN.
QUERY = """
import importlib.metadata, importlib.util, json, sys
import torch
torch = importlib.metadata.distribution("torch")
has_npu = importlib.util.find_spec("torch_npu") is not None
print(json.dumps([torch.version, str(torch.locate_file("")), sys.version_info[:2], has_npu]))
"""


class Torch(NamedTuple):
    """A torch that an interpreter can import."""

    version: str
    folder: Path
    has_npu: bool  # torch_npu is beside it


def installed(python: str | Path, wanted: str) -> Torch | None:
    """The torch of an interpreter that is like this one, if it is the version wanted, in any build."""
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    try:
        result = subprocess.run([python, "-c", QUERY], env=environment, capture_output=True, text=True)
    except OSError:  # no such interpreter
        return None
    if result.returncode != 0:
        return None
    version, folder, python_version, has_npu = json.loads(result.stdout)
    fits = version.partition("+")[0] == wanted and python_version == list(sys.version_info[:2])
    return Torch(version, Path(folder), has_npu) if fits else None


def share(python: str, wanted: str) -> bool:
    """Whether this environment can import another interpreter's torch from now on.

    With it comes all that is installed there, so that torch_npu, beside which torch wants a CANN, must not be.
    """
    other = installed(python, wanted)
    if other is None or other.has_npu:
        return False
    link = Path(sysconfig.get_path("purelib")) / "torch_of_another_python.pth"
    link.write_text(f"{other.folder}\n")
    if installed(sys.executable, wanted):
        return True
    link.unlink()  # what torch needs is elsewhere
    return False


def install_cpu_build(wanted: str) -> bool:
    """Whether pip has installed it; says why not."""
    index = os.environ.get("TORCH_INDEX")
    extra = ["--extra-index-url", index] if index else []
    command = [*PIP, "--retries", "0", "--timeout", "15", *extra, f"torch=={wanted}+cpu"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["pip did not say why"])[-1]
        print(f"torch {wanted}: no build for CPUs in reach ({reason}); pip's own takes its time", flush=True)
    return result.returncode == 0


def gigabytes(package: Path) -> float:
    """What torch's folder takes, and those of CUDA's libraries beside it."""
    folders = [package, package.parent / "nvidia", package.parent / "triton"]
    files = (file for folder in folders if folder.is_dir() for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files) / 1e9


def main(wanted: str, python: str) -> int:
    """Installs it, and says what it is."""
    if not (installed(sys.executable, wanted) or share(python, wanted) or install_cpu_build(wanted)):
        subprocess.run([*PIP, f"torch=={wanted}"])
    torch = installed(sys.executable, wanted)
    if torch is None:
        print(f"torch {wanted} could not be installed for {sys.executable}; see pip's words above", file=sys.stderr)
        return 1
    print(f"torch {torch.version}, {gigabytes(torch.folder / 'torch'):.1f} GB, in {torch.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
