"""The host CANN under the real torch_npu: simulated NPUs on a machine that has none.

In a notebook, before anything imports torch_npu::

    from aclnn_torch import host

    host.enable(devices=2)
    import torch_npu

Programs are started with ``python -m aclnn_torch run script.py`` instead, and need no such line.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import re
import sys
from pathlib import Path

from ._problem import explain, series_of

PREFIX = Path(__file__).resolve().parent / "cann"
PYACL = PREFIX / "python" / "site-packages"  # CANN's Python interface, the module acl

# In order of dependency; once they are loaded, torch_npu finds each by its name.
LIBRARIES = (
    "ascendcl",
    "nnopbase",
    "opapi",
    "hccl",
    "hcomm",
    "acl_op_compiler",
    "c_sec",
    "ge_runner",
    "graph",
    "acl_tdt_channel",
    "msprofiler",
    "profapi",
    "ms_tools_ext",
    "ascend_hal",
    "fmk_parser",
    "ascend_protobuf",
    "ascend_dump",
    "ascendsk",
    "atb",
)
MAX_DEVICES = 64

# libgomp's threads look for work before they sleep: 20000 times, a millisecond on an Intel Xeon, or with ACTIVE 1000
# times where the threads of the program and of a stream are together more than the processors. With fewer looks, waking
# them takes longer than a loop; with more, after a large operator a second thread takes the processor from the
# program's thread for a dozen small ones.
OPENMP = {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "20000"}


def _library(name: str) -> Path:
    return PREFIX / "lib64" / f"lib{name}.so"


def missing_libraries() -> list[str]:
    """Names of the missing libraries; in a source tree, all until they are built."""
    return [path.name for path in map(_library, LIBRARIES) if not path.exists()]


def environment(
    product: str | None = None,
    devices: int | None = None,
    memory: int | str | None = None,
    strict: bool | None = None,
    cann: str | None = None,
) -> dict[str, str]:
    """The environment variables with which torch_npu runs on the host CANN.

    Args:
        product: the product of the NPUs, e.g. ``Ascend910B``; a SoC name such as ``Ascend910B2`` selects its product.
            None leaves it to ``ACLNN_TORCH_PRODUCT``.
        devices: the number of NPUs, 1 to 64. None leaves it to ``ACLNN_TORCH_DEVICES``.
        memory: the memory of each NPU, in bytes, or as a text such as ``"2G"`` (K, M, G, T are powers of 1024). None
            leaves it to ``ACLNN_TORCH_DEVICE_MEMORY``.
        strict: make device memory inaccessible to the host, as on a machine with NPUs: a host access is then a
            segmentation fault, and an operator on host memory an error. None leaves it to ``ACLNN_TORCH_STRICT``.
        cann: the release of CANN whose checks the operators make: ``8.5``, ``9.0``, ``9.1`` or ``later``. None leaves
            it to ``ACLNN_TORCH_CANN``.

    Raises:
        RuntimeError: the host CANN is not built.
        ValueError: an unknown product or release, a number of devices out of range, or an invalid amount of memory.
    """
    if missing := missing_libraries():
        raise RuntimeError(
            f"the host CANN is not built: {PREFIX / 'lib64'} lacks {', '.join(missing)}; run `make cann`"
        )
    variables = {
        "ASCEND_HOME_PATH": str(PREFIX),
        "ASCEND_TOOLKIT_HOME": str(PREFIX),
        "ASCEND_OPP_PATH": str(PREFIX / "opp"),
        # torch_npu initialises operators called by name (aclop) at the first such call, not at its start.
        "ACL_OP_INIT_MODE": "1",
        # From level 2 on, torch_npu passes the host CANN the name of a missing operator, for the error text.
        "ASCEND_GLOBAL_LOG_LEVEL": min(os.environ.get("ASCEND_GLOBAL_LOG_LEVEL", "2"), "2"),
        "LD_LIBRARY_PATH": _search_path("LD_LIBRARY_PATH", PREFIX / "lib64"),
        # torch_npu's profiler runs msprof, and programs ask npu-smi for the devices.
        "PATH": _search_path("PATH", PREFIX / "bin", PREFIX / "tools" / "profiler" / "bin"),
        "PYTHONPATH": _search_path("PYTHONPATH", PYACL),
        # glibc keeps freed memory for the operators' next allocations; otherwise each would get fresh pages.
        "MALLOC_TRIM_THRESHOLD_": os.environ.get("MALLOC_TRIM_THRESHOLD_", str(256 << 20)),
        "MALLOC_MMAP_THRESHOLD_": os.environ.get("MALLOC_MMAP_THRESHOLD_", str(32 << 20)),
    }
    if not OPENMP.keys() & os.environ.keys():
        variables |= OPENMP
    if product is not None:
        _check("aclHostSetProduct", product)
        variables["ACLNN_TORCH_PRODUCT"] = product
    if cann is not None:
        _check("aclHostSetCannRelease", cann)
        variables["ACLNN_TORCH_CANN"] = cann
    if devices is not None:
        if not 1 <= devices <= MAX_DEVICES:
            raise ValueError(f"devices is {devices}, expected a number from 1 to {MAX_DEVICES}")
        variables["ACLNN_TORCH_DEVICES"] = str(devices)
    if memory is not None:
        if not re.fullmatch("[1-9][0-9]*[KMGT]?", str(memory)):
            raise ValueError(f"memory is {memory}, expected a number of bytes, with or without K, M, G or T behind it")
        variables["ACLNN_TORCH_DEVICE_MEMORY"] = str(memory)
    if strict is not None:
        variables["ACLNN_TORCH_STRICT"] = str(int(strict))
    return variables


def torch_npu_problem() -> str | None:
    """The reason why this Python cannot import torch_npu with any CANN, and the remedy; None if it can."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError as error:
        return explain(error)
    advice = f"`pip install --no-deps 'torch_npu=={series_of(torch)}.*'`"
    if importlib.util.find_spec("torch_npu") is None:
        return f"torch_npu is not installed here; `pip install pyyaml numpy` and {advice}, in an environment of its own"
    torch_npu = importlib.metadata.version("torch_npu")
    if series_of(torch_npu) != series_of(torch):
        return f"torch_npu here is {torch_npu}, which does not go with torch {torch}; {advice}"
    return None


