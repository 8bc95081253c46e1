/* The memory size of aclnnTransMatmulWeight's result. */
#ifndef ACLNN_TORCH_ACLNN_TRANS_MATMUL_WEIGHT_H_
#define ACLNN_TORCH_ACLNN_TRANS_MATMUL_WEIGHT_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of elements that a FLOAT16 weight of this shape takes in FRACTAL_NZ, padding included.
 * 2 to 6 dimensions. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                                               uint64_t* weightTensorSize);

/* The same for a weight of any type. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape,
                                                                 aclDataType dataType,
                                                                 uint64_t* weightTensorSize);

#ifdef __cplusplus
}
#endif
#endif
