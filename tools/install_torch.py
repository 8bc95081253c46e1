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

QUERY = """
import importlib.metadata, json, sys
torch = importlib.metadata.distribution("torch")
print(json.dumps([torch.version, str(torch.locate_file("")), sys.version_info[:2]]))
"""


def installed(python: str | Path, wanted: str) -> tuple[str, Path] | None:
    """The torch of an interpreter and the folder it is in, if it is the version wanted, in any build."""
    result = subprocess.run([python, "-c", QUERY], capture_output=True, text=True)
    if result.returncode != 0:
        return None
    version, folder, python_version = json.loads(result.stdout)
    fits = version.partition("+")[0] == wanted and python_version == list(sys.version_info[:2])
    return (version, Path(folder)) if fits else None


def pip_install(*arguments: str) -> bool:
    """Whether pip can install that."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments]
    return subprocess.run(pip, stderr=subprocess.DEVNULL if "--retries" in arguments else None).returncode == 0


def gigabytes(package: Path) -> float:
    """What torch's folder takes, and those of CUDA's libraries beside it."""
    folders = [package, package.parent / "nvidia", package.parent / "triton"]
    files = (file for folder in folders if folder.is_dir() for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files) / 1e9


def main(wanted: str, python: str) -> int:
    """Installs it, and says what it is."""
    if installed(sys.executable, wanted) is None:
        index = os.environ.get("TORCH_INDEX")
        extra = ["--extra-index-url", index] if index else []
        if other := installed(python, wanted):
            shared = Path(sysconfig.get_path("purelib")) / "torch_of_another_python.pth"
            shared.write_text(f"{other[1]}\n")
        elif not pip_install("--retries", "0", "--timeout", "5", *extra, f"torch=={wanted}+cpu"):
            print(f"torch {wanted}: no build for CPUs in reach; pip's own takes its time", flush=True)
            if not pip_install(f"torch=={wanted}"):
                return 1
    version, folder = installed(sys.executable, wanted) or (None, None)
    if folder is None:
        print(f"torch {wanted} is not in the environment of {sys.executable}", file=sys.stderr)
        return 1
    print(f"torch {version}, {gigabytes(folder / 'torch'):.1f} GB, in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
