/* How the ranks of a communicator are connected. Written for aclnn_torch from the published
 * interface; usable from C99 and C++.
 *
 * Both on one host and on several, there is one layer, 0, with one instance, 0, in which every rank
 * reaches every other. Lists belong to the communicator and end with it. HCCL_E_PARA for another
 * layer or instance, HCCL_E_PTR for a null pointer. The functions about links and endpoints, which
 * the host does not have, fail with HCCL_E_NOT_SUPPORT. */
#ifndef ACLNN_TORCH_HCCL_RANK_GRAPH_H_
#define ACLNN_TORCH_HCCL_RANK_GRAPH_H_

#include "hccl/hccl_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  COMM_TOPO_RESERVED = -1,
  COMM_TOPO_CLOS = 0,
  COMM_TOPO_1DMESH = 1,
  COMM_TOPO_910_93 = 2,
  COMM_TOPO_310P = 3,
  COMM_TOPO_A2AXSERVER = 4,
  COMM_TOPO_CUSTOM = 5
} CommTopo;

typedef enum {
  HCCL_HETEROG_MODE_INVALID = -1,
  HCCL_HETEROG_MODE_HOMOGENEOUS = 0,
  HCCL_HETEROG_MODE_MIX_A2_A3 = 1
} HcclHeterogMode;

/* {0}. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** netLayers,
                                                       uint32_t* netLayerNum);
/* All ranks, and their number. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer,
                                                             uint32_t** ranks, uint32_t* rankNum);
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer,
                                                                uint32_t* rankNum);
/* COMM_TOPO_1DMESH. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer,
                                                                CommTopo* topoType);
/* The number of ranks of each instance: {the number of ranks}. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm,
                                                                    uint32_t netLayer,
                                                                    uint32_t** instSizeList,
                                                                    uint32_t* listSize);
/* {0}. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer,
                                                                 uint32_t** topoInsts,
                                                                 uint32_t* topoInstNum);
/* The same for an instance. */
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer,
                                                         uint32_t topoInstId, CommTopo* topoType);
HCCL_FUNC_VISIBILITY HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer,
                                                                uint32_t topoInstId,
                                                                uint32_t** ranks,
                                                                uint32_t* rankNum);
/* HCCL_HETEROG_MODE_HOMOGENEOUS: all NPUs are of one product. */
HCCL_FUNC_VISIBILITY HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode* mode);

#ifdef __cplusplus
}
#endif
#endif
