#pragma once

#include <cstdint>

#include "cann/rows/matmul/matrix_units.h"

namespace aclnn_host {

// The cubeMathType of operators called by name. FLOAT is kept, or multiplied as HF32 where this is
// the product's default. Products whose units do not multiply FLOAT matrices compute in FLOAT16,
// which is the precision mode allow_fp32_to_fp16 that torch_npu sets there (LazyInitAclops.cpp).
inline int64_t cube_math_type_by_name() {
  constexpr int64_t kKeepDtype = 0;
  constexpr int64_t kAllowLowerPrecision = 1;
  return has_fp32_units(current_product()) ? kKeepDtype : kAllowLowerPrecision;
}

}  // namespace aclnn_host
