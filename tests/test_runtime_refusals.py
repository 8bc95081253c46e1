"""The status and the whole text of every refusal of the runtime, the descriptors, the profiler and HCCL's management.

A process of its own makes all calls, because devices, captures and profiles belong to a process. A call is a tuple of
the function and its arguments. An argument that is a string names an object, "&name" the variable that holds it, and
"name+8" the address 8 bytes behind it; bytes stand for a pointer to them. "name=function" stores what it returns.
"""

from __future__ import annotations

import ctypes
import functools
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import LONGEST, cabi

ROOT = Path(__file__).resolve().parents[1]

Argument = None | int | float | bytes | str
Call = tuple[Argument, ...]

PAGE = mmap.PAGESIZE


class Refusal(NamedTuple):
    """A call that is refused, and the calls around it, which succeed unless their name begins with "?"."""

    call: Call
    status: str
    text: str
    before: Sequence[Call] = ()
    after: Sequence[Call] = ()
    is_status: bool = True  # what the function returns; the others return 0, a null pointer, or nothing


def refused(
    status: str,
    text: str,
    *calls: Call,
    by: str | None = None,
    before: Sequence[Call] = (),
    after: Sequence[Call] = (),
    is_status: bool = True,
) -> list[Refusal]:
    """Calls that are refused alike. The text follows the function's name, or that of the one that finds the fault."""
    return [Refusal(call, status, f"{by or str(call[0])}: {text}", before, after, is_status) for call in calls]


@functools.cache
def parameters() -> dict[str, list[str]]:
    """The names of each function's parameters, in the headers."""
    operators = " ".join(path.read_text() for path in (ROOT / "csrc/cann/prefix/include").rglob("*.h"))
    found = re.findall(r"\b(\w+)\s*\(([^()]*)\)\s*;", cabi.header_text() + operators)
    return {
        name: [text.split()[-1].strip("*[]") for text in listed.split(",") if text.strip()] for name, listed in found
    }


def null(
    call: Call, *names: str, status: str = "ACL_ERROR_INVALID_PARAM", text: str = "{} is a null pointer"
) -> list[Refusal]:
    """The call is refused if one of these arguments is a null pointer."""
    listed: list[Refusal] = []
    for name in names:
        at = 1 + parameters()[str(call[0])].index(name)
        listed += refused(status, text.format(name), (*call[:at], None, *call[at + 1 :]))
    return listed


# ---- before the thread has a device

NO_DEVICE = "this thread has no device; call aclrtSetDevice first"
WITHOUT_DEVICE = [
    *refused(
        "ACL_ERROR_RT_CONTEXT_NULL",
        NO_DEVICE,
        ("aclrtCreateStream", "&none"),
        ("aclrtCreateStreamWithConfig", "&none", 0, 0),
        ("aclrtMalloc", "&none", 8, 0),
        ("aclrtMallocAlign32", "&none", 8, 0),
        ("aclrtGetMemInfo", 0, "out", "out+8"),
        ("aclrtSynchronizeDevice",),
        ("aclrtSynchronizeDeviceWithTimeout", 0),
        ("aclrtCtxSetSysParamOpt", 0, 1),
        ("aclrtCtxGetSysParamOpt", 0, "out"),
        ("aclrtDeviceEnablePeerAccess", 1, 0),
        ("aclrtDeviceDisablePeerAccess", 1),
        ("aclrtSetStreamResLimit", None, 0, 1),
        ("aclrtGetStreamResLimit", None, 0, "out"),
        ("aclrtResetStreamResLimit", None),
        ("aclrtUseStreamResInCurrentThread", None),
        ("aclrtUnuseStreamResInCurrentThread", None),
        ("aclrtGetResInCurrentThread", 0, "out"),
    ),
    *refused("ACL_ERROR_RT_CONTEXT_NULL", "device 1 is not set", ("aclrtResetDevice", 1), ("aclrtResetDeviceForce", 1)),
    *refused("ACL_ERROR_REPEAT_FINALIZE", "AscendCL is not initialised; call aclInit first", ("aclFinalize",)),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "cannot read the configuration missing.json: No such file or directory",
        ("aclInit", b"missing.json"),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration . is a folder, expected a file of JSON; pass its path, or null",
        ("aclInit", b"."),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration /dev/null is not a regular file, expected a file of JSON; pass its path, or null",
        ("aclInit", b"/dev/null"),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration large.json has 10485761 bytes, expected at most 10485760",
        ("aclInit", b"large.json"),
    ),
    *refused(
        "ACL_ERROR_PARSE_FILE",
        "the configuration wrong.json is not JSON of at most 10 nested objects and arrays: see line 2",
        ("aclInit", b"wrong.json"),
    ),
    *refused(
        "ACL_ERROR_REPEAT_INITIALIZE",
        "AscendCL is already initialised; call aclFinalize first",
        ("aclInit", None),
        before=[("aclInit", None)],
        after=[("aclFinalize",)],
    ),
]

# ---- the objects of the calls that follow. Those called gone_ are destroyed.

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

# ---- null pointers, and other refusals that need no particular state

NULL_POINTERS = [
    *null(("aclrtGetVersion", "out", "out", "out"), "majorVersion", "minorVersion", "patchVersion"),
    *null(("aclsysGetCANNVersion", 0, "out"), "version"),
    *null(("aclsysGetVersionStr", b"runtime", "out"), "pkgName", "versionStr"),
    *null(("aclGetCannAttribute", 0, "out"), "value"),
    *null(("aclGetCannAttributeList", "out", "out+8"), "cannAttrList", "num"),
    *null(("aclHostSetProduct", b"host"), "name"),
    *null(("aclrtGetDeviceInfo", 0, 101, "out"), "value"),
    *null(("aclGetDeviceCapability", 0, 0, "out"), "value"),
    *null(("aclrtGetDevice", "out"), "deviceId"),
    *null(("aclrtGetDeviceCount", "out"), "count"),
    *null(("aclrtGetPrimaryCtxState", 0, None, "out"), "active"),
    *null(("aclrtGetDeviceUtilizationRate", 0, "out"), "utilizationInfo"),
    *null(("aclrtGetRunMode", "out"), "runMode"),
    *null(("aclrtDeviceCanAccessPeer", "out", 0, 1), "canAccessPeer"),
    *null(("aclrtDevicePeerAccessStatus", 0, 1, "out"), "status"),
    *null(("aclrtDeviceGetBareTgid", "out"), "pid"),
    *null(("aclrtSetOpExecuteTimeOutV2", 1, "out"), "actualTimeout"),
    *null(("aclrtGetDeviceSatMode", "out"), "mode"),
    *null(("aclrtCreateContext", "&none", 0), "context"),
    *null(("aclrtDestroyContext", "context"), "context"),
    *null(("aclrtSetCurrentContext", "context"), "context"),
    *null(("aclrtGetCurrentContext", "&none"), "context"),
    *null(("aclrtGetSysParamOpt", 0, "out"), "value"),
    *null(("aclrtCtxGetSysParamOpt", 0, "out"), "value"),
    *null(("aclrtMalloc", "&none", 8, 0), "devPtr"),
    *null(("aclrtMallocAlign32", "&none", 8, 0), "devPtr"),
    *null(("aclrtFree", "memory"), "devPtr"),
    *null(("aclrtMallocHost", "&none", 8), "hostPtr"),
    *null(("aclrtFreeHost", "pinned"), "hostPtr"),
    *null(("aclrtGetMemInfo", 0, "out", "out+8"), "free", "total"),
    *null(("aclrtHostRegister", "host", PAGE, 0, "&none"), "devPtr", "ptr"),
    *null(("aclrtHostRegisterV2", "host", PAGE, 2), "ptr"),
    *null(("aclrtHostGetDevicePointer", "host", "&none", 0), "pHost", "pDevice"),
    *null(("aclrtHostUnregister", "host"), "ptr"),
    *null(("aclrtMemcpy", "memory", 8, "host", 8, 1), "dst", "src"),
    *null(("aclrtMemcpyAsync", "memory", 8, "host", 8, 1, "stream"), "dst", "src"),
    *null(("aclrtMemset", "memory", 8, 0, 8), "devPtr"),
    *null(("aclrtMemsetAsync", "memory", 8, 0, 8, "stream"), "devPtr"),
    *null(("aclrtCmoAsync", "memory", 8, 0, "stream"), "src"),
    *null(("aclrtReserveMemAddress", "&none", PAGE, 0, None, 0), "virPtr"),
    *null(("aclrtReleaseMemAddress", "reserved"), "virPtr"),
    *null(("aclrtMallocPhysical", "&none", PAGE, "out", 0), "handle", "prop"),
    *null(("aclrtFreePhysical", "host"), "handle"),
    *null(("aclrtMemGetAllocationGranularity", "out", 0, "out+64"), "prop", "granularity"),
    *null(("aclrtMapMem", "reserved", PAGE, 0, "host", 0), "virPtr", "handle"),
    *null(("aclrtUnmapMem", "reserved"), "virPtr"),
    *null(("aclrtCreateStream", "&none"), "stream"),
    *null(("aclrtCreateStreamWithConfig", "&none", 0, 0), "stream"),
    *null(("aclrtDestroyStream", "stream"), "stream"),
    *null(("aclrtDestroyStreamForce", "stream"), "stream"),
    *null(("aclrtStreamGetId", "stream", "out"), "streamId"),
    *null(("aclrtStreamQuery", "stream", "out"), "status"),
    *null(("aclrtSetStreamFailureMode", "stream", 0), "stream"),
    *null(("aclrtSetStreamAttribute", "stream", 3, "out"), "value"),
    *null(("aclrtGetStreamAttribute", "stream", 3, "out"), "value"),
    *null(("aclrtGetStreamOverflowSwitch", "stream", "out"), "flag"),
    *null(("aclrtGetDeviceResLimit", 0, 0, "out"), "value"),
    *null(("aclrtGetStreamResLimit", "stream", 0, "out"), "value"),
    *null(("aclrtGetResInCurrentThread", 0, "out"), "value"),
    *null(("aclrtCreateEvent", "&none"), "event"),
    *null(("aclrtCreateEventWithFlag", "&none", 1), "event"),
    *null(("aclrtCreateEventExWithFlag", "&none", 1), "event"),
    *null(("aclrtDestroyEvent", "event"), "event"),
    *null(("aclrtRecordEvent", "event", "stream"), "event"),
    *null(("aclrtResetEvent", "event", "stream"), "event"),
    *null(("aclrtStreamWaitEvent", "stream", "event"), "event"),
    *null(("aclrtQueryEvent", "event", "out"), "event", "status"),
    *null(("aclrtQueryEventStatus", "event", "out"), "event", "status"),
    *null(("aclrtQueryEventWaitStatus", "event", "out"), "event", "status"),
    *null(("aclrtSynchronizeEvent", "event"), "event"),
    *null(("aclrtSynchronizeEventWithTimeout", "event", 0), "event"),
    *null(("aclrtEventElapsedTime", "out", "event", "event"), "ms"),
    *null(("aclrtEventGetTimestamp", "event", "out"), "event", "timestamp"),
    *null(("aclmdlRICaptureEnd", "stream", "&none"), "stream", "modelRI"),
    *null(("aclmdlRICaptureGetInfo", "stream", "out", None), "stream"),
    *null(("aclmdlRICaptureThreadExchangeMode", "out"), "mode"),
    *null(("aclmdlRICaptureTaskGrpBegin", "stream"), "stream"),
    *null(("aclmdlRICaptureTaskGrpEnd", "stream", "&none"), "stream", "handle"),
    *null(("aclmdlRICaptureTaskUpdateBegin", "stream", "gone_group"), "stream", "handle"),
    *null(("aclmdlRICaptureTaskUpdateEnd", "stream"), "stream"),
    *null(("aclmdlRIExecuteAsync", "gone_model", "stream"), "modelRI"),
    *null(("aclmdlRIExecute", "gone_model", -1), "modelRI"),
    *null(("aclmdlRIDestroy", "gone_model"), "modelRI"),
    *null(("aclmdlRIAbort", "gone_model"), "modelRI"),
    *null(("aclmdlRISetName", "gone_model", b"name"), "modelRI"),
    *null(("aclmdlRIGetName", "gone_model", 8, "out"), "modelRI"),
    *null(("aclmdlRIGetId", "gone_model", "out"), "modelRI"),
    *null(("aclmdlRIDestroyRegisterCallback", "gone_model", "nothing", None), "modelRI"),
    *null(("aclmdlRIDestroyUnregisterCallback", "gone_model", "nothing"), "modelRI"),
    *null(("aclmdlRIDebugPrint", "gone_model"), "modelRI"),
    *null(("aclmdlRIDebugJsonPrint", "gone_model", b"file", 0), "modelRI"),
    *null(("aclrtLaunchCallback", "nothing", None, 0, "stream"), "fn"),
    *null(("aclrtLaunchHostFunc", "stream", "nothing", None), "fn"),
    *null(("aclDestroyDataBuffer", "buffer"), "dataBuffer"),
    *null(("aclUpdateDataBuffer", "buffer", "memory", 16), "dataBuffer"),
    *null(("aclSetTensorFormat", "desc", 2), "desc"),
    *null(("aclSetTensorShape", "desc", 1, LIST), "desc"),
    *null(("aclSetTensorPlaceMent", "desc", 0), "desc"),
    *null(("aclSetTensorConst", "desc", LIST, 8), "desc", "dataBuffer"),
    *null(("aclGetTensorDescDimV2", "desc", 0, "out"), "desc", "dimSize"),
    *null(("aclopSetAttrBool", "attr", b"name", 1), "attr", "attrName"),
    *null(("aclopSetAttrInt", "attr", b"name", 1), "attr", "attrName"),
    *null(("aclopSetAttrFloat", "attr", b"name", 1.0), "attr", "attrName"),
    *null(("aclopSetAttrString", "attr", b"name", b"value"), "attr", "attrName"),
    *null(("aclopSetAttrDataType", "attr", b"name", 0), "attr", "attrName"),
    *null(("aclopSetAttrListBool", "attr", b"name", 1, LIST), "attr", "attrName"),
    *null(("aclopSetAttrListInt", "attr", b"name", 1, LIST), "attr", "attrName"),
    *null(("aclopSetAttrListFloat", "attr", b"name", 1, LIST), "attr", "attrName"),
    *null(("aclopSetAttrListListInt", "attr", b"name", 0, None, None), "attr", "attrName"),
    *null(("aclSetCompileopt", 0, b"value"), "value"),
    *null(("aclGetCompileopt", 10, "out", 64), "value"),
    *null(("aclopCompileAndExecute", b"Elu", 0, None, None, 0, None, None, None, 0, 0, None, None), "opType"),
    *null(("aclopCompileAndExecuteV2", b"Elu", 0, None, None, 0, None, None, None, 0, 0, None, None), "opType"),
]

