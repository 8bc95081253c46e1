#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

inline void expect_not_double(const char* name, const at::Tensor& tensor) {
  EXPECT(tensor.scalar_type() != at::kDouble, name, " has dtype DOUBLE, expected FLOAT or FLOAT16");
}

// Requires boxes of `sides` numbers.
inline void expect_regions(const char* name, const at::Tensor& boxes, int64_t sides = 5) {
  EXPECT(boxes.dim() == 2 && boxes.size(1) == sides, name, " has shape ", boxes.sizes(),
         ", expected two dimensions, the second ", sides);
}

}  // namespace aclnn_host
