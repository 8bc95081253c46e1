/* Communicators: how ranks find one another, and queries of a group. Written for aclnn_torch from
 * the published interface; usable from C99 and C++.
 *
 * Every function returns HCCL_SUCCESS or another HcclResult, with a text in aclGetRecentErrMsg. A
 * foreign, null or destroyed communicator gives HCCL_E_PARA (HCCL_E_PTR if null); a null pointer
 * for a result HCCL_E_PTR. The ranks may be threads of a process, or processes, of one host. */
#ifndef ACLNN_TORCH_HCCL_COMM_H_
#define ACLNN_TORCH_HCCL_COMM_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#if defined(__GNUC__)
#define HCCL_FUNC_VISIBILITY __attribute__((visibility("default")))
#else
#define HCCL_FUNC_VISIBILITY
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a rendezvous for one communicator: a TCP port of the calling process, from
 * HCCL_HOST_SOCKET_PORT_RANGE if it is set, at the address HCCL_IF_IP, or of the first interface
 * that HCCL_SOCKET_IFNAME names, or of the first interface that is up. HCCL_E_PARA for a variable
 * that cannot be parsed or names no interface, HCCL_E_TCP_CONNECT if no port can be opened. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);

/* Makes the calling thread's device rank `rank` of `nRanks`; each rank calls it once. Waits at most
 * HCCL_CONNECT_TIMEOUT seconds (120) for the others, then fails with HCCL_E_TIMEOUT and a message
 * that names the missing ranks. HCCL_E_PARA for a rank out of range or already present, or
 * different nRanks; HCCL_E_TCP_CONNECT if it cannot reach rank 0's process or a rank on another
 * host; HCCL_E_RUNTIME without a device. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                     uint32_t rank, HcclComm* comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks,
                                                           const HcclRootInfo* rootInfo,
                                                           uint32_t rank,
                                                           const HcclCommConfig* config,
                                                           HcclComm* comm);

/* The same with nRoot rendezvous, 1 to nRanks, each opened by HcclGetRootInfoScalable. The list is
 * the same on every rank, else HCCL_E_PARA; all ranks use the first one, and the others are closed.
 * nExtRoot is 0. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetRootInfoScalable(HcclRootInfo* rootInfo);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot,
                                                             const HcclRootInfo* rootInfoList,
                                                             uint32_t rank, uint32_t nExtRoot,
                                                             const HcclCommConfig* config,
                                                             HcclComm* comm);

/* Makes devices[i] rank i; all ranks are in this process. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

/* Not supported, HCCL_E_NOT_SUPPORT: rank tables describe the network of devices. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                                        HcclComm* comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo,
                                                              uint32_t rank, HcclCommConfig* config,
                                                              HcclComm* comm);

/* Makes rank rankIds[subCommRankId] of a communicator rank subCommRankId of a subgroup. Each of the
 * rankNum ranks calls it, with the same rankIds and subCommId. Ranks outside the subgroup pass a
 * null rankIds, and *subComm becomes null. */
HCCL_FUNC_VISIBILITY HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum,
                                                        uint32_t* rankIds, uint64_t subCommId,
                                                        uint32_t subCommRankId,
                                                        HcclCommConfig* config, HcclComm* subComm);

/* Ends a communicator. Its earlier operations still run on their streams. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommDestroy(HcclComm comm);

HCCL_FUNC_VISIBILITY HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HCCL_FUNC_VISIBILITY HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
/* Writes the name into COMM_NAME_MAX_LENGTH bytes. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommName(HcclComm comm, char* commName);

/* The communicator with a name; of several in this process, that of the thread's device.
 * HCCL_E_NOT_FOUND if there is none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm);
/* HCCL_COMM_STATUS_READY, or HCCL_COMM_STATUS_INVALID after a failure, for the communicator with a
 * name. HCCL_E_NOT_FOUND if there is none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status);

/* The reason why an operation of the communicator failed, on this rank or another; HCCL_SUCCESS if
 * none has. After a failure, every operation of the communicator fails with the same code. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
HCCL_FUNC_VISIBILITY const char* HcclGetErrorString(HcclResult code);

/* HCCL_DETERMINISTIC, 0 to 2, and HCCL_ACCELERATOR: accepted and stored; results do not depend on
 * them, since sums follow the order of the ranks. HCCL_E_PARA for another option. */
HCCL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HCCL_FUNC_VISIBILITY HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);

/* The number of supported HcclCommConfigCapability, counted from 0. */
HCCL_FUNC_VISIBILITY uint32_t HcclGetCommConfigCapability(void);

/* Default values. */
static inline void HcclCommConfigInit(HcclCommConfig* config) {
  if (config == NULL) return;
  const struct {
    size_t size;
    uint32_t magicWord;
    uint32_t version;
    uint64_t reserved;
  } information = {sizeof(HcclCommConfig), HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION,
                   0};
  memset(config, 0, sizeof(HcclCommConfig));
  memcpy(config->reserved, &information, sizeof(information));
  config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
  config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
  config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
  config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
  config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
  config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
}

/* The sends and receives of the calling thread between the two calls start together, like those of
 * HcclBatchSendRecv. Pairs may be nested; the outermost applies. */
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStart(void);
HCCL_FUNC_VISIBILITY HcclResult HcclGroupEnd(void);
/* Tells if the calling thread is between the two calls. */
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStatusGet(bool* isGroupEnabled);

/* Windows of memory, registered by every rank. They do not change how the host CANN copies. A
 * window ends with its communicator. HcclCommSymWinGet finds the window that contains the bytes,
 * and their offset in it: HCCL_E_NOT_FOUND if there is none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size,
                                                       HcclCommSymWindow* winHandle, uint32_t flag);
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle);
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size,
                                                  HcclCommSymWindow* winHandle, size_t* offset);

/* Memory that device links access without a copy. The host CANN always copies: it checks the
 * communicator and does nothing else. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size,
                                                       size_t alignment, uint64_t flags);
HCCL_FUNC_VISIBILITY HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr);
HCCL_FUNC_VISIBILITY HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size,
                                                           size_t offset, aclrtDrvMemHandle handle,
                                                           uint64_t flags);
HCCL_FUNC_VISIBILITY HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr);
HCCL_FUNC_VISIBILITY HcclResult HcclCommRegister(HcclComm comm, void* addr, uint64_t size,
                                                 void** handle, uint32_t flag);
HCCL_FUNC_VISIBILITY HcclResult HcclCommDeregister(HcclComm comm, void* handle);
HCCL_FUNC_VISIBILITY HcclResult HcclCommExchangeMem(HcclComm comm, void* windowHandle,
                                                    uint32_t* peerRanks, uint32_t peerRankNum);

/* Link failover and rank repair, which do not exist here: checks the communicator and does nothing
 * else. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommSuspend(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommResume(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks,
                                                         bool* useBackup, uint32_t nRanks);

#ifdef __cplusplus
}
#endif
#endif
