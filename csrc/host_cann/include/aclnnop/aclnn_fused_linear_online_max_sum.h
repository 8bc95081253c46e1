/* aclnnFusedLinearOnlineMaxSum: one device's part of the cross entropy of a linear layer with a
 * distributed vocabulary (CANN document aclnnFusedLinearOnlineMaxSum). */
#ifndef ACLNN_TORCH_ACLNN_FUSED_LINEAR_ONLINE_MAX_SUM_H_
#define ACLNN_TORCH_ACLNN_FUSED_LINEAR_ONLINE_MAX_SUM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input [N, D]; weight [C, D], the classes of a vocabulary from vocabStartIndex on; target [N] of
 * indices into the whole vocabulary. With logits = input x weight^T in the type of input:
 *   logitsMaxLocalOut [N] = max over C of logits
 *   sumExpLogitsLocalOut [N] = sum over C of exp(logits - logitsMaxLocal)
 * A target t is masked unless vocabStartIndex <= t < vocabEndIndex:
 *   maskedTargetOut [N] = t - vocabStartIndex, 0 if masked
 *   predictedLogitsLocalOut [N] = logits[maskedTarget] - logitsMaxLocal, 0 if masked
 *   targetMaskOut [(N + 7) / 8]: one bit per row, lowest bit of a byte first, 1 if masked;
 *     bits after the last row as for target 0
 * vocabParallelLogitsOutOptional [N, C] = logits; if it is null, they are never stored as a whole.
 * max, sum and predicted are FLOAT. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* target,
    int64_t vocabStartIndex, int64_t vocabEndIndex, aclTensor* logitsMaxLocalOut,
    aclTensor* sumExpLogitsLocalOut, aclTensor* predictedLogitsLocalOut, aclTensor* targetMaskOut,
    aclTensor* maskedTargetOut, aclTensor* vocabParallelLogitsOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedLinearOnlineMaxSum(void* workspace,
                                                             uint64_t workspaceSize,
                                                             aclOpExecutor* executor,
                                                             aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
