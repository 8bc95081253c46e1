#include "hccl/hccl.h"
#include "host_cann/runtime/error.h"

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  if (config == HCCL_DETERMINISTIC) return HCCL_SUCCESS;
  aclnn_host::fail(HCCL_E_PARA, "HcclSetConfig: unknown option %d", config);
  return HCCL_E_PARA;
}
