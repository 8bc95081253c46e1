/* aclnnGelu: GELU in the hyperbolic tangent approximation (CANN document aclnnGelu). */
#ifndef ACLNN_TORCH_ACLNN_GELU_H_
#define ACLNN_TORCH_ACLNN_GELU_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), x = self. One dtype and one
 * shape, 0 to 8 dimensions. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeluGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                          uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGelu(void* workspace, uint64_t workspaceSize,
                                          aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
