/* Memory for communication. Written for aclnn_torch from the published interface; usable from C99
 * and C++. The rest of the published header concerns endpoints, channels and threads of a device,
 * which the host does not have: those functions fail with HCCL_E_NOT_SUPPORT (5). */
#ifndef ACLNN_TORCH_HCOMM_RES_H_
#define ACLNN_TORCH_HCOMM_RES_H_

#include "hccl/hccl_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t HcommResult; /* the values of HcclResult */

/* Memory of the thread's device, as from aclrtMalloc: 0, HCCL_E_PTR for a null pointer, or
 * HCCL_E_MEMORY. */
HCCL_FUNC_VISIBILITY HcommResult HcommMemAlloc(void** ptr, size_t size);
/* HCCL_E_PARA for memory that is not from HcommMemAlloc, or was freed. */
HCCL_FUNC_VISIBILITY HcommResult HcommMemFree(void* ptr);

#ifdef __cplusplus
}
#endif
#endif
