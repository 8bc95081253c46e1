/* aclnnFusedLinearCrossEntropyLossGrad: the gradients of the cross entropy of a linear layer on a
 * device with a part of the vocabulary (CANN document aclnnFusedLinearCrossEntropyLossGrad). */
#ifndef ACLNN_TORCH_ACLNN_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H_
#define ACLNN_TORCH_ACLNN_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* grad [N] FLOAT of the losses, input [N, D], weight [C, D]; targetMask, UINT8 with bits or BOOL,
 * and maskedTarget [N] from aclnnFusedLinearOnlineMaxSum. With p = softmaxOptional [N, C], or
 * exp(input x weight^T - logitsMaxOptional) / sumExpLogitsOptional, both [N] and of the whole
 * vocabulary:
 *   g = grad * (p - 1 at maskedTarget of rows that are not masked), in the type of input
 *   inputGradOut [N, D] = g x weight: this device's part, to be summed over the devices
 *   weightGradOut [C, D] = g^T x input
 * labelSmoothing is 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* input, const aclTensor* weight,
    const aclTensor* targetMask, const aclTensor* maskedTarget, float labelSmoothing,
    const aclTensor* logitsMaxOptional, const aclTensor* sumExpLogitsOptional,
    const aclTensor* softmaxOptional, aclTensor* inputGradOut, aclTensor* weightGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFusedLinearCrossEntropyLossGrad(void* workspace,
                                                                     uint64_t workspaceSize,
                                                                     aclOpExecutor* executor,
                                                                     aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
