/* The memory size of aclnnTransConvolutionWeight's result. */
#ifndef ACLNN_TORCH_ACLNN_TRANS_CONVOLUTION_WEIGHT_H_
#define ACLNN_TORCH_ACLNN_TRANS_CONVOLUTION_WEIGHT_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of elements that a FLOAT16 weight of this shape takes in FRACTAL_Z, padding included.
 * 4 dimensions. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCalculateConvolutionWeightSize(const aclIntArray* tensorShape,
                                                                    bool transposed, int64_t groups,
                                                                    aclDataType dataType,
                                                                    uint64_t* weightTensorSize);

#ifdef __cplusplus
}
#endif
#endif
