"""The part of CANN's C ABI that a benchmark needs: the two stages of an operator, on CPU tensors."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import aclnn_torch

LIBRARY = Path(aclnn_torch.__file__).parent / "lib" / "libaclnn_host.so"

DATA_TYPES = {torch.float32: 0, torch.float16: 1, torch.int64: 9, torch.float64: 11, torch.bfloat16: 27}
FORMAT_ND = 2


@functools.cache
def load() -> ctypes.CDLL:
    """Loads the embedded host CANN."""
    library = ctypes.CDLL(str(LIBRARY))
    for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateBoolArray"):
        getattr(library, name).restype = ctypes.c_void_p
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


class Call:
    """One operator, ready to run repeatedly into the same outputs.

    Arguments are CANN's, in its order: tensors, scalars as float, bool, integer arrays as a shape, bool arrays as a
    list, absent arguments as None, and plain C numbers and texts as ctypes objects.
    """

    def __init__(self, operator: str, arguments: Sequence[Any], outputs: Sequence[Tensor]):
        self._name = "aclnn" + "".join(word.capitalize() for word in operator.split("_"))
        self._library = load()
        self._stage1 = getattr(self._library, self._name + "GetWorkspaceSize")
        self._stage2 = getattr(self._library, self._name)
        self._tensors: list[ctypes.c_void_p] = []
        self._scalars: list[ctypes.c_void_p] = []
        self._arrays: list[tuple[str, ctypes.c_void_p]] = []
        self._memory = [value for value in (*arguments, *outputs) if isinstance(value, Tensor)]
        self._arguments = [self._describe(value) for value in (*arguments, *outputs)]
        self._size, executor = self._plan()
        self._workspace = torch.empty(self._size, dtype=torch.uint8)
        self._check(self._library.aclSetAclOpExecutorRepeatable(executor))
        self._executor = executor

    def run(self) -> None:
        """Runs stage 2, and thus the kernel, on the null stream: complete on return."""
        workspace = ctypes.c_void_p(self._workspace.data_ptr() if self._size else None)
        self._check(self._stage2(workspace, ctypes.c_uint64(self._size), self._executor, None))

    def close(self) -> None:
        """Destroys executor and descriptors."""
        self._check(self._library.aclDestroyAclOpExecutor(self._executor))
        for tensor in self._tensors:
            self._check(self._library.aclDestroyTensor(tensor))
        for scalar in self._scalars:
            self._check(self._library.aclDestroyScalar(scalar))
        for kind, array in self._arrays:
            self._check(getattr(self._library, f"aclDestroy{kind}")(array))

    def _describe(self, value: Any) -> Any:
        if isinstance(value, bool):
            return ctypes.c_bool(value)
        if isinstance(value, float):
            number = ctypes.c_double(value)
            scalar = ctypes.c_void_p(self._library.aclCreateScalar(ctypes.byref(number), DATA_TYPES[torch.float64]))
            self._scalars.append(scalar)
            return scalar
        if isinstance(value, torch.Size):
            return self._array("IntArray", (ctypes.c_int64 * len(value))(*value))
        if isinstance(value, list):
            return self._array("BoolArray", (ctypes.c_bool * len(value))(*value))
        if not isinstance(value, Tensor):
            return value
        rank = ctypes.c_uint64(value.dim())
        shape = (ctypes.c_int64 * value.dim())(*value.shape)
        strides = (ctypes.c_int64 * value.dim())(*value.stride())
        address = ctypes.c_void_p(value.data_ptr())
        dtype = DATA_TYPES[value.dtype]
        offset = ctypes.c_int64(0)
        tensor = ctypes.c_void_p(
            self._library.aclCreateTensor(shape, rank, dtype, strides, offset, FORMAT_ND, shape, rank, address)
        )
        self._tensors.append(tensor)
        return tensor

    def _array(self, kind: str, values: ctypes.Array[Any]) -> ctypes.c_void_p:
        create = getattr(self._library, f"aclCreate{kind}")
        array = ctypes.c_void_p(create(values, ctypes.c_uint64(len(values))))
        self._arrays.append((kind, array))
        return array

    def _plan(self) -> tuple[int, ctypes.c_void_p]:
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        self._check(self._stage1(*self._arguments, ctypes.byref(size), ctypes.byref(executor)))
        return size.value, executor

    def _check(self, status: int) -> None:
        if status:
            message = self._library.aclGetRecentErrMsg() or b""
            raise RuntimeError(f"{self._name} failed with status {status}: {message.decode()}")
