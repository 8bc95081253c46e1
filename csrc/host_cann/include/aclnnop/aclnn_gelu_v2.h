/* aclnnGeluV2: GELU by either formula (CANN document aclnnGeluV2). */
#ifndef ACLNN_TORCH_ACLNN_GELU_V2_H_
#define ACLNN_TORCH_ACLNN_GELU_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* approximate 0: y = x * Phi(x), Phi the distribution function of the normal distribution;
 * 1: aclnnGelu's formula. One dtype and one shape, any rank. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor* x, int64_t approximate,
                                                            aclTensor* y, uint64_t* workspaceSize,
                                                            aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluV2(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
