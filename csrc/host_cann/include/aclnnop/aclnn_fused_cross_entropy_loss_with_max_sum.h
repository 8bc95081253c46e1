/* aclnnFusedCrossEntropyLossWithMaxSum: the cross entropy from the results of
 * aclnnFusedLinearOnlineMaxSum (CANN document aclnnFusedCrossEntropyLossWithMaxSum). */
#ifndef ACLNN_TORCH_ACLNN_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H_
#define ACLNN_TORCH_ACLNN_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* logitsMax, sumExpLogits and predictedLogits [N] FLOAT of the whole vocabulary: the maximum over
 * all devices, and sums of terms reduced by it.
 *   lossOut [N] = log(sumExpLogits) - predictedLogits
 *   softMaxOutOptional [N, C] FLOAT = exp(vocabParallelLogits - logitsMax) / sumExpLogits, if
 *     vocabParallelLogitsOptional [N, C] is given
 * labelSmoothing is 0; inputOptional and weightOptional are ignored. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor* logitsMax, const aclTensor* sumExpLogits, const aclTensor* predictedLogits,
    float labelSmoothing, const aclTensor* inputOptional, const aclTensor* weightOptional,
    const aclTensor* vocabParallelLogitsOptional, aclTensor* lossOut, aclTensor* softMaxOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedCrossEntropyLossWithMaxSum(void* workspace,
                                                                     uint64_t workspaceSize,
                                                                     aclOpExecutor* executor,
                                                                     aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
