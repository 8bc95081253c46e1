"""The objects of the calls that follow. Those called gone_ are destroyed."""

from __future__ import annotations

import struct

from tests.runtime_refusals.refusal import PAGE, Call

LIST = struct.pack("q", 4)
OBJECTS: list[Call] = [
    ("aclrtSetDevice", 1),
    ("aclrtGetCurrentContext", "&context1"),
    ("aclrtCreateStream", "&stream1"),
    ("aclrtMalloc", "&memory1", 64, 2),
    ("aclrtSetDevice", 0),
    ("aclrtGetCurrentContext", "&context"),
    ("aclrtCreateContext", "&context2", 0),
    ("aclrtCreateStream", "&stream2"),
    ("aclrtCreateContext", "&gone_context", 0),
    ("aclrtDestroyContext", "gone_context"),
    ("aclrtSetCurrentContext", "context"),
    ("aclrtCreateStream", "&stream"),
    ("aclrtCreateStream", "&other"),
    ("aclrtCreateStream", "&gone_stream"),
    ("aclrtDestroyStream", "gone_stream"),
    ("aclrtCreateEvent", "&event"),
    ("aclrtCreateEventExWithFlag", "&ex_event", 1),
    ("aclrtCreateEventExWithFlag", "&outer_event", 1),
    ("aclrtRecordEvent", "outer_event", "stream"),
    ("aclrtSynchronizeStream", "stream"),
    ("aclrtCreateEventWithFlag", "&external", 0x20),
    ("aclrtCreateEvent", "&gone_event"),
    ("aclrtDestroyEvent", "gone_event"),
    ("aclrtMalloc", "&memory", 64, 2),
    ("aclrtMallocHost", "&pinned", 64),
    ("aclrtReserveMemAddress", "&reserved", 2 * PAGE, 0, None, 0),
    ("aclmdlRICaptureBegin", "stream", 0),
    ("aclmdlRICaptureTaskGrpBegin", "stream"),
    ("aclmdlRICaptureTaskGrpEnd", "stream", "&gone_group"),
    ("aclmdlRICaptureEnd", "stream", "&gone_model"),
    ("aclmdlRIDestroy", "gone_model"),
    ("scalar=aclCreateScalar", struct.pack("f", 1.0), 0),
    ("tensor=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, "memory"),
    ("result=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, "memory+16"),
    ("element=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, "memory"),
    ("list=aclCreateTensorList", "&element", 1),
    ("array=aclCreateIntArray", LIST, 1),
    ("desc=aclCreateTensorDesc", 0, 1, LIST, 2),
    ("buffer=aclCreateDataBuffer", "memory", 16),
    ("attr=aclopCreateAttr",),
    ("HcclCommInitAll", 1, struct.pack("I", 0), "&comm"),  # a communicator with one rank
]
