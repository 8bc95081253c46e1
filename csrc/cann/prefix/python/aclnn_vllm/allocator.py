"""The allocator of sleep mode: what vllm-ascend's compiled module has of it.

torch_npu allocates through ``my_malloc`` and ``my_free`` of the library ``vllm_ascend_C.so``, which vllm-ascend finds
by that name among the libraries of the process. These functions keep the addresses of tensors while their memory is
given back.
"""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from pathlib import Path

PREFIX = Path(__file__).resolve().parents[3]
Handle = tuple[int, int, int, int]  # device, size, address, and where the library has the handle of its memory

library = ctypes.CDLL(str(PREFIX / "lib64" / "vllm_ascend_C.so"))
library.aclGetRecentErrMsg.restype = ctypes.c_char_p
for function in (library.aclHostVllmMap, library.aclHostVllmUnmap):
    function.argtypes = [ctypes.c_uint64] * 4
ALLOCATED = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_uint64] * 4, ctypes.c_void_p, ctypes.c_size_t)
FREED = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
library.aclHostVllmCallbacks.argtypes = [ALLOCATED, FREED]
library.aclHostVllmCallbacks.restype = None
callbacks: list[object] = []  # the library has only addresses of them


def init_module(malloc: Callable[[Handle], object], free: Callable[[int], object], /) -> None:
    """Sets the functions that are called with the handle of each new block, and with the address of each freed one.

    An exception in the first one fails the allocation; one in the second one goes to ``sys.unraisablehook``.
    """
    if not (callable(malloc) and callable(free)):
        raise TypeError(f"init_module takes two functions, and got {malloc!r} and {free!r}")

    def allocated(device: int, size: int, address: int, memory: int, reason: int, capacity: int) -> bool:
        try:
            malloc((device, size, address, memory))
        except BaseException as error:  # the caller cannot take an exception
            text = f"{type(error).__name__}: {error}".encode(errors="replace")[: capacity - 1]
            ctypes.memmove(reason, text + b"\0", len(text) + 1)
            return False
        return True

    callbacks.extend((ALLOCATED(allocated), FREED(free)))
    library.aclHostVllmCallbacks(*callbacks[-2:])


@atexit.register
def forget() -> None:
    """Blocks that are freed after Python's end are freed without it."""
    library.aclHostVllmCallbacks(ALLOCATED(), FREED())


def check(status: int) -> None:
    """Raises an error of the library."""
    if status != 0:
        texts = library.aclGetRecentErrMsg() or b"no message"
        last = texts.decode(errors="replace").partition("\n")[0]  # it is the first line
        raise RuntimeError(f"{last} (status {status})")


def python_create_and_map(device: int, size: int, address: int, memory: int, /) -> None:
    """Gets memory for a block that has none; what it had is lost. A RuntimeError has the reason."""
    check(library.aclHostVllmMap(device, size, address, memory))


def python_unmap_and_release(device: int, size: int, address: int, memory: int, /) -> None:
    """Gives the memory of a block back. The block keeps its address. A RuntimeError has the reason."""
    check(library.aclHostVllmUnmap(device, size, address, memory))
