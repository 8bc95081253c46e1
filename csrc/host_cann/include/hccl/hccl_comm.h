/* Communicators: how ranks find one another, and what is asked of a group. Written for aclnn_torch
 * from the published interface; usable from C99 and C++.
 *
 * Every function returns HCCL_SUCCESS or another HcclResult, and then aclGetRecentErrMsg has a
 * text. A foreign, null or destroyed communicator gives HCCL_E_PARA (HCCL_E_PTR if null); a null
 * pointer for a result HCCL_E_PTR. The ranks may be threads of a process, or processes, of one
 * host. */
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

/* Opens a meeting place, for one communicator: a TCP port of the calling process, of those in
 * HCCL_HOST_SOCKET_PORT_RANGE if it is set, under the address HCCL_IF_IP, or of the first interface
 * that HCCL_SOCKET_IFNAME names, or of the first that is up. HCCL_E_PARA for a variable that cannot
 * be read or names no interface, HCCL_E_TCP_CONNECT if no port can be opened. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);

/* Makes the calling thread's device rank `rank` of `nRanks`, each of which calls it once. Waits for
 * the others, HCCL_CONNECT_TIMEOUT seconds (120) at most: then HCCL_E_TIMEOUT names who is missing.
 * HCCL_E_PARA for a rank out of range, one that is there already, or different nRanks;
 * HCCL_E_TCP_CONNECT if it does not reach rank 0's process or a rank on another host;
 * HCCL_E_RUNTIME without a device. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                     uint32_t rank, HcclComm* comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks,
                                                           const HcclRootInfo* rootInfo,
                                                           uint32_t rank,
                                                           const HcclCommConfig* config,
                                                           HcclComm* comm);

/* The same with nRoot places, 1 to nRanks, each opened by HcclGetRootInfoScalable. The list is the
 * same on every rank, else HCCL_E_PARA; all ranks meet in the first place, and the others are
 * closed. nExtRoot is 0. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetRootInfoScalable(HcclRootInfo* rootInfo);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot,
                                                             const HcclRootInfo* rootInfoList,
                                                             uint32_t rank, uint32_t nExtRoot,
                                                             const HcclCommConfig* config,
                                                             HcclComm* comm);

/* Makes devices[i] rank i, all in this process. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

/* Refused, HCCL_E_NOT_SUPPORT: rank tables describe the network of devices. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                                        HcclComm* comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo,
                                                              uint32_t rank, HcclCommConfig* config,
                                                              HcclComm* comm);

/* Makes rank rankIds[subCommRankId] of a communicator rank subCommRankId of a part of it. Each of
 * the rankNum ranks calls it, with the same rankIds and subCommId. With a null rankIds, for ranks
 * that are not part of it, *subComm becomes null. */
HCCL_FUNC_VISIBILITY HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum,
                                                        uint32_t* rankIds, uint64_t subCommId,
                                                        uint32_t subCommRankId,
                                                        HcclCommConfig* config, HcclComm* subComm);

/* Ends a communicator. What it was given before is still done on its streams. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommDestroy(HcclComm comm);

HCCL_FUNC_VISIBILITY HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HCCL_FUNC_VISIBILITY HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
/* Writes the name into COMM_NAME_MAX_LENGTH bytes. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommName(HcclComm comm, char* commName);

/* The communicator of a name; of several in this process, that of the thread's device.
 * HCCL_E_NOT_FOUND if there is none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm);
/* HCCL_COMM_STATUS_READY, or HCCL_COMM_STATUS_INVALID after a failure, of the communicator of a
 * name. HCCL_E_NOT_FOUND if there is none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status);

/* Why an operation of the communicator failed, on this rank or another; HCCL_SUCCESS if none has.
 * After that every operation of the communicator is refused with the same code. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
HCCL_FUNC_VISIBILITY const char* HcclGetErrorString(HcclResult code);

/* HCCL_DETERMINISTIC, 0 to 2: accepted and remembered; results do not depend on it, since sums are
 * taken in the order of the ranks. HCCL_ACCELERATOR too. HCCL_E_PARA for another option. */
HCCL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HCCL_FUNC_VISIBILITY HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);

/* How many of HcclCommConfigCapability, from 0 on, HcclCommConfig has. */
HCCL_FUNC_VISIBILITY uint32_t HcclGetCommConfigCapability(void);

/* The values that ask for nothing. */
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

/* The sends and receives of the calling thread between the two begin together, as those of
 * HcclBatchSendRecv do. Pairs may be nested; the outermost counts. */
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStart(void);
HCCL_FUNC_VISIBILITY HcclResult HcclGroupEnd(void);
/* Whether the calling thread is between the two. */
HCCL_FUNC_VISIBILITY HcclResult HcclGroupStatusGet(bool* isGroupEnabled);

/* Windows of memory, which every rank registers. The host CANN copies as without them. A window
 * ends with its communicator. HcclCommSymWinGet finds the window that the bytes lie in, and how far
 * from its beginning: HCCL_E_NOT_FOUND if they lie in none. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size,
                                                       HcclCommSymWindow* winHandle, uint32_t flag);
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle);
HCCL_FUNC_VISIBILITY HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size,
                                                  HcclCommSymWindow* winHandle, size_t* offset);

/* About memory that links of a device reach without a copy. The host CANN copies; it checks the
 * communicator and does nothing. */
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

/* About links that fail over and ranks that are repaired, of which there are none here: the
 * communicator is checked, and nothing is done. */
HCCL_FUNC_VISIBILITY HcclResult HcclCommSuspend(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommResume(HcclComm comm);
HCCL_FUNC_VISIBILITY HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks,
                                                         bool* useBackup, uint32_t nRanks);

#ifdef __cplusplus
}
#endif
#endif