INVALID = "ACL_ERROR_INVALID_PARAM"
RT_INVALID = "ACL_ERROR_RT_PARAM_INVALID"
NO_HANDLE = "ACL_ERROR_RT_INVALID_HANDLE"
UNSUPPORTED = "ACL_ERROR_FEATURE_UNSUPPORTED"
RT_UNSUPPORTED = "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"

NO_MODELS = "not supported by the host CANN: it runs no offline models"
UNIMPLEMENTED = [
    *refused(
        UNSUPPORTED,
        NO_MODELS,
        ("aclmdlLoadFromFile", b"model.om", "out"),
        ("aclmdlLoadFromMem", "host", 8, "out"),
        ("aclmdlUnload", 1),
        ("aclmdlExecute", 1, "out", "out"),
        ("aclmdlExecuteAsync", 1, "out", "out", "stream"),
        ("aclmdlDestroyDesc", "out"),
        ("aclmdlGetDesc", "out", 1),
        ("aclmdlGetInputDims", "out", 0, "out"),
        ("aclmdlGetOutputDims", "out", 0, "out"),
        ("aclmdlDestroyDataset", "out"),
        ("aclmdlAddDatasetBuffer", "out", "out"),
    ),
    *refused(
        UNSUPPORTED,
        NO_MODELS,
        ("aclmdlCreateDesc",),
        ("aclmdlGetNumInputs", "out"),
        ("aclmdlGetNumOutputs", "out"),
        ("aclmdlGetInputSizeByIndex", "out", 0),
        ("aclmdlGetOutputSizeByIndex", "out", 0),
        ("aclmdlGetInputNameByIndex", "out", 0),
        ("aclmdlGetOutputNameByIndex", "out", 0),
        ("aclmdlGetInputFormat", "out", 0),
        ("aclmdlGetOutputFormat", "out", 0),
        ("aclmdlGetInputDataType", "out", 0),
        ("aclmdlGetOutputDataType", "out", 0),
        ("aclmdlCreateDataset",),
        ("aclmdlGetDatasetNumBuffers", "out"),
        ("aclmdlGetDatasetBuffer", "out", 0),
        is_status=False,
    ),
    *refused(
        UNSUPPORTED,
        NO_MODELS + " and dumps none",
        ("aclmdlInitDump",),
        ("aclmdlSetDump", b"dump.json"),
        ("aclmdlFinalizeDump",),
    ),
    *refused(
        RT_UNSUPPORTED,
        "not supported by the host CANN: a captured model has no conditional tasks; make one model for each case",
        ("aclmdlRICondHandleCreate", "out", 0, 0, "&none"),
    ),
    *refused(
        RT_UNSUPPORTED,
        "not supported by the host CANN: device memory is not shared between processes",
        ("aclrtMemExportToShareableHandle", "host", 0, 0, "out"),
        ("aclrtMemImportFromShareableHandle", 1, 0, "&none"),
        ("aclrtMemSetPidToShareableHandle", 1, "out", 1),
        ("aclrtIpcMemGetExportKey", "memory", 64, "out", 64, 0),
        ("aclrtIpcMemSetImportPid", b"key", "out", 1),
        ("aclrtIpcMemImportByKey", "&none", b"key", 0),
        ("aclrtIpcMemClose", b"key"),
    ),
    *refused(
        RT_UNSUPPORTED,
        "not supported by the host CANN: it runs no device binaries",
        ("aclrtBinaryLoadFromData", "host", 8, None, "&none"),
        ("aclrtBinaryGetFunction", "host", b"kernel", "&none"),
        ("aclrtGetFunctionAddr", "host", "&none", "&none"),
        ("rtDevBinaryRegister", "out", "&none"),
        ("rtFunctionRegister", "out", "out", b"stub", None, 0),
        ("rtKernelLaunch", "out", 1, "out", 8, None, "stream"),
    ),
    *refused(
        RT_UNSUPPORTED,
        "not supported by the host CANN: a simulated device has no control address for its cores",
        ("rtGetC2cCtrlAddr", "out", "out+8"),
    ),
]

# ---- devices, contexts, versions

