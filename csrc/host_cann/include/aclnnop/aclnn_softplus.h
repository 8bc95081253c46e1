/* aclnnSoftplus: a smooth form of max(x, 0) (CANN document aclnnSoftplus). */
#ifndef ACLNN_TORCH_ACLNN_SOFTPLUS_H_
#define ACLNN_TORCH_ACLNN_SOFTPLUS_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* beta * self > threshold: out = self; else out = log(1 + exp(beta * self)) / beta. Tensors of 0 to
 * 8 dimensions and one shape. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusGetWorkspaceSize(
    const aclTensor* self, const aclScalar* beta, const aclScalar* threshold, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplus(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
