/* The shape and the format of aclnnNpuFormatCast's result. */
#ifndef ACLNN_TORCH_ACLNN_NPU_FORMAT_CAST_H_
#define ACLNN_TORCH_ACLNN_NPU_FORMAT_CAST_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes in memory (the caller frees them with delete[]) and the format of the tensor that
 * aclnnNpuFormatCast makes. additionalDtype decides the width of the blocks; -1 stands for
 * srcTensor's type. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(
    const aclTensor* srcTensor, const int dstFormat, int additionalDtype, int64_t** dstShape,
    uint64_t* dstShapeSize, int* actualFormat);

#ifdef __cplusplus
}
#endif
#endif