NONE_2 = "device 2 does not exist; there are 2 (environment variable ACLNN_TORCH_DEVICES)"
ATTRIBUTES = "expected one of 101, 102, 201, 301 and 302; a simulated device has no others"
GONE_CONTEXT = "the context does not exist, or was destroyed"
DEVICES = [
    *refused(
        "ACL_ERROR_RT_INVALID_DEVICEID",
        NONE_2,
        ("aclrtSetDevice", 2),
        ("aclrtResetDevice", 2),
        ("aclrtResetDeviceForce", 2),
        ("aclrtCreateContext", "&none", 2),
        ("aclrtGetPrimaryCtxState", 2, None, "out"),
        ("aclrtGetDeviceUtilizationRate", 2, "out"),
        ("aclrtDeviceCanAccessPeer", "out", 0, 2),
        ("aclrtDeviceCanAccessPeer", "out", 2, 0),
        ("aclrtDeviceEnablePeerAccess", 2, 0),
        ("aclrtDeviceDisablePeerAccess", 2),
        ("aclrtDevicePeerAccessStatus", 0, 2, "out"),
        ("aclrtDevicePeerAccessStatus", 2, 0, "out"),
        ("aclrtGetDeviceInfo", 2, 101, "out"),
        ("aclGetDeviceCapability", 2, 0, "out"),
        ("aclrtSetDeviceResLimit", 2, 0, 1),
        ("aclrtGetDeviceResLimit", 2, 0, "out"),
        ("aclrtResetDeviceResLimit", 2),
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 0, 0, 2, 1, 0), 0),
    ),
    *refused(
        "ACL_ERROR_RT_INVALID_DEVICEID",
        NONE_2.replace("2 d", "-1 d"),
        ("aclrtSetDevice", -1),
        ("aclGetDeviceCapability", -1, 0, "out"),
    ),
    *(
        refusal
        for info in (-1, 3)
        for refusal in refused(
            INVALID,
            f"deviceInfo is {info}, expected 0 (ACL_DEVICE_INFO_AI_CORE_NUM) to 2 (ACL_DEVICE_INFO_L2_SIZE)",
            ("aclGetDeviceCapability", 0, info, "out"),
        )
    ),
    *refused(RT_UNSUPPORTED, f"attr is 103, {ATTRIBUTES}", ("aclrtGetDeviceInfo", 0, 103, "out")),
    *refused(
        INVALID,
        "flags is {out}, expected a null pointer; it is reserved",
        ("aclrtGetPrimaryCtxState", 0, "out", "out+8"),
    ),
    *refused(
        INVALID,
        "utilizationExtend is 0x7, expected a null pointer; it is reserved",
        ("aclrtGetDeviceUtilizationRate", 0, struct.pack("iiiiq", 0, 0, 0, 0, 7)),
    ),
    *refused(INVALID, "flags is 1, expected 0", ("aclrtDeviceEnablePeerAccess", 1, 1)),
    *refused(
        INVALID,
        "device 0 is the current device, expected another one as its peer",
        ("aclrtDeviceEnablePeerAccess", 0, 0),
    ),
    *refused(
        RT_INVALID,
        "mode is 2, expected 0 (ACL_RT_OVERFLOW_MODE_SATURATION) or 1 (ACL_RT_OVERFLOW_MODE_INFNAN)",
        ("aclrtSetDeviceSatMode", 2),
    ),
    *refused(
        RT_UNSUPPORTED,
        "mode is ACL_RT_OVERFLOW_MODE_SATURATION, expected ACL_RT_OVERFLOW_MODE_INFNAN, which alone Ascend950 has",
        ("aclrtSetDeviceSatMode", 0),
        before=[("aclHostSetProduct", b"Ascend950")],
        after=[("aclHostSetProduct", b"Ascend910B")],
    ),
    *refused(
        RT_UNSUPPORTED,
        "mode is ACL_RT_OVERFLOW_MODE_INFNAN, expected ACL_RT_OVERFLOW_MODE_SATURATION, which alone Ascend310P has",
        ("aclrtSetDeviceSatMode", 1),
        before=[("aclHostSetProduct", b"Ascend310P")],
        after=[("aclHostSetProduct", b"Ascend910B")],
    ),
    *refused(
        INVALID,
        "Ascend1 does not name a product; the products are Ascend310P, Ascend910, Ascend910B, Ascend910_93, "
        "Ascend950 and host, and their SoC names are accepted, too",
        ("aclHostSetProduct", b"Ascend1"),
    ),
    *refused(
        INVALID,
        "name is 8, expected 0 (ACL_PKG_NAME_CANN) to 7 (ACL_PKG_NAME_DRIVER)",
        ("aclsysGetCANNVersion", 8, "out"),
    ),
    *refused(
        INVALID,
        "cannAttr is 3, expected 0 (ACL_CANN_ATTR_INF_NAN) to 2 (ACL_CANN_ATTR_JIT_COMPILE)",
        ("aclGetCannAttribute", 3, "out"),
    ),
    *refused(
        RT_INVALID,
        "opt is 4, expected 0 (ACL_OPT_DETERMINISTIC) to 3 (ACL_OPT_ENABLE_KERNEL_EARLY_START)",
        ("aclrtSetSysParamOpt", 4, 1),
        ("aclrtGetSysParamOpt", 4, "out"),
        ("aclrtCtxSetSysParamOpt", 4, 1),
        ("aclrtCtxGetSysParamOpt", 4, "out"),
    ),
    *refused(
        "ACL_ERROR_RT_SYSPARAMOPT_NOT_SET",
        "option 2 was never set in this context",
        ("aclrtCtxGetSysParamOpt", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        "the context was made by aclrtSetDevice, expected one of aclrtCreateContext; end it with aclrtResetDevice",
        ("aclrtDestroyContext", "context"),
    ),
    *refused(
        "ACL_ERROR_RT_CONTEXT_NULL",
        GONE_CONTEXT,
        ("aclrtDestroyContext", "gone_context"),
        ("aclrtSetCurrentContext", "gone_context"),
    ),
    *refused(
        RT_INVALID,
        "type is 2, expected 0 (cube) or 1 (vector)",
        ("aclrtSetDeviceResLimit", 0, 2, 1),
        ("aclrtGetDeviceResLimit", 0, 2, "out"),
        ("aclrtSetStreamResLimit", "stream", 2, 1),
        ("aclrtGetStreamResLimit", "stream", 2, "out"),
        ("aclrtGetResInCurrentThread", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        "value is 25, expected 1 to 24, the device's cores",
        ("aclrtSetDeviceResLimit", 0, 0, 25),
        ("aclrtSetStreamResLimit", "stream", 0, 25),
    ),
    *refused(
        RT_INVALID,
        "value is 0, expected 1 to 48, the device's cores",
        ("aclrtSetDeviceResLimit", 0, 1, 0),
        ("aclrtSetStreamResLimit", None, 1, 0),
    ),
]

# ---- memory. A block has 32 bytes more than a multiple of 32, so those of 64 have 96.

FREE = 2**30 - 96
LARGEST = (2**64 - 1) // 4
PHYSICAL = struct.pack("iiiIiQ", 0, 0, 0, 0, 1, 0)  # pinned memory of device 0
HAVE_PHYSICAL: list[Call] = [("aclrtMallocPhysical", "&physical", PAGE, PHYSICAL, 0)]
FREE_PHYSICAL: list[Call] = [("aclrtFreePhysical", "physical")]
MAPPED: list[Call] = [*HAVE_PHYSICAL, ("aclrtMapMem", "reserved", PAGE, 0, "physical", 0)]
UNMAPPED: list[Call] = [("aclrtUnmapMem", "reserved"), *FREE_PHYSICAL]
NO_PHYSICAL = "{memory} is not a handle of aclrtMallocPhysical, or was freed"
REGISTERED: list[Call] = [("aclrtHostRegisterV2", "host", PAGE, 2)]
UNREGISTERED: list[Call] = [("aclrtHostUnregister", "host")]
POLICIES = "expected one of ACL_MEM_MALLOC_ (0 to 7), and bits of 0x101100 (ACL_MEM_TYPE_ and ACL_MEM_ACCESS_) or none"
BOTH_FLAGS = "expected ACL_HOST_REG_MAPPED (0x2), ACL_HOST_REG_PINNED (0x10000000), or both"


def exhausted(size: int) -> str:
    return (
        f"device 0 is out of memory: {size} bytes requested, {FREE} of {2**30} free (environment variable "
        "ACLNN_TORCH_DEVICE_MEMORY)"
    )


MEMORY = [
    *refused(
        INVALID,
        "size is 0, expected 1 or more bytes",
        ("aclrtMalloc", "&none", 0, 0),
        ("aclrtMallocAlign32", "&none", 0, 0),
        ("aclrtMallocHost", "&none", 0),
    ),
    *refused(
        INVALID,
        f"policy is 0x8, {POLICIES}",
        ("aclrtMalloc", "&none", 8, 8),
        ("aclrtMallocAlign32", "&none", 8, 8),
    ),
    *refused(INVALID, f"policy is 0x200, {POLICIES}", ("aclrtMalloc", "&none", 8, 0x200)),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION",
        exhausted(2**30),
        ("aclrtMalloc", "&none", 2**30, 0),
        ("aclrtMallocAlign32", "&none", 2**30, 0),
        ("aclrtMallocPhysical", "&none", 2**30, PHYSICAL, 0),
    ),
    *refused("ACL_ERROR_RT_MEMORY_ALLOCATION", exhausted(2**64 - 1), ("aclrtMalloc", "&none", 2**64 - 1, 0)),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION", f"the host cannot allocate {2**62} bytes", ("aclrtMallocHost", "&none", 2**62)
    ),
    *refused(
        RT_INVALID, "{pinned} is not the beginning of a block of aclrtMalloc, or was freed", ("aclrtFree", "pinned")
    ),
    *refused(
        RT_INVALID, "{memory+8} is not the beginning of a block of aclrtMalloc, or was freed", ("aclrtFree", "memory+8")
    ),
    *refused(
        RT_INVALID,
        "{memory} is not the beginning of a block of aclrtMallocHost, or was freed",
        ("aclrtFreeHost", "memory"),
    ),
    *refused(
        INVALID,
        "attr is 18, expected 0 (ACL_DDR_MEM) to 17 (ACL_MEM_P2P_HUGE1G)",
        ("aclrtGetMemInfo", 18, "out", "out+8"),
    ),
    # copies
    *(
        refusal
        for kind in (-1, 6)
        for refusal in refused(
            INVALID,
            f"kind is {kind}, expected 0 to 5 of aclrtMemcpyKind",
            ("aclrtMemcpy", "memory", 8, "memory", 8, kind),
        )
    ),
    *(
        refusal
        for kind in (-1, 8)
        for refusal in refused(
            INVALID,
            f"kind is {kind}, expected 0 to 7 of aclrtMemcpyKind",
            ("aclrtMemcpyAsync", "memory", 8, "memory", 8, kind, "stream"),
        )
    ),
    *refused(
        RT_INVALID,
        "count 9 is more than destMax 8",
        ("aclrtMemcpy", "memory", 8, "host", 9, 1),
        ("aclrtMemcpyAsync", "memory", 8, "host", 9, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {pinned}, which is not device memory of aclrtMalloc",
        ("aclrtMemcpy", "pinned", 8, "host", 8, 1),
        ("aclrtMemcpyAsync", "pinned", 8, "host", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {host}, which is not device memory of aclrtMalloc",
        ("aclrtMemcpy", "pinned", 8, "host", 8, 2),
        ("aclrtMemcpyAsync", "pinned", 8, "host", 8, 2, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {memory1}, which is memory of device 1, expected host memory",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {memory}, which is memory of device 0, expected host memory",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 2, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {memory+8} and the call accesses 90 bytes, which reaches outside its block of 96 bytes at {memory}",
        ("aclrtMemcpy", "memory+8", 90, "host", 90, 1),
        ("aclrtMemcpyAsync", "memory+8", 90, "host", 90, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {pinned+8} and the call accesses 60 bytes, which reaches outside its block of 64 bytes at {pinned}",
        ("aclrtMemcpy", "memory", 60, "pinned+8", 60, 1),
        ("aclrtMemcpyAsync", "memory", 60, "pinned+8", 60, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "the kind is a copy within one device, but the memory is of device 1 and device 0",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 6, "stream"),
    ),
    *refused(
        RT_INVALID,
        "count 9 is more than maxCount 8",
        ("aclrtMemset", "memory", 8, 0, 9),
        ("aclrtMemsetAsync", "memory", 8, 0, 9, "stream"),
    ),
    *refused(
        RT_INVALID,
        "devPtr is {host}, which is not memory of aclrtMalloc or aclrtMallocHost",
        ("aclrtMemset", "host", 8, 0, 8),
        ("aclrtMemsetAsync", "host", 8, 0, 8, "stream"),
    ),
    *refused(
        RT_INVALID,
        "devPtr is {memory} and the call accesses 97 bytes, which reaches outside its block of 96 bytes at {memory}",
        ("aclrtMemset", "memory", 97, 0, 97),
        ("aclrtMemsetAsync", "memory", 97, 0, 97, "stream"),
    ),
    *refused(
        RT_UNSUPPORTED,
        "cmoType is 1, expected 0 (ACL_RT_CMO_TYPE_PREFETCH), the only operation that CANN supports",
        ("aclrtCmoAsync", "memory", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "the 97 bytes at src are not device memory of one block; pass memory of aclrtMalloc",
        ("aclrtCmoAsync", "memory", 97, 0, "stream"),
        ("aclrtCmoAsync", "host", 97, 0, "stream"),
    ),
    # registered host memory
    *refused(
        RT_INVALID, "type is 1, expected ACL_HOST_REGISTER_MAPPED (0)", ("aclrtHostRegister", "host", PAGE, 1, "&none")
    ),
    *refused(
        RT_INVALID,
        f"ptr is {{host+8}}, expected the beginning of a page of {PAGE} bytes",
        ("aclrtHostRegister", "host+8", 8, 0, "&none"),
        ("aclrtHostRegisterV2", "host+8", 8, 2),
    ),
    *refused(
        RT_INVALID,
        "size is 0, expected 1 or more, and memory there",
        ("aclrtHostRegister", "host", 0, 0, "&none"),
        ("aclrtHostRegisterV2", "host", 0, 0x10000000),
    ),
    *refused(
        RT_INVALID,
        f"size is {2**64 - 1}, expected 1 or more, and memory there",
        ("aclrtHostRegisterV2", "host", 2**64 - 1, 2),
    ),
    *refused(
        "ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        "a part of the 16 bytes at {host} is registered; call aclrtHostUnregister first",
        ("aclrtHostRegister", "host", 16, 0, "&none"),
        ("aclrtHostRegisterV2", "host", 16, 2),
        before=REGISTERED,
        after=UNREGISTERED,
    ),
    *refused(RT_INVALID, f"flag is 0, {BOTH_FLAGS}", ("aclrtHostRegisterV2", "host", PAGE, 0)),
    *refused(RT_INVALID, f"flag is 0x3, {BOTH_FLAGS}", ("aclrtHostRegisterV2", "host", PAGE, 3)),
    *refused(RT_INVALID, "flag is 1, expected 0", ("aclrtHostGetDevicePointer", "host", "&none", 1)),
    *refused(
        "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED",
        "{host} is not registered; call aclrtHostRegisterV2 first",
        ("aclrtHostGetDevicePointer", "host", "&none", 0),
    ),
    *refused(
        "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED",
        "{host+8} is not the beginning of registered memory",
        ("aclrtHostUnregister", "host+8"),
        before=REGISTERED,
        after=UNREGISTERED,
    ),
    # virtual memory
    *refused(RT_INVALID, f"size is 0, expected 1 to {LARGEST}", ("aclrtReserveMemAddress", "&none", 0, 0, None, 0)),
    *refused(
        RT_INVALID,
        f"size is {LARGEST + 1}, expected 1 to {LARGEST}",
        ("aclrtReserveMemAddress", "&none", LARGEST + 1, 0, None, 0),
    ),
    *refused(
        RT_INVALID,
        "alignment is 8 and expectPtr (nil), expected 0 and a null pointer",
        ("aclrtReserveMemAddress", "&none", PAGE, 8, None, 0),
    ),
    *refused(
        RT_INVALID,
        "alignment is 0 and expectPtr {host}, expected 0 and a null pointer",
        ("aclrtReserveMemAddress", "&none", PAGE, 0, "host", 0),
    ),
    *refused(
        RT_INVALID,
        "flags is 2, expected 0 (normal pages) or 1 (huge pages)",
        ("aclrtReserveMemAddress", "&none", PAGE, 0, None, 2),
    ),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION",
        f"the host cannot reserve {LARGEST} bytes of contiguous address space",
        ("aclrtReserveMemAddress", "&none", LARGEST, 0, None, 0),
    ),
    *refused(
        RT_INVALID,
        "{host} is not the beginning of a range of aclrtReserveMemAddress",
        ("aclrtReleaseMemAddress", "host"),
    ),
    *refused(
        RT_INVALID,
        "memory is mapped in the range of {reserved}; call aclrtUnmapMem first",
        ("aclrtReleaseMemAddress", "reserved"),
        before=MAPPED,
        after=UNMAPPED,
    ),
    *refused(
        RT_INVALID,
        "option is 2, expected 0 (the least) or 1 (the recommended)",
        ("aclrtMemGetAllocationGranularity", "out", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        f"size is {PAGE + 1}, expected a multiple of the page size {PAGE}",
        ("aclrtMallocPhysical", "&none", PAGE + 1, PHYSICAL, 0),
    ),
    *refused(
        RT_INVALID,
        "flags is 1, expected 0",
        ("aclrtMallocPhysical", "&none", PAGE, PHYSICAL, 1),
        ("aclrtMapMem", "reserved", PAGE, 0, "host", 1),
    ),
    *refused(
        RT_UNSUPPORTED,
        "location.type is 0, expected the memory of a device; the host CANN implements no other",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 0, 0, 0, 0, 0), 0),
    ),
    *refused(
        RT_INVALID,
        "handleType is 2 and allocationType 0, expected 0 and 0",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 2, 0, 0, 0, 1, 0), 0),
    ),
    *refused(
        RT_INVALID,
        "handleType is 0 and allocationType 1, expected 0 and 0",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 1, 0, 0, 1, 0), 0),
    ),
    *refused(
        RT_INVALID, NO_PHYSICAL, ("aclrtFreePhysical", "memory"), ("aclrtMapMem", "reserved", PAGE, 0, "memory", 0)
    ),
    *refused(
        RT_INVALID,
        f"offset is 8 and size {PAGE}, expected 0 and {PAGE}; physical memory is mapped as a whole",
        ("aclrtMapMem", "reserved", PAGE, 8, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        f"offset is 0 and size {2 * PAGE}, expected 0 and {PAGE}; physical memory is mapped as a whole",
        ("aclrtMapMem", "reserved", 2 * PAGE, 0, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        f"{PAGE} bytes at {{reserved+8}} are not whole pages inside a range of aclrtReserveMemAddress",
        ("aclrtMapMem", "reserved+8", PAGE, 0, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        "memory is mapped already at {reserved}; call aclrtUnmapMem first",
        ("aclrtMapMem", "reserved", PAGE, 0, "physical", 0),
        before=MAPPED,
        after=UNMAPPED,
    ),
    *refused(RT_INVALID, "{reserved} is not the beginning of a mapping", ("aclrtUnmapMem", "reserved")),
]

# ---- streams, events, callbacks

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
        )
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
    *refused(
        RT_INVALID,
        "flag is 0x0, expected a combination of ACL_EVENT_ flags",
        ("aclrtCreateEventWithFlag", "&none", 0),
        ("aclrtCreateEventExWithFlag", "&none", 0),
    ),
    *refused(
        RT_INVALID,
        "flag is 0x81, expected a combination of ACL_EVENT_ flags",
        ("aclrtCreateEventWithFlag", "&none", 0x81),
        ("aclrtCreateEventExWithFlag", "&none", 0x81),
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

# ---- captures, captured models, groups of tasks

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

# ---- descriptors and executors

OTHER_KIND = "which was destroyed, or is another kind of object"
NULL, BAD, INNER = "ACLNN_ERR_PARAM_NULLPTR", "ACLNN_ERR_PARAM_INVALID", "ACLNN_ERR_INNER"
ELU: Call = ("aclnnEluGetWorkspaceSize", "tensor", "scalar", "scalar", "scalar", "result", "&size", "&executor")
STAGE_1 = [ELU]
REPEATABLE: list[Call] = [ELU, ("aclSetAclOpExecutorRepeatable", "executor")]
DISCARD: list[Call] = [("aclDestroyAclOpExecutor", "executor")]
CAT: list[Call] = [
    ("aclnnCatGetWorkspaceSize", "list", 0, "result", "&size", "&executor"),
    ("aclSetAclOpExecutorRepeatable", "executor"),
]
CONSUMED = (
    "executor was consumed by its second stage, or destroyed; run the first stage again, or make the executor "
    "repeatable with aclSetAclOpExecutorRepeatable"
)
NO_EXECUTOR = "executor is not a handle that stage 1 returned; pass the one that GetWorkspaceSize wrote"


AS_MANY = "allocate as many bytes as sizes, strides and offset need"
PADDING = "or let tensors use the padding of a block as a device does (environment variable ACLNN_TORCH_PADDING=1)"


def elu_of(address: Argument) -> list[Call]:
    """Stage 1 on a tensor at that address."""
    tensor: Call = ("x=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, address)
    return [tensor, (ELU[0], "x", *ELU[2:])]


NO_ELU: list[Call] = [("aclDestroyTensor", "x")]


def of_descriptor(call: Call, *names: str) -> list[Refusal]:
    """A function of a descriptor, without each argument, and with another kind of object."""
    given = null(call, *names, status=NULL, text="{} is null")
    other = (call[0], "scalar", *call[2:])
    return [*given, *refused(BAD, f"{names[0]} is {{scalar}}, {OTHER_KIND}", other)]


def addresses(function: str, objects: str) -> list[Refusal]:
    """A function that sets an address of an executor's tensors."""
    position: Call = (0, 0) if objects == "tensors" else (0,)
    return [
        *refused(
            "ACLNN_ERR_INNER_NULLPTR",
            "executor is null",
            (function, None, *position, "tensor", "memory"),
            ("Acl" + function[3:], None, *position, "tensor", "memory"),
            by=function,
        ),
        *refused("ACLNN_ERR_INNER_NULLPTR", f"{objects} is null", (function, "host", *position, None, "memory")),
        *refused(INNER, NO_EXECUTOR, (function, "host", *position, "tensor", "memory")),
        *refused(INNER, CONSUMED, (function, "executor", *position, "tensor", "memory"), before=[*STAGE_1, *DISCARD]),
    ]


DESCRIPTORS = [
    *refused(
        "ACL_SUCCESS",
        "value is null although size is not 0",
        ("aclCreateIntArray", None, 1),
        ("aclCreateFloatArray", None, 1),
        ("aclCreateBoolArray", None, 1),
        ("aclCreateTensorList", None, 1),
        ("aclCreateScalarList", None, 1),
        is_status=False,
    ),
    *refused(
        "ACL_SUCCESS", f"an element is {{scalar}}, {OTHER_KIND}", ("aclCreateTensorList", "&scalar", 1), is_status=False
    ),
    *refused(
        "ACL_SUCCESS", f"an element is {{tensor}}, {OTHER_KIND}", ("aclCreateScalarList", "&tensor", 1), is_status=False
    ),
    *refused(
        BAD,
        f"array is {{scalar}}, {OTHER_KIND}",
        ("aclDestroyIntArray", "scalar"),
        ("aclDestroyFloatArray", "scalar"),
        ("aclDestroyBoolArray", "scalar"),
        ("aclDestroyTensorList", "scalar"),
        ("aclDestroyScalarList", "scalar"),
    ),
    *refused(BAD, f"array is {{array}}, {OTHER_KIND}", ("aclDestroyFloatArray", "array")),
    *refused(BAD, f"scalar is {{tensor}}, {OTHER_KIND}", ("aclDestroyScalar", "tensor")),
    *refused(BAD, f"tensor is {{scalar}}, {OTHER_KIND}", ("aclDestroyTensor", "scalar")),
    *of_descriptor(("aclGetIntArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetFloatArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetBoolArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetTensorListSize", "array", "out"), "tensorList", "size"),
    *of_descriptor(("aclGetScalarListSize", "array", "out"), "scalarList", "size"),
    *of_descriptor(("aclGetViewShape", "tensor", "&none", "out"), "tensor", "viewDims", "viewDimsNum"),
    *of_descriptor(("aclGetStorageShape", "tensor", "&none", "out"), "tensor", "storageDims", "storageDimsNum"),
    *of_descriptor(("aclGetViewStrides", "tensor", "&none", "out"), "tensor", "stridesValue", "stridesNum"),
    *of_descriptor(("aclGetViewOffset", "tensor", "out"), "tensor", "offset"),
    *of_descriptor(("aclGetFormat", "tensor", "out"), "tensor", "format"),
    *of_descriptor(("aclGetDataType", "tensor", "out"), "tensor", "dataType"),
    *of_descriptor(("aclSetRawTensorAddr", "tensor", "memory"), "tensor"),
    *of_descriptor(("aclGetRawTensorAddr", "tensor", "&none"), "tensor", "addr"),
    *of_descriptor(("aclInitTensor", "tensor", LIST, 1, 0, None, 0, 2, LIST, 1, "memory"), "tensor"),
    *refused("ACL_SUCCESS", "value is null", ("aclCreateScalar", None, 0), is_status=False),
    *refused(
        "ACL_SUCCESS", "the data type is 13, which a scalar cannot have", ("aclCreateScalar", LIST, 13), is_status=False
    ),
    *refused(
        "ACL_SUCCESS",
        "viewDims is null although its count is not 0",
        ("aclCreateTensor", None, 1, 0, None, 0, 2, None, 1, "memory"),
        is_status=False,
    ),
    *refused(
        "ACL_SUCCESS",
        "storageDims is null although its count is not 0",
        ("aclCreateTensor", LIST, 1, 0, None, 0, 2, None, 1, "memory"),
        is_status=False,
    ),
    *refused(
        NULL,
        "viewDims is null although its count is not 0",
        ("aclInitTensor", "tensor", None, 1, 0, None, 0, 2, LIST, 1, "memory"),
    ),
    *refused(
        NULL,
        "storageDims is null although its count is not 0",
        ("aclInitTensor", "tensor", LIST, 1, 0, None, 0, 2, None, 1, "memory"),
    ),
    # dumps
    *null(
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, None),
        *("opType", "opName", "tensors"),
        status=NULL,
        text="{} is null",
    ),
    # functions of operators that have no executor
    *null(
        ("aclnnNpuFormatCastCalculateSizeAndFormat", "tensor", 29, -1, "&none", "out", "out"),
        *("srcTensor", "dstShape", "dstShapeSize", "actualFormat"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnCalculateConvolutionWeightSize", "array", 0, 1, 1, "out"),
        *("tensorShape", "weightTensorSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnCalculateMatmulWeightSize", "array", "out"),
        *("tensorShape", "weightTensorSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnTransQuantParam", "host", 1, None, 0, "&none", "out"),
        *("scaleArray", "quantParam", "quantParamSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnTransSparse4to2Para", "host", "array", *("&none", "&none", "out", "&none", "&none", "out")),
        *("weight", "shape", "sparseWeight", "sparseWeightDims"),
        *("sparseWeightDimsNum", "index", "indexDims", "indexDimsNum"),
        status=NULL,
        text="{} is null",
    ),
    Refusal(
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, "gone_stream"),
        "ACLNN_ERR_RUNTIME_ERROR",
        f"aclDumpOpTensors: the stream failed with 107017\naclrtSynchronizeStream: {NO_STREAM}",
    ),
    *refused(
        BAD, f"a tensor is {{scalar}}, {OTHER_KIND}", ("aclDumpOpTensors", b"Elu", b"name", "&scalar", 1, 0, None)
    ),
    *refused(
        INNER,
        "cannot write missing/Elu.name.input.0.bin: No such file or directory",
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, None),
    ),
    *refused(
        INNER,
        "cannot write missing/Elu.name.output.0.bin: No such file or directory",
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 0, 1, None),
    ),
    *refused(
        BAD,
        "the memory of tensor 0 was freed before it was written; free it after the call",
        ("aclDumpOpTensors", b"Elu", b"name", "&brief_tensor", 1, 0, None),
        before=[
            ("aclrtMalloc", "&brief", 64, 2),
            ("brief_tensor=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, "brief"),
            ("aclrtFree", "brief"),
        ],
        after=[("aclDestroyTensor", "brief_tensor")],
    ),
    # executors
    *refused(
        "ACLNN_ERR_INNER_NULLPTR",
        "executor is null",
        ("aclSetAclOpExecutorRepeatable", None),
        ("aclDestroyAclOpExecutor", None),
        ("aclDestroyOpExecutor", None),
    ),
    *refused(
        INNER,
        NO_EXECUTOR,
        ("aclSetAclOpExecutorRepeatable", "host"),
        ("aclDestroyAclOpExecutor", "host"),
        ("aclDestroyOpExecutor", "host"),
        ("aclnnElu", None, 0, "host", None),
    ),
    *refused(
        INNER,
        CONSUMED,
        ("aclSetAclOpExecutorRepeatable", "executor"),
        ("aclDestroyAclOpExecutor", "executor"),
        ("aclDestroyOpExecutor", "executor"),
        before=[*STAGE_1, *DISCARD],
    ),
    *refused(NULL, CONSUMED, ("aclnnElu", None, 0, "executor", None), before=[*STAGE_1, *DISCARD]),
    *addresses("aclSetTensorAddr", "tensor"),
    *addresses("aclSetInputTensorAddr", "tensor"),
    *addresses("aclSetOutputTensorAddr", "tensor"),
    *addresses("aclSetDynamicTensorAddr", "tensors"),
    *addresses("aclSetDynamicInputTensorAddr", "tensors"),
    *addresses("aclSetDynamicOutputTensorAddr", "tensors"),
    *(
        Refusal(call, BAD, f"{call[0]}: {text}", REPEATABLE, DISCARD)
        for text, call in (
            (
                "index is 2, expected less than the number of tensor arguments of aclnnElu, 2",
                ("aclSetTensorAddr", "executor", 2, "tensor", "memory"),
            ),
            (
                "index is 1, expected less than the number of tensor inputs of aclnnElu, 1",
                ("aclSetInputTensorAddr", "executor", 1, "tensor", "memory"),
            ),
            (
                "index is 3, expected less than the number of tensor outputs of aclnnElu, 1",
                ("aclSetOutputTensorAddr", "executor", 3, "tensor", "memory"),
            ),
            (
                "irIndex is 2, expected less than the number of tensor arguments of aclnnElu, 2",
                ("aclSetDynamicTensorAddr", "executor", 2, 0, "tensor", "memory"),
            ),
            (
                "argument 1 of aclnnElu is a tensor, expected a list; call aclSetTensorAddr",
                ("aclSetDynamicTensorAddr", "executor", 1, 0, "tensor", "memory"),
            ),
            (
                "input 0 of aclnnElu is a tensor, expected a list; call aclSetInputTensorAddr",
                ("aclSetDynamicInputTensorAddr", "executor", 0, 0, "tensor", "memory"),
            ),
            (
                "output 0 of aclnnElu is a tensor, expected a list; call aclSetOutputTensorAddr",
                ("aclSetDynamicOutputTensorAddr", "executor", 0, 0, "tensor", "memory"),
            ),
        )
    ),
    *(
        Refusal(call, BAD, f"{call[0]}: {text}", CAT, DISCARD)
        for text, call in (
            (
                "argument 0 of aclnnCat is a list, expected a tensor; call aclSetDynamicTensorAddr",
                ("aclSetTensorAddr", "executor", 0, "tensor", "memory"),
            ),
            (
                "input 0 of aclnnCat is a list, expected a tensor; call aclSetDynamicInputTensorAddr",
                ("aclSetInputTensorAddr", "executor", 0, "tensor", "memory"),
            ),
            (
                "relativeIndex is 1, expected less than the size of the list that is argument 0 of aclnnCat, 1",
                ("aclSetDynamicTensorAddr", "executor", 0, 1, "list", "memory"),
            ),
            (
                "relativeIndex is 2, expected less than the size of the list that is input 0 of aclnnCat, 1",
                ("aclSetDynamicInputTensorAddr", "executor", 0, 2, "list", "memory"),
            ),
        )
    ),
    *refused(NULL, "executor is null; run aclnnEluGetWorkspaceSize first", ("aclnnElu", None, 0, None, None)),
    *refused(
        NULL,
        "workspace is null, expected 64 bytes; allocate as many as stage 1 returned",
        ("aclnnElu", None, 64, "executor", None),
        before=STAGE_1,
    ),
    *refused(
        INNER,
        "the executor was made by aclnnEluGetWorkspaceSize, for another operator; pass each executor to the second "
        "stage of its own operator",
        ("aclnnSilu", None, 0, "executor", None),
        before=STAGE_1,
    ),
    *refused(
        NULL,
        "tensor argument 0 has elements but a null address; pass the address of its memory to aclCreateTensor, or set "
        "it with aclSetTensorAddr",
        ("aclnnElu", None, 0, "executor", None),
        before=elu_of(None),
        after=NO_ELU,
    ),
    *(
        refusal
        for address, block, place in (
            ("memory+56", "memory", f"aclrtMalloc, at {{memory}}; {AS_MANY}, {PADDING}"),
            ("memory+88", "memory", f"aclrtMalloc, at {{memory}}; {AS_MANY}"),
            ("pinned+56", "pinned", f"aclrtMallocHost, at {{pinned}}; {AS_MANY}"),
        )
        for refusal in refused(
            BAD,
            f"tensor argument 0 (shape [4]) needs 16 bytes at {{{address}}}, which reaches outside its block: 64 bytes "
            f"were requested from {place}",
            ("aclnnElu", None, 0, "executor", None),
            before=elu_of(address),
            after=NO_ELU,
        )
    ),
    *refused(
        "ACL_ERROR_RT_COPY_DATA",
        "the memory of tensor argument 0 (shape [4]) was freed before the stream ran the operator; free it after the "
        "stream is synchronised, and set the address anew after memory is allocated again",
        ("aclrtSynchronizeStream", "own"),
        by="aclnnElu",
        before=[
            *BUSY,
            ("aclrtMalloc", "&brief", 64, 2),
            *elu_of("brief"),
            ("aclnnElu", None, 0, "executor", "own"),
            ("aclrtFree", "brief"),
            *RELEASE,
        ],
        after=[*NO_ELU, *END_BUSY],
    ),
    *refused(
        "ACL_ERROR_RT_AICORE_EXCEPTION",
        "tensor argument 0 (shape [4]) is in the memory of device 1, but the stream belongs to device 0; copy it to "
        "the stream's device first",
        ("aclrtSynchronizeStream", "own"),
        by="aclnnElu",
        before=[*OF_STREAM, *elu_of("memory1"), ("aclnnElu", None, 0, "executor", "own")],
        after=[*NO_ELU, *DESTROY],
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        "the number of operators that the stream was given is 1, expected 0, as many as the group has; the group is as "
        "it was",
        ("aclmdlRICaptureTaskUpdateEnd", "other"),
        before=[*UPDATE, *STAGE_1, ("aclnnElu", None, 0, "executor", "other")],
        after=[END[1]],
    ),
    *refused(
        BAD,
        "self, or an element of it, was destroyed, or is another kind of object; destroy descriptors after the call",
        (ELU[0], "scalar", *ELU[2:]),
        by="aclnnElu",
    ),
    *refused(NULL, "staticKernelPath is null", ("aclnnReselectStaticKernelWithPath", None)),
    *refused(
        BAD,
        'staticKernelPath is "missing", expected a path that exists',
        ("aclnnReselectStaticKernelWithPath", b"missing"),
    ),
    # traces
    *refused(
        INVALID,
        "missing/trace cannot be opened for writing: No such file or directory",
        ("aclHostTrace", b"missing/trace"),
    ),
    *refused(
        INVALID,
        "another trace is already writing trace; name another file",
        ("aclHostTrace", b"trace"),
        before=[("aclHostTrace", b"trace")],
        after=[("aclHostTraceEnd", b"trace")],
    ),
    *refused(INVALID, "no trace is writing trace; begin one with aclHostTrace", ("aclHostTraceEnd", b"trace")),
]

# ---- descriptions, and operators by name


def by_name(text: str, *lists: Argument, attributes: Argument = None) -> list[Refusal]:
    """A call of an operator by name, from the number of its inputs to its outputs."""
    arguments = (b"Elu", *lists, attributes, 0, 0, None, None)
    return refused(INVALID, text, ("aclopCompileAndExecute", *arguments), ("aclopCompileAndExecuteV2", *arguments))


DESCRIPTIONS = [
    *refused(
        INVALID,
        f"dataBuffer is {{scalar}}, {OTHER_KIND}",
        ("aclDestroyDataBuffer", "scalar"),
        ("aclUpdateDataBuffer", "scalar", "memory", 16),
    ),
    *refused(
        INVALID,
        f"desc is {{buffer}}, {OTHER_KIND}",
        ("aclSetTensorFormat", "buffer", 2),
        ("aclSetTensorShape", "buffer", 1, LIST),
        ("aclSetTensorPlaceMent", "buffer", 0),
        ("aclSetTensorConst", "buffer", LIST, 8),
        ("aclGetTensorDescDimV2", "buffer", 0, "out"),
    ),
    *refused(INVALID, f"desc is {{buffer}}, {OTHER_KIND}", ("aclDestroyTensorDesc", "buffer"), is_status=False),
    *refused(INVALID, f"attr is {{buffer}}, {OTHER_KIND}", ("aclopDestroyAttr", "buffer"), is_status=False),
    *refused(
        INVALID,
        f"attr is {{desc}}, {OTHER_KIND}",
        ("aclopSetAttrBool", "desc", b"name", 1),
        ("aclopSetAttrInt", "desc", b"name", 1),
        ("aclopSetAttrFloat", "desc", b"name", 1.0),
        ("aclopSetAttrString", "desc", b"name", b"value"),
        ("aclopSetAttrDataType", "desc", b"name", 0),
        ("aclopSetAttrListBool", "desc", b"name", 1, LIST),
        ("aclopSetAttrListInt", "desc", b"name", 1, LIST),
        ("aclopSetAttrListFloat", "desc", b"name", 1, LIST),
        ("aclopSetAttrListListInt", "desc", b"name", 0, None, None),
    ),
    *refused(INVALID, "attrValue is a null pointer", ("aclopSetAttrString", "attr", b"name", None)),
    *refused(
        INVALID,
        "values is a null pointer, but numValues is 1",
        ("aclopSetAttrListBool", "attr", b"name", 1, None),
        ("aclopSetAttrListInt", "attr", b"name", 1, None),
        ("aclopSetAttrListFloat", "attr", b"name", 1, None),
    ),
    *refused(
        INVALID,
        "numValues is -1, expected 0 or more",
        ("aclopSetAttrListBool", "attr", b"name", -1, LIST),
        ("aclopSetAttrListInt", "attr", b"name", -1, LIST),
        ("aclopSetAttrListFloat", "attr", b"name", -1, LIST),
    ),
    *(
        Refusal(("aclopSetAttrListListInt", "attr", b"name", *lists), INVALID, f"aclopSetAttrListListInt: {text}")
        for text, lists in (
            ("numLists is -1, expected 0 or more", (-1, LIST, "&memory")),
            ("numValues is a null pointer, but numLists is 1", (1, None, "&memory")),
            ("values is a null pointer, but numLists is 2", (2, LIST, None)),
            ("numValues[0] is -1, expected 0 or more", (1, struct.pack("i", -1), "&memory")),
            (
                "values[1] is a null pointer, but numValues[1] is 3",
                (2, struct.pack("ii", 0, 3), struct.pack("QQ", 0, 0)),
            ),
        )
    ),
    *refused(
        INVALID, "dims is a null pointer, but numDims is 1", ("aclCreateTensorDesc", 0, 1, None, 2), is_status=False
    ),
    *refused(INVALID, "numDims is -1, expected 0 or more", ("aclCreateTensorDesc", 0, -1, LIST, 2), is_status=False),
    *refused(INVALID, "dims is a null pointer, but numDims is 2", ("aclSetTensorShape", "desc", 2, None)),
    *refused(INVALID, "numDims is -1, expected 0 or more", ("aclSetTensorShape", "desc", -1, LIST)),
    *refused(
        INVALID, "index is 1, expected less than the number of dims, 1", ("aclGetTensorDescDimV2", "desc", 1, "out")
    ),
    *refused(
        INVALID,
        "opt is 17, expected 0 (ACL_PRECISION_MODE) to 16 (ACL_OP_DEBUG_OPTION)",
        ("aclSetCompileopt", 17, b"value"),
    ),
    *refused(INVALID, "option 3 was never set", ("aclGetCompileopt", 3, "out", 64)),
    *refused(INVALID, "length is 7; the value of option 10 needs 8", ("aclGetCompileopt", 10, "out", 7)),
    *by_name("numInputs is -1, expected 0 or more", -1, "&desc", "&buffer", 0, None, None),
    *by_name("inputDesc is a null pointer, but numInputs is 1", 1, None, "&buffer", 0, None, None),
    *by_name("inputs is a null pointer, but numInputs is 1", 1, "&desc", None, 0, None, None),
    *by_name("numOutputs is -2, expected 0 or more", 0, None, None, -2, "&desc", "&buffer"),
    *by_name("outputDesc is a null pointer, but numOutputs is 2", 0, None, None, 2, None, "&buffer"),
    *by_name("outputs is a null pointer, but numOutputs is 1", 0, None, None, 1, "&desc", None),
    *by_name(f"inputDesc[0] is {{buffer}}, {OTHER_KIND}", 1, "&buffer", "&buffer", 0, None, None),
    *by_name("inputs[0] is a null pointer", 1, "&desc", "out", 0, None, None),
    *by_name("outputDesc[0] is a null pointer", 1, "&desc", "&buffer", 1, "out", "&buffer"),
    *by_name(f"outputs[0] is {{desc}}, {OTHER_KIND}", 1, "&desc", "&buffer", 1, "&desc", "&desc"),
    *by_name(f"attr is {{buffer}}, {OTHER_KIND}", 0, None, None, 0, None, None, attributes="buffer"),
]

# ---- profiles

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

# ---- HCCL

OF_ONE = "expected less than the number of ranks, 1"
NO_COMM = "{stream} is not a communicator of this process, or was destroyed"
TABLES = (
    "the host CANN reads no rank tables, which describe the network of devices; use HcclGetRootInfo and "
    "HcclCommInitRootInfo, and torch_npu without RANK_TABLE_FILE"
)
ASKING: list[Call] = [
    ("HcclCommDestroy", "stream"),
    ("HcclGetRankSize", "stream", "out"),
    ("HcclGetRankId", "stream", "out"),
    ("HcclGetCommName", "stream", "out"),
    ("HcclGetCommAsyncError", "stream", "out"),
    ("HcclCommSetMemoryRange", "stream", "host", 8, 0, 0),
    ("HcclCommUnsetMemoryRange", "stream", "host"),
    ("HcclCommActivateCommMemory", "stream", "host", 8, 0, None, 0),
    ("HcclCommDeactivateCommMemory", "stream", "host"),
    ("HcclCommRegister", "stream", "host", 8, "&none", 0),
    ("HcclCommDeregister", "stream", "host"),
    ("HcclCommExchangeMem", "stream", "host", "out", 1),
    ("HcclCommSuspend", "stream"),
    ("HcclCommResume", "stream"),
    ("HcclCommWorkingDevNicSet", "stream", "out", "out", 1),
    ("HcclCommSymWinRegister", "stream", "memory", 8, "&none", 0),
    ("HcclCommSymWinGet", "stream", "memory", 8, "&none", "out"),
    ("HcclRankGraphGetLayers", "stream", "&none", "out"),
    ("HcclRankGraphGetRanksByLayer", "stream", 0, "&none", "out"),
    ("HcclRankGraphGetRankSizeByLayer", "stream", 0, "out"),
    ("HcclRankGraphGetTopoTypeByLayer", "stream", 0, "out"),
    ("HcclRankGraphGetInstSizeListByLayer", "stream", 0, "&none", "out"),
    ("HcclRankGraphGetTopoInstsByLayer", "stream", 0, "&none", "out"),
    ("HcclRankGraphGetTopoType", "stream", 0, 0, "out"),
    ("HcclRankGraphGetRanksByTopoInst", "stream", 0, 0, "&none", "out"),
    ("HcclGetHeterogMode", "stream", "out"),
    ("HcclBarrier", "stream", None),
]
POINTER, PARA = "HCCL_E_PTR", "HCCL_E_PARA"
# The published functions that are refused, and why.
ABSENT = {
    "HcclRankGraphGetLinks HcclRankGraphGetEndpointNum HcclRankGraphGetEndpointDesc HcclRankGraphGetEndpointInfo "
    "HcommEndpointCreate HcommEndpointDestroy HcommEndpointGetListenPort HcommEndpointCheckFeature": (
        "it is about links between devices, which simulated ones do not have"
    ),
    "HcclThreadAcquire HcclThreadAcquireWithConfig HcclThreadAcquireWithStream HcclDedicatedThreadAcquire "
    "HcclThreadResGetInfo HcclChannelAcquire HcclChannelAcquireWithConfig HcclChannelConfigCreate "
    "HcclChannelConfigDestroy HcclChannelConfigSetInt HcclChannelConfigSetStr HcclEngineCtxCreate "
    "HcclEngineCtxGet HcclEngineCtxCopy HcclEngineCtxDestroy HcommThreadAlloc HcommThreadFree HcommChannelCreate "
    "HcommChannelGetStatus HcommChannelDestroy": (
        "it is about engines, threads and channels of a device, which the host does not have; use the operations "
        "of hccl.h"
    ),
    "HcclGetHcclBuffer HcclGetHcclBufferCleared HcclChannelGetHcclBuffer HcclChannelGetRemoteMems HcclCommMemReg "
    "HcclSymWinGetPeerPointer HcommMemReg HcommMemUnreg HcommMemExport HcommMemImport HcommMemUnimport": (
        "it is about memory that a rank reaches in another one's device, which on the host lies in another "
        "process; use the operations of hccl.h"
    ),
    "HcclCommRegCommStateCallback": ("ranks are not suspended and repaired on the host"),
}
HCCL = [
    *refused(
        PARA,
        "config is 2, expected 0 (HCCL_DETERMINISTIC) or 1 (HCCL_ACCELERATOR)",
        ("HcclSetConfig", 2, 0),
        ("HcclGetConfig", 2, "out"),
    ),
    *refused(PARA, NO_COMM, *ASKING),
    *refused(POINTER, "comm is a null pointer", *((call[0], None, *call[2:]) for call in ASKING)),
    *null(("HcclGetConfig", 0, "out"), "configValue", status=POINTER),
    *null(("HcclGetRootInfo", "root"), "rootInfo", status=POINTER),
    *null(("HcclGetRootInfoScalable", "root"), "rootInfo", status=POINTER),
    *null(("HcclCommInitRootInfo", 1, "root", 0, "&none"), "rootInfo", "comm", status=POINTER),
    *null(("HcclCommInitRootInfoConfig", 1, "root", 0, "root", "&none"), "rootInfo", "config", "comm", status=POINTER),
    *null(
        ("HcclCommInitRootInfoScalable", 1, 1, "root", 0, 0, "root", "&none"),
        *("rootInfoList", "config", "comm"),
        status=POINTER,
    ),
    *null(("HcclCommInitAll", 1, DEVICE_0, "&none"), "devices", "comms", status=POINTER),
    *null(("HcclCreateSubCommConfig", "&stream", 1, "out", 1, 0, None, "&none"), "comm", "subComm", status=POINTER),
    *null(("HcclGetRankSize", "stream", "out"), "rankSize", status=POINTER),
    *null(("HcclGetRankId", "stream", "out"), "rank", status=POINTER),
    *null(("HcclGetCommName", "stream", "out"), "commName", status=POINTER),
    *null(("HcclCommGetHandleWithName", b"name", "&none"), "commName", "comm", status=POINTER),
    *null(("HcclCommGetStatus", b"name", "out"), "commId", "status", status=POINTER),
    *null(("HcclGetCommAsyncError", "stream", "out"), "asyncError", status=POINTER),
    *null(("HcclCommRegister", "stream", "host", 8, "&none", 0), "handle", status=POINTER),
    *null(("HcclCommSymWinRegister", "stream", "memory", 8, "&none", 0), "addr", "winHandle", status=POINTER),
    *null(("HcclCommSymWinDeregister", "host"), "winHandle", status=POINTER),
    *null(("HcclCommSymWinGet", "stream", "memory", 8, "&none", "out"), "ptr", "winHandle", "offset", status=POINTER),
    *null(("HcommMemAlloc", "&none", 8), "ptr", status=POINTER),
    *null(("HcommMemFree", "memory"), "ptr", status=POINTER),
    *null(("HcclRankGraphGetLayers", "stream", "&none", "out"), "netLayers", "netLayerNum", status=POINTER),
    *null(("HcclRankGraphGetRanksByLayer", "stream", 0, "&none", "out"), "ranks", "rankNum", status=POINTER),
    *null(("HcclRankGraphGetRankSizeByLayer", "stream", 0, "out"), "rankNum", status=POINTER),
    *null(("HcclRankGraphGetTopoTypeByLayer", "stream", 0, "out"), "topoType", status=POINTER),
    *null(
        ("HcclRankGraphGetInstSizeListByLayer", "stream", 0, "&none", "out"),
        *("instSizeList", "listSize"),
        status=POINTER,
    ),
    *null(
        ("HcclRankGraphGetTopoInstsByLayer", "stream", 0, "&none", "out"), *("topoInsts", "topoInstNum"), status=POINTER
    ),
    *null(("HcclRankGraphGetTopoType", "stream", 0, 0, "out"), "topoType", status=POINTER),
    *null(("HcclRankGraphGetRanksByTopoInst", "stream", 0, 0, "&none", "out"), "ranks", "rankNum", status=POINTER),
    *null(("HcclGetHeterogMode", "stream", "out"), "mode", status=POINTER),
    *refused(
        "HCCL_E_NOT_SUPPORT",
        TABLES,
        ("HcclCommInitClusterInfo", b"table.json", 0, "&none"),
        ("HcclCommInitClusterInfoConfig", b"table.json", 0, "root", "&none"),
    ),
    *(
        refusal
        for functions, reason in ABSENT.items()
        for function in functions.split()
        for refusal in refused(
            "HCCL_E_NOT_SUPPORT", f"the host CANN does not have this function, because {reason}", (function,)
        )
    ),
    *refused(PARA, "there is no group; call HcclGroupStart first", ("HcclGroupEnd",)),
    *null(("HcclGroupStatusGet", "out"), "isGroupEnabled", status=POINTER),
    *null(("HcclBatchSendRecv", "out", 1, "comm", None), "sendRecvInfo", status=POINTER),
    *refused(
        "HCCL_E_NOT_FOUND",
        "commName is name, which no communicator of this process is called",
        ("HcclCommGetHandleWithName", b"name", "&none"),
    ),
    *refused(
        "HCCL_E_NOT_FOUND",
        "commId is name, which no communicator of this process is called",
        ("HcclCommGetStatus", b"name", "out"),
    ),
    *refused(
        PARA,
        "rootInfo is not what HcclGetRootInfo of this library made",
        ("HcclCommInitRootInfo", 1, "root", 0, "&none"),
    ),
    *refused(PARA, f"rank is 1, {OF_ONE}", ("HcclCommInitRootInfo", 1, "root", 1, "&none")),
    *refused(
        PARA,
        "config was not filled by HcclCommConfigInit",
        ("HcclCommInitRootInfoConfig", 1, "root", 0, "root", "&none"),
    ),
    *refused(
        PARA,
        "nRoot is 2, expected 1 to the number of ranks, 1",
        ("HcclCommInitRootInfoScalable", 1, 2, "root", 0, 0, "root", "&none"),
    ),
    *refused(PARA, "nExtRoot is 3, expected 0", ("HcclCommInitRootInfoScalable", 1, 1, "root", 0, 3, "root", "&none")),
    *refused(
        PARA,
        "devices has 2, expected 0 to 1; ACLNN_TORCH_DEVICES sets how many there are",
        ("HcclCommInitAll", 1, struct.pack("I", 2), "&none"),
    ),
    *refused(PARA, "winHandle is no window of this process, or has ended", ("HcclCommSymWinDeregister", "host")),
    *(
        Refusal(call, status, f"{call[0]}: {text}")
        for status, text, call in (
            (
                PARA,
                f"subCommRankId is 1, {OF_ONE}",
                ("HcclCreateSubCommConfig", "&comm", 1, "out", 1, 1, None, "&none"),
            ),
            (
                PARA,
                f"rankIds is 1, {OF_ONE}",
                ("HcclCreateSubCommConfig", "&comm", 1, struct.pack("I", 1), 1, 0, None, "&none"),
            ),
            (
                PARA,
                "size is 0, expected the bytes of a memory",
                ("HcclCommSymWinRegister", "comm", "memory", 0, "&none", 0),
            ),
            (
                "HCCL_E_NOT_FOUND",
                "ptr has 8 bytes that lie in no window of the communicator",
                ("HcclCommSymWinGet", "comm", "memory", 8, "&none", "out"),
            ),
            (PARA, "netLayer is 1, expected 0, the only one", ("HcclRankGraphGetTopoType", "comm", 1, 0, "out")),
            (PARA, "topoInstId is 2, expected 0, the only one", ("HcclRankGraphGetTopoType", "comm", 0, 2, "out")),
            (
                PARA,
                "netLayer is 1, expected 0, the only one",
                ("HcclRankGraphGetRanksByLayer", "comm", 1, "&none", "out"),
            ),
            (PARA, "netLayer is 1, expected 0, the only one", ("HcclRankGraphGetRankSizeByLayer", "comm", 1, "out")),
            (PARA, f"root is 1, {OF_ONE}", ("HcclBroadcast", "memory", 1, 4, 1, "comm", None)),
            (POINTER, "buf is a null pointer", ("HcclBroadcast", None, 1, 4, 0, "comm", None)),
            (
                PARA,
                "buf has 8 bytes that do not all lie in one block of aclrtMalloc on device 0, the communicator's",
                ("HcclBroadcast", "memory1", 2, 4, 0, "comm", None),
            ),
            (
                PARA,
                f"buf would have {2**62} elements, which no memory has",
                ("HcclBroadcast", "memory", 2**62, 4, 0, "comm", None),
            ),
            (
                "HCCL_E_NOT_SUPPORT",
                "dataType is INT128, which Ascend910B does not have",
                ("HcclBroadcast", "memory", 1, 12, 0, "comm", None),
            ),
            (
                "HCCL_E_NOT_SUPPORT",
                "dataType is FP64 and op SUM, which Ascend910B does not have",
                ("HcclAllReduce", "memory", "memory", 1, 10, 0, "comm", None),
            ),
        )
    ),
]

# A stream waits at least a second: the last of all calls.
LAST = refused(
    "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT",
    "the external event was not recorded before the timeout",
    ("aclrtSynchronizeStream", "own"),
    by="aclrtStreamWaitEvent",
    before=[
        ("aclrtSetOpWaitTimeout", 1),
        *BEGIN,
        ("aclrtStreamWaitEvent", "stream", "external"),
        END[0],
        *OF_STREAM,
        ("aclmdlRIExecuteAsync", "model", "own"),
    ],
    after=[*DESTROY, END[1]],
)

ON_DEVICE = [
    *(*NULL_POINTERS, *UNIMPLEMENTED, *DEVICES, *MEMORY, *STREAMS, *CAPTURES),
    *(*DESCRIPTORS, *DESCRIPTIONS, *PROFILES, *HCCL, *LAST),
]
ALL = WITHOUT_DEVICE + ON_DEVICE


class Answer(NamedTuple):
    """What a refused call returned, the thread's last error, its messages, and the objects of the expected text."""

    returned: int
    last_error: int
    text: str
    objects: dict[str, str]


class Process:
    """Calls functions of the libraries in the prefix of the host CANN."""

    def __init__(self, libraries: str) -> None:
        names = ("libopapi.so", "libmsprofiler.so", "libhccl.so", "libhcomm.so")
        self._libraries = [ctypes.CDLL(f"{libraries}/{name}", ctypes.RTLD_GLOBAL) for name in names]
        self._out = ctypes.create_string_buffer(8192)
        self._pages = mmap.mmap(-1, 2 * PAGE)
        self._slots: dict[str, ctypes.c_uint64] = {}
        host = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        # A function of C++ that throws std::bad_alloc, and one of C that does nothing with a null pointer.
        throws = ctypes.cast(ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv, ctypes.c_void_p).value
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value
        out = ctypes.addressof(self._out)
        known = {"out": out, "root": out, "host": host, "throws": throws, "nothing": nothing}
        for name, value in (known | {"thread": threading.get_ident()}).items():
            self._slots[name] = ctypes.c_uint64(value or 0)

    def function(self, name: str) -> Any:
        return next(found for library in self._libraries if (found := getattr(library, name, None)))

    def address(self, text: str) -> int:
        """The value of an object, or the address of its variable."""
        if text.startswith("&"):
            return ctypes.addressof(self._slots.setdefault(text[1:], ctypes.c_uint64()))
        name, _, offset = text.partition("+")
        return self._slots[name].value + int(offset or 0)

    def argument(self, value: Argument) -> Any:
        """In a whole register, which fits parameters of any integral type."""
        if isinstance(value, float):
            return ctypes.c_float(value)
        if isinstance(value, bytes):
            return ctypes.create_string_buffer(value)
        if isinstance(value, str):
            value = self.address(value)
        return ctypes.c_uint64((value or 0) & (2**64 - 1))

    def call(self, call: Call, result: Any = ctypes.c_int) -> int:
        function = self.function(str(call[0]))
        function.restype = result
        return int(function(*(self.argument(value) for value in call[1:])) or 0)

    def messages(self) -> str:
        text = self.function("aclGetRecentErrMsg")
        text.restype = ctypes.c_char_p
        return (text() or b"").decode()

    def step(self, call: Call) -> None:
        """A call that succeeds, unless its name begins with "?"; "name=function" stores its result."""
        name, _, function = str(call[0]).rpartition("=")
        if name:
            self._slots[name] = ctypes.c_uint64(self.call((function, *call[1:]), ctypes.c_uint64))
        elif function.startswith("?"):
            self.call((function[1:], *call[1:]))
            self.messages()
        elif status := self.call(call):
            raise AssertionError(f"{call} returned {status}: {self.messages()}")

    def object(self, name: str) -> str:
        """An object as the texts name it."""
        if name == "here":
            return os.getcwd()
        if name == "profile":
            return str(max(Path("profiles").resolve().iterdir()))
        return f"{self.address(name):#x}"

    def refused(self, refusal: Refusal) -> Answer:
        self.messages()
        self.call(("aclrtGetLastError", 0))
        for each in refusal.before:
            self.step(each)
        ctypes.memset(self._out, 0, len(self._out))
        returned = self.call(refusal.call)
        last_error = self.call(("aclrtGetLastError", 0))
        text = self.messages()
        objects = {name: self.object(name) for name in re.findall(r"{([\w+]+)}", refusal.text)}
        for each in refusal.after:
            self.step(each)
        return Answer(returned, last_error, text, objects)


def call_all(libraries: str) -> None:
    """Prints the answers, in the order of ALL."""
    process = Process(libraries)
    # The refusals of a call are those of its test (tests/mutants).
    module = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]

    def answer(refusals: Sequence[Refusal], names: Sequence[str]) -> list[Answer]:
        answers = []
        for refusal, name in zip(refusals, names, strict=True):
            os.environ["PYTEST_CURRENT_TEST"] = f"{module}::test_refusal[{name}] (call)"
            answers.append(process.refused(refusal))
        return answers

    count = len(WITHOUT_DEVICE)
    answers = answer(WITHOUT_DEVICE, IDS[:count])
    for call in OBJECTS:
        process.step(call)
    answers += answer(ON_DEVICE, IDS[count:])
    print(json.dumps(answers))


