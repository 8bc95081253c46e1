/* Collective communication. The host CANN has none; torch_npu sets this option in every process.
 * Written for aclnn_torch from the published interface; usable from C99 and C++. */
#ifndef ACLNN_TORCH_HCCL_H_
#define ACLNN_TORCH_HCCL_H_

#include <stdint.h>

#if defined(__GNUC__)
#define HCCL_FUNC_VISIBILITY __attribute__((visibility("default")))
#else
#define HCCL_FUNC_VISIBILITY
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { HCCL_SUCCESS = 0, HCCL_E_PARA = 1, HCCL_E_NOT_SUPPORT = 5 } HcclResult;

typedef enum { HCCL_DETERMINISTIC = 0 } HcclConfig;

typedef union {
  int32_t value;
} HcclConfigValue;

/* Accepted and without effect: where nothing is communicated, nothing is out of order.
 * HCCL_E_PARA for an unknown option. */
HCCL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);

#ifdef __cplusplus
}
#endif
#endif
