/* aclnnSeluBackward: the gradient of SELU from its result (CANN document aclnnSeluBackward). */
#ifndef ACLNN_TORCH_ACLNN_SELU_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_SELU_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y > 0: gradInput = gradOutput * scale; y <= 0: gradInput = gradOutput * (y + scale * alpha),
 * scale = 1.0507009873554804..., alpha = 1.6732632423543772.... One dtype and one shape, any rank.
 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSeluBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                  const aclTensor* result,
                                                                  aclTensor* gradInput,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSeluBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
