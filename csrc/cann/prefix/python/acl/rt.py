"""Devices, contexts, memory, streams, events and callbacks: acl.rt of CANN's Python interface."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

from ._prototypes import attributes, library, take, taker

_FUNCTIONS = """
    set_device = aclrtSetDevice(int32_t device_id)
    reset_device = aclrtResetDevice(int32_t device_id)
    reset_device_force = aclrtResetDeviceForce(int32_t device_id)
    get_device = aclrtGetDevice(out int32_t device_id)
    get_device_count = aclrtGetDeviceCount(out uint32_t count)
    get_device_info = aclrtGetDeviceInfo(uint32_t device_id, uint32_t attr, out int64_t value)
    get_device_utilization_rate = aclrtGetDeviceUtilizationRate(int32_t device_id, out aclrtUtilizationInfo info)
    get_run_mode = aclrtGetRunMode(out int32_t run_mode)
    set_device_sat_mode = aclrtSetDeviceSatMode(int32_t mode)
    get_device_sat_mode = aclrtGetDeviceSatMode(out int32_t mode)
    set_device_res_limit = aclrtSetDeviceResLimit(int32_t device_id, uint32_t type, uint32_t value)
    get_device_res_limit = aclrtGetDeviceResLimit(int32_t device_id, uint32_t type, out uint32_t value)
    reset_device_res_limit = aclrtResetDeviceResLimit(int32_t device_id)
    get_res_in_current_thread = aclrtGetResInCurrentThread(int32_t type, out uint32_t value)
    device_can_access_peer = aclrtDeviceCanAccessPeer(
        out int32_t can_access_peer, int32_t device_id, int32_t peer_device_id)
    device_enable_peer_access = aclrtDeviceEnablePeerAccess(int32_t peer_device_id, uint32_t flags)
    device_disable_peer_access = aclrtDeviceDisablePeerAccess(int32_t peer_device_id)
    device_peer_access_status = aclrtDevicePeerAccessStatus(
        int32_t device_id, int32_t peer_device_id, out int32_t status)
    device_get_bare_tgid = aclrtDeviceGetBareTgid(out int32_t pid)
    synchronize_device = aclrtSynchronizeDevice()
    synchronize_device_with_timeout = aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
    set_op_wait_timeout = aclrtSetOpWaitTimeout(uint32_t timeout)
    set_op_execute_time_out = aclrtSetOpExecuteTimeOut(uint32_t timeout)
    set_op_execute_timeout_v2 = aclrtSetOpExecuteTimeOutV2(uint64_t timeout, out uint64_t actual_timeout)
    get_last_error = aclrtGetLastError(int32_t level)
    peek_at_last_error = aclrtPeekAtLastError(int32_t level)

    create_context = aclrtCreateContext(out void* context, int32_t device_id)
    destroy_context = aclrtDestroyContext(void* context)
    set_context = aclrtSetCurrentContext(void* context)
    get_context = aclrtGetCurrentContext(out void* context)
    set_sys_param_opt = aclrtSetSysParamOpt(int32_t opt, int64_t value)
    get_sys_param_opt = aclrtGetSysParamOpt(int32_t opt, out int64_t value)
    ctx_set_sys_param_opt = aclrtCtxSetSysParamOpt(int32_t opt, int64_t value)
    ctx_get_sys_param_opt = aclrtCtxGetSysParamOpt(int32_t opt, out int64_t value)

    malloc = aclrtMalloc(out void* dev_ptr, size_t size, int32_t policy)
    malloc_align32 = aclrtMallocAlign32(out void* dev_ptr, size_t size, int32_t policy)
    free = aclrtFree(void* dev_ptr)
    malloc_host = aclrtMallocHost(out void* host_ptr, size_t size)
    free_host = aclrtFreeHost(void* host_ptr)
    get_mem_info = aclrtGetMemInfo(int32_t attr, out size_t free, out size_t total)
    memset = aclrtMemset(void* dev_ptr, size_t max_count, int32_t value, size_t count)
    memset_async = aclrtMemsetAsync(void* dev_ptr, size_t max_count, int32_t value, size_t count, void* stream)
    memcpy = aclrtMemcpy(void* dst, size_t dest_max, void* src, size_t count, int32_t kind)
    memcpy_async = aclrtMemcpyAsync(void* dst, size_t dest_max, void* src, size_t count, int32_t kind, void* stream)
    cmo_async = aclrtCmoAsync(void* src, size_t size, int32_t cmo_type, void* stream)
    host_register = aclrtHostRegister(void* ptr, uint64_t size, int32_t type, out void* dev_ptr)
    host_register_v2 = aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag)
    host_get_device_pointer = aclrtHostGetDevicePointer(void* host_ptr, out void* dev_ptr, uint32_t flag)
    host_unregister = aclrtHostUnregister(void* ptr)
    reserve_mem_address = aclrtReserveMemAddress(
        out void* vir_ptr, size_t size, size_t alignment, void* expect_ptr, uint64_t flags)
    release_mem_address = aclrtReleaseMemAddress(void* vir_ptr)
    malloc_physical = aclrtMallocPhysical(out void* handle, size_t size, aclrtPhysicalMemProp* prop, uint64_t flags)
    free_physical = aclrtFreePhysical(void* handle)
    map_mem = aclrtMapMem(void* vir_ptr, size_t size, size_t offset, void* handle, uint64_t flags)
    unmap_mem = aclrtUnmapMem(void* vir_ptr)
    mem_get_allocation_granularity = aclrtMemGetAllocationGranularity(
        aclrtPhysicalMemProp* prop, int32_t option, out size_t granularity)
    mem_export_to_shareable_handle = aclrtMemExportToShareableHandle(
        void* handle, int32_t handle_type, uint64_t flags, out uint64_t shareable_handle)
    mem_import_from_shareable_handle = aclrtMemImportFromShareableHandle(
        uint64_t shareable_handle, int32_t device_id, out void* handle)
    mem_set_pid_to_shareable_handle = aclrtMemSetPidToShareableHandle(
        uint64_t shareable_handle, int32_t[] pids, size_t len(pids))
    ipc_mem_get_export_key = aclrtIpcMemGetExportKey(
        void* dev_ptr, size_t size, out char[len] key, size_t len, uint64_t flag)
    ipc_mem_set_import_pid = aclrtIpcMemSetImportPid(char* key, int32_t[] pids, size_t len(pids))
    ipc_mem_import_by_key = aclrtIpcMemImportByKey(out void* dev_ptr, char* key, uint64_t flag)
    ipc_mem_close = aclrtIpcMemClose(char* key)

    create_stream = aclrtCreateStream(out void* stream)
    create_stream_with_config = aclrtCreateStreamWithConfig(out void* stream, int32_t priority, int32_t flag)
    destroy_stream = aclrtDestroyStream(void* stream)
    destroy_stream_force = aclrtDestroyStreamForce(void* stream)
    synchronize_stream = aclrtSynchronizeStream(void* stream)
    synchronize_stream_with_timeout = aclrtSynchronizeStreamWithTimeout(void* stream, int32_t timeout)
    stream_query = aclrtStreamQuery(void* stream, out int32_t status)
    stream_get_id = aclrtStreamGetId(void* stream, out int32_t stream_id)
    stream_wait_event = aclrtStreamWaitEvent(void* stream, void* event)
    set_stream_failure_mode = aclrtSetStreamFailureMode(void* stream, uint64_t mode)
    set_stream_overflow_switch = aclrtSetStreamOverflowSwitch(void* stream, uint32_t flag)
    get_stream_overflow_switch = aclrtGetStreamOverflowSwitch(void* stream, out uint32_t flag)
    set_stream_res_limit = aclrtSetStreamResLimit(void* stream, int32_t type, uint32_t value)
    get_stream_res_limit = aclrtGetStreamResLimit(void* stream, int32_t type, out uint32_t value)
    reset_stream_res_limit = aclrtResetStreamResLimit(void* stream)
    use_stream_res_in_current_thread = aclrtUseStreamResInCurrentThread(void* stream)
    unuse_stream_res_in_current_thread = aclrtUnuseStreamResInCurrentThread(void* stream)

    create_event = aclrtCreateEvent(out void* event)
    create_event_with_flag = aclrtCreateEventWithFlag(out void* event, uint32_t flag)
    create_event_ex_with_flag = aclrtCreateEventExWithFlag(out void* event, uint32_t flag)
    destroy_event = aclrtDestroyEvent(void* event)
    record_event = aclrtRecordEvent(void* event, void* stream)
    reset_event = aclrtResetEvent(void* event, void* stream)
    query_event = aclrtQueryEvent(void* event, out int32_t status)
    query_event_status = aclrtQueryEventStatus(void* event, out int32_t status)
    query_event_wait_status = aclrtQueryEventWaitStatus(void* event, out int32_t status)
    synchronize_event = aclrtSynchronizeEvent(void* event)
    synchronize_event_with_timeout = aclrtSynchronizeEventWithTimeout(void* event, int32_t timeout)
    event_elapsed_time = aclrtEventElapsedTime(out float ms, void* start_event, void* end_event)
    event_get_timestamp = aclrtEventGetTimestamp(void* event, out uint64_t timestamp)

    subscribe_report = aclrtSubscribeReport(uint64_t thread_id, void* stream)
    unsubscribe_report = aclrtUnSubscribeReport(uint64_t thread_id, void* stream)
    process_report = aclrtProcessReport(int32_t timeout)
