/* aclnnHardswish and aclnnInplaceHardswish: SiLU with a piecewise linear sigmoid (CANN document
 * aclnnHardswish&aclnnInplaceHardswish). */
#ifndef ACLNN_TORCH_ACLNN_HARDSWISH_H_
#define ACLNN_TORCH_ACLNN_HARDSWISH_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self >= 3: out = self; self <= -3: 0; between them self * (self + 3) / 6. One shape, any rank.
 * Not on Ascend310P. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishGetWorkspaceSize(const aclTensor* self,
                                                               const aclTensor* out,
                                                               uint64_t* workspaceSize,
                                                               aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswish(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceHardswishGetWorkspaceSize(const aclTensor* self,
                                                                      uint64_t* workspaceSize,
                                                                      aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceHardswish(void* workspace, uint64_t workspaceSize,
                                                      aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
