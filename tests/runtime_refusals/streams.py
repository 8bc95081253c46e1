"""Refusals of streams, events and callbacks."""

from __future__ import annotations

import struct

from tests.runtime_refusals.refusal import INVALID, NO_HANDLE, RT_INVALID, RT_UNSUPPORTED, Call, Refusal, refused

OF_STREAM: list[Call] = [("aclrtCreateStream", "&own")]
DESTROY: list[Call] = [("aclrtDestroyStream", "own")]
# A stream whose worker waits until this thread calls aclrtProcessReport.
BUSY: list[Call] = [
    *OF_STREAM,
    ("aclrtSubscribeReport", "thread", "own"),
    ("aclrtLaunchCallback", "nothing", None, 1, "own"),
]
RELEASE: list[Call] = [("aclrtProcessReport", -1)]
END_BUSY: list[Call] = [("aclrtUnSubscribeReport", "thread", "own"), *DESTROY]
GO_ON: list[Call] = [*RELEASE, *END_BUSY]
MILLISECONDS = "expected milliseconds, or -1 to wait without a limit"
FAILURE_MODES = "expected 0 (ACL_CONTINUE_ON_FAILURE) or 1 (ACL_STOP_ON_FAILURE)"
NO_STREAM = "{gone_stream} is not a stream of this process: it was destroyed, or its device was reset"
NO_EVENT = "{} is {{gone_event}}, which is not an event of this process, or was destroyed"
NOT_IN_TIME = "the stream did not finish its work before the timeout"
FREED = "was freed before the stream ran the copy; free it after the stream is synchronised"
FREED_VALUE = "was freed before the stream came to the call; free it after the stream is synchronised"
THREW = "the function threw an exception"
NOT_SERVED = "no thread serves the stream; call aclrtSubscribeReport first"
EX_EVENT = (
    "the event was made by aclrtCreateEventExWithFlag, whose events this function does not accept; create it with "
    "aclrtCreateEvent"
)
STREAMS = [
    *refused(
        NO_HANDLE,
        NO_STREAM,
        ("aclrtDestroyStream", "gone_stream"),
        ("aclrtDestroyStreamForce", "gone_stream"),
        ("aclrtSynchronizeStream", "gone_stream"),
        ("aclrtSynchronizeStreamWithTimeout", "gone_stream", 0),
        ("aclrtStreamGetId", "gone_stream", "out"),
        ("aclrtStreamQuery", "gone_stream", "out"),
        ("aclrtSetStreamFailureMode", "gone_stream", 0),
        ("aclrtSetStreamAttribute", "gone_stream", 1, "out"),
        ("aclrtSetStreamAttribute", "gone_stream", 3, "out"),
        ("aclrtGetStreamAttribute", "gone_stream", 3, "out"),
        ("aclrtSetStreamOverflowSwitch", "gone_stream", 1),
        ("aclrtGetStreamOverflowSwitch", "gone_stream", "out"),
        ("aclrtSetStreamResLimit", "gone_stream", 0, 1),
        ("aclrtGetStreamResLimit", "gone_stream", 0, "out"),
        ("aclrtResetStreamResLimit", "gone_stream"),
        ("aclrtUseStreamResInCurrentThread", "gone_stream"),
        ("aclrtUnuseStreamResInCurrentThread", "gone_stream"),
        ("aclrtMemcpyAsync", "memory", 8, "host", 8, 1, "gone_stream"),
        ("aclrtMemsetAsync", "memory", 8, 0, 8, "gone_stream"),
        ("aclrtCmoAsync", "memory", 8, 0, "gone_stream"),
        ("aclrtValueWrite", "memory", 1, 0, "gone_stream"),
        ("aclrtValueWait", "memory", 1, 0, "gone_stream"),
        ("aclrtRecordEvent", "event", "gone_stream"),
        ("aclrtResetEvent", "event", "gone_stream"),
        ("aclrtStreamWaitEvent", "gone_stream", "event"),
        ("aclrtSubscribeReport", "thread", "gone_stream"),
        ("aclrtLaunchCallback", "nothing", None, 0, "gone_stream"),
        ("aclrtLaunchHostFunc", "gone_stream", "nothing", None),
        ("aclmdlRICaptureBegin", "gone_stream", 0),
        ("aclmdlRICaptureEnd", "gone_stream", "&none"),
        ("aclmdlRICaptureGetInfo", "gone_stream", "out", None),
        ("aclmdlRICaptureTaskGrpBegin", "gone_stream"),
        ("aclmdlRICaptureTaskGrpEnd", "gone_stream", "&none"),
        ("aclmdlRICaptureTaskUpdateEnd", "gone_stream"),
    ),
    *refused(
        RT_INVALID,
        "priority is 8, expected 0 (the highest) to 7 (the lowest)",
        ("aclrtCreateStreamWithConfig", "&none", 8, 0),
    ),
    *refused(
        RT_INVALID,
        "flag has unknown bits 0x40, expected bits of 0x3f, those of ACL_STREAM_ flags",
        ("aclrtCreateStreamWithConfig", "&none", 0, 0x41),
    ),
    *refused(
        RT_INVALID,
        f"timeout is -2, {MILLISECONDS}",
        ("aclrtSynchronizeStreamWithTimeout", "stream", -2),
        ("aclrtSynchronizeDeviceWithTimeout", -2),
        ("aclrtSynchronizeEventWithTimeout", "event", -2),
    ),
    *(
        refusal
        for timeout in (-2, 0)
        for refusal in refused(
            RT_INVALID,
            f"timeout is {timeout}, expected 1 or more milliseconds, or -1 to wait without a limit",
            ("aclmdlRIExecute", "gone_model", timeout),
        )
    ),
    *refused(INVALID, f"timeout is -2, {MILLISECONDS}", ("aclrtProcessReport", -2)),
    *refused(RT_INVALID, f"mode is 2, {FAILURE_MODES}", ("aclrtSetStreamFailureMode", "stream", 2)),
    *refused(
        RT_INVALID,
        f"value->failureMode is 2, {FAILURE_MODES}",
        ("aclrtSetStreamAttribute", "stream", 1, struct.pack("q", 2)),
    ),
    *refused(
        RT_INVALID,
        "stmAttrType is 6, expected 1 to 5",
        ("aclrtSetStreamAttribute", "stream", 6, "out"),
        ("aclrtGetStreamAttribute", "stream", 6, "out"),
    ),
    *refused(RT_INVALID, "flag is 2, expected 0 or 1", ("aclrtSetStreamOverflowSwitch", "stream", 2)),
    *refused(
        "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT",
        NOT_IN_TIME,
        ("aclrtSynchronizeStreamWithTimeout", "own", 0),
        ("aclrtSynchronizeDeviceWithTimeout", 0),
        before=BUSY,
        after=GO_ON,
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT",
        NOT_IN_TIME,
        ("aclmdlRIExecute", "model", 1),
        before=[
            *OF_STREAM,
            ("aclrtSubscribeReport", "thread", "own"),
            ("aclmdlRICaptureBegin", "own", 0),
            ("aclrtLaunchCallback", "nothing", None, 1, "own"),
            ("aclmdlRICaptureEnd", "own", "&model"),
        ],
        after=[*RELEASE, ("aclmdlRIDestroy", "model"), *END_BUSY],
    ),
    *(
        Refusal(("aclrtSynchronizeStream", "own"), "ACL_ERROR_RT_COPY_DATA", text, before, END_BUSY)
        for text, before in (
            (
                f"aclrtMemcpyAsync: dst {FREED}",
                [
                    *BUSY,
                    ("aclrtMalloc", "&brief", 64, 2),
                    ("aclrtMemcpyAsync", "brief", 8, "host", 8, 1, "own"),
                    ("aclrtFree", "brief"),
                    *RELEASE,
                ],
            ),
            (
                f"aclrtMemcpyAsync: src {FREED}",
                [
                    *BUSY,
                    ("aclrtMalloc", "&brief", 64, 2),
                    ("aclrtMemcpyAsync", "pinned", 8, "brief", 8, 2, "own"),
                    ("aclrtFree", "brief"),
                    *RELEASE,
                ],
            ),
            (
                f"aclrtMemsetAsync: devPtr {FREED}",
                [
                    *BUSY,
                    ("aclrtMalloc", "&brief", 64, 2),
                    ("aclrtMemsetAsync", "brief", 8, 0, 8, "own"),
                    ("aclrtFree", "brief"),
                    *RELEASE,
                ],
            ),
            *(
                (
                    f"{function}: devAddr {FREED_VALUE}",
                    [
                        *BUSY,
                        ("aclrtMalloc", "&brief", 64, 2),
                        (function, "brief", 1, 0, "own"),
                        ("aclrtFree", "brief"),
                        *RELEASE,
                    ],
                )
                for function in ("aclrtValueWrite", "aclrtValueWait")
            ),
        )
    ),
    *refused(
        RT_UNSUPPORTED,
        "the value is not there yet, but the call is run by the thread that asked for it, as on the default stream, "
        "and on every stream under ACLNN_TORCH_INLINE_STREAMS; write the value first, or wait on a stream of "
        "aclrtCreateStream",
        ("aclrtSynchronizeStream", None),
        by="aclrtValueWait",
        before=[("aclrtValueWrite", "memory", 0, 0, None), ("aclrtValueWait", "memory", 1, 1, None)],
    ),
    # events
    *refused(
        NO_HANDLE,
        NO_EVENT.format("event"),
        ("aclrtDestroyEvent", "gone_event"),
        ("aclrtRecordEvent", "gone_event", "stream"),
        ("aclrtResetEvent", "gone_event", "stream"),
        ("aclrtQueryEvent", "gone_event", "out"),
        ("aclrtQueryEventStatus", "gone_event", "out"),
        ("aclrtQueryEventWaitStatus", "gone_event", "out"),
        ("aclrtSynchronizeEvent", "gone_event"),
        ("aclrtSynchronizeEventWithTimeout", "gone_event", 0),
        ("aclrtEventGetTimestamp", "gone_event", "out"),
    ),
    *refused(
        NO_HANDLE,
        "event is {host}, which is not an event of this process, or was destroyed",
        ("aclrtStreamWaitEvent", "stream", "host"),
    ),
    *(
        case
        for function, alone, flags in (
            ("aclrtCreateEventWithFlag", "ACL_EVENT_EXTERNAL or ACL_EVENT_DEVICE_USE_ONLY", (0, 0x81, 0x21, 0x40)),
            ("aclrtCreateEventExWithFlag", "ACL_EVENT_IPC", (0, 0x81, 0x41, 0x20)),
        )
        for flag in flags
        for case in refused(
            RT_INVALID,
            f"flag is {flag:#x}, expected a combination of ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE and "
            f"ACL_EVENT_CAPTURE_STREAM_PROGRESS, or {alone} alone",
            (function, "&none", flag),
        )
    ),
    *refused(
        RT_UNSUPPORTED,
        EX_EVENT,
        ("aclrtResetEvent", "ex_event", "stream"),
        ("aclrtQueryEvent", "ex_event", "out"),
        ("aclrtQueryEventWaitStatus", "ex_event", "out"),
    ),
    *refused(
        "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT",
        "the event did not complete before the timeout",
        ("aclrtSynchronizeEventWithTimeout", "event", 0),
        before=[*BUSY, ("aclrtRecordEvent", "event", "own")],
        after=[*GO_ON, ("aclrtResetEvent", "event", None)],
    ),
    *(
        Refusal(call, status, f"{call[0]}: {name} {text}", before, after)
        for call, name in (
            (("aclrtEventGetTimestamp", "timed", "out"), "event"),
            (("aclrtEventElapsedTime", "out", "timed", "known"), "startEvent"),
            (("aclrtEventElapsedTime", "out", "known", "timed"), "endEvent"),
        )
        for status, text, before, after in (
            (
                "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID",
                "was created without ACL_EVENT_TIME_LINE and records no time; create it with that flag",
                [
                    ("aclrtCreateEventWithFlag", "&timed", 1),
                    ("aclrtCreateEvent", "&known"),
                    ("aclrtRecordEvent", "known", None),
                ],
                [("aclrtDestroyEvent", "timed"), ("aclrtDestroyEvent", "known")],
            ),
            (
                "ACL_ERROR_RT_INTERNAL_ERROR",
                "was never recorded; call aclrtRecordEvent first",
                [("aclrtCreateEvent", "&timed"), ("aclrtCreateEvent", "&known"), ("aclrtRecordEvent", "known", None)],
                [("aclrtDestroyEvent", "timed"), ("aclrtDestroyEvent", "known")],
            ),
            (
                "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID",
                "is not complete; synchronise it first",
                [
                    *BUSY,
                    ("aclrtCreateEvent", "&timed"),
                    ("aclrtCreateEvent", "&known"),
                    ("aclrtRecordEvent", "timed", "own"),
                    ("aclrtRecordEvent", "known", None),
                ],
                [*GO_ON, ("aclrtDestroyEvent", "timed"), ("aclrtDestroyEvent", "known")],
            ),
        )
    ),
    *refused(
        "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL",
        "endEvent completed before startEvent; pass the earlier event as startEvent",
        ("aclrtEventElapsedTime", "out", "later", "earlier"),
        before=[
            ("aclrtCreateEvent", "&earlier"),
            ("aclrtRecordEvent", "earlier", None),
            ("aclrtCreateEvent", "&later"),
            ("aclrtRecordEvent", "later", None),
        ],
        after=[("aclrtDestroyEvent", "earlier"), ("aclrtDestroyEvent", "later")],
    ),
    *(
        Refusal(
            call,
            status,
            f"aclrtEventElapsedTime: {text}",
            before=[("aclrtCreateEvent", "&known"), ("aclrtRecordEvent", "known", None)],
            after=[("aclrtDestroyEvent", "known")],
        )
        for status, text, call in (
            (INVALID, "startEvent is a null pointer", ("aclrtEventElapsedTime", "out", None, "known")),
            (INVALID, "endEvent is a null pointer", ("aclrtEventElapsedTime", "out", "known", None)),
            (NO_HANDLE, NO_EVENT.format("startEvent"), ("aclrtEventElapsedTime", "out", "gone_event", "known")),
            (NO_HANDLE, NO_EVENT.format("endEvent"), ("aclrtEventElapsedTime", "out", "known", "gone_event")),
        )
    ),
    # callbacks
    *refused(
        INVALID,
        "blockType is 2, expected 0 (ACL_CALLBACK_NO_BLOCK) or 1 (ACL_CALLBACK_BLOCK)",
        ("aclrtLaunchCallback", "nothing", None, 2, "stream"),
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_NO_CB_REG",
        NOT_SERVED,
        ("aclrtLaunchCallback", "nothing", None, 0, "stream"),
        ("aclrtUnSubscribeReport", "thread", "stream"),
    ),
    *refused(
        "ACL_ERROR_RT_STREAM_SUBSCRIBE",
        "a thread already serves the stream; call aclrtUnSubscribeReport first",
        ("aclrtSubscribeReport", "thread", "stream"),
        before=[("aclrtSubscribeReport", "thread", "stream")],
        after=[("aclrtUnSubscribeReport", "thread", "stream")],
    ),
    *refused(
        "ACL_ERROR_RT_THREAD_SUBSCRIBE",
        "another thread serves the stream; call this function from that thread",
        ("aclrtUnSubscribeReport", 1, "stream"),
        before=[("aclrtSubscribeReport", "thread", "stream")],
        after=[("aclrtUnSubscribeReport", "thread", "stream")],
    ),
    *refused(
        "ACL_ERROR_RT_THREAD_SUBSCRIBE",
        "this thread serves no stream; call aclrtSubscribeReport first",
        ("aclrtProcessReport", 0),
    ),
    *refused(
        "ACL_ERROR_RT_REPORT_TIMEOUT",
        "no callback came before the timeout",
        ("aclrtProcessReport", 0),
        before=[("aclrtSubscribeReport", "thread", "stream")],
        after=[("aclrtUnSubscribeReport", "thread", "stream")],
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        THREW,
        ("aclrtProcessReport", -1),
        before=[
            *OF_STREAM,
            ("aclrtSubscribeReport", "thread", "own"),
            ("aclrtLaunchCallback", "throws", None, 0, "own"),
        ],
        after=END_BUSY,
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        "the callback was cancelled or threw an exception",
        ("aclrtSynchronizeStream", "own"),
        by="aclrtLaunchCallback",
        before=[
            *OF_STREAM,
            ("aclrtSubscribeReport", "thread", "own"),
            ("aclrtLaunchCallback", "throws", None, 1, "own"),
            ("?aclrtProcessReport", -1),
        ],
        after=END_BUSY,
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        THREW,
        ("aclrtSynchronizeStream", "own"),
        by="aclrtLaunchHostFunc",
        before=[*OF_STREAM, ("aclrtLaunchHostFunc", "own", "throws", None)],
        after=DESTROY,
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        THREW,
        ("aclrtSynchronizeStream", None),
        by="aclrtLaunchHostFunc",
        before=[("aclrtLaunchHostFunc", None, "throws", None)],
    ),
]
