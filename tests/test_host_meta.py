"""The host CANN's descriptors through the C ABI, and executors independent of the operator."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.cabi import INNER, INNER_NULLPTR, PARAM_INVALID, PARAM_NULLPTR, SUCCESS, Dtype, Format, Memory, int64s


@pytest.fixture(scope="module", autouse=True)
def device() -> None:
    assert cabi.host().aclInit(None) in (SUCCESS, 100002)
    assert cabi.host().aclrtSetDevice(0) == SUCCESS


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    cabi.error_text()
    with cabi.nothing_left():
        yield
        cabi.error_text()


# ---- The headers agree with the specification


def header_enum(name: str) -> dict[str, int]:
    body = re.search(rf"typedef [^;{{}}]*{{([^}}]*)}}\s*{name};", cabi.header_text())
    assert body
    return {key: int(value, 0) for key, value in re.findall(r"(\w+)\s*=\s*(-?\w+)", body[1])}


def test_dtypes_of_the_header() -> None:
    assert header_enum("aclDataType") == {f"ACL_{dtype.name}": dtype.value for dtype in Dtype}


def test_formats_of_the_header() -> None:
    prefix = {Format.FRACTAL_Z_3D: "ACL_"}
    assert header_enum("aclFormat") == {prefix.get(f, "ACL_FORMAT_") + f.name: f.value for f in Format}


@pytest.mark.parametrize(
    "dtype", sorted(set(Dtype) - {Dtype.FLOAT, Dtype.FLOAT16, Dtype.BF16}), ids=lambda dtype: dtype.name
)
def test_a_refusal_names_the_dtype(dtype: Dtype) -> None:
    name = dtype.name.removeprefix("DT_")
    tensors = [Memory(each, (2,)) for each in (dtype, Dtype.FLOAT)]
    descriptors = [memory.descriptor() for memory in tensors]
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    stage1 = cabi.host().aclnnHardswishGetWorkspaceSize
    assert stage1(*descriptors, ctypes.byref(size), ctypes.byref(executor)) == PARAM_INVALID
    expected = f"aclnnHardswish: self has dtype {name} ({dtype.value}), expected one of FLOAT, FLOAT16, BFLOAT16; "
    assert cabi.error_text().startswith(expected)
    for descriptor in descriptors:
        cabi.host().aclDestroyTensor(descriptor)


STATUS_CODES = {
    "SUCCESS": 0,
    "ERR_PARAM_NULLPTR": 161001,
    "ERR_PARAM_INVALID": 161002,
    "ERR_RUNTIME_ERROR": 361001,
    "ERR_INNER": 561000,
    "ERR_INNER_INFERSHAPE_ERROR": 561001,
    "ERR_INNER_TILING_ERROR": 561002,
    "ERR_INNER_FIND_KERNEL_ERROR": 561003,
    "ERR_INNER_CREATE_EXECUTOR": 561101,
    "ERR_INNER_NOT_TRANS_EXECUTOR": 561102,
    "ERR_INNER_NULLPTR": 561103,
    "ERR_INNER_WRONG_ATTR_INFO_SIZE": 561104,
    "ERR_INNER_KEY_CONFLICT": 561105,
    "ERR_INNER_INVALID_IMPL_MODE": 561106,
    "ERR_INNER_OPP_PATH_NOT_FOUND": 561107,
    "ERR_INNER_LOAD_JSON_FAILED": 561108,
    "ERR_INNER_JSON_VALUE_NOT_FOUND": 561109,
    "ERR_INNER_JSON_FORMAT_INVALID": 561110,
    "ERR_INNER_JSON_DTYPE_INVALID": 561111,
    "ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": 561112,
    "ERR_INNER_OP_FILE_INVALID": 561113,
    "ERR_INNER_ATTR_NUM_OUT_OF_BOUND": 561114,
    "ERR_INNER_ATTR_LEN_NOT_ENOUGH": 561115,
    "ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE": 561116,
    "ERR_INNER_INPUT_JSON_IS_NULL": 561117,
    "ERR_INNER_STATIC_WORKSPACE_INVALID": 561118,
    "ERR_INNER_STATIC_BLOCK_DIM_INVALID": 561119,
}


def test_status_codes_of_the_header() -> None:
    found = dict(re.findall(r"#define ACLNN_(\w+) (\w+)", cabi.header_text()))
    assert found.pop("ERR_INNER_KEY_CONFILICT") == "ACLNN_ERR_INNER_KEY_CONFLICT"
    numbers = {name: int(value) for name, value in found.items() if value.isdigit()}
    assert numbers == STATUS_CODES


def test_every_declared_function_exists() -> None:
    """cabi.host() binds every prototype; this names each missing one."""
    library = ctypes.CDLL(str(cabi.library_path()))
    assert [name for name in cabi.prototypes() if hasattr(library, name) != cabi.is_embedded(name)] == []


# Bytes per element; 0 if not a whole number.
SIZES = {
    **dict.fromkeys((Dtype.INT8, Dtype.UINT8, Dtype.BOOL), 1),
    **dict.fromkeys((Dtype.FLOAT16, Dtype.BF16, Dtype.INT16, Dtype.UINT16), 2),
    **dict.fromkeys((Dtype.FLOAT, Dtype.INT32, Dtype.UINT32, Dtype.COMPLEX32), 4),
    **dict.fromkeys((Dtype.DOUBLE, Dtype.INT64, Dtype.UINT64, Dtype.COMPLEX64), 8),
    Dtype.COMPLEX128: 16,
    **dict.fromkeys((Dtype.HIFLOAT8, Dtype.FLOAT8_E5M2, Dtype.FLOAT8_E4M3FN, Dtype.FLOAT8_E8M0), 1),
    **dict.fromkeys((Dtype.STRING, Dtype.DT_UNDEFINED, Dtype.INT4, Dtype.UINT1), 0),
}


def test_dtype_sizes() -> None:
    assert {dtype: cabi.host().aclDataTypeSize(dtype) for dtype in SIZES} == SIZES


def test_float16_conversions() -> None:
    """All binary16 values there and back, and rounding to nearest even on the way in."""
    host = cabi.host()
    bits = np.arange(65536, dtype=np.uint16)
    floats = np.array([host.aclFloat16ToFloat(int(b)) for b in bits], np.float32)
    assert np.array_equal(floats, bits.view(np.float16).astype(np.float32), equal_nan=True)
    numbers = bits[~np.isnan(floats)]
    assert [host.aclFloatToFloat16(float(f)) for f in floats[~np.isnan(floats)]] == numbers.tolist()
    assert np.isnan(np.uint16(host.aclFloatToFloat16(float("nan"))).view(np.float16))
    midpoints = (floats[0x03F0:0x0410].astype(np.float64) + floats[0x03F1:0x0411]) / 2
    for value in [*midpoints, 65519.0, 65520.0, 2.0**-25, 2.0**-25 * 1.0001, -1e-30, 1e30]:
        expected = cabi.encode(Dtype.FLOAT16, np.float32(value)).view(np.uint16)
        assert host.aclFloatToFloat16(float(np.float32(value))) == int(expected), value


# ---- aclTensor


def one(getter: str, tensor: int, kind: Any) -> int:
    value = kind()
    assert getattr(cabi.host(), getter)(tensor, ctypes.byref(value)) == SUCCESS
    return value.value


def description(tensor: int) -> dict[str, Any]:
    return {
        "shape": cabi.dims_of("aclGetViewShape", tensor),
        "strides": cabi.dims_of("aclGetViewStrides", tensor),
        "storage": cabi.dims_of("aclGetStorageShape", tensor),
        "offset": one("aclGetViewOffset", tensor, ctypes.c_int64),
        "format": one("aclGetFormat", tensor, ctypes.c_int),
        "dtype": one("aclGetDataType", tensor, ctypes.c_int),
        "data": one("aclGetRawTensorAddr", tensor, ctypes.c_void_p),
    }


def c_dims(values: Sequence[int] | None) -> tuple[Any, int]:
    return (None, 0) if values is None else (int64s(values), len(values))


Tensor = tuple[Sequence[int] | None, Dtype, Sequence[int] | None, int, Format, Sequence[int] | None, int | None]

# Arguments of aclCreateTensor, and the strides that are read back.
DATA = 0x1000
TENSORS: list[tuple[Tensor, list[int]]] = [
    (((2, 3), Dtype.FLOAT, (3, 1), 0, Format.ND, (2, 3), DATA), [3, 1]),
    (((2, 3), Dtype.BF16, None, 0, Format.NCHW, (2, 3), DATA), [3, 1]),
    (((2, 3), Dtype.INT8, (1, 2), 4, Format.ND, (10,), DATA), [1, 2]),
    (((5, 4), Dtype.DOUBLE, (0, 0), 1, Format.FRACTAL_NZ, (2,), DATA), [0, 0]),
    (((), Dtype.FLOAT16, None, 0, Format.ND, (), DATA), []),
    ((None, Dtype.FLOAT16, None, 0, Format.ND, None, DATA), []),
    (((2, 0, 3), Dtype.FLOAT, None, 0, Format.NCL, (0,), None), [0, 3, 1]),
    (((2,) * 9, Dtype.BOOL, None, 0, Format.UNDEFINED, (512,), DATA), [256, 128, 64, 32, 16, 8, 4, 2, 1]),
]


def create(arguments: Tensor) -> int | None:
    shape, dtype, strides, offset, format, storage, data = arguments
    strides_given = None if strides is None else int64s(strides)
    return cabi.host().aclCreateTensor(*c_dims(shape), dtype, strides_given, offset, format, *c_dims(storage), data)


def expected_description(arguments: Tensor, strides: list[int]) -> dict[str, Any]:
    shape, dtype, _, offset, format, storage, data = arguments
    return {
        "shape": list(shape or ()),
        "strides": strides,
        "storage": list(storage or ()),
        "offset": offset,
        "format": format,
        "dtype": dtype,
        "data": data,
    }


@pytest.mark.parametrize(("arguments", "strides"), TENSORS)
def test_tensor_tells_what_it_was_told(arguments: Tensor, strides: list[int]) -> None:
    tensor = create(arguments)
    assert tensor
    got = description(tensor)
    if 0 in (arguments[0] or ()):  # an empty tensor's strides are unused: only their number matters
        assert len(got["strides"]) == len(strides)
        got["strides"] = strides
    assert got == expected_description(arguments, strides)
    assert cabi.host().aclDestroyTensor(tensor) == SUCCESS


@pytest.mark.parametrize("dtype", Dtype, ids=lambda dtype: dtype.name)
def test_tensor_of_every_dtype_and_format(dtype: Dtype) -> None:
    """The operator decides if it supports them."""
    for format in Format:
        tensor = create(((2, 2), dtype, None, 0, format, (4,), DATA))
        assert tensor
        assert description(tensor)["dtype"] == dtype
        assert description(tensor)["format"] == format
        assert cabi.host().aclDestroyTensor(tensor) == SUCCESS


def test_tensor_copies_its_dims() -> None:
    shape, strides, storage = int64s([2, 3]), int64s([3, 1]), int64s([6])
    tensor = cabi.host().aclCreateTensor(shape, 2, Dtype.FLOAT, strides, 0, Format.ND, storage, 1, DATA)
    shape[0] = strides[0] = storage[0] = 99
    got = description(tensor)
    assert (got["shape"], got["strides"], got["storage"]) == ([2, 3], [3, 1], [6])
    assert cabi.host().aclDestroyTensor(tensor) == SUCCESS


def test_tensor_without_dims_it_claims() -> None:
    host, dims = cabi.host(), int64s([2, 3])
    assert host.aclCreateTensor(None, 2, Dtype.FLOAT, None, 0, Format.ND, dims, 2, DATA) is None
    assert host.aclCreateTensor(dims, 2, Dtype.FLOAT, None, 0, Format.ND, None, 2, DATA) is None


def test_tensor_described_anew() -> None:
    host = cabi.host()
    (before, _), (after, strides) = TENSORS[0], TENSORS[2]
    tensor = create(before)
    shape, dtype, new_strides, offset, format, storage, data = after
    arguments = (*c_dims(shape), dtype, int64s(new_strides or ()), offset, format, *c_dims(storage), data)
    assert host.aclInitTensor(tensor, *arguments) == SUCCESS
    assert description(tensor) == expected_description(after, strides)
    assert host.aclInitTensor(None, *arguments) == PARAM_NULLPTR
    assert host.aclDestroyTensor(tensor) == SUCCESS


def test_tensor_addresses() -> None:
    host, address = cabi.host(), ctypes.c_void_p()
    tensor = create(TENSORS[0][0])
    assert host.aclSetRawTensorAddr(tensor, 0x2000) == SUCCESS
    assert host.aclGetRawTensorAddr(tensor, ctypes.byref(address)) == SUCCESS
    assert address.value == 0x2000
    assert host.aclSetRawTensorAddr(None, 0x2000) == PARAM_NULLPTR
    assert host.aclGetRawTensorAddr(None, ctypes.byref(address)) == PARAM_NULLPTR
    assert host.aclGetRawTensorAddr(tensor, None) == PARAM_NULLPTR
    assert host.aclDestroyTensor(tensor) == SUCCESS


@pytest.mark.parametrize("getter", ["aclGetViewShape", "aclGetStorageShape", "aclGetViewStrides"])
def test_null_to_a_getter_of_dims(getter: str) -> None:
    function, dims, count = getattr(cabi.host(), getter), ctypes.c_void_p(), ctypes.c_uint64()
    tensor = create(TENSORS[0][0])
    assert function(None, ctypes.byref(dims), ctypes.byref(count)) == PARAM_NULLPTR
    assert getter in cabi.error_text()
    assert function(tensor, None, ctypes.byref(count)) == PARAM_NULLPTR
    assert function(tensor, ctypes.byref(dims), None) == PARAM_NULLPTR
    assert dims.value is None
    assert cabi.host().aclDestroyTensor(tensor) == SUCCESS


@pytest.mark.parametrize("getter", ["aclGetViewOffset", "aclGetFormat", "aclGetDataType"])
def test_null_to_a_getter(getter: str) -> None:
    function, value = getattr(cabi.host(), getter), ctypes.c_int64()
    tensor = create(TENSORS[0][0])
    assert function(None, ctypes.byref(value)) == PARAM_NULLPTR
    assert function(tensor, None) == PARAM_NULLPTR
    assert cabi.host().aclDestroyTensor(tensor) == SUCCESS


# ---- aclScalar, arrays, lists

SCALARS = [*cabi.REAL, *(d for d in cabi.INTEGER if d not in (Dtype.INT4, Dtype.UINT1))]
SCALARS += [Dtype.COMPLEX64, Dtype.COMPLEX128]
NO_SCALARS = [Dtype.DT_UNDEFINED, Dtype.STRING, Dtype.INT4, Dtype.UINT1]


@pytest.mark.parametrize("dtype", SCALARS + NO_SCALARS, ids=lambda dtype: dtype.name)
def test_scalar_of_every_dtype(dtype: Dtype) -> None:
    value = np.zeros(16, np.uint8)
    scalar = cabi.host().aclCreateScalar(value.ctypes.data, dtype)
    assert (scalar is not None) == (dtype in SCALARS)
    assert cabi.host().aclDestroyScalar(scalar) == SUCCESS


def test_scalar_without_value() -> None:
    assert cabi.host().aclCreateScalar(None, Dtype.FLOAT) is None


def elu_of(x: float, alpha: int) -> float:
    """aclnnElu of one number with an aclScalar for alpha."""
    memory, one = Memory(Dtype.FLOAT, ()), cabi.create_scalar(1.0)
    memory.write(x)
    tensor = memory.descriptor()
    call = cabi.Stage1("aclnnInplaceElu", [tensor, alpha, one, one])
    assert call.status == SUCCESS, call.text
    assert call.run() == SUCCESS
    cabi.host().aclDestroyTensor(tensor)
    cabi.host().aclDestroyScalar(one)
    return float(memory.read())


def test_scalar_copies_its_value() -> None:
    value = ctypes.c_float(2.0)
    scalar = cabi.host().aclCreateScalar(ctypes.byref(value), Dtype.FLOAT)
    value.value = 5.0
    assert elu_of(float("-inf"), scalar) == -2.0
    assert cabi.host().aclDestroyScalar(scalar) == SUCCESS


@pytest.mark.parametrize(
    ("dtype", "value", "as_float"),
    [
        (Dtype.FLOAT, 1.5, 1.5),
        (Dtype.DOUBLE, 0.1, float(np.float32(0.1))),
        (Dtype.FLOAT16, 1.0009765625, 1.0009765625),
        (Dtype.BF16, 1.0078125, 1.0078125),
        (Dtype.INT8, -128, -128),
        (Dtype.UINT8, 255, 255),
        (Dtype.INT16, -32768, -32768),
        (Dtype.UINT16, 65535, 65535),
        (Dtype.INT32, -(2**31), -(2**31)),
        (Dtype.UINT32, 2**31, 2**31),
        (Dtype.INT64, 2**40, 2**40),
        (Dtype.UINT64, 2**63, 2**63),
        (Dtype.BOOL, 1, 1),
    ],
)
def test_scalar_as_float(dtype: Dtype, value: float, as_float: float) -> None:
    """-elu(-inf) is alpha."""
    scalar = cabi.create_scalar(value, dtype)
    assert elu_of(float("-inf"), scalar) == -as_float
    assert cabi.host().aclDestroyScalar(scalar) == SUCCESS


@pytest.mark.parametrize(
    ("kind", "ctype"), [("Int", ctypes.c_int64), ("Float", ctypes.c_float), ("Bool", ctypes.c_bool)]
)
def test_arrays(kind: str, ctype: Any) -> None:
    host, size = cabi.host(), ctypes.c_uint64(99)
    create_array, destroy = getattr(host, f"aclCreate{kind}Array"), getattr(host, f"aclDestroy{kind}Array")
    get_size = getattr(host, f"aclGet{kind}ArraySize")
    for count in (0, 1, 5):
        arrays = cabi.live_objects("array")
        array = create_array((ctype * count)(), count)
        assert cabi.live_objects("array") == arrays + 1
        assert get_size(array, ctypes.byref(size)) == SUCCESS
        assert size.value == count
        assert get_size(array, None) == PARAM_NULLPTR
        assert destroy(array) == SUCCESS
        assert cabi.live_objects("array") == arrays
    assert get_size(None, ctypes.byref(size)) == PARAM_NULLPTR
    assert create_array(None, 3) is None


@pytest.mark.parametrize("kind", ["Tensor", "Scalar"])
def test_lists_own_their_elements(kind: str) -> None:
    host, size = cabi.host(), ctypes.c_uint64(99)
    create_list, destroy = getattr(host, f"aclCreate{kind}List"), getattr(host, f"aclDestroy{kind}List")
    get_size = getattr(host, f"aclGet{kind}ListSize")
    before = cabi.live_objects(kind.lower())
    for count in (0, 1, 3):
        elements = [create(TENSORS[0][0]) if kind == "Tensor" else cabi.create_scalar(1.0) for _ in range(count)]
        owner = create_list((ctypes.c_void_p * count)(*elements), count)
        assert owner
        assert cabi.live_objects(kind.lower()) == before + count
        assert get_size(owner, ctypes.byref(size)) == SUCCESS
        assert size.value == count
        assert get_size(owner, None) == PARAM_NULLPTR
        assert destroy(owner) == SUCCESS
        assert cabi.live_objects(kind.lower()) == before
    assert get_size(None, ctypes.byref(size)) == PARAM_NULLPTR
    assert create_list(None, 2) is None


@pytest.mark.parametrize(
    "kind", ["Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"]
)
def test_destroying_null(kind: str) -> None:
    assert getattr(cabi.host(), f"aclDestroy{kind}")(None) == SUCCESS
    assert cabi.error_text() == ""


# ---- executors

NO_EXECUTOR = (ctypes.c_uint64 * 64)()


@pytest.mark.parametrize("function", ["aclSetAclOpExecutorRepeatable", "aclDestroyAclOpExecutor"])
def test_what_is_no_executor(function: str) -> None:
    assert getattr(cabi.host(), function)(None) == INNER_NULLPTR
    assert function in cabi.error_text()
    assert getattr(cabi.host(), function)(ctypes.addressof(NO_EXECUTOR)) == INNER
    assert function in cabi.error_text()


@pytest.mark.parametrize("prefix", ["acl", "Acl"])
@pytest.mark.parametrize("side", ["", "Input", "Output"])
def test_addresses_in_lists(prefix: str, side: str) -> None:
    """The list is checked first, then the executor; no operator here has a list, so every index is out of range."""
    host = cabi.host()
    setter = getattr(host, f"{prefix}SetDynamic{side}TensorAddr")
    tensors = host.aclCreateTensorList((ctypes.c_void_p * 0)(), 0)
    memory, one = Memory(Dtype.FLOAT, ()), cabi.create_scalar(1.0)
    tensor = memory.descriptor()
    call = cabi.Stage1("aclnnInplaceElu", [tensor, one, one, one])
    assert setter(call.executor, 0, 0, None, None) == INNER_NULLPTR
    assert setter(None, 0, 0, tensors, None) == INNER_NULLPTR
    assert setter(call.executor, 7, 0, tensors, None) == PARAM_INVALID
    assert call.run() == SUCCESS
    assert host.aclDestroyTensor(tensor) == SUCCESS
    assert host.aclDestroyScalar(one) == SUCCESS
    assert host.aclDestroyTensorList(tensors) == SUCCESS


# ---- the rest of acl_meta.h


def test_init_and_finalize() -> None:
    assert cabi.host().aclnnInit(None) == SUCCESS
    assert cabi.host().aclnnFinalize() == SUCCESS


def test_operators_compiled_in_advance_are_not_loaded(tmp_path: Path) -> None:
    """The statuses of CANN's own functions, though nothing is loaded."""
    host = cabi.host()
    assert [host.aclnnReselectStaticKernel() for _ in range(200)] == [SUCCESS] * 200
    with_path = host.aclnnReselectStaticKernelWithPath
    assert with_path(os.fsencode(tmp_path)) == SUCCESS
    assert with_path(None) == PARAM_NULLPTR
    assert cabi.error_text() == "aclnnReselectStaticKernelWithPath: staticKernelPath is null"
    for path in (b"", os.fsencode(tmp_path / "absent")):
        assert with_path(path) == PARAM_INVALID
        assert f'staticKernelPath is "{path.decode()}", expected a path that exists' in cabi.error_text()


