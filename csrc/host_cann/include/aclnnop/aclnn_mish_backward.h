/* aclnnMishBackward: the gradient of Mish (CANN document of that name). */
#ifndef ACLNN_TORCH_ACLNN_MISH_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_MISH_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradInput = gradOutput * (t + self * (1 - t^2) * sigmoid(self)), t = tanh(log(1 + exp(self))).
 * gradOutput and self, of 0 to 8 dimensions, are broadcast to gradInput's shape; their dtypes are
 * promoted, and the result is cast to gradInput's. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMishBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                  const aclTensor* self,
                                                                  aclTensor* gradInput,
                                                                  uint64_t* workspaceSize,
                                                                  aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMishBackward(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
