#pragma once

#include "cann/rows/row.h"
#include "cann/rows/vision/region_alignment.h"

namespace aclnn_host {

inline void expect_not_double(const char* name, const at::Tensor& tensor) {
  EXPECT(tensor.scalar_type() != at::kDouble, name, " has dtype DOUBLE, expected FLOAT or FLOAT16");
}

inline void expect_regions(const char* name, const at::Tensor& boxes) {
  EXPECT(boxes.dim() == 2 && boxes.size(1) == 5, name, " has shape ", boxes.sizes(),
         ", expected two dimensions, the second 5");
}

}  // namespace aclnn_host
