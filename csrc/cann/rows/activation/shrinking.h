#pragma once

#include "cann/rows/engine/element_types.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// Functions that replace values by 0 where x is inside (or outside) an interval and keep them
// elsewhere, also where x is NaN, as CANN's kernels do. ATen's gradients are 0 at NaN in the
// vectorised part of a tensor, but not in the remaining elements, and ATen rounds the interval's
// ends to 16 bits.

// The gradient of Hardtanh.
inline at::Tensor hardtanh_gradient(const at::Tensor& gradient, const at::Tensor& x,
                                    const c10::Scalar& min, const c10::Scalar& max) {
  const at::Tensor exact = wide(x);
  return at::where((exact <= min).logical_or_(exact >= max), 0, gradient);
}
// Hardshrink, if the values are x, and the gradients of Hardshrink and Softshrink. A negative lambd
// counts as 0.
inline at::Tensor hard_shrink(const at::Tensor& values, const at::Tensor& x,
                              const c10::Scalar& lambd) {
  return at::where(at::abs(wide(x)) <= std::max(lambd.toDouble(), 0.0), 0, values);
}
// Softshrink with positive zeros; ATen's vectorised kernel returns negative ones.
inline at::Tensor soft_shrink(const at::Tensor& x, const c10::Scalar& lambd) {
  return at::softshrink(x, lambd).add_(0);
}

}  // namespace aclnn_host
