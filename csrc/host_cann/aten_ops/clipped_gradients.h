#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/where.h>
#include <c10/core/Scalar.h>

#include "host_cann/aten_ops/engine/element_types.h"

namespace aclnn_host {

// Gradients that are 0 in one part of the line and gradOutput elsewhere, also where x is nan, as in
// CANN's kernels. Those of ATen are 0 at nan where it computes in vectors, and gradOutput in the
// elements that are left.
inline at::Tensor hardtanh_gradient(const at::Tensor& gradient, const at::Tensor& x,
                                    const c10::Scalar& min, const c10::Scalar& max) {
  const at::Tensor exact = wide(x);  // a number would be rounded to 16 bits
  return at::where((exact <= min).logical_or_(exact >= max), 0, gradient);
}
inline at::Tensor hardshrink_gradient(const at::Tensor& gradient, const at::Tensor& x,
                                      const c10::Scalar& lambd) {
  return at::where(at::abs(wide(x)) <= lambd, 0, gradient);
}

}  // namespace aclnn_host
