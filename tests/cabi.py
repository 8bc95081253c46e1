"""The C ABI of the host CANN in Python: the library, its prototypes, and tensors in guarded memory.

Prototypes are read from the headers, so a function is called exactly as from C. Enum values and status codes are copied
here from the published interface: tests compare the headers with them.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.util
import math
import mmap
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

INCLUDE = Path(__file__).resolve().parent.parent / "csrc" / "host_cann" / "include"

# The releases of CANN whose checks the host CANN makes, oldest first; the last is the default.
CANN_RELEASES = ("8.5", "9.0", "9.1", "later")
LATER = CANN_RELEASES[-1]

PRODUCTS = ("Ascend310P", "Ascend910", "Ascend910B", "Ascend910_93", "Ascend950", "host")

# Status codes of aclnn/aclnn_base.h's document; those of the runtime are in acl/acl_base.h.
SUCCESS = 0
PARAM_NULLPTR = 161001
PARAM_INVALID = 161002
RUNTIME_ERROR = 361001
INNER = 561000
TILING_ERROR = 561002
FIND_KERNEL_ERROR = 561003
INNER_NULLPTR = 561103

# The status of a stream's synchronisation if a kernel fails (ACL_ERROR_RT_AICORE_EXCEPTION).
AICORE_EXCEPTION = 507015
# The same if memory was freed before the stream reached it (ACL_ERROR_RT_COPY_DATA).
COPY_DATA = 507052


class Dtype(IntEnum):
    """CANN's aclDataType, without the ACL_ prefix."""

    DT_UNDEFINED = -1
    FLOAT = 0
    FLOAT16 = 1
    INT8 = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 6
    UINT16 = 7
    UINT32 = 8
    INT64 = 9
    UINT64 = 10
    DOUBLE = 11
    BOOL = 12
    STRING = 13
    COMPLEX64 = 16
    COMPLEX128 = 17
    BF16 = 27
    INT4 = 29
    UINT1 = 30
    COMPLEX32 = 33
    HIFLOAT8 = 34
    FLOAT8_E5M2 = 35
    FLOAT8_E4M3FN = 36
    FLOAT8_E8M0 = 37
    FLOAT6_E3M2 = 38
    FLOAT6_E2M3 = 39
    FLOAT4_E2M1 = 40
    FLOAT4_E1M2 = 41


class Format(IntEnum):
    """CANN's aclFormat, without the ACL_ or ACL_FORMAT_ prefix."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47
    FRACTAL_NZ_C0_16 = 50
    FRACTAL_NZ_C0_32 = 51
    FRACTAL_NZ_C0_2 = 52
    FRACTAL_NZ_C0_4 = 53
    FRACTAL_NZ_C0_8 = 54


# ---- the library and its prototypes

_CTYPES: dict[str, Any] = {
    "void": None,
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int8_t": ctypes.c_int8,
    "uint8_t": ctypes.c_uint8,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "uint16_t": ctypes.c_uint16,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "char*": ctypes.c_char_p,
}


def header_text() -> str:
    """All headers, without comments."""
    text = "\n".join(path.read_text() for path in sorted(INCLUDE.rglob("*.h")))
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


@functools.cache
def prototypes() -> dict[str, tuple[Any, list[Any]]]:
    """Return and parameter types of every function in the headers. Pointers are plain addresses."""
    text = header_text()
    types = dict(_CTYPES)
    types.update({name: ctypes.c_int for name in re.findall(r"typedef [^;{}]*{[^}]*}\s*(\w+);", text)})
    types.update({name: ctypes.c_void_p for name in re.findall(r"typedef [^;{}]*\(\*\s*(\w+)\)\s*\([^;]*\);", text)})
    for base, name in re.findall(r"typedef (\w+\*?)\s+(\w+);", text):
        types[name] = ctypes.c_void_p if base.endswith("*") else types.get(base)

    def resolve(declaration: str) -> Any:
        words = declaration.replace("*", " * ").replace("const", " ").split()
        stars = words.count("*")
        if stars:
            return ctypes.c_char_p if stars == 1 and words[0] == "char" else ctypes.c_void_p
        return types[words[0]]

    found = {}
    for result, name, parameters in re.findall(r"ACL_FUNC_VISIBILITY\s+([^;(]+?)(\w+)\s*\(([^;]*?)\)\s*;", text):
        fixed = re.sub(r",\s*\.\.\.\s*$", "", parameters)
        listed = [] if fixed.strip() in ("", "void") else fixed.split(",")
        found[name] = (resolve(result), [resolve(parameter) for parameter in listed])
    return found


def library_path() -> Path:
    """The embedded host CANN, in the package's folder (without importing the package)."""
    spec = importlib.util.find_spec("aclnn_torch")
    root = Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None
    return (root or INCLUDE.parents[2] / "aclnn_torch") / "lib" / "libaclnn_host.so"


