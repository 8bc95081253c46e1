/* aclnnHostLinearCrossEntropy: the cross entropy of a linear layer, with its gradients. An
 * extension of the host CANN; CANN does not have it. */
#ifndef ACLNN_TORCH_ACLNN_HOST_LINEAR_CROSS_ENTROPY_H_
#define ACLNN_TORCH_ACLNN_HOST_LINEAR_CROSS_ENTROPY_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input [N, D], weight [C, D] and biasOptional [C] of one type, FLOAT, FLOAT16, BFLOAT16 or DOUBLE;
 * target [N] of class indices. With logits = input x weight^T + bias, never stored as a whole:
 *   lseOut [N] = log(sum over C of exp(logits)), FLOAT, or DOUBLE for DOUBLE
 *   lossOut [N] = (1 - s) * w[target] * (lse - logits[target])
 *     + s / C * sum over C of w * (lse - logits), likewise; 0 for rows whose target is ignoreIndex
 * with s = labelSmoothing and w = classWeightsOptional [C], of the type of lossOut, or ones. weight
 * may hold the classes from firstClass on of a vocabulary of vocabularySize (0: only the classes of
 * weight): then a target outside these classes counts as a logit of 0, and s and w are not
 * supported. If lseOptional, the result of an earlier call, is given, neither output is written,
 * and both may be null. inputGradOutOptional, weightGradOutOptional and biasGradOutOptional, each
 * unless null, are the gradients of the sum of factors * loss; factorsOptional [N] has the type of
 * lossOut, null means ones. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHostLinearCrossEntropyGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* biasOptional,
    const aclTensor* target, const aclTensor* classWeightsOptional,
    const aclTensor* factorsOptional, const aclTensor* lseOptional, int64_t ignoreIndex,
    double labelSmoothing, int64_t firstClass, int64_t vocabularySize, aclTensor* lossOut,
    aclTensor* lseOut, aclTensor* inputGradOutOptional, aclTensor* weightGradOutOptional,
    aclTensor* biasGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHostLinearCrossEntropy(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor,
                                                            aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