def test_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No effect without the variable; with it, files below its folder that contain the tensors' bytes."""
    host, memory = cabi.host(), Memory(Dtype.FLOAT, (2, 3))
    memory.write([1.25, 2.5, 5.0])
    tensors = (ctypes.c_void_p * 2)(memory.descriptor(), memory.descriptor())
    monkeypatch.delenv("ACLNN_TORCH_DUMP_DIR", raising=False)
    assert host.aclDumpOpTensors(b"Elu", b"elu_1", tensors, 1, 1, None) == SUCCESS
    monkeypatch.setenv("ACLNN_TORCH_DUMP_DIR", str(tmp_path))
    assert host.aclDumpOpTensors(b"Elu", b"elu_1", tensors, 1, 1, None) == SUCCESS, cabi.error_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len([path for path in files if memory.view.tobytes() in path.read_bytes()]) == 2
    for tensor in tensors:
        assert host.aclDestroyTensor(tensor) == SUCCESS


def dump(type: str, name: str) -> int:
    """The status of writing one tensor of three numbers."""
    memory = Memory(Dtype.FLOAT, (3,))
    memory.write([1.25, 2.5, 5.0])
    tensors = (ctypes.c_void_p * 1)(memory.descriptor())
    status: int = cabi.host().aclDumpOpTensors(type.encode(), name.encode(), tensors, 1, 0, None)
    assert cabi.host().aclDestroyTensor(tensors[0]) == SUCCESS
    return status