def is_embedded(name: str) -> bool:
    """True if the embedded host CANN has a function: only the installed one has the profiler's."""
    return not name.startswith("aclprof")


@functools.cache
def embedded() -> ctypes.CDLL:
    """The embedded host CANN, with a prototype for every function."""
    library = ctypes.CDLL(str(library_path()))
    for name, (result, parameters) in prototypes().items():
        if not is_embedded(name):
            continue
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


_in_use: list[Any] = []


def use(library: Any) -> None:
    """Selects another CANN, an object with functions as attributes, for everything here; call it first."""
    _in_use[:] = [library]


def host() -> Any:
    """The CANN in use: the embedded host CANN, unless another was selected."""
    return _in_use[0] if _in_use else embedded()


def error_text() -> str:
    """The messages of this thread since the last call, newest first; empty if there are none."""
    return (host().aclGetRecentErrMsg() or b"").decode()


def live_objects(kind: str | None = None) -> int:
    """The number of live objects of the host CANN."""
    return int(host().aclHostLiveObjects(kind and kind.encode()))


@contextmanager
def nothing_left() -> Iterator[None]:
    """Asserts that a block leaves the number of live objects unchanged; older garbage is not collected meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    living = live_objects()
    try:
        yield
    finally:
        if collects:
            gc.enable()
    assert live_objects() == living


@contextmanager
def product(name: str) -> Iterator[None]:
    """Runs a block under the rules of another product."""
    before = host().aclHostGetProduct()
    assert host().aclHostSetProduct(name.encode()) == SUCCESS
    try:
        yield
    finally:
        host().aclHostSetProduct(before)


@contextmanager
def cann_release(name: str) -> Iterator[None]:
    """Runs a block under the checks of another release of CANN."""
    before = host().aclHostGetCannRelease()
    assert host().aclHostSetCannRelease(name.encode()) == SUCCESS
    try:
        yield
    finally:
        host().aclHostSetCannRelease(before)


# ---- element types

# The storage of a dtype in a buffer. BF16 is the upper 16 bits of a float; dtypes without arithmetic are bytes.
_STORAGE: dict[Dtype, Any] = {
    Dtype.FLOAT: np.float32,
    Dtype.FLOAT16: np.float16,
    Dtype.BF16: np.uint16,
    Dtype.DOUBLE: np.float64,
    Dtype.INT8: np.int8,
    Dtype.INT16: np.int16,
    Dtype.INT32: np.int32,
    Dtype.INT64: np.int64,
    Dtype.UINT8: np.uint8,
    Dtype.UINT16: np.uint16,
    Dtype.UINT32: np.uint32,
    Dtype.UINT64: np.uint64,
    Dtype.BOOL: np.bool_,
    Dtype.COMPLEX32: np.dtype([("re", np.float16), ("im", np.float16)]),
    Dtype.COMPLEX64: np.complex64,
    Dtype.COMPLEX128: np.complex128,
}

# The same by number, since the hash of a member takes longer than all else.
_STORAGE_TYPES = [np.dtype(_STORAGE.get(number, np.uint8)) for number in range(max(Dtype) + 1)]  # type: ignore[call-overload]

# Significand bits (with the hidden one), and the smallest exponent of a normal number.
_PRECISION = {
    Dtype.FLOAT: (24, -126),
    Dtype.FLOAT16: (11, -14),
    Dtype.BF16: (8, -126),
    Dtype.DOUBLE: (53, -1022),
}
REAL = tuple(_PRECISION)
COMPLEX = (Dtype.COMPLEX32, Dtype.COMPLEX64, Dtype.COMPLEX128)
INTEGER = tuple(d for d in Dtype if re.fullmatch(r"U?INT\d+|BOOL", d.name))


def storage_type(dtype: Dtype) -> np.dtype[Any]:
    """The numpy type of the dtype's storage."""
    return _STORAGE_TYPES[dtype]


