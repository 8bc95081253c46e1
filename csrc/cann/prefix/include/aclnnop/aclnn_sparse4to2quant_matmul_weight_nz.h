/* aclnnTransSparse4to2Para. */
#ifndef ACLNN_TORCH_ACLNN_SPARSE4TO2QUANT_MATMUL_WEIGHT_NZ_H_
#define ACLNN_TORCH_ACLNN_SPARSE4TO2QUANT_MATMUL_WEIGHT_NZ_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Removes two zeros from every four elements of weight, which is [n, k], for
 * aclnnSparse4to2QuantMatmulWeightNz. sparseWeight is [ceil(k / 64), ceil(n / 16), 16, 32], index
 * the same with 8 as the last size. The caller frees all four arrays with free(). */
ACL_FUNC_VISIBILITY aclnnStatus aclnnTransSparse4to2Para(
    const int8_t* weight, aclIntArray* shape, int8_t** sparseWeight, int64_t** sparseWeightDims,
    uint64_t* sparseWeightDimsNum, uint8_t** index, int64_t** indexDims, uint64_t* indexDimsNum);

#ifdef __cplusplus
}
#endif
#endif
