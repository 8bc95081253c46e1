/* The mode in which a device of the newest product draws random numbers. */
#ifndef ACLNN_TORCH_ACLNN_SET_PYTORCH_RANDOM_H_
#define ACLNN_TORCH_ACLNN_SET_PYTORCH_RANDOM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0: as Ascend910B and Ascend910_93 do; 1: as PyTorch does on another vendor's devices. Any other
 * mode is 161002. It is the process's own. The host CANN only keeps it: its numbers are the same
 * in both modes. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSetPytorchRandom(int32_t pytorchRandom);

/* The mode that was set last; 0 at first. */
ACL_FUNC_VISIBILITY int32_t aclnnGetPytorchRandom(void);

#ifdef __cplusplus
}
#endif
#endif