def test_a_dump_stays_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any operator names; different names give different files, readable by their user only."""
    folder = tmp_path / "dumps"
    (folder / "Elu.").mkdir(parents=True)
    (tmp_path / "a.b").mkdir()
    monkeypatch.setenv("ACLNN_TORCH_DUMP_DIR", str(folder))
    for type, name in (("../a", "b/c"), ("Elu", "/../../out"), ("Elu", "a/b"), ("Elu", "a%2Fb"), ("E\n", "\x7f")):
        assert dump(type, name) == SUCCESS, cabi.error_text()
    files = {path.name for path in tmp_path.rglob("*") if path.is_file() and path.parent == folder}
    names = {"..%2Fa.b%2Fc", "Elu.%2F..%2F..%2Fout", "Elu.a%2Fb", "Elu.a%252Fb", "E%0A.%7F"}
    assert files == {f"{name}.input.0.bin" for name in names}
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == len(names)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()} == {0o600}


HOSTILE = {
    "symbolic link": (lambda path, victim: path.symlink_to(victim), "is a symbolic link, which is not followed"),
    "hard link": (lambda path, victim: path.hardlink_to(victim), "has another name too (a hard link)"),
    "pipe": (lambda path, victim: os.mkfifo(path), "is neither a regular file nor a device"),
    "folder": (lambda path, victim: path.mkdir(), "Is a directory"),
    "file of another user": (lambda path, victim: (path.touch(), os.chown(path, 4242, 4242)), "another user (4242)"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_is_written_where_a_name_leads_elsewhere(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dumps and traces refuse files that another user may have placed at their path."""
    if "user" in kind and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    victim, path = tmp_path / "victim", tmp_path / "Elu.x.input.0.bin"
    victim.write_text("precious")
    place, reason = HOSTILE[kind]
    place(path, victim)
    monkeypatch.setenv("ACLNN_TORCH_DUMP_DIR", str(tmp_path))
    assert dump("Elu", "x") == INNER
    text = cabi.error_text()
    assert f"aclDumpOpTensors: cannot write {path}" in text
    assert reason in text
    assert cabi.host().aclHostTrace(os.fsencode(path)) == 100000
    text = cabi.error_text()
    assert f"aclHostTrace: {path} cannot be opened for writing" in text
    assert reason in text
    assert victim.read_text() == "precious"


