"""The private formats of tensors: the results of conversions, and their memory.

The layouts come from CANN's documents of its data formats, the sizes from those of the functions.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.aten_ops.stored import FORMATS, StoredMemory
from tests.aten_ops.sweep import LIBRARY, Caller
from tests.cabi import PARAM_INVALID, PARAM_NULLPTR, RUNTIME_ERROR, SUCCESS, Dtype, Format

pytestmark = pytest.mark.usefixtures("library")


# Products with these have at most eight bits, so that BFLOAT16 represents them, too.
LEFT = np.resize([1, *[0] * 10, 2], (2, 19))


@pytest.fixture(scope="module")
def library() -> Iterator[ctypes.CDLL]:
    """The prefix's operators, which also make the descriptors."""
    before = cabi.host
    found = Caller().library
    with cabi.product("host"):
        yield found
    cabi.host = before


def call(library: ctypes.CDLL, name: str, *arguments: Any) -> int:
    """Both stages; returns the first status other than 0."""
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    stage1 = getattr(library, f"{name}GetWorkspaceSize")
    stage1.argtypes = None
    status = stage1(*arguments, ctypes.byref(size), ctypes.byref(executor))
    if status != SUCCESS:
        return status
    stage2 = getattr(library, name)
    stage2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    return stage2(None, size, executor, None) or library.aclrtSynchronizeStream(None)


def numbers(*shape: int) -> np.ndarray:
    """Small numbers without equal neighbours."""
    return np.arange(math.prod(shape)).reshape(shape) % 61 + 1


@pytest.mark.parametrize(
    ("format", "of", "shape"),
    [
        ("NZ", Format.ND, (17, 35)),
        ("NZ", Format.NCL, (2, 17, 3)),
        ("NZ", Format.NCHW, (2, 3, 4, 33)),
        ("NC1HWC0", Format.NCHW, (2, 17, 3, 2)),
        ("FRACTAL_Z", Format.NCHW, (17, 18, 3, 2)),
        ("NDC1HWC0", Format.NCDHW, (2, 17, 2, 3, 2)),
        ("FRACTAL_Z_3D", Format.NCDHW, (17, 18, 2, 3, 2)),
    ],
)
@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.FLOAT, Dtype.INT8])
def test_a_cast_there_and_back(
    library: ctypes.CDLL, format: str, of: Format, shape: tuple[int, ...], dtype: Dtype
) -> None:
    source, blocks, result = cabi.Memory(dtype, shape), StoredMemory(dtype, shape, format), cabi.Memory(dtype, shape)
    source.write(numbers(*shape))
    there = [ctypes.c_void_p(source.descriptor(of)), ctypes.c_void_p(blocks.descriptor())]
    assert call(library, "aclnnNpuFormatCast", *there) == SUCCESS, cabi.error_text()
    assert np.array_equal(blocks.read(), numbers(*shape))
    assert np.count_nonzero(cabi.decode(dtype, blocks.view)) == math.prod(shape)  # the padding is 0
    back = [ctypes.c_void_p(blocks.descriptor()), ctypes.c_void_p(result.descriptor(of))]
    assert call(library, "aclnnNpuFormatCast", *back) == SUCCESS, cabi.error_text()
    assert np.array_equal(result.read(), numbers(*shape))
    assert source.untouched() and blocks.untouched() and result.untouched()
    for tensor in there + back:
        library.aclDestroyTensor(tensor)


def shape_and_format(
    library: ctypes.CDLL, tensor: int, format: int, additional: int = -1
) -> tuple[int, list[int], int]:
    """The results of aclnnNpuFormatCastCalculateSizeAndFormat."""
    shape, rank, actual = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64(), ctypes.c_int()
    status = library.aclnnNpuFormatCastCalculateSizeAndFormat(
        ctypes.c_void_p(tensor), format, additional, ctypes.byref(shape), ctypes.byref(rank), ctypes.byref(actual)
    )
    found = shape[: rank.value] if status == SUCCESS else []
    if status == SUCCESS:
        delete_array(library, shape)
    return status, found, actual.value


def delete_array(library: ctypes.CDLL, array: Any) -> None:
    """C++'s delete[] as the library finds it: a sanitizer has its own."""
    library._ZdaPv(ctypes.cast(array, ctypes.c_void_p))


