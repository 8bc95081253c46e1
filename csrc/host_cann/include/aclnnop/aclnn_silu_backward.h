/* aclnnSiluBackward: the gradient of SiLU from its input (CANN document aclnnSiluBackward). */
#ifndef ACLNN_TORCH_ACLNN_SILU_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_SILU_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With s = 1 / (1 + exp(-self)): gradInput = gradOutput * s * (1 + self * (1 - s)). One dtype and
 * one shape, 0 to 8 dimensions. Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSiluBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                  const aclTensor* self,
                                                                  aclTensor* gradInput,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSiluBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
