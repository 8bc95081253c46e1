"""CANN's Python interface (pyACL) on the host CANN: the names, arguments and results that CANN documents.

``rt`` has devices, memory, streams, events and callbacks, ``util`` conversions between addresses and bytes or arrays,
``prof`` the profiler. Functions that the host CANN does not have raise AttributeError with the reason; ``dir`` of a
module lists those that it has. docs/emulation/python.md of aclnn_torch says what differs from CANN.
"""

from __future__ import annotations

import ctypes

from . import blas, fv, himpi, mdl, media, op, prof, rt, util  # noqa: F401 (CANN's module has them all)
from ._prototypes import attributes, check_number, library, take

_FUNCTIONS = """
    init = aclInit(optional char* config_path)
    finalize = aclFinalize()
    get_version = aclrtGetVersion(out int32_t major_version, out int32_t minor_version, out int32_t patch_version)
    get_soc_name = char* aclrtGetSocName()
    get_recent_err_msg = char* aclGetRecentErrMsg()
    get_cann_version = aclsysGetCANNVersion(uint32_t name, out aclCANNPackageVersion version)
    get_version_str = aclsysGetVersionStr(char* pkg_name, out char[128] version_str)
    get_cann_attribute = aclGetCannAttribute(int32_t cann_attr, out int32_t value)
    get_device_capability = aclGetDeviceCapability(uint32_t device_id, int32_t device_info, out int64_t value)
    data_type_size = size_t aclDataTypeSize(int32_t data_type)
    float16_to_float = float aclFloat16ToFloat(uint16_t value)
    float_to_float16 = uint16_t aclFloatToFloat16(float value)
    create_data_buffer = void* aclCreateDataBuffer(void* data, size_t size)
    destroy_data_buffer = aclDestroyDataBuffer(void* data_buffer)
    update_data_buffer = aclUpdateDataBuffer(void* data_buffer, void* data, size_t size)
    get_data_buffer_addr = void* aclGetDataBufferAddr(void* data_buffer)
    get_data_buffer_size = size_t aclGetDataBufferSizeV2(void* data_buffer)
    get_data_buffer_size_v2 = size_t aclGetDataBufferSizeV2(void* data_buffer)
    create_tensor_desc = void* aclCreateTensorDesc(int32_t data_type, int32_t len(dims), int64_t[] dims, int32_t format)
    destroy_tensor_desc = void aclDestroyTensorDesc(void* desc)
    get_tensor_desc_type = int32_t aclGetTensorDescType(void* desc)
    get_tensor_desc_format = int32_t aclGetTensorDescFormat(void* desc)
    get_tensor_desc_num_dims = size_t aclGetTensorDescNumDims(void* desc)
    get_tensor_desc_dim_v2 = aclGetTensorDescDimV2(void* desc, size_t index, out int64_t dim_size)
    get_tensor_desc_name = char* aclGetTensorDescName(void* desc)
    set_tensor_desc_name = void aclSetTensorDescName(void* desc, char* name)
    set_tensor_format = aclSetTensorFormat(void* desc, int32_t format)
    set_tensor_shape = aclSetTensorShape(void* desc, int32_t len(dims), int64_t[] dims)
    set_tensor_place_ment = aclSetTensorPlaceMent(void* desc, int32_t mem_type)
    set_tensor_const = aclSetTensorConst(void* desc, void* data, size_t size)
"""
_REFUSED = {
    "its descriptions of tensors are for offline models (OM files), which it does not run": """
        get_tensor_desc_address get_tensor_desc_by_index get_tensor_desc_dim get_tensor_desc_dim_range
        get_tensor_desc_element_count get_tensor_desc_size set_tensor_dynamic_input set_tensor_origin_format
        set_tensor_origin_shape set_tensor_shape_range set_tensor_storage_format set_tensor_storage_shape
        set_tensor_value_range trans_tensor_desc_format
    """,
    "it does not implement this function of the runtime": "finalize_reference",
}


def app_log(*arguments: object) -> None:
    """``acl.app_log(log_level, message)``: aclAppLog of CANN's C interface; the host CANN discards the message."""
    level, message = take("acl.app_log", "int32_t log_level, char* message", arguments)
    library.aclAppLog(level, b"", b"", 0, b"%s", message)


def get_cann_attribute_list(*arguments: object) -> tuple[list[int], int, int]:
    """``attributes, number, ret = acl.get_cann_attribute_list()``: what the product supports."""
    check_number("acl.get_cann_attribute_list", "", arguments)
    attributes_, number = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
    ret = library.aclGetCannAttributeList(ctypes.byref(attributes_), ctypes.byref(number))
    return attributes_[: number.value], number.value, ret


__getattr__, __dir__ = attributes(globals(), _FUNCTIONS, _REFUSED)