@pytest.mark.parametrize(
    ("of", "shape", "format", "additional", "expected"),
    [
        (Format.ND, (64, 128), 29, -1, [8, 4, 16, 16]),
        (Format.ND, (3, 64, 100), 29, Dtype.FLOAT16, [3, 7, 4, 16, 16]),
        (Format.ND, (64, 128), 29, Dtype.INT8, [4, 4, 16, 32]),
        (Format.NCHW, (17, 18, 3, 2), 3, -1, [17, 2, 3, 2, 16]),
        (Format.NCHW, (17, 18, 3, 2), 4, -1, [12, 2, 16, 16]),
        (Format.NCDHW, (17, 18, 5, 3, 2), 32, -1, [17, 5, 2, 3, 2, 16]),
        (Format.NCDHW, (17, 18, 5, 3, 2), 33, -1, [60, 2, 16, 16]),
    ],
)
def test_sizes_of_a_cast(
    library: ctypes.CDLL, of: Format, shape: tuple[int, ...], format: int, additional: int, expected: list[int]
) -> None:
    tensor = cabi.Memory(Dtype.FLOAT16, shape).descriptor(of)
    assert shape_and_format(library, tensor, format, additional) == (SUCCESS, expected, format)
    library.aclDestroyTensor(tensor)


@pytest.mark.parametrize("product", ["Ascend910B", "Ascend950"])
def test_sizes_of_a_volume_for_another_type(library: ctypes.CDLL, product: str) -> None:
    """C0 is that of the other type, 32 bytes; only of FRACTAL_NZ does Ascend950 have formats for it."""
    volume = cabi.Memory(Dtype.FLOAT16, (17, 18, 5, 3, 2)).descriptor(Format.NCDHW)
    with cabi.product(product):
        assert shape_and_format(library, volume, 32, Dtype.INT8) == (SUCCESS, [17, 5, 1, 3, 2, 32], 32)
    library.aclDestroyTensor(volume)


def test_a_cast_that_there_is_not(library: ctypes.CDLL) -> None:
    matrix = cabi.Memory(Dtype.FLOAT16, (4, 4)).descriptor()
    assert shape_and_format(library, matrix, 4)[0] == RUNTIME_ERROR  # ND to FRACTAL_Z
    assert "no conversion from format 2 to 4" in cabi.error_text()
    assert shape_and_format(library, matrix, 29, Dtype.INT64)[0] == PARAM_INVALID
    assert "additionalDtype is INT64" in cabi.error_text()
    assert shape_and_format(library, 0, 29)[0] == PARAM_NULLPTR
    assert cabi.error_text().startswith("aclnnNpuFormatCastCalculateSizeAndFormat: srcTensor is null")
    vector = cabi.Memory(Dtype.FLOAT16, (4,)).descriptor()
    assert shape_and_format(library, vector, 29)[0] == PARAM_INVALID
    assert "srcTensor has shape [4], expected 2 to 6 dimensions of 1 or more" in cabi.error_text()
    # Formats of images have 4 dimensions, those of volumes 5.
    plane = cabi.Memory(Dtype.FLOAT16, (1, 17, 3, 2)).descriptor(Format.NCDHW)
    assert shape_and_format(library, plane, 32)[0] == RUNTIME_ERROR
    assert "no conversion from format 30 to 32 of 4 dimensions" in cabi.error_text()
    image = cabi.Memory(Dtype.FLOAT16, (1, 17, 3, 2, 2)).descriptor(Format.NCHW)
    assert shape_and_format(library, image, 3)[0] == RUNTIME_ERROR
    assert "no conversion from format 0 to 3 of 5 dimensions" in cabi.error_text()
    for tensor in (matrix, vector, plane, image):
        library.aclDestroyTensor(tensor)


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((17, 35), Dtype.FLOAT16, 32 * 48),
        ((2, 3, 17, 35), Dtype.BF16, 6 * 32 * 48),
        ((17, 35), Dtype.INT8, 32 * 64),
        ((16, 32), Dtype.INT8, 512),
    ],
)
def test_size_of_a_weight(library: ctypes.CDLL, shape: tuple[int, ...], dtype: Dtype, expected: int) -> None:
    size = ctypes.c_uint64()
    array = cabi.create_int_array(shape)
    sized = library.aclnnCalculateMatmulWeightSizeV2
    assert sized(ctypes.c_void_p(array), dtype, ctypes.byref(size)) == SUCCESS
    assert size.value == expected
    if dtype == Dtype.FLOAT16:
        first = library.aclnnCalculateMatmulWeightSize
        assert first(ctypes.c_void_p(array), ctypes.byref(size)) == SUCCESS
        assert size.value == expected
    library.aclDestroyIntArray(ctypes.c_void_p(array))


