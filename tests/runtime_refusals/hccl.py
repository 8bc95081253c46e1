"""Refusals of HCCL."""

from __future__ import annotations

import struct

from tests.runtime_refusals.profiles import DEVICE_0
from tests.runtime_refusals.refusal import PARA, POINTER, Call, Refusal, null, refused

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
