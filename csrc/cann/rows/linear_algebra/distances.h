#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/sign.h>

namespace aclnn_host {

// The gradient of the largest difference, by element: that of the elements as far apart as the
// distance says, or farther where it was rounded down. Of 16 bits ATen, which asks for the same
// number, would find none of them.
inline at::Tensor largest_difference_gradient(const at::Tensor& grad, const at::Tensor& difference,
                                              const at::Tensor& distance) {
  return grad * at::sign(difference) * at::ge(at::abs(difference), distance);
}

}  // namespace aclnn_host
