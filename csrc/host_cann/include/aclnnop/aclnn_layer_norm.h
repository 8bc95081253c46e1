/* aclnnLayerNorm (CANN document aclnnLayerNorm&aclnnLayerNormWithImplMode). */
#ifndef ACLNN_TORCH_ACLNN_LAYER_NORM_H_
#define ACLNN_TORCH_ACLNN_LAYER_NORM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows are the elements of input's last dimensions, whose sizes are normalizedShape:
 * out = (input - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each row
 * and rstd = 1 / sqrt(variance + eps). weight and bias (of normalizedShape; 1 and 0 if absent),
 * meanOut and rstdOut (one value per row) may be null. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLayerNorm(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