def ulp(dtype: Dtype, value: Any) -> np.ndarray:
    """The distance between neighbours of the dtype in the binade of each value (float64)."""
    bits, least = _PRECISION[dtype]
    value = np.asarray(value, np.float64)
    exponent = np.where(value == 0, least, np.frexp(value)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponent, least) - (bits - 1))


def round_to(dtype: Dtype, value: Any) -> np.ndarray:
    """float64 values rounded once to the dtype: to nearest even, with its subnormals, overflowing to inf."""
    value = np.asarray(value, np.float64)
    with np.errstate(all="ignore"):
        if dtype != Dtype.BF16:
            return value.astype(storage_type(dtype)).astype(np.float64)
        quantum = ulp(dtype, value)
        rounded = np.where(np.isfinite(value), np.rint(value / quantum) * quantum, value)
        return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, rounded), rounded)


def encode(dtype: Dtype, value: Any) -> np.ndarray:
    """float64 or complex values in the dtype's storage; floating values are rounded once."""
    value = np.asarray(value)
    if dtype == Dtype.BF16:
        bits = round_to(dtype, value).astype(np.float32).view(np.uint32) >> 16
        return np.asarray(bits, np.uint16)
    if dtype == Dtype.COMPLEX32:
        pair = np.zeros(value.shape, storage_type(dtype))
        pair["re"], pair["im"] = round_to(Dtype.FLOAT16, value.real), round_to(Dtype.FLOAT16, value.imag)
        return pair
    if dtype in REAL:
        value = round_to(dtype, value)
    return np.asarray(value, storage_type(dtype))


