"""Calls the host CANN's two-stage functions with tensors of torch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from . import PREFIX

# aclDataType of CANN's acl_base.h
TYPES = {
    torch.float32: 0,
    torch.float16: 1,
    torch.int8: 2,
    torch.int32: 3,
    torch.uint8: 4,
    torch.int16: 6,
    torch.int64: 9,
    torch.float64: 11,
    torch.bool: 12,
    torch.bfloat16: 27,
    torch.float8_e5m2: 35,
    torch.float8_e4m3fn: 36,
}
FORMAT_ND = 2
Tensor = torch.Tensor


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The functions of operators, and those of descriptors and the runtime, which it depends on."""
    loaded = ctypes.CDLL(str(PREFIX / "lib64" / "libopapi.so"))
    loaded.aclGetRecentErrMsg.restype = ctypes.c_char_p
    for name in ("aclCreateTensor", "aclCreateIntArray"):
        getattr(loaded, name).restype = ctypes.c_void_p
    return loaded


def last_error() -> str:
    """The host CANN's message."""
    text = library().aclGetRecentErrMsg()
    return text.decode() if text else "no message"


def check(status: int, name: str) -> None:
    """Raises an error of the host CANN."""
    if status != 0:
        raise RuntimeError(f"{name}: status {status}: {last_error()}")


def describe(tensor: Tensor) -> int | None:
    """An aclTensor of the tensor's memory; None if it cannot be made."""
    rank = tensor.dim()
    sizes, strides = (ctypes.c_int64 * rank)(*tensor.shape), (ctypes.c_int64 * rank)(*tensor.stride())
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    extent = ctypes.c_int64(last + 1 if tensor.numel() else 0)
    made: int | None = library().aclCreateTensor(
        *(sizes, ctypes.c_uint64(rank), TYPES[tensor.dtype], strides, ctypes.c_int64(0), FORMAT_ND),
        *(ctypes.byref(extent), ctypes.c_uint64(1), ctypes.c_void_p(tensor.data_ptr())),
    )
    return made


class Arguments(ExitStack):
    """Makes arguments of the C interface, and destroys at the end what it made."""

    def own(self, handle: int | None, destroy: Callable[[ctypes.c_void_p], object]) -> ctypes.c_void_p:
        """Keeps what a function of the C interface made."""
        if handle is None:
            raise RuntimeError(last_error())
        pointer = ctypes.c_void_p(handle)
        self.callback(destroy, pointer)
        return pointer

    def make(self, argument: Any) -> Any:
        """The argument for C; None is a null pointer. Types of ctypes stand for themselves."""
        if isinstance(argument, Tensor):
            return self.own(describe(argument), library().aclDestroyTensor)
        if argument is None:
            return ctypes.c_void_p()
        if isinstance(argument, bool):
            return ctypes.c_bool(argument)
        if isinstance(argument, int):
            return ctypes.c_int64(argument)
        if isinstance(argument, float):
            return ctypes.c_double(argument)
        if isinstance(argument, str):
            return ctypes.c_char_p(argument.encode())
        if isinstance(argument, list):
            values, size = (ctypes.c_int64 * len(argument))(*argument), ctypes.c_uint64(len(argument))
            return self.own(library().aclCreateIntArray(values, size), library().aclDestroyIntArray)
        return argument


def call(name: str, *arguments: Any) -> None:
    """Runs a function on the current stream, behind what torch_npu has queued for it.

    An int is an int64_t, a float a double, a list an aclIntArray. Nothing happens on meta tensors.
    """
    devices = {argument.device for argument in arguments if isinstance(argument, Tensor)}
    if len(devices) > 1:
        raise ValueError(f"{name}: tensors are on {' and '.join(sorted(map(str, devices)))}, expected one NPU")
    (device,) = devices
    if device.type == "meta":
        return
    for argument in arguments:
        if isinstance(argument, Tensor) and argument.dtype not in TYPES:
            known = ", ".join(map(str, TYPES))
            raise ValueError(f"{name}: a tensor has dtype {argument.dtype}, expected one of {known}")
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    with Arguments() as made:
        converted = [made.make(argument) for argument in arguments]
        first, second = getattr(library(), f"{name}GetWorkspaceSize"), getattr(library(), name)
        stream = ctypes.c_void_p(torch.npu.current_stream(device).npu_stream)
        check(first(*converted, ctypes.byref(size), ctypes.byref(executor)), name)
        try:
            workspace = torch.empty(size.value, dtype=torch.uint8, device=device)
        except Exception:
            library().aclDestroyAclOpExecutor(executor)
            raise
        check(second(ctypes.c_void_p(workspace.data_ptr() or None), size, executor, stream), name)


def copy(target: int, source: int, size: int, kind: int) -> None:
    """Copies bytes between two addresses on the current stream; `kind` is an aclrtMemcpyKind."""
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    length = ctypes.c_size_t(size)
    status = library().aclrtMemcpyAsync(
        *(ctypes.c_void_p(target), length, ctypes.c_void_p(source), length, kind, stream)
    )
    check(status, "aclrtMemcpyAsync")
