// Differences between the versions of torch_npu that go with the supported versions of torch.
#pragma once

#include <cstdint>

#include "acl/acl_rt.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"
#include "torch_npu/csrc/framework/OpCommand.h"

namespace aclnn_torch {

// What the user has requested: torch_npu's level, of which only the newest wheels of a series
// export the functions, and torch.use_deterministic_algorithms.
struct Determinism {
  uint64_t level;
  bool algorithms;
};

inline uint64_t determinism_level() {
#ifdef ACLNN_TORCH_NPU_HAS_DETERMINISM_LEVEL
  return c10_npu::GetDeterministicLevel();
#else
  return 0;
#endif
}

// Makes CANN's operators as deterministic as requested.
inline void apply_determinism(const Determinism& wanted) {
#ifdef ACLNN_TORCH_NPU_HAS_DETERMINISM_LEVEL
  at_npu::native::ApplyDeterministicLevel(static_cast<int64_t>(wanted.level), wanted.algorithms,
                                          /*isOpapi=*/true);
#else
  // These wheels set one or the other for their own operators, and the context's precedes.
  aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, wanted.algorithms);
  aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, wanted.algorithms);
#endif
}

}  // namespace aclnn_torch