@pytest.mark.parametrize("shape", [(4,), (1,) * 7, (4, -1), (2**62, 2**62), (0, 4)])
def test_weights_that_have_no_size(library: ctypes.CDLL, shape: tuple[int, ...]) -> None:
    array, size = cabi.create_int_array(shape), ctypes.c_uint64()
    status = library.aclnnCalculateMatmulWeightSizeV2(ctypes.c_void_p(array), Dtype.FLOAT16, ctypes.byref(size))
    assert status == PARAM_INVALID
    assert "tensorShape" in cabi.error_text()
    library.aclDestroyIntArray(ctypes.c_void_p(array))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BF16])
def test_a_weight_for_a_product(library: ctypes.CDLL, dtype: Dtype, transposed: bool) -> None:
    """As the vendor's programs do: the tensor gets more memory than declared, is converted in place, and multiplied."""
    k, n = 19, 35
    values = numbers(k, n)
    room = cabi.Memory(dtype, (32 * 48,))
    stored = values.T if transposed else values
    room.view[: k * n] = cabi.encode(dtype, np.ascontiguousarray(stored).reshape(-1)).reshape(-1)
    strides = (1, k) if transposed else (n, 1)
    weight = library.aclCreateTensor(
        cabi.int64s((k, n)), 2, dtype, cabi.int64s(strides), 0, Format.ND, cabi.int64s([32 * 48]), 1, room.address
    )
    assert call(library, "aclnnTransMatmulWeight", ctypes.c_void_p(weight)) == SUCCESS, cabi.error_text()
    blocks = StoredMemory(dtype, (k, n), "NZ")
    blocks.view[...] = room.view
    assert np.array_equal(blocks.read(), values)
    assert np.count_nonzero(cabi.decode(dtype, blocks.view)) == values.size  # the padding is 0
    left, product = cabi.Memory(dtype, (2, k)), cabi.Memory(Dtype.FLOAT, (2, n))
    left.write(LEFT)
    tensors = [ctypes.c_void_p(left.descriptor()), ctypes.c_void_p(weight), ctypes.c_void_p(product.descriptor())]
    for name in ("aclnnMm", "aclnnMatmul", "aclnnMatmulWeightNz"):
        assert call(library, name, *tensors, ctypes.c_int8(0)) == SUCCESS, cabi.error_text()
        assert np.array_equal(product.read(), LEFT @ values)
    assert call(library, "aclnnTransMatmulWeight", ctypes.c_void_p(weight)) == PARAM_INVALID  # a second time
    assert "converted before" in cabi.error_text()
    for tensor in tensors:
        library.aclDestroyTensor(tensor)


def test_a_weight_without_room_for_its_padding(library: ctypes.CDLL) -> None:
    memory = cabi.Memory(Dtype.FLOAT16, (19, 35))
    tensor = ctypes.c_void_p(memory.descriptor())
    assert call(library, "aclnnTransMatmulWeight", tensor) == PARAM_INVALID
    assert "reaches outside its storage" in cabi.error_text()
    assert memory.unwritten()
    format = ctypes.c_int()
    assert library.aclGetFormat(tensor, ctypes.byref(format)) == SUCCESS
    assert format.value == Format.ND
    library.aclDestroyTensor(tensor)


