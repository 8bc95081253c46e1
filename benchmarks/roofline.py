"""Memory for large measurements, and the machine's memory bandwidth."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import mmap
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("roofline.cpp")
HUGE_PAGE = 2 << 20
CACHE_LINE = 64


def allocate(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Allocates a zeroed tensor like device memory: on huge pages, aligned to one, with every page present."""
    size = math.prod(shape) * dtype.itemsize
    memory = mmap.mmap(-1, size + HUGE_PAGE)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(memory, dtype=torch.uint8)
    start = -whole.data_ptr() % HUGE_PAGE
    return whole[start : start + size].view(dtype).view(shape).zero_()


def rooflines(inputs: Sequence[Tensor], out: Tensor) -> dict[str, Callable[[], object]]:
    """All variants that read `inputs`, one or two, and write `out`, by name."""
    loop = _load()
    a, b = inputs[0], inputs[-1]
    size = out.nbytes // CACHE_LINE * CACHE_LINE
    addresses = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)]
    two_reads = len(inputs) == 2
    found: dict[str, Callable[[], object]] = {
        f"{name} stores": functools.partial(loop, two_reads, streaming, *addresses, size)
        for name, streaming in (("plain", False), ("streaming", True))
    }
    if two_reads:
        found["torch.add out="] = functools.partial(torch.add, a, b, out=out)
        found["torch.mul out="] = functools.partial(torch.mul, a, b, out=out)
    else:
        found["torch.neg out="] = functools.partial(torch.neg, a, out=out)
        found["torch copy_"] = functools.partial(out.copy_, a)
    return found


@functools.cache
def _load() -> Callable[..., None]:
    """Builds roofline.cpp and loads it."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    if shutil.which(compiler[0]) is None:
        raise FileNotFoundError("the bandwidth roofline needs a C++ compiler: install g++ or set CXX")
    with tempfile.TemporaryDirectory() as directory:
        library = Path(directory) / "roofline.so"
        # Without the last flag the copy would become a call of memcpy.
        flags = ["-std=c++20", "-O3", "-shared", "-fPIC", "-fopenmp", "-fno-tree-loop-distribute-patterns"]
        subprocess.run([*compiler, *flags, SOURCE, "-o", library], check=True)
        loop = ctypes.CDLL(str(library)).roofline
    loop.restype = None
    loop.argtypes = [ctypes.c_bool, ctypes.c_bool, *[ctypes.c_void_p] * 3, ctypes.c_int64]
    return loop
