/* aclnnRmsNorm: root mean square layer normalisation (CANN document aclnnRmsNorm). */
#ifndef ACLNN_TORCH_ACLNN_RMS_NORM_H_
#define ACLNN_TORCH_ACLNN_RMS_NORM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x is read as R rows of D elements, D being the elements of gamma, whose shape is the last
 * dimensions of x.
 *   rstdOut = 1 / sqrt(mean over D of x^2 + epsilon), FLOAT, x's shape with gamma's dimensions 1
 *   yOut = x * rstdOut * gamma */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGetWorkspaceSize(
    const aclTensor* x, const aclTensor* gamma, double epsilon, const aclTensor* yOut,
    const aclTensor* rstdOut, uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNorm(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
