/* AscendCL entry header: initialisation and the runtime. */
#ifndef ACLNN_TORCH_ACL_H_
#define ACLNN_TORCH_ACL_H_

#include "acl/acl_base.h"
#include "acl/acl_base_mdl.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Initialises the process. configPath may be NULL or "". 100002 when already initialised. */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);

/* Waits for all streams, then undoes aclInit. 100037 when not initialised. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

#ifdef __cplusplus
}
#endif
#endif
