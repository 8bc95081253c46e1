// The published functions that the host CANN refuses. Each reports its name and the reason. Their
// definitions have no parameters.
#include "hccl/hccl_comm.h"
#include "host_cann/runtime/error_messages.h"

namespace {

constexpr const char* kLinks =
    "it is about links between devices, which simulated ones do not have";
constexpr const char* kEngines =
    "it is about engines, threads and channels of a device, which the host does not have; use the "
    "operations of hccl.h";
constexpr const char* kMemory =
    "it is about memory that a rank reaches in another one's device, which on the host lies in "
    "another process; use the operations of hccl.h";
constexpr const char* kRecovery = "ranks are not suspended and repaired on the host";

HcclResult refuse(const char* api, const char* reason) noexcept {
  aclnn_host::fail(HCCL_E_NOT_SUPPORT, "%s: the host CANN does not have this function, because %s",
                   api, reason);
  return HCCL_E_NOT_SUPPORT;
}

}  // namespace

#define REFUSE(name, reason)                          \
  extern "C" HCCL_FUNC_VISIBILITY HcclResult name() { \
    return refuse(#name, reason);                     \
  }

REFUSE(HcclRankGraphGetLinks, kLinks)
REFUSE(HcclRankGraphGetEndpointNum, kLinks)
REFUSE(HcclRankGraphGetEndpointDesc, kLinks)
REFUSE(HcclRankGraphGetEndpointInfo, kLinks)
REFUSE(HcommEndpointCreate, kLinks)
REFUSE(HcommEndpointDestroy, kLinks)
REFUSE(HcommEndpointGetListenPort, kLinks)
REFUSE(HcommEndpointCheckFeature, kLinks)

REFUSE(HcclThreadAcquire, kEngines)
REFUSE(HcclThreadAcquireWithConfig, kEngines)
REFUSE(HcclThreadAcquireWithStream, kEngines)
REFUSE(HcclDedicatedThreadAcquire, kEngines)
REFUSE(HcclThreadResGetInfo, kEngines)
REFUSE(HcclChannelAcquire, kEngines)
REFUSE(HcclChannelAcquireWithConfig, kEngines)
REFUSE(HcclChannelConfigCreate, kEngines)
REFUSE(HcclChannelConfigDestroy, kEngines)
REFUSE(HcclChannelConfigSetInt, kEngines)
REFUSE(HcclChannelConfigSetStr, kEngines)
REFUSE(HcclEngineCtxCreate, kEngines)
REFUSE(HcclEngineCtxGet, kEngines)
REFUSE(HcclEngineCtxCopy, kEngines)
REFUSE(HcclEngineCtxDestroy, kEngines)
REFUSE(HcommThreadAlloc, kEngines)
REFUSE(HcommThreadFree, kEngines)
REFUSE(HcommChannelCreate, kEngines)
REFUSE(HcommChannelGetStatus, kEngines)
REFUSE(HcommChannelDestroy, kEngines)

REFUSE(HcclGetHcclBuffer, kMemory)
REFUSE(HcclGetHcclBufferCleared, kMemory)
REFUSE(HcclChannelGetHcclBuffer, kMemory)
REFUSE(HcclChannelGetRemoteMems, kMemory)
REFUSE(HcclCommMemReg, kMemory)
REFUSE(HcclSymWinGetPeerPointer, kMemory)
REFUSE(HcommMemReg, kMemory)
REFUSE(HcommMemUnreg, kMemory)
REFUSE(HcommMemExport, kMemory)
REFUSE(HcommMemImport, kMemory)
REFUSE(HcommMemUnimport, kMemory)

REFUSE(HcclCommRegCommStateCallback, kRecovery)
