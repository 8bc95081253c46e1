/* aclnnConvolution: 1-D, 2-D and 3-D convolution and transposed convolution (CANN document
 * aclnnConvolution). */
#ifndef ACLNN_TORCH_ACLNN_CONVOLUTION_H_
#define ACLNN_TORCH_ACLNN_CONVOLUTION_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input [N, Cin, spatial...]; weight [Cout, Cin / groups, kernel...], or when transposed
 * [Cin, Cout / groups, kernel...]; bias null or [Cout]; output [N, Cout, spatial...]. Per spatial
 * dimension, with stride s, padding p and dilation d:
 *   output[o] = bias + sum over channels and k of input[o * s - p + k * d] * weight[k]
 *   output size = floor((input + 2 p - d (kernel - 1) - 1) / s) + 1, or when transposed
 *                 (input - 1) s - 2 p + d (kernel - 1) + outputPadding + 1
 * cubeMathType: 0 computes in the tensors' type; for FLOAT, 1 may use HFLOAT32 (FLOAT16 on products
 * without FP32 matrix units) and 3 uses HFLOAT32; 2 uses FLOAT16. Sums are always FP32. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
    const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation,
    bool transposed, const aclIntArray* outputPadding, const int64_t groups, aclTensor* output,
    int8_t cubeMathType, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
