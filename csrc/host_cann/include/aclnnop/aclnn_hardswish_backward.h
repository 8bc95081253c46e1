/* aclnnHardswishBackward: the gradient of Hardswish (CANN document aclnnHardswishBackward). */
#ifndef ACLNN_TORCH_ACLNN_HARDSWISH_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_HARDSWISH_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = gradOutput * slope; self < -3: slope = 0; self > 3: 1; between them, and at both ends,
 * self / 3 + 0.5. One dtype and one shape, 0 to 8 dimensions. Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                       const aclTensor* self,
                                                                       aclTensor* out,
                                                                       uint64_t* workspaceSize,
                                                                       aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackward(void* workspace, uint64_t workspaceSize,
                                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
