/* aclnnTransQuantParam. */
#ifndef ACLNN_TORCH_ACLNN_TRANS_QUANT_PARAM_H_
#define ACLNN_TORCH_ACLNN_TRANS_QUANT_PARAM_H_

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Packs scales and offsets (null: none) for quantised products: the upper 19 bits of a scale, the
 * offset rounded to -256 to 255 in bits 37 to 45, and bit 46. The caller frees quantParam with
 * free(); more than one element are padded to a multiple of 16. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize,
                                                     const float* offsetArray, uint64_t offsetSize,
                                                     uint64_t** quantParam,
                                                     uint64_t* quantParamSize);

#ifdef __cplusplus
}
#endif
#endif