def test_a_shorter_dump_replaces_a_longer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "Elu.x.input.0.bin"
    path.write_bytes(bytes(100))
    monkeypatch.setenv("ACLNN_TORCH_DUMP_DIR", str(tmp_path))
    assert dump("Elu", "x") == SUCCESS, cabi.error_text()
    assert struct.unpack("3f", path.read_bytes()) == (1.25, 2.5, 5.0)


def test_error_text() -> None:
    """Newest first, once, and only on the thread whose calls failed."""
    host = cabi.host()
    host.aclDestroyAclOpExecutor(None)
    host.aclSetAclOpExecutorRepeatable(None)
    elsewhere: list[str] = []
    thread = threading.Thread(target=lambda: elsewhere.append(cabi.error_text()))
    thread.start()
    thread.join()
    text = cabi.error_text()
    assert elsewhere == [""]
    assert 0 <= text.index("aclSetAclOpExecutorRepeatable") < text.index("aclDestroyAclOpExecutor")
    assert host.aclGetRecentErrMsg() is None


def test_products() -> None:
    host = cabi.host()
    for name in cabi.PRODUCTS:
        with cabi.product(name):
            assert host.aclHostGetProduct().decode() == name
    with cabi.product("Ascend310P"):
        assert host.aclHostSetProduct(b"Ascend910B2") == SUCCESS  # a SoC name selects its product
        assert host.aclHostGetProduct() == b"Ascend910B"
        assert host.aclHostSetProduct(b"Ascend9000") == 100000
        assert host.aclHostGetProduct() == b"Ascend910B"


def test_live_objects_of_no_kind() -> None:
    assert cabi.live_objects("unicorn") == -1