def identifiers() -> list[str]:
    """The name of each test: the function's, with a number."""
    counts: dict[str, int] = {}
    names = []
    for refusal in ALL:
        function = str(refusal.call[0])
        counts[function] = counts.get(function, 0) + 1
        names.append(f"{function}-{counts[function]}")
    return names


IDS = identifiers()


@functools.cache
def statuses() -> dict[str, int]:
    """The status codes in the headers."""
    found = re.findall(r"\b(ACL_SUCCESS|(?:ACL_ERROR|ACLNN_ERR|HCCL_E)_\w+)\s*=?\s*(\d+)\b", cabi.header_text())
    return {name: int(value) for name, value in found}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    from aclnn_torch.host import PREFIX  # not at the top: the process that makes the calls needs no torch

    folder = tmp_path_factory.mktemp("refusals")
    (folder / "wrong.json").write_text('{"a": 1,\n b}\n')
    with (folder / "large.json").open("w") as file:
        file.truncate(10 * 2**20 + 1)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ACLNN_TORCH_", "ASCEND_"))
    }
    environment |= {
        "ACLNN_TORCH_DEVICES": "2",
        "ACLNN_TORCH_DEVICE_MEMORY": "1G",
        "ACLNN_TORCH_DUMP_DIR": "missing",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    code = f"from tests.test_runtime_refusals import call_all; call_all({str(PREFIX / 'lib64')!r})"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert ran.returncode == 0, ran.stderr
    return {name: Answer(*answer) for name, answer in zip(IDS, json.loads(ran.stdout), strict=True)}


@pytest.mark.parametrize(("name", "refusal"), list(zip(IDS, ALL, strict=True)), ids=IDS)
def test_refusal(answers: dict[str, Answer], name: str, refusal: Refusal) -> None:
    answer, status = answers[name], statuses()[refusal.status]
    assert answer.text == re.sub(r"{([\w+]+)}", lambda found: answer.objects[found[1]], refusal.text)
    if refusal.is_status:
        assert answer.returned == status
    if refusal.status.startswith("ACL_"):
        assert answer.last_error == status
    elif "\n" not in refusal.text:  # a second line would be a failure of the runtime
        assert answer.last_error == 0  # which has no statuses of aclnn and HCCL
