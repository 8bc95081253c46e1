"""Refusals of profiles."""

from __future__ import annotations

import struct

from tests.runtime_refusals.null_pointers import NO_MODELS
from tests.runtime_refusals.refusal import INVALID, NO_HANDLE, UNSUPPORTED, Argument, Call, Refusal, null, refused
from tests.runtime_refusals.streams import NO_STREAM

NOT_RUN = "ACL_ERROR_PROF_NOT_RUN"
DEVICE_0 = struct.pack("I", 0)
TASKS, MARKS = 0x2, 0x80
CONFIG: list[Call] = [("config=aclprofCreateConfig", DEVICE_0, 1, 0, None, TASKS | MARKS)]
NO_CONFIG: list[Call] = [("aclprofDestroyConfig", "config")]
INIT: list[Call] = [*CONFIG, ("aclprofInit", b"profiles", 8)]
FINALIZE: list[Call] = [("aclprofFinalize",), *NO_CONFIG]
START: list[Call] = [*INIT, ("aclprofStart", "config")]
STAMP: list[Call] = [*START, ("stamp=aclprofCreateStamp",)]
NO_STAMP: list[Call] = [("?aclprofDestroyStamp", "stamp"), *FINALIZE]
UNKNOWN_CONFIG = "profilerConfig is {buffer}, which was destroyed, or is no object of aclprofCreateConfig"
UNKNOWN_STAMP = "stamp is {buffer}, which was destroyed, or is no stamp of aclprofCreateStamp"
NO_MARKS = (
    "no profile with ACL_PROF_MSPROFTX is running; call this function between aclprofStart and aclprofStop of one"
)
SUBSCRIPTIONS = NO_MODELS + "; record a profile with aclprofStart and aclprofStop"
UNKNOWN_STEP = "stepInfo is {buffer}, which was destroyed, or is no step of aclprofCreateStepInfo"
OPEN = "this thread has no range that is open; call"


def configuration(problem: str, *arguments: Argument) -> list[Refusal]:
    """Arguments of aclprofCreateConfig that make none."""
    return refused(INVALID, problem, ("aclprofCreateConfig", *arguments), is_status=False)


