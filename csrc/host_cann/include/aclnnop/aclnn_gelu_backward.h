/* aclnnGeluBackward: the gradient of aclnnGelu from its input (CANN document aclnnGeluBackward). */
#ifndef ACLNN_TORCH_ACLNN_GELU_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_GELU_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradInput = gradOutput * the derivative of aclnnGelu's formula at self. The shapes of gradOutput
 * and self are broadcast, their dtypes promoted; 0 to 8 dimensions. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                  const aclTensor* self,
                                                                  const aclTensor* gradInput,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
