#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// The gradient of the largest difference: it goes to the elements whose difference equals the
// distance, or exceeds it where the distance was rounded down. ATen requires equality, and would
// find no such element for 16-bit types.
inline at::Tensor largest_difference_gradient(const at::Tensor& grad, const at::Tensor& difference,
                                              const at::Tensor& distance) {
  return grad * at::sign(difference) * at::ge(at::abs(difference), distance);
}

}  // namespace aclnn_host
