/* aclnnCrossEntropyLossGrad: the gradient of CrossEntropyLoss (CANN document
 * aclnnCrossEntropyLossGrad). */
#ifndef ACLNN_TORCH_ACLNN_CROSS_ENTROPY_LOSS_GRAD_H_
#define ACLNN_TORCH_ACLNN_CROSS_ENTROPY_LOSS_GRAD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names as in aclnn_cross_entropy_loss.h. gradLoss and gradZlossOptional are one number (0-D or
 * [1]), or [N] for "none". With the factors of a row
 *   L = m * gradLoss * (1 - s), S = m * gradLoss * s / C, for "mean" both over the sum of m * w[t]
 *   Z = m * gradZloss, for "mean" over the sum of m
 * out [N, C] is
 *   exp(logProb) * (L * w[t] + S * sum over C of w + Z * 2 * lseSquareScaleForZloss * lse)
 *   - (L * w[t] where the class is t) - S * w */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* gradLoss, const aclTensor* logProb, const aclTensor* target,
    const aclTensor* weightOptional, const aclTensor* gradZlossOptional,
    const aclTensor* lseForZlossOptional, char* reductionOptional, int64_t ignoreIndex,
    double labelSmoothing, double lseSquareScaleForZloss, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLossGrad(void* workspace, uint64_t workspaceSize,
                                                          aclOpExecutor* executor,
                                                          aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
