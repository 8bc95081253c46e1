/* aclnnSoftplusBackward: the gradient of Softplus (CANN document aclnnSoftplusBackward). */
#ifndef ACLNN_TORCH_ACLNN_SOFTPLUS_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_SOFTPLUS_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* beta * self > threshold: gradInput = gradOutput; else gradOutput / (1 + exp(-beta * self)).
 * Tensors of 0 to 8 dimensions and one shape; self may have integers. Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclScalar* beta,
    const aclScalar* threshold, aclTensor* gradInput, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusBackward(void* workspace, uint64_t workspaceSize,
                                                      aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
