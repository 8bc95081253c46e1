/* aclnnHardswishBackwardV2: the gradient of Hardswish as PyTorch defines it at -3 and 3 (CANN
 * document aclnnHardswishBackwardV2). */
#ifndef ACLNN_TORCH_ACLNN_HARDSWISH_BACKWARD_V2_H_
#define ACLNN_TORCH_ACLNN_HARDSWISH_BACKWARD_V2_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = gradOutput * slope; self <= -3: slope = 0; self >= 3: 1; between them self / 3 + 0.5. One
 * dtype and one shape, 0 to 8 dimensions. Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackwardV2GetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackwardV2(void* workspace, uint64_t workspaceSize,
                                                         aclOpExecutor* executor,
                                                         aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
