/* Collective communication. Written for aclnn_torch from the published interface; usable from C99
 * and C++.
 *
 * Every operation is a task on a stream: the call checks its arguments and returns, and the stream
 * waits for the other ranks when it reaches the task. All ranks call the same operations of a
 * communicator in the same order, with the same dtype, reduction and, unless a variant states
 * otherwise, counts, which count elements. Buffers are memory of the communicator's device.
 *
 * Immediate errors: HCCL_E_PTR for a null pointer, HCCL_E_PARA for a foreign communicator or
 * stream, memory that does not belong to the device or is too small, a rank out of range;
 * HCCL_E_NOT_SUPPORT for a dtype or reduction that the product does not support. Later errors, as
 * the stream's failure and from HcclGetCommAsyncError: HCCL_E_TIMEOUT (507048) if a rank does not
 * join within HCCL_EXEC_TIMEOUT seconds (1836; 0 waits without limit), HCCL_E_REMOTE (507057) if a
 * rank has ended or failed, HCCL_E_PARA (507049) if a rank calls a different operation. */
#ifndef ACLNN_TORCH_HCCL_H_
#define ACLNN_TORCH_HCCL_H_

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* recvBuf = the reduction of sendBuf over all ranks, count elements each, with the same bits on
 * every rank. 16-bit types are reduced in FLOAT, in the order of the ranks, and rounded once.
 * recvBuf may be sendBuf. */
HCCL_FUNC_VISIBILITY HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                              HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                              aclrtStream stream);
/* The same on the root only; recvBuf of other ranks is unchanged and may be null. */
HCCL_FUNC_VISIBILITY HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                           HcclDataType dataType, HcclReduceOp op, uint32_t root,
                                           HcclComm comm, aclrtStream stream);
/* Rank i gets the i-th part, recvCount elements, of the reduction of sendBuf. */
HCCL_FUNC_VISIBILITY HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                                  HcclDataType dataType, HcclReduceOp op,
                                                  HcclComm comm, aclrtStream stream);
/* Part i has sendCounts[i] elements from sendDispls[i] on; both have a uint64_t for each rank, the
 * same on every rank, and are read during the call. */
HCCL_FUNC_VISIBILITY HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                                                   const void* sendDispls, void* recvBuf,
                                                   uint64_t recvCount, HcclDataType dataType,
                                                   HcclReduceOp op, HcclComm comm,
                                                   aclrtStream stream);

/* buf of every rank = that of the root. */
HCCL_FUNC_VISIBILITY HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType,
                                              uint32_t root, HcclComm comm, aclrtStream stream);
/* Rank i gets the i-th part, recvCount elements, of the root's sendBuf, which is null elsewhere. */
HCCL_FUNC_VISIBILITY HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                            HcclDataType dataType, uint32_t root, HcclComm comm,
                                            aclrtStream stream);
/* The i-th part of recvBuf, sendCount elements, = sendBuf of rank i. */
HCCL_FUNC_VISIBILITY HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                                              HcclDataType dataType, HcclComm comm,
                                              aclrtStream stream);
/* Part i has recvCounts[i] elements from recvDispls[i] on. */
HCCL_FUNC_VISIBILITY HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                                               const void* recvCounts, const void* recvDispls,
                                               HcclDataType dataType, HcclComm comm,
                                               aclrtStream stream);

/* The j-th part of recvBuf of rank i = the i-th part of sendBuf of rank j. sendCount and sendType
 * equal recvCount and recvType. */
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount,
                                             HcclDataType sendType, const void* recvBuf,
                                             uint64_t recvCount, HcclDataType recvType,
                                             HcclComm comm, aclrtStream stream);
/* Like HcclAlltoAll, with counts and displacements (in elements) per rank, a uint64_t each. */
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                                              const void* sdispls, HcclDataType sendType,
                                              const void* recvBuf, const void* recvCounts,
                                              const void* rdispls, HcclDataType recvType,
                                              HcclComm comm, aclrtStream stream);
/* Contiguous parts: rank i sends sendCountMatrix[i * rankSize + j] elements to j. */
HCCL_FUNC_VISIBILITY HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                                               HcclDataType sendType, const void* recvBuf,
                                               HcclDataType recvType, HcclComm comm,
                                               aclrtStream stream);

/* A send, and the other rank's receive of as many bytes. Each waits for the other. */
HCCL_FUNC_VISIBILITY HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType,
                                         uint32_t destRank, HcclComm comm, aclrtStream stream);
HCCL_FUNC_VISIBILITY HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType,
                                         uint32_t srcRank, HcclComm comm, aclrtStream stream);
/* Sends and receives that do not wait for one another. Those with one rank match in order. */
HCCL_FUNC_VISIBILITY HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                                                  HcclComm comm, aclrtStream stream);

/* Waits until every rank has called it. */
HCCL_FUNC_VISIBILITY HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
