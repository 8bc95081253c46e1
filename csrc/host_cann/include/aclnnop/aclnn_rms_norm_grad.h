/* aclnnRmsNormGrad: the gradient of RmsNorm (CANN document aclnnRmsNormGrad). */
#ifndef ACLNN_TORCH_ACLNN_RMS_NORM_GRAD_H_
#define ACLNN_TORCH_ACLNN_RMS_NORM_GRAD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x is read as R rows of D elements, D being the size of gamma; rstd has R elements, FLOAT.
 *   dgammaOut = sum over R of dy * x * rstd, always FLOAT
 *   dxOut = rstd * (dy * gamma - x * rstd * mean over D of dy * gamma * x * rstd) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGradGetWorkspaceSize(
    const aclTensor* dy, const aclTensor* x, const aclTensor* rstd, const aclTensor* gamma,
    const aclTensor* dxOut, const aclTensor* dgammaOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRmsNormGrad(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
