/* aclnnHardsigmoid and aclnnInplaceHardsigmoid: a sigmoid made of straight lines (CANN document
 * aclnnHardsigmoid&aclnnInplaceHardsigmoid). */
#ifndef ACLNN_TORCH_ACLNN_HARDSIGMOID_H_
#define ACLNN_TORCH_ACLNN_HARDSIGMOID_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self > 3: out = 1; self <= -3: 0; between them self / 6 + 1/2, of INT32 truncated. One dtype, one
 * shape of 0 to 8 dimensions, one format. Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardsigmoidGetWorkspaceSize(const aclTensor* self,
                                                                 aclTensor* out,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardsigmoid(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceHardsigmoidGetWorkspaceSize(const aclTensor* self,
                                                                        uint64_t* workspaceSize,
                                                                        aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceHardsigmoid(void* workspace, uint64_t workspaceSize,
                                                        aclOpExecutor* executor,
                                                        aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
