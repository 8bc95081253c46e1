"""Installs torch into the environment whose Python runs this: ``python tools/install_torch.py VERSION PYTHON``.

torch's CUDA build, PyPI's default on Linux, takes 5 GB; its CPU build less than 1 GB. So the first available of these
is used, and its origin and size are printed:

1. the torch that the environment has already,
2. the torch of PYTHON, another interpreter of the same version: used in place,
3. the CPU build, from pip's own sources or the index in the variable TORCH_INDEX, which is tried once,
4. pip's default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
PIP += ["--no-compile", "--prefer-binary"]
# Imported, because a torch without its dependencies is unusable. With torch_npu, torch needs a CANN.
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
    has_npu: bool  # torch_npu is installed with it


def installed(python: str | Path, wanted: str) -> Torch | None:
    """The torch of a compatible interpreter, if it has the requested version, in any build."""
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
    """True if this environment can now import another interpreter's torch.

    This also exposes everything else installed there, so torch_npu, with which torch needs a CANN, must not be.
    """
    other = installed(python, wanted)
    if other is None or other.has_npu:
        return False
    link = Path(sysconfig.get_path("purelib")) / "torch_of_another_python.pth"
    link.write_text(f"{other.folder}\n")
    if installed(sys.executable, wanted):
        return True
    link.unlink()  # torch's dependencies are elsewhere
    return False


def install_cpu_build(wanted: str) -> bool:
    """True if pip has installed it; prints the reason if not."""
    index = os.environ.get("TORCH_INDEX")
    extra = ["--extra-index-url", index] if index else []
    command = [*PIP, "--retries", "0", "--timeout", "15", *extra, f"torch=={wanted}+cpu"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["pip did not say why"])[-1]
        print(f"torch {wanted}: no build for CPUs in reach ({reason}); pip's own takes its time", flush=True)
    return result.returncode == 0


def gigabytes(package: Path) -> float:
    """The size of torch's folder, and of the folders of CUDA's libraries next to it."""
    folders = [package, package.parent / "nvidia", package.parent / "triton"]
    files = (file for folder in folders if folder.is_dir() for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files) / 1e9


def main(wanted: str, python: str) -> int:
    """Installs it, and prints its origin."""
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
