/* What the host CANN offers beyond CANN's own interface. No Ascend machine has this header. */
#ifndef ACLNN_TORCH_ACL_HOST_H_
#define ACLNN_TORCH_ACL_HOST_H_

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The product whose rules the operators follow, for the whole process: Ascend310P, Ascend910,
 * Ascend910B, Ascend910_93, Ascend950 or host; a SoC name such as Ascend910B2 selects its product.
 * The first value comes from the environment variable ACLNN_TORCH_PRODUCT, else Ascend910B.
 * 100000 for another name. */
ACL_FUNC_VISIBILITY aclError aclHostSetProduct(const char* name);
ACL_FUNC_VISIBILITY const char* aclHostGetProduct(void);
/* What is wrong with ACLNN_TORCH_PRODUCT when it names no product (Ascend910B then applies), until
 * aclHostSetProduct succeeds; else NULL. */
ACL_FUNC_VISIBILITY const char* aclHostProductProblem(void);

/* Objects alive now, of one kind: "tensor", "scalar", "array", "list", "executor", "device_block",
 * "host_block", "stream", "event", "context", "description" (aclTensorDesc, aclDataBuffer,
 * aclopAttr), "physical_memory", "model" (captured) or "task_group"; NULL counts them all. -1 for
 * another kind. */
ACL_FUNC_VISIBILITY int64_t aclHostLiveObjects(const char* kind);

/* Writes every two-stage call of this process from now on to a file, in Chrome's trace format: what
 * the environment variable ACLNN_TORCH_TRACE does for it and its children. A file that exists is
 * continued. Up to 15 such traces may be on, and each has every call; NULL ends all, also the
 * environment's. 100000 if the file cannot be opened, or is being written already. */
ACL_FUNC_VISIBILITY aclError aclHostTrace(const char* path);
/* Ends one of them, by its path. 500005 if the file lacks calls, as on a full disk; 100000 if there
 * is no such trace. */
ACL_FUNC_VISIBILITY aclError aclHostTraceEnd(const char* path);
/* What kept ACLNN_TORCH_TRACE's file from being opened, or a call from being written to it; else
 * NULL. The thread that met it finds the text in aclGetRecentErrMsg, too. */
ACL_FUNC_VISIBILITY const char* aclHostTraceProblem(void);

#ifdef __cplusplus
}
#endif
#endif
