/* Functions of the host CANN beyond CANN's own interface. No Ascend machine has this header. */
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
/* The problem with ACLNN_TORCH_PRODUCT if it names no product (Ascend910B then applies), until
 * aclHostSetProduct succeeds; otherwise NULL. */
ACL_FUNC_VISIBILITY const char* aclHostProductProblem(void);

/* The release of CANN whose public checkers the operators follow, for the whole process: 8.5, 9.0,
 * 9.1 or later, the newest public source. The first value comes from the environment variable
 * ACLNN_TORCH_CANN, else later. 100000 for another name. */
ACL_FUNC_VISIBILITY aclError aclHostSetCannRelease(const char* name);
ACL_FUNC_VISIBILITY const char* aclHostGetCannRelease(void);
/* The problem with ACLNN_TORCH_CANN if it names no release (later then applies), until
 * aclHostSetCannRelease succeeds; otherwise NULL. */
ACL_FUNC_VISIBILITY const char* aclHostCannReleaseProblem(void);

/* The number of live objects of one kind: "tensor", "scalar", "array", "list", "executor",
 * "device_block", "host_block", "stream", "event", "context", "description" (aclTensorDesc,
 * aclDataBuffer, aclopAttr), "physical_memory", "model" (captured) or "task_group"; NULL counts all
 * kinds. -1 for an unknown kind. */
ACL_FUNC_VISIBILITY int64_t aclHostLiveObjects(const char* kind);

/* Writes every two-stage call of this process from now on to a file, in Chrome's trace format, as
 * the environment variable ACLNN_TORCH_TRACE does for the process and its children. Appends to an
 * existing file. Up to 15 such traces may be active, and each records every call; NULL ends all,
 * including the environment's. 100000 if the file cannot be opened, or is already being written. */
ACL_FUNC_VISIBILITY aclError aclHostTrace(const char* path);
/* Ends the trace with this path. 500005 if calls are missing from the file, e.g. because of a full
 * disk; 100000 if there is no such trace. */
ACL_FUNC_VISIBILITY aclError aclHostTraceEnd(const char* path);
/* The reason why ACLNN_TORCH_TRACE's file could not be opened, or a call not written to it;
 * otherwise NULL. The affected thread also gets the text from aclGetRecentErrMsg. */
ACL_FUNC_VISIBILITY const char* aclHostTraceProblem(void);

#ifdef __cplusplus
}
#endif
#endif
