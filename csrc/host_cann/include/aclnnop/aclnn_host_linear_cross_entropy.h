/* aclnnHostLinearCrossEntropy: the cross entropy of a linear layer, with its gradients. An
 * extension of the host CANN: no CANN has it. */
#ifndef ACLNN_TORCH_ACLNN_HOST_LINEAR_CROSS_ENTROPY_H_
#define ACLNN_TORCH_ACLNN_HOST_LINEAR_CROSS_ENTROPY_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input [N, D], weight [C, D] and biasOptional [C] of one type, FLOAT, FLOAT16, BFLOAT16 or DOUBLE;
 * target [N] of class indices. With logits = input x weight^T + bias, which exist in parts only:
 *   lseOut [N] = log(sum over C of exp(logits)), FLOAT or for DOUBLE that
 *   lossOut [N] = (1 - s) * w[target] * (lse - logits[target])
 *     + s / C * sum over C of w * (lse - logits), likewise; 0 for rows whose target is ignoreIndex
 * with s = labelSmoothing and w = classWeightsOptional [C], of the type of lossOut, or ones.
 * Where lseOptional is given, which an earlier call has found, neither is written, and may be null.
 * inputGradOutOptional, weightGradOutOptional and biasGradOutOptional, each unless it is null, are
 * the gradients of the sum of factors * loss; factorsOptional [N] is of the type of lossOut, null
 * means ones. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHostLinearCrossEntropyGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* biasOptional,
    const aclTensor* target, const aclTensor* classWeightsOptional,
    const aclTensor* factorsOptional, const aclTensor* lseOptional, int64_t ignoreIndex,
    double labelSmoothing, aclTensor* lossOut, aclTensor* lseOut, aclTensor* inputGradOutOptional,
    aclTensor* weightGradOutOptional, aclTensor* biasGradOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHostLinearCrossEntropy(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor,
                                                            aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
