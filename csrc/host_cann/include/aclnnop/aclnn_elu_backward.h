/* aclnnEluBackward: the gradient of ELU (CANN document aclnnEluBackward). */
#ifndef ACLNN_TORCH_ACLNN_ELU_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_ELU_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* isResult false: selfOrResult is the input x of ELU; true: its result y (then alpha >= 0).
 *   v > 0 : gradInput = gradOutput * scale
 *   v <= 0: gradInput = gradOutput * inputScale * alpha * scale * exp(v * inputScale), or, of y,
 *           gradOutput * inputScale * (v + alpha * scale)
 * Tensors of 0 to 8 dims and one shape. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEluBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclScalar* alpha, const aclScalar* scale,
    const aclScalar* inputScale, bool isResult, const aclTensor* selfOrResult, aclTensor* gradInput,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnEluBackward(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
