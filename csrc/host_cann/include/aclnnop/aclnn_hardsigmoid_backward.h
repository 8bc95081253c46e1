/* aclnnHardsigmoidBackward: the gradient of Hardsigmoid (CANN document of that name). */
#ifndef ACLNN_TORCH_ACLNN_HARDSIGMOID_BACKWARD_H_
#define ACLNN_TORCH_ACLNN_HARDSIGMOID_BACKWARD_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -3 < self < 3: out = gradOutput / 6; else 0. One shape of 0 to 8 dimensions; the dtypes of
 * gradOutput and self are promoted, and the result is cast to out's. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardsigmoidBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardsigmoidBackward(void* workspace, uint64_t workspaceSize,
                                                         aclOpExecutor* executor,
                                                         aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