"""
_REFUSED = {
    "kernels are compiled for a device, and it runs no device code": """
        binary_get_function binary_load binary_load_from_data binary_load_from_file binary_unload create_binary
        destroy_binary get_function_addr get_function_name kernel_args_append kernel_args_append_place_holder
        kernel_args_finalize kernel_args_get_handle_mem_size kernel_args_get_mem_size
        kernel_args_get_place_holder_buffer kernel_args_init kernel_args_init_by_user_mem kernel_args_para_update
        launch_kernel launch_kernel_with_config register_cpu_func
    """,
    "it does not implement this function of the runtime": """
        allocator_create_desc allocator_destroy_desc allocator_register allocator_set_alloc_advise_func_to_desc
        allocator_set_alloc_func_to_desc allocator_set_free_func_to_desc allocator_set_get_addr_from_block_func_to_desc
        allocator_set_obj_to_desc allocator_unregister create_group_info create_notify ctx_get_current_default_stream
        destroy_group_info destroy_notify device_get_stream_priority_range device_get_uuid device_task_abort
        get_all_group_info get_device_capability get_device_id_from_exception_info get_devices_topo
        get_error_code_from_exception_info get_event_avail_num get_event_id get_group_count get_group_info_detail
        get_logic_dev_id_by_phy_dev_id get_logic_dev_id_by_user_dev_id get_mem_uce_info get_memcpy_desc_size
        get_notify_id get_op_execute_timeout get_op_timeout_interval get_overflow_status get_phy_dev_id_by_logic_dev_id
        get_stream_available_num get_stream_id_from_exception_info get_task_id_from_exception_info
        get_thread_id_from_exception_info get_thread_last_task_id get_user_dev_id_by_logic_dev_id malloc_cached
        malloc_for_task_scheduler malloc_host_with_cfg malloc_with_cfg mem_flush mem_invalidate mem_uce_repair memcpy2d
        memcpy2d_async memcpy_async_with_condition memcpy_async_with_desc notify_batch_reset notify_get_export_key
        notify_import_by_key notify_set_import_pid pointer_get_attributes query_device_status record_notify reduce_async
        reset_overflow_status set_exception_info_callback set_group set_memcpy_desc set_ts_device stream_abort
        wait_and_reset_notify
    """,
    "only the C function is there": """
        value_wait value_write
    """,
}


def get_primary_ctx_state(*arguments: object) -> tuple[int, int, int]:
    """``active, flags, ret = acl.rt.get_primary_ctx_state(device_id)``: flags is kept for CANN's use, and 0."""
    (device,) = take("acl.rt.get_primary_ctx_state", "int32_t device_id", arguments)
    active = ctypes.c_int32()
    ret = library.aclrtGetPrimaryCtxState(device, None, ctypes.byref(active))
    return active.value, 0, ret