def repeated(values: Any, shape: Sequence[int]) -> np.ndarray:
    """The values repeated in order to fill the shape; np.resize takes a second for four million."""
    values, count = np.ravel(values), math.prod(shape)
    if not values.size:
        return np.zeros(shape, values.dtype)
    if values.size >= count:
        return values[:count].reshape(shape)
    return np.tile(values, -(-count // values.size))[:count].reshape(shape)


def decode(dtype: Dtype, stored: np.ndarray) -> np.ndarray:
    """The dtype's storage as float64 or complex128, exactly (integers up to 2^53)."""
    if dtype == Dtype.BF16:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == Dtype.COMPLEX32:
        return stored["re"].astype(np.float64) + 1j * stored["im"].astype(np.float64)
    return stored.astype(np.complex128 if dtype in COMPLEX else np.float64)


# ---- tensors, scalars

_GUARD = 64
_PATTERN = int(os.environ.get("ACLNN_TEST_PATTERN", 0xA5))


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


class Memory:
    """One tensor's storage between red zones, all filled with a pattern, and a numpy view of its elements."""

    # True if storage ends at an inaccessible page instead of a red zone: reading beyond it crashes.
    is_fenced: ClassVar[bool] = False

    def __init__(self, dtype: Dtype, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0):
        kind = storage_type(dtype)
        self.dtype, self.shape, self.offset, self._itemsize = dtype, tuple(shape), offset, kind.itemsize
        self.given_strides = strides
        self.strides = tuple(contiguous_strides(shape) if strides is None else strides)
        if 0 in self.shape:
            self.elements = offset
        elif strides is None:
            self.elements = offset + math.prod(self.shape)
        else:
            reach = sum(max((size - 1) * stride, 0) for size, stride in zip(self.shape, self.strides, strict=True))
            self.elements = offset + 1 + reach
        self.raw, self.start, self.address = self._storage(self.elements * self._itemsize)
        self.raw.fill(_PATTERN)
        self.view = self._view(self.raw, kind, ())

    @functools.cached_property
    def _outside(self) -> np.ndarray:
        """Which bytes belong to no element."""
        outside = np.ones(self.raw.shape, np.bool_)
        self._view(outside, np.dtype(np.bool_), (self._itemsize,))[...] = False
        return outside

    def _storage(self, size: int) -> tuple[np.ndarray, int, int]:
        """Bytes, and where in them the storage begins, which has an address."""
        return (_fenced if self.is_fenced else _between_red_zones)(size)

    def _view(self, buffer: np.ndarray, kind: np.dtype[Any], tail: tuple[int, ...]) -> np.ndarray:
        item = self._itemsize
        strides = tuple([stride * item for stride in self.strides]) + (1,) * len(tail)
        return np.ndarray(self.shape + tail, kind, buffer, self.start + self.offset * item, strides)

    def write(self, values: Any) -> None:
        """Rounds float64 values into the elements, repeated as often as needed."""
        self.view[...] = repeated(encode(self.dtype, values), self.shape)

    def read(self, raw: np.ndarray | None = None) -> np.ndarray:
        """The elements as float64 (or complex128), from a copy of `raw` if it is given."""
        view = self.view if raw is None else self._view(raw, self.view.dtype, ())
        return decode(self.dtype, np.ascontiguousarray(view).reshape(self.shape))

    def has(self, raw: np.ndarray) -> bool:
        """True if these are all its bytes."""
        return self.raw.tobytes() == raw.tobytes()

    def untouched(self) -> bool:
        """True if the pattern is intact in the red zones and in the gaps between elements."""
        return bool(np.all(self.raw[self._outside] == _PATTERN))

    def unwritten(self) -> bool:
        """True if the pattern is intact everywhere."""
        return bool(np.all(self.raw == _PATTERN))

    def descriptor(self, format: Format = Format.ND) -> int:
        """A new aclTensor over this memory, for the caller to destroy. Omitted strides are passed as null."""
        rank = len(self.shape)
        strides = None if self.given_strides is None else int64s(self.given_strides)
        storage = int64s([self.elements])  # a number of elements, as in torch_npu
        tensor = host().aclCreateTensor(
            int64s(self.shape), rank, self.dtype, strides, self.offset, format, storage, 1, self.address
        )
        assert tensor, error_text()
        return int(tensor)


def _between_red_zones(size: int) -> tuple[np.ndarray, int, int]:
    raw = np.empty(size + 3 * _GUARD, np.uint8)
    address = _address(raw)
    start = -address % _GUARD + _GUARD
    return raw, start, address + start


def _fenced(size: int) -> tuple[np.ndarray, int, int]:
    """The storage ends before an inaccessible page."""
    room = (size // mmap.PAGESIZE + 1) * mmap.PAGESIZE
    area = mmap.mmap(-1, room + mmap.PAGESIZE)
    raw = np.frombuffer(area, np.uint8, room)
    fence = _address(raw) + room
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return raw, room - size, fence - size


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides in elements."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return strides[::-1]


def int64s(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """A C array of int64_t."""
    return (ctypes.c_int64 * len(values))(*values)


def dims_of(getter: str, tensor: int) -> list[int]:
    """The result of a getter of dims; the numbers come from new[] and are freed with delete[]."""
    dims, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
    assert getattr(host(), getter)(tensor, ctypes.byref(dims), ctypes.byref(count)) == SUCCESS
    values = dims[: count.value]
    delete = ctypes.CDLL("libstdc++.so.6")._ZdaPv
    delete.argtypes = [ctypes.c_void_p]
    delete(dims)
    return values


def create_scalar(value: Any, dtype: Dtype = Dtype.FLOAT) -> int:
    """A new aclScalar of the value rounded to the dtype, for the caller to destroy."""
    stored = encode(dtype, value)
    scalar = host().aclCreateScalar(stored.ctypes.data, dtype)
    assert scalar, error_text()
    return int(scalar)


def create_int_array(values: Sequence[int]) -> int:
    """A new aclIntArray, for the caller to destroy."""
    array = host().aclCreateIntArray(int64s(values), len(values))
    assert array, error_text()
    return int(array)


def create_bool_array(values: Sequence[bool]) -> int:
    """A new aclBoolArray, for the caller to destroy."""
    array = host().aclCreateBoolArray((ctypes.c_bool * len(values))(*values), len(values))
    assert array, error_text()
    return int(array)


# ---- device memory


@contextmanager
def device() -> Iterator[None]:
    """Runs a block on device 0."""
    assert host().aclrtSetDevice(0) == SUCCESS
    try:
        yield
    finally:
        assert host().aclrtResetDevice(0) == SUCCESS


def allocate(size: int) -> int:
    """A new block of aclrtMalloc, for the caller to free."""
    address = ctypes.c_void_p()
    assert host().aclrtMalloc(ctypes.byref(address), size, 0) == SUCCESS, error_text()
    assert address.value
    return address.value


class DeviceMemory(Memory):
    """Memory on the device of the CANN in use, inaccessible to the host, with a host copy."""

    def _storage(self, size: int) -> tuple[np.ndarray, int, int]:
        self._block = allocate(size + 2 * _GUARD)  # blocks have a larger alignment
        return np.empty(size + 2 * _GUARD, np.uint8), _GUARD, self._block + _GUARD

    def upload(self) -> None:
        """Copies the host's bytes to the device."""
        _copy(self._block, _address(self.raw), self.raw.nbytes, _HOST_TO_DEVICE)

    def download(self) -> None:
        """Copies the device's bytes to the host."""
        _copy(_address(self.raw), self._block, self.raw.nbytes, _DEVICE_TO_HOST)

    def free(self) -> None:
        """Frees the device's memory; a device on which an operator failed may refuse."""
        host().aclrtFree(self._block)


_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2


def _copy(to: int, source: int, size: int, kind: int) -> None:
    assert host().aclrtMemcpy(to, size, source, size, kind) == SUCCESS, error_text()


# ---- the two stages

# The two output parameters of stage 1 before the call: an invalid address, and an implausible size.
UNSET_SIZE = 0xDEADBEEFDEADBEEF
UNSET_EXECUTOR = 0xFFFFFFFFFFFFFFF0


class Stage1:
    """Calls <api>GetWorkspaceSize and keeps its status, workspace size, executor and error text."""

    def __init__(self, api: str, arguments: Sequence[Any], workspace_size: bool = True, executor: bool = True):
        size, pointer = ctypes.c_uint64(UNSET_SIZE), ctypes.c_void_p(UNSET_EXECUTOR)
        self.api = api
        self.status = getattr(host(), f"{api}GetWorkspaceSize")(
            *arguments, ctypes.byref(size) if workspace_size else None, ctypes.byref(pointer) if executor else None
        )
        self.workspace_size, self.executor = size.value, pointer.value
        self.text = error_text()

    def run(self, stream: int | None = None) -> int:
        """Stage 2 with a workspace of the requested size. The workspace lives as long as this object."""
        self.workspace = Memory(Dtype.UINT8, [self.workspace_size])
        address = self.workspace.address if self.workspace_size else None
        return stage2(self.api, self.executor, self.workspace_size, address, stream)


def stage2(
    api: str, executor: int | None, workspace_size: int = 0, workspace: int | None = None, stream: int | None = None
) -> int:
    """Calls <api>; returns its status."""
    return int(getattr(host(), api)(workspace, workspace_size, executor, stream))


def exported_operators(library: Path) -> set[str]:
    """A library's functions with two stages."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" T (acl\w+)GetWorkspaceSize\n", symbols))
