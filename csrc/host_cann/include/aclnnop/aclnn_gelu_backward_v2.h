/* aclnnGeluBackwardV2: the gradient of aclnnGeluV2 from its input (CANN document
 * aclnnGeluBackwardV2). */
#ifndef ACLNN_TORCH_ACLNN_GELU_BACKWARD_V2_H_
#define ACLNN_TORCH_ACLNN_GELU_BACKWARD_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* approximate "none": gradInput = gradOutput * (Phi(self) + self * phi(self)), phi the density of
 * the normal distribution and Phi its integral; "tanh": as aclnnGeluBackward. The shapes of
 * gradOutput and self are broadcast, their dtypes promoted to that of gradInput. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, char* approximate, aclTensor* gradInput,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluBackwardV2(void* workspace, uint64_t workspaceSize,
                                                    aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
