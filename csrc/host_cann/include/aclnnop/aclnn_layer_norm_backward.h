/* aclnnLayerNormBackward: the gradients of aclnnLayerNorm (CANN document aclnnLayerNormBackward).
 */
#ifndef ACLNN_TORCH_ACLNN_LAYER_NORM_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_LAYER_NORM_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With xhat = (input - mean) * rstd and a = gradOut * weight, means over a row, sums over the rows:
 * gradInput = (a - mean of a - xhat * mean of a * xhat) * rstd, gradWeight = sum of gradOut * xhat,
 * gradBias = sum of gradOut. outputMask selects the gradients; the others may be null. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclIntArray* normalizedShape,
    const aclTensor* mean, const aclTensor* rstd, const aclTensor* weightOptional,
    const aclTensor* biasOptional, const aclBoolArray* outputMask, aclTensor* gradInputOut,
    aclTensor* gradWeightOut, aclTensor* gradBiasOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormBackward(void* workspace, uint64_t workspaceSize,
                                                       aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
