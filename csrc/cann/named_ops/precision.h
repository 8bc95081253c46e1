#pragma once

#include <cstdint>

#include "cann/rows/matmul/matrix_units.h"

namespace aclnn_host {

// The cubeMathType of an operator called by name: it keeps FLOAT, as HF32 where the product does so
// unless told otherwise, and computes in FLOAT16 on products without units for FLOAT matrices, as
// the precision mode allow_fp32_to_fp16 says that torch_npu sets there (LazyInitAclops.cpp).
inline int64_t cube_math_type_by_name() {
  constexpr int64_t kKeepDtype = 0;
  constexpr int64_t kAllowLowerPrecision = 1;
  return has_fp32_units(current_product()) ? kKeepDtype : kAllowLowerPrecision;
}

}  // namespace aclnn_host