PROFILES = [
    *refused(
        UNSUPPORTED,
        SUBSCRIPTIONS,
        ("aclprofModelSubscribe", 1, None),
        ("aclprofModelUnSubscribe", 1),
        ("aclprofDestroySubscribeConfig", None),
        ("aclprofGetOpDescSize", "out"),
        ("aclprofGetOpNum", "out", 8, "out"),
        ("aclprofGetOpTypeLen", "out", 8, 0, "out"),
        ("aclprofGetOpType", "out", 8, 0, "out", 8),
        ("aclprofGetOpNameLen", "out", 8, 0, "out"),
        ("aclprofGetOpName", "out", 8, 0, "out", 8),
    ),
    *refused(
        UNSUPPORTED,
        SUBSCRIPTIONS,
        ("aclprofCreateSubscribeConfig", 1, 0, None),
        ("aclprofGetOpStart", "out", 8, 0),
        ("aclprofGetOpEnd", "out", 8, 0),
        ("aclprofGetOpDuration", "out", 8, 0),
        ("aclprofGetModelId", "out", 8, 0),
        ("aclprofGetOpAttriValue", "out", 8, 0, 0),
        is_status=False,
    ),
    *refused(UNSUPPORTED, SUBSCRIPTIONS, ("aclprofGetOpFlag", "out", 8, 0), is_status=False),
    *null(("aclprofGetSupportedFeatures", "out", "out+8"), "featuresSize", "featuresData"),
    *null(("aclprofGetSupportedFeaturesV2", "out", "out+8"), "featuresSize", "featuresData"),
    *refused(
        INVALID,
        "*featuresData is not null",
        ("aclprofGetSupportedFeatures", "out", "&memory"),
        ("aclprofGetSupportedFeaturesV2", "out", "&memory"),
    ),
    *null(("aclprofInit", b"profiles", 8), "profilerResultPath"),
    *(
        refusal
        for length in (0, 7, 9, 4096)
        for refusal in refused(
            INVALID,
            f"length is {length}, expected the length of profilerResultPath, 1 to 4095 bytes",
            ("aclprofInit", b"profiles", length),
        )
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the folder {here}/large.json/profiles cannot be made or written: Not a directory; name a folder that you may "
        "write to",
        ("aclprofInit", b"large.json/profiles", 19),
    ),
    *refused(
        "ACL_ERROR_REPEAT_INITIALIZE",
        "profiling is initialised already, for {here}/profiles; one profiler at a time: call aclprofFinalize first",
        ("aclprofInit", b"others", 6),
        before=INIT,
        after=FINALIZE,
    ),
    *refused(
        NOT_RUN,
        "profiling is not initialised, or was finalised; call aclprofInit first",
        ("aclprofSetConfig", 1, b"200MB", 5),
        ("aclprofWarmup", "config"),
        ("aclprofStart", "config"),
        ("aclprofStop", "config"),
        ("aclprofFinalize",),
        before=CONFIG,
        after=NO_CONFIG,
    ),
    *null(("aclprofSetConfig", 1, b"200MB", 5), "config"),
    *(
        refusal
        for kind in (0, 2, 17)
        for refusal in refused(
            INVALID, f"configType is {kind}, expected one of aclprofConfigType", ("aclprofSetConfig", kind, b"200MB", 5)
        )
    ),
    *refused(
        INVALID,
        "configLength is 4, expected the length of config, 1 to 256 bytes",
        ("aclprofSetConfig", 1, b"200MB", 4),
    ),
    *refused(
        INVALID, "configLength is 0, expected the length of config, 1 to 4095 bytes", ("aclprofSetConfig", 16, b"", 0)
    ),
    *(
        refusal
        for limit in ("199MB", "4294967296MB", "1GB", "MB")
        for refusal in refused(
            INVALID,
            f"ACL_PROF_STORAGE_LIMIT is {limit}, expected 200MB to 4294967295MB",
            ("aclprofSetConfig", 1, limit.encode(), len(limit)),
            before=INIT,
            after=FINALIZE,
        )
    ),
    *configuration("aicoreEvents is not null, which is reserved; pass a null pointer", DEVICE_0, 1, 0, "out", TASKS),
    *configuration("deviceNums is 65, expected 64 at most", "out", 65, 0, None, TASKS),
    *configuration("deviceIdList is null, but deviceNums is not 0", None, 1, 0, None, TASKS),
    *configuration(
        "deviceNums is 0, which is possible with ACL_PROF_MSPROFTX alone; name a device", None, 0, 0, None, TASKS
    ),
    *configuration("deviceIdList has device 2, which does not exist", struct.pack("II", 1, 2), 2, 0, None, TASKS),
    *configuration("deviceIdList has device 1 twice", struct.pack("III", 1, 0, 1), 3, 0, None, TASKS),
    *null(("aclprofDestroyConfig", "buffer"), "profilerConfig"),
    *null(("aclprofWarmup", "buffer"), "profilerConfig"),
    *null(("aclprofStart", "buffer"), "profilerConfig"),
    *null(("aclprofStop", "buffer"), "profilerConfig"),
    *refused(
        INVALID,
        UNKNOWN_CONFIG,
        ("aclprofDestroyConfig", "buffer"),
        ("aclprofWarmup", "buffer"),
        ("aclprofStart", "buffer"),
        ("aclprofStop", "buffer"),
    ),
    *refused(
        "ACL_ERROR_PROF_MODULES_UNSUPPORTED",
        "dataTypeConfig has unknown bits 0x10000; combine values ACL_PROF_... of acl_prof.h",
        ("aclprofWarmup", "config"),
        ("aclprofStart", "config"),
        ("aclprofStop", "config"),
        before=[("config=aclprofCreateConfig", DEVICE_0, 1, 0, None, TASKS | 0x10000)],
        after=NO_CONFIG,
    ),
    *refused(
        "ACL_ERROR_PROF_API_CONFLICT",
        "a profile is running; call this function before aclprofStart",
        ("aclprofWarmup", "config"),
        before=START,
        after=FINALIZE,
    ),
    *refused(
        NOT_RUN,
        "no profile of the devices [0] with dataTypeConfig 0x82 is running: it was stopped already, or never started; "
        "call aclprofStart and aclprofStop in turn, with the same configuration",
        ("aclprofStop", "config"),
        before=INIT,
        after=FINALIZE,
    ),
    *refused(
        NOT_RUN,
        NO_MARKS,
        ("aclprofSetStampTraceMessage", "buffer", b"text", 4),
        ("aclprofMark", "buffer"),
        ("aclprofPush", "buffer"),
        ("aclprofPop",),
        ("aclprofRangeStart", "buffer", "out"),
        ("aclprofRangeStop", 1),
        ("aclprofMarkEx", b"text", 4, "stream"),
        ("aclprofRangePushEx", "out"),
        ("aclprofRangePop",),
    ),
    *refused(NOT_RUN, NO_MARKS, ("aclprofCreateStamp",), is_status=False),
    *(
        Refusal(call, status, f"{call[0]}: {text}", STAMP, NO_STAMP)
        for status, text, call in (
            (INVALID, "stamp is a null pointer", ("aclprofSetStampTraceMessage", None, b"text", 4)),
            (INVALID, "msg is a null pointer", ("aclprofSetStampTraceMessage", "stamp", None, 4)),
            (INVALID, "msgLen is 128, expected 127 at most", ("aclprofSetStampTraceMessage", "stamp", b"text", 128)),
            (INVALID, UNKNOWN_STAMP, ("aclprofSetStampTraceMessage", "buffer", b"text", 4)),
            (INVALID, "stamp is a null pointer", ("aclprofMark", None)),
            (INVALID, UNKNOWN_STAMP, ("aclprofMark", "buffer")),
            (INVALID, "stamp is a null pointer", ("aclprofPush", None)),
            (INVALID, UNKNOWN_STAMP, ("aclprofPush", "buffer")),
            (INVALID, "stamp is a null pointer", ("aclprofRangeStart", None, "out")),
            (INVALID, UNKNOWN_STAMP, ("aclprofRangeStart", "buffer", "out")),
            (INVALID, "rangeId is a null pointer", ("aclprofRangeStart", "stamp", None)),
            ("ACL_ERROR_PROFILING_FAILURE", f"{OPEN} aclprofPush on it first", ("aclprofPop",)),
            ("ACL_ERROR_PROFILING_FAILURE", f"{OPEN} aclprofRangePushEx on it first", ("aclprofRangePop",)),
            (
                "ACL_ERROR_PROFILING_FAILURE",
                "no range 77 is open; pass the number of aclprofRangeStart, once",
                ("aclprofRangeStop", 77),
            ),
            (INVALID, "msg is a null pointer", ("aclprofMarkEx", None, 4, "stream")),
            (INVALID, "stream is a null pointer", ("aclprofMarkEx", b"text", 4, None)),
            (
                INVALID,
                "msgLen is 3, expected the length of msg, 1 to 127 bytes",
                ("aclprofMarkEx", b"text", 3, "stream"),
            ),
            (NO_HANDLE, NO_STREAM, ("aclprofMarkEx", b"text", 4, "gone_stream")),
            (INVALID, "attr is a null pointer", ("aclprofRangePushEx", None)),
            (
                INVALID,
                "messageType is 1, expected 0 (tensor info)",
                ("aclprofRangePushEx", struct.pack("HHIQ", 1, 16, 1, 0)),
            ),
            (INVALID, "message.tensorInfo is a null pointer", ("aclprofRangePushEx", struct.pack("HHIQ", 1, 16, 0, 0))),
        )
    ),
    *refused(
        "ACL_ERROR_PROF_ALREADY_RUN",
        "a profile of the devices [0] is running already, in {profile}; call aclprofStop first",
        ("aclprofStart", "config"),
        before=START,
        after=FINALIZE,
    ),
    *refused(INVALID, "stamp is a null pointer", ("aclprofDestroyStamp", None), is_status=False),
    *refused(INVALID, UNKNOWN_STAMP, ("aclprofDestroyStamp", "buffer"), is_status=False),
    *refused(INVALID, "stepInfo is a null pointer", ("aclprofDestroyStepInfo", None), is_status=False),
    *refused(INVALID, UNKNOWN_STEP, ("aclprofDestroyStepInfo", "buffer"), is_status=False),
    *refused(INVALID, "stepInfo is a null pointer", ("aclprofGetStepTimestamp", None, 0, "stream")),
    *refused(INVALID, UNKNOWN_STEP, ("aclprofGetStepTimestamp", "buffer", 0, "stream")),
    *refused(
        INVALID,
        "tag is 2, expected 0 (ACL_STEP_START) or 1 (ACL_STEP_END)",
        ("aclprofGetStepTimestamp", "step", 2, "stream"),
        before=[("step=aclprofCreateStepInfo",)],
        after=[("?aclprofDestroyStepInfo", "step")],
    ),
    *refused(
        INVALID,
        "the step has this tag already; make another with aclprofCreateStepInfo",
        ("aclprofGetStepTimestamp", "step", 0, "stream"),
        before=[("step=aclprofCreateStepInfo",), ("aclprofGetStepTimestamp", "step", 0, "stream")],
        after=[("?aclprofDestroyStepInfo", "step")],
    ),
]