def enable(
    product: str | None = None,
    devices: int | None = None,
    memory: int | str | None = None,
    strict: bool | None = None,
    cann: str | None = None,
) -> None:
    """Loads the host CANN into this process, so that torch_npu finds it. Call it before importing torch_npu.

    Child processes find it, too.

    Args:
        product: see :func:`environment`.
        devices: see :func:`environment`.
        memory: see :func:`environment`.
        strict: see :func:`environment`.
        cann: see :func:`environment`.

    Raises:
        RuntimeError: torch_npu is already imported, with another CANN, or cannot be imported at all, or the host CANN
            is not built.
        ValueError: see :func:`environment`.
    """
    if "torch_npu" in sys.modules:
        raise RuntimeError(
            "torch_npu is imported already and keeps the CANN it found; call aclnn_torch.host.enable() before it is "
            "imported, in a fresh process"
        )
    if problem := torch_npu_problem():
        raise RuntimeError(problem)
    os.environ.update(environment(product, devices, memory, strict, cann))
    if str(PYACL) not in sys.path:
        sys.path.insert(0, str(PYACL))
    for name in LIBRARIES:
        ctypes.CDLL(str(_library(name)), ctypes.RTLD_GLOBAL)


def _search_path(variable: str, *own: Path) -> str:
    """The variable's folders, with those of the host CANN prepended, without duplicates."""
    default = os.defpath if variable == "PATH" else ""
    first = [str(path) for path in own]
    others = [path for path in os.environ.get(variable, default).split(":") if path and path not in first]
    return ":".join([*first, *others])


def _check(function: str, name: str) -> None:
    """Asks the host CANN if it knows the product, or the release of CANN, that the function selects."""
    runtime = ctypes.CDLL(str(_library("ascendcl")))
    if runtime[function](name.encode()) != 0:
        runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p
        raise ValueError(runtime.aclGetRecentErrMsg().decode())