def test_a_transposed_view_of_a_weight(library: ctypes.CDLL) -> None:
    """torch_npu's arguments for weight.t(): sizes and strides of the view, blocks of the weight."""
    n, k = 35, 19
    weight = StoredMemory(Dtype.FLOAT16, (n, k), "NZ")
    weight.write(numbers(n, k))
    sizes = weight._sizes()
    view = library.aclCreateTensor(
        cabi.int64s((k, n)), 2, Dtype.FLOAT16, cabi.int64s((1, k)), 0, FORMATS["NZ"],
        cabi.int64s(sizes), len(sizes), weight.address,
    )  # fmt: skip
    left, product = cabi.Memory(Dtype.FLOAT16, (2, k)), cabi.Memory(Dtype.FLOAT, (2, n))
    left.write(LEFT)
    tensors = [ctypes.c_void_p(left.descriptor()), ctypes.c_void_p(view), ctypes.c_void_p(product.descriptor())]
    assert call(library, "aclnnMatmul", *tensors, ctypes.c_int8(0)) == SUCCESS, cabi.error_text()
    assert np.array_equal(product.read(), LEFT @ numbers(n, k).T)
    for tensor in tensors:
        library.aclDestroyTensor(tensor)


def test_a_weight_of_a_convolution(library: ctypes.CDLL) -> None:
    shape = (17, 18, 3, 2)
    weight = cabi.Memory(Dtype.FLOAT, shape)
    weight.write(numbers(*shape))
    array, size = cabi.create_int_array(shape), ctypes.c_uint64()
    sized = library.aclnnCalculateConvolutionWeightSize
    assert sized(ctypes.c_void_p(array), False, ctypes.c_int64(1), Dtype.FLOAT16, ctypes.byref(size)) == SUCCESS
    blocks = StoredMemory(Dtype.FLOAT16, shape, "FRACTAL_Z")
    assert size.value == blocks.elements
    out = library.aclCreateTensor(
        cabi.int64s([size.value, 1, 1, 1]), 4, Dtype.FLOAT16, None, 0, Format.NCHW,
        cabi.int64s([size.value]), 1, blocks.address,
    )  # fmt: skip
    tensors = [ctypes.c_void_p(weight.descriptor(Format.NCHW)), ctypes.c_void_p(out)]
    status = call(library, "aclnnTransConvolutionWeight", tensors[0], False, ctypes.c_int64(1), tensors[1])
    assert status == SUCCESS, cabi.error_text()
    assert np.array_equal(blocks.read(), numbers(*shape))
    assert np.count_nonzero(cabi.decode(Dtype.FLOAT16, blocks.view)) == math.prod(shape)  # the padding is 0
    assert blocks.untouched()
    library.aclDestroyIntArray(ctypes.c_void_p(array))
    for tensor in tensors:
        library.aclDestroyTensor(tensor)


def test_parameters_of_a_quantised_product(library: ctypes.CDLL) -> None:
    scales, offsets = [1.0, 0.1, -2.5], [3.4, -300.0]
    params, size = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_uint64()
    packed = library.aclnnTransQuantParam
    packed.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    given = [(ctypes.c_float * 3)(*scales), 3, (ctypes.c_float * 2)(*offsets), 2]
    assert packed(*given, ctypes.byref(params), ctypes.byref(size)) == SUCCESS
    assert size.value == 16  # rounded up to a multiple
    bits = [struct.unpack("<I", struct.pack("<f", scale))[0] & 0xFFFFE000 for scale in scales]
    expected = [bits[0] | 3 << 37 | 1 << 46, bits[1] | (-256 & 0x1FF) << 37 | 1 << 46, bits[2] | 1 << 46]
    assert params[: size.value] == expected + [0] * 13
    ctypes.CDLL(None).free(params)
    assert packed(given[0], 1, None, 0, ctypes.byref(params), ctypes.byref(size)) == SUCCESS
    assert size.value == 1
    ctypes.CDLL(None).free(params)
    assert packed(None, 0, None, 0, ctypes.byref(params), ctypes.byref(size)) == PARAM_NULLPTR
    assert cabi.error_text().startswith("aclnnTransQuantParam: scaleArray is null")
    for sizes in ((0, 0), (3, 2)):
        assert packed(given[0], sizes[0], None, sizes[1], ctypes.byref(params), ctypes.byref(size)) == PARAM_INVALID
        text = f"scaleSize is {sizes[0]} and offsetSize {sizes[1]}, expected the numbers of elements"
        assert cabi.error_text().startswith(f"aclnnTransQuantParam: {text}")


def test_the_library_is_the_prefix(library: ctypes.CDLL) -> None:
    assert library._name == str(LIBRARY)
