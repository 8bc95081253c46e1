"""The profiler: acl.prof of CANN's Python interface."""

from __future__ import annotations

from ._prototypes import attributes

_FUNCTIONS = """
    init = aclprofInit(char* profiler_result_path, size_t len(profiler_result_path))
    finalize = aclprofFinalize()
    create_config = void* aclprofCreateConfig(
        uint32_t[] device_ids, uint32_t len(device_ids), int32_t aicore_metrics, void* aicore_events, uint64_t
        data_type_config)
    destroy_config = aclprofDestroyConfig(void* profiler_config)
    set_config = aclprofSetConfig(int32_t config_type, char* config, size_t len(config))
    start = aclprofStart(void* profiler_config)
    stop = aclprofStop(void* profiler_config)
    create_stamp = void* aclprofCreateStamp()
    destroy_stamp = void aclprofDestroyStamp(void* stamp)
    set_stamp_trace_message = aclprofSetStampTraceMessage(void* stamp, char* msg, uint32_t msg_len)
    mark = aclprofMark(void* stamp)
    mark_ex = aclprofMarkEx(char* msg, size_t len(msg), void* stream)
    push = aclprofPush(void* stamp)
    pop = aclprofPop()
    range_start = aclprofRangeStart(void* stamp, out uint32_t range_id)
    range_stop = aclprofRangeStop(uint32_t range_id)
    create_step_info = void* aclprofCreateStepInfo()
    destroy_step_info = void aclprofDestroyStepInfo(void* step_info)
    get_step_timestamp = aclprofGetStepTimestamp(void* step_info, int32_t tag, void* stream)
"""
_REFUSED = {
    "subscriptions are for offline models (OM files), which it does not run": """
        create_subscribe_config destroy_subscribe_config get_model_id get_op_desc_size get_op_duration get_op_end
        get_op_name get_op_name_len get_op_name_v2 get_op_num get_op_start get_op_type get_op_type_len get_op_type_v2
        model_subscribe model_un_subscribe model_unsubscribe
    """
}

__getattr__, __dir__ = attributes(globals(), _FUNCTIONS, _REFUSED)
