"""Explains why the package cannot be imported, and what to do; needs neither torch nor the binary part."""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent


class TorchNpuError(ImportError):
    """torch_npu, which torch loads automatically, cannot be loaded."""

    def __init__(self, reason: BaseException) -> None:
        home = os.environ.get("ASCEND_HOME_PATH")
        super().__init__(
            f"torch_npu cannot be loaded: {reason}; ASCEND_HOME_PATH is {home}, expected an installed CANN whose "
            "set_env.sh was sourced; without an NPU, start the program by `aclnn-torch run`, or set "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 if it needs no NPU tensors"
        )


def built_for() -> str | None:
    """The version of torch that the binary part is built for; None if there is no binary part."""
    file = PACKAGE / "lib" / "torch_version.txt"
    return file.read_text().strip() if file.exists() else None


def series_of(version: str) -> str:
    """2.13 of 2.13.0+cpu: the part of the version that torch and torch_npu must have in common."""
    return ".".join(version.split(".")[:2])


def other_torch(version: str) -> str | None:
    """The problem with a torch of this version: its binary interface changes with every 2.x."""
    built = built_for()
    if built is None or series_of(version) == series_of(built):
        return None
    return (
        f"torch here is {version}, but the binary part of aclnn_torch is built for {built}; build it again, by "
        "`make build` in the repository, or from its folder by `pip install --no-build-isolation --no-deps "
        f"--force-reinstall .`; or `pip install torch=={built.partition('+')[0]}`"
    )


def subinterpreter() -> str | None:
    """The problem with an interpreter beside the main one: torch's import hangs there, or ends the process."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() == interpreters.get_main():
            return None
        return (
            "torch cannot be used in a subinterpreter; import aclnn_torch in the main interpreter, and start threads "
            "or processes there"
        )
    return None  # this Python cannot make any


def explain(error: ImportError | OSError) -> str:
    """The missing or incompatible package, and the remedy."""
    if isinstance(error, TorchNpuError):
        return str(error)
    if problem := subinterpreter():
        return problem
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        built = (built_for() or "").partition("+")[0]
        return f"torch is not installed; `pip install torch{f'=={built}' * bool(built)}`"
    if problem := other_torch(version):
        return problem
    if not list(PACKAGE.glob("_C.*.so")):
        return (
            f"the binary part is missing from {PACKAGE}; run `make build` in the repository, or install the package "
            "(and leave the repository's folder, where Python finds this one first)"
        )
    return f"{error}; build aclnn_torch again for this Python and torch {version}"


def is_command_line() -> bool:
    """True if the package is being imported for its command line, which reports problems instead of failing."""
    arguments = sys.orig_argv
    script = any(Path(argument).name == "aclnn-torch" for argument in arguments)
    return script or ("-m", "aclnn_torch") in itertools.pairwise(arguments)
