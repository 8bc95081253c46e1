/* Models. The host CANN runs none; what torch_npu links against is here and says so.
 * Written for aclnn_torch from the published interface; usable from C99 and C++. */
#ifndef ACLNN_TORCH_ACL_MDL_H_
#define ACLNN_TORCH_ACL_MDL_H_

#include "acl/acl_base_mdl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Dumps of what models compute: 200006. */
ACL_FUNC_VISIBILITY aclError aclmdlInitDump(void);
ACL_FUNC_VISIBILITY aclError aclmdlSetDump(const char* dumpCfgPath);
ACL_FUNC_VISIBILITY aclError aclmdlFinalizeDump(void);

#ifdef __cplusplus
}
#endif
#endif
