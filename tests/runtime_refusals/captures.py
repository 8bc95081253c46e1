"""Refusals of captures, captured models and groups of tasks."""

from __future__ import annotations

import struct

from tests.runtime_refusals.refusal import INVALID, NO_HANDLE, RT_INVALID, RT_UNSUPPORTED, Call, Refusal, refused
from tests.runtime_refusals.streams import NO_STREAM

BEGIN: list[Call] = [("aclmdlRICaptureBegin", "stream", 0)]
END: list[Call] = [("aclmdlRICaptureEnd", "stream", "&model"), ("aclmdlRIDestroy", "model")]
FAIL: list[Call] = [("?aclmdlRICaptureEnd", "stream", "&none")]
RECORD: list[Call] = [("aclrtRecordEvent", "ex_event", "stream")]
JOIN: list[Call] = [*RECORD, ("aclrtStreamWaitEvent", "other", "ex_event")]
CONFLICT: list[Call] = [
    *BEGIN,
    ("aclmdlRICaptureBegin", "other", 0),
    *RECORD,
    ("?aclrtStreamWaitEvent", "other", "ex_event"),
]
END_CONFLICT: list[Call] = [*FAIL, ("?aclmdlRICaptureEnd", "other", "&none")]
GROUP: list[Call] = [("aclmdlRICaptureTaskGrpBegin", "stream")]
END_GROUP: list[Call] = [("aclmdlRICaptureTaskGrpEnd", "stream", "&group")]
MODEL: list[Call] = [*BEGIN, *GROUP, *END_GROUP, END[0]]
UPDATE: list[Call] = [*MODEL, ("aclmdlRICaptureTaskUpdateBegin", "other", "group")]
END_UPDATE: list[Call] = [("aclmdlRICaptureTaskUpdateEnd", "other"), ("aclrtSynchronizeStream", "other"), END[1]]
CAPTURED = (
    "the stream is being captured, so that its tasks do not run; call this function before aclmdlRICaptureBegin or "
    "after aclmdlRICaptureEnd"
)
OF_DEVICE = (
    "stream {stream} of device 0 is being captured; call this function before aclmdlRICaptureBegin or after "
    "aclmdlRICaptureEnd"
)
MODES = "expected ACL_MODEL_RI_CAPTURE_MODE_GLOBAL (0), THREAD_LOCAL (1) or RELAXED (2)"
INVALIDATED = (
    "no model can come of the capture any more: a stream of one capture waited for an event of another; end it with "
    "aclmdlRICaptureEnd, and capture anew"
)
FORBIDDEN = (
    "a stream is being captured, in a mode that forbids this thread calls that wait for the device; if the capture "
    "does not depend on what is copied or set, set the thread's mode to ACL_MODEL_RI_CAPTURE_MODE_RELAXED with "
    "aclmdlRICaptureThreadExchangeMode for the time of the call"
)
PAGEABLE = "which is pageable host memory; captured copies need memory of aclrtMallocHost"
NOT_CAPTURED = "the stream is not being captured; call aclmdlRICaptureBegin first"
STATUS = "ACL_ERROR_STREAM_TASK_GROUP_STATUS"
INTERRUPTED = "ACL_ERROR_STREAM_TASK_GROUP_INTR"
OPERATORS = "which takes calls of operators alone; call this function after"
UPDATING = "the stream is updating a group of tasks; call aclmdlRICaptureTaskUpdateEnd first"
CAPTURES = [
    *refused(
        INVALID,
        "stream is a null pointer, and the default stream cannot be captured; create a stream with aclrtCreateStream",
        ("aclmdlRICaptureBegin", None, 0),
    ),
    *refused(RT_INVALID, f"mode is 3, {MODES}", ("aclmdlRICaptureBegin", "stream", 3)),
    *refused(RT_INVALID, f"mode is -1, {MODES}", ("aclmdlRICaptureThreadExchangeMode", struct.pack("i", -1))),
    *refused(
        INVALID,
        "status and modelRI are null pointers, expected one that is not",
        ("aclmdlRICaptureGetInfo", "stream", None, None),
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_NOT_CAPTURED",
        NOT_CAPTURED,
        ("aclmdlRICaptureEnd", "stream", "&none"),
        ("aclmdlRICaptureTaskGrpBegin", "stream"),
        ("aclmdlRICaptureTaskGrpEnd", "stream", "&none"),
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURED",
        "the stream is being captured already; call aclmdlRICaptureEnd first",
        ("aclmdlRICaptureBegin", "stream", 0),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURED",
        CAPTURED,
        ("aclrtDestroyStream", "stream"),
        ("aclrtDestroyStreamForce", "stream"),
        ("aclrtSynchronizeStream", "stream"),
        ("aclrtSynchronizeStreamWithTimeout", "stream", 0),
        ("aclrtStreamQuery", "stream", "out"),
        ("aclmdlRICaptureTaskUpdateEnd", "stream"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURED",
        CAPTURED,
        ("aclmdlRIExecuteAsync", "model", "other"),
        ("aclmdlRICaptureTaskUpdateBegin", "other", "group"),
        before=[*MODEL, ("aclmdlRICaptureBegin", "other", 0)],
        after=[("aclmdlRICaptureEnd", "other", "&model2"), ("aclmdlRIDestroy", "model2"), END[1]],
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURED",
        OF_DEVICE,
        ("aclrtSynchronizeDevice",),
        ("aclrtSynchronizeDeviceWithTimeout", 0),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT",
        FORBIDDEN,
        ("aclrtMemcpy", "memory", 8, "host", 8, 1),
        ("aclrtMemset", "memory", 8, 0, 8),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC",
        FORBIDDEN,
        ("aclrtMemcpyAsync", "memory", 8, "host", 8, 1, "other"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        RT_INVALID,
        f"the stream is being captured, and src is {{host}}, {PAGEABLE}",
        ("aclrtMemcpyAsync", "memory", 8, "host", 8, 1, "stream"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        RT_INVALID,
        f"the stream is being captured, and dst is {{host+8}}, {PAGEABLE}",
        ("aclrtMemcpyAsync", "host+8", 8, "memory", 8, 2, "stream"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_STREAM_CAPTURE_CONFLICT",
        "the stream is being captured into one model, and the event was recorded in the capture of another; no model "
        "can come of either",
        ("aclrtStreamWaitEvent", "other", "ex_event"),
        before=CONFLICT[:-1],
        after=END_CONFLICT,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED",
        INVALIDATED,
        ("aclrtRecordEvent", "ex_event", "stream"),
        ("aclrtMemsetAsync", "memory", 8, 0, 8, "other"),
        ("aclmdlRICaptureTaskGrpBegin", "stream"),
        ("aclmdlRICaptureEnd", "stream", "&none"),
        before=CONFLICT,
        after=END_CONFLICT,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED",
        "the capture did not begin on this stream, which joined it by an event; call this function for the stream "
        "that it began on, {stream}",
        ("aclmdlRICaptureEnd", "other", "&none"),
        before=[*BEGIN, *JOIN],
        after=FAIL,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_UNJOINED",
        "stream {other} was captured too, and the stream that the capture began on does not wait for its last step; "
        "record an event at its end, and have that stream wait for the event before the capture ends",
        ("aclmdlRICaptureEnd", "stream", "&none"),
        before=[*BEGIN, *JOIN],
    ),
    # events in captures
    *refused(
        "ACL_ERROR_RT_EVENT_CAPTURED",
        "the event was recorded on a stream that is being captured, so that it does not complete; call this function "
        "after aclmdlRICaptureEnd",
        ("aclrtQueryEventStatus", "ex_event", "out"),
        ("aclrtSynchronizeEvent", "ex_event"),
        ("aclrtSynchronizeEventWithTimeout", "ex_event", 0),
        ("aclrtEventElapsedTime", "out", "ex_event", "ex_event"),
        ("aclrtEventGetTimestamp", "ex_event", "out"),
        before=[*BEGIN, *RECORD],
        after=END,
    ),
    *refused(
        RT_UNSUPPORTED,
        "the stream is being captured, which takes events of aclrtCreateEventExWithFlag, or with the flag "
        "ACL_EVENT_EXTERNAL; create the event so",
        ("aclrtRecordEvent", "event", "stream"),
        ("aclrtResetEvent", "event", "stream"),
        ("aclrtStreamWaitEvent", "stream", "event"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_CAPTURE_DEPENDENCY",
        "the stream is being captured, and the event was recorded outside of the capture; record it on a stream that "
        "is captured too, wait for it before aclmdlRICaptureBegin, or take an event with the flag ACL_EVENT_EXTERNAL",
        ("aclrtStreamWaitEvent", "stream", "outer_event"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT",
        "the event was recorded on a stream that is being captured, and the default stream cannot be captured with it; "
        "pass another stream",
        ("aclrtStreamWaitEvent", None, "ex_event"),
        before=[*BEGIN, *RECORD],
        after=END,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CONTEXT",
        "the stream belongs to another context than the capture that the event was recorded in, so that it cannot be "
        "captured with it",
        ("aclrtStreamWaitEvent", "stream2", "ex_event"),
        before=[*BEGIN, *RECORD],
        after=END,
    ),
    *refused(
        NO_HANDLE, NO_STREAM, ("aclrtStreamWaitEvent", "gone_stream", "ex_event"), before=[*BEGIN, *RECORD], after=END
    ),
    *refused(
        RT_UNSUPPORTED,
        "the model waits for an external event that was not recorded before, but is executed by the thread that asked "
        "for it, as the default stream does, and every stream under ACLNN_TORCH_INLINE_STREAMS; record the event "
        "first, or execute the model on a stream of aclrtCreateStream",
        ("aclrtSynchronizeStream", None),
        by="aclrtStreamWaitEvent",
        before=[
            *BEGIN,
            ("aclrtStreamWaitEvent", "stream", "external"),
            END[0],
            ("aclmdlRIExecuteAsync", "model", None),
        ],
        after=[END[1]],
    ),
    # groups of tasks
    *refused(
        STATUS,
        "a group of tasks is being recorded already; call aclmdlRICaptureTaskGrpEnd first",
        ("aclmdlRICaptureTaskGrpBegin", "stream"),
        before=[*BEGIN, *GROUP],
        after=[*END_GROUP, *END],
    ),
    *refused(
        STATUS,
        "no group of tasks is being recorded on the stream; call aclmdlRICaptureTaskGrpBegin on it first",
        ("aclmdlRICaptureTaskGrpEnd", "stream", "&none"),
        before=BEGIN,
        after=END,
    ),
    *refused(
        STATUS,
        "a group of tasks is still being recorded; call aclmdlRICaptureTaskGrpEnd first",
        ("aclmdlRICaptureEnd", "stream", "&none"),
        before=[*BEGIN, *GROUP],
    ),
    *refused(
        "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT",
        f"the stream is recording a group of tasks, {OPERATORS} aclmdlRICaptureTaskGrpEnd",
        ("aclrtMemsetAsync", "memory", 8, 0, 8, "stream"),
        ("aclrtLaunchHostFunc", "stream", "nothing", None),
        before=[*BEGIN, *GROUP],
        after=[*END_GROUP, *END],
    ),
    *refused(
        INTERRUPTED,
        "a group of tasks is being recorded on another stream of the capture; call this function after "
        "aclmdlRICaptureTaskGrpEnd",
        ("aclrtMemsetAsync", "memory", 8, 0, 8, "other"),
        before=[*BEGIN, *JOIN, *GROUP],
        after=FAIL,
    ),
    *refused(
        INTERRUPTED,
        "another stream of the capture was given a task in between; record a group on one stream at a time",
        ("aclmdlRICaptureTaskGrpEnd", "stream", "&none"),
        before=[*BEGIN, *JOIN, *GROUP, ("?aclrtMemsetAsync", "memory", 8, 0, 8, "other")],
        after=FAIL,
    ),
    *refused(
        NO_HANDLE,
        "{gone_group} is not a group of tasks of this process, or its model was destroyed",
        ("aclmdlRICaptureTaskUpdateBegin", "stream", "gone_group"),
    ),
    *refused(
        NO_HANDLE, NO_STREAM, ("aclmdlRICaptureTaskUpdateBegin", "gone_stream", "group"), before=MODEL, after=[END[1]]
    ),
    *refused(
        STATUS,
        "the group is being updated already; call aclmdlRICaptureTaskUpdateEnd first",
        ("aclmdlRICaptureTaskUpdateBegin", "stream", "group"),
        before=UPDATE,
        after=END_UPDATE,
    ),
    *refused(
        STATUS,
        "the stream is updating another group; call aclmdlRICaptureTaskUpdateEnd first",
        ("aclmdlRICaptureTaskUpdateBegin", "other", "group2"),
        before=[
            *UPDATE,
            *BEGIN,
            *GROUP,
            ("aclmdlRICaptureTaskGrpEnd", "stream", "&group2"),
            ("aclmdlRICaptureEnd", "stream", "&model2"),
        ],
        after=[*END_UPDATE, ("aclmdlRIDestroy", "model2")],
    ),
    *refused(STATUS, UPDATING, ("aclmdlRICaptureBegin", "other", 0), before=UPDATE, after=END_UPDATE),
    *refused(
        STATUS,
        UPDATING,
        ("aclrtStreamWaitEvent", "other", "ex_event"),
        before=[*UPDATE, *BEGIN, *RECORD],
        after=[("aclmdlRICaptureEnd", "stream", "&model2"), ("aclmdlRIDestroy", "model2"), *END_UPDATE],
    ),
    *refused(
        "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT",
        f"the stream is updating a group of tasks, {OPERATORS} aclmdlRICaptureTaskUpdateEnd",
        ("aclrtMemsetAsync", "memory", 8, 0, 8, "other"),
        before=UPDATE,
        after=END_UPDATE,
    ),
    *refused(
        STATUS,
        "the stream is not updating a group; call aclmdlRICaptureTaskUpdateBegin first",
        ("aclmdlRICaptureTaskUpdateEnd", "stream"),
    ),
    *refused(
        NO_HANDLE,
        "the model of the group was destroyed",
        ("aclmdlRICaptureTaskUpdateEnd", "other"),
        before=[*UPDATE, END[1]],
    ),
    # models
    *refused(
        NO_HANDLE,
        "{gone_model} is not a model of this process: it was destroyed, or its capture failed",
        ("aclmdlRIExecuteAsync", "gone_model", "stream"),
        ("aclmdlRIExecute", "gone_model", -1),
        ("aclmdlRIDestroy", "gone_model"),
        ("aclmdlRIAbort", "gone_model"),
        ("aclmdlRISetName", "gone_model", b"name"),
        ("aclmdlRIGetName", "gone_model", 8, "out"),
        ("aclmdlRIGetId", "gone_model", "out"),
        ("aclmdlRIDestroyRegisterCallback", "gone_model", "nothing", None),
        ("aclmdlRIDestroyUnregisterCallback", "gone_model", "nothing"),
        ("aclmdlRIDebugPrint", "gone_model"),
        ("aclmdlRIDebugJsonPrint", "gone_model", b"file", 0),
    ),
    *refused(
        "ACL_ERROR_RT_MODEL_CAPTURED",
        "the model is still being captured; call aclmdlRICaptureEnd first",
        ("aclmdlRIExecuteAsync", "model", "other"),
        ("aclmdlRIExecute", "model", -1),
        ("aclmdlRIDestroy", "model"),
        ("aclmdlRIDebugPrint", "model"),
        ("aclmdlRIDebugJsonPrint", "model", b"file", 0),
        before=[*BEGIN, ("aclmdlRICaptureGetInfo", "stream", None, "&model")],
        after=END,
    ),
    *(
        Refusal(call, status, f"{call[0]}: {text}", MODEL, [END[1]])
        for status, text, call in (
            (INVALID, "name is a null pointer", ("aclmdlRISetName", "model", None)),
            (INVALID, "name is a null pointer", ("aclmdlRIGetName", "model", 8, None)),
            (
                RT_INVALID,
                "maxLen is 0, expected the size of name's memory, at least 1",
                ("aclmdlRIGetName", "model", 0, "out"),
            ),
            (INVALID, "modelRIId is a null pointer", ("aclmdlRIGetId", "model", None)),
            (INVALID, "func is a null pointer", ("aclmdlRIDestroyRegisterCallback", "model", None, None)),
            (INVALID, "func is a null pointer", ("aclmdlRIDestroyUnregisterCallback", "model", None)),
            (
                RT_INVALID,
                "func is not registered with the model; call aclmdlRIDestroyRegisterCallback first",
                ("aclmdlRIDestroyUnregisterCallback", "model", "nothing"),
            ),
            (INVALID, "path is a null pointer", ("aclmdlRIDebugJsonPrint", "model", None, 0)),
            (RT_INVALID, "flags is 0x2, expected 0 or 1", ("aclmdlRIDebugJsonPrint", "model", b"file", 2)),
            (
                RT_INVALID,
                "path missing/file cannot be written: No such file or directory",
                ("aclmdlRIDebugJsonPrint", "model", b"missing/file", 0),
            ),
            (
                RT_UNSUPPORTED,
                "the model was captured, and CANN does not stop the execution of such a model; synchronise the stream "
                "that executes it",
                ("aclmdlRIAbort", "model"),
            ),
            (
                "ACL_ERROR_RT_STREAM_CONTEXT",
                "the model was captured on device 0, but the stream belongs to device 1; execute it on a stream of its "
                "own device",
                ("aclmdlRIExecuteAsync", "model", "stream1"),
            ),
            (NO_HANDLE, NO_STREAM, ("aclmdlRIExecuteAsync", "model", "gone_stream")),
        )
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_CONTEXT",
        "the model was captured on device 0, but this thread's device is 1; call aclrtSetDevice for the model's device "
        "first",
        ("aclmdlRIExecute", "model", -1),
        ("aclmdlRIExecuteAsync", "model", None),
        before=[*MODEL, ("aclrtSetCurrentContext", "context1")],
        after=[("aclrtSetCurrentContext", "context"), END[1]],
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        "a registered function threw an exception",
        ("aclmdlRIDestroy", "model"),
        before=[*MODEL, ("aclmdlRIDestroyRegisterCallback", "model", "throws", None)],
    ),
]
