/* aclnnSilu: x * sigmoid(x), also called Swish (CANN document aclnnSilu). */
#ifndef ACLNN_TORCH_ACLNN_SILU_H_
#define ACLNN_TORCH_ACLNN_SILU_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = self / (1 + exp(-self)). One dtype and one shape, any rank. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSiluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                          uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSilu(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
