/* aclnnConvolutionBackward: the gradients of Convolution (CANN document
 * aclnnConvolutionBackward). */
#ifndef ACLNN_TORCH_ACLNN_CONVOLUTION_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_CONVOLUTION_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shapes and parameters as in aclnn_convolution.h; gradOutput has its output's shape. But groups is
 * an int here, and cubeMathType precedes the outputs.
 *   gradInput[i] = sum of gradOutput[o] * weight[k] over i = o * s - p + k * d
 *   gradWeight[k] = sum over the batch and o of gradOutput[o] * input[o * s - p + k * d]
 *   gradBias = sum of gradOutput over the batch and the spatial dimensions
 * outputMask, of 3, selects the gradients; the others may be null. biasSizes is [Cout]; it may be
 * null if gradBias is not selected. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* input, const aclTensor* weight,
    const aclIntArray* biasSizes, const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed, const aclIntArray* outputPadding, int groups,
    const aclBoolArray* outputMask, int8_t cubeMathType, aclTensor* gradInput,
    aclTensor* gradWeight, aclTensor* gradBias, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionBackward(void* workspace, uint64_t workspaceSize,
                                                         aclOpExecutor* executor,
                                                         const aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