class _StreamAttribute(ctypes.Union):
    """aclrtStreamAttrValue."""

    _fields_ = [
        ("failureMode", ctypes.c_uint64),
        ("overflowSwitch", ctypes.c_uint32),
        ("userCustomTag", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 4),
    ]


# The member that has the value of an attribute; of others, all of it.
_MEMBERS = {1: "failureMode", 2: "overflowSwitch", 3: "userCustomTag"}


def set_stream_attribute(*arguments: object) -> int:
    """``ret = acl.rt.set_stream_attribute(stream, attr, value)``: value is a dict with the attribute's member."""
    title = "acl.rt.set_stream_attribute"
    stream, attribute, given = take(title, "void* stream, int32_t attr, object value", arguments)
    if not isinstance(given, dict):
        raise TypeError(f"{title}: value is {type(given).__name__}, expected dict")
    value = _StreamAttribute()
    member = _MEMBERS.get(attribute, "reserved")
    what = f"{title}: value[{member!r}]"
    if member in given and member != "reserved":
        setattr(value, member, taker("uint64_t", what)(given[member]))
    elif member in given:
        numbers = taker("uint32_t[]", what)(given[member])
        if len(numbers) > len(value.reserved):
            raise TypeError(f"{what} has {len(numbers)} numbers, expected at most {len(value.reserved)}")
        value.reserved[: len(numbers)] = numbers[:]
    return library.aclrtSetStreamAttribute(ctypes.c_void_p(stream), attribute, ctypes.byref(value))


