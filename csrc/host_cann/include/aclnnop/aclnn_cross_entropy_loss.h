/* aclnnCrossEntropyLoss: log softmax and negative log likelihood (CANN document
 * aclnnCrossEntropyLoss). */
#ifndef ACLNN_TORCH_ACLNN_CROSS_ENTROPY_LOSS_H_
#define ACLNN_TORCH_ACLNN_CROSS_ENTROPY_LOSS_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input [N, C], target [N] of class indices, weightOptional null or [C] FLOAT. With w = weight or
 * 1, t = target, m = 0 for rows whose target is ignoreIndex and else 1, s = labelSmoothing:
 *   logProbOut [N, C] = input - lse, lse = log(sum over C of exp(input))
 *   loss of a row = m * ((1 - s) * -w[t] * logProb[t] + s / C * sum over C of -w * logProb)
 *   zloss of a row = lseSquareScaleForZloss * m * lse^2
 * reductionOptional is "mean" (also when null: losses over the sum of m * w[t], z-losses over that
 * of m), "sum" or "none"; lossOut and zlossOut are [1], or [N] for "none". zlossOut is {0} unless
 * returnZloss, lseForZlossOut {0} while lseSquareScaleForZloss is 0, else [N]; neither is null. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(
    const aclTensor* input, const aclTensor* target, const aclTensor* weightOptional,
    char* reductionOptional, int64_t ignoreIndex, double labelSmoothing,
    double lseSquareScaleForZloss, bool returnZloss, const aclTensor* lossOut,
    const aclTensor* logProbOut, const aclTensor* zlossOut, const aclTensor* lseForZlossOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLoss(void* workspace, uint64_t workspaceSize,
                                                      aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
