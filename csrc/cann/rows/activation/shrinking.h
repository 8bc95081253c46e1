#pragma once

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/where.h>
#include <c10/core/Scalar.h>

#include "cann/rows/engine/element_types.h"

namespace aclnn_host {

// Values that become 0 where x lies in one part of the line, and stay elsewhere, also where x is
// nan, as in CANN's kernels. ATen's gradients are 0 at nan where it computes in vectors, but not in
// the elements that are left; and it rounds the ends of that part to 16 bits.

// The gradient of Hardtanh.
inline at::Tensor hardtanh_gradient(const at::Tensor& gradient, const at::Tensor& x,
                                    const c10::Scalar& min, const c10::Scalar& max) {
  const at::Tensor exact = wide(x);
  return at::where((exact <= min).logical_or_(exact >= max), 0, gradient);
}
// Hardshrink, where the values are x, and the gradients of Hardshrink and Softshrink. A negative
// lambd is 0.
inline at::Tensor hard_shrink(const at::Tensor& values, const at::Tensor& x,
                              const c10::Scalar& lambd) {
  return at::where(at::abs(wide(x)) <= std::max(lambd.toDouble(), 0.0), 0, values);
}
// Softshrink, whose zeros are positive: ATen's are not where it computes in vectors.
inline at::Tensor soft_shrink(const at::Tensor& x, const c10::Scalar& lambd) {
  return at::softshrink(x, lambd).add_(0);
}

}  // namespace aclnn_host