def get_stream_attribute(*arguments: object) -> tuple[dict[str, Any], int]:
    """``value, ret = acl.rt.get_stream_attribute(stream, attr)``: value is a dict with the attribute's member."""
    stream, attribute = take("acl.rt.get_stream_attribute", "void* stream, int32_t attr", arguments)
    value = _StreamAttribute()
    ret = library.aclrtGetStreamAttribute(ctypes.c_void_p(stream), attribute, ctypes.byref(value))
    member = _MEMBERS.get(attribute, "reserved")
    found = getattr(value, member)
    return {member: list(found) if member == "reserved" else found}, ret


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_numbers = itertools.count(1)
_waiting: dict[int, tuple[Callable[[Any], object], Any]] = {}


@_Callback
def _call_back(number: int) -> None:
    """Calls the function that waits under a number; sys.unraisablehook reports its exception."""
    function, argument = _waiting.pop(number)
    function(argument)


def launch_callback(*arguments: Any) -> int:
    """``ret = acl.rt.launch_callback(fn, user_data_list, block_type, stream)``: fn(user_data_list) in stream's order.

    The thread that was subscribed for the stream calls fn, inside acl.rt.process_report, once.
    """
    title = "acl.rt.launch_callback"
    parameters = "object fn, object user_data_list, int32_t block_type, void* stream"
    function, argument, block_type, stream = take(title, parameters, arguments)
    if not callable(function):
        raise TypeError(f"{title}: fn is {type(function).__name__}, expected a function")
    number = next(_numbers)
    _waiting[number] = (function, argument)
    ret = library.aclrtLaunchCallback(_call_back, ctypes.c_void_p(number), block_type, ctypes.c_void_p(stream))
    if ret != 0:
        _waiting.pop(number, None)
    return ret


__getattr__, __dir__ = attributes(globals(), _FUNCTIONS, _REFUSED)
