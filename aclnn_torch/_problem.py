"""Why the package cannot be imported, in words, and what to do; needs neither torch nor the binary part."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import sys
from pathlib import Path

TORCH = "2.13.0"


class TorchNpuError(ImportError):
    """torch_npu, which torch loads by itself, cannot be loaded."""

    def __init__(self, reason: BaseException) -> None:
        home = os.environ.get("ASCEND_HOME_PATH")
        super().__init__(
            f"torch_npu cannot be loaded: {reason}; ASCEND_HOME_PATH is {home}, expected an installed CANN whose "
            "set_env.sh was sourced; without an NPU, start the program by `aclnn-torch run`, or set "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 if it needs no NPU tensors"
        )


def explain(error: ImportError | OSError) -> str:
    """What is missing or does not fit, and the way out."""
    if isinstance(error, TorchNpuError):
        return str(error)
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return f"torch is not installed; `pip install torch=={TORCH}`"
    if version.split(".")[:2] != TORCH.split(".")[:2]:
        return f"torch here is {version}, but aclnn_torch is built for {TORCH}; `pip install torch=={TORCH}`"
    package = Path(__file__).parent
    if not list(package.glob("_C.*.so")):
        return (
            f"the binary part is missing from {package}; run `make build` in the repository, or install the package "
            "(and leave the repository's folder, where Python finds this one first)"
        )
    return f"{error}; build aclnn_torch again for this Python and torch {version}"


def is_command_line() -> bool:
    """Whether the package is being imported for its command line, which tells of problems instead of failing."""
    arguments = sys.orig_argv
    script = any(Path(argument).name == "aclnn-torch" for argument in arguments)
    return script or ("-m", "aclnn_torch") in itertools.pairwise(arguments)
