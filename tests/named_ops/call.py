"""aclopCompileAndExecuteV2 on torch's tensors as device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    torch.float32: 0,
    torch.float16: 1,
    torch.int8: 2,
    torch.int32: 3,
    torch.uint8: 4,
    torch.int16: 6,
    torch.uint16: 7,
    torch.uint32: 8,
    torch.int64: 9,
    torch.uint64: 10,
    torch.float64: 11,
    torch.bool: 12,
    torch.bfloat16: 27,
}
_UNDEFINED = -1
_ND = 2
_ON_HOST = 1


@dataclass(frozen=True)
class Host:
    """An input whose values are in host memory: axes, sizes, numbers."""

    values: Tensor
    # What the description says in place of the values' own shape and dtype, and if their address is null.
    shape: tuple[int, ...] | None = None
    dtype: int | None = None
    is_null: bool = False

    @staticmethod
    def ints(*values: int) -> Host:
        return Host(torch.tensor(values, dtype=torch.int64))


Input = Tensor | Host | None
Attribute = bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[Sequence[int]]


class Operators:
    """The named operators of a library, called as torch_npu calls them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        for name in ("aclCreateTensorDesc", "aclCreateDataBuffer", "aclopCreateAttr"):
            getattr(library, name).restype = ctypes.c_void_p

    def call(
        self, name: str, inputs: Sequence[Input], outputs: Sequence[Tensor], **attributes: Attribute
    ) -> tuple[int, list[tuple[int, ...]]]:
        """The status, and the resulting shapes in the outputs' descriptions."""
        in_descs, in_buffers = self._arrays(inputs)
        out_descs, out_buffers = self._arrays(outputs)
        attr = self._attributes(attributes)
        status = self.library.aclopCompileAndExecuteV2(
            name.encode(), len(inputs), in_descs, in_buffers, len(outputs), out_descs, out_buffers,
            attr, 0, 0, None, None,
        )  # fmt: skip
        shapes = [self._shape(desc) for desc in out_descs]
        for desc in (*in_descs, *out_descs):
            self.library.aclDestroyTensorDesc(ctypes.c_void_p(desc))
        for buffer in (*in_buffers, *out_buffers):
            self.library.aclDestroyDataBuffer(ctypes.c_void_p(buffer))
        self.library.aclopDestroyAttr(attr)
        return status, shapes

    def error(self) -> str:
        """The text of the last failure."""
        self.library.aclGetRecentErrMsg.restype = ctypes.c_char_p
        return (self.library.aclGetRecentErrMsg() or b"").decode()

    def _arrays(self, operands: Sequence[Input]) -> tuple[Any, Any]:
        descs, buffers = [], []
        for operand in operands:
            tensor = operand.values if isinstance(operand, Host) else operand
            shape = () if tensor is None else tuple(tensor.shape)
            dtype = _UNDEFINED if tensor is None else DTYPES[tensor.dtype]
            is_null = False
            if isinstance(operand, Host):
                shape = shape if operand.shape is None else operand.shape
                dtype = dtype if operand.dtype is None else operand.dtype
                is_null = operand.is_null
            dims = (ctypes.c_int64 * len(shape))(*shape)
            desc = self.library.aclCreateTensorDesc(dtype, len(shape), dims, _ND)
            if isinstance(operand, Host):
                self.library.aclSetTensorPlaceMent(ctypes.c_void_p(desc), _ON_HOST)
            address = None if tensor is None or is_null else tensor.data_ptr()
            size = 0 if tensor is None else tensor.numel() * tensor.element_size()
            descs.append(desc)
            buffers.append(self.library.aclCreateDataBuffer(ctypes.c_void_p(address), ctypes.c_size_t(size)))
        return (ctypes.c_void_p * len(descs))(*descs), (ctypes.c_void_p * len(buffers))(*buffers)

    def _attributes(self, attributes: dict[str, Attribute]) -> ctypes.c_void_p:
        attr = ctypes.c_void_p(self.library.aclopCreateAttr())
        for name, value in attributes.items():
            self._set(attr, name.encode(), value)
        return attr

    def _set(self, attr: ctypes.c_void_p, name: bytes, value: Attribute) -> None:
        if isinstance(value, bool):
            self.library.aclopSetAttrBool(attr, name, ctypes.c_uint8(value))
        elif isinstance(value, int):
            self.library.aclopSetAttrInt(attr, name, ctypes.c_int64(value))
        elif isinstance(value, float):
            self.library.aclopSetAttrFloat(attr, name, ctypes.c_float(value))
        elif isinstance(value, str):
            self.library.aclopSetAttrString(attr, name, value.encode())
        elif all(isinstance(each, int) for each in value):
            self.library.aclopSetAttrListInt(attr, name, len(value), (ctypes.c_int64 * len(value))(*value))
        elif any(isinstance(each, Sequence) for each in value):
            lists = [(ctypes.c_int64 * len(each))(*each) for each in value]
            sizes = (ctypes.c_int * len(lists))(*map(len, lists))
            addresses = (ctypes.c_void_p * len(lists))(*map(ctypes.addressof, lists))
            self.library.aclopSetAttrListListInt(attr, name, len(lists), sizes, addresses)
        else:
            self.library.aclopSetAttrListFloat(attr, name, len(value), (ctypes.c_float * len(value))(*value))

    def _shape(self, desc: int) -> tuple[int, ...]:
        size = ctypes.c_int64()
        self.library.aclGetTensorDescNumDims.restype = ctypes.c_size_t
        sizes = []
        for i in range(self.library.aclGetTensorDescNumDims(ctypes.c_void_p(desc))):
            self.library.aclGetTensorDescDimV2(ctypes.c_void_p(desc), ctypes.c_size_t(i), ctypes.byref(size))
            sizes.append(size.value)
        return tuple(sizes)
